"""Operators under names that PyTorch keeps to itself: traces, fused modules and exported graphs hold them."""
import math
from typing import List, Optional, Tuple

import torch
from torch import Tensor


# ---- casts and copies ----
def _cast_Byte(self: Tensor, non_blocking: bool = False) -> Tensor:
    return torch.to(self, torch.uint8)


def _cast_Char(self: Tensor, non_blocking: bool = False) -> Tensor:
    return torch.to(self, torch.int8)


def _cast_Short(self: Tensor, non_blocking: bool = False) -> Tensor:
    return torch.to(self, torch.int16)


def _cast_Int(self: Tensor, non_blocking: bool = False) -> Tensor:
    return torch.to(self, torch.int32)


def _cast_Long(self: Tensor, non_blocking: bool = False) -> Tensor:
    return torch.to(self, torch.int64)


def _cast_Half(self: Tensor, non_blocking: bool = False) -> Tensor:
    return torch.to(self, torch.float16)


def _cast_Float(self: Tensor, non_blocking: bool = False) -> Tensor:
    return torch.to(self, torch.float32)


def _cast_Double(self: Tensor, non_blocking: bool = False) -> Tensor:
    return torch.to(self, torch.float64)


def lift(self: Tensor) -> Tensor:
    return self


def lift_fresh_copy(self: Tensor) -> Tensor:
    return torch.clone(self)


def _lazy_clone(self: Tensor) -> Tensor:
    return torch.clone(self)


def _neg_view(self: Tensor) -> Tensor:
    return torch.neg(self)


def _neg_view_copy(self: Tensor) -> Tensor:
    return torch.neg(self)


def _conj_copy(self: Tensor) -> Tensor:
    return torch.clone(torch.conj(self))


def _reshape_copy(self: Tensor, size: List[int]) -> Tensor:
    return torch.clone(torch.reshape(self, size))


def _reshape_alias_copy(self: Tensor, size: List[int], stride: List[int]) -> Tensor:
    return torch.clone(torch.as_strided(self, size, stride))


def _reshape_from_tensor(self: Tensor, shape: Tensor) -> Tensor:
    sizes: List[int] = []
    for i in range(torch.numel(shape)):
        sizes.append(int(torch.select(shape, 0, i)))
    return torch.reshape(self, sizes)


def view_as_real_copy(self: Tensor) -> Tensor:
    return torch.clone(torch.view_as_real(self))


def view_as_complex_copy(self: Tensor) -> Tensor:
    return torch.clone(torch.view_as_complex(self))


def data(self: Tensor) -> Tensor:
    return torch.detach(self)


def is_leaf(self: Tensor) -> bool:
    return True


def is_pinned(self: Tensor, device: Optional[torch.device] = None) -> bool:
    return False


def is_inference(self: Tensor) -> bool:
    return False


def is_distributed(self: Tensor) -> bool:
    return False


def _is_zerotensor(self: Tensor) -> bool:
    return False


def is_coalesced(self: Tensor) -> bool:
    return False


def _dim_arange(like: Tensor, dim: int) -> Tensor:
    return torch.arange(torch.size(like, dim))


def _stack(tensors: List[Tensor], dim: int = 0) -> Tensor:
    return torch.stack(tensors, dim)


def _chunk_cat(tensors: List[Tensor], dim: int, num_chunks: int) -> Tensor:
    # [num_chunks, ...]: each tensor is padded with zeros along dim, cut, and its pieces are flattened from there on
    parts: List[Tensor] = []
    for t in tensors:
        if torch.numel(t) == 0:
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        d = dim % torch.dim(t)
        width = (torch.size(t, d) + num_chunks - 1) // num_chunks
        pad = [0 for _ in range(2 * (torch.dim(t) - d))]
        pad[2 * (torch.dim(t) - d) - 1] = width * num_chunks - torch.size(t, d)
        sizes = torch.size(t)
        parts.append(torch.reshape(torch.constant_pad_nd(t, pad, 0), sizes[:d] + [num_chunks, -1]))
    return torch.cat(parts, dim % torch.dim(tensors[0]) + 1)


