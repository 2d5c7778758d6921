"""torch.nn's modules under PyTorch's names and signatures, in the scripting language.

__init__ runs at compile time (frontend/init_eval.c); the methods compile like a user's. Module,
Parameter and the containers' bookkeeping belong to the evaluator."""
import copy
import math
from typing import Dict, List, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module, Parameter, init
from torch.nn.utils.rnn import PackedSequence


def _single(x):
    return x if isinstance(x, tuple) else (tuple(x) if isinstance(x, list) else (x,))


def _pair(x):
    return x if isinstance(x, tuple) else (tuple(x) if isinstance(x, list) else (x, x))


def _triple(x):
    return x if isinstance(x, tuple) else (tuple(x) if isinstance(x, list) else (x, x, x))


# ---- containers' forward (their bookkeeping is the evaluator's) ----
class Identity(Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


# ---- linear ----
class Linear(Module):
    def __init__(self, in_features: int, out_features: int, bias: bool = True, device=None, dtype=None):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.empty(out_features, in_features, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_features, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return torch.linear(input, self.weight, self.bias)


class Bilinear(Module):
    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device=None,
                 dtype=None):
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(torch.empty(out_features, in1_features, in2_features, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_features, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        bound = 1 / math.sqrt(in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return torch.bilinear(input1, input2, self.weight, self.bias)


class Embedding(Module):
    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: Optional[int] = None,
                 max_norm: Optional[float] = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                 sparse: bool = False, _weight=None, _freeze: bool = False, device=None, dtype=None):
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None and padding_idx < 0:
            padding_idx = num_embeddings + padding_idx
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            self.weight = Parameter(torch.empty(num_embeddings, embedding_dim, dtype=dtype))
            init.normal_(self.weight)
            if padding_idx is not None:
                with torch.no_grad():
                    self.weight[padding_idx].fill_(0)
        else:
            self.weight = Parameter(_weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                           self.scale_grad_by_freq, self.sparse)


# ---- convolutions ----
class _ConvNd(Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, output_padding,
                 groups, bias, padding_mode, dtype):
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of 'same', 'valid'")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"padding_mode must be one of zeros, reflect, replicate, circular, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        sides = []
        for i in range(len(kernel_size) - 1, -1, -1):
            if isinstance(padding, str):
                total = dilation[i] * (kernel_size[i] - 1) if padding == "same" else 0
                sides.append(total // 2)
                sides.append(total - total // 2)
            else:
                sides.append(padding[i])
                sides.append(padding[i])
        self._reversed_padding_repeated_twice = sides
        if transposed:
            shape = [in_channels, out_channels // groups] + list(kernel_size)
        else:
            shape = [out_channels, in_channels // groups] + list(kernel_size)
        self.weight = Parameter(torch.empty(shape, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_channels, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)


class Conv1d(_ConvNd):
    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device=None, dtype=None):
        super().__init__(in_channels, out_channels, _single(kernel_size), _single(stride),
                         padding if isinstance(padding, str) else _single(padding), _single(dilation), False,
                         _single(0), groups, bias, padding_mode, dtype)

    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != "zeros":
            return torch.conv1d(torch.pad(input, self._reversed_padding_repeated_twice, self.padding_mode),
                                self.weight, self.bias, self.stride, [0], self.dilation, self.groups)
        return torch.conv1d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(_ConvNd):
    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device=None, dtype=None):
        super().__init__(in_channels, out_channels, _pair(kernel_size), _pair(stride),
                         padding if isinstance(padding, str) else _pair(padding), _pair(dilation), False,
                         _pair(0), groups, bias, padding_mode, dtype)

    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != "zeros":
            return torch.conv2d(torch.pad(input, self._reversed_padding_repeated_twice, self.padding_mode),
                                self.weight, self.bias, self.stride, [0, 0], self.dilation, self.groups)
        return torch.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv3d(_ConvNd):
    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device=None, dtype=None):
        super().__init__(in_channels, out_channels, _triple(kernel_size), _triple(stride),
                         padding if isinstance(padding, str) else _triple(padding), _triple(dilation), False,
                         _triple(0), groups, bias, padding_mode, dtype)

    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != "zeros":
            return torch.conv3d(torch.pad(input, self._reversed_padding_repeated_twice, self.padding_mode),
                                self.weight, self.bias, self.stride, [0, 0, 0], self.dilation, self.groups)
        return torch.conv3d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class _ConvTransposeNd(_ConvNd):
    def _output_padding(self, input: Tensor, output_size: Optional[List[int]], rank: int) -> List[int]:
        if output_size is None:
            result: List[int] = []
            for i in range(rank):
                result.append(self.output_padding[i])
            return result
        sizes = output_size[len(output_size) - rank:]
        extra: List[int] = []
        for i in range(rank):
            least = ((torch.size(input, torch.dim(input) - rank + i) - 1) * self.stride[i] - 2 * self.padding[i]
                     + self.dilation[i] * (self.kernel_size[i] - 1) + 1)
            if sizes[i] < least or sizes[i] > least + self.stride[i] - 1:
                raise ValueError(f"requested an output size of {sizes}, which is out of range")
            extra.append(sizes[i] - least)
        return extra


class ConvTranspose1d(_ConvTransposeNd):
    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0,
                 groups: int = 1, bias: bool = True, dilation=1, padding_mode: str = "zeros", device=None, dtype=None):
        super().__init__(in_channels, out_channels, _single(kernel_size), _single(stride), _single(padding),
                         _single(dilation), True, _single(output_padding), groups, bias, padding_mode, dtype)

    def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        extra = self._output_padding(input, output_size, 1)
        return torch.conv_transpose1d(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
                                      self.dilation)


class ConvTranspose2d(_ConvTransposeNd):
    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0,
                 groups: int = 1, bias: bool = True, dilation=1, padding_mode: str = "zeros", device=None, dtype=None):
        super().__init__(in_channels, out_channels, _pair(kernel_size), _pair(stride), _pair(padding),
                         _pair(dilation), True, _pair(output_padding), groups, bias, padding_mode, dtype)

    def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        extra = self._output_padding(input, output_size, 2)
        return torch.conv_transpose2d(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
                                      self.dilation)


class ConvTranspose3d(_ConvTransposeNd):
    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0,
                 groups: int = 1, bias: bool = True, dilation=1, padding_mode: str = "zeros", device=None, dtype=None):
        super().__init__(in_channels, out_channels, _triple(kernel_size), _triple(stride), _triple(padding),
                         _triple(dilation), True, _triple(output_padding), groups, bias, padding_mode, dtype)

    def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        extra = self._output_padding(input, output_size, 3)
        return torch.conv_transpose3d(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
                                      self.dilation)


# ---- normalisation ----
class _BatchNorm(Module):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: Optional[float] = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device=None, dtype=None, *, bias: bool = True):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.register_parameter("weight", Parameter(torch.ones(num_features, dtype=dtype)) if affine else None)
        self.register_parameter("bias",
                                Parameter(torch.zeros(num_features, dtype=dtype)) if affine and bias else None)
        if track_running_stats:
            self.register_buffer("running_mean", torch.zeros(num_features, dtype=dtype))
            self.register_buffer("running_var", torch.ones(num_features, dtype=dtype))
            self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long))
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)
            self.register_buffer("num_batches_tracked", None)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0
        if self.momentum is not None:
            factor = self.momentum
        if self.training and self.track_running_stats:
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
                if self.momentum is None:
                    factor = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        if not self.training or self.track_running_stats:
            return torch.batch_norm(input, self.weight, self.bias, self.running_mean, self.running_var, use_batch,
                                    factor, self.eps, True)
        return torch.batch_norm(input, self.weight, self.bias, None, None, use_batch, factor, self.eps, True)


