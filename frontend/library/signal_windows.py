"""torch.signal.windows: each is a function of M evenly spaced places. `sym=False` makes the periodic window, of one more place
that is left out."""
import math
from typing import List, Optional

import torch
from torch import Tensor


def _places(name: str, m: int, first: float, step: float, dtype: Optional[int]) -> Tensor:
    if m < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={m}")
    return torch.linspace(first, first + (m - 1) * step, m, dtype=dtype)


def _length(m: int, sym: bool) -> int:
    return m if sym or m <= 1 else m + 1


def general_cosine(M: int, *, a: List[float], sym: bool = True, dtype: Optional[int] = None, layout: Optional[int] = None,
                   device: Optional[torch.device] = None, requires_grad: bool = False) -> Tensor:
    if len(a) == 0:
        raise ValueError("Coefficients cannot be empty")
    if M == 1:
        return torch.ones([1], dtype=dtype)
    k = _places("general_cosine", M, 0.0, 2.0 * math.pi / max(_length(M, sym) - 1, 1), dtype)
    weights = torch.tensor([-a[i] if i % 2 == 1 else a[i] for i in range(len(a))], dtype=k.dtype)
    i = torch.arange(len(a), dtype=k.dtype)
    return torch.sum(weights.unsqueeze(-1) * torch.cos(i.unsqueeze(-1) * k), 0)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Optional[int] = None, layout: Optional[int] = None,
                    device: Optional[torch.device] = None, requires_grad: bool = False) -> Tensor:
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype)


def hamming(M: int, *, sym: bool = True, dtype: Optional[int] = None, layout: Optional[int] = None,
            device: Optional[torch.device] = None, requires_grad: bool = False) -> Tensor:
    return general_hamming(M, sym=sym, dtype=dtype)


def hann(M: int, *, sym: bool = True, dtype: Optional[int] = None, layout: Optional[int] = None,
         device: Optional[torch.device] = None, requires_grad: bool = False) -> Tensor:
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype)


def blackman(M: int, *, sym: bool = True, dtype: Optional[int] = None, layout: Optional[int] = None,
             device: Optional[torch.device] = None, requires_grad: bool = False) -> Tensor:
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype)


def nuttall(M: int, *, sym: bool = True, dtype: Optional[int] = None, layout: Optional[int] = None,
            device: Optional[torch.device] = None, requires_grad: bool = False) -> Tensor:
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype)


def bartlett(M: int, *, sym: bool = True, dtype: Optional[int] = None, layout: Optional[int] = None,
             device: Optional[torch.device] = None, requires_grad: bool = False) -> Tensor:
    if M == 1:
        return torch.ones([1], dtype=dtype)
    return 1 - torch.abs(_places("bartlett", M, -1.0, 2.0 / max(_length(M, sym) - 1, 1), dtype))


def cosine(M: int, *, sym: bool = True, dtype: Optional[int] = None, layout: Optional[int] = None,
           device: Optional[torch.device] = None, requires_grad: bool = False) -> Tensor:
    step = math.pi / max(_length(M, sym), 1)
    return torch.sin(_places("cosine", M, 0.5 * step, step, dtype))


def exponential(M: int, *, center: Optional[float] = None, tau: float = 1.0, sym: bool = True, dtype: Optional[int] = None,
                layout: Optional[int] = None, device: Optional[torch.device] = None, requires_grad: bool = False) -> Tensor:
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = (_length(M, sym) - 1) / 2.0 if center is None else center
    return torch.exp(-torch.abs(_places("exponential", M, -middle / tau, 1.0 / tau, dtype)))


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Optional[int] = None, layout: Optional[int] = None,
             device: Optional[torch.device] = None, requires_grad: bool = False) -> Tensor:
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    step = 1.0 / (std * math.sqrt(2.0))
    k = _places("gaussian", M, -(_length(M, sym) - 1) / 2.0 * step, step, dtype)
    return torch.exp(-(k * k))


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Optional[int] = None, layout: Optional[int] = None,
           device: Optional[torch.device] = None, requires_grad: bool = False) -> Tensor:
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M == 1:
        return torch.ones([1], dtype=dtype)
    k = _places("kaiser", M, -beta, 2.0 * beta / max(_length(M, sym) - 1, 1), dtype)
    most = torch.tensor(beta, dtype=k.dtype)
    inside = torch.clamp(most * most - k * k, min=0) # rounding may leave the last place outside
    return torch.i0(torch.sqrt(inside)) / torch.i0(most)
