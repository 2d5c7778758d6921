"""Derivatives of operators that move elements: views, copies, indexing (see derivatives.py)."""
from typing import List, Optional, Tuple

import torch
from torch import Tensor


def d_reshape(grad: Tensor, self: Tensor) -> Tensor:
    return torch.reshape(grad, torch.size(self))


def d_to(grad: Tensor, self: Tensor) -> Tensor:
    return grad.to(self.dtype)


def d_fill__Tensor(grad: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.zeros_like(grad), torch.sum(grad)


def d_as_tensor(grad: Tensor, data: Tensor) -> Tensor:
    return grad.to(data.dtype)


def d_transpose(grad: Tensor) -> Tensor:
    return grad if grad.dim() < 2 else torch.transpose(grad, -2, -1)


def d_adjoint(grad: Tensor) -> Tensor:
    turned = d_transpose(grad)
    return torch.conj(turned) if torch.is_complex(turned) else turned


def d_numpy_T(grad: Tensor) -> Tensor:
    return torch.permute(grad, [grad.dim() - 1 - d for d in range(grad.dim())])


def d_permute(grad: Tensor, dims: List[int]) -> Tensor:
    rank = len(dims)
    inverse = [0 for d in range(rank)]
    for d in range(rank):
        inverse[dims[d] % rank] = d
    return torch.permute(grad, inverse)


def d_movedim__int(grad: Tensor, source: int, destination: int) -> Tensor:
    return torch.movedim(grad, destination, source)


def d_movedim__intlist(grad: Tensor, source: List[int], destination: List[int]) -> Tensor:
    return torch.movedim(grad, destination, source)


def d_expand(grad: Tensor, self: Tensor) -> Tensor:
    return torch.sum_to_size(grad, torch.size(self))


def d_narrow(grad: Tensor, self: Tensor, dim: int, start: int, length: int) -> Tensor:
    first = start + self.size(dim) if start < 0 else start
    return torch.slice_scatter(torch.zeros_like(self), grad, dim, first, first + length)


def d_narrow__Tensor(grad: Tensor, self: Tensor, dim: int, start: Tensor, length: int) -> Tensor:
    return d_narrow(grad, self, dim, int(start), length)


def d_unfold(grad: Tensor, self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    if self.dim() == 0:
        return torch.reshape(grad, [])
    dim = dimension + self.dim() if dimension < 0 else dimension
    total = torch.zeros_like(self)
    windows = grad.size(dim)
    for i in range(size):
        part = torch.slice_scatter(torch.zeros_like(self), torch.select(grad, -1, i), dim, i, i + (windows - 1) * step + 1, step)
        total = total + part
    return total


def d_diagonal(grad: Tensor, self: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    return torch.diagonal_scatter(torch.zeros_like(self), grad, offset, dim1, dim2)


def d_as_strided(grad: Tensor, self: Tensor, size: List[int], stride: List[int], storage_offset: Optional[int]) -> Tensor:
    # of a contiguous self: each element of the memory gets the sum of what shows it
    if not self.is_contiguous():
        raise RuntimeError("the derivative of as_strided of a tensor that is not contiguous is not supported yet")
    first = 0
    if storage_offset is not None:
        first = storage_offset - self.storage_offset()
    places = torch.full([], first, dtype=torch.int64)
    for d in range(len(size)):
        shape = [1 for k in range(len(size))]
        shape[d] = size[d]
        places = places + torch.reshape(torch.arange(size[d]) * stride[d], shape)
    flat = torch.index_add(torch.zeros([self.numel()], dtype=grad.dtype), 0, torch.reshape(places, [-1]), torch.reshape(grad, [-1]))
    return torch.reshape(flat, torch.size(self))


def d_split(grads: List[Tensor], self: Tensor, dim: int) -> Tensor:
    return torch.cat(grads, dim)


def d_tensor_split(grads: List[Tensor], dim: int) -> Tensor:
    return torch.cat(grads, dim)


def d_unbind(grads: List[Tensor], dim: int) -> Tensor:
    return torch.stack(grads, dim)


def d_broadcast_tensors(grads: List[Tensor], tensors: List[Tensor]) -> List[Tensor]:
    parts: List[Tensor] = []
    for i in range(len(tensors)):
        parts.append(torch.sum_to_size(grads[i], torch.size(tensors[i])))
    return parts


def d_cat(grad: Tensor, tensors: List[Tensor], dim: int) -> List[Tensor]:
    parts: List[Tensor] = []
    start = 0
    for i in range(len(tensors)):
        if tensors[i].dim() == 1 and grad.dim() != 1:
            parts.append(torch.zeros_like(tensors[i]))  # an empty one, which cat passes over
        else:
            length = tensors[i].size(dim)
            parts.append(torch.narrow(grad, dim, start, length).to(tensors[i].dtype))
            start = start + length
    return parts


def d_stack(grad: Tensor, tensors: List[Tensor], dim: int) -> List[Tensor]:
    parts: List[Tensor] = []
    for i in range(grad.size(dim)):
        parts.append(torch.select(grad, dim, i).to(tensors[i].dtype))
    return parts


def d_flip(grad: Tensor, dims: List[int]) -> Tensor:
    return torch.flip(grad, dims)


def d_roll(grad: Tensor, shifts: List[int], dims: List[int]) -> Tensor:
    return torch.roll(grad, [-s for s in shifts], dims)


def d_repeat(grad: Tensor, self: Tensor, repeats: List[int]) -> Tensor:
    shape = torch.size(self)
    skipped = len(repeats) - len(shape)
    split: List[int] = []
    sums: List[int] = []
    for d in range(len(repeats)):
        sums.append(len(split))
        split.append(repeats[d])
        split.append(shape[d - skipped] if d >= skipped else 1)
    if grad.numel() == 0:
        return torch.zeros_like(self)
    if len(sums) == 0:
        return grad
    return torch.reshape(torch.sum(torch.reshape(grad, split), sums), shape)


def d_tile(grad: Tensor, self: Tensor, dims: List[int]) -> Tensor:
    repeats = dims
    while len(repeats) < self.dim():
        repeats = [1] + repeats
    return d_repeat(grad, self, repeats)


def d_repeat_interleave__Tensor(grad: Tensor, self: Tensor, repeats: Tensor, dim: Optional[int]) -> Tensor:
    source = self if dim is not None else torch.reshape(self, [-1])
    axis = 0
    if dim is not None:
        axis = dim
    counts = repeats
    if counts.numel() == 1:
        counts = torch.reshape(counts, [1]).expand([source.size(axis)])
    places = torch.repeat_interleave(counts)
    return torch.reshape(torch.index_add(torch.zeros_like(source), axis, places, grad), torch.size(self))


def d_repeat_interleave__int(grad: Tensor, self: Tensor, repeats: int, dim: Optional[int]) -> Tensor:
    shape = torch.size(self)
    if dim is None:
        return torch.reshape(torch.sum(torch.reshape(grad, [self.numel(), repeats]), [1]), shape)
    axis = dim + self.dim() if dim < 0 else dim
    split: List[int] = []
    for d in range(self.dim()):
        split.append(shape[d])
        if d == axis:
            split.append(repeats)
    return torch.sum(torch.reshape(grad, split), [axis + 1])


def d_constant_pad(grad: Tensor, pad: List[int]) -> Tensor:
    return torch.constant_pad_nd(grad, [-p for p in pad], 0)


def _fold_edges(grad: Tensor, dim: int, low: int, high: int, reflects: bool) -> Tensor:
    # what reflection or replication read twice, back onto the line of the input
    size = grad.size(dim) - low - high
    middle = torch.narrow(grad, dim, low if low > 0 else 0, size + (low if low < 0 else 0) + (high if high < 0 else 0))
    if low < 0 or high < 0:
        pads = [0 for d in range(2 * (grad.dim() - dim))]
        pads[2 * (grad.dim() - 1 - dim)] = -low if low < 0 else 0
        pads[2 * (grad.dim() - 1 - dim) + 1] = -high if high < 0 else 0
        middle = torch.constant_pad_nd(middle, pads, 0)
    if low > 0:
        edge = torch.narrow(grad, dim, 0, low)
        if reflects:
            part, first = torch.flip(edge, [dim]), 1
        else:
            part, first = torch.sum(edge, [dim], True), 0
        middle = middle + torch.slice_scatter(torch.zeros_like(middle), part, dim, first, first + part.size(dim))
    if high > 0:
        edge = torch.narrow(grad, dim, grad.size(dim) - high, high)
        if reflects:
            part, first = torch.flip(edge, [dim]), size - 1 - high
        else:
            part, first = torch.sum(edge, [dim], True), size - 1
        middle = middle + torch.slice_scatter(torch.zeros_like(middle), part, dim, first, first + part.size(dim))
    return middle


def d_reflection_pad(grad: Tensor, padding: List[int]) -> Tensor:
    for i in range(len(padding) // 2):
        grad = _fold_edges(grad, grad.dim() - 1 - i, padding[2 * i], padding[2 * i + 1], True)
    return grad


def d_replication_pad(grad: Tensor, padding: List[int]) -> Tensor:
    for i in range(len(padding) // 2):
        grad = _fold_edges(grad, grad.dim() - 1 - i, padding[2 * i], padding[2 * i + 1], False)
    return grad


def d_pad(grad: Tensor, pad: List[int], mode: str) -> Tensor:
    if mode == "constant":
        return d_constant_pad(grad, pad)
    if mode == "reflect":
        return d_reflection_pad(grad, pad)
    if mode == "replicate":
        return d_replication_pad(grad, pad)
    for i in range(len(pad) // 2):
        dim = grad.dim() - 1 - i
        low, high = max(pad[2 * i], 0), max(pad[2 * i + 1], 0)
        size = grad.size(dim) - low - high
        middle = torch.narrow(grad, dim, low, size)
        if low > 0:
            middle = middle + torch.slice_scatter(torch.zeros_like(middle), torch.narrow(grad, dim, 0, low), dim, size - low, size)
        if high > 0:
            middle = middle + torch.slice_scatter(torch.zeros_like(middle), torch.narrow(grad, dim, low + size, high), dim, 0, high)
        if pad[2 * i] < 0 or pad[2 * i + 1] < 0:  # what was cut off, before the rest went around
            cut = [max(-pad[2 * i], 0), max(-pad[2 * i + 1], 0)]
            middle = torch.constant_pad_nd(middle, [0 for _ in range(2 * i)] + cut, 0)
        grad = middle
    return grad


# ---- indexing ----

def d_index_put(grad: Tensor, indices: List[Optional[Tensor]], values: Tensor, accumulate: bool) -> Tuple[Tensor, Tensor]:
    own = grad
    if not accumulate:
        own = torch.index_put(grad, indices, torch.zeros_like(values), False)
    return own, torch.sum_to_size(torch.index(grad, indices), torch.size(values))


def d_setitem(grad: Tensor, indices: List[Optional[Tensor]], values: Tensor, accumulate: bool) -> Tuple[Tensor, Tensor]:
    own = grad
    if not accumulate:
        own = torch.prim_setitem(grad, indices, torch.zeros_like(values), False)
    return own, torch.sum_to_size(torch.prim_getitem(grad, indices), torch.size(values))


def d_masked_select(grad: Tensor, self: Tensor, mask: Tensor) -> Tensor:
    both = torch.broadcast_tensors([self, mask])
    wide = torch.masked_scatter(torch.zeros_like(both[0]), both[1], grad)
    return torch.sum_to_size(wide, torch.size(self))


def d_masked_scatter(grad: Tensor, self: Tensor, mask: Tensor, source: Tensor) -> Tuple[Tensor, Tensor]:
    taken = torch.masked_select(grad, mask)
    rest = torch.zeros([source.numel() - taken.numel()], dtype=grad.dtype)
    own = torch.sum_to_size(torch.masked_fill(grad, mask, 0), torch.size(self))
    return own, torch.reshape(torch.cat([taken, rest]), torch.size(source))


def d_gather(grad: Tensor, self: Tensor, dim: int, index: Tensor) -> Tensor:
    if self.dim() == 0:
        return torch.reshape(torch.sum(grad), [])
    return torch.scatter_add(torch.zeros_like(self), dim, index, grad)


def d_take_along_dim(grad: Tensor, self: Tensor, indices: Tensor, dim: Optional[int]) -> Tensor:
    size = self.numel() if dim is None else self.size(dim)
    indices = torch.where(torch.lt(indices, 0), indices + size, indices)
    if dim is None:
        flat = torch.scatter_add(torch.zeros([self.numel()], dtype=grad.dtype), 0, torch.reshape(indices, [-1]), torch.reshape(grad, [-1]))
        return torch.reshape(flat, torch.size(self))
    axis = dim + self.dim() if dim < 0 else dim
    shape = torch.size(grad)
    wide = [shape[d] if d != axis else self.size(d) for d in range(self.dim())]
    index = torch.expand(indices, shape)
    total = torch.scatter_add(torch.zeros(wide, dtype=grad.dtype), axis, index, grad)
    return torch.sum_to_size(total, torch.size(self))


def d_take(grad: Tensor, self: Tensor, index: Tensor) -> Tensor:
    return torch.put(torch.zeros_like(self), index, grad, True)


def d_put(grad: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> Tuple[Tensor, Tensor]:
    own = grad
    if not accumulate:
        own = torch.put(grad, index, torch.zeros_like(source), False)
    return own, torch.reshape(torch.take(grad, index), torch.size(source))


def _first_part(x: Tensor, like: Tensor) -> Tensor:
    # scatter reads the corner of src that index covers
    for d in range(x.dim()):
        x = torch.narrow(x, d, 0, like.size(d))
    return x


def _into_corner(part: Tensor, whole: Tensor) -> Tensor:
    pads: List[int] = []
    for i in range(whole.dim()):
        d = whole.dim() - 1 - i
        pads.append(0)
        pads.append(whole.size(d) - part.size(d))
    if len(pads) == 0:
        return part
    return torch.constant_pad_nd(part, pads, 0)


def d_scatter__src(grad: Tensor, dim: int, index: Tensor, src: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.scatter(grad, dim, index, 0), _into_corner(torch.gather(grad, dim, index), src)


def d_scatter__value(grad: Tensor, dim: int, index: Tensor) -> Tensor:
    return torch.scatter(grad, dim, index, 0)


def d_scatter_add(grad: Tensor, dim: int, index: Tensor, src: Tensor) -> Tuple[Tensor, Tensor]:
    return grad, _into_corner(torch.gather(grad, dim, index), src)


def d_scatter_reduce(grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool,
                     result: Tensor) -> Tuple[Tensor, Tensor]:
    part = _first_part(src, index)
    own, given = torch.zeros_like(grad), torch.zeros_like(part)
    if reduce == "sum":
        own, given = grad, torch.gather(grad, dim, index)
    elif reduce == "mean":
        counts = torch.ones_like(grad) if include_self else torch.zeros_like(grad)
        counts = torch.scatter_add(counts, dim, index, torch.ones_like(part))
        counts = torch.masked_fill(counts, torch.eq(counts, 0), 1)
        own, given = grad / counts, torch.gather(grad / counts, dim, index)
    elif reduce == "amax" or reduce == "amin":
        hit = torch.eq(part, torch.gather(result, dim, index)).to(grad.dtype)
        own_hit = torch.eq(self, result).to(grad.dtype)
        hits = torch.scatter_add(own_hit if include_self else torch.zeros_like(own_hit), dim, index, hit)
        shared = grad / torch.masked_fill(hits, torch.eq(hits, 0), 1)
        own, given = own_hit * shared, hit * torch.gather(shared, dim, index)
    else:
        # a zero's gradient is the product of the others, which is zero where there is another zero
        own_zero, zero = torch.eq(self, 0), torch.eq(part, 0)
        zeros = torch.scatter_add(torch.zeros_like(self), dim, index, zero.to(self.dtype))
        others = torch.scatter_reduce(torch.masked_fill(self, own_zero, 1), dim, index, part, "prod", include_self=include_self)
        own = grad * others / torch.masked_fill(self, own_zero, 1)
        alone = torch.logical_and(zero, torch.eq(torch.gather(zeros, dim, index), 1))
        rest = torch.scatter_reduce(self, dim, index, torch.masked_fill(part, alone, 1), "prod", include_self=include_self)
        given = torch.where(alone, torch.gather(grad * rest, dim, index),
                            torch.gather(grad * result, dim, index) / torch.masked_fill(part, zero, 1))
    if not include_self:
        own = torch.scatter(own, dim, index, 0)
    return own, _into_corner(given, src)


def d_index_select(grad: Tensor, self: Tensor, dim: int, index: Tensor) -> Tensor:
    if self.dim() == 0:
        return torch.reshape(torch.sum(grad), [])
    return torch.index_add(torch.zeros_like(self), dim, torch.reshape(index, [-1]), grad)


def d_index_copy(grad: Tensor, dim: int, index: Tensor, source: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.index_fill(grad, dim, index, 0), torch.reshape(torch.index_select(grad, dim, index), torch.size(source))


def d_index_add(grad: Tensor, dim: int, index: Tensor, source: Tensor, alpha: number) -> Tuple[Tensor, Tensor]:
    part = torch.index_select(grad, dim, index) * alpha
    return grad, torch.expand_as(part, source) if source.dim() == part.dim() else torch.reshape(part, torch.size(source))


def d_index_fill__Scalar(grad: Tensor, dim: int, index: Tensor) -> Tensor:
    return torch.index_fill(grad, dim, index, 0)


def d_index_fill__Tensor(grad: Tensor, dim: int, index: Tensor) -> Tuple[Tensor, Tensor]:
    kept = torch.eq(torch.index_fill(torch.zeros_like(grad), dim, index, 1), 0)
    return torch.index_fill(grad, dim, index, 0), torch.sum(torch.masked_fill(grad, kept, 0))


def d_fft_fftshift(grad: Tensor, dim: Optional[List[int]]) -> Tensor:
    return torch.fft_ifftshift(grad, dim)


def d_fft_ifftshift(grad: Tensor, dim: Optional[List[int]]) -> Tensor:
    return torch.fft_fftshift(grad, dim)


def d_unsafe_masked_index(grad: Tensor, self: Tensor, mask: Tensor, indices: List[Optional[Tensor]]) -> Tensor:
    return torch._unsafe_masked_index_put_accumulate(torch.zeros_like(self), mask, indices, grad)


def d_unsafe_masked_index_put(grad: Tensor, mask: Tensor, indices: List[Optional[Tensor]]) -> Tuple[Tensor, Tensor]:
    return grad, torch._unsafe_masked_index(grad, mask, indices, 0)


def d_select_scatter(grad: Tensor, src: Tensor, dim: int, index: int) -> Tuple[Tensor, Tensor]:
    return torch.select_scatter(grad, torch.zeros_like(src), dim, index), torch.select(grad, dim, index)


def d_slice_scatter(grad: Tensor, src: Tensor, dim: int, start: Optional[int], end: Optional[int], step: int) -> Tuple[Tensor, Tensor]:
    return (torch.slice_scatter(grad, torch.zeros_like(src), dim, start, end, step),
            torch.sum_to_size(torch.slice(grad, dim, start, end, step), torch.size(src)))


def d_diagonal_scatter(grad: Tensor, src: Tensor, offset: int, dim1: int, dim2: int) -> Tuple[Tensor, Tensor]:
    return torch.diagonal_scatter(grad, torch.zeros_like(src), offset, dim1, dim2), torch.diagonal(grad, offset, dim1, dim2)


def d_diag_embed(grad: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    return torch.diagonal(grad, offset, dim1, dim2)


def d_diag(grad: Tensor, self: Tensor, diagonal: int) -> Tensor:
    if self.dim() == 1:
        return torch.diagonal(grad, diagonal)
    return torch.diagonal_scatter(torch.zeros_like(self), grad, diagonal)


def d_embedding(grad: Tensor, weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    flat = torch.reshape(indices, [-1])
    rows = torch.reshape(grad, [flat.numel(), weight.size(1)])
    if padding_idx >= 0:
        rows = torch.masked_fill(rows, torch.unsqueeze(torch.eq(flat, padding_idx), 1), 0)
    if scale_grad_by_freq:
        counts = torch.index_add(torch.zeros([weight.size(0)], dtype=grad.dtype), 0, flat, torch.ones([flat.numel()], dtype=grad.dtype))
        rows = rows / torch.unsqueeze(torch.index_select(counts, 0, flat), 1)
    return torch.index_add(torch.zeros_like(weight), 0, flat, rows)


def d_pixel_shuffle(grad: Tensor, upscale_factor: int) -> Tensor:
    return torch.pixel_unshuffle(grad, upscale_factor)


def d_pixel_unshuffle(grad: Tensor, downscale_factor: int) -> Tensor:
    return torch.pixel_shuffle(grad, downscale_factor)