def unflatten_dense_tensors(flat: Tensor, tensors: List[Tensor]) -> List[Tensor]:
    result: List[Tensor] = []
    at = 0
    for t in tensors:
        result.append(torch.reshape(torch.narrow(flat, 0, at, torch.numel(t)), torch.size(t)))
        at += torch.numel(t)
    return result


def flatten_dense_tensors(tensors: List[Tensor]) -> Tensor:
    return torch.cat([torch.reshape(t, [-1]) for t in tensors], 0)


def _tensor_to_list(self: Tensor) -> List[int]:
    result: List[int] = []
    for i in range(torch.numel(self)):
        result.append(int(torch.select(self, 0, i)))
    return result


def _list_to_tensor(self: List[int]) -> Tensor:
    return torch.tensor(self, dtype=torch.int32)


# ---- checks ----
def _assert_async(self: Tensor) -> None:
    if not bool(self):
        raise RuntimeError("Expected Tensor with single nonzero value, but got zero")


def _assert_async__msg(self: Tensor, assert_msg: str) -> None:
    if not bool(self):
        raise RuntimeError(assert_msg)


def _is_all_true(self: Tensor) -> Tensor:
    return torch.all(self)


def _is_any_true(self: Tensor) -> Tensor:
    return torch.any(self)


# ---- arithmetic ----
def _aminmax(self: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.amin(self), torch.amax(self)


def _aminmax__dim(self: Tensor, dim: int, keepdim: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.amin(self, [dim], keepdim), torch.amax(self, [dim], keepdim)


def _logcumsumexp(self: Tensor, dim: int) -> Tensor:
    return torch.logcumsumexp(self, dim)


def _add_relu__Tensor(self: Tensor, other: Tensor, *, alpha: number = 1) -> Tensor:
    return torch.relu(torch.add(self, other, alpha=alpha))


def _add_relu__Scalar(self: Tensor, other: number, alpha: number = 1) -> Tensor:
    return torch.relu(torch.add(self, other, alpha))


def _addmm_activation(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: number = 1, alpha: number = 1,
                      use_gelu: bool = False) -> Tensor:
    result = torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    if use_gelu:
        return torch.gelu(result)
    return torch.relu(result)


def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    return torch.mm(torch.to(self, torch.int32), torch.to(mat2, torch.int32))


def _weight_int8pack_mm(self: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    product = torch.mm(torch.to(self, torch.float32), torch.t(torch.to(mat2, torch.float32)))
    return torch.to(product * torch.to(scales, torch.float32), self.dtype)


def _masked_scale(self: Tensor, mask: Tensor, scale: float) -> Tensor:
    return self * torch.to(mask, self.dtype) * scale


def _prelu_kernel(self: Tensor, weight: Tensor) -> Tensor:
    return torch.where(self > 0, self, weight * self)


def log_sigmoid_forward(self: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.log_sigmoid(self), torch.exp(-torch.abs(self))


def _euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    return torch.cdist(x1, x2, 2.0, 1)


def _trilinear(i1: Tensor, i2: Tensor, i3: Tensor, expand1: List[int], expand2: List[int], expand3: List[int],
               sumdim: List[int], unroll_dim: int = 1) -> Tensor:
    a = i1
    b = i2
    c = i3
    for d in expand1:
        a = torch.unsqueeze(a, d)
    for d in expand2:
        b = torch.unsqueeze(b, d)
    for d in expand3:
        c = torch.unsqueeze(c, d)
    product = a * b * c
    if len(sumdim) == 0:
        return product
    return torch.sum(product, sumdim)


def native_norm(self: Tensor, p: number = 2) -> Tensor:
    return torch.norm(self, p)


def native_norm__ScalarOpt_dim_dtype(self: Tensor, p: Optional[number], dim: List[int], keepdim: bool,
                                     dtype: Optional[int]) -> Tensor:
    x = self
    if dtype is not None:
        x = torch.to(self, dtype)
    order = 2.0 if p is None else float(p)
    return torch.linalg_vector_norm(x, order, dim, keepdim)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    if dim == -1:
        return torch.norm(v, pow)
    dims = [i for i in range(torch.dim(v)) if i != dim]
    return torch.linalg_vector_norm(v, pow, dims, True)


def _weight_norm_interface(v: Tensor, g: Tensor, dim: int = 0) -> Tuple[Tensor, Tensor]:
    norm = norm_except_dim(v, 2, dim)
    return v * (g / norm), norm


def frobenius_norm__dim(self: Tensor, dim: List[int], keepdim: bool = False) -> Tensor:
    return torch.linalg_vector_norm(self, 2, dim, keepdim)


def nuclear_norm__dim(self: Tensor, dim: List[int], keepdim: bool = False) -> Tensor:
    return torch.linalg_matrix_norm(self, "nuc", dim, keepdim)


def vander(x: Tensor, N: Optional[int] = None, increasing: bool = False) -> Tensor:
    if torch.dim(x) != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = torch.size(x, 0) if N is None else N
    if not torch.is_floating_point(x) and not torch.is_complex(x):
        x = torch.to(x, torch.int64)
    if n == 0:
        return torch.empty([torch.size(x, 0), 0], dtype=x.dtype)
    result = torch.linalg_vander(x, N=n)
    if increasing:
        return result
    return torch.flip(result, [-1])


# ---- linear algebra ----
# Factors of the transposed matrix, which costs PyTorch no copy of rows.
def _factors(A: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    if torch.is_contiguous(A) and not torch.is_complex(A):
        return torch.linalg_lu_factor_ex(torch.transpose(A, -2, -1))
    return torch.linalg_lu_factor_ex(A)


def _linalg_det(A: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    lu, pivots, _ = _factors(A)
    return torch.linalg_det(A), lu, pivots


def _linalg_slogdet(A: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    lu, pivots, _ = _factors(A)
    sign, logabsdet = torch.linalg_slogdet(A)
    return sign, logabsdet, lu, pivots


def _linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True,
                     check_errors: bool = False) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    result, info = torch.linalg_solve_ex(A, B, left=left, check_errors=check_errors)
    lu, pivots, _ = torch.linalg_lu_factor_ex(A)
    return result, lu, pivots, info


def _linalg_eigh(A: Tensor, UPLO: str = "L", compute_v: bool = True) -> Tuple[Tensor, Tensor]:
    if compute_v:
        return torch.linalg_eigh(A, UPLO)
    return torch.linalg_eigvalsh(A, UPLO), torch.empty([0], dtype=A.dtype)


def _linalg_svd(A: Tensor, full_matrices: bool = False, compute_uv: bool = True, *,
                driver: Optional[str] = None) -> Tuple[Tensor, Tensor, Tensor]:
    if compute_uv:
        return torch.linalg_svd(A, full_matrices)
    return torch.empty([0], dtype=A.dtype), torch.linalg_svdvals(A), torch.empty([0], dtype=A.dtype)


def _cholesky_solve_helper(self: Tensor, A: Tensor, upper: bool) -> Tensor:
    return torch.cholesky_solve(self, A, upper)


# normalization: 0 none, 1 by the root of the count, 2 by the count
def _scaled(t: Tensor, n: int, normalization: int) -> Tensor:
    if normalization == 0:
        return t
    return t / (math.sqrt(n) if normalization == 1 else float(n))


def _fft_r2c(self: Tensor, dim: List[int], normalization: int, onesided: bool) -> Tensor:
    n = 1
    for d in dim:
        n *= torch.size(self, d)
    if onesided:
        return _scaled(torch.fft_rfftn(self, None, dim), n, normalization)
    return _scaled(torch.fft_fftn(self, None, dim), n, normalization)


def _fft_c2r(self: Tensor, dim: List[int], normalization: int, last_dim_size: int) -> Tensor:
    sizes: List[int] = []
    n = last_dim_size
    for i in range(len(dim) - 1):
        sizes.append(torch.size(self, dim[i]))
        n *= torch.size(self, dim[i])
    sizes.append(last_dim_size)
    return _scaled(torch.fft_irfftn(self, sizes, dim, "forward"), n, normalization)


# ---- neural networks ----
def _masked_softmax(self: Tensor, mask: Tensor, dim: Optional[int] = None, mask_type: Optional[int] = None) -> Tensor:
    m = mask
    if mask_type is not None and mask_type == 1:
        m = torch.reshape(mask, [torch.size(mask, 0), 1, 1, torch.size(mask, 1)])
    elif mask_type is not None and mask_type == 0 and torch.dim(mask) == 2:
        m = torch.reshape(mask, [1, 1, torch.size(mask, 0), torch.size(mask, 1)])
    scores = torch.masked_fill(self, m, float("-inf"))
    result = torch.softmax(scores, -1 if dim is None else dim)
    # a row that is all masked is zero, not nan
    return torch.masked_fill(result, torch.expand(m, torch.size(self)), 0.0)


def nll_loss_forward(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int,
                     ignore_index: int) -> Tuple[Tensor, Tensor]:
    keep = target != ignore_index
    if weight is None:
        total = torch.sum(torch.to(keep, self.dtype))
    else:
        index = torch.reshape(torch.where(keep, target, torch.zeros_like(target)), [-1])
        total = torch.sum(torch.index_select(weight, 0, index) * torch.to(torch.reshape(keep, [-1]), self.dtype))
    if reduction == 0:
        total = torch.zeros([], dtype=self.dtype)
    return torch.nll_loss_nd(self, target, weight, reduction, ignore_index), total


def nll_loss2d_forward(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int,
                       ignore_index: int) -> Tuple[Tensor, Tensor]:
    return nll_loss_forward(self, target, weight, reduction, ignore_index)


def multilabel_margin_loss_forward(self: Tensor, target: Tensor, reduction: int) -> Tuple[Tensor, Tensor]:
    live = torch.cumsum(torch.to(target == -1, torch.int64), -1) == 0
    index = torch.where(live, target, torch.zeros_like(target))
    is_target = torch.scatter_add(torch.zeros_like(target), -1, index, torch.to(live, torch.int64)) > 0
    return torch.multilabel_margin_loss(self, target, reduction), torch.to(is_target, self.dtype)


def _native_batch_norm_legit_no_training(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor],
                                         running_mean: Tensor, running_var: Tensor, momentum: float,
                                         eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    result = torch.batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps, False)
    return result, torch.empty([0], dtype=input.dtype), torch.empty([0], dtype=input.dtype)


def _batch_norm_no_update(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor],
                          running_mean: Optional[Tensor], running_var: Optional[Tensor], momentum: float,
                          eps: float) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    result = torch.batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps, False)
    empty = torch.empty([0], dtype=input.dtype)
    return result, empty, empty, torch.empty([0], dtype=torch.uint8)


def _batch_norm_impl_index(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor],
                           running_mean: Optional[Tensor], running_var: Optional[Tensor], training: bool,
                           momentum: float, eps: float,
                           cudnn_enabled: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor, int]:
    result, mean, invstd = torch.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum,
                                                   eps)
    return result, mean, invstd, torch.empty([0], dtype=torch.uint8), 0


def _fused_rms_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor],
                    eps: Optional[float]) -> Tuple[Tensor, Tensor]:
    dims = [torch.dim(input) - len(normalized_shape) + i for i in range(len(normalized_shape))]
    least = torch.finfo(input.dtype).eps if eps is None else eps
    rstd = torch.rsqrt(torch.mean(torch.pow(input, 2), dims, True) + least)
    return torch.rms_norm(input, normalized_shape, weight, least), rstd


