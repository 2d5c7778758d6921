"""A Transformer encoder (Vaswani et al. 2017) with a padding mask and mean pooling."""
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def split(self, x: Tensor) -> Tensor:
        n, t, w = x.shape
        return x.view(n, t, self.heads, w // self.heads).transpose(1, 2)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        scores = scores.masked_fill(mask[:, None, None, :] == 0, float("-inf"))
        y = torch.matmul(torch.softmax(scores, dim=-1), v)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, width * 4)
        self.down = nn.Linear(width * 4, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), mask)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Encoder(nn.Module):
    def __init__(self, symbols: int = 100, width: int = 64, heads: int = 4, layers: int = 2, longest: int = 64):
        super().__init__()
        self.token = nn.Embedding(symbols, width)
        self.position = nn.Embedding(longest, width)
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.token(ids) + self.position(torch.arange(ids.size(1)))
        for layer in self.layers:
            x = layer(x, mask)
        weight = mask.unsqueeze(-1).to(x.dtype)
        return (self.norm(x) * weight).sum(1) / weight.sum(1).clamp(min=1e-9)


torch.manual_seed(0)
model = Encoder().eval()
