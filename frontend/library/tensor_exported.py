# Operators that only exported programs (torch.export) name: what PyTorch's own decompositions and
# functionalisation leave behind.
from typing import List, Optional, Tuple

import torch
from torch import Tensor


def _native_batch_norm_legit_functional(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor],
                                        running_mean: Tensor, running_var: Tensor, training: bool, momentum: float,
                                        eps: float) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    mean = torch.clone(running_mean)
    var = torch.clone(running_var)
    y = torch.batch_norm(input, weight, bias, mean, var, training, momentum, eps, False)
    if not training:
        empty = torch.empty([0], dtype=input.dtype)
        return y, empty, empty, mean, var
    dims: List[int] = [0]
    for d in range(2, input.dim()):
        dims.append(d)
    v, m = torch.var_mean(input, dims, unbiased=False)
    return y, m, torch.rsqrt(v + eps), mean, var


def _batch_norm_with_update_functional(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Tensor,
                                       running_var: Tensor, momentum: float,
                                       eps: float) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    mean = torch.clone(running_mean)
    var = torch.clone(running_var)
    y, m, v, reserve = torch._batch_norm_with_update(input, weight, bias, mean, var, momentum, eps)
    return y, m, v, reserve, mean, var


def rrelu_with_noise_functional(self: Tensor, noise: Tensor, lower: number = 0.125, upper: number = 0.3333333333333333,
                                training: bool = False,
                                generator: Optional[Generator] = None) -> Tuple[Tensor, Tensor]:
    drawn = torch.clone(noise)
    y = torch.rrelu_with_noise(self, drawn, lower, upper, training)
    return y, drawn


# ---- draws; `from` is no name here, and graphs give it by its place ----
def uniform(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Optional[Generator] = None) -> Tensor:
    return torch.uniform_(torch.clone(self), from_, to, generator=generator)


def log_normal(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Optional[Generator] = None) -> Tensor:
    return torch.log_normal_(torch.clone(self), mean, std, generator=generator)


def cauchy(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Optional[Generator] = None) -> Tensor:
    return torch.cauchy_(torch.clone(self), median, sigma, generator=generator)


def geometric(self: Tensor, p: float, *, generator: Optional[Generator] = None) -> Tensor:
    return torch.geometric_(torch.clone(self), p, generator=generator)


def exponential(self: Tensor, lambd: float = 1.0, *, generator: Optional[Generator] = None) -> Tensor:
    return torch.exponential_(torch.clone(self), lambd, generator=generator)


def random(self: Tensor, *, generator: Optional[Generator] = None) -> Tensor:
    return torch.random_(torch.clone(self), generator=generator)


def random__to(self: Tensor, to: int, *, generator: Optional[Generator] = None) -> Tensor:
    return torch.random_(torch.clone(self), to, generator=generator)


def random__from(self: Tensor, from_: int, to: Optional[int], *, generator: Optional[Generator] = None) -> Tensor:
    return torch.random_(torch.clone(self), from_, to, generator=generator)


# ---- attention as programs exported for a GPU have it; seeds and lengths only serve derivatives ----
def _scaled_dot_product_flash_attention(query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0,
                                        is_causal: bool = False, return_debug_mask: bool = False, *,
                                        scale: Optional[float] = None
                                        ) -> Tuple[Tensor, Tensor, Tensor, Tensor, int, int, Tensor, Tensor, Tensor]:
    y, total = torch._scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal, scale=scale)
    empty = torch.empty([0], dtype=torch.int64)
    return y, total, empty, empty, query.size(-2), key.size(-2), empty, empty, torch.empty([0], dtype=query.dtype)


def _scaled_dot_product_efficient_attention(query: Tensor, key: Tensor, value: Tensor, attn_bias: Optional[Tensor],
                                            compute_log_sumexp: bool, dropout_p: float = 0.0, is_causal: bool = False, *,
                                            scale: Optional[float] = None) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    y, total = torch._scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal,
                                                                 attn_mask=attn_bias, scale=scale)
    empty = torch.empty([0], dtype=torch.int64)
    return y, total, empty, empty