def _embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0,
                   sparse: bool = False, per_sample_weights: Optional[Tensor] = None,
                   include_last_offset: bool = False,
                   padding_idx: int = -1) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    if padding_idx >= 0:
        return torch.embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                                   include_last_offset, padding_idx)
    return torch.embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                               include_last_offset)


def _embedding_bag_forward_only(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False,
                                mode: int = 0, sparse: bool = False, per_sample_weights: Optional[Tensor] = None,
                                include_last_offset: bool = False,
                                padding_idx: int = -1) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                          include_last_offset, padding_idx)


def _scores(query: Tensor, key: Tensor, mask: Optional[Tensor], is_causal: bool, scale: Optional[float]) -> Tensor:
    factor = 1.0 / math.sqrt(torch.size(query, -1)) if scale is None else scale
    scores = torch.matmul(query, torch.transpose(key, -2, -1)) * factor
    if is_causal:
        causal = torch.ones([torch.size(query, -2), torch.size(key, -2)], dtype=torch.bool)
        return torch.masked_fill(scores, torch.logical_not(torch.tril(causal)), float("-inf"))
    if mask is not None:
        if mask.dtype == torch.bool:
            return torch.masked_fill(scores, torch.logical_not(mask), float("-inf"))
        return scores + mask
    return scores


