"""Greedy decoding with a recurrent net: a loop whose end depends on the data, an early exit, and a
list that grows."""
from typing import List, Tuple

import torch
from torch import Tensor, nn


class Decoder(nn.Module):
    def __init__(self, symbols: int = 40, width: int = 32, longest: int = 24):
        super().__init__()
        self.longest = longest
        self.embed = nn.Embedding(symbols, width)
        self.cell = nn.GRUCell(width, width)
        self.out = nn.Linear(width, symbols)

    def forward(self, state: Tensor, start: int, stop: int) -> Tuple[List[int], float]:
        tokens: List[int] = []
        score = 0.0
        token = start
        while len(tokens) < self.longest:
            state = self.cell(self.embed(torch.tensor([token])), state)
            logp = torch.log_softmax(self.out(state), dim=-1)
            best, index = logp.max(dim=-1)
            token = int(index.item())
            if token == stop:
                break
            score += float(best.item())
            tokens.append(token)
        return tokens, score


torch.manual_seed(0)
model = Decoder().eval()
