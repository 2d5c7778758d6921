# Operators of the registry's quantized namespace: quantized::add is quantized_add here. Values become
# floats, the float operator computes, the result is rounded to the output's scale, as PyTorch's own
# kernels do. Linear layers and convolutions are core operators.
from typing import List, Optional, Tuple

import torch
from torch import Tensor


def _requantize(x: Tensor, like: Tensor, scale: float, zero_point: int) -> Tensor:
    return torch.quantize_per_tensor(x, scale, zero_point, like.dtype)


# Arithmetic rounds to steps of the scale, then adds the zero point.
def _round_to(x: Tensor, like: Tensor, scale: float, zero_point: int) -> Tensor:
    if like.dtype == torch.quint8:
        return torch._make_per_tensor_quantized_tensor(torch._quantize_bytes(x, scale, zero_point, torch.uint8, True),
                                                       scale, zero_point)
    if like.dtype == torch.qint8:
        return torch._make_per_tensor_quantized_tensor(torch._quantize_bytes(x, scale, zero_point, torch.int8, True),
                                                       scale, zero_point)
    return torch.quantize_per_tensor(x, scale, zero_point, like.dtype)


def _requantize_same(x: Tensor, like: Tensor) -> Tensor:
    return torch.quantize_per_tensor(x, torch.q_scale(like), torch.q_zero_point(like), like.dtype)


def quantize_per_tensor__tensor_qparams(self: Tensor, scale: Tensor, zero_point: Tensor, dtype: int) -> Tensor:
    return torch.quantize_per_tensor(self, float(scale), int(zero_point), dtype)


def quantize_per_tensor__tensors(tensors: List[Tensor], scales: Tensor, zero_points: Tensor, dtype: int) -> List[Tensor]:
    result: List[Tensor] = []
    for i in range(len(tensors)):
        result.append(torch.quantize_per_tensor(tensors[i], float(scales[i]), int(zero_points[i]), dtype))
    return result


def dequantize__tensor(qtensor: Tensor) -> Tensor:
    return torch.dequantize(qtensor)


def dequantize__tensors(tensors: List[Tensor]) -> List[Tensor]:
    result: List[Tensor] = []
    for t in tensors:
        result.append(torch.dequantize(t))
    return result


# ---- fake quantization ----
def fake_quantize_per_tensor_affine(self: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int) -> Tensor:
    steps = torch.clamp(torch.round(self * (1.0 / scale) + zero_point), quant_min, quant_max)
    return (steps - zero_point) * scale


def fake_quantize_per_tensor_affine__tensor_qparams(self: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int,
                                                    quant_max: int) -> Tensor:
    steps = torch.clamp(torch.round(self / scale + zero_point), quant_min, quant_max)
    return (steps - zero_point) * scale


def fake_quantize_per_channel_affine(self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int,
                                     quant_max: int) -> Tensor:
    shape: List[int] = []
    for d in range(self.dim()):
        shape.append(self.size(d) if d == axis else 1)
    s = scale.reshape(shape)
    z = zero_point.reshape(shape)
    steps = torch.clamp(torch.round(self * (1.0 / s) + z), quant_min, quant_max)
    return (steps - z) * s


# ---- arithmetic ----
def _values(q: Tensor) -> Tensor:
    if q.dtype == torch.qint32:
        return torch.dequantize(q)
    return torch._dequantize_bytes(torch.int_repr(q), torch.q_scale(q), torch.q_zero_point(q), True)


def quantized_add(qa: Tensor, qb: Tensor, scale: float, zero_point: int) -> Tensor:
    return _round_to(_values(qa) + _values(qb), qa, scale, zero_point)


def quantized_add_relu(qa: Tensor, qb: Tensor, scale: float, zero_point: int) -> Tensor:
    return _round_to(torch.relu(_values(qa) + _values(qb)), qa, scale, zero_point)


# The product of the integers, exact, times one factor made of float32.
def _product(qa: Tensor, qb: Tensor, scale: float, zero_point: int, relu: bool) -> Tensor:
    if qa.dtype == torch.qint32 or qb.dtype != qa.dtype:
        y = torch.dequantize(qa) * torch.dequantize(qb)
        return _requantize(torch.relu(y) if relu else y, qa, scale, zero_point)
    factor = torch.tensor([torch.q_scale(qa)]) * torch.tensor([torch.q_scale(qb)]) * (1.0 / torch.tensor([scale]))
    a = torch.int_repr(qa).to(torch.int32) - torch.q_zero_point(qa)
    b = torch.int_repr(qb).to(torch.int32) - torch.q_zero_point(qb)
    lowest, _ = _limits(qa)
    if relu:
        lowest = max(lowest, zero_point)
    dtype = torch.uint8 if qa.dtype == torch.quint8 else torch.int8
    return torch._make_per_tensor_quantized_tensor(
        torch._requantize(a * b, torch.zeros(1), factor, zero_point, lowest, dtype), scale, zero_point)


