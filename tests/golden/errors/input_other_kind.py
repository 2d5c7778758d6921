# RUN: tsc %s --input n:float32[2]
# ERROR: 5:5: --input gives 'n' the type float32[2], but it is declared as int
from torch import Tensor, nn
class Net(nn.Module):
    def forward(self, x: Tensor, n: int):
        return x * n
model = Net()
