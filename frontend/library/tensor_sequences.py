# Sequences of different lengths in one tensor: rows of the same step stand together, longest first.
from typing import List, Tuple

import torch
from torch import Tensor


def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> Tuple[Tensor, Tensor]:
    x = input.transpose(0, 1) if batch_first else input
    sizes: List[int] = lengths.tolist()
    if len(sizes) != x.size(1):
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={x.size(1)})")
    if len(sizes) == 0 or sizes[len(sizes) - 1] <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    for i in range(1, len(sizes)):
        if sizes[i] > sizes[i - 1]:
            raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can "
                               "pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this "
                               "requirement if you do not need ONNX exportability.")
    rows: List[Tensor] = []
    counts: List[int] = []
    for t in range(sizes[0]):
        count = 0
        for n in sizes:
            if n > t:
                count += 1
        rows.append(x[t].narrow(0, 0, count))
        counts.append(count)
    return torch.cat(rows), torch.tensor(counts, dtype=torch.int64)


def _pad_packed_sequence(data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: number,
                         total_length: int) -> Tuple[Tensor, Tensor]:
    counts: List[int] = batch_sizes.tolist()
    steps = len(counts)
    if total_length > 0:
        if total_length < steps:
            raise RuntimeError(f"Expected total_length to be at least the length of the longest sequence in input, but got "
                               f"total_length={total_length} and max sequence length being {steps}")
        steps = total_length
    shape: List[int] = [steps, counts[0]] + list(data.shape[1:])
    result = torch.full(shape, padding_value, dtype=data.dtype)
    start = 0
    for t in range(len(counts)):
        result[t].narrow(0, 0, counts[t]).copy_(data.narrow(0, start, counts[t]))
        start += counts[t]
    lengths: List[int] = []
    for b in range(counts[0]):
        n = 0
        for count in counts:
            if count > b:
                n += 1
        lengths.append(n)
    return result.transpose(0, 1) if batch_first else result, torch.tensor(lengths, dtype=torch.int64)