def _scaled_dot_product_flash_attention_for_cpu(query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0,
                                                is_causal: bool = False, *, attn_mask: Optional[Tensor] = None,
                                                scale: Optional[float] = None) -> Tuple[Tensor, Tensor]:
    if dropout_p > 0:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0")
    result = torch.scaled_dot_product_attention(query, key, value, attn_mask, 0.0, is_causal, scale=scale)
    return result, torch.logsumexp(_scores(query, key, attn_mask, is_causal, scale), [-1])


def _scaled_dot_product_attention_math(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None,
                                       dropout_p: float = 0.0, is_causal: bool = False,
                                       dropout_mask: Optional[Tensor] = None, *, scale: Optional[float] = None,
                                       enable_gqa: bool = False) -> Tuple[Tensor, Tensor]:
    k = key
    v = value
    if enable_gqa:
        k = torch.repeat_interleave(key, torch.size(query, -3) // torch.size(key, -3), -3)
        v = torch.repeat_interleave(value, torch.size(query, -3) // torch.size(value, -3), -3)
    weights = torch._safe_softmax(_scores(query, k, attn_mask, is_causal, scale), -1)
    if dropout_p > 0:
        dropped = torch.dropout(weights, dropout_p, True)
        return torch.matmul(dropped, v), weights
    return torch.matmul(weights, v), weights


def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    # [time, batch, channels], weight [taps, in, out]
    x = torch.permute(self, [1, 2, 0])
    return torch.permute(torch.conv1d(x, torch.permute(weight, [2, 1, 0]), bias, [1], [pad]), [2, 0, 1])


def thnn_conv2d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor] = None,
                stride: List[int] = [1, 1], padding: List[int] = [0, 0]) -> Tensor:
    return torch.conv2d(self, weight, bias, stride, padding)