def quantized_mul(qa: Tensor, qb: Tensor, scale: float, zero_point: int) -> Tensor:
    return _product(qa, qb, scale, zero_point, False)


def quantized_mul_relu(qa: Tensor, qb: Tensor, scale: float, zero_point: int) -> Tensor:
    return _product(qa, qb, scale, zero_point, True)


def quantized_matmul(qa: Tensor, qb: Tensor, scale: float, zero_point: int) -> Tensor:
    return _requantize(torch.matmul(torch.dequantize(qa), torch.dequantize(qb)), qa, scale, zero_point)


# A number moves the zero point where that stays in range, else the scale.
def _add_number(qa: Tensor, b: float, relu: bool) -> Tensor:
    low, high = _limits(qa)
    scale = torch.q_scale(qa)
    zero_point = torch.q_zero_point(qa)
    shift = int(round(b / scale))
    moved = zero_point - shift
    if low > moved:
        new_scale = (float(high) - float(moved)) / (float(high) - float(low)) * scale
        values = (torch.int_repr(qa) - moved) * (scale / new_scale) + low
        if relu:
            values = torch.clamp_min(values, low)
        return torch._make_per_tensor_quantized_tensor(_integers(values, qa), new_scale, low)
    if high < moved:
        new_scale = (float(moved) - float(low)) / (float(high) - float(low)) * scale
        values = (torch.int_repr(qa) - moved) * (scale / new_scale) + high
        if relu:
            values = torch.clamp_min(values, high)
        return torch._make_per_tensor_quantized_tensor(_integers(values, qa), new_scale, high)
    integers = torch.int_repr(qa)
    if relu:
        integers = torch.clamp_min(integers, moved)
    return torch._make_per_tensor_quantized_tensor(integers, scale, moved)


def _limits(q: Tensor) -> Tuple[int, int]:
    if q.dtype == torch.quint8:
        return 0, 255
    return -128, 127


def _integers(values: Tensor, like: Tensor) -> Tensor:
    low, high = _limits(like)
    rounded = torch.clamp(torch.round(values), low, high)
    if like.dtype == torch.quint8:
        return rounded.to(torch.uint8)
    return rounded.to(torch.int8)


def quantized_add__Scalar(qa: Tensor, b: number) -> Tensor:
    return _add_number(qa, float(b), False)


def quantized_add__Scalar2(b: number, qa: Tensor) -> Tensor:
    return _add_number(qa, float(b), False)


def quantized_add_relu__Scalar(qa: Tensor, b: number) -> Tensor:
    return _add_number(qa, float(b), True)


def quantized_add_scalar(qa: Tensor, b: number) -> Tensor:
    return _add_number(qa, float(b), False)


def quantized_add_scalar__Tensor(qa: Tensor, b: Tensor) -> Tensor:
    return _add_number(qa, float(b), False)


def quantized_add_scalar_relu(qa: Tensor, b: number) -> Tensor:
    return _add_number(qa, float(b), True)


def quantized_add_scalar_relu__Tensor(qa: Tensor, b: Tensor) -> Tensor:
    return _add_number(qa, float(b), True)


# A number scales; a negative one turns the integers round.
def _mul_number(qa: Tensor, b: float, relu: bool) -> Tensor:
    low, high = _limits(qa)
    scale = torch.q_scale(qa)
    zero_point = torch.q_zero_point(qa)
    integers = torch.int_repr(qa)
    if b > 0.0:
        if relu:
            integers = torch.clamp_min(integers, zero_point)
        return torch._make_per_tensor_quantized_tensor(integers, scale * b, zero_point)
    if b == 0.0:
        return torch._make_per_tensor_quantized_tensor(torch.zeros_like(integers), 1.0, 0)
    turned = high - (integers.to(torch.int32) - low)
    moved = high - (zero_point - low)
    if relu:
        turned = torch.clamp_min(turned, moved)
    return torch._make_per_tensor_quantized_tensor(turned.to(integers.dtype), -b * scale, moved)


def quantized_mul__Scalar(qa: Tensor, b: number) -> Tensor:
    return _mul_number(qa, float(b), False)


def quantized_mul__Scalar2(b: number, qa: Tensor) -> Tensor:
    return _mul_number(qa, float(b), False)


def quantized_mul_relu__Scalar(qa: Tensor, b: number) -> Tensor:
    return _mul_number(qa, float(b), True)


