# Operators of other layouts and devices: here every tensor is dense and on the cpu (sparse ones of an
# archive are made dense when it is read), and parameters packed for XNNPACK are plain weights.
from typing import Optional

import torch
from torch import Tensor


def cuda(self: Tensor) -> Tensor:
    return self


def to_dense(self: Tensor, dtype: Optional[int] = None, *, masked_grad: Optional[bool] = None) -> Tensor:
    if dtype is None:
        return self
    return self.to(dtype)


def coalesce(self: Tensor) -> Tensor:
    return self


def _sparse_mm(sparse: Tensor, dense: Tensor) -> Tensor:
    return torch.mm(sparse, dense)


def _sparse_addmm(self: Tensor, sparse: Tensor, dense: Tensor, *, beta: number = 1, alpha: number = 1) -> Tensor:
    return torch.addmm(self, sparse, dense, beta=beta, alpha=alpha)


# ---- XNNPACK ----
def _clamped(x: Tensor, packed: Capsule, kind: str, first: int) -> Tensor:
    low = torch._packed_number(packed, kind, first)
    high = torch._packed_number(packed, kind, first + 1)
    if low is not None:
        x = torch.clamp_min(x, low)
    if high is not None:
        x = torch.clamp_max(x, high)
    return x


def _weight(packed: Capsule, kind: str) -> Tensor:
    w = torch._packed_tensor(packed, kind, 1)
    assert w is not None
    return w


def prepacked_linear_clamp_run(X: Tensor, W_prepack: Capsule) -> Tensor:
    y = torch.linear(X, _weight(W_prepack, "xnn_linear"), torch._packed_tensor(W_prepack, "xnn_linear", 2))
    return _clamped(y, W_prepack, "xnn_linear", 3)


def prepacked_conv2d_clamp_run(X: Tensor, W_prepack: Capsule) -> Tensor:
    y = torch.conv2d(X, _weight(W_prepack, "xnn_conv"), torch._packed_tensor(W_prepack, "xnn_conv", 2),
                     torch._packed_ints(W_prepack, "xnn_conv", 3), torch._packed_ints(W_prepack, "xnn_conv", 4),
                     torch._packed_ints(W_prepack, "xnn_conv", 5), torch._packed_int(W_prepack, "xnn_conv", 6))
    return _clamped(y, W_prepack, "xnn_conv", 9)


def prepacked_conv2d_transpose_clamp_run(X: Tensor, W_prepack: Capsule) -> Tensor:
    y = torch.conv_transpose2d(X, _weight(W_prepack, "xnn_conv"), torch._packed_tensor(W_prepack, "xnn_conv", 2),
                               torch._packed_ints(W_prepack, "xnn_conv", 3), torch._packed_ints(W_prepack, "xnn_conv", 4),
                               torch._packed_ints(W_prepack, "xnn_conv", 8), torch._packed_int(W_prepack, "xnn_conv", 6),
                               torch._packed_ints(W_prepack, "xnn_conv", 5))
    return _clamped(y, W_prepack, "xnn_conv", 9)
