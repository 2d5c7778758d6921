"""A bidirectional GRU over words made of characters: embeddings, convolution over characters,
packed by hand, a linear layer for tags."""
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Tagger(nn.Module):
    def __init__(self, letters: int = 30, width: int = 16, hidden: int = 24, tags: int = 7):
        super().__init__()
        self.letters = nn.Embedding(letters, width, padding_idx=0)
        self.conv = nn.Conv1d(width, hidden, 3, padding=1)
        self.gru = nn.GRU(hidden, hidden, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * hidden, tags)

    def forward(self, words: Tensor) -> Tensor:
        n, length, letters = words.shape
        x = self.letters(words.view(n * length, letters)).transpose(1, 2)
        x = F.relu(self.conv(x)).amax(dim=2).view(n, length, -1)
        y, _ = self.gru(x)
        return self.out(y).argmax(dim=-1)


torch.manual_seed(0)
model = Tagger().eval()
