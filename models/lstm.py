"""An LSTM language model whose loop over time is written in the script."""
from typing import List, Tuple

import torch
from torch import Tensor, nn


class LoopedLstm(nn.Module):
    def __init__(self, symbols: int = 64, width: int = 48):
        super().__init__()
        self.width = width
        self.embed = nn.Embedding(symbols, width)
        self.cell = nn.LSTMCell(width, width)
        self.out = nn.Linear(width, symbols)

    def forward(self, ids: Tensor) -> Tuple[Tensor, Tensor]:
        steps, batch = ids.size(0), ids.size(1)
        h = torch.zeros(batch, self.width)
        c = torch.zeros(batch, self.width)
        logits: List[Tensor] = []
        for t in range(steps):
            h, c = self.cell(self.embed(ids[t]), (h, c))
            logits.append(self.out(h))
        return torch.stack(logits), h


torch.manual_seed(0)
model = LoopedLstm().eval()
