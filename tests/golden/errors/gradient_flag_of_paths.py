# RUN: tsc %s
# ERROR: 13:16: requires_grad of a tensor that requires gradients on one path and none on another
import torch
from torch import nn, Tensor


class M(nn.Module):
    def forward(self, x: Tensor, flag: bool):
        y = x.clone()
        if flag:
            y.requires_grad_()
        z = y * 2
        return z.requires_grad
