"""torch.nn.utils.rnn: sequences of unequal length, padded or packed."""
from typing import List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor


class PackedSequence(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Optional[Tensor] = None
    unsorted_indices: Optional[Tensor] = None


def invert_permutation(permutation: Optional[Tensor]) -> Optional[Tensor]:
    if permutation is None:
        return None
    return torch.scatter(torch.empty_like(permutation), 0, permutation, torch.arange(permutation.numel()))


def pack_padded_sequence(input: Tensor, lengths, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    sizes = torch.as_tensor(lengths, dtype=torch.int64)
    sorted_indices: Optional[Tensor] = None
    if not enforce_sorted:
        sizes, order = torch.sort(sizes, descending=True)
        input = torch.index_select(input, 0 if batch_first else 1, order)
        sorted_indices = order
    data, batch_sizes = torch._pack_padded_sequence(input, sizes, batch_first)
    return PackedSequence(data, batch_sizes, sorted_indices, invert_permutation(sorted_indices))


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    steps = sequence.batch_sizes.size(0)
    if total_length is not None and total_length < steps:
        raise ValueError("Expected total_length to be at least the length of the longest sequence in input, but got "
                         f"total_length={total_length} and max sequence length being {steps}")
    padded, lengths = torch._pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value,
                                                 0 if total_length is None else total_length)
    order = sequence.unsorted_indices
    if order is not None:
        padded = torch.index_select(padded, 0 if batch_first else 1, order)
        lengths = lengths[order]
    return padded, lengths


def pad_sequence(sequences: List[Tensor], batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    return torch.pad_sequence(sequences, batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> List[Tensor]:
    rows = padded_sequences if batch_first else torch.transpose(padded_sequences, 0, 1)
    return [rows[i][:int(lengths[i])] for i in range(rows.size(0))]


def pack_sequence(sequences: List[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    lengths = torch.tensor([s.size(0) for s in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, False, enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> List[Tensor]:
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
