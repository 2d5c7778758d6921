"""Forms that torch in Python takes and its operators do not."""
from typing import List, Optional, Tuple

import torch
from torch import Tensor


def norm__order(self: Tensor, p: str = "fro", dim: Optional[List[int]] = None, keepdim: bool = False,
                dtype: Optional[int] = None) -> Tensor:
    x = self
    if dtype is not None:
        x = torch.to(self, dtype)
    if p == "fro":
        if dim is None:
            return torch.linalg_vector_norm(x, 2, [i for i in range(torch.dim(x))], keepdim)
        return torch.linalg_vector_norm(x, 2, dim, keepdim)
    if p != "nuc":
        raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
    if dim is None:
        return torch.linalg_matrix_norm(x, "nuc", [0, 1], keepdim)
    return torch.linalg_matrix_norm(x, "nuc", dim, keepdim)


def tensordot__count(a: Tensor, b: Tensor, dims: int = 2) -> Tensor:
    if dims < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
    return torch.tensordot(a, b, [torch.dim(a) - dims + i for i in range(dims)], [i for i in range(dims)])


def tensordot__pair(a: Tensor, b: Tensor, dims: Tuple[List[int], List[int]]) -> Tensor:
    return torch.tensordot(a, b, dims[0], dims[1])


def tensordot__lists(a: Tensor, b: Tensor, dims: List[List[int]]) -> Tensor:
    return torch.tensordot(a, b, dims[0], dims[1])


def cdist__mode(x1: Tensor, x2: Tensor, p: float = 2.0, *, compute_mode: str) -> Tensor:
    if compute_mode == "use_mm_for_euclid_dist":
        return torch.cdist(x1, x2, p, 1)
    if compute_mode == "donot_use_mm_for_euclid_dist":
        return torch.cdist(x1, x2, p, 2)
    if compute_mode != "use_mm_for_euclid_dist_if_necessary":
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return torch.cdist(x1, x2, p)


def cdist__mode_in_place(x1: Tensor, x2: Tensor, p: float, compute_mode: str) -> Tensor:
    return cdist__mode(x1, x2, p, compute_mode=compute_mode)


def _of_kind(t: Tensor) -> Tensor:
    none = torch.empty([0], dtype=t.dtype)
    return torch.sum(none, dtype=t.dtype) if torch.dim(t) == 0 else none


def result_type__Tensor(tensor: Tensor, other: Tensor) -> int:
    return torch.mul(_of_kind(tensor), _of_kind(other)).dtype


def result_type__Scalar(tensor: Tensor, other: number) -> int:
    return torch.mul(_of_kind(tensor), other).dtype


def result_type__Scalar_Tensor(scalar: number, tensor: Tensor) -> int:
    return torch.mul(_of_kind(tensor), scalar).dtype


def unravel_index(indices: Tensor, shape: List[int]) -> List[Tensor]:
    if torch.is_floating_point(indices) or torch.is_complex(indices) or indices.dtype == torch.bool:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    parts: List[Tensor] = []
    step = 1
    for i in range(len(shape)):
        size = shape[len(shape) - 1 - i]
        if size < 0:
            raise ValueError(f"'shape' cannot have negative values, but got {tuple(shape)}")
        parts.append(torch.remainder(torch.div(torch.to(indices, torch.int64), step, rounding_mode="floor"), size))
        step = step * size
    parts.reverse()
    return parts


def unravel_index__int(indices: Tensor, shape: int) -> List[Tensor]:
    return unravel_index(indices, [shape])