class BatchNorm1d(_BatchNorm):
    def _check_input_dim(self, input: Tensor):
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    def _check_input_dim(self, input: Tensor):
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    def _check_input_dim(self, input: Tensor):
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class _InstanceNorm(Module):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device=None, dtype=None, *, bias: bool = True):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.register_parameter("weight", Parameter(torch.ones(num_features, dtype=dtype)) if affine else None)
        self.register_parameter("bias",
                                Parameter(torch.zeros(num_features, dtype=dtype)) if affine and bias else None)
        if track_running_stats:
            self.register_buffer("running_mean", torch.zeros(num_features, dtype=dtype))
            self.register_buffer("running_var", torch.ones(num_features, dtype=dtype))
            self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long))
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)
            self.register_buffer("num_batches_tracked", None)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() == self._unbatched_rank():
            return torch.squeeze(self._apply_norm(torch.unsqueeze(input, 0)), 0)
        return self._apply_norm(input)

    def _apply_norm(self, input: Tensor) -> Tensor:
        return torch.instance_norm(input, self.weight, self.bias, self.running_mean, self.running_var,
                                   self.training or not self.track_running_stats, self.momentum, self.eps, True)


class InstanceNorm1d(_InstanceNorm):
    def _unbatched_rank(self) -> int:
        return 2


class InstanceNorm2d(_InstanceNorm):
    def _unbatched_rank(self) -> int:
        return 3


class InstanceNorm3d(_InstanceNorm):
    def _unbatched_rank(self) -> int:
        return 4


class LayerNorm(Module):
    def __init__(self, normalized_shape, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
                 device=None, dtype=None):
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(torch.ones(self.normalized_shape, dtype=dtype))
            if bias:
                self.bias = Parameter(torch.zeros(self.normalized_shape, dtype=dtype))
            else:
                self.register_parameter("bias", None)
        else:
            self.register_parameter("weight", None)
            self.register_parameter("bias", None)

    def forward(self, input: Tensor) -> Tensor:
        return torch.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps, True)


class RMSNorm(Module):
    def __init__(self, normalized_shape, eps: Optional[float] = None, elementwise_affine: bool = True, device=None,
                 dtype=None):
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(torch.ones(self.normalized_shape, dtype=dtype))
        else:
            self.register_parameter("weight", None)

    def forward(self, x: Tensor) -> Tensor:
        return torch.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device=None,
                 dtype=None, *, bias: bool = True):
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError("num_channels must be divisible by num_groups")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.register_parameter("weight", Parameter(torch.ones(num_channels, dtype=dtype)) if affine else None)
        self.register_parameter("bias",
                                Parameter(torch.zeros(num_channels, dtype=dtype)) if affine and bias else None)

    def forward(self, input: Tensor) -> Tensor:
        return torch.group_norm(input, self.num_groups, self.weight, self.bias, self.eps, True)


class LocalResponseNorm(Module):
    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


# ---- dropout ----
class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace


class Dropout(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)


# ---- activations ----
class ReLU(Module):
    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class Hardtanh(Module):
    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace
        if min_val > max_val:
            raise ValueError("min_val must not exceed max_val")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)


class Hardswish(Module):
    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Hardsigmoid(Module):
    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class SiLU(Module):
    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(Module):
    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class ELU(Module):
    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(Module):
    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(Module):
    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class LeakyReLU(Module):
    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class RReLU(Module):
    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class PReLU(Module):
    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(torch.full((num_parameters,), init, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        return torch.prelu(input, self.weight)


class GELU(Module):
    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return torch.gelu(input, approximate=self.approximate)


class GLU(Module):
    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return torch.glu(input, self.dim)


class Sigmoid(Module):
    def forward(self, input: Tensor) -> Tensor:
        return torch.sigmoid(input)


class Tanh(Module):
    def forward(self, input: Tensor) -> Tensor:
        return torch.tanh(input)


class LogSigmoid(Module):
    def forward(self, input: Tensor) -> Tensor:
        return torch.log_sigmoid(input)


class Softsign(Module):
    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    def forward(self, input: Tensor) -> Tensor:
        return input - torch.tanh(input)


class Softplus(Module):
    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return torch.softplus(input, self.beta, self.threshold)


class Softshrink(Module):
    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return torch.softshrink(input, self.lambd)


class Hardshrink(Module):
    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return torch.hardshrink(input, self.lambd)


class Threshold(Module):
    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class Softmax(Module):
    def __init__(self, dim: Optional[int] = None):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(Module):
    def __init__(self, dim: Optional[int] = None):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmin(Module):
    def __init__(self, dim: Optional[int] = None):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    def forward(self, input: Tensor) -> Tensor:
        return torch.softmax(input, -3)


# ---- pooling ----
class _MaxPoolNd(Module):
    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices: bool = False,
                 ceil_mode: bool = False):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode


class MaxPool1d(_MaxPoolNd):
    def forward(self, input: Tensor):
        if self.return_indices:
            return F.max_pool1d_with_indices(input, self.kernel_size, self.stride, self.padding, self.dilation,
                                             self.ceil_mode)
        return torch.max_pool1d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class MaxPool2d(_MaxPoolNd):
    def forward(self, input: Tensor):
        if self.return_indices:
            return F.max_pool2d_with_indices(input, self.kernel_size, self.stride, self.padding, self.dilation,
                                             self.ceil_mode)
        return torch.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class MaxPool3d(_MaxPoolNd):
    def forward(self, input: Tensor):
        if self.return_indices:
            return F.max_pool3d_with_indices(input, self.kernel_size, self.stride, self.padding, self.dilation,
                                             self.ceil_mode)
        return torch.max_pool3d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class AvgPool1d(Module):
    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True):
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return torch.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                                self.count_include_pad)


class AvgPool2d(Module):
    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: Optional[int] = None):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return torch.avg_pool2d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                                self.count_include_pad, self.divisor_override)


class AvgPool3d(Module):
    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: Optional[int] = None):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return torch.avg_pool3d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                                self.count_include_pad, self.divisor_override)


class AdaptiveAvgPool1d(Module):
    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return torch.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(Module):
    def __init__(self, output_size):
        super().__init__()
        self.output_size = _pair(output_size)

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(Module):
    def __init__(self, output_size):
        super().__init__()
        self.output_size = _triple(output_size)

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


class AdaptiveMaxPool1d(Module):
    def __init__(self, output_size, return_indices: bool = False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor):
        if self.return_indices:
            return torch.adaptive_max_pool1d(input, self.output_size)
        return torch.adaptive_max_pool1d(input, self.output_size)[0]


class AdaptiveMaxPool2d(Module):
    def __init__(self, output_size, return_indices: bool = False):
        super().__init__()
        self.output_size = _pair(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor):
        if self.return_indices:
            return F.adaptive_max_pool2d_with_indices(input, self.output_size)
        return F.adaptive_max_pool2d(input, self.output_size)


class AdaptiveMaxPool3d(Module):
    def __init__(self, output_size, return_indices: bool = False):
        super().__init__()
        self.output_size = _triple(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor):
        if self.return_indices:
            return F.adaptive_max_pool3d_with_indices(input, self.output_size)
        return F.adaptive_max_pool3d(input, self.output_size)