def _scaled_dot_product_cudnn_attention(query: Tensor, key: Tensor, value: Tensor, attn_bias: Optional[Tensor],
                                        compute_log_sumexp: bool, dropout_p: float = 0.0, is_causal: bool = False,
                                        return_debug_mask: bool = False, *, scale: Optional[float] = None
                                        ) -> Tuple[Tensor, Tensor, Tensor, Tensor, int, int, Tensor, Tensor, Tensor]:
    y, total = torch._scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal,
                                                                 attn_mask=attn_bias, scale=scale)
    empty = torch.empty([0], dtype=torch.int64)
    return y, total, empty, empty, query.size(-2), key.size(-2), empty, empty, torch.empty([0], dtype=query.dtype)


# ---- checks ----
def _make_dep_token(*, dtype: Optional[int] = None, layout: Optional[int] = None, device: Optional[torch.device] = None,
                    pin_memory: Optional[bool] = None, memory_format: Optional[int] = None) -> Tensor:
    return torch.zeros([])


def _functional_assert_async__msg(self: Tensor, assert_msg: str, dep_token: Tensor) -> Tensor:
    torch._assert_async(self, assert_msg)
    return dep_token


def _functional_assert_scalar(self: number, assert_msg: str, dep_token: Tensor) -> Tensor:
    if not bool(self):
        raise RuntimeError(assert_msg)
    return dep_token


def _functional_sym_constrain_range(size: number, min: Optional[int], max: Optional[int], dep_token: Tensor) -> Tensor:
    return dep_token


def _functional_sym_constrain_range_for_size(size: number, min: Optional[int], max: Optional[int],
                                             dep_token: Tensor) -> Tensor:
    return dep_token


def _linalg_check_errors(infos: Tensor, api_name: str, *, is_matrix: bool) -> None:
    if not bool(torch.any(infos != 0)):
        return
    flat = torch.flatten(infos)
    first = int(torch.argmax(torch.to(flat != 0, torch.int64)))
    info = int(flat[first])
    name = api_name if is_matrix else api_name + ": (Batch element " + str(first) + ")"
    if "inv" in api_name:
        raise torch.linalg.LinAlgError(name + ": The diagonal element " + str(info) + " is zero, the inversion could not be "
                                       "completed because the input matrix is singular.")
    if "solve" in api_name:
        raise torch.linalg.LinAlgError(name + ": The solver failed because the input matrix is singular.")
    if "cholesky" in api_name:
        raise torch.linalg.LinAlgError(name + ": The factorization could not be completed because the input is not "
                                       "positive-definite (the leading minor of order " + str(info) +
                                       " is not positive-definite).")
    if "lu_factor" in api_name:
        raise RuntimeError(name + ": U[" + str(info) + "," + str(info) + "] is zero and using it on lu_solve "
                           "would result in a division by zero. If you still want to perform the factorization, "
                           "consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)")
    many = "singular values" if "svd" in api_name else "eigenvalues"
    raise torch.linalg.LinAlgError(name + ": The algorithm failed to converge because the input matrix is ill-conditioned or "
                                   "has too many repeated " + many + " (error code: " + str(info) + ").")


# ---- primitives ----
def prims_convert_element_type(a: Tensor, dtype: int) -> Tensor:
    return a.to(dtype)


def prims_iota(length: int, *, start: int, step: int, dtype: int, device: torch.device, requires_grad: bool) -> Tensor:
    return torch.arange(start, start + length * step, step, dtype=dtype)


def prims_view_of(a: Tensor) -> Tensor:
    return a


def prims_broadcast_in_dim(a: Tensor, shape: List[int], broadcast_dimensions: List[int]) -> Tensor:
    sizes: List[int] = []
    for d in range(len(shape)):
        sizes.append(1)
    for i in range(len(broadcast_dimensions)):
        sizes[broadcast_dimensions[i]] = a.size(i)
    return a.reshape(sizes).expand(shape)


def prims_transpose(a: Tensor, permutation: List[int]) -> Tensor:
    return a.permute(permutation)


def prims_squeeze(a: Tensor, dimensions: List[int]) -> Tensor:
    return torch.squeeze(a, dimensions)


def prims_div(self: Tensor, other: Tensor) -> Tensor:
    return torch.div(self, other)