def _slow_conv2d_forward(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor],
                         stride: List[int], padding: List[int]) -> Tensor:
    return torch.conv2d(self, weight, bias, stride, padding)


def slow_conv3d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor] = None,
                stride: List[int] = [1, 1, 1], padding: List[int] = [0, 0, 0]) -> Tensor:
    return torch.conv3d(self, weight, bias, stride, padding)


def slow_conv3d_forward(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor],
                        stride: List[int], padding: List[int]) -> Tensor:
    return torch.conv3d(self, weight, bias, stride, padding)


def slow_conv_dilated2d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor] = None,
                        stride: List[int] = [1, 1], padding: List[int] = [0, 0],
                        dilation: List[int] = [1, 1]) -> Tensor:
    return torch.conv2d(self, weight, bias, stride, padding, dilation)


def slow_conv_dilated3d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor] = None,
                        stride: List[int] = [1, 1, 1], padding: List[int] = [0, 0, 0],
                        dilation: List[int] = [1, 1, 1]) -> Tensor:
    return torch.conv3d(self, weight, bias, stride, padding, dilation)


def slow_conv_transpose2d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor] = None,
                          stride: List[int] = [1, 1], padding: List[int] = [0, 0], output_padding: List[int] = [0, 0],
                          dilation: List[int] = [1, 1]) -> Tensor:
    return torch.conv_transpose2d(self, weight, bias, stride, padding, output_padding, 1, dilation)