class LPPool1d(Module):
    def __init__(self, norm_type: float, kernel_size: int, stride: Optional[int] = None, ceil_mode: bool = False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


# ---- padding and shape ----
class _PadNd(Module):
    def __init__(self, padding, count: int, mode: str, value: float):
        super().__init__()
        if isinstance(padding, int):
            padding = [padding for _ in range(count)]
        self.padding = list(padding)
        self.mode = mode
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        if self.mode == "constant":
            return torch.pad(input, self.padding, "constant", self.value)
        return torch.pad(input, self.padding, self.mode)


class ConstantPad1d(_PadNd):
    def __init__(self, padding, value: float):
        super().__init__(padding, 2, "constant", value)


class ConstantPad2d(_PadNd):
    def __init__(self, padding, value: float):
        super().__init__(padding, 4, "constant", value)


class ConstantPad3d(_PadNd):
    def __init__(self, padding, value: float):
        super().__init__(padding, 6, "constant", value)


class ZeroPad1d(_PadNd):
    def __init__(self, padding):
        super().__init__(padding, 2, "constant", 0.0)


class ZeroPad2d(_PadNd):
    def __init__(self, padding):
        super().__init__(padding, 4, "constant", 0.0)


class ZeroPad3d(_PadNd):
    def __init__(self, padding):
        super().__init__(padding, 6, "constant", 0.0)


class ReflectionPad1d(_PadNd):
    def __init__(self, padding):
        super().__init__(padding, 2, "reflect", 0.0)


class ReflectionPad2d(_PadNd):
    def __init__(self, padding):
        super().__init__(padding, 4, "reflect", 0.0)


class ReflectionPad3d(_PadNd):
    def __init__(self, padding):
        super().__init__(padding, 6, "reflect", 0.0)


class ReplicationPad1d(_PadNd):
    def __init__(self, padding):
        super().__init__(padding, 2, "replicate", 0.0)


class ReplicationPad2d(_PadNd):
    def __init__(self, padding):
        super().__init__(padding, 4, "replicate", 0.0)


class ReplicationPad3d(_PadNd):
    def __init__(self, padding):
        super().__init__(padding, 6, "replicate", 0.0)


class CircularPad1d(_PadNd):
    def __init__(self, padding):
        super().__init__(padding, 2, "circular", 0.0)


class CircularPad2d(_PadNd):
    def __init__(self, padding):
        super().__init__(padding, 4, "circular", 0.0)


class Flatten(Module):
    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return torch.flatten(input, self.start_dim, self.end_dim)


class Unflatten(Module):
    def __init__(self, dim: int, unflattened_size):
        super().__init__()
        self.dim = dim
        self.unflattened_size = list(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return torch.unflatten(input, self.dim, self.unflattened_size)


class Upsample(Module):
    def __init__(self, size=None, scale_factor=None, mode: str = "nearest", align_corners: Optional[bool] = None,
                 recompute_scale_factor: Optional[bool] = None):
        super().__init__()
        if isinstance(size, int):
            size = [size]
        self.size = None if size is None else list(size)
        if scale_factor is not None:
            if isinstance(scale_factor, (tuple, list)):
                scale_factor = [float(s) for s in scale_factor]
            else:
                scale_factor = [float(scale_factor)]
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners,
                             self.recompute_scale_factor)


class UpsamplingNearest2d(Upsample):
    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return torch.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return torch.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Module):
    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return torch.channel_shuffle(input, self.groups)


class Unfold(Module):
    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.kernel_size = _pair(kernel_size)
        self.dilation = _pair(dilation)
        self.padding = _pair(padding)
        self.stride = _pair(stride)

    def forward(self, input: Tensor) -> Tensor:
        return torch.im2col(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.output_size = _pair(output_size)
        self.kernel_size = _pair(kernel_size)
        self.dilation = _pair(dilation)
        self.padding = _pair(padding)
        self.stride = _pair(stride)

    def forward(self, input: Tensor) -> Tensor:
        return torch.col2im(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class CosineSimilarity(Module):
    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return torch.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return torch.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


# ---- recurrent ----
class _RNNBase(Module):
    def __init__(self, mode: str, gates: int, input_size: int, hidden_size: int, num_layers: int, bias: bool,
                 batch_first: bool, dropout: float, bidirectional: bool, proj_size: int, dtype):
        super().__init__()
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        directions = 2 if bidirectional else 1
        real_hidden = proj_size if proj_size > 0 else hidden_size
        names = []
        for layer in range(num_layers):
            for direction in range(directions):
                width = input_size if layer == 0 else real_hidden * directions
                suffix = f"l{layer}" + ("_reverse" if direction == 1 else "")
                shapes = [(f"weight_ih_{suffix}", (gates * hidden_size, width)),
                          (f"weight_hh_{suffix}", (gates * hidden_size, real_hidden))]
                if bias:
                    shapes.append((f"bias_ih_{suffix}", (gates * hidden_size,)))
                    shapes.append((f"bias_hh_{suffix}", (gates * hidden_size,)))
                if proj_size > 0:
                    shapes.append((f"weight_hr_{suffix}", (proj_size, hidden_size)))
                for name, shape in shapes:
                    setattr(self, name, Parameter(torch.empty(shape, dtype=dtype)))
                    names.append(name)
        bound = 1.0 / math.sqrt(hidden_size)
        weights = []
        for name in names:
            init.uniform_(getattr(self, name), -bound, bound)
            weights.append(getattr(self, name))
        self._flat_weights = weights

    def flatten_parameters(self) -> None:
        pass

    def _packed_state(self, given: Optional[Tensor], input: PackedSequence, width: int) -> Tensor:
        """The state that a packed sequence starts with, in the order of its rows."""
        if given is None:
            count = self.num_layers * (2 if self.bidirectional else 1)
            return torch.zeros([count, int(input.batch_sizes[0]), width], dtype=input.data.dtype, device=input.data.device)
        return _in_order(given, input.sorted_indices)


def _in_order(state: Tensor, order: Optional[Tensor]) -> Tensor:
    return state if order is None else torch.index_select(state, 1, order)


class LSTM(_RNNBase):
    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
                 device=None, dtype=None):
        super().__init__("LSTM", 4, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         proj_size, dtype)

    def forward(self, input, hx: Optional[Tuple[Tensor, Tensor]] = None):
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        return self._padded(input, hx)

    def _packed(self, input: PackedSequence, hx: Optional[Tuple[Tensor, Tensor]]) -> Tuple[PackedSequence, Tuple[Tensor, Tensor]]:
        width = self.proj_size if self.proj_size > 0 else self.hidden_size
        h = self._packed_state(None if hx is None else hx[0], input, width)
        c = self._packed_state(None if hx is None else hx[1], input, self.hidden_size)
        y, hn, cn = torch.lstm(input.data, input.batch_sizes, [h, c], self._flat_weights, self.bias, self.num_layers,
                               self.dropout, self.training, self.bidirectional)
        order = input.unsorted_indices
        return (PackedSequence(y, input.batch_sizes, input.sorted_indices, order),
                (_in_order(hn, order), _in_order(cn, order)))

    def _padded(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]]) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        x = input if batched else torch.unsqueeze(input, batch_dim)
        if hx is None:
            count = self.num_layers * (2 if self.bidirectional else 1)
            width = self.proj_size if self.proj_size > 0 else self.hidden_size
            h = torch.zeros([count, x.size(batch_dim), width], dtype=x.dtype, device=x.device)
            c = torch.zeros([count, x.size(batch_dim), self.hidden_size], dtype=x.dtype, device=x.device)
        else:
            h = hx[0] if batched else torch.unsqueeze(hx[0], 1)
            c = hx[1] if batched else torch.unsqueeze(hx[1], 1)
        y, hn, cn = torch.lstm(x, [h, c], self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                               self.bidirectional, self.batch_first)
        if not batched:
            y = torch.squeeze(y, batch_dim)
            hn = torch.squeeze(hn, 1)
            cn = torch.squeeze(cn, 1)
        return y, (hn, cn)


