"""GPT-2 (Radford et al. 2019), small, with a key-value cache: one call takes new tokens and the
cache so far, and returns the logits of the last token and the longer cache."""
from typing import List, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.width = width
        self.heads = heads
        self.ln1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.ln2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def heads_of(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), x.size(1), self.heads, self.width // self.heads).transpose(1, 2)

    def forward(self, x: Tensor, k_past: Tensor, v_past: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        q, k, v = self.qkv(self.ln1(x)).split(self.width, dim=2)
        q = self.heads_of(q)
        k = torch.cat([k_past, self.heads_of(k)], dim=2)
        v = torch.cat([v_past, self.heads_of(v)], dim=2)
        new, total = q.size(2), k.size(2)
        visible = torch.ones(new, total, dtype=torch.bool).tril(total - new)
        y = F.scaled_dot_product_attention(q, k, v, visible)
        x = x + self.proj(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh")), k, v


class Gpt2(nn.Module):
    def __init__(self, symbols: int = 96, width: int = 64, heads: int = 4, layers: int = 2, longest: int = 64):
        super().__init__()
        self.wte = nn.Embedding(symbols, width)
        self.wpe = nn.Embedding(longest, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.ln = nn.LayerNorm(width)

    def forward(self, ids: Tensor, k_past: Tensor, v_past: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        past = k_past.size(3)
        x = self.wte(ids) + self.wpe(torch.arange(past, past + ids.size(1)))
        ks: List[Tensor] = []
        vs: List[Tensor] = []
        for i, block in enumerate(self.blocks):
            x, k, v = block(x, k_past[i], v_past[i])
            ks.append(k)
            vs.append(v)
        logits = F.linear(self.ln(x[:, -1]), self.wte.weight)
        return logits, torch.stack(ks), torch.stack(vs)


torch.manual_seed(0)
model = Gpt2().eval()
