"""A U-Net (Ronneberger et al. 2015): skip connections, pooling down, interpolation up."""
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class DoubleConv(nn.Sequential):
    def __init__(self, inputs: int, outputs: int):
        super().__init__(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
                         nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width: int = 8):
        super().__init__()
        self.down1 = DoubleConv(1, width)
        self.down2 = DoubleConv(width, width * 2)
        self.middle = DoubleConv(width * 2, width * 4)
        self.up2 = DoubleConv(width * 6, width * 2)
        self.up1 = DoubleConv(width * 3, width)
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        m = self.middle(F.max_pool2d(b, 2))
        y = F.interpolate(m, scale_factor=2.0, mode="bilinear", align_corners=False)
        y = self.up2(torch.cat([y, b], dim=1))
        y = F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.head(self.up1(torch.cat([y, a], dim=1)))


torch.manual_seed(0)
model = UNet().eval()
