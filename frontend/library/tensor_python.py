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
