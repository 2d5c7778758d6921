"""torch.nn.functional in the scripting language: thin functions over the operators."""
import math
from typing import List, Optional, Tuple, Union

import torch
from torch import Tensor


# ---- activations ----
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.relu_(input)
    return torch.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.clamp_(input, 0, 6)
    return torch.clamp(input, 0, 6)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if inplace:
        return torch.hardtanh_(input, min_val, max_val)
    return torch.hardtanh(input, min_val, max_val)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.hardswish_(input)
    return torch.hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.hardsigmoid_(input)
    return torch.hardsigmoid(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.silu_(input)
    return torch.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.mish_(input)
    return torch.mish(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.elu_(input, alpha)
    return torch.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.selu_(input)
    return torch.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.celu_(input, alpha)
    return torch.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.leaky_relu_(input, negative_slope)
    return torch.leaky_relu(input, negative_slope)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    return torch.prelu(input, weight)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
          inplace: bool = False) -> Tensor:
    if inplace:
        return torch.rrelu_(input, lower, upper, training)
    return torch.rrelu(input, lower, upper, training)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    if approximate != "none" and approximate != "tanh":
        raise RuntimeError("approximate argument must be either none or tanh.")
    return torch.gelu(input, approximate=approximate)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    return torch.glu(input, dim)


def logsigmoid(input: Tensor) -> Tensor:
    return torch.log_sigmoid(input)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    return torch.softplus(input, beta, threshold)


def softsign(input: Tensor) -> Tensor:
    return input / (torch.abs(input) + 1)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return torch.softshrink(input, lambd)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    return torch.hardshrink(input, lambd)


def tanhshrink(input: Tensor) -> Tensor:
    return input - torch.tanh(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.threshold_(input, threshold, value)
    return torch.threshold(input, threshold, value)


def tanh(input: Tensor) -> Tensor:
    return torch.tanh(input)


def sigmoid(input: Tensor) -> Tensor:
    return torch.sigmoid(input)


def softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = _softmax_dim(torch.dim(input))
    return torch.softmax(input, dim, dtype=dtype)


def softmin(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = _softmax_dim(torch.dim(input))
    return torch.softmax(-input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = _softmax_dim(torch.dim(input))
    return torch.log_softmax(input, dim, dtype=dtype)


def _softmax_dim(rank: int) -> int:
    if rank == 0 or rank == 1 or rank == 3:
        return 0
    return 1


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    noise = -torch.log(torch.exponential_(torch.empty_like(logits)))
    soft = torch.softmax((logits + noise) / tau, dim)
    if hard:
        index = torch.argmax(soft, dim, True)
        one = torch.scatter(torch.zeros_like(logits), dim, index, 1.0)
        return one - torch.detach(soft) + soft
    return soft


# ---- linear, embedding, normalisation ----
def linear(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    return torch.linear(input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    return torch.bilinear(input1, input2, weight, bias)


def embedding(input: Tensor, weight: Tensor, padding_idx: Optional[int] = None, max_norm: Optional[float] = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    pad = -1
    if padding_idx is not None:
        pad = padding_idx
        if pad < 0:
            pad = pad + torch.size(weight, 0)
    if max_norm is not None:
        torch.embedding_renorm_(weight, input, max_norm, norm_type)
    return torch.embedding(weight, input, pad, scale_grad_by_freq, sparse)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    return torch.one_hot(tensor, num_classes)


def batch_norm(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor],
               weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    return torch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def instance_norm(input: Tensor, running_mean: Optional[Tensor] = None, running_var: Optional[Tensor] = None,
                  weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    if use_input_stats:
        spatial = 1
        for i in range(2, torch.dim(input)):
            spatial *= torch.size(input, i)
        if spatial == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    return torch.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


def layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None,
               bias: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:
    return torch.layer_norm(input, normalized_shape, weight, bias, eps, True)


def rms_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None,
             eps: Optional[float] = None) -> Tensor:
    return torch.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               eps: float = 1e-5) -> Tensor:
    return torch.group_norm(input, num_groups, weight, bias, eps, True)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    rank = torch.dim(input)
    if rank < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {rank} dimensions)")
    if torch.numel(input) == 0:
        return input
    square = torch.unsqueeze(input * input, 1)
    if rank == 3:
        padded = torch.constant_pad_nd(square, [0, 0, size // 2, (size - 1) // 2], 0)
        mean = torch.squeeze(torch.avg_pool2d(padded, [size, 1], [1, 1]), 1)
    else:
        sizes = input.size()
        flat = torch.view(torch.contiguous(square), [sizes[0], 1, sizes[1], sizes[2], -1])
        padded = torch.constant_pad_nd(flat, [0, 0, 0, 0, size // 2, (size - 1) // 2], 0)
        mean = torch.view(torch.squeeze(torch.avg_pool3d(padded, [size, 1, 1], [1, 1, 1]), 1), sizes)
    return input / torch.pow(mean * alpha + k, beta)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    return normalize__dims(input, p, [dim], eps)


def normalize__dims(input: Tensor, p: float = 2.0, dim: List[int] = [1], eps: float = 1e-12) -> Tensor:
    length = torch.norm(input, p, dim, True)
    return input / torch.expand_as(torch.clamp_min(length, eps), input)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    return torch.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    return torch.pairwise_distance(x1, x2, p, eps, keepdim)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    return torch.pdist(input, p)


# ---- dropout ----
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if inplace:
        return torch.dropout_(input, p, training)
    return torch.dropout(input, p, training)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.alpha_dropout_(input, p, training)
    return torch.alpha_dropout(input, p, training)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.feature_dropout_(input, p, training)
    return torch.feature_dropout(input, p, training)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.feature_dropout_(input, p, training)
    return torch.feature_dropout(input, p, training)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.feature_dropout_(input, p, training)
    return torch.feature_dropout(input, p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.feature_alpha_dropout_(input, p, training)
    return torch.feature_alpha_dropout(input, p, training)


# ---- padding, pooling, resampling ----
def pad(input: Tensor, pad: List[int], mode: str = "constant", value: Optional[float] = None) -> Tensor:
    return torch.pad(input, pad, mode, value)


def interpolate(input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[List[float]] = None,
                mode: str = "nearest", align_corners: Optional[bool] = None,
                recompute_scale_factor: Optional[bool] = None, antialias: bool = False) -> Tensor:
    rank = torch.dim(input)
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    corners = False
    if align_corners is not None:
        corners = align_corners
        if mode == "nearest" or mode == "area" or mode == "nearest-exact":
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    out: Optional[List[int]] = None
    factors: Optional[List[float]] = None
    if size is not None:
        out = _spread(size, rank - 2)
    if scale_factor is not None:
        factors = _spread_float(scale_factor, rank - 2)
    if factors is not None and (mode == "area" or (recompute_scale_factor is not None and recompute_scale_factor)):
        sizes: List[int] = []
        for i in range(rank - 2):
            sizes.append(int(math.floor(float(torch.size(input, i + 2)) * factors[i])))
        out = sizes
        factors = None
    if mode == "nearest":
        if rank == 3:
            return torch.upsample_nearest1d(input, out, factors)
        if rank == 4:
            return torch.upsample_nearest2d(input, out, factors)
        if rank == 5:
            return torch.upsample_nearest3d(input, out, factors)
    if mode == "nearest-exact":
        if rank == 3:
            return torch._upsample_nearest_exact1d(input, out, factors)
        if rank == 4:
            return torch._upsample_nearest_exact2d(input, out, factors)
        if rank == 5:
            return torch._upsample_nearest_exact3d(input, out, factors)
    if mode == "area" and out is not None:
        if rank == 3:
            return torch.adaptive_avg_pool1d(input, out)
        if rank == 4:
            return torch.adaptive_avg_pool2d(input, out)
        if rank == 5:
            return torch.adaptive_avg_pool3d(input, out)
    if mode == "linear" and rank == 3:
        return torch.upsample_linear1d(input, out, corners, factors)
    if mode == "bilinear" and rank == 4:
        if antialias:
            return torch._upsample_bilinear2d_aa(input, out, corners, factors)
        return torch.upsample_bilinear2d(input, out, corners, factors)
    if mode == "trilinear" and rank == 5:
        return torch.upsample_trilinear3d(input, out, corners, factors)
    if mode == "bicubic" and rank == 4:
        if antialias:
            return torch._upsample_bicubic2d_aa(input, out, corners, factors)
        return torch.upsample_bicubic2d(input, out, corners, factors)
    raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {rank}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got {mode})")


def _spread(values: List[int], count: int) -> List[int]:
    if len(values) == 1 and count > 1:
        return [values[0] for _ in range(count)]
    if len(values) != count:
        raise ValueError(f"Input and output must have the same number of spatial dimensions, but got {count} and output size of {values}")
    return values


def _spread_float(values: List[float], count: int) -> List[float]:
    if len(values) == 1 and count > 1:
        return [values[0] for _ in range(count)]
    if len(values) != count:
        raise ValueError(f"Input and scale_factor must have the same number of spatial dimensions, but got {count} and scale_factor of {values}")
    return values


def upsample(input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[List[float]] = None,
             mode: str = "nearest", align_corners: Optional[bool] = None) -> Tensor:
    return interpolate(input, size, scale_factor, mode, align_corners)


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: Optional[bool] = None) -> Tensor:
    modes = {"bilinear": 0, "nearest": 1, "bicubic": 2}
    paddings = {"zeros": 0, "border": 1, "reflection": 2}
    corners = False
    if align_corners is not None:
        corners = align_corners
    return torch.grid_sampler(input, grid, modes[mode], paddings[padding_mode], corners)


def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    corners = False
    if align_corners is not None:
        corners = align_corners
    return torch.affine_grid_generator(theta, size, corners)


def avg_pool1d(input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = [0],
               ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    steps: List[int] = []
    if stride is not None:
        steps = stride
    return torch.avg_pool1d(input, kernel_size, steps, padding, ceil_mode, count_include_pad)


def avg_pool2d(input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = [0],
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: Optional[int] = None) -> Tensor:
    steps: List[int] = []
    if stride is not None:
        steps = stride
    return torch.avg_pool2d(input, kernel_size, steps, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = [0],
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: Optional[int] = None) -> Tensor:
    steps: List[int] = []
    if stride is not None:
        steps = stride
    return torch.avg_pool3d(input, kernel_size, steps, padding, ceil_mode, count_include_pad, divisor_override)


def max_pool1d(input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = [0],
               dilation: List[int] = [1], ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    steps: List[int] = []
    if stride is not None:
        steps = stride
    return torch.max_pool1d(input, kernel_size, steps, padding, dilation, ceil_mode)


def max_pool2d(input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = [0],
               dilation: List[int] = [1], ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    steps: List[int] = []
    if stride is not None:
        steps = stride
    return torch.max_pool2d(input, kernel_size, steps, padding, dilation, ceil_mode)


def max_pool3d(input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = [0],
               dilation: List[int] = [1], ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    steps: List[int] = []
    if stride is not None:
        steps = stride
    return torch.max_pool3d(input, kernel_size, steps, padding, dilation, ceil_mode)


def adaptive_avg_pool1d(input: Tensor, output_size: List[int]) -> Tensor:
    return torch.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: List[Optional[int]]) -> Tensor:
    return torch.adaptive_avg_pool2d(input, _sizes_or_input(output_size, input, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: List[Optional[int]]) -> Tensor:
    return torch.adaptive_avg_pool3d(input, _sizes_or_input(output_size, input, 3))


def adaptive_max_pool1d(input: Tensor, output_size: List[int], return_indices: bool = False) -> Tensor:
    return torch.adaptive_max_pool1d(input, output_size)[0]


def adaptive_max_pool2d(input: Tensor, output_size: List[Optional[int]], return_indices: bool = False) -> Tensor:
    return torch.adaptive_max_pool2d(input, _sizes_or_input(output_size, input, 2))[0]


def adaptive_max_pool3d(input: Tensor, output_size: List[Optional[int]], return_indices: bool = False) -> Tensor:
    return torch.adaptive_max_pool3d(input, _sizes_or_input(output_size, input, 3))[0]


def _sizes_or_input(output_size: List[Optional[int]], input: Tensor, count: int) -> List[int]:
    if len(output_size) != 1 and len(output_size) != count:
        raise RuntimeError(f"adaptive pooling: output_size must be {count}, got {len(output_size)} sizes")
    sizes: List[int] = []
    rank = torch.dim(input)
    for i in range(count):
        wanted = output_size[i] if len(output_size) > 1 else output_size[0]
        if wanted is None:
            sizes.append(torch.size(input, rank - count + i))
        else:
            sizes.append(wanted)
    return sizes


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: int, stride: Optional[int] = None,
              ceil_mode: bool = False) -> Tensor:
    step = kernel_size if stride is None else stride
    out = torch.avg_pool1d(torch.pow(input, norm_type), [kernel_size], [step], [0], ceil_mode)
    return torch.pow(torch.sign(out) * torch.relu(torch.abs(out)) * kernel_size, 1.0 / norm_type)


def unfold(input: Tensor, kernel_size: List[int], dilation: List[int] = [1], padding: List[int] = [0],
           stride: List[int] = [1]) -> Tensor:
    return torch.im2col(input, _spread(kernel_size, 2), _spread(dilation, 2), _spread(padding, 2), _spread(stride, 2))


def fold(input: Tensor, output_size: List[int], kernel_size: List[int], dilation: List[int] = [1],
         padding: List[int] = [0], stride: List[int] = [1]) -> Tensor:
    return torch.col2im(input, _spread(output_size, 2), _spread(kernel_size, 2), _spread(dilation, 2),
                        _spread(padding, 2), _spread(stride, 2))


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    return torch.pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    return torch.pixel_unshuffle(input, downscale_factor)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    return torch.channel_shuffle(input, groups)


# ---- convolution ----
def conv1d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: List[int] = [1],
           padding: List[int] = [0], dilation: List[int] = [1], groups: int = 1) -> Tensor:
    return torch.conv1d(input, weight, bias, stride, padding, dilation, groups)


def conv1d__padding(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: List[int] = [1],
                    padding: str = "valid", dilation: List[int] = [1], groups: int = 1) -> Tensor:
    return torch.conv1d(input, weight, bias, stride, padding, dilation, groups)


def conv2d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: List[int] = [1],
           padding: List[int] = [0], dilation: List[int] = [1], groups: int = 1) -> Tensor:
    return torch.conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv2d__padding(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: List[int] = [1],
                    padding: str = "valid", dilation: List[int] = [1], groups: int = 1) -> Tensor:
    return torch.conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv3d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: List[int] = [1],
           padding: List[int] = [0], dilation: List[int] = [1], groups: int = 1) -> Tensor:
    return torch.conv3d(input, weight, bias, stride, padding, dilation, groups)


def conv3d__padding(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: List[int] = [1],
                    padding: str = "valid", dilation: List[int] = [1], groups: int = 1) -> Tensor:
    return torch.conv3d(input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: List[int] = [1],
                     padding: List[int] = [0], output_padding: List[int] = [0], groups: int = 1,
                     dilation: List[int] = [1]) -> Tensor:
    return torch.conv_transpose1d(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: List[int] = [1],
                     padding: List[int] = [0], output_padding: List[int] = [0], groups: int = 1,
                     dilation: List[int] = [1]) -> Tensor:
    return torch.conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: List[int] = [1],
                     padding: List[int] = [0], output_padding: List[int] = [0], groups: int = 1,
                     dilation: List[int] = [1]) -> Tensor:
    return torch.conv_transpose3d(input, weight, bias, stride, padding, output_padding, groups, dilation)


# ---- attention ----
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: Optional[float] = None,
                                 enable_gqa: bool = False) -> Tensor:
    return torch.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                                              enable_gqa=enable_gqa)


# ---- losses ----
def _reduction(reduction: str, size_average: Optional[bool] = None, reduce: Optional[bool] = None) -> int:
    if size_average is not None or reduce is not None:  # what reduction= was before
        if reduce is not None and not reduce:
            return 0
        return 2 if size_average is not None and not size_average else 1
    if reduction == "none":
        return 0
    if reduction == "mean":
        return 1
    if reduction == "sum":
        return 2
    raise ValueError(f"{reduction} is not a valid value for reduction")


def cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
                  ignore_index: int = -100, reduce: Optional[bool] = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    return torch.cross_entropy_loss(input, target, weight, _reduction(reduction, size_average, reduce), ignore_index, label_smoothing)


def nll_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
             ignore_index: int = -100, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.nll_loss_nd(input, target, weight, _reduction(reduction, size_average, reduce), ignore_index)


def _weighted(loss: Tensor, weight: Tensor, input: Tensor) -> Tensor:
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    return loss * weight


def mse_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
             reduction: str = "mean", weight: Optional[Tensor] = None) -> Tensor:
    kind = _reduction(reduction, size_average, reduce)
    if weight is None:
        return torch.mse_loss(input, target, kind)
    loss = _weighted(torch.mse_loss(input, target, 0), weight, input)
    return torch.sum(loss) / torch.sum(weight) if kind == 1 else torch._reduce_loss(loss, kind)


def l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
            reduction: str = "mean", weight: Optional[Tensor] = None) -> Tensor:
    kind = _reduction(reduction, size_average, reduce)
    if weight is None:
        return torch.l1_loss(input, target, kind)
    loss = _weighted(torch.l1_loss(input, target, 0), weight, input)
    return torch.sum(loss) / torch.sum(weight) if kind == 1 else torch._reduce_loss(loss, kind)


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                   reduction: str = "mean", beta: float = 1.0) -> Tensor:
    return torch.smooth_l1_loss(input, target, _reduction(reduction, size_average, reduce), beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Optional[Tensor] = None) -> Tensor:
    if weight is None:
        return torch.huber_loss(input, target, _reduction(reduction), delta)
    return torch._reduce_loss(_weighted(torch.huber_loss(input, target, 0, delta), weight, input), _reduction(reduction))


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
                         size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                         reduction: str = "mean") -> Tensor:
    return torch.binary_cross_entropy(input, target, weight, _reduction(reduction, size_average, reduce))


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
                                     size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                                     reduction: str = "mean", pos_weight: Optional[Tensor] = None) -> Tensor:
    return torch.binary_cross_entropy_with_logits(input, target, weight, pos_weight, _reduction(reduction, size_average, reduce))