def slow_conv_transpose3d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor] = None,
                          stride: List[int] = [1, 1, 1], padding: List[int] = [0, 0, 0],
                          output_padding: List[int] = [0, 0, 0], dilation: List[int] = [1, 1, 1]) -> Tensor:
    return torch.conv_transpose3d(self, weight, bias, stride, padding, output_padding, 1, dilation)


def _conv_depthwise2d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int],
                      padding: List[int], dilation: List[int]) -> Tensor:
    return torch.conv2d(self, weight, bias, stride, padding, dilation, torch.size(self, 1))


def conv_depthwise3d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int],
                     padding: List[int], dilation: List[int]) -> Tensor:
    return torch.conv3d(self, weight, bias, stride, padding, dilation, torch.size(self, 1))


def mkldnn_convolution(self: Tensor, weight: Tensor, bias: Optional[Tensor], padding: List[int], stride: List[int],
                       dilation: List[int], groups: int) -> Tensor:
    return torch.convolution(self, weight, bias, stride, padding, dilation, False, [0 for _ in padding], groups)


def _nnpack_spatial_convolution(input: Tensor, weight: Tensor, bias: Optional[Tensor], padding: List[int],
                                stride: List[int] = [1, 1]) -> Tensor:
    return torch.conv2d(input, weight, bias, stride, padding)


def mkldnn_linear(self: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    return torch.linear(self, weight, bias)


def _pad_circular(self: Tensor, pad: List[int]) -> Tensor:
    return torch.pad(self, pad, "circular")


def _pad_enum(self: Tensor, pad: List[int], mode: int, value: Optional[float] = None) -> Tensor:
    names = ["reflect", "replicate", "circular", "constant"]
    return torch.pad(self, pad, names[mode], value)


def _transform_bias_rescale_qkv(qkv: Tensor, qkv_bias: Tensor, num_heads: int) -> Tuple[Tensor, Tensor, Tensor]:
    # [B, T, 3 D] -> three of [B, heads, T, D / heads], the first scaled
    batch = torch.size(qkv, 0)
    length = torch.size(qkv, 1)
    size = torch.size(qkv, 2) // 3 // num_heads
    x = torch.reshape(qkv + qkv_bias, [batch, length, 3, num_heads, size])
    q, k, v = torch.unbind(torch.permute(x, [2, 0, 3, 1, 4]), 0)
    return q * (1.0 / math.sqrt(size)), k, v


def _thnn_fused_lstm_cell(input_gates: Tensor, hidden_gates: Tensor, cx: Tensor, input_bias: Optional[Tensor] = None,
                          hidden_bias: Optional[Tensor] = None) -> Tuple[Tensor, Tensor, Tensor]:
    gates = input_gates + hidden_gates
    if input_bias is not None:
        gates = gates + input_bias
    if hidden_bias is not None:
        gates = gates + hidden_bias
    i, f, g, o = torch.chunk(gates, 4, 1)
    c = torch.sigmoid(f) * cx + torch.sigmoid(i) * torch.tanh(g)
    workspace = torch.cat([torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)], 1)
    return torch.sigmoid(o) * torch.tanh(c), c, workspace


