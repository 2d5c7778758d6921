"""Operators that stand for whole layers: PyTorch's modules take them in evaluation mode."""
import math
from typing import List, Optional, Tuple

import torch
from torch import Tensor


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    if dim == -1:
        return v * (g / torch.sqrt(torch.sum(v * v)))
    dims = [i for i in range(v.dim()) if i != dim]
    return v * (g / torch.sqrt(torch.sum(v * v, dims, True)))


def native_channel_shuffle(self: Tensor, groups: int) -> Tensor:
    return torch.channel_shuffle(self, groups)


def _masked_scores(scores: Tensor, mask: Tensor, mask_type: Optional[int]) -> Tensor:
    # 0: [T, T] of the sequence, 1: [B, T] of the keys, 2: [B, heads, T, T]
    m = mask
    if mask_type is not None and mask_type == 1:
        m = mask.view(mask.size(0), 1, 1, mask.size(1))
    if m.dtype == torch.bool:
        return torch.masked_fill(scores, m, float("-inf"))
    return scores + m


def _native_multi_head_attention(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int,
                                 qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor,
                                 mask: Optional[Tensor] = None, need_weights: bool = True,
                                 average_attn_weights: bool = True,
                                 mask_type: Optional[int] = None) -> Tuple[Tensor, Optional[Tensor]]:
    head_size = embed_dim // num_head
    batch = query.size(0)
    q = torch.linear(query, qkv_weight[:embed_dim], qkv_bias[:embed_dim])
    k = torch.linear(key, qkv_weight[embed_dim:2 * embed_dim], qkv_bias[embed_dim:2 * embed_dim])
    v = torch.linear(value, qkv_weight[2 * embed_dim:], qkv_bias[2 * embed_dim:])
    q = q.view(batch, -1, num_head, head_size).transpose(1, 2)
    k = k.view(batch, -1, num_head, head_size).transpose(1, 2)
    v = v.view(batch, -1, num_head, head_size).transpose(1, 2)
    scores = torch.matmul(q, k.transpose(-2, -1)) * (1.0 / math.sqrt(head_size))
    if mask is not None:
        scores = _masked_scores(scores, mask, mask_type)
    weights = torch.softmax(scores, -1)
    out = torch.matmul(weights, v).transpose(1, 2).reshape(batch, -1, embed_dim)
    out = torch.linear(out, proj_weight, proj_bias)
    if not need_weights:
        return out, None
    if average_attn_weights:
        return out, torch.mean(weights, 1)
    return out, weights


def _transformer_encoder_layer_fwd(src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor,
                                   proj_weight: Tensor, proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float,
                                   norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor,
                                   norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor,
                                   ffn_bias_2: Tensor, mask: Optional[Tensor] = None,
                                   mask_type: Optional[int] = None) -> Tensor:
    x = src
    if norm_first:
        x = torch.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)
    attended = _native_multi_head_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias,
                                            mask, False, True, mask_type)[0]
    x = attended + src
    if not norm_first:
        x = torch.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)
    before = x
    if norm_first:
        x = torch.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)
    x = torch.linear(x, ffn_weight_1, ffn_bias_1)
    if use_gelu:
        x = torch.gelu(x)
    else:
        x = torch.relu(x)
    x = torch.linear(x, ffn_weight_2, ffn_bias_2) + before
    if not norm_first:
        x = torch.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)
    return x


# Nested tensors do not exist here. A scripted TransformerEncoder asks for them only where a padding
# mask is given and its enable_nested_tensor is set; there it raises.
def _nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    return torch.equal(torch.cummin(mask.to(torch.int64), 1)[0], mask.to(torch.int64))


def _nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> Tensor:
    raise RuntimeError("nested tensors are not supported: set enable_nested_tensor=False")


def to_padded_tensor(self: Tensor, padding: float, output_size: Optional[List[int]] = None) -> Tensor:
    raise RuntimeError("nested tensors are not supported: set enable_nested_tensor=False")


def _grouped_mm(self: Tensor, mat2: Tensor, offs: Optional[Tensor] = None, bias: Optional[Tensor] = None,
                out_dtype: Optional[int] = None) -> Tensor:
    # offs[g] ends group g of the dimension that a matrix of two dims shares with the others; what lies behind the last is left open
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype != self.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if torch.dim(self) == 3 and torch.dim(mat2) == 3:
        if offs is not None:
            raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
        return torch.bmm(self, mat2)
    if offs is None:
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    groups = torch.size(offs, 0)
    if (torch.dim(self) == 3 and torch.size(self, 0) != groups) or (torch.dim(mat2) == 3 and torch.size(mat2, 0) != groups):
        raise RuntimeError("matrix batch sizes have to match")
    parts: List[Tensor] = []
    start = 0
    for g in range(groups):
        end = int(torch.select(offs, 0, g).item())
        if torch.dim(self) == 3:
            parts.append(torch.mm(torch.select(self, 0, g), torch.slice(mat2, 1, start, end)))
        elif torch.dim(mat2) == 3:
            parts.append(torch.mm(torch.slice(self, 0, start, end), torch.select(mat2, 0, g)))
        else:
            parts.append(torch.mm(torch.slice(self, 1, start, end), torch.slice(mat2, 0, start, end)))
        start = end
    if torch.dim(self) == 3:
        rows, columns = torch.size(self, 1), torch.size(mat2, 1)
        parts.append(torch.zeros([rows, columns - start], dtype=self.dtype))
        return torch.view(torch.cat(parts, 1), [rows, columns])
    if torch.dim(mat2) == 3:
        rows, columns = torch.size(self, 0), torch.size(mat2, 2)
        parts.append(torch.zeros([rows - start, columns], dtype=self.dtype))
        return torch.view(torch.cat(parts, 0), [rows, columns])
    return torch.stack(parts, 0)