def quantized_mul_scalar(qa: Tensor, b: number) -> Tensor:
    return _mul_number(qa, float(b), False)


def quantized_mul_scalar__Tensor(qa: Tensor, b: Tensor) -> Tensor:
    return _mul_number(qa, float(b), False)


def quantized_mul_scalar_relu(qa: Tensor, b: number) -> Tensor:
    return _mul_number(qa, float(b), True)


def quantized_mul_scalar_relu__Tensor(qa: Tensor, b: Tensor) -> Tensor:
    return _mul_number(qa, float(b), True)


def _cat(qx: List[Tensor], dim: int, scale: Optional[float], zero_point: Optional[int], relu: bool) -> Tensor:
    parts: List[Tensor] = []
    for q in qx:
        x = torch.dequantize(q)
        parts.append(torch.relu(x) if relu else x)
    s = torch.q_scale(qx[0])
    z = torch.q_zero_point(qx[0])
    if scale is not None:
        s = scale
    if zero_point is not None:
        z = zero_point
    return _requantize(torch.cat(parts, dim), qx[0], s, z)


def quantized_cat(qx: List[Tensor], dim: int, scale: Optional[float], zero_point: Optional[int]) -> Tensor:
    return _cat(qx, dim, scale, zero_point, False)


def quantized_cat_relu(qx: List[Tensor], dim: int, scale: Optional[float], zero_point: Optional[int]) -> Tensor:
    return _cat(qx, dim, scale, zero_point, True)


# ---- activations ----
def quantized_relu6(qx: Tensor, inplace: bool = False) -> Tensor:
    result = _requantize_same(torch.clamp(torch.dequantize(qx), 0.0, 6.0), qx)
    if inplace:
        return qx.copy_(result)
    return result


def quantized_leaky_relu(qx: Tensor, negative_slope: number, inplace: bool, output_scale: float,
                         output_zero_point: int) -> Tensor:
    return _requantize(torch.nn.functional.leaky_relu(torch.dequantize(qx), float(negative_slope)), qx, output_scale,
                       output_zero_point)


def quantized_hardswish(input: Tensor, output_scale: float, output_zero_point: int) -> Tensor:
    x = torch.dequantize(input)
    return _round_to(x * torch.clamp(x + 3.0, 0.0, 6.0) / 6.0, input, output_scale, output_zero_point)


def quantized_sigmoid(qx: Tensor, output_scale: float, output_zero_point: int) -> Tensor:
    return _requantize(torch.sigmoid(torch.dequantize(qx)), qx, output_scale, output_zero_point)


def quantized_softmax(qx: Tensor, dim: int, output_scale: float, output_zero_point: int) -> Tensor:
    return _requantize(torch.softmax(torch.dequantize(qx), dim), qx, output_scale, output_zero_point)


def quantized_elu(self: Tensor, output_scale: float, output_zero_point: int, alpha: number = 1, scale: number = 1,
                  input_scale: number = 1) -> Tensor:
    return _requantize(torch.elu(torch.dequantize(self), alpha, scale, input_scale), self, output_scale, output_zero_point)


def quantized_celu(self: Tensor, output_scale: float, output_zero_point: int, alpha: number = 1) -> Tensor:
    return _requantize(torch.celu(torch.dequantize(self), alpha), self, output_scale, output_zero_point)


def quantized_prelu(qx: Tensor, weight: Tensor, output_scale: float, output_zero_point: int) -> Tensor:
    return _requantize(torch.prelu(torch.dequantize(qx), torch.dequantize(weight)), qx, output_scale, output_zero_point)


def quantized_threshold(qx: Tensor, threshold: number, value: number) -> Tensor:
    return _requantize_same(torch.threshold(torch.dequantize(qx), threshold, value), qx)


def quantized_clamp(qx: Tensor, min: Optional[number] = None, max: Optional[number] = None) -> Tensor:
    return _requantize_same(torch.clamp(torch.dequantize(qx), min, max), qx)


def quantized_dropout(self: Tensor, output_scale: float, output_zero_point: int, p: number = 0.5,
                      training: bool = False) -> Tensor:
    return _requantize(torch.dropout(torch.dequantize(self), float(p), training), self, output_scale, output_zero_point)


# ---- normalisation and pooling ----
def quantized_layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor], bias: Optional[Tensor],
                         eps: float, output_scale: float, output_zero_point: int) -> Tensor:
    y = torch.layer_norm(torch.dequantize(input), normalized_shape, weight, bias, eps)
    return _requantize(y, input, output_scale, output_zero_point)


def quantized_group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor], bias: Optional[Tensor], eps: float,
                         output_scale: float, output_zero_point: int) -> Tensor:
    y = torch.group_norm(torch.dequantize(input), num_groups, weight, bias, eps)
    return _requantize(y, input, output_scale, output_zero_point)