# ---- sequences of different lengths ----
def pad_sequence(sequences: List[Tensor], batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    if padding_side != "right" and padding_side != "left":
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if len(sequences) == 0:
        raise RuntimeError("received an empty list of sequences")
    longest = 0
    for s in sequences:
        longest = max(longest, torch.size(s, 0))
    rows: List[Tensor] = []
    for s in sequences:
        pad = [0 for _ in range(2 * torch.dim(s))]
        missing = longest - torch.size(s, 0)
        if padding_side == "right":
            pad[2 * torch.dim(s) - 1] = missing
        else:
            pad[2 * torch.dim(s) - 2] = missing
        rows.append(torch.constant_pad_nd(s, pad, padding_value))
    return torch.stack(rows, 0 if batch_first else 1)


# ---- random ----
def _starts(sample: Tensor, size: int, count: int, window: int) -> Tensor:
    # [..., count]: where the windows of fractional pooling begin
    last = torch.full_like(sample, size - window)
    if count == 1:
        return torch.to(torch.unsqueeze(last, -1), torch.int64)
    alpha = torch.full_like(sample, float(size - window)) / float(count - 1)
    i = torch.arange(count - 1, dtype=sample.dtype)
    first = torch.to(torch.unsqueeze(alpha, -1) * (torch.unsqueeze(sample, -1) + i), torch.int64)
    first = first - torch.to(torch.unsqueeze(alpha * sample, -1), torch.int64)
    return torch.cat([first, torch.to(torch.unsqueeze(last, -1), torch.int64)], -1)


def _samples_of(random_samples: Tensor, batch: int, channels: int, dims: int) -> Tensor:
    if torch.size(random_samples, 0) < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if torch.size(random_samples, 1) != channels:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if torch.size(random_samples, 2) != dims:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {dims}; got {torch.size(random_samples, 2)}.")
    return torch.narrow(random_samples, 0, 0, batch)


def fractional_max_pool2d(self: Tensor, kernel_size: List[int], output_size: List[int],
                          random_samples: Tensor) -> Tuple[Tensor, Tensor]:
    x = self if torch.dim(self) == 4 else torch.unsqueeze(self, 0)
    height = torch.size(x, 2)
    width = torch.size(x, 3)
    n = torch.size(x, 0)
    c = torch.size(x, 1)
    samples = _samples_of(random_samples, n, c, 2)
    left = _starts(torch.select(samples, 2, 0), width, output_size[1], kernel_size[1])
    top = _starts(torch.select(samples, 2, 1), height, output_size[0], kernel_size[0])
    rows = torch.reshape(top, [n, c, output_size[0], 1, 1, 1]) + torch.reshape(torch.arange(kernel_size[0]), [-1, 1])
    columns = torch.reshape(left, [n, c, 1, output_size[1], 1, 1]) + torch.arange(kernel_size[1])
    index = torch.flatten(rows * width + columns, 2)
    values = torch.reshape(torch.gather(torch.flatten(x, 2), 2, index),
                           [n, c, output_size[0], output_size[1], kernel_size[0] * kernel_size[1]])
    best, at = torch.max(values, -1)
    index = torch.reshape(index, torch.size(values))
    where = torch.squeeze(torch.gather(index, -1, torch.unsqueeze(at, -1)), -1)
    if torch.dim(self) == 3:
        return torch.squeeze(best, 0), torch.squeeze(where, 0)
    return best, where


def fractional_max_pool3d(self: Tensor, kernel_size: List[int], output_size: List[int],
                          random_samples: Tensor) -> Tuple[Tensor, Tensor]:
    x = self if torch.dim(self) == 5 else torch.unsqueeze(self, 0)
    height = torch.size(x, 3)
    width = torch.size(x, 4)
    n = torch.size(x, 0)
    c = torch.size(x, 1)
    samples = _samples_of(random_samples, n, c, 3)
    front = _starts(torch.select(samples, 2, 0), torch.size(x, 2), output_size[0], kernel_size[0])
    top = _starts(torch.select(samples, 2, 1), height, output_size[1], kernel_size[1])
    left = _starts(torch.select(samples, 2, 2), width, output_size[2], kernel_size[2])
    planes = torch.reshape(front, [n, c, output_size[0], 1, 1, 1, 1, 1]) + torch.reshape(torch.arange(kernel_size[0]),
                                                                                        [-1, 1, 1])
    rows = torch.reshape(top, [n, c, 1, output_size[1], 1, 1, 1, 1]) + torch.reshape(torch.arange(kernel_size[1]),
                                                                                    [-1, 1])
    columns = torch.reshape(left, [n, c, 1, 1, output_size[2], 1, 1, 1]) + torch.arange(kernel_size[2])
    index = torch.flatten((planes * height + rows) * width + columns, 2)
    values = torch.reshape(torch.gather(torch.flatten(x, 2), 2, index),
                           [n, c, output_size[0], output_size[1], output_size[2],
                            kernel_size[0] * kernel_size[1] * kernel_size[2]])
    best, at = torch.max(values, -1)
    index = torch.reshape(index, torch.size(values))
    where = torch.squeeze(torch.gather(index, -1, torch.unsqueeze(at, -1)), -1)
    if torch.dim(self) == 4:
        return torch.squeeze(best, 0), torch.squeeze(where, 0)
    return best, where


# W. Hoermann, The transformed rejection method for generating Poisson random variables (1993): PTRS
def _poisson(rate: float) -> float:
    if rate < 0:
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    if rate == 0:
        return 0.0
    if rate < 10:
        limit = math.exp(-rate)
        product = 1.0
        count = -1
        while product > limit:
            product *= float(torch.rand([], dtype=torch.float64))
            count += 1
        return float(count)
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    vr = 0.9277 - 3.6224 / (b - 2)
    result = 0.0
    found = False
    while not found:
        u = float(torch.rand([], dtype=torch.float64)) - 0.5
        v = float(torch.rand([], dtype=torch.float64))
        us = 0.5 - abs(u)
        k = float(math.floor((2 * a / us + b) * u + rate + 0.43))
        result = k
        if us >= 0.07 and v <= vr:
            found = True
        elif k >= 0 and not (us < 0.013 and v > us):
            bound = -rate + k * log_rate - math.lgamma(k + 1)
            found = math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b) <= bound
    return result


def poisson(self: Tensor, generator: Optional[Generator] = None) -> Tensor:
    flat = torch.to(torch.reshape(self, [-1]), torch.float64)
    values: List[float] = []
    for i in range(torch.numel(flat)):
        values.append(_poisson(float(torch.select(flat, 0, i))))
    return torch.reshape(torch.tensor(values, dtype=self.dtype), torch.size(self))


def normal_functional(self: Tensor, mean: float = 0.0, std: float = 1.0, *,
                      generator: Optional[Generator] = None) -> Tensor:
    return torch.normal_(torch.empty_like(self), mean, std)


def _fused_dropout(self: Tensor, p: float, generator: Optional[Generator] = None) -> Tuple[Tensor, Tensor]:
    mask = torch.bernoulli(torch.full_like(self, p))
    return self * mask * (1.0 / p), torch.to(mask, torch.uint8)


def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: Optional[Generator] = None) -> Tensor:
    return torch.uniform_(tensor, a, b)


def _no_grad_normal_(tensor: Tensor, mean: float, std: float, generator: Optional[Generator] = None) -> Tensor:
    return torch.normal_(tensor, mean, std)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    return torch.fill_(tensor, val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    return torch.fill_(tensor, 0)