class GRU(_RNNBase):
    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device=None,
                 dtype=None):
        super().__init__("GRU", 3, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0,
                         dtype)

    def forward(self, input, hx: Optional[Tensor] = None):
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        return self._padded(input, hx)

    def _packed(self, input: PackedSequence, hx: Optional[Tensor]) -> Tuple[PackedSequence, Tensor]:
        h = self._packed_state(hx, input, self.hidden_size)
        y, hn = torch.gru(input.data, input.batch_sizes, h, self._flat_weights, self.bias, self.num_layers, self.dropout,
                          self.training, self.bidirectional)
        order = input.unsorted_indices
        return PackedSequence(y, input.batch_sizes, input.sorted_indices, order), _in_order(hn, order)

    def _padded(self, input: Tensor, hx: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        x = input if batched else torch.unsqueeze(input, batch_dim)
        if hx is None:
            count = self.num_layers * (2 if self.bidirectional else 1)
            h = torch.zeros([count, x.size(batch_dim), self.hidden_size], dtype=x.dtype, device=x.device)
        else:
            h = hx if batched else torch.unsqueeze(hx, 1)
        y, hn = torch.gru(x, h, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                          self.bidirectional, self.batch_first)
        if not batched:
            y = torch.squeeze(y, batch_dim)
            hn = torch.squeeze(hn, 1)
        return y, hn


class RNN(_RNNBase):
    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
                 bias: bool = True, batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 device=None, dtype=None):
        if nonlinearity != "tanh" and nonlinearity != "relu":
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_TANH" if nonlinearity == "tanh" else "RNN_RELU", 1, input_size, hidden_size, num_layers,
                         bias, batch_first, dropout, bidirectional, 0, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx: Optional[Tensor] = None):
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        return self._padded(input, hx)

    def _packed(self, input: PackedSequence, hx: Optional[Tensor]) -> Tuple[PackedSequence, Tensor]:
        h = self._packed_state(hx, input, self.hidden_size)
        if self.mode == "RNN_TANH":
            y, hn = torch.rnn_tanh(input.data, input.batch_sizes, h, self._flat_weights, self.bias, self.num_layers,
                                   self.dropout, self.training, self.bidirectional)
        else:
            y, hn = torch.rnn_relu(input.data, input.batch_sizes, h, self._flat_weights, self.bias, self.num_layers,
                                   self.dropout, self.training, self.bidirectional)
        order = input.unsorted_indices
        return PackedSequence(y, input.batch_sizes, input.sorted_indices, order), _in_order(hn, order)

    def _padded(self, input: Tensor, hx: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        x = input if batched else torch.unsqueeze(input, batch_dim)
        if hx is None:
            count = self.num_layers * (2 if self.bidirectional else 1)
            h = torch.zeros([count, x.size(batch_dim), self.hidden_size], dtype=x.dtype, device=x.device)
        else:
            h = hx if batched else torch.unsqueeze(hx, 1)
        if self.mode == "RNN_TANH":
            y, hn = torch.rnn_tanh(x, h, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                                   self.bidirectional, self.batch_first)
        else:
            y, hn = torch.rnn_relu(x, h, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                                   self.bidirectional, self.batch_first)
        if not batched:
            y = torch.squeeze(y, batch_dim)
            hn = torch.squeeze(hn, 1)
        return y, hn


class _RNNCellBase(Module):
    def __init__(self, gates: int, input_size: int, hidden_size: int, bias: bool, dtype):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        self.weight_ih = Parameter(torch.empty(gates * hidden_size, input_size, dtype=dtype))
        self.weight_hh = Parameter(torch.empty(gates * hidden_size, hidden_size, dtype=dtype))
        if bias:
            self.bias_ih = Parameter(torch.empty(gates * hidden_size, dtype=dtype))
            self.bias_hh = Parameter(torch.empty(gates * hidden_size, dtype=dtype))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        bound = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0
        init.uniform_(self.weight_ih, -bound, bound)
        init.uniform_(self.weight_hh, -bound, bound)
        if bias:
            init.uniform_(self.bias_ih, -bound, bound)
            init.uniform_(self.bias_hh, -bound, bound)


class LSTMCell(_RNNCellBase):
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(4, input_size, hidden_size, bias, dtype)

    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor]:
        batched = input.dim() == 2
        x = input if batched else torch.unsqueeze(input, 0)
        if hx is None:
            h = torch.zeros([x.size(0), self.hidden_size], dtype=x.dtype, device=x.device)
            c = h
        else:
            h = hx[0] if batched else torch.unsqueeze(hx[0], 0)
            c = hx[1] if batched else torch.unsqueeze(hx[1], 0)
        hn, cn = torch.lstm_cell(x, [h, c], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if not batched:
            hn = torch.squeeze(hn, 0)
            cn = torch.squeeze(cn, 0)
        return hn, cn


class GRUCell(_RNNCellBase):
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(3, input_size, hidden_size, bias, dtype)

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        batched = input.dim() == 2
        x = input if batched else torch.unsqueeze(input, 0)
        if hx is None:
            h = torch.zeros([x.size(0), self.hidden_size], dtype=x.dtype, device=x.device)
        else:
            h = hx if batched else torch.unsqueeze(hx, 0)
        hn = torch.gru_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return hn if batched else torch.squeeze(hn, 0)


class RNNCell(_RNNCellBase):
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device=None,
                 dtype=None):
        super().__init__(1, input_size, hidden_size, bias, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        batched = input.dim() == 2
        x = input if batched else torch.unsqueeze(input, 0)
        if hx is None:
            h = torch.zeros([x.size(0), self.hidden_size], dtype=x.dtype, device=x.device)
        else:
            h = hx if batched else torch.unsqueeze(hx, 0)
        if self.nonlinearity == "tanh":
            hn = torch.rnn_tanh_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        else:
            hn = torch.rnn_relu_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return hn if batched else torch.squeeze(hn, 0)


# ---- attention and transformers ----
class NonDynamicallyQuantizableLinear(Linear):
    def __init__(self, in_features: int, out_features: int, bias: bool = True, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, device, dtype)


class MultiheadAttention(Module):
    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: Optional[int] = None,
                 vdim: Optional[int] = None, batch_first: bool = False, device=None, dtype=None):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead")
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = float(dropout)
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(torch.empty(3 * embed_dim, embed_dim, dtype=dtype))
            self.register_parameter("q_proj_weight", None)
            self.register_parameter("k_proj_weight", None)
            self.register_parameter("v_proj_weight", None)
        else:
            self.q_proj_weight = Parameter(torch.empty(embed_dim, embed_dim, dtype=dtype))
            self.k_proj_weight = Parameter(torch.empty(embed_dim, self.kdim, dtype=dtype))
            self.v_proj_weight = Parameter(torch.empty(embed_dim, self.vdim, dtype=dtype))
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(torch.empty(3 * embed_dim, dtype=dtype))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, None, dtype)
        self.register_parameter("bias_k", Parameter(torch.empty(1, 1, embed_dim, dtype=dtype)) if add_bias_kv else None)
        self.register_parameter("bias_v", Parameter(torch.empty(1, 1, embed_dim, dtype=dtype)) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            init.xavier_uniform_(self.q_proj_weight)
            init.xavier_uniform_(self.k_proj_weight)
            init.xavier_uniform_(self.v_proj_weight)
        if bias:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if add_bias_kv:
            init.xavier_normal_(self.bias_k)
            init.xavier_normal_(self.bias_v)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor] = None,
                need_weights: bool = True, attn_mask: Optional[Tensor] = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
        batched = query.dim() == 3
        q = query
        k = key
        v = value
        padding = key_padding_mask
        if not batched:
            q = torch.unsqueeze(q, 1)
            k = torch.unsqueeze(k, 1)
            v = torch.unsqueeze(v, 1)
            if padding is not None:
                padding = torch.unsqueeze(padding, 0)
        elif self.batch_first:
            q = torch.transpose(q, 0, 1)
            k = torch.transpose(k, 0, 1)
            v = torch.transpose(v, 0, 1)
        out_len, batch, source_len = q.size(0), q.size(1), k.size(0)
        if self.in_proj_weight is not None:
            wq, wk, wv = torch.chunk(self.in_proj_weight, 3, 0)
        else:
            assert self.q_proj_weight is not None and self.k_proj_weight is not None and self.v_proj_weight is not None
            wq, wk, wv = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        if self.in_proj_bias is not None:
            bq, bk, bv = torch.chunk(self.in_proj_bias, 3, 0)
            q, k, v = torch.linear(q, wq, bq), torch.linear(k, wk, bk), torch.linear(v, wv, bv)
        else:
            q, k, v = torch.linear(q, wq), torch.linear(k, wk), torch.linear(v, wv)
        added = 0
        if self.bias_k is not None and self.bias_v is not None:
            k = torch.cat([k, torch.expand(self.bias_k, [1, batch, self.embed_dim])], 0)
            v = torch.cat([v, torch.expand(self.bias_v, [1, batch, self.embed_dim])], 0)
            added += 1
        if self.add_zero_attn:
            k = torch.cat([k, torch.zeros([1, batch, self.embed_dim], dtype=k.dtype)], 0)
            v = torch.cat([v, torch.zeros([1, batch, self.embed_dim], dtype=v.dtype)], 0)
            added += 1
        source_len += added
        q = torch.permute(torch.view(torch.contiguous(q), [out_len, batch, self.num_heads, self.head_dim]), [1, 2, 0, 3])
        k = torch.permute(torch.view(torch.contiguous(k), [source_len, batch, self.num_heads, self.head_dim]), [1, 2, 0, 3])
        v = torch.permute(torch.view(torch.contiguous(v), [source_len, batch, self.num_heads, self.head_dim]), [1, 2, 0, 3])
        mask: Optional[Tensor] = None
        if attn_mask is not None:
            mask = self._float_mask(attn_mask, q)
            if added > 0:
                mask = torch.constant_pad_nd(mask, [0, added], 0.0)
            if attn_mask.dim() == 3:
                mask = torch.view(mask, [batch, self.num_heads, out_len, source_len])
        if padding is not None:
            keys = self._float_mask(padding, q)
            if added > 0:
                keys = torch.constant_pad_nd(keys, [0, added], 0.0)
            keys = torch.view(keys, [batch, 1, 1, source_len])
            if mask is None:
                mask = torch.expand(keys, [batch, self.num_heads, 1, source_len])
            else:
                mask = mask + keys
        if need_weights:
            scores = torch.matmul(q * math.sqrt(1.0 / float(self.head_dim)), torch.transpose(k, -2, -1))
            if mask is not None:
                scores = scores + mask
            weights = torch.softmax(scores, -1)
            if self.dropout > 0.0:
                weights = torch.dropout(weights, self.dropout, self.training)
            mixed = torch.matmul(weights, v)
            out = torch.reshape(torch.permute(mixed, [2, 0, 1, 3]), [out_len * batch, self.embed_dim])
            out = torch.view(torch.linear(out, self.out_proj.weight, self.out_proj.bias), [out_len, batch, self.embed_dim])
            if average_attn_weights:
                weights = torch.mean(weights, [1])
            if not batched:
                return torch.squeeze(out, 1), torch.squeeze(weights, 0)
            if self.batch_first:
                return torch.transpose(out, 0, 1), weights
            return out, weights
        p = self.dropout if self.training else 0.0
        mixed = torch.scaled_dot_product_attention(q, k, v, mask, p, False)
        out = torch.reshape(torch.permute(mixed, [2, 0, 1, 3]), [out_len * batch, self.embed_dim])
        out = torch.view(torch.linear(out, self.out_proj.weight, self.out_proj.bias), [out_len, batch, self.embed_dim])
        if not batched:
            return torch.squeeze(out, 1), None
        if self.batch_first:
            return torch.transpose(out, 0, 1), None
        return out, None

    def _float_mask(self, mask: Tensor, like: Tensor) -> Tensor:
        if mask.dtype == torch.bool:
            return torch.masked_fill(torch.zeros_like(mask, dtype=like.dtype), mask, float("-inf"))
        return mask.to(like.dtype)


