# RUN: tsc %s
# ERROR: 6:16: making the module Linear outside __init__ is not supported yet
from torch import Tensor, nn
class Net(nn.Module):
    def forward(self, x: Tensor):
        return nn.Linear(2, 2)(x)
