# RUN: tsc %s
# Each error has its place, what was expected and what was found; a name whose value failed is not
# told again.
# ERROR: 17:13: the operator softmx is not supported yet
# ERROR: 18:18: expected int for the value, found float
# ERROR: 19:21: no overload of add takes (float, str)
from torch import Tensor, nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    # The next three lines are wrong.
    def forward(self, x: Tensor, scale: float) -> Tensor:
        y = self.fc(x).softmx(-1)
        n: int = scale
        return y * (scale + "2")
