"""The decoder and the encoder of a variational autoencoder (Kingma & Welling 2013) as two entries."""
from typing import Tuple

import torch
from torch import Tensor, nn


class Vae(nn.Module):
    def __init__(self, latent: int = 8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 16, 3, 2, 1),
                                     nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(16 * 7 * 7, 2 * latent))
        self.widen = nn.Linear(latent, 16 * 7 * 7)
        self.decoder = nn.Sequential(nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.ELU(), nn.ConvTranspose2d(8, 1, 4, 2, 1),
                                     nn.Sigmoid())

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        return self.decode(mean), mean, log_variance

    @torch.jit.export
    def decode(self, z: Tensor) -> Tensor:
        return self.decoder(self.widen(z).view(-1, 16, 7, 7))


torch.manual_seed(0)
model = Vae().eval()
