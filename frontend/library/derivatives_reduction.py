"""Derivatives of reductions, of sorting and of operators along a line (see derivatives.py)."""
import math
from typing import List, Optional, Tuple

import torch
from torch import Tensor


# ---- reductions ----

def _dims_of(rank: int, dim: Optional[List[int]]) -> List[int]:
    if dim is None or len(dim) == 0:
        return [d for d in range(rank)]
    return [d + rank if d < 0 else d for d in dim]


def _restore(grad: Tensor, self: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    # the sizes of a reduction with keepdim
    if keepdim or self.dim() == 0:
        return grad
    dims = _dims_of(self.dim(), dim)
    for d in range(self.dim()):
        if d in dims:
            grad = torch.unsqueeze(grad, d)
    return grad


def _count_of(self: Tensor, dim: Optional[List[int]]) -> int:
    count = 1
    if self.dim() > 0:
        for d in _dims_of(self.dim(), dim):
            count = count * self.size(d)
    return count


def d_sum__dim_IntList(grad: Tensor, self: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    return torch.expand_as(_restore(grad, self, dim, keepdim), self).to(self.dtype)


def d_mean__dim(grad: Tensor, self: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    return (torch.expand_as(_restore(grad, self, dim, keepdim), self) / _count_of(self, dim)).to(self.dtype)


def d_nansum(grad: Tensor, self: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    wide = torch.expand_as(_restore(grad, self, dim, keepdim), self)
    return torch.masked_fill(wide, torch.isnan(self), 0).to(self.dtype)


def d_nanmean(grad: Tensor, self: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    known = torch.logical_not(torch.isnan(self))
    count = torch.sum(known.to(self.dtype), _dims_of(self.dim(), dim), True) if self.dim() > 0 else known.to(self.dtype)
    wide = torch.expand_as(_restore(grad, self, dim, keepdim), self) / count
    return torch.masked_fill(wide, torch.isnan(self), 0).to(self.dtype)


def _others_product(self: Tensor, dim: int) -> Tensor:
    # the product of all other elements of the line: of those before times those behind
    length = self.size(dim)
    one = torch.ones_like(torch.narrow(self, dim, 0, 1)) if length > 0 else self
    if length < 2:
        return one
    before = torch.cat([one, torch.cumprod(torch.narrow(self, dim, 0, length - 1), dim)], dim)
    behind = torch.flip(torch.cumprod(torch.flip(torch.narrow(self, dim, 1, length - 1), [dim]), dim), [dim])
    return before * torch.cat([behind, one], dim)


def d_prod(grad: Tensor, self: Tensor) -> Tensor:
    if self.dim() == 0:
        return grad.to(self.dtype)
    flat = torch.reshape(self, [-1])
    return torch.reshape(grad.to(self.dtype) * _others_product(flat, 0), torch.size(self))


def d_prod__dim_int(grad: Tensor, self: Tensor, dim: int, keepdim: bool) -> Tensor:
    if self.dim() == 0:
        return grad.to(self.dtype)
    return _restore(grad, self, [dim], keepdim).to(self.dtype) * _others_product(self, dim)


def _evenly(grad: Tensor, self: Tensor, result: Tensor, dim: Optional[List[int]]) -> Tensor:
    hit = torch.eq(self, result)
    hits = torch.masked_fill(torch.zeros_like(self), hit, 1)
    if self.dim() == 0:
        return grad * hits
    return grad * hits / torch.sum(hits, _dims_of(self.dim(), dim), True)


def d_amax(grad: Tensor, self: Tensor, dim: List[int], keepdim: bool, result: Tensor) -> Tensor:
    return _evenly(_restore(grad, self, dim, keepdim), self, _restore(result, self, dim, keepdim), dim)


def d_max(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return _evenly(grad, self, result, None)


def _at_index(grad: Tensor, self: Tensor, dim: int, index: Tensor) -> Tensor:
    if self.dim() == 0:
        return grad
    return torch.scatter_add(torch.zeros_like(self), dim, index, grad)


def d_max__dim(grad: Tensor, self: Tensor, dim: int, keepdim: bool, result1: Tensor) -> Tensor:
    return _at_index(_restore(grad, self, [dim], keepdim), self, dim, _restore(result1, self, [dim], keepdim))


def d_kthvalue(grad: Tensor, self: Tensor, dim: int, keepdim: bool, result1: Tensor) -> Tensor:
    return d_max__dim(grad, self, dim, keepdim, result1)


def d_aminmax(grad: Tensor, grad1: Tensor, self: Tensor, dim: Optional[int], keepdim: bool, result: Tensor,
              result1: Tensor) -> Tensor:
    dims: Optional[List[int]] = None
    if dim is not None:
        dims = [dim]
    return (_evenly(_restore(grad, self, dims, keepdim), self, _restore(result, self, dims, keepdim), dims)
            + _evenly(_restore(grad1, self, dims, keepdim), self, _restore(result1, self, dims, keepdim), dims))


def d_median(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    hit = torch.logical_or(torch.eq(self, result), torch.logical_and(torch.isnan(self), torch.isnan(result)))
    hits = torch.masked_fill(torch.zeros_like(self), hit, 1)
    return grad * hits / torch.sum(hits)


def d_sort(grad: Tensor, self: Tensor, dim: int, result1: Tensor) -> Tensor:
    return _at_index(grad, self, dim, result1)


def d_msort(grad: Tensor, self: Tensor) -> Tensor:
    return _at_index(grad, self, 0, torch.argsort(self, dim=0, stable=True))


def d_logsumexp(grad: Tensor, self: Tensor, dim: List[int], keepdim: bool, result: Tensor) -> Tensor:
    return _restore(grad, self, dim, keepdim) * torch.exp(self - _restore(result, self, dim, keepdim))


def _norm_backward(grad: Tensor, self: Tensor, p: float, dim: Optional[List[int]], result: Tensor) -> Tensor:
    # grad and result have the sizes of keepdim
    if p == 0.0:
        return torch.zeros_like(self)
    if p == 1.0:
        return torch.sgn(self) * grad
    if p == 2.0:
        return torch.masked_fill(grad * (self / result), torch.eq(result, 0), 0)
    if p == math.inf or p == -math.inf:
        size = torch.abs(self)
        hits = torch.masked_fill(torch.zeros_like(self), torch.eq(size, result), 1)
        total = torch.sum(hits, _dims_of(self.dim(), dim), True) if self.dim() > 0 else hits
        return torch.sgn(self) * (grad * hits / total)
    if p < 1.0:
        powers = torch.masked_fill(torch.pow(torch.abs(self), p - 1), torch.eq(self, 0), 0)
        return torch.sgn(self) * powers * grad * torch.pow(result, 1 - p)
    if p < 2.0:
        scaled = torch.sgn(self) * torch.pow(torch.abs(self), p - 1) * (grad / torch.pow(result, p - 1))
        return torch.masked_fill(scaled, torch.eq(result, 0), 0)
    scaled = self * torch.pow(torch.abs(self), p - 2) * (grad / torch.pow(result, p - 1))
    return torch.masked_fill(scaled, torch.eq(result, 0), 0)


def d_vector_norm(grad: Tensor, self: Tensor, ord: number, dim: Optional[List[int]], keepdim: bool, result: Tensor) -> Tensor:
    return _norm_backward(_restore(grad, self, dim, keepdim).to(torch.real(self).dtype), self, float(ord), dim,
                          _restore(result, self, dim, keepdim).to(torch.real(self).dtype))


def d_norm__Scalar(grad: Tensor, self: Tensor, p: number, result: Tensor) -> Tensor:
    return _norm_backward(grad, self, float(p), None, result)


def d_norm__dim(grad: Tensor, self: Tensor, p: Optional[number], dim: List[int], keepdim: bool, result: Tensor) -> Tensor:
    power = 2.0
    if p is not None:
        power = float(p)
    return _norm_backward(_restore(grad, self, dim, keepdim).to(torch.real(self).dtype), self, power, dim,
                          _restore(result, self, dim, keepdim).to(torch.real(self).dtype))


def d_norm__dtype(grad: Tensor, self: Tensor, p: Optional[number], result: Tensor) -> Tensor:
    power = 2.0
    if p is not None:
        power = float(p)
    return _norm_backward(grad.to(torch.real(self).dtype), self, power, None, result.to(torch.real(self).dtype))


def _centered(self: Tensor, dim: Optional[List[int]]) -> Tensor:
    if self.dim() == 0:
        return torch.zeros_like(self)
    return self - torch.mean(self, _dims_of(self.dim(), dim), True)


def _var_backward(grad: Tensor, self: Tensor, dim: Optional[List[int]], correction: float, keepdim: bool) -> Tensor:
    free = float(_count_of(self, dim)) - correction
    return _restore(grad, self, dim, keepdim) * _centered(self, dim) * (2 / free if free > 0 else math.nan)


def _std_backward(grad: Tensor, result: Tensor, self: Tensor, dim: Optional[List[int]], correction: float,
                  keepdim: bool) -> Tensor:
    inner = torch.masked_fill(grad / (result * 2), torch.eq(result, 0), 0)
    return _var_backward(inner, self, dim, correction, keepdim)


def _mean_backward(grad: Tensor, self: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    return torch.expand_as(_restore(grad, self, dim, keepdim), self) / _count_of(self, dim)


def d_var(grad: Tensor, self: Tensor, unbiased: bool) -> Tensor:
    return _var_backward(grad, self, None, 1.0 if unbiased else 0.0, False)


def d_var__dim(grad: Tensor, self: Tensor, dim: Optional[List[int]], unbiased: bool, keepdim: bool) -> Tensor:
    return _var_backward(grad, self, dim, 1.0 if unbiased else 0.0, keepdim)


def _correction(correction: Optional[number]) -> float:
    if correction is None:
        return 1.0
    return float(correction)


def d_var__correction(grad: Tensor, self: Tensor, dim: Optional[List[int]], correction: Optional[number], keepdim: bool) -> Tensor:
    return _var_backward(grad, self, dim, _correction(correction), keepdim)


def d_std(grad: Tensor, self: Tensor, unbiased: bool, result: Tensor) -> Tensor:
    return _std_backward(grad, result, self, None, 1.0 if unbiased else 0.0, False)


def d_std__dim(grad: Tensor, self: Tensor, dim: Optional[List[int]], unbiased: bool, keepdim: bool, result: Tensor) -> Tensor:
    return _std_backward(grad, result, self, dim, 1.0 if unbiased else 0.0, keepdim)


def d_std__correction(grad: Tensor, self: Tensor, dim: Optional[List[int]], correction: Optional[number], keepdim: bool,
                      result: Tensor) -> Tensor:
    return _std_backward(grad, result, self, dim, _correction(correction), keepdim)


def d_var_mean(grad: Tensor, grad1: Tensor, self: Tensor, unbiased: bool) -> Tensor:
    return _var_backward(grad, self, None, 1.0 if unbiased else 0.0, False) + _mean_backward(grad1, self, None, False)


def d_var_mean__dim(grad: Tensor, grad1: Tensor, self: Tensor, dim: Optional[List[int]], unbiased: bool, keepdim: bool) -> Tensor:
    return _var_backward(grad, self, dim, 1.0 if unbiased else 0.0, keepdim) + _mean_backward(grad1, self, dim, keepdim)


def d_var_mean__correction(grad: Tensor, grad1: Tensor, self: Tensor, dim: Optional[List[int]], correction: Optional[number],
                           keepdim: bool) -> Tensor:
    return _var_backward(grad, self, dim, _correction(correction), keepdim) + _mean_backward(grad1, self, dim, keepdim)


def d_std_mean(grad: Tensor, grad1: Tensor, self: Tensor, unbiased: bool, result: Tensor) -> Tensor:
    return (_std_backward(grad, result, self, None, 1.0 if unbiased else 0.0, False)
            + _mean_backward(grad1, self, None, False))


def d_std_mean__dim(grad: Tensor, grad1: Tensor, self: Tensor, dim: Optional[List[int]], unbiased: bool, keepdim: bool,
                    result: Tensor) -> Tensor:
    return (_std_backward(grad, result, self, dim, 1.0 if unbiased else 0.0, keepdim)
            + _mean_backward(grad1, self, dim, keepdim))


def d_std_mean__correction(grad: Tensor, grad1: Tensor, self: Tensor, dim: Optional[List[int]], correction: Optional[number],
                           keepdim: bool, result: Tensor) -> Tensor:
    return (_std_backward(grad, result, self, dim, _correction(correction), keepdim)
            + _mean_backward(grad1, self, dim, keepdim))


# ---- of segments ----

def _segments(data: Tensor, lengths: Optional[Tensor], offsets: Optional[Tensor], axis: int) -> Tuple[Tensor, Tensor]:
    """Which segment each element is of, as wide as data, and the segments' lengths."""
    if lengths is not None:
        counts = lengths
    else:
        assert offsets is not None
        counts = torch.diff(offsets)
    ends = torch.cumsum(counts, axis)
    places = torch.expand(torch.arange(data.size(axis), dtype=ends.dtype), torch.size(data)[:axis + 1]).contiguous()
    own = torch.searchsorted(ends, places, right=True)
    shape = [own.size(d) if d <= axis else 1 for d in range(data.dim())]
    return torch.expand(torch.reshape(own, shape), torch.size(data)), counts


def d_segment_reduce(grad: Tensor, data: Tensor, reduce: str, lengths: Optional[Tensor], offsets: Optional[Tensor], axis: int,
                     unsafe: bool, initial: Optional[number], result: Tensor) -> Tensor:
    index, counts = _segments(data, lengths, offsets, axis)
    if reduce == "sum":
        return torch.gather(grad, axis, index)
    if reduce == "mean":
        shape = [counts.size(d) if d <= axis else 1 for d in range(data.dim())]
        return torch.gather(grad / torch.reshape(counts, shape).to(grad.dtype), axis, index)
    if reduce == "prod":
        # a zero's gradient is the product of the others, which is zero where there is another zero
        zero = torch.eq(data, 0)
        zeros = torch.gather(torch.scatter_add(torch.zeros_like(result), axis, index, zero.to(data.dtype)), axis, index)
        filled = torch.masked_fill(data, zero, 1)
        others = torch.segment_reduce(filled, reduce, lengths=lengths, offsets=offsets, axis=axis, unsafe=unsafe, initial=initial)
        shared = torch.gather(grad * others, axis, index) / filled
        return torch.masked_fill(shared, torch.gt(zeros, zero.to(data.dtype)), 0)
    hit = torch.logical_or(torch.eq(data, torch.gather(result, axis, index)), torch.isnan(data)).to(data.dtype)
    hits = torch.scatter_add(torch.zeros_like(result), axis, index, hit)
    return hit * torch.gather(grad / torch.clamp_min(hits, 1), axis, index)


# ---- along a line ----

def _sum_behind(x: Tensor, dim: int) -> Tensor:
    # of each element and all that follow
    if x.dim() == 0:
        return x
    return torch.flip(torch.cumsum(torch.flip(x, [dim]), dim), [dim])


def d_cumsum(grad: Tensor, self: Tensor, dim: int) -> Tensor:
    return _sum_behind(grad, dim).to(self.dtype)


def d_cumprod(grad: Tensor, self: Tensor, dim: int, result: Tensor) -> Tensor:
    if self.dim() == 0:
        return grad.to(self.dtype)
    x, g, y = self, grad.to(self.dtype), result.to(self.dtype)
    zero = torch.eq(x, 0)
    if not bool(torch.any(zero)):
        return _sum_behind(g * y, dim) / x
    # with zeros: each element in turn, times the products from it on
    length = x.size(dim)
    parts: List[Tensor] = []
    before = torch.ones_like(torch.narrow(x, dim, 0, 1))
    for i in range(length):
        if i + 1 < length:
            rest = torch.cumprod(torch.narrow(x, dim, i + 1, length - i - 1), dim)
            behind = torch.sum(torch.narrow(g, dim, i + 1, length - i - 1) * rest, [dim], True)
        else:
            behind = torch.zeros_like(before)
        parts.append(before * (torch.narrow(g, dim, i, 1) + behind))
        before = before * torch.narrow(x, dim, i, 1)
    return torch.cat(parts, dim)


def d_logcumsumexp(grad: Tensor, self: Tensor, dim: int, result: Tensor) -> Tensor:
    if self.dim() == 0:
        return grad
    # sum over j >= i of grad_j exp(x_i - y_j), in logarithms where either sign would overflow
    if torch.is_complex(grad):
        return torch.exp(torch.flip(torch.logcumsumexp(torch.flip(torch.log(grad) - result, [dim]), dim), [dim]) + self)
    down = torch.full_like(grad, -math.inf)
    positive = torch.where(torch.gt(grad, 0), torch.log(torch.abs(grad)), down)
    negative = torch.where(torch.lt(grad, 0), torch.log(torch.abs(grad)), down)
    up = torch.flip(torch.logcumsumexp(torch.flip(positive - result, [dim]), dim), [dim])
    low = torch.flip(torch.logcumsumexp(torch.flip(negative - result, [dim]), dim), [dim])
    return torch.exp(up + self) - torch.exp(low + self)


def d_softmax(grad: Tensor, self: Tensor, dim: int, result: Tensor) -> Tensor:
    product = grad * result
    if self.dim() == 0:
        return torch.zeros_like(self)
    return (product - result * torch.sum(product, [dim], True)).to(self.dtype)


def d_log_softmax(grad: Tensor, self: Tensor, dim: int, result: Tensor) -> Tensor:
    if self.dim() == 0:
        return torch.zeros_like(self)
    return (grad - torch.exp(result) * torch.sum(grad, [dim], True)).to(self.dtype)
