"""A small network over frames that gives an image: convolutions of three dims, norms over groups, upsampling by
transposed convolutions."""
import torch
from torch import nn


class Video(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv3d(3, 8, (3, 5, 5), stride=(1, 2, 2), padding=(1, 2, 2))
        self.norm = nn.GroupNorm(2, 8)
        self.depthwise = nn.Conv3d(8, 8, 3, padding=1, groups=8, bias=False)
        self.scale = nn.BatchNorm3d(8)
        self.point = nn.Conv3d(8, 12, 1, stride=(2, 1, 1))
        self.up = nn.ConvTranspose2d(12, 6, 3, stride=2, padding=1, output_padding=1)
        self.instance = nn.InstanceNorm2d(6, affine=True)
        self.out = nn.ConvTranspose2d(6, 2, (4, 2), stride=(2, 1), padding=(1, 0))
        self.line = nn.ConvTranspose1d(2, 1, 7, stride=4, padding=2)

    def forward(self, x):
        x = torch.relu(self.norm(self.stem(x)))
        x = self.point(torch.relu(self.scale(self.depthwise(x))))
        x = self.instance(self.up(x.mean(2)))
        y = self.out(torch.nn.functional.gelu(x))
        return y, self.line(y.mean(3))


torch.manual_seed(5)
model = Video().eval()
