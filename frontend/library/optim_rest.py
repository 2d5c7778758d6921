"""Optimisers that few models use; see optim.py for what they have in common."""
import math

import torch
from torch import Tensor
from torch.nn import ParameterList
from torch.optim import Optimizer, _Moments


class RAdam(_Moments):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *, foreach=None,
                 maximize=False, capturable=False, differentiable=False):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
                                  "decoupled_weight_decay": decoupled_weight_decay})
        self.make_moments()
        self.settings = None

    def update(self, i: int, p: Tensor, given: Tensor) -> None:
        lr = self.lr(i)
        beta1, beta2 = self.beta1[i], self.beta2[i]
        grad = self.direction(i, p, given)
        self.steps[i] += 1
        step = self.steps[i]
        exp_avg, exp_avg_sq = self.exp_avg[i], self.exp_avg_sq[i]
        self.update_moments(i, grad)
        corrected = exp_avg / (1 - beta1 ** step)
        correction2 = 1 - beta2 ** step
        # the length of the moving average's approximation, and of the longest: Liu et al. (2019), section 4
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * (beta2 ** step) / correction2
        if length > 5.0:
            rectified = math.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
            adaptive = math.sqrt(correction2) / (torch.sqrt(exp_avg_sq) + self.eps[i])
            p.add_(corrected * lr * adaptive * rectified, alpha=-1.0)
        else:
            p.add_(corrected * lr, alpha=-1.0)


class Rprop(Optimizer):
    def __init__(self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None, maximize=False,
                 differentiable=False):
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "weight_decay": 0, "maximize": maximize})
        self.falling = [float(v[0]) for v in self.settings["etas"]]
        self.growing = [float(v[1]) for v in self.settings["etas"]]
        self.smallest = [float(v[0]) for v in self.settings["step_sizes"]]
        self.largest = [float(v[1]) for v in self.settings["step_sizes"]]
        self.previous = self.buffers_like_params()
        sizes = self.floats("lr")
        self.sizes = ParameterList([torch.full_like(self.params[k], sizes[k], requires_grad=False) for k in range(len(sizes))])
        self.settings = None

    def update(self, i: int, p: Tensor, given: Tensor) -> None:
        grad = self.direction(i, p, given)
        previous, size = self.previous[i], self.sizes[i]
        agreement = grad * previous
        turned = agreement < 0
        ones = torch.ones_like(grad)
        factor = torch.where(turned, ones * self.falling[i], torch.where(agreement > 0, ones * self.growing[i], ones))
        size.copy_(torch.clamp(size * factor, self.smallest[i], self.largest[i]))
        grad = torch.masked_fill(grad, turned, 0)
        p.addcmul_(torch.sign(grad), size, value=-1)
        previous.copy_(grad)


class ASGD(Optimizer):
    def __init__(self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None, maximize=False,
                 differentiable=False, capturable=False):
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize})
        self.lambd = self.floats("lambd")
        self.alpha = self.floats("alpha")
        self.t0 = self.floats("t0")
        self.eta = self.floats("lr")
        self.mu = [1.0 for p in self.params]
        self.ax = self.buffers_like_params()
        self.settings = None

    def update(self, i: int, p: Tensor, given: Tensor) -> None:
        grad = self.direction(i, p, given)
        self.steps[i] += 1
        step = self.steps[i]
        eta, mu, average = self.eta[i], self.mu[i], self.ax[i]
        p.mul_(1 - self.lambd[i] * eta)
        p.add_(grad, alpha=-eta)
        average.copy_(p if mu == 1.0 else average + (p - average) * mu)
        lr = self.lr(i)
        self.eta[i] = lr / ((1 + self.lambd[i] * lr * step) ** self.alpha[i])
        self.mu[i] = 1 / max(1.0, step - self.t0[i])