def quantized_instance_norm(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], eps: float,
                            output_scale: float, output_zero_point: int) -> Tensor:
    y = torch.instance_norm(torch.dequantize(input), weight, bias, None, None, True, 0.1, eps, False)
    return _requantize(y, input, output_scale, output_zero_point)


def _batch_norm(qx: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], mean: Tensor, var: Tensor, eps: float,
                output_scale: float, output_zero_point: int, relu: bool) -> Tensor:
    y = torch.batch_norm(torch.dequantize(qx), weight, bias, mean, var, False, 0.1, eps, False)
    return _requantize(torch.relu(y) if relu else y, qx, output_scale, output_zero_point)


def quantized_batch_norm(qx: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], mean: Tensor, var: Tensor,
                              eps: float, output_scale: float, output_zero_point: int) -> Tensor:
    return _batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point, False)


def quantized_batch_norm_relu(qx: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], mean: Tensor, var: Tensor,
                              eps: float, output_scale: float, output_zero_point: int) -> Tensor:
    return _batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point, True)


def quantized_batch_norm1d(qx: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], mean: Tensor, var: Tensor,
                              eps: float, output_scale: float, output_zero_point: int) -> Tensor:
    return _batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point, False)


def quantized_batch_norm1d_relu(qx: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], mean: Tensor, var: Tensor,
                              eps: float, output_scale: float, output_zero_point: int) -> Tensor:
    return _batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point, True)


def quantized_batch_norm2d(qx: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], mean: Tensor, var: Tensor,
                              eps: float, output_scale: float, output_zero_point: int) -> Tensor:
    return _batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point, False)


def quantized_batch_norm2d_relu(qx: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], mean: Tensor, var: Tensor,
                              eps: float, output_scale: float, output_zero_point: int) -> Tensor:
    return _batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point, True)


def quantized_batch_norm3d(qx: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], mean: Tensor, var: Tensor,
                              eps: float, output_scale: float, output_zero_point: int) -> Tensor:
    return _batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point, False)


def quantized_batch_norm3d_relu(qx: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], mean: Tensor, var: Tensor,
                              eps: float, output_scale: float, output_zero_point: int) -> Tensor:
    return _batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point, True)


def quantized_max_pool1d(qx: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int],
                         ceil_mode: bool) -> Tensor:
    return _requantize_same(torch.max_pool1d(torch.dequantize(qx), kernel_size, stride, padding, dilation, ceil_mode), qx)


def quantized_max_pool2d(qx: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int],
                         ceil_mode: bool) -> Tensor:
    return _requantize_same(torch.max_pool2d(torch.dequantize(qx), kernel_size, stride, padding, dilation, ceil_mode), qx)


# ---- fused layers ----
def quantized_linear_leaky_relu(X: Tensor, W_prepack: Capsule, Y_scale_i: float, Y_zero_point_i: int,
                                negative_slope: float) -> Tensor:
    y = _linear_floats(X, W_prepack)
    return _requantize(torch.nn.functional.leaky_relu(y, negative_slope), X, Y_scale_i, Y_zero_point_i)


def quantized_linear_tanh(X: Tensor, W_prepack: Capsule, Y_scale_i: float, Y_zero_point_i: int) -> Tensor:
    return _requantize(torch.tanh(_linear_floats(X, W_prepack)), X, Y_scale_i, Y_zero_point_i)


def _linear_floats(x: Tensor, packed: Capsule) -> Tensor:
    w, b = torch.quantized_linear_unpack(packed)
    return torch.linear(torch.dequantize(x), torch.dequantize(w), b)


def quantized_linear_relu_dynamic_fp16(X: Tensor, W_prepack: Capsule) -> Tensor:
    return torch.relu(torch.quantized_linear_dynamic_fp16(X, W_prepack))


