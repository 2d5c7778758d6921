# RUN: tsc %s
# ERROR: 8:9: Net has no attribute 'last' to assign: make it in __init__
from torch import Tensor, nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
    def forward(self, x: Tensor):
        self.last = x
        return x
