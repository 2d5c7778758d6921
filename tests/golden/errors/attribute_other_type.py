# RUN: tsc %s
# ERROR: 9:9: expected int for the assigned value, found str
from torch import Tensor, nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.count: int = 0
    def forward(self, x: Tensor):
        self.count = "many"
        return x
