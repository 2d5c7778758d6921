"""Pooling that also gives indices, takes them, or draws its windows. `name(..., return_indices=True)` is
`name_with_indices`."""
import math
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


def _steps(stride: Optional[List[int]]) -> List[int]:
    steps: List[int] = []
    if stride is not None:
        steps = stride
    return steps


def max_pool1d_with_indices(input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None,
                            padding: List[int] = [0], dilation: List[int] = [1], ceil_mode: bool = False,
                            return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.max_pool1d_with_indices(input, kernel_size, _steps(stride), padding, dilation, ceil_mode)


def max_pool2d_with_indices(input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None,
                            padding: List[int] = [0], dilation: List[int] = [1], ceil_mode: bool = False,
                            return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.max_pool2d_with_indices(input, kernel_size, _steps(stride), padding, dilation, ceil_mode)


def max_pool3d_with_indices(input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None,
                            padding: List[int] = [0], dilation: List[int] = [1], ceil_mode: bool = False,
                            return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.max_pool3d_with_indices(input, kernel_size, _steps(stride), padding, dilation, ceil_mode)


def adaptive_max_pool1d_with_indices(input: Tensor, output_size: List[int],
                                     return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(input: Tensor, output_size: List[Optional[int]],
                                     return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool2d(input, F._sizes_or_input(output_size, input, 2))


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: List[Optional[int]],
                                     return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool3d(input, F._sizes_or_input(output_size, input, 3))


def _fractional_sizes(input: Tensor, output_size: Optional[List[int]], output_ratio: Optional[List[float]],
                      count: int) -> List[int]:
    sizes: List[int] = []
    for i in range(count):
        if output_size is not None:
            sizes.append(output_size[i] if len(output_size) > 1 else output_size[0])
        elif output_ratio is not None:
            ratio = output_ratio[i] if len(output_ratio) > 1 else output_ratio[0]
            sizes.append(int(float(torch.size(input, torch.dim(input) - count + i)) * ratio))
        else:
            raise ValueError("fractional_max_pool requires specifying either an output_size or an output_ratio")
    return sizes


def _samples(input: Tensor, given: Optional[Tensor], count: int) -> Tensor:
    if given is not None:
        return given
    batch = 1 if torch.dim(input) == count + 1 else torch.size(input, 0)
    return torch.rand([batch, torch.size(input, -count - 1), count], dtype=input.dtype)


def _spread_to(values: List[int], count: int) -> List[int]:
    return values if len(values) == count else [values[0] for _ in range(count)]


def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: List[int], output_size: Optional[List[int]] = None,
                                       output_ratio: Optional[List[float]] = None, return_indices: bool = False,
                                       _random_samples: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    sizes = _fractional_sizes(input, output_size, output_ratio, 2)
    return torch.fractional_max_pool2d(input, _spread_to(kernel_size, 2), sizes, _samples(input, _random_samples, 2))


def fractional_max_pool2d(input: Tensor, kernel_size: List[int], output_size: Optional[List[int]] = None,
                          output_ratio: Optional[List[float]] = None, return_indices: bool = False,
                          _random_samples: Optional[Tensor] = None) -> Tensor:
    return fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, False, _random_samples)[0]


def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: List[int], output_size: Optional[List[int]] = None,
                                       output_ratio: Optional[List[float]] = None, return_indices: bool = False,
                                       _random_samples: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    sizes = _fractional_sizes(input, output_size, output_ratio, 3)
    return torch.fractional_max_pool3d(input, _spread_to(kernel_size, 3), sizes, _samples(input, _random_samples, 3))


def fractional_max_pool3d(input: Tensor, kernel_size: List[int], output_size: Optional[List[int]] = None,
                          output_ratio: Optional[List[float]] = None, return_indices: bool = False,
                          _random_samples: Optional[Tensor] = None) -> Tensor:
    return fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio, False, _random_samples)[0]


# ---- back to where the maxima were ----
def _unpool_sizes(input: Tensor, kernel_size: List[int], stride: Optional[List[int]], padding: List[int],
                  output_size: Optional[List[int]], count: int) -> List[int]:
    if output_size is not None:
        if len(output_size) > count:
            return output_size[-count:]
        return output_size
    kernel = _spread_to(kernel_size, count)
    steps = kernel if stride is None or len(stride) == 0 else _spread_to(stride, count)
    pads = _spread_to(padding, count)
    sizes: List[int] = []
    for i in range(count):
        size = torch.size(input, torch.dim(input) - count + i)
        sizes.append((size - 1) * steps[i] + kernel[i] - 2 * pads[i])
    return sizes


def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None,
                 padding: List[int] = [0], output_size: Optional[List[int]] = None) -> Tensor:
    sizes = _unpool_sizes(input, kernel_size, stride, padding, output_size, 1)
    result = torch.max_unpool2d(torch.unsqueeze(input, -1), torch.unsqueeze(indices, -1), [sizes[0], 1])
    return torch.squeeze(result, -1)


def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None,
                 padding: List[int] = [0], output_size: Optional[List[int]] = None) -> Tensor:
    return torch.max_unpool2d(input, indices, _unpool_sizes(input, kernel_size, stride, padding, output_size, 2))


def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None,
                 padding: List[int] = [0], output_size: Optional[List[int]] = None) -> Tensor:
    kernel = _spread_to(kernel_size, 3)
    steps = kernel if stride is None or len(stride) == 0 else _spread_to(stride, 3)
    sizes = _unpool_sizes(input, kernel_size, stride, padding, output_size, 3)
    return torch.max_unpool3d(input, indices, sizes, steps, _spread_to(padding, 3))


