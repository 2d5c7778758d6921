# Old meanings of operators: what an archive's code calls when its version is below the one that
# changed the operator (frontend/archive/upgrade.c has the list). Named as PyTorch names its own:
# OPERATOR_FROM_TO are the versions that need it.
from typing import List, Optional

import torch
from torch import Tensor


# Up to version 3 division of integers was division, cut off.
def upgraded_div_0_3__Tensor(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode="trunc")


def upgraded_div_0_3__Scalar(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode="trunc")


def upgraded_div_inplace_0_3__Tensor(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point():
        return self.div_(other)
    if other.is_floating_point():
        raise RuntimeError("result type Float can't be cast to the desired output type Long")
    return self.div_(other, rounding_mode="trunc")


def upgraded_div_inplace_0_3__Scalar(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point():
        return self.div_(other)
    if isinstance(other, float):
        raise RuntimeError("result type Float can't be cast to the desired output type Long")
    return self.div_(other, rounding_mode="trunc")


# With a mode division never changed.
def upgraded_div_0_3__Tensor_mode(self: Tensor, other: Tensor, *, rounding_mode: Optional[str]) -> Tensor:
    return torch.div(self, other, rounding_mode=rounding_mode)


def upgraded_div_0_3__Scalar_mode(self: Tensor, other: number, *, rounding_mode: Optional[str]) -> Tensor:
    return torch.div(self, other, rounding_mode=rounding_mode)


def upgraded_div_inplace_0_3__Tensor_mode(self: Tensor, other: Tensor, *, rounding_mode: Optional[str]) -> Tensor:
    return self.div_(other, rounding_mode=rounding_mode)


def upgraded_div_inplace_0_3__Scalar_mode(self: Tensor, other: number, *, rounding_mode: Optional[str]) -> Tensor:
    return self.div_(other, rounding_mode=rounding_mode)


# Up to version 4 a tensor filled with a whole number held floats.
def upgraded_full_0_4(size: List[int], fill_value: number, *, dtype: Optional[int] = None, layout: Optional[int] = None,
                      device: Optional[torch.device] = None, pin_memory: Optional[bool] = None) -> Tensor:
    return torch.full(size, float(fill_value), dtype=dtype)


# Up to version 7 the number of steps could be left out.
def upgraded_linspace_0_7(start: number, end: number, steps: Optional[int] = None, *, dtype: Optional[int] = None,
                          layout: Optional[int] = None, device: Optional[torch.device] = None,
                          pin_memory: Optional[bool] = None) -> Tensor:
    count = 100
    if steps is not None:
        count = steps
    return torch.linspace(start, end, count, dtype=dtype)


def upgraded_logspace_0_8(start: number, end: number, steps: Optional[int] = None, base: float = 10.0, *,
                          dtype: Optional[int] = None, layout: Optional[int] = None,
                          device: Optional[torch.device] = None, pin_memory: Optional[bool] = None) -> Tensor:
    count = 100
    if steps is not None:
        count = steps
    return torch.logspace(start, end, count, base, dtype=dtype)
