# RUN: tsc %s
# ERROR: 8:9: Net.K is a constant of the class: assign it in __init__ first
from typing import Final
from torch import Tensor, nn
class Net(nn.Module):
    K: Final[int] = 3
    def forward(self, x: Tensor):
        self.K = 4
        return x
