# RUN: tsc %s
# ERROR: 7:19: TypeError: Linear.__init__() missing 1 required positional argument: 'out_features'
from torch import Tensor, nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2)
    def forward(self, x: Tensor):
        return self.fc(x)
model = Net()
