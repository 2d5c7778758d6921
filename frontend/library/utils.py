"""torch.nn.utils: gradients of a training step, between backward() and the optimiser's step."""
import math
from typing import List

import torch
from torch import Tensor


def get_total_norm(tensors: List[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
    if len(tensors) == 0:
        return torch.tensor(0.0)
    total = torch.linalg_vector_norm(torch.stack([torch.linalg_vector_norm(g, norm_type) for g in tensors]), norm_type)
    if error_if_nonfinite and not bool(torch.isfinite(total)):
        raise RuntimeError("The total norm of order " + str(norm_type) + " for gradients from `parameters` is non-finite, so it "
                           "cannot be clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
                           "`error_if_nonfinite=False`")
    return total


def clip_grad_norm_(parameters: List[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
    with torch.no_grad():
        grads: List[Tensor] = []
        for p in parameters:
            grad = p.grad
            if grad is not None:
                grads.append(grad)
        total = get_total_norm(grads, norm_type, error_if_nonfinite)
        scale = torch.clamp(max_norm / (total + 1e-6), max=1.0)
        for p in parameters:
            grad = p.grad
            if grad is not None:
                p.grad = grad * scale
        return total


def clip_grad_value_(parameters: List[Tensor], clip_value: float) -> None:
    with torch.no_grad():
        for p in parameters:
            grad = p.grad
            if grad is not None:
                p.grad = torch.clamp(grad, -clip_value, clip_value)
