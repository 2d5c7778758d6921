"""Operators whose gradient is that of a function of simpler operators: losses, bags of embeddings, sampling. Opened as those
at the end of derivatives_nn.py."""
import math
from typing import List, Optional, Tuple

import torch
from torch import Tensor


# ---- places ----

def open_index_reduce(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool) -> Tensor:
    if self.dim() == 0:
        places = torch.reshape(index, torch.size(source))
    else:
        axis = dim + self.dim() if dim < 0 else dim
        shape = [index.numel() if d == axis else 1 for d in range(self.dim())]
        places = torch.expand_as(torch.reshape(index, shape), source).to(torch.int64)
    return torch.scatter_reduce(self, dim, places, source, reduce, include_self=include_self)


# ---- bags of embeddings ----

def open_embedding_bag__padding_idx(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool, mode: int, sparse: bool,
                                    per_sample_weights: Optional[Tensor], include_last_offset: bool,
                                    padding_idx: Optional[int]) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    count = offsets.size(0) - 1 if include_last_offset else offsets.size(0)
    starts = torch.narrow(offsets, 0, 0, count)
    bags = torch.searchsorted(starts, torch.arange(indices.size(0), dtype=starts.dtype), right=True) - 1
    rows = torch.embedding(weight, indices, -1, scale_grad_by_freq, False)
    shares = torch.ones([indices.size(0)], dtype=weight.dtype)
    if padding_idx is not None:
        shares = torch.masked_fill(shares, torch.eq(indices, padding_idx), 0)
    sizes = torch.index_add(torch.zeros([count], dtype=weight.dtype), 0, bags, shares)
    empty = torch.zeros([count, weight.size(1)], dtype=weight.dtype)
    if mode == 2:
        if padding_idx is not None:
            rows = torch.masked_fill(rows, torch.unsqueeze(torch.eq(indices, padding_idx), 1), -math.inf)
        places = torch.expand_as(torch.unsqueeze(bags, 1), rows)
        result = torch.scatter_reduce(empty, 0, places, rows, "amax", include_self=False)
    else:
        rows = rows * torch.unsqueeze(shares, 1)
        if per_sample_weights is not None:
            rows = rows * torch.unsqueeze(per_sample_weights, 1)
        result = torch.index_add(empty, 0, bags, rows)
        if mode == 1:
            result = result / torch.unsqueeze(torch.clamp_min(sizes, 1), 1)
    return result, bags, sizes.to(indices.dtype), torch.zeros_like(starts)


def open_embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool, mode: int, sparse: bool,
                       per_sample_weights: Optional[Tensor], include_last_offset: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return open_embedding_bag__padding_idx(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                                           include_last_offset, None)


# ---- connectionist temporal classification ----

def open_ctc_loss__IntList(log_probs: Tensor, targets: Tensor, input_lengths: List[int], target_lengths: List[int], blank: int,
                           reduction: int, zero_infinity: bool) -> Tensor:
    # Graves et al., Connectionist Temporal Classification, section 4.1: forward variables, all labels of all lines at once
    batched = log_probs.dim() == 3
    scores = log_probs if batched else torch.unsqueeze(log_probs, 1)
    steps, count = scores.size(0), scores.size(1)
    longest = 0
    for n in target_lengths:
        longest = max(longest, n)
    never = -1e30  # a difference of these is a number, that of infinities is none
    labels = torch.full([count, 2 * longest + 1], blank, dtype=torch.int64)
    flat = torch.reshape(targets, [-1])
    start = 0
    for n in range(count):
        length = target_lengths[n]
        first = n * targets.size(1) if targets.dim() == 2 else start
        for k in range(length):
            labels[n, 2 * k + 1] = flat[first + k]
        start = start + length
    width = labels.size(1)
    before = torch.narrow(torch.constant_pad_nd(labels, [2, 0], blank), 1, 0, width)
    may_skip = torch.logical_and(torch.ne(labels, blank), torch.ne(labels, before))
    lengths = torch.unsqueeze(torch.tensor(target_lengths, dtype=torch.int64), 1)
    ends = torch.unsqueeze(torch.tensor(input_lengths, dtype=torch.int64), 1)
    places = torch.unsqueeze(torch.arange(width), 0)
    alpha = torch.masked_fill(torch.gather(scores[0], 1, labels), torch.ge(places, 2), never)
    alpha = torch.masked_fill(alpha, torch.gt(places, 2 * lengths), never)
    for t in range(1, steps):
        one = torch.narrow(torch.constant_pad_nd(alpha, [1, 0], never), 1, 0, width)
        two = torch.narrow(torch.constant_pad_nd(alpha, [2, 0], never), 1, 0, width)
        two = torch.where(may_skip, two, torch.full_like(two, never))
        reached = torch.logaddexp(torch.logaddexp(alpha, one), two) + torch.gather(scores[t], 1, labels)
        alpha = torch.where(torch.lt(torch.full_like(ends, t), ends), reached, alpha)
    last = torch.gather(alpha, 1, 2 * lengths)
    inner = torch.gather(alpha, 1, torch.clamp_min(2 * lengths - 1, 0))
    inner = torch.where(torch.gt(lengths, 0), inner, torch.full_like(inner, never))
    losses = -torch.squeeze(torch.logaddexp(last, inner), 1)
    # PyTorch's gradient is that of probabilities that sum up to 1: of each step's, a sum that stays as it is
    during = torch.lt(torch.unsqueeze(torch.arange(steps), 1), torch.reshape(ends, [1, count]))
    sums = torch.sum(torch.exp(scores), [2])
    losses = losses + torch.sum(torch.masked_fill(sums - torch.detach(sums), torch.logical_not(during), 0), [0])
    far = torch.gt(losses, 1e29)
    losses = torch.masked_fill(losses, far, 0.0 if zero_infinity else math.inf)
    if reduction == 1:
        return torch.mean(losses / torch.clamp_min(torch.squeeze(lengths, 1), 1))
    if reduction == 2:
        return torch.sum(losses)
    return losses if batched else torch.squeeze(losses, 0)