class TransformerEncoderLayer(Module):
    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device=None, dtype=None):
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first,
                                            dtype=dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        if activation != "relu" and activation != "gelu":
            raise NotImplementedError("an activation other than 'relu' and 'gelu' is not supported yet")
        self.activation = activation

    def forward(self, src: Tensor, src_mask: Optional[Tensor] = None, src_key_padding_mask: Optional[Tensor] = None,
                is_causal: bool = False) -> Tensor:
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask)
            x = x + self._ff_block(self.norm2(x))
        else:
            x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask))
            x = self.norm2(x + self._ff_block(x))
        return x

    def _sa_block(self, x: Tensor, attn_mask: Optional[Tensor], key_padding_mask: Optional[Tensor]) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, key_padding_mask, False, attn_mask)[0])

    def _ff_block(self, x: Tensor) -> Tensor:
        h = self.linear1(x)
        if self.activation == "gelu":
            h = torch.gelu(h)
        else:
            h = torch.relu(h)
        return self.dropout2(self.linear2(self.dropout(h)))


class TransformerDecoderLayer(Module):
    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device=None, dtype=None):
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first,
                                            dtype=dtype)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first,
                                                 dtype=dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        if activation != "relu" and activation != "gelu":
            raise NotImplementedError("an activation other than 'relu' and 'gelu' is not supported yet")
        self.activation = activation

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Optional[Tensor] = None,
                memory_mask: Optional[Tensor] = None, tgt_key_padding_mask: Optional[Tensor] = None,
                memory_key_padding_mask: Optional[Tensor] = None, tgt_is_causal: bool = False,
                memory_is_causal: bool = False) -> Tensor:
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), tgt_mask, tgt_key_padding_mask)
            x = x + self._mha_block(self.norm2(x), memory, memory_mask, memory_key_padding_mask)
            x = x + self._ff_block(self.norm3(x))
        else:
            x = self.norm1(x + self._sa_block(x, tgt_mask, tgt_key_padding_mask))
            x = self.norm2(x + self._mha_block(x, memory, memory_mask, memory_key_padding_mask))
            x = self.norm3(x + self._ff_block(x))
        return x

    def _sa_block(self, x: Tensor, attn_mask: Optional[Tensor], key_padding_mask: Optional[Tensor]) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, key_padding_mask, False, attn_mask)[0])

    def _mha_block(self, x: Tensor, mem: Tensor, attn_mask: Optional[Tensor],
                   key_padding_mask: Optional[Tensor]) -> Tensor:
        return self.dropout2(self.multihead_attn(x, mem, mem, key_padding_mask, False, attn_mask)[0])

    def _ff_block(self, x: Tensor) -> Tensor:
        h = self.linear1(x)
        if self.activation == "gelu":
            h = torch.gelu(h)
        else:
            h = torch.relu(h)
        return self.dropout3(self.linear2(self.dropout(h)))


