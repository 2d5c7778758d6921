# RUN: tsc %s
# ERROR: 6:5: forward has no parameter for the object that it is called on: expected self
from torch import nn

class M(nn.Module):
    def forward():
        return 1

model = M()
