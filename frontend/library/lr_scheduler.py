"""Schedulers of torch.optim.lr_scheduler. __init__ is run at compile time; step() sets the learning rate of each of the
optimiser's groups from the one before, in the order of PyTorch's own arithmetic, so that rates the program changes are followed."""
import math
from typing import List

import torch
from torch.nn import Module


class LRScheduler(Module):
    def __init__(self, optimizer, last_epoch=-1):
        super().__init__()
        if last_epoch != -1:
            raise NotImplementedError("a learning rate scheduler that begins at another epoch than -1 is not supported")
        self.optimizer = optimizer
        self.base_lrs = [group["lr"] for group in optimizer.param_groups]
        self.last_epoch = 0
        for k in range(len(self.base_lrs)):
            optimizer.param_groups[k]["lr"] = float(self.first(k))
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    def first(self, k: int) -> float:
        return self.base_lrs[k]

    def rate(self, k: int, lr: float) -> float:
        raise NotImplementedError

    def get_last_lr(self) -> List[float]:
        return self._last_lr

    def step(self) -> None:
        self.last_epoch += 1
        rates: List[float] = []
        for k in range(len(self.base_lrs)):
            rates.append(self.rate(k, self.optimizer.param_groups[k]["lr"]))
        for k in range(len(rates)):
            self.optimizer.param_groups[k]["lr"] = rates[k]
        self._last_lr = rates


class StepLR(LRScheduler):
    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        super().__init__(optimizer, last_epoch)
        self.step_size = step_size
        self.gamma = float(gamma)

    def rate(self, k: int, lr: float) -> float:
        return lr if self.last_epoch % self.step_size != 0 else lr * self.gamma


class MultiStepLR(LRScheduler):
    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        super().__init__(optimizer, last_epoch)
        self.milestones = list(milestones)
        self.gamma = float(gamma)

    def rate(self, k: int, lr: float) -> float:
        count = self.milestones.count(self.last_epoch)
        return lr if count == 0 else lr * self.gamma ** count


class ExponentialLR(LRScheduler):
    def __init__(self, optimizer, gamma, last_epoch=-1):
        super().__init__(optimizer, last_epoch)
        self.gamma = float(gamma)

    def rate(self, k: int, lr: float) -> float:
        return lr * self.gamma


class ConstantLR(LRScheduler):
    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = float(factor)
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def first(self, k: int) -> float:
        return self.base_lrs[k] * self.factor

    def rate(self, k: int, lr: float) -> float:
        return lr if self.last_epoch != self.total_iters else lr * (1.0 / self.factor)


class LinearLR(LRScheduler):
    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = float(start_factor)
        self.end_factor = float(end_factor)
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def first(self, k: int) -> float:
        return self.base_lrs[k] * self.start_factor

    def rate(self, k: int, lr: float) -> float:
        if self.last_epoch > self.total_iters:
            return lr
        range = self.end_factor - self.start_factor
        return lr * (1.0 + range / (self.total_iters * self.start_factor + (self.last_epoch - 1) * range))


class PolynomialLR(LRScheduler):
    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        super().__init__(optimizer, last_epoch)
        self.total_iters = total_iters
        self.power = float(power)

    def rate(self, k: int, lr: float) -> float:
        if self.last_epoch > self.total_iters:
            return lr
        decay = (1.0 - self.last_epoch / self.total_iters) / (1.0 - (self.last_epoch - 1) / self.total_iters)
        return lr * decay ** self.power


class CosineAnnealingLR(LRScheduler):
    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        super().__init__(optimizer, last_epoch)
        self.T_max = T_max
        self.eta_min = float(eta_min)

    def rate(self, k: int, lr: float) -> float:
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0: # the way up begins where the last factor is 0 / 0
            return lr + (self.base_lrs[k] - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
        now = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        return now / before * (lr - self.eta_min) + self.eta_min


class CosineAnnealingWarmRestarts(LRScheduler):
    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        super().__init__(optimizer, last_epoch)
        self.T_i = T_0
        self.T_mult = T_mult
        self.T_cur = 0
        self.eta_min = float(eta_min)

    def rate(self, k: int, lr: float) -> float:
        if k == 0:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i = self.T_i * self.T_mult
        return self.eta_min + (self.base_lrs[k] - self.eta_min) * (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2


class LambdaLR(LRScheduler):
    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        self.lr_lambda = lr_lambda
        super().__init__(optimizer, last_epoch)

    def first(self, k: int) -> float:
        return self.base_lrs[k] * self.lr_lambda(0)

    def rate(self, k: int, lr: float) -> float:
        return self.base_lrs[k] * self.lr_lambda(self.last_epoch)


class MultiplicativeLR(LRScheduler):
    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        super().__init__(optimizer, last_epoch)
        self.lr_lambda = lr_lambda

    def rate(self, k: int, lr: float) -> float:
        return lr * self.lr_lambda(self.last_epoch)
