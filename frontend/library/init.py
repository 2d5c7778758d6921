"""torch.nn.init: initialisers, run at compile time on freshly made parameters."""
import math
from typing import Optional, Tuple

import torch
from torch import Tensor


def calculate_gain(nonlinearity: str, param: Optional[float] = None) -> float:
    if nonlinearity in ["linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
                        "conv_transpose3d", "sigmoid"]:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope ** 2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    return tensor.uniform_(a, b)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    return tensor.normal_(mean, std)


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Tensor:
    # Rejection, drawing what PyTorch 2.13 draws: from the normal where most of it lies inside, else
    # from the uniform.
    p = math.erf((b - mean) / std / math.sqrt(2.0)) / 2.0 - math.erf((a - mean) / std / math.sqrt(2.0)) / 2.0
    if p > 0.3:
        low = torch.full([1], a, dtype=tensor.dtype).item()
        high = torch.full([1], b, dtype=tensor.dtype).item()
        tensor.normal_(mean, std)
        wrong = (tensor < low) | (tensor > high)
        while bool(wrong.any()):
            tensor.copy_(torch.where(wrong, torch.empty_like(tensor).normal_(mean, std), tensor))
            wrong = (tensor < low) | (tensor > high)
        return tensor
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    tensor.uniform_(a, b)
    candidates = (tensor - mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
    accepted = torch.empty_like(tensor)
    pending = accepted.uniform_(0.0, 1.0).log_() > candidates
    while bool(pending.any()):
        candidates.uniform_(a, b)
        tensor.copy_(torch.where(pending, candidates, tensor))
        candidates.sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        still = accepted.uniform_(0.0, 1.0).log_() > candidates
        pending = pending & still
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    return tensor.fill_(1.0)


def zeros_(tensor: Tensor) -> Tensor:
    return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(torch.eye(tensor.size(0), tensor.size(1)))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    rank = tensor.dim()
    if rank < 3 or rank > 5:
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.size(0) // groups
    least = min(per_group, tensor.size(1))
    tensor.zero_()
    for g in range(groups):
        for d in range(least):
            if rank == 3:
                tensor[g * per_group + d, d, tensor.size(2) // 2] = 1
            elif rank == 4:
                tensor[g * per_group + d, d, tensor.size(2) // 2, tensor.size(3) // 2] = 1
            else:
                tensor[g * per_group + d, d, tensor.size(2) // 2, tensor.size(3) // 2, tensor.size(4) // 2] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> Tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = 1
    for i in range(2, tensor.dim()):
        field = field * tensor.size(i)
    return tensor.size(1) * field, tensor.size(0) * field


def _correct_fan(tensor: Tensor, mode: str) -> int:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    if mode == "fan_in":
        return fan_in
    if mode == "fan_out":
        return fan_out
    raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    a = math.sqrt(3.0) * std
    return tensor.uniform_(-a, a)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return tensor.normal_(0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)))


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    if tensor.numel() == 0:
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return tensor.uniform_(-bound, bound)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    if tensor.numel() == 0:
        return tensor
    return tensor.normal_(0, calculate_gain(nonlinearity, a) / math.sqrt(_correct_fan(tensor, mode)))


def orthogonal_(tensor: Tensor, gain: float = 1) -> Tensor:
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    flat = torch.empty(rows, columns).normal_(0, 1)
    if rows < columns:
        flat = flat.t()
    q, r = torch.linalg.qr(flat)
    d = torch.diagonal(r, 0)
    q = q * d.sign()
    if rows < columns:
        q = q.t()
    tensor.copy_(q.reshape(tensor.size()))
    tensor.mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01) -> Tensor:
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.size(0), tensor.size(1)
    zeros = int(math.ceil(sparsity * rows))
    tensor.normal_(0, std)
    for c in range(columns):
        order = torch.randperm(rows)
        for i in range(zeros):
            tensor[order[i], c] = 0
    return tensor
