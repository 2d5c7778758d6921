# RUN: tsc %s
# ERROR: 10:20: Net has no attribute 'wieght'
import torch
from torch import Tensor, nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
    def forward(self, x: Tensor):
        return x * self.wieght
