"""Inverted residuals with depthwise convolutions and squeeze-excitation (Howard et al. 2019), small."""
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.down = nn.Conv2d(channels, channels // 4, 1)
        self.up = nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        scale = F.adaptive_avg_pool2d(x, 1)
        return x * F.hardsigmoid(self.up(F.relu(self.down(scale))))


class InvertedResidual(nn.Module):
    def __init__(self, inputs: int, hidden: int, outputs: int, kernel: int, stride: int, excite: bool):
        super().__init__()
        self.residual = stride == 1 and inputs == outputs
        layers = [nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.Hardswish(),
                  nn.Conv2d(hidden, hidden, kernel, stride, kernel // 2, groups=hidden, bias=False),
                  nn.BatchNorm2d(hidden), nn.Hardswish()]
        if excite:
            layers.append(SqueezeExcite(hidden))
        layers += [nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.body = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(x)
        return x + y if self.residual else y


class MobileNet(nn.Module):
    def __init__(self, classes: int = 10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish())
        self.blocks = nn.Sequential(InvertedResidual(16, 32, 16, 3, 1, False), InvertedResidual(16, 64, 24, 3, 2, True),
                                    InvertedResidual(24, 72, 24, 5, 1, True), InvertedResidual(24, 96, 40, 5, 2, True))
        self.head = nn.Linear(40, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean([2, 3]))


torch.manual_seed(0)
model = MobileNet().eval()
