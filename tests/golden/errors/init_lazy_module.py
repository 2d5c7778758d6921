# RUN: tsc %s
# ERROR: 8:18: NotImplementedError: torch.nn.LazyLinear is not supported: its sizes are known only after a first call, expected torch.nn.Linear with its sizes
from torch import nn

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.LazyLinear(2)

    def forward(self, x):
        return self.l(x)

model = M()