def kl_div(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
           reduction: str = "mean", log_target: bool = False) -> Tensor:
    if reduction == "batchmean":
        total = torch.kl_div(input, target, 2, log_target=log_target)
        if torch.dim(input) == 0:
            return total
        return total / torch.size(input, 0)
    return torch.kl_div(input, target, _reduction(reduction, size_average, reduce), log_target=log_target)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: Optional[bool] = None, eps: float = 1e-8, reduce: Optional[bool] = None,
                     reduction: str = "mean") -> Tensor:
    return torch.poisson_nll_loss(input, target, log_input, full, eps, _reduction(reduction, size_average, reduce))


def _sum_of_other_sizes(input: Tensor, var: Tensor) -> int:
    total = 0
    for d in range(input.dim()):
        if input.size(d) != var.size(d):
            total += var.size(d)
    return total


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:
    if bool(torch.any(var < 0)):
        raise ValueError("var has negative entry/entries")
    v = var
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            v = torch.unsqueeze(var, -1)
        elif input.dim() != var.dim() or _sum_of_other_sizes(input, var) != 1:
            raise ValueError("var is of incorrect size")
    # PyTorch clamps the numbers alone: the gradient passes below eps too
    v = v + torch.detach(torch.clamp_min(v, eps) - v)
    loss = 0.5 * (torch.log(v) + (input - target) * (input - target) / v)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return torch._reduce_loss(loss, _reduction(reduction))


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: Optional[bool] = None,
                         reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.hinge_embedding_loss(input, target, margin, _reduction(reduction, size_average, reduce))


