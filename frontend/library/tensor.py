"""The long tail of tensor operators: functions of the core operators, named as PyTorch names them.

`name__overload` is the overload name.overload; a function without a suffix is the one without."""
import math
from typing import List, Optional, Tuple

import torch
from torch import Tensor


def equal(self: Tensor, other: Tensor) -> bool:
    if self.size() != other.size():
        return False
    return bool(torch.all(torch.eq(self, other)))


# ---- copies of views ----
def diagonal_copy(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    return torch.clone(torch.diagonal(self, offset, dim1, dim2))


def unbind_copy__int(self: Tensor, dim: int = 0) -> List[Tensor]:
    result: List[Tensor] = []
    for t in torch.unbind(self, dim):
        result.append(torch.clone(t))
    return result


def split_copy__Tensor(self: Tensor, split_size: int, dim: int = 0) -> List[Tensor]:
    result: List[Tensor] = []
    for t in torch.split(self, split_size, dim):
        result.append(torch.clone(t))
    return result


def split_with_sizes_copy(self: Tensor, split_sizes: List[int], dim: int = 0) -> List[Tensor]:
    result: List[Tensor] = []
    for t in torch.split_with_sizes(self, split_sizes, dim):
        result.append(torch.clone(t))
    return result


def as_strided_copy(self: Tensor, size: List[int], stride: List[int], storage_offset: Optional[int] = None) -> Tensor:
    return torch.clone(torch.as_strided(self, size, stride, storage_offset))


def view_copy(self: Tensor, size: List[int]) -> Tensor:
    return torch.clone(torch.reshape(self, size))


def expand_copy(self: Tensor, size: List[int], *, implicit: bool = False) -> Tensor:
    return torch.clone(torch.expand(self, size))


def squeeze_copy(self: Tensor) -> Tensor:
    return torch.clone(torch.squeeze(self))


def squeeze_copy__dim(self: Tensor, dim: int) -> Tensor:
    return torch.clone(torch.squeeze(self, dim))


def squeeze_copy__dims(self: Tensor, dim: List[int]) -> Tensor:
    return torch.clone(torch.squeeze(self, dim))


def unsqueeze_copy(self: Tensor, dim: int) -> Tensor:
    return torch.clone(torch.unsqueeze(self, dim))


def permute_copy(self: Tensor, dims: List[int]) -> Tensor:
    return torch.clone(torch.permute(self, dims))


def t_copy(self: Tensor) -> Tensor:
    return torch.clone(torch.t(self))


def transpose_copy__int(self: Tensor, dim0: int, dim1: int) -> Tensor:
    return torch.clone(torch.transpose(self, dim0, dim1))


def slice_copy__Tensor(self: Tensor, dim: int = 0, start: Optional[int] = None, end: Optional[int] = None,
                       step: int = 1) -> Tensor:
    return torch.clone(torch.slice(self, dim, start, end, step))


def select_copy__int(self: Tensor, dim: int, index: int) -> Tensor:
    return torch.clone(torch.select(self, dim, index))


def unfold_copy(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    return torch.clone(torch.unfold(self, dimension, size, step))


def alias_copy(self: Tensor) -> Tensor:
    return torch.clone(self)


def detach_copy(self: Tensor) -> Tensor:
    return torch.clone(torch.detach(self))


def narrow_copy(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    return torch.clone(torch.narrow(self, dim, start, length))


# ---- a changed view of a copy ----
def slice_scatter(self: Tensor, src: Tensor, dim: int = 0, start: Optional[int] = None, end: Optional[int] = None,
                  step: int = 1) -> Tensor:
    result = torch.clone(self)
    torch.copy_(torch.slice(result, dim, start, end, step), src)
    return result


def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    result = torch.clone(self)
    torch.copy_(torch.select(result, dim, index), src)
    return result


def diagonal_scatter(self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    result = torch.clone(self)
    torch.copy_(torch.diagonal(result, offset, dim1, dim2), src)
    return result


def as_strided_scatter(self: Tensor, src: Tensor, size: List[int], stride: List[int],
                       storage_offset: Optional[int] = None) -> Tensor:
    result = torch.clone(self)
    torch.copy_(torch.as_strided(result, size, stride, storage_offset), src)
    return result


# ---- stacking and splitting ----
def atleast_1d(self: Tensor) -> Tensor:
    return torch.reshape(self, [1]) if torch.dim(self) == 0 else self


def atleast_2d(self: Tensor) -> Tensor:
    if torch.dim(self) == 0:
        return torch.reshape(self, [1, 1])
    if torch.dim(self) == 1:
        return torch.unsqueeze(self, 0)
    return self


def atleast_3d(self: Tensor) -> Tensor:
    if torch.dim(self) == 0:
        return torch.reshape(self, [1, 1, 1])
    if torch.dim(self) == 1:
        return torch.unsqueeze(torch.unsqueeze(self, 0), 2)
    if torch.dim(self) == 2:
        return torch.unsqueeze(self, 2)
    return self


def atleast_1d__Sequence(tensors: List[Tensor]) -> List[Tensor]:
    return [atleast_1d(t) for t in tensors]


def atleast_2d__Sequence(tensors: List[Tensor]) -> List[Tensor]:
    return [atleast_2d(t) for t in tensors]


def atleast_3d__Sequence(tensors: List[Tensor]) -> List[Tensor]:
    return [atleast_3d(t) for t in tensors]


def hstack(tensors: List[Tensor]) -> Tensor:
    parts = [atleast_1d(t) for t in tensors]
    return torch.cat(parts, 0 if torch.dim(parts[0]) == 1 else 1)


def vstack(tensors: List[Tensor]) -> Tensor:
    return torch.cat([atleast_2d(t) for t in tensors], 0)


def row_stack(tensors: List[Tensor]) -> Tensor:
    return vstack(tensors)


def dstack(tensors: List[Tensor]) -> Tensor:
    return torch.cat([atleast_3d(t) for t in tensors], 2)


def column_stack(tensors: List[Tensor]) -> Tensor:
    parts: List[Tensor] = []
    for t in tensors:
        parts.append(torch.reshape(t, [torch.numel(t), 1]) if torch.dim(t) <= 1 else t)
    return torch.cat(parts, 1)


def _check_split(name: str, self: Tensor, least: int) -> None:
    if torch.dim(self) < least:
        raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {torch.dim(self)} dimensions!")


def _split_evenly(name: str, self: Tensor, sections: int, dim: int) -> List[Tensor]:
    if sections == 0 or torch.size(self, dim) % sections != 0:
        raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {torch.size(self, dim)} "
                           f"is not divisible by the split_size {sections}!")
    return torch.tensor_split(self, sections, dim)


def hsplit__int(self: Tensor, sections: int) -> List[Tensor]:
    _check_split("hsplit", self, 1)
    return _split_evenly("hsplit", self, sections, 0 if torch.dim(self) == 1 else 1)


def hsplit__array(self: Tensor, indices: List[int]) -> List[Tensor]:
    _check_split("hsplit", self, 1)
    return torch.tensor_split(self, indices, 0 if torch.dim(self) == 1 else 1)


def vsplit__int(self: Tensor, sections: int) -> List[Tensor]:
    _check_split("vsplit", self, 2)
    return _split_evenly("vsplit", self, sections, 0)


def vsplit__array(self: Tensor, indices: List[int]) -> List[Tensor]:
    _check_split("vsplit", self, 2)
    return torch.tensor_split(self, indices, 0)


def dsplit__int(self: Tensor, sections: int) -> List[Tensor]:
    _check_split("dsplit", self, 3)
    return _split_evenly("dsplit", self, sections, 2)


def dsplit__array(self: Tensor, indices: List[int]) -> List[Tensor]:
    _check_split("dsplit", self, 3)
    return torch.tensor_split(self, indices, 2)


def block_diag(tensors: List[Tensor]) -> Tensor:
    columns = 0
    for t in tensors:
        if torch.dim(t) > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions, but got {torch.dim(t)}")
        columns += torch.size(atleast_2d(t), 1)
    rows: List[Tensor] = []
    column = 0
    for t in tensors:
        m = atleast_2d(t)
        w = torch.size(m, 1)
        rows.append(torch.constant_pad_nd(m, [column, columns - column - w], 0))
        column += w
    return torch.cat(rows)


def meshgrid(tensors: List[Tensor]) -> List[Tensor]:
    return meshgrid__indexing(tensors, indexing="ij")


def meshgrid__indexing(tensors: List[Tensor], *, indexing: str) -> List[Tensor]:
    swap = indexing == "xy" and len(tensors) >= 2
    order = [1 - i if swap and i < 2 else i for i in range(len(tensors))]
    inputs = [tensors[i] for i in order]
    if indexing != "ij" and indexing != "xy":
        raise RuntimeError(f"torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {indexing}")
    for t in inputs:
        if torch.dim(t) > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t}")
    sizes = [torch.numel(t) for t in inputs]
    result: List[Tensor] = []
    for i in range(len(inputs)):
        shape = [1 for _ in inputs]
        shape[i] = -1
        result.append(torch.expand(torch.reshape(inputs[i], shape), sizes))
    return [result[i] for i in order]


def cartesian_prod(tensors: List[Tensor]) -> Tensor:
    for t in tensors:
        if torch.dim(t) != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {t.size()}")
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(tensors)
    return torch.stack([torch.flatten(g) for g in grids], 1)


def combinations(self: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    if r == 0:
        return torch.empty([0], dtype=self.dtype)
    count = torch.numel(self)
    grids = meshgrid([torch.arange(count) for _ in range(r)])
    mask = torch.ones_like(grids[0], dtype=torch.bool)
    for i in range(r - 1):
        if with_replacement:
            mask = torch.logical_and(mask, grids[i] <= grids[i + 1])
        else:
            mask = torch.logical_and(mask, grids[i] < grids[i + 1])
    return torch.stack([torch.index_select(self, 0, torch.masked_select(g, mask)) for g in grids], 1)


def kron(self: Tensor, other: Tensor) -> Tensor:
    rank = max(torch.dim(self), torch.dim(other))
    left: List[int] = []
    right: List[int] = []
    out: List[int] = []
    for i in range(rank):
        a = i - (rank - torch.dim(self))
        b = i - (rank - torch.dim(other))
        m = torch.size(self, a) if a >= 0 else 1
        n = torch.size(other, b) if b >= 0 else 1
        left.append(m)
        left.append(1)
        right.append(1)
        right.append(n)
        out.append(m * n)
    return torch.reshape(torch.reshape(self, left) * torch.reshape(other, right), out)


def diagflat(self: Tensor, offset: int = 0) -> Tensor:
    return torch.diag_embed(torch.reshape(self, [-1]), offset)


def ravel(self: Tensor) -> Tensor:
    return torch.reshape(torch.contiguous(self), [-1])


def rot90(self: Tensor, k: int = 1, dims: List[int] = [0, 1]) -> Tensor:
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if torch.dim(self) < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {torch.dim(self)}")
    if dims[0] % torch.dim(self) == dims[1] % torch.dim(self):
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    turns = k % 4
    if turns == 1:
        return torch.transpose(torch.flip(self, [dims[1]]), dims[0], dims[1])
    if turns == 2:
        return torch.flip(self, dims)
    if turns == 3:
        return torch.transpose(torch.flip(self, [dims[0]]), dims[0], dims[1])
    return torch.clone(self)


def fliplr(self: Tensor) -> Tensor:
    if torch.dim(self) < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return torch.flip(self, [1])


def flipud(self: Tensor) -> Tensor:
    if torch.dim(self) < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return torch.flip(self, [0])


def argwhere(self: Tensor) -> Tensor:
    return torch.nonzero(self)


def channel_shuffle(self: Tensor, groups: int) -> Tensor:
    sizes = torch.size(self)
    inner = [sizes[0], groups, sizes[1] // groups] + sizes[2:]
    return torch.reshape(torch.transpose(torch.reshape(self, inner), 1, 2), sizes)


def sum_to_size(self: Tensor, size: List[int]) -> Tensor:
    if len(size) == 0:
        return torch.sum(self)
    lead = torch.dim(self) - len(size)
    dims: List[int] = []
    for i in range(torch.dim(self)):
        if i < lead or (size[i - lead] == 1 and torch.size(self, i) != 1):
            dims.append(i)
    result = self
    if len(dims) > 0:
        result = torch.sum(self, dims, True)
    return torch.view(result, size)


# ---- arithmetic ----
def addbmm_(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: number = 1, alpha: number = 1) -> Tensor:
    # alone among its kind: a self that was broadcast takes the size of the result
    result = torch.addbmm(self, batch1, batch2, beta=beta, alpha=alpha)
    if torch.size(self) != torch.size(result):
        torch.resize_(self, torch.size(result))
    return torch.copy_(self, result)


def to__dtype_layout(self: Tensor, *, dtype: Optional[int] = None, layout: Optional[int] = None,
                     device: Optional[torch.device] = None, pin_memory: Optional[bool] = None, non_blocking: bool = False,
                     copy: bool = False, memory_format: Optional[int] = None) -> Tensor:
    if dtype is None:
        return torch.to(self, self.dtype, non_blocking, copy, memory_format)
    return torch.to(self, dtype, non_blocking, copy, memory_format)


def true_divide__Tensor(self: Tensor, other: Tensor) -> Tensor:
    return torch.div(self, other)


def true_divide__Scalar(self: Tensor, other: number) -> Tensor:
    return torch.div(self, other)


def glu(self: Tensor, dim: int = -1) -> Tensor:
    if torch.size(self, dim) % 2 != 0:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {torch.size(self, dim)}")
    a, b = torch.chunk(self, 2, dim)
    if self.dtype == torch.float16 or self.dtype == torch.bfloat16:  # one kernel, rounded once
        return torch.to(torch.to(a, torch.float32) * torch.sigmoid(torch.to(b, torch.float32)), self.dtype)
    return a * torch.sigmoid(b)


def linalg_norm(self: Tensor, ord: Optional[number] = None, dim: Optional[List[int]] = None, keepdim: bool = False, *,
                dtype: Optional[int] = None) -> Tensor:
    x = self
    if dtype is not None:
        x = torch.to(self, dtype)
    if ord is None:
        if dim is None:
            result = torch.linalg_vector_norm(torch.reshape(x, [-1]), 2)
            if keepdim:
                return torch.reshape(result, [1 for _ in range(torch.dim(x))])
            return result
        return torch.linalg_vector_norm(x, 2, dim, keepdim)
    if dim is None:
        if torch.dim(x) == 1:
            return torch.linalg_vector_norm(x, ord, None, keepdim)
        return linalg_matrix_norm(x, ord, [-2, -1], keepdim)
    if len(dim) == 1:
        return torch.linalg_vector_norm(x, ord, dim, keepdim)
    return linalg_matrix_norm(x, ord, dim, keepdim)


def linalg_norm__ord_str(self: Tensor, ord: str, dim: Optional[List[int]] = None, keepdim: bool = False, *,
                         dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        return linalg_matrix_norm__str_ord(self, ord, [-2, -1], keepdim, dtype=dtype)
    return linalg_matrix_norm__str_ord(self, ord, dim, keepdim, dtype=dtype)


# Of nothing the largest is 0, and the least an error.
def _largest(values: Tensor, dim: int, keepdim: bool) -> Tensor:
    if torch.size(values, dim) == 0:
        return torch.sum(values, [dim], keepdim)
    return torch.amax(values, [dim], keepdim)


def linalg_matrix_norm(self: Tensor, ord: number, dim: List[int] = [-2, -1], keepdim: bool = False, *,
                       dtype: Optional[int] = None) -> Tensor:
    x = self
    if dtype is not None:
        x = torch.to(self, dtype)
    rank = torch.dim(x)
    rows = dim[0] % rank
    columns = dim[1] % rank
    order = float(ord)
    largest = order > 0
    size = abs(order)
    if size == 2.0:
        values = torch.linalg_svdvals(torch.movedim(x, [rows, columns], [-2, -1]))
        result = _largest(values, -1, False) if largest else torch.amin(values, [-1])
        if keepdim:
            return torch.unsqueeze(torch.unsqueeze(result, min(rows, columns)), max(rows, columns))
        return result
    if size != 1.0 and size != float("inf"):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    summed = rows if size == 1.0 else columns
    kept = columns if size == 1.0 else rows
    sums = torch.sum(torch.abs(x), [summed], True)
    result = _largest(sums, kept, True) if largest else torch.amin(sums, [kept], True)
    if keepdim:
        return result
    return torch.squeeze(torch.squeeze(result, max(rows, columns)), min(rows, columns))


def linalg_matrix_norm__str_ord(self: Tensor, ord: str = "fro", dim: List[int] = [-2, -1], keepdim: bool = False, *,
                                dtype: Optional[int] = None) -> Tensor:
    x = self
    if dtype is not None:
        x = torch.to(self, dtype)
    if ord == "fro":
        return torch.linalg_vector_norm(x, 2, dim, keepdim)
    if ord != "nuc":
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    rank = torch.dim(x)
    rows = dim[0] % rank
    columns = dim[1] % rank
    result = torch.sum(torch.linalg_svdvals(torch.movedim(x, [rows, columns], [-2, -1])), [-1])
    if keepdim:
        return torch.unsqueeze(torch.unsqueeze(result, min(rows, columns)), max(rows, columns))
    return result


def linalg_cond(self: Tensor, p: Optional[number] = None) -> Tensor:
    if torch.numel(self) == 0:
        return torch.sum(torch.abs(self), [-2, -1])
    order = 2.0 if p is None else float(p)
    if abs(order) == 2.0:
        values = torch.linalg_svdvals(self)
        first = torch.select(values, -1, 0)
        last = torch.select(values, -1, -1)
        return first / last if order == 2.0 else last / first
    if torch.size(self, -1) != torch.size(self, -2):
        raise RuntimeError("linalg.cond: with a norm other than 2 or -2 the input must be square")
    inverse, info = torch.linalg_inv_ex(self)
    result = linalg_matrix_norm(self, order) * linalg_matrix_norm(inverse, order)
    return torch.masked_fill(result, info != 0, float("inf"))


def linalg_cond__p_str(self: Tensor, p: str) -> Tensor:
    if torch.numel(self) == 0:
        return torch.sum(torch.abs(self), [-2, -1])
    if p == "nuc":
        values = torch.linalg_svdvals(self)
        return torch.sum(values, [-1]) * torch.sum(1 / values, [-1])
    inverse, info = torch.linalg_inv_ex(self)
    result = linalg_matrix_norm__str_ord(self, p) * linalg_matrix_norm__str_ord(inverse, p)
    return torch.masked_fill(result, info != 0, float("inf"))


def rsub__Tensor(self: Tensor, other: Tensor, *, alpha: number = 1) -> Tensor:
    return torch.sub(other, self, alpha=alpha)


def rsub__Scalar(self: Tensor, other: number, alpha: number = 1) -> Tensor:
    return torch.add(torch.mul(self, -alpha), other)


def positive(self: Tensor) -> Tensor:
    return self


def square(self: Tensor) -> Tensor:
    return torch.pow(self, 2)


def rad2deg(self: Tensor) -> Tensor:
    return torch.mul(self, 180.0 / math.pi)


def deg2rad(self: Tensor) -> Tensor:
    return torch.mul(self, math.pi / 180.0)


def float_power__Tensor_Tensor(self: Tensor, exponent: Tensor) -> Tensor:
    if torch.is_complex(self) or torch.is_complex(exponent):
        return torch.pow(torch.to(self, torch.complex128), torch.to(exponent, torch.complex128))
    return torch.pow(torch.to(self, torch.float64), torch.to(exponent, torch.float64))


def float_power__Tensor_Scalar(self: Tensor, exponent: number) -> Tensor:
    if torch.is_complex(self):
        return torch.pow(torch.to(self, torch.complex128), exponent)
    return torch.pow(torch.to(self, torch.float64), exponent)


def float_power__Scalar(self: number, exponent: Tensor) -> Tensor:
    if torch.is_complex(exponent):
        return torch.pow(self, torch.to(exponent, torch.complex128))
    return torch.pow(self, torch.to(exponent, torch.float64))


def isclose(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    if rtol < 0:
        raise RuntimeError(f"rtol must be greater than or equal to zero, but got {rtol}")
    if atol < 0:
        raise RuntimeError(f"atol must be greater than or equal to zero, but got {atol}")
    close = self == other
    if equal_nan and (torch.is_floating_point(self) or torch.is_complex(self)):
        close = torch.logical_or(close, torch.logical_and(self != self, other != other))
    if rtol == 0.0 and atol == 0.0:
        return close
    a = self
    b = other
    if not torch.is_floating_point(self) and not torch.is_complex(self):
        a = torch.to(self, torch.float64)
        b = torch.to(other, torch.float64)
    allowed = torch.add(torch.abs(torch.mul(b, rtol)), atol)
    distance = torch.abs(torch.sub(a, b))
    finite = torch.logical_and(torch.isfinite(distance), distance <= allowed)
    return torch.logical_or(close, finite)


def allclose(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    return bool(torch.item(torch.all(isclose(self, other, rtol, atol, equal_nan))))


def isreal(self: Tensor) -> Tensor:
    if torch.is_complex(self):
        return torch.imag(self) == 0
    return torch.ones_like(self, dtype=torch.bool)


def inner(self: Tensor, other: Tensor) -> Tensor:
    if torch.dim(self) == 0 or torch.dim(other) == 0:
        return self * other
    return torch.tensordot(self, other, [torch.dim(self) - 1], [torch.dim(other) - 1])


def outer(self: Tensor, vec2: Tensor) -> Tensor:
    if torch.dim(self) != 1:
        raise RuntimeError(f"outer: Expected 1-D argument self, but got {torch.dim(self)}-D")
    if torch.dim(vec2) != 1:
        raise RuntimeError(f"outer: Expected 1-D argument vec2, but got {torch.dim(vec2)}-D")
    return torch.mul(torch.unsqueeze(self, 1), vec2)


def ger(self: Tensor, vec2: Tensor) -> Tensor:
    return outer(self, vec2)


def addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: number = 1, alpha: number = 1) -> Tensor:
    product = outer(vec1, vec2)
    if self.dtype == torch.bool and vec1.dtype == torch.bool and vec2.dtype == torch.bool:
        product = outer(vec1, vec2)
        if not bool(alpha):
            product = torch.zeros_like(product)
        return torch.logical_or(product, self) if bool(beta) else torch.logical_or(product, torch.zeros_like(self))
    if vec1.dtype == torch.float16 or vec1.dtype == torch.bfloat16:  # numbers are rounded, and each step
        scale = torch.full([], alpha, dtype=vec1.dtype)
        product = outer(torch.mul(vec1, scale), vec2)
        return product if beta == 0 else torch.add(torch.mul(self, torch.full([], beta, dtype=vec1.dtype)), product)
    product = torch.mul(outer(vec1, vec2), alpha)
    if beta == 0:
        return product
    return torch.add(torch.mul(self, beta), product)


def cross(self: Tensor, other: Tensor, dim: Optional[int] = None) -> Tensor:
    if dim is None:
        for i in range(torch.dim(self)):
            if torch.size(self, i) == 3:
                return torch.linalg_cross(self, other, dim=i)
        raise RuntimeError("no dimension of size 3 in input")
    return torch.linalg_cross(self, other, dim=dim)


def linalg_cross(self: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    if torch.dim(self) != torch.dim(other):
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if torch.size(self, dim) != 3 or torch.size(other, dim) != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {torch.size(self, dim)} and "
                           f"{torch.size(other, dim)}")
    a, b = torch.broadcast_tensors([self, other])
    a0, a1, a2 = torch.unbind(a, dim)
    b0, b1, b2 = torch.unbind(b, dim)
    return torch.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], dim)


def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    if torch.is_complex(x):
        return torch.sum(torch.conj_physical(x) * y, [dim])
    return torch.sum(x * y, [dim])


def vdot(self: Tensor, other: Tensor) -> Tensor:
    if torch.is_complex(self):
        return torch.dot(torch.conj_physical(self), other)
    return torch.dot(self, other)


def trace(self: Tensor) -> Tensor:
    if torch.dim(self) != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {torch.dim(self)}")
    return torch.sum(torch.diagonal(self))


def dist(self: Tensor, other: Tensor, p: number = 2) -> Tensor:
    return torch.norm(self - other, p)


def renorm(self: Tensor, p: number, dim: int, maxnorm: number) -> Tensor:
    if torch.dim(self) < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {torch.dim(self)} dimensions")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    d = dim + torch.dim(self) if dim < 0 else dim
    if d < 0 or d >= torch.dim(self):
        raise IndexError(f"Dimension out of range (expected to be in range of [{-torch.dim(self)}, {torch.dim(self) - 1}], but got {dim})")
    others: List[int] = []
    for i in range(torch.dim(self)):
        if i != d:
            others.append(i)
    length = torch.linalg_vector_norm(self, p, others, True)
    factor = torch.where(length > maxnorm, maxnorm / (length + 1e-7), torch.ones_like(length))
    return self * factor


def trapezoid__x(y: Tensor, x: Tensor, *, dim: int = -1) -> Tensor:
    if torch.size(y, dim) == 0:
        return torch.sum(y, [dim], dtype=y.dtype)
    return torch.sum(_trapezoid_areas(y, x, dim), [dim])


def trapezoid__dx(y: Tensor, *, dx: number = 1, dim: int = -1) -> Tensor:
    if torch.size(y, dim) == 0:
        return torch.sum(y, [dim], dtype=y.dtype)
    ends = torch.select(y, dim, 0) + torch.select(y, dim, -1)
    return (torch.sum(y, [dim]) - ends * 0.5) * dx


def trapz__x(y: Tensor, x: Tensor, *, dim: int = -1) -> Tensor:
    return trapezoid__x(y, x, dim=dim)


def trapz__dx(y: Tensor, *, dx: float = 1, dim: int = -1) -> Tensor:
    return trapezoid__dx(y, dx=dx, dim=dim)


def cumulative_trapezoid__x(y: Tensor, x: Tensor, *, dim: int = -1) -> Tensor:
    return torch.cumsum(_trapezoid_areas(y, x, dim), dim)


def cumulative_trapezoid__dx(y: Tensor, *, dx: number = 1, dim: int = -1) -> Tensor:
    left, right = _trapezoid_sides(y, dim)
    return torch.cumsum(left + right, dim) * (dx / 2.0)


def _trapezoid_sides(y: Tensor, dim: int) -> Tuple[Tensor, Tensor]:
    n = torch.size(y, dim)
    if n == 0:
        return torch.narrow(y, dim, 0, 0), torch.narrow(y, dim, 0, 0)
    return torch.narrow(y, dim, 0, n - 1), torch.narrow(y, dim, 1, n - 1)


def _trapezoid_areas(y: Tensor, x: Tensor, dim: int) -> Tensor:
    left, right = _trapezoid_sides(y, dim)
    if torch.size(y, dim) == 0:
        return left / 2.0
    if torch.dim(x) == 1:
        steps = torch.narrow(x, 0, 1, torch.size(x, 0) - 1) - torch.narrow(x, 0, 0, torch.size(x, 0) - 1)
        shape = [1 for _ in range(torch.dim(y))]
        shape[dim] = torch.numel(steps)
        steps = torch.view(steps, shape)
    else:
        steps = torch.narrow(x, dim, 1, torch.size(x, dim) - 1) - torch.narrow(x, dim, 0, torch.size(x, dim) - 1)
    return steps * (left + right) / 2.0


def diff(self: Tensor, n: int = 1, dim: int = -1, prepend: Optional[Tensor] = None,
         append: Optional[Tensor] = None) -> Tensor:
    if torch.dim(self) == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return torch.clone(self)
    x = self
    if prepend is not None and append is not None:
        x = torch.cat([prepend, x, append], dim)
    elif prepend is not None:
        x = torch.cat([prepend, x], dim)
    elif append is not None:
        x = torch.cat([x, append], dim)
    for _ in range(min(n, torch.size(x, dim))):
        count = torch.size(x, dim)
        after = torch.narrow(x, dim, 1, count - 1)
        before = torch.narrow(x, dim, 0, count - 1)
        if x.dtype == torch.bool:
            x = torch.logical_xor(after, before)
        else:
            x = after - before
    return x


def _check_cov_weights(weights: Tensor, name: str, count: int):
    if torch.dim(weights) > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
                           f"{torch.dim(weights)} dimensions")
    if torch.numel(weights) != count:
        raise RuntimeError(f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                           f"{torch.numel(weights)} != {count}")
    if count > 0 and bool(torch.any(weights < 0)):
        raise RuntimeError(f"cov(): {name} cannot be negative")


def cov(self: Tensor, *, correction: int = 1, fweights: Optional[Tensor] = None,
        aweights: Optional[Tensor] = None) -> Tensor:
    if torch.dim(self) > 2:
        raise RuntimeError("cov(): expected input to have two or fewer dimensions but got an input with "
                           f"{torch.dim(self)} dimensions")
    x = torch.unsqueeze(self, 0) if torch.dim(self) < 2 else self
    if torch.dim(self) == 0:
        x = torch.reshape(self, [1, 1])
    count = torch.size(x, 1)
    w: Optional[Tensor] = None
    if fweights is not None:
        _check_cov_weights(fweights, "fweights", count)
        if torch.is_floating_point(fweights) or torch.is_complex(fweights) or fweights.dtype == torch.bool:
            raise RuntimeError("cov(): expected fweights to have integral dtype")
        w = fweights
    if aweights is not None:
        _check_cov_weights(aweights, "aweights", count)
        if not torch.is_floating_point(aweights):
            raise RuntimeError("cov(): expected aweights to have floating point dtype")
        w = aweights if w is None else w * aweights
    if w is None:
        norm = torch.scalar_tensor(float(max(count - correction, 0)))
        mean = torch.sum(x, [1], True) / count
        c = x - mean
        if torch.is_complex(x):
            return torch.squeeze(torch.matmul(c, torch.transpose(torch.conj_physical(c), 0, 1)) / norm)
        return torch.squeeze(torch.matmul(c, torch.transpose(c, 0, 1)) / norm)
    total = torch.sum(w)
    mean = torch.sum(x * w, [1], True) / total
    if correction != 0 and aweights is not None:
        scaled = w * aweights
        norm = total - correction * torch.sum(scaled) / total
    else:
        norm = total - correction
    norm = torch.clamp_min(torch.to(norm, torch.float64), 0.0)
    c = x - mean
    weighted = torch.transpose(c * w, 0, 1)
    if torch.is_complex(x):
        weighted = torch.conj_physical(weighted)
    return torch.squeeze(torch.true_divide(torch.matmul(c, weighted), torch.to(norm, c.dtype)))


def corrcoef(self: Tensor) -> Tensor:
    c = cov(self)
    if torch.dim(c) == 0:
        return c / c
    d = torch.diagonal(c)
    deviation = torch.sqrt(torch.real(d) if torch.is_complex(c) else d)
    r = c / torch.unsqueeze(deviation, 1) / torch.unsqueeze(deviation, 0)
    if torch.is_complex(r):
        return torch.complex(torch.clamp(torch.real(r), -1, 1), torch.clamp(torch.imag(r), -1, 1))
    return torch.clamp(r, -1, 1)


def quantile(self: Tensor, q: Tensor, dim: Optional[int] = None, keepdim: bool = False, *,
             interpolation: str = "linear") -> Tensor:
    return _quantile(self, q, dim, keepdim, interpolation, False)


def quantile__scalar(self: Tensor, q: float, dim: Optional[int] = None, keepdim: bool = False, *,
                     interpolation: str = "linear") -> Tensor:
    return _quantile(self, torch.scalar_tensor(q, dtype=self.dtype), dim, keepdim, interpolation, False)


def nanquantile(self: Tensor, q: Tensor, dim: Optional[int] = None, keepdim: bool = False, *,
                interpolation: str = "linear") -> Tensor:
    return _quantile(self, q, dim, keepdim, interpolation, True)


def nanquantile__scalar(self: Tensor, q: float, dim: Optional[int] = None, keepdim: bool = False, *,
                        interpolation: str = "linear") -> Tensor:
    return _quantile(self, torch.scalar_tensor(q, dtype=self.dtype), dim, keepdim, interpolation, True)


def _quantile(self: Tensor, q: Tensor, dim: Optional[int], keepdim: bool, interpolation: str, skip_nan: bool) -> Tensor:
    if self.dtype != torch.float32 and self.dtype != torch.float64:
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if q.dtype != self.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    rank = torch.dim(self)
    d = -1
    if dim is None:
        x = torch.reshape(self, [-1])
    else:
        d = dim + rank if dim < 0 else dim
        x = torch.transpose(torch.unsqueeze(self, -1), d, -1) if rank > 0 else torch.reshape(self, [1])
        if rank > 0:
            x = torch.squeeze(x, d) if not keepdim else x
    ordered, _ = torch.sort(x, -1)
    count = torch.size(ordered, -1)
    flat_q = torch.reshape(q, [-1])
    rows = torch.unsqueeze(ordered, 0)
    target: List[int] = [torch.numel(flat_q)]
    for _ in range(torch.dim(ordered)):
        target.append(1)
    fraction = torch.reshape(flat_q, target)
    is_nan = torch.isnan(ordered)
    if skip_nan:
        last = torch.to(torch.sum(torch.logical_not(is_nan), [-1], True) - 1, ordered.dtype)
        rank_at = torch.clamp_min(fraction * torch.unsqueeze(last, 0), 0)
    else:
        rank_at = fraction * (count - 1)
        # A NaN anywhere makes the result NaN: the last one, since NaN sorts last.
        rank_at = torch.where(torch.unsqueeze(torch.any(is_nan, -1, True), 0),
                              torch.full_like(rank_at, float(count - 1)), rank_at)
    if interpolation == "lower":
        rank_at = torch.floor(rank_at)
    elif interpolation == "higher":
        rank_at = torch.ceil(rank_at)
    elif interpolation == "nearest":
        rank_at = torch.round(rank_at)
    below = torch.floor(rank_at)
    weight = rank_at - below
    shape: List[int] = [torch.numel(flat_q)]
    for i in range(torch.dim(ordered) - 1):
        shape.append(torch.size(ordered, i))
    shape.append(1)
    low_index = torch.expand(torch.to(below, torch.int64), shape)
    high_index = torch.expand(torch.to(torch.ceil(rank_at), torch.int64), shape)
    wide: List[int] = [torch.numel(flat_q)]
    for i in range(torch.dim(ordered)):
        wide.append(torch.size(ordered, i))
    rows = torch.expand(rows, wide)
    low = torch.gather(rows, -1, low_index)
    if interpolation == "linear" or interpolation == "midpoint":
        high = torch.gather(rows, -1, high_index)
        w = torch.full_like(weight, 0.5) if interpolation == "midpoint" else weight
        low = torch.lerp(low, high, torch.expand(w, torch.size(low)))
    result = torch.squeeze(low, -1)
    if keepdim:
        if dim is None:
            ones: List[int] = [torch.numel(flat_q)]
            for _ in range(rank):
                ones.append(1)
            result = torch.reshape(result, ones)
    if torch.dim(q) == 0:
        result = torch.squeeze(result, 0)
    return result


def std_mean(self: Tensor, unbiased: bool = True) -> Tuple[Tensor, Tensor]:
    return torch.std(self, unbiased), torch.mean(self)


def std_mean__dim(self: Tensor, dim: Optional[List[int]], unbiased: bool = True,
                  keepdim: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.std(self, dim, unbiased, keepdim), torch.mean(self, dim, keepdim)


def std_mean__correction(self: Tensor, dim: Optional[List[int]] = None, *, correction: Optional[number] = None,
                         keepdim: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.std(self, dim, correction=correction, keepdim=keepdim), torch.mean(self, dim, keepdim)


def var_mean(self: Tensor, unbiased: bool = True) -> Tuple[Tensor, Tensor]:
    return torch.var(self, unbiased), torch.mean(self)


def var_mean__dim(self: Tensor, dim: Optional[List[int]], unbiased: bool = True,
                  keepdim: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.var(self, dim, unbiased, keepdim), torch.mean(self, dim, keepdim)


def var_mean__correction(self: Tensor, dim: Optional[List[int]] = None, *, correction: Optional[number] = None,
                         keepdim: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.var(self, dim, correction=correction, keepdim=keepdim), torch.mean(self, dim, keepdim)


def nanmean(self: Tensor, dim: Optional[List[int]] = None, keepdim: bool = False, *,
            dtype: Optional[int] = None) -> Tensor:
    count = torch.sum(torch.logical_not(torch.isnan(self)), dim, keepdim)
    return torch.nansum(self, dim, keepdim, dtype=dtype) / count


def gradient__scalarint(self: Tensor, *, spacing: Optional[number] = None, dim: Optional[int] = None,
                        edge_order: int = 1) -> List[Tensor]:
    step = 1.0
    if spacing is not None:
        step = float(spacing)
    result: List[Tensor] = []
    if dim is not None:
        result.append(_gradient(self, step, dim, edge_order))
    else:
        for d in range(torch.dim(self)):
            result.append(_gradient(self, step, d, edge_order))
    return result


def _check_distinct(dims: List[int], rank: int):
    for i in range(len(dims)):
        for j in range(i):
            if dims[i] % rank == dims[j] % rank:
                raise RuntimeError(f"dim {dims[i] % rank} appears multiple times in the list of dims")


def gradient__array(self: Tensor, *, dim: List[int], edge_order: int = 1) -> List[Tensor]:
    _check_distinct(dim, torch.dim(self))
    return [_gradient(self, 1.0, d, edge_order) for d in dim]


def gradient__scalararray(self: Tensor, *, spacing: number, dim: List[int], edge_order: int = 1) -> List[Tensor]:
    _check_distinct(dim, torch.dim(self))
    return [_gradient(self, float(spacing), d, edge_order) for d in dim]


def gradient__scalarrayint(self: Tensor, *, spacing: List[float], dim: Optional[int] = None,
                           edge_order: int = 1) -> List[Tensor]:
    if dim is not None:
        return [_gradient(self, spacing[0], dim, edge_order)]
    return [_gradient(self, spacing[d], d, edge_order) for d in range(torch.dim(self))]


def gradient__scalarrayarray(self: Tensor, *, spacing: List[float], dim: List[int],
                             edge_order: int = 1) -> List[Tensor]:
    _check_distinct(dim, torch.dim(self))
    return [_gradient(self, spacing[i], dim[i], edge_order) for i in range(len(dim))]


def gradient__tensorarrayint(self: Tensor, *, spacing: List[Tensor], dim: Optional[int] = None,
                             edge_order: int = 1) -> List[Tensor]:
    result: List[Tensor] = []
    if dim is not None:
        result.append(_gradient_at(self, spacing[0], dim, edge_order))
    else:
        for d in range(torch.dim(self)):
            result.append(_gradient_at(self, spacing[d], d, edge_order))
    return result


def gradient__tensorarray(self: Tensor, *, spacing: List[Tensor], dim: List[int], edge_order: int = 1) -> List[Tensor]:
    _check_distinct(dim, torch.dim(self))
    result: List[Tensor] = []
    for i in range(len(dim)):
        result.append(_gradient_at(self, spacing[i], dim[i], edge_order))
    return result


def _gradient_at(x: Tensor, places: Tensor, dim: int, edge_order: int) -> Tensor:
    """Second-order differences at uneven places: the derivative of the parabola through three."""
    _check_gradient(x, dim, edge_order)
    n = torch.size(x, dim)
    shape = [1 for _ in range(torch.dim(x))]
    shape[dim] = n - 1
    h = torch.reshape(torch.narrow(places, 0, 1, n - 1) - torch.narrow(places, 0, 0, n - 1), shape)
    a = torch.narrow(h, dim, 0, n - 2)
    b = torch.narrow(h, dim, 1, n - 2)
    left = torch.narrow(x, dim, 0, n - 2)
    middle = torch.narrow(x, dim, 1, n - 2)
    right = torch.narrow(x, dim, 2, n - 2)
    inside = -b / (a * (a + b)) * left + (b - a) / (a * b) * middle + a / (b * (a + b)) * right
    h0 = torch.narrow(h, dim, 0, 1)
    h1 = torch.narrow(h, dim, n - 2, 1)
    x0 = torch.narrow(x, dim, 0, 1)
    x1 = torch.narrow(x, dim, 1, 1)
    y0 = torch.narrow(x, dim, n - 1, 1)
    y1 = torch.narrow(x, dim, n - 2, 1)
    if edge_order == 1:
        return torch.cat([(x1 - x0) / h0, inside, (y0 - y1) / h1], dim)
    g0 = torch.narrow(h, dim, 1, 1)
    g1 = torch.narrow(h, dim, n - 3, 1)
    x2 = torch.narrow(x, dim, 2, 1)
    y2 = torch.narrow(x, dim, n - 3, 1)
    first = -(2 * h0 + g0) / (h0 * (h0 + g0)) * x0 + (h0 + g0) / (h0 * g0) * x1 - h0 / (g0 * (h0 + g0)) * x2
    last = h1 / (g1 * (g1 + h1)) * y2 - (g1 + h1) / (g1 * h1) * y1 + (2 * h1 + g1) / (h1 * (g1 + h1)) * y0
    return torch.cat([first, inside, last], dim)


def _check_gradient(x: Tensor, dim: int, edge_order: int) -> None:
    if edge_order != 1 and edge_order != 2:
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if torch.size(x, dim) < edge_order + 1:
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")


def _gradient(x: Tensor, step: float, dim: int, edge_order: int) -> Tensor:
    _check_gradient(x, dim, edge_order)
    n = torch.size(x, dim)
    inside = (torch.narrow(x, dim, 2, n - 2) - torch.narrow(x, dim, 0, n - 2)) / (2.0 * step)
    a0 = torch.narrow(x, dim, 0, 1)
    a1 = torch.narrow(x, dim, 1, 1)
    b0 = torch.narrow(x, dim, n - 1, 1)
    b1 = torch.narrow(x, dim, n - 2, 1)
    if edge_order == 1:
        left = (a1 - a0) / step
        right = (b0 - b1) / step
    else:
        a2 = torch.narrow(x, dim, 2, 1)
        b2 = torch.narrow(x, dim, n - 3, 1)
        left = (-1.5 * a0 + 2.0 * a1 - 0.5 * a2) / step
        right = (1.5 * b0 - 2.0 * b1 + 0.5 * b2) / step
    return torch.cat([left, inside, right], dim)


def nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    found = torch.nonzero(self)
    count = torch.size(found, 0)
    if count >= size:
        return torch.clone(torch.narrow(found, 0, 0, size))
    rest = torch.full([size - count, torch.size(found, 1)], fill_value, dtype=torch.int64)
    return torch.cat([found, rest], 0)


def polar(abs: Tensor, angle: Tensor) -> Tensor:
    return torch.complex(abs * torch.cos(angle), abs * torch.sin(angle))


def _safe_softmax(self: Tensor, dim: int, dtype: Optional[int] = None) -> Tensor:
    result = torch.softmax(self, dim, dtype)
    masked = torch.all(self == -float("inf"), dim, True)
    return torch.where(masked, torch.zeros_like(result), result)


def _softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return torch.softmax(self, dim, 6 if half_to_float else None)


def _log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return torch.log_softmax(self, dim, 6 if half_to_float else None)


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: int) -> Tensor:
    grad, result = grad_output, output
    if result.dtype == torch.float16 or result.dtype == torch.bfloat16:  # one kernel, rounded once
        grad, result = torch.to(grad, torch.float32), torch.to(result, torch.float32)
    product = grad * result
    return torch.to(product - result * torch.sum(product, [dim], True), input_dtype)


def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    return grad_output * mask * scale


def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    return torch.diagonal(A, offset, dim1, dim2)


def linalg_vander(x: Tensor, *, N: Optional[int] = None) -> Tensor:
    rows = atleast_1d(x)
    n = torch.size(rows, -1) if N is None else N
    t = rows if (torch.is_floating_point(x) or torch.is_complex(x)) else torch.to(rows, torch.int64)
    columns = [torch.ones_like(t)]
    for i in range(1, n):
        columns.append(columns[i - 1] * t)
    return torch.stack(columns, -1)


def chain_matmul(matrices: List[Tensor]) -> Tensor:
    return linalg_multi_dot(matrices)


def linalg_multi_dot(tensors: List[Tensor]) -> Tensor:
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    parts = [t for t in tensors]
    last = len(parts) - 1
    first_is_vector = torch.dim(parts[0]) == 1
    last_is_vector = torch.dim(parts[last]) == 1
    if first_is_vector:
        parts[0] = torch.unsqueeze(parts[0], 0)
    if last_is_vector:
        parts[last] = torch.unsqueeze(parts[last], 1)
    result = parts[0]
    for i in range(1, len(parts)):
        result = torch.mm(result, parts[i])
    if first_is_vector and last_is_vector:
        return torch.reshape(result, [])
    if first_is_vector:
        return torch.squeeze(result, 0)
    if last_is_vector:
        return torch.squeeze(result, 1)
    return result


def linalg_matrix_power(self: Tensor, n: int) -> Tensor:
    base = self
    power = n
    if n < 0:
        base = torch.linalg_inv(self)
        power = -n
    result = torch.expand_as(torch.eye(torch.size(self, -1), dtype=self.dtype), self)
    result = torch.clone(result)
    while power > 0:
        if power % 2 == 1:
            result = torch.matmul(result, base)
        base = torch.matmul(base, base)
        power = power // 2
    return result


def matrix_power(self: Tensor, n: int) -> Tensor:
    return linalg_matrix_power(self, n)


def histc(self: Tensor, bins: int = 100, min: number = 0, max: number = 0) -> Tensor:
    low = float(min)
    high = float(max)
    x = torch.reshape(self, [-1])
    if low == high and torch.numel(x) > 0:
        low = float(torch.item(torch.min(x)))
        high = float(torch.item(torch.max(x)))
    if low == high:
        low = low - 1
        high = high + 1
    inside = torch.logical_and(x >= low, x <= high)
    kept = torch.masked_select(x, inside)
    at = torch.to(torch.to(kept - low, torch.float64) / (high - low) * bins, torch.int64)
    at = torch.clamp(at, 0, bins - 1)
    return torch.scatter_add(torch.zeros([bins], dtype=self.dtype), 0, at, torch.ones_like(kept))


# ---- sequences of unequal length ----
def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> Tuple[Tensor, Tensor]:
    steps_first = torch.transpose(input, 0, 1) if batch_first else input
    if lengths.dim() != 1 or lengths.size(0) != steps_first.size(1):
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.numel()} (batch_size={steps_first.size(1)})")
    if lengths.numel() > 1 and bool(torch.any(lengths[1:] > lengths[:-1])):
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
                           "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not "
                           "need ONNX exportability.")
    if lengths.numel() == 0 or int(lengths[-1]) <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    steps = int(lengths[0])
    # a mask [step, row] picks rows in the order that packing wants
    taken = torch.arange(steps).unsqueeze(1) < lengths.to(torch.int64).unsqueeze(0)
    return steps_first[:steps][taken], torch.sum(taken, dim=1)


def _pad_packed_sequence(data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: number,
                         total_length: int) -> Tuple[Tensor, Tensor]:
    steps = batch_sizes.size(0)
    length = steps
    if total_length > 0:
        if total_length < steps:
            raise RuntimeError(f"Expected total_length to be at least the length of the longest sequence in input, but got "
                               f"total_length={total_length} and max sequence length being {steps}")
        length = total_length
    rows = int(batch_sizes[0])
    taken = torch.arange(rows).unsqueeze(0) < batch_sizes.unsqueeze(1)
    padded = torch.full([length, rows] + data.size()[1:], padding_value, dtype=data.dtype)
    padded[:steps][taken] = data
    return torch.transpose(padded, 0, 1) if batch_first else padded, torch.sum(taken, dim=0)