def prims_fma(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return a * b + c


def prims_sum(inp: Tensor, dims: Optional[List[int]], correction: Optional[float] = 1, *,
              output_dtype: Optional[int] = None) -> Tensor:
    if dims is None:
        return torch.sum(inp, dtype=output_dtype)
    return torch.sum(inp, dims, dtype=output_dtype)


def prims_var(inp: Tensor, dims: Optional[List[int]], correction: Optional[number] = 1, *,
              output_dtype: Optional[int] = None) -> Tensor:
    return torch.var(inp, dims, correction=correction)


def prims_amax(inp: Tensor, dims: Optional[List[int]], *, output_dtype: Optional[int] = None) -> Tensor:
    if dims is None:
        return torch.amax(inp)
    return torch.amax(inp, dims)


# ---- quantization as exported programs have it: plain integers, scales as arguments ----
def _as_float32(x: Tensor) -> Tensor:
    return x.to(torch.float32) if x.dtype == torch.float16 or x.dtype == torch.bfloat16 else x


def _to_steps(x: Tensor, low: int, high: int, dtype: int) -> Tensor:
    return torch.clamp(x, low, high).to(dtype)


def quantized_decomposed_quantize_per_tensor(input: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int,
                                             dtype: int) -> Tensor:
    return _to_steps(torch.round(_as_float32(input) * (1.0 / scale)) + zero_point, quant_min, quant_max, dtype)


def quantized_decomposed_quantize_per_tensor__tensor(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int,
                                                     quant_max: int, dtype: int) -> Tensor:
    return quantized_decomposed_quantize_per_tensor(input, float(scale), int(zero_point), quant_min, quant_max, dtype)


def quantized_decomposed_quantize_per_tensor__tensor2(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: Tensor,
                                                      quant_max: Tensor, dtype: int) -> Tensor:
    return quantized_decomposed_quantize_per_tensor(input, float(scale), int(zero_point), int(quant_min), int(quant_max),
                                                    dtype)


def quantized_decomposed_dequantize_per_tensor(input: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int,
                                               dtype: int, *, out_dtype: Optional[int] = None) -> Tensor:
    return (input.to(torch.float32 if out_dtype is None else out_dtype) - zero_point) * scale


def quantized_decomposed_dequantize_per_tensor__tensor(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int,
                                                       quant_max: int, dtype: int, *,
                                                       out_dtype: Optional[int] = None) -> Tensor:
    return quantized_decomposed_dequantize_per_tensor(input, float(scale), int(zero_point), 0, 0, dtype, out_dtype=out_dtype)


def quantized_decomposed_dequantize_per_tensor__tensor2(input: Tensor, scale: Tensor, zero_point: Tensor,
                                                        quant_min: Tensor, quant_max: Tensor, dtype: int, *,
                                                        out_dtype: Optional[int] = None) -> Tensor:
    return quantized_decomposed_dequantize_per_tensor(input, float(scale), int(zero_point), 0, 0, dtype, out_dtype=out_dtype)


def _by_channel(values: Tensor, axis: int, rank: int) -> Tensor:
    shape: List[int] = []
    for d in range(rank):
        shape.append(values.size(0) if d == axis % rank else 1)
    return values.reshape(shape)


def quantized_decomposed_quantize_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int,
                                              quant_max: int, dtype: int) -> Tensor:
    s = _by_channel(scales, axis, input.dim())
    z = _by_channel(zero_points, axis, input.dim())
    return _to_steps(torch.round(_as_float32(input) * (1.0 / s)) + z, quant_min, quant_max, dtype)


def quantized_decomposed_dequantize_per_channel(input: Tensor, scales: Tensor, zero_points: Optional[Tensor], axis: int,
                                                quant_min: int, quant_max: int, dtype: int, *,
                                                out_dtype: Optional[int] = None) -> Tensor:
    x = input
    if zero_points is not None:
        x = x - _by_channel(zero_points, axis, input.dim())
    x = x * _by_channel(scales, axis, input.dim())
    return x.to(torch.float32 if out_dtype is None else out_dtype)


def _range_of(input: Tensor) -> Tuple[Tensor, Tensor]:
    low, high = torch.aminmax(input)
    return torch.clamp_max(low, 0.0), torch.clamp_min(high, 0.0)


