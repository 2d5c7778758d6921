# RUN: tsc %s
# ERROR: 7:19: TypeError: Linear.__init__() got an unexpected keyword argument 'biass'
from torch import Tensor, nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3, biass=False)
    def forward(self, x: Tensor):
        return self.fc(x)
model = Net()
