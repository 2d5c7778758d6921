# RUN: tsc %s
# ERROR: 7:18: AttributeError: 'Net' object has no attribute 'b'
from torch import Tensor, nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = self.b + 1
    def forward(self, x: Tensor):
        return x
model = Net()