def quantized_decomposed_choose_qparams__tensor(input: Tensor, quant_min: int, quant_max: int, eps: float,
                                                dtype: int) -> Tuple[Tensor, Tensor]:
    low, high = _range_of(input)
    scale = torch.maximum((high - low) / float(quant_max - quant_min), torch.tensor([eps], dtype=torch.float32))
    zero = torch.clamp(quant_min - torch.round(low / scale).to(torch.int32), quant_min, quant_max)
    return scale.to(torch.float64), zero.to(torch.int64)


def quantized_decomposed_choose_qparams_symmetric__tensor(input: Tensor, quant_min: int, quant_max: int, eps: float,
                                                          dtype: int) -> Tuple[Tensor, Tensor]:
    low, high = _range_of(input)
    scale = torch.maximum(torch.maximum(-low, high) / (float(quant_max - quant_min) / 2),
                          torch.tensor([eps], dtype=torch.float32))
    return scale.to(torch.float64), torch.full([1], 128 if dtype == torch.uint8 else 0, dtype=torch.int64)


def quantized_decomposed_choose_qparams_per_token(input: Tensor, dtype: int) -> Tuple[Tensor, Tensor]:
    scales = torch.amax(torch.abs(input), [-1], True)
    if scales.dtype == torch.float16:
        scales = scales.to(torch.float32)
    scales = torch.clamp_min(scales, 1e-5) / 127
    return scales, torch.zeros_like(scales)


def quantized_decomposed_choose_qparams_per_token_asymmetric_impl(input: Tensor, dtype: int) -> Tuple[Tensor, Tensor]:
    low = torch.clamp_max(torch.amin(input, [-1], True), 0.0)
    high = torch.clamp_min(torch.amax(input, [-1], True), 0.0)
    scale = torch.clamp_min((high - low) / 255.0, 1.1920928955078125e-07)
    from_low = -128 - low / scale
    from_high = 127 - high / scale
    errors = (-128 + low / scale) + (127 + high / scale)
    zero = torch.round(torch.clamp(torch.where(errors > 0, from_low, from_high), -128, 127))
    return scale.to(torch.float64), zero.to(torch.int64)


def quantized_decomposed_choose_qparams_per_token_asymmetric(input: Tensor, dtype: int) -> Tuple[Tensor, Tensor]:
    return quantized_decomposed_choose_qparams_per_token_asymmetric_impl(input, dtype)


def quantized_decomposed_quantize_per_token(input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int,
                                            dtype: int) -> Tensor:
    return _to_steps(torch.round(input * (1.0 / scales) + zero_points), quant_min, quant_max, dtype)


def quantized_decomposed_dequantize_per_token(input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int,
                                              quant_max: int, dtype: int, output_dtype: int) -> Tensor:
    return ((input - zero_points) * scales).to(output_dtype)


def quantized_decomposed_quantize_per_channel_group(input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int,
                                                    quant_max: int, dtype: int, group_size: int) -> Tensor:
    size = input.size(-1) if group_size > input.size(-1) and scales.size(-1) == 1 else group_size
    groups = torch.round(input.reshape(-1, size) * (1.0 / scales.reshape(-1, 1)) + zero_points.reshape(-1, 1))
    return _to_steps(groups, quant_min, quant_max, dtype).reshape(input.size())


def quantized_decomposed_dequantize_per_channel_group(w_int8: Tensor, scales: Tensor, zero_points: Optional[Tensor],
                                                      quant_min: int, quant_max: int, dtype: int, group_size: int,
                                                      output_dtype: int) -> Tensor:
    size = w_int8.size(-1) if group_size > w_int8.size(-1) and scales.size(-1) == 1 else group_size
    groups = w_int8.reshape(-1, size)
    if zero_points is not None:
        groups = groups - zero_points.reshape(-1, 1)
    return (groups * scales.reshape(-1, 1)).reshape(w_int8.size()).to(output_dtype)


def quantized_decomposed_fake_quant_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int,
                                                quant_max: int) -> Tensor:
    s = _by_channel(scales.to(torch.float32), axis, input.dim())
    z = _by_channel(zero_points.to(torch.int32), axis, input.dim())
    return (torch.clamp(torch.round(input * (1.0 / s)) + z, quant_min, quant_max) - z) * s


def copy__Tensor(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    return torch.copy_(torch.empty_like(self), src)
