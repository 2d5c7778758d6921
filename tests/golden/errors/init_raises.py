# RUN: tsc %s
# ERROR: 8:13: ValueError: 3 heads do not divide 8
from torch import Tensor, nn
class Net(nn.Module):
    def __init__(self, heads: int = 3):
        super().__init__()
        if 8 % heads:
            raise ValueError(f"{heads} heads do not divide 8")
    def forward(self, x: Tensor):
        return x
model = Net()
