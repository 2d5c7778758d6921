# RUN: tsc %s
# ERROR: 6:9: AttributeError: cannot assign module before Module.__init__() call
from torch import Tensor, nn
class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(2, 2)
    def forward(self, x: Tensor):
        return self.fc(x)
model = Net()
