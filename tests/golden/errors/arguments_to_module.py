# RUN: tsc %s
# ERROR: 9:16: torch.nn.Linear.forward takes 1 argument, 2 were given
from torch import Tensor, nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
    def forward(self, x: Tensor):
        return self.fc(x, x)