def quantized_linear_dynamic_fp16_unpacked_weight(X: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    return torch.linear(X, weight.to(torch.float16).to(torch.float32), bias)


def quantized_linear_with_input_q_dq_qweight_dq_output_fp32(X: Tensor, X_scale: float, X_zero_point: int,
                                                            W_prepack: Capsule) -> Tensor:
    return _linear_floats(torch.quantize_per_tensor(X, X_scale, X_zero_point, torch.quint8), W_prepack)


def quantized_linear_with_input_q_dq_qweight_dq_relu_output_fp32(X: Tensor, X_scale: float, X_zero_point: int,
                                                                 W_prepack: Capsule) -> Tensor:
    return torch.relu(_linear_floats(torch.quantize_per_tensor(X, X_scale, X_zero_point, torch.quint8), W_prepack))


def _conv_add(qx: Tensor, qaccum: Tensor, packed: Capsule, scale: float, zero_point: int, relu: bool) -> Tensor:
    w, b = torch.quantized_conv2d_unpack(packed)
    y = torch.conv2d(torch.dequantize(qx), torch.dequantize(w), b, torch._packed_ints(packed, "conv", 3),
                     torch._packed_ints(packed, "conv", 4), torch._packed_ints(packed, "conv", 5),
                     torch._packed_int(packed, "conv", 6))
    y = y + torch.dequantize(qaccum)
    return _requantize(torch.relu(y) if relu else y, qx, scale, zero_point)


def quantized_conv2d_add(qx: Tensor, qaccum: Tensor, packed_weight: Capsule, output_scale: float,
                         output_zero_point: int) -> Tensor:
    return _conv_add(qx, qaccum, packed_weight, output_scale, output_zero_point, False)


def quantized_conv2d_add_relu(qx: Tensor, qaccum: Tensor, packed_weight: Capsule, output_scale: float,
                              output_zero_point: int) -> Tensor:
    return _conv_add(qx, qaccum, packed_weight, output_scale, output_zero_point, True)


# ---- what a packed convolution says of itself ----
def quantized_conv2d_stride(packed_weights: Capsule) -> List[int]:
    return torch._packed_ints(packed_weights, "conv", 3)


def quantized_conv2d_padding(packed_weights: Capsule) -> List[int]:
    return torch._packed_ints(packed_weights, "conv", 4)


def quantized_conv2d_dilation(packed_weights: Capsule) -> List[int]:
    return torch._packed_ints(packed_weights, "conv", 5)


def quantized_conv2d_groups(packed_weights: Capsule) -> int:
    return torch._packed_int(packed_weights, "conv", 6)


def quantized_conv2d_transpose(packed_weights: Capsule) -> int:
    return torch._packed_int(packed_weights, "conv", 7)


def quantized_conv3d_stride(packed_weights: Capsule) -> List[int]:
    return torch._packed_ints(packed_weights, "conv", 3)


def quantized_conv3d_padding(packed_weights: Capsule) -> List[int]:
    return torch._packed_ints(packed_weights, "conv", 4)


def quantized_conv3d_dilation(packed_weights: Capsule) -> List[int]:
    return torch._packed_ints(packed_weights, "conv", 5)


def quantized_conv3d_groups(packed_weights: Capsule) -> int:
    return torch._packed_int(packed_weights, "conv", 6)


def quantized_conv3d_transpose(packed_weights: Capsule) -> int:
    return torch._packed_int(packed_weights, "conv", 7)


def quantized_conv_transpose2d_stride(packed_weights: Capsule) -> List[int]:
    return torch._packed_ints(packed_weights, "conv", 3)


def quantized_conv_transpose2d_padding(packed_weights: Capsule) -> List[int]:
    return torch._packed_ints(packed_weights, "conv", 4)


def quantized_conv_transpose2d_dilation(packed_weights: Capsule) -> List[int]:
    return torch._packed_ints(packed_weights, "conv", 5)


def quantized_conv_transpose2d_groups(packed_weights: Capsule) -> int:
    return torch._packed_int(packed_weights, "conv", 6)


def quantized_conv_transpose2d_transpose(packed_weights: Capsule) -> int:
    return torch._packed_int(packed_weights, "conv", 7)


def quantized_conv_transpose3d_stride(packed_weights: Capsule) -> List[int]:
    return torch._packed_ints(packed_weights, "conv", 3)


def quantized_conv_transpose3d_padding(packed_weights: Capsule) -> List[int]:
    return torch._packed_ints(packed_weights, "conv", 4)


def quantized_conv_transpose3d_dilation(packed_weights: Capsule) -> List[int]:
    return torch._packed_ints(packed_weights, "conv", 5)


def quantized_conv_transpose3d_groups(packed_weights: Capsule) -> int:
    return torch._packed_int(packed_weights, "conv", 6)


def quantized_conv_transpose3d_transpose(packed_weights: Capsule) -> int:
    return torch._packed_int(packed_weights, "conv", 7)


# ---- embeddings ----
def quantized_embedding_byte(weight: Capsule, indices: Tensor, pruned_weights: bool = False) -> Tensor:
    return torch.embedding(torch.dequantize(torch.quantized_embedding_bag_unpack(weight)), indices)


def quantized_embedding_4bit(weight: Capsule, indices: Tensor, pruned_weights: bool = False) -> Tensor:
    return torch.embedding(_table_4bit(weight), indices)


# Tables of 4 bits keep scale and smallest value in half precision.
def _table_4bit(packed: Capsule) -> Tensor:
    w = torch.quantized_embedding_bag_unpack(packed)
    scales = torch.q_per_channel_scales(w).to(torch.float32)
    low = (-torch.q_per_channel_zero_points(w) * scales).to(torch.float16).to(torch.float32)
    return torch.int_repr(w) * scales.to(torch.float16).to(torch.float32).unsqueeze(1) + low.unsqueeze(1)


def _bags(weight: Tensor, indices: Tensor, offsets: Optional[Tensor], per_sample_weights: Optional[Tensor],
                   include_last_offset: bool) -> Tensor:
    flat = indices
    starts = offsets
    if indices.dim() == 2:
        flat = indices.reshape(-1)
        starts = torch.arange(0, flat.numel(), indices.size(1))
    if starts is None:
        raise RuntimeError("embedding_bag expects offsets to be set for 1D indices.")
    weights = per_sample_weights
    if weights is not None:
        weights = weights.reshape(-1)
    result, _, _, _ = torch.embedding_bag(weight, flat.to(torch.int64), starts.to(torch.int64), False, 0, False, weights,
                                          include_last_offset)
    return result


def quantized_embedding_bag_byte(weight: Capsule, indices: Tensor, offsets: Optional[Tensor] = None,
                                 scale_grad_by_freq: bool = False, mode: int = 0, pruned_weights: bool = False,
                                 per_sample_weights: Optional[Tensor] = None,
                                 compressed_indices_mapping: Optional[Tensor] = None,
                                 include_last_offset: bool = False) -> Tensor:
    table = torch.dequantize(torch.quantized_embedding_bag_unpack(weight))
    return _bags(table, indices, offsets, per_sample_weights, include_last_offset)


def quantized_embedding_bag_4bit(weight: Capsule, indices: Tensor, offsets: Optional[Tensor] = None,
                                 scale_grad_by_freq: bool = False, mode: int = 0, pruned_weights: bool = False,
                                 per_sample_weights: Optional[Tensor] = None,
                                 compressed_indices_mapping: Optional[Tensor] = None,
                                 include_last_offset: bool = False) -> Tensor:
    return _bags(_table_4bit(weight), indices, offsets, per_sample_weights, include_last_offset)


# Rows of bytes, then the row's scale and smallest value as two float32.
def quantized_embedding_bag_byte_unpack(weight: Tensor) -> Tensor:
    width = weight.size(-1) - 8
    ends = weight.narrow(-1, width, 8).contiguous().view(torch.float32)
    return weight.narrow(-1, 0, width).to(torch.float32) * ends.narrow(-1, 0, 1) + ends.narrow(-1, 1, 1)


def quantized_embedding_bag_byte_prepack(weight: Tensor) -> Tensor:
    low = torch.amin(weight, [-1], True)
    span = torch.amax(weight, [-1], True) - low
    steps = torch.round((weight - low) * (255.0 / (span + 1e-8))).to(torch.uint8)
    ends = torch.cat([span / 255.0, low], -1).contiguous().view(torch.uint8)
    return torch.cat([steps, ends], -1)


# Two steps of 4 bits a byte, then scale and smallest value as two float16.
def quantized_embedding_bag_4bit_unpack(weight: Tensor) -> Tensor:
    width = weight.size(-1) - 4
    ends = weight.narrow(-1, width, 4).contiguous().view(torch.float16).to(torch.float32)
    bytes = weight.narrow(-1, 0, width)
    steps = torch.stack([bytes & 15, bytes >> 4], -1).flatten(-2)
    return steps.to(torch.float32) * ends.narrow(-1, 0, 1) + ends.narrow(-1, 1, 1)


def quantized_embedding_bag_byte_rowwise_offsets(weight: Tensor, indices: Tensor, offsets: Optional[Tensor] = None,
                                                 scale_grad_by_freq: bool = False, mode: int = 0,
                                                 pruned_weights: bool = False,
                                                 per_sample_weights: Optional[Tensor] = None,
                                                 compressed_indices_mapping: Optional[Tensor] = None,
                                                 include_last_offset: bool = False) -> Tensor:
    table = quantized_embedding_bag_byte_unpack(weight)
    return _bags(table, indices, offsets, per_sample_weights, include_last_offset)


def quantized_embedding_bag_4bit_rowwise_offsets(weight: Tensor, indices: Tensor, offsets: Optional[Tensor] = None,
                                                 scale_grad_by_freq: bool = False, mode: int = 0,
                                                 pruned_weights: bool = False,
                                                 per_sample_weights: Optional[Tensor] = None,
                                                 compressed_indices_mapping: Optional[Tensor] = None,
                                                 include_last_offset: bool = False) -> Tensor:
    table = quantized_embedding_bag_4bit_unpack(weight)
    return _bags(table, indices, offsets, per_sample_weights, include_last_offset)


# ---- recurrent layers ----
# One direction of one layer over packed rows: the first sizes[t] rows of the state move at step t.
# kind: 0 LSTM, 1 GRU. The input's gates are made for all steps at once, so one scale serves them.
def _quantized_walk(data: Tensor, sizes: List[int], cell: Capsule, h: Tensor, c: Tensor, kind: int,
                    reverse: bool) -> Tuple[Tensor, Tensor, Tensor]:
    gates = torch._quantized_cell(data, cell, False)
    outputs: List[Tensor] = []
    start = 0
    if reverse:
        start = data.size(0)
    for n in range(len(sizes)):
        rows = sizes[n]
        if reverse:
            rows = sizes[len(sizes) - 1 - n]
            start -= rows
        i = gates.narrow(0, start, rows)
        if not reverse:
            start += rows
        g = torch._quantized_cell(h.narrow(0, 0, rows), cell, True)
        old = h.narrow(0, 0, rows)
        new = old
        if kind == 0:
            both = (g + i).chunk(4, 1)
            moved = torch.sigmoid(both[1]) * c.narrow(0, 0, rows) + torch.sigmoid(both[0]) * torch.tanh(both[2])
            new = torch.sigmoid(both[3]) * torch.tanh(moved)
            c = torch.cat([moved, c.narrow(0, rows, c.size(0) - rows)])
        else:
            a = i.chunk(3, 1)
            b = g.chunk(3, 1)
            reset = torch.sigmoid(b[0] + a[0])
            update = torch.sigmoid(b[1] + a[1])
            fresh = torch.tanh(a[2] + b[2] * reset)
            new = (old - fresh) * update + fresh
        h = torch.cat([new, h.narrow(0, rows, h.size(0) - rows)])
        outputs.append(new)
    if reverse:
        outputs.reverse()
    return torch.cat(outputs), h, c


def _quantized_layers(data: Tensor, sizes: List[int], h0: Tensor, c0: Tensor, params: List[Capsule], num_layers: int,
                      dropout: float, train: bool, bidirectional: bool, kind: int) -> Tuple[Tensor, Tensor, Tensor]:
    directions = 2 if bidirectional else 1
    if len(params) != num_layers * directions:
        raise RuntimeError("expected packed parameters for each layer and direction")
    hs: List[Tensor] = []
    cs: List[Tensor] = []
    x = data
    for layer in range(num_layers):
        at = layer * directions
        y, h, c = _quantized_walk(x, sizes, params[at], h0[at], c0[at], kind, False)
        hs.append(h)
        cs.append(c)
        if bidirectional:
            back, h, c = _quantized_walk(x, sizes, params[at + 1], h0[at + 1], c0[at + 1], kind, True)
            hs.append(h)
            cs.append(c)
            y = torch.cat([y, back], 1)
        x = y
        if dropout != 0.0 and train and layer < num_layers - 1:
            x = torch.dropout(x, dropout, True)
    return x, torch.stack(hs), torch.stack(cs)


# The same where all rows move at every step: x is [steps, rows, features].
def _quantized_steps(x: Tensor, cell: Capsule, h: Tensor, c: Tensor, kind: int,
                     reverse: bool) -> Tuple[Tensor, Tensor, Tensor]:
    steps = x.size(0)
    gates = torch._quantized_cell(x, cell, False)
    outputs: List[Tensor] = []
    for n in range(steps):
        i = gates[steps - 1 - n if reverse else n]
        g = torch._quantized_cell(h, cell, True)
        if kind == 0:
            both = g + i
            a, b, m, o = both.chunk(4, 1)
            c = torch.sigmoid(b) * c + torch.sigmoid(a) * torch.tanh(m)
            h = torch.sigmoid(o) * torch.tanh(c)
        else:
            i0, i1, i2 = i.chunk(3, 1)
            g0, g1, g2 = g.chunk(3, 1)
            update = torch.sigmoid(g1 + i1)
            fresh = torch.tanh(i2 + g2 * torch.sigmoid(g0 + i0))
            h = (h - fresh) * update + fresh
        outputs.append(h)
    if reverse:
        outputs.reverse()
    return torch.stack(outputs), h, c


def _quantized_stack(input: Tensor, h0: Tensor, c0: Tensor, params: List[Capsule], num_layers: int, dropout: float,
                     train: bool, bidirectional: bool, batch_first: bool, kind: int) -> Tuple[Tensor, Tensor, Tensor]:
    directions = 2 if bidirectional else 1
    if len(params) != num_layers * directions:
        raise RuntimeError("expected packed parameters for each layer and direction")
    hs: List[Tensor] = []
    cs: List[Tensor] = []
    x = input.transpose(0, 1) if batch_first else input
    for layer in range(num_layers):
        at = layer * directions
        y, h, c = _quantized_steps(x, params[at], h0[at], c0[at], kind, False)
        hs.append(h)
        cs.append(c)
        if bidirectional:
            back, h, c = _quantized_steps(x, params[at + 1], h0[at + 1], c0[at + 1], kind, True)
            hs.append(h)
            cs.append(c)
            y = torch.cat([y, back], 2)
        x = y
        if dropout != 0.0 and train and layer < num_layers - 1:
            x = torch.dropout(x, dropout, True)
    return x.transpose(0, 1) if batch_first else x, torch.stack(hs), torch.stack(cs)


def quantized_lstm__input(input: Tensor, hx: List[Tensor], params: List[Capsule], has_biases: bool, num_layers: int,
                          dropout: float, train: bool, bidirectional: bool, batch_first: bool, *,
                          dtype: Optional[int] = None, use_dynamic: bool = False) -> Tuple[Tensor, Tensor, Tensor]:
    return _quantized_stack(input, hx[0], hx[1], params, num_layers, dropout, train, bidirectional, batch_first, 0)


def quantized_lstm__data(data: Tensor, batch_sizes: Tensor, hx: List[Tensor], params: List[Capsule], has_biases: bool,
                         num_layers: int, dropout: float, train: bool, bidirectional: bool, *,
                         dtype: Optional[int] = None, use_dynamic: bool = False) -> Tuple[Tensor, Tensor, Tensor]:
    sizes: List[int] = batch_sizes.tolist()
    return _quantized_layers(data, sizes, hx[0], hx[1], params, num_layers, dropout, train, bidirectional, 0)


def quantized_gru__input(input: Tensor, hx: Tensor, params: List[Capsule], has_biases: bool, num_layers: int,
                         dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor]:
    y, h, _ = _quantized_stack(input, hx, hx, params, num_layers, dropout, train, bidirectional, batch_first, 1)
    return y, h


def quantized_gru__data(data: Tensor, batch_sizes: Tensor, hx: Tensor, params: List[Capsule], has_biases: bool,
                        num_layers: int, dropout: float, train: bool, bidirectional: bool) -> Tuple[Tensor, Tensor]:
    sizes: List[int] = batch_sizes.tolist()
    y, h, _ = _quantized_layers(data, sizes, hx, hx, params, num_layers, dropout, train, bidirectional, 1)
    return y, h


def quantized_quantized_lstm_cell_dynamic(input: Tensor, hx: List[Tensor], w_ih: Capsule, w_hh: Capsule, bias_ih: Tensor,
                                          bias_hh: Tensor) -> Tuple[Tensor, Tensor]:
    gates = torch.quantized_linear_dynamic(input, w_ih, True) + torch.quantized_linear_dynamic(hx[0], w_hh, True)
    a = gates.chunk(4, 1)
    c = torch.sigmoid(a[1]) * hx[1] + torch.sigmoid(a[0]) * torch.tanh(a[2])
    return torch.sigmoid(a[3]) * torch.tanh(c), c


def quantized_quantized_gru_cell_dynamic(input: Tensor, hx: Tensor, w_ih: Capsule, w_hh: Capsule, b_ih: Tensor,
                                         b_hh: Tensor) -> Tensor:
    a = torch.quantized_linear_dynamic(input, w_ih, True).chunk(3, 1)
    b = torch.quantized_linear_dynamic(hx, w_hh, True).chunk(3, 1)
    reset = torch.sigmoid(b[0] + a[0])
    update = torch.sigmoid(b[1] + a[1])
    fresh = torch.tanh(a[2] + b[2] * reset)
    return (hx - fresh) * update + fresh


def quantized_quantized_rnn_tanh_cell_dynamic(input: Tensor, hx: Tensor, w_ih: Capsule, w_hh: Capsule, b_ih: Tensor,
                                              b_hh: Tensor) -> Tensor:
    gates = torch.quantized_linear_dynamic(input, w_ih, True) + torch.quantized_linear_dynamic(hx, w_hh, True)
    return torch.tanh(gates)


def quantized_quantized_rnn_relu_cell_dynamic(input: Tensor, hx: Tensor, w_ih: Capsule, w_hh: Capsule, b_ih: Tensor,
                                              b_hh: Tensor) -> Tensor:
    gates = torch.quantized_linear_dynamic(input, w_ih, True) + torch.quantized_linear_dynamic(hx, w_hh, True)
    return torch.relu(gates)