# ---- losses ----
class _Loss(Module):
    def __init__(self, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__()
        if size_average is not None or reduce is not None: # what reduction= was before
            if reduce is not None and not reduce:
                reduction = "none"
            else:
                reduction = "sum" if size_average is not None and not size_average else "mean"
        self.reduction = reduction


class CrossEntropyLoss(_Loss):
    def __init__(self, weight=None, size_average=None, ignore_index: int = -100, reduce=None, reduction: str = "mean",
                 label_smoothing: float = 0.0):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(input, target, self.weight, None, self.ignore_index, None, self.reduction,
                               self.label_smoothing)


class NLLLoss(_Loss):
    def __init__(self, weight=None, size_average=None, ignore_index: int = -100, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, self.weight, None, self.ignore_index, None, self.reduction)


class MSELoss(_Loss):
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, None, None, self.reduction)


class L1Loss(_Loss):
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, None, None, self.reduction)


class SmoothL1Loss(_Loss):
    def __init__(self, size_average=None, reduce=None, reduction: str = "mean", beta: float = 1.0):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, None, None, self.reduction, self.beta)


class HuberLoss(_Loss):
    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        super().__init__(None, None, reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, self.reduction, self.delta)


class BCELoss(_Loss):
    def __init__(self, weight=None, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, None, None, self.reduction)


