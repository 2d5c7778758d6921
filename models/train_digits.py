"""A training step that is compiled whole: forward, gradients and the optimiser's update. The weights, their momenta and the
running statistics are state of the session; forward then uses what was learnt. Runs unchanged under Python.

tsc models/train_digits.py --entry train_step,classify --input 'train_step.images:float32[16,1,8,8]' --input 'train_step.labels:int64[16]'"""
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class TrainDigits(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.hidden = nn.Linear(8 * 4 * 4, 32)
        self.out = nn.Linear(32, 10)
        self.optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2, weight_decay=1e-2)

    def forward(self, images: Tensor) -> Tensor:
        x = F.max_pool2d(torch.relu(self.norm(self.conv(images))), 2)
        return self.out(torch.relu(self.hidden(torch.flatten(x, 1))))

    @torch.jit.export
    def train_step(self, images: Tensor, labels: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.forward(images), labels, label_smoothing=0.05)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    @torch.jit.export
    def classify(self, images: Tensor) -> Tensor:
        return torch.argmax(self.forward(images), 1)


torch.manual_seed(7)
model = TrainDigits()
