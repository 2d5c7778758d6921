"""A Kalman filter (Kalman 1960) for a point with constant velocity: state kept on the module from
call to call, a branch for missing measurements, small matrix algebra."""
from typing import Optional

import torch
from torch import Tensor, nn


class Kalman(nn.Module):
    def __init__(self, dt: float = 0.1, process: float = 0.01, noise: float = 0.25):
        super().__init__()
        self.register_buffer("f", torch.tensor([[1.0, dt], [0.0, 1.0]]))
        self.register_buffer("h", torch.tensor([[1.0, 0.0]]))
        self.register_buffer("q", process * torch.tensor([[dt ** 3 / 3, dt ** 2 / 2], [dt ** 2 / 2, dt]]))
        self.noise = noise
        self.state = torch.zeros(2, 1)
        self.covariance = torch.eye(2)
        self.missed = 0

    @torch.jit.export
    def reset(self) -> None:
        self.state = torch.zeros(2, 1)
        self.covariance = torch.eye(2)
        self.missed = 0

    def forward(self, measured: Optional[float]) -> Tensor:
        self.state = self.f @ self.state
        self.covariance = self.f @ self.covariance @ self.f.t() + self.q
        if measured is None:
            self.missed += 1
            if self.missed > 3:
                raise ValueError("too many missing measurements: " + str(self.missed))
        else:
            self.missed = 0
            s = self.h @ self.covariance @ self.h.t() + self.noise
            gain = self.covariance @ self.h.t() / s
            self.state = self.state + gain * (measured - self.h @ self.state)
            self.covariance = self.covariance - gain @ self.h @ self.covariance
        return self.state.flatten()


model = Kalman()
