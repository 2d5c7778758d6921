# RUN: tsc %s
# ERROR: 7:18: ZeroDivisionError: integer division or modulo by zero
from torch import Tensor, nn
class Net(nn.Module):
    def __init__(self, n: int = 0):
        super().__init__()
        self.k = 1 // n
    def forward(self, x: Tensor):
        return x * self.k
model = Net()
