"""A small convolutional net that reads handwritten digits of 8x8 pixels, grey levels 0 to 16."""
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Digits(nn.Module):
    def __init__(self, width: int = 16):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(2 * width)
        self.fc = nn.Linear(2 * width * 4, 10)

    def forward(self, image: Tensor) -> Tensor:
        """image [N, 1, 8, 8], 0 to 16 -> probabilities [N, 10]"""
        x = image / 8.0 - 1.0
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return F.softmax(self.fc(torch.flatten(x, 1)), dim=1)


torch.manual_seed(0)
model = Digits().eval()
