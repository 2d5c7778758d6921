"""The model of the weights_*.pth files."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Linear(3, 2), nn.BatchNorm1d(2)

    def forward(self, x):
        return self.norm(self.fc(x))


model = Net().eval()