def open_ctc_loss__Tensor(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int,
                          reduction: int, zero_infinity: bool) -> Tensor:
    inputs: List[int] = [int(n) for n in torch.reshape(input_lengths, [-1])]
    lengths: List[int] = [int(n) for n in torch.reshape(target_lengths, [-1])]
    return open_ctc_loss__IntList(log_probs, targets, inputs, lengths, blank, reduction, zero_infinity)


# ---- sampling of images ----

def _place(x: Tensor, size: int, align_corners: bool) -> Tensor:
    # from -1 ... 1 to elements
    if align_corners:
        return (x + 1) * ((size - 1) / 2)
    return ((x + 1) * size - 1) / 2


def _padded(x: Tensor, size: int, padding_mode: int, align_corners: bool) -> Tensor:
    # padding: 0 zeros, 1 the border, 2 reflection
    if padding_mode == 0:
        return x
    if padding_mode == 2:
        low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
        if span == 0.0:
            return torch.zeros_like(x)
        away = torch.abs(x - low)
        turns = torch.floor(away / span)
        rest = away - turns * span
        even = torch.eq(torch.remainder(turns, 2), 0)
        x = torch.where(even, rest + low, span - rest + low)
    return torch.clamp(x, 0, size - 1)


def _cubic_weights(t: Tensor) -> List[Tensor]:
    # Keys, Cubic Convolution Interpolation (1981), with a = -0.75 as PyTorch
    a = -0.75
    u = 1 - t
    return [((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a,
            ((a + 2) * t - (a + 3)) * t * t + 1,
            ((a + 2) * u - (a + 3)) * u * u + 1,
            ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a]


def open_grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    images, points = input.size(0), 1
    shape = [images, input.size(1)]
    for d in range(1, grid.dim() - 1):
        points = points * grid.size(d)
        shape.append(grid.size(d))
    flat = torch.reshape(grid, [images, points, input.dim() - 2])
    # [images, neighbours, points]: where the neighbours of each point are, and their shares; a dimension at a time, the last first
    places = torch.zeros([images, 1, points], dtype=torch.int64)
    shares = torch.ones([images, 1, points], dtype=input.dtype)
    count, step = 1, 1
    for d in range(input.dim() - 2):
        size = input.size(input.dim() - 1 - d)
        x = _place(torch.select(flat, 2, d), size, align_corners)
        if interpolation_mode < 2:
            x = _padded(x, size, padding_mode, align_corners)
        low = torch.detach(torch.floor(x))
        if interpolation_mode == 2:
            at = torch.stack([_padded(low + i, size, padding_mode, align_corners) for i in range(-1, 3)], 1)
            own = torch.stack(_cubic_weights(x - low), 1)
        elif interpolation_mode == 1:
            at = torch.unsqueeze(torch.round(x), 1)
            own = torch.unsqueeze(torch.floor(torch.sigmoid(x) / 2) + 1, 1)  # ones, whose gradient is zeros and not none
        else:
            at = torch.stack([low, low + 1], 1)
            own = torch.stack([1 - (x - low), x - low], 1)
        at = torch.detach(at)
        own = own * torch.detach(torch.logical_and(torch.ge(at, 0), torch.le(at, size - 1)).to(input.dtype))
        at = torch.clamp(at, 0, size - 1).to(torch.int64) * step
        count, step = count * at.size(1), step * size
        places = torch.reshape(torch.unsqueeze(places, 2) + torch.unsqueeze(at, 1), [images, count, points])
        shares = torch.reshape(torch.unsqueeze(shares, 2) * torch.unsqueeze(own, 1), [images, count, points])
    index = torch.expand(torch.reshape(places, [images, 1, count * points]), [images, input.size(1), count * points])
    found = torch.reshape(torch.gather(torch.flatten(input, 2), 2, index), [images, input.size(1), count, points])
    return torch.reshape(torch.sum(found * torch.unsqueeze(shares, 1), [2]), shape)


def open_feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    if not train or p == 0.0:
        return input * 1
    if p == 1.0:
        return input * 0
    shape = [input.size(d) if d < 2 else 1 for d in range(input.dim())]
    return input * (torch.feature_dropout(torch.ones(shape, dtype=input.dtype), p, True))


def _alpha_dropout(input: Tensor, p: float, dropped: Tensor) -> Tensor:
    # Klambauer et al., Self-Normalizing Neural Networks (2017), section 3: kept elements times a, and a shift.
    # dropped is the operator's result for ones: above zero where an element is kept
    alpha = 1.7580993408473766
    a = 1 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    kept = torch.gt(dropped, 0).to(input.dtype) * a
    return input * kept + (dropped - kept)


def open_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    if not train or p == 0.0:
        return input * 1
    if p == 1.0:
        return input * 0
    return _alpha_dropout(input, p, torch.alpha_dropout(torch.ones_like(input), p, True))


def open_feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    if not train or p == 0.0:
        return input * 1
    if p == 1.0:
        return input * 0
    ones = torch.ones([input.size(d) if d < 2 else 1 for d in range(input.dim())], dtype=input.dtype)
    return _alpha_dropout(input, p, torch.feature_alpha_dropout(ones, p, True))


def open_rrelu(self: Tensor, lower: number, upper: number, training: bool) -> Tensor:
    if not training:
        return torch.leaky_relu(self, (lower + upper) / 2)
    noise = torch.zeros_like(self)
    torch.rrelu_with_noise(torch.detach(self), noise, lower, upper, True)
    return self * noise