# ---- norms over windows ----
def lp_pool2d(input: Tensor, norm_type: float, kernel_size: List[int], stride: Optional[List[int]] = None,
              ceil_mode: bool = False) -> Tensor:
    kernel = _spread_to(kernel_size, 2)
    steps = kernel if stride is None else stride
    out = torch.avg_pool2d(torch.pow(input, norm_type), kernel, steps, [0], ceil_mode)
    return torch.pow(torch.sign(out) * torch.relu(torch.abs(out)) * (kernel[0] * kernel[1]), 1.0 / norm_type)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: List[int], stride: Optional[List[int]] = None,
              ceil_mode: bool = False) -> Tensor:
    kernel = _spread_to(kernel_size, 3)
    steps = kernel if stride is None else stride
    out = torch.avg_pool3d(torch.pow(input, norm_type), kernel, steps, [0], ceil_mode)
    return torch.pow(torch.sign(out) * torch.relu(torch.abs(out)) * (kernel[0] * kernel[1] * kernel[2]),
                     1.0 / norm_type)


# ---- others ----
def upsample_nearest(input: Tensor, size: Optional[List[int]] = None,
                     scale_factor: Optional[List[float]] = None) -> Tensor:
    return torch.nn.functional.interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Optional[List[int]] = None,
                      scale_factor: Optional[List[float]] = None) -> Tensor:
    return torch.nn.functional.interpolate(input, size, scale_factor, "bilinear", True)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    return torch.channel_shuffle(input, groups)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    return torch.conv_tbc(input, weight, bias, pad)


def embedding_bag(input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, max_norm: Optional[float] = None,
                  norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Optional[Tensor] = None, include_last_offset: bool = False,
                  padding_idx: Optional[int] = None) -> Tensor:
    if torch.is_floating_point(input) and not torch.is_floating_point(weight): # the order of old versions
        return _embedding_bag_of(weight, input, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse,
                                per_sample_weights, include_last_offset, padding_idx)
    return _embedding_bag_of(input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse,
                            per_sample_weights, include_last_offset, padding_idx)


def _embedding_bag_of(input: Tensor, weight: Tensor, offsets: Optional[Tensor], max_norm: Optional[float],
                     norm_type: float, scale_grad_by_freq: bool, mode: str, sparse: bool,
                     per_sample_weights: Optional[Tensor], include_last_offset: bool,
                     padding_idx: Optional[int]) -> Tensor:
    weights = per_sample_weights
    if weights is not None:
        if torch.size(weights) != torch.size(input):
            raise ValueError("embedding_bag: If per_sample_weights is not None, then it must have the same shape as the "
                             "input")
        if mode != "sum":
            raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only "
                                      "supported for mode='sum'")
        weights = torch.reshape(weights, [-1])
    if torch.dim(input) == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed "
                             "length sequences")
        starts = torch.arange(0, torch.numel(input), torch.size(input, 1), dtype=input.dtype)
    elif torch.dim(input) == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        starts = offsets
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {torch.dim(input)}")
    kinds = ["sum", "mean", "max"]
    if mode not in kinds:
        raise ValueError("mode has to be one of sum, mean or max")
    flat = torch.reshape(input, [-1])
    if max_norm is not None:
        torch.embedding_renorm_(weight, flat, max_norm, norm_type)
    if padding_idx is not None:
        padding = padding_idx if padding_idx >= 0 else torch.size(weight, 0) + padding_idx
        return torch.embedding_bag(weight, flat, starts, scale_grad_by_freq, kinds.index(mode), sparse, weights,
                                   include_last_offset, padding)[0]
    return torch.embedding_bag(weight, flat, starts, scale_grad_by_freq, kinds.index(mode), sparse, weights,
                               include_last_offset)[0]


def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, margin: float = 1.0,
                                      swap: bool = False, reduction: str = "mean") -> Tensor:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if reduction != "mean" and reduction != "sum" and reduction != "none":
        raise ValueError(f"{reduction} is not a valid value for reduction")
    near = torch.pairwise_distance(anchor, positive)
    far = torch.pairwise_distance(anchor, negative)
    if swap:
        far = torch.minimum(far, torch.pairwise_distance(positive, negative))
    loss = torch.clamp_min(margin + near - far, 0)
    if reduction == "mean":
        return torch.mean(loss)
    if reduction == "sum":
        return torch.sum(loss)
    return loss


def grouped_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               out_dtype: Optional[int] = None) -> Tensor:
    return torch._grouped_mm(mat_a, mat_b, offs, bias, out_dtype)