def soft_margin_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None,
                     reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.soft_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                          size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                          reduction: str = "mean") -> Tensor:
    return torch.cosine_embedding_loss(input1, input2, target, margin, _reduction(reduction, size_average, reduce))


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                        size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                        reduction: str = "mean") -> Tensor:
    return torch.margin_ranking_loss(input1, input2, target, margin, _reduction(reduction, size_average, reduce))


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0,
                        eps: float = 1e-6, swap: bool = False, size_average: Optional[bool] = None,
                        reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return torch.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, _reduction(reduction, size_average, reduce))


def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None,
                           reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.multilabel_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Optional[Tensor] = None,
                      size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                      reduction: str = "mean") -> Tensor:
    return torch.multi_margin_loss(input, target, p, margin, weight, _reduction(reduction, size_average, reduce))


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
                                size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                                reduction: str = "mean") -> Tensor:
    loss = -(target * torch.log_sigmoid(input) + (1 - target) * torch.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return torch._reduce_loss(torch.mean(loss, [-1]), _reduction(reduction, size_average, reduce))


def ctc_loss__ints(log_probs: Tensor, targets: Tensor, input_lengths: List[int], target_lengths: List[int],
                   blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> Tensor:
    return torch.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _reduction(reduction),
                          zero_infinity)


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Tensor:
    return torch.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _reduction(reduction),
                          zero_infinity)