class BCEWithLogitsLoss(_Loss):
    def __init__(self, weight=None, size_average=None, reduce=None, reduction: str = "mean", pos_weight=None):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(input, target, self.weight, None, None, self.reduction,
                                                  self.pos_weight)


class KLDivLoss(_Loss):
    def __init__(self, size_average=None, reduce=None, reduction: str = "mean", log_target: bool = False):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, None, None, self.reduction, self.log_target)


class PoissonNLLLoss(_Loss):
    def __init__(self, log_input: bool = True, full: bool = False, size_average=None, eps: float = 1e-8, reduce=None,
                 reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(log_input, target, self.log_input, self.full, None, self.eps, None, self.reduction)


class GaussianNLLLoss(_Loss):
    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class HingeEmbeddingLoss(_Loss):
    def __init__(self, margin: float = 1.0, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, self.margin, None, None, self.reduction)


class SoftMarginLoss(_Loss):
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, None, None, self.reduction)


class CosineEmbeddingLoss(_Loss):
    def __init__(self, margin: float = 0.0, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, self.margin, None, None, self.reduction)


class MarginRankingLoss(_Loss):
    def __init__(self, margin: float = 0.0, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, self.margin, None, None, self.reduction)


class TripletMarginLoss(_Loss):
    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, size_average=None,
                 reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(anchor, positive, negative, self.margin, self.p, self.eps, self.swap, None, None,
                                     self.reduction)


class MultiLabelMarginLoss(_Loss):
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, None, None, self.reduction)


class MultiLabelSoftMarginLoss(_Loss):
    def __init__(self, weight=None, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, None, None, self.reduction)


class CTCLoss(_Loss):
    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(None, None, reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Union[Tensor, List[int]],
                target_lengths: Union[Tensor, List[int]]) -> Tensor:
        frames = input_lengths if isinstance(input_lengths, Tensor) else torch.tensor(input_lengths)
        lengths = target_lengths if isinstance(target_lengths, Tensor) else torch.tensor(target_lengths)
        return F.ctc_loss(log_probs, targets, frames, lengths, self.blank, self.reduction, self.zero_infinity)


# ---- stacks ----
class TransformerEncoder(Module):
    def __init__(self, encoder_layer, num_layers: int, norm=None, enable_nested_tensor: bool = True,
                 mask_check: bool = True):
        super().__init__()
        self.layers = torch.nn.ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, src: Tensor, mask: Optional[Tensor] = None, src_key_padding_mask: Optional[Tensor] = None,
                is_causal: Optional[bool] = None) -> Tensor:
        output = src
        for layer in self.layers:
            output = layer(output, mask, src_key_padding_mask)
        if self.norm is not None:
            output = self.norm(output)
        return output


class TransformerDecoder(Module):
    def __init__(self, decoder_layer, num_layers: int, norm=None):
        super().__init__()
        self.layers = torch.nn.ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Optional[Tensor] = None,
                memory_mask: Optional[Tensor] = None, tgt_key_padding_mask: Optional[Tensor] = None,
                memory_key_padding_mask: Optional[Tensor] = None) -> Tensor:
        output = tgt
        for layer in self.layers:
            output = layer(output, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        if self.norm is not None:
            output = self.norm(output)
        return output
