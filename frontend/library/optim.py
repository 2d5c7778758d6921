"""Optimisers of torch.optim. __init__ is run at compile time; step() is compiled, its loops over parameters written out, and
follows the arithmetic of PyTorch's own step for one tensor at a time, operation by operation. An optimiser that a module keeps is
no submodule of it, as in PyTorch. Its learning rates are in param_groups, one dict a group, and may be changed by the program; all
other settings are those of its making."""
import math
from typing import Dict, List, Optional

import torch
from torch import Tensor
from torch.nn import Module, ParameterList


class Optimizer(Module):
    def __init__(self, params, defaults):
        super().__init__()
        groups = list(params)
        if len(groups) == 0:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        flat = []
        group_of = []
        settings = {}
        for name in defaults:
            settings[name] = []
        rates = []
        for k in range(len(groups)):
            given = groups[k]
            members = given["params"]
            if isinstance(members, Tensor):
                members = [members]
            rates.append({"lr": float(given.get("lr", defaults["lr"]))})
            for p in members:
                if not isinstance(p, Tensor):
                    raise TypeError("optimizer can only optimize Tensors, but one of the params is " + type(p).__name__)
                flat.append(p)
                group_of.append(k)
                for name in defaults:
                    settings[name].append(given.get(name, defaults[name]))
        self.params = ParameterList(flat)
        self.param_groups = rates
        self.group_of = group_of
        self.steps = [0 for p in flat]
        self.settings = settings
        self.weight_decay = self.floats("weight_decay")
        self.maximize = self.flags("maximize")
        self.decoupled = self.flags("decoupled_weight_decay") if "decoupled_weight_decay" in defaults else [False for p in flat]

    def floats(self, name):
        return [float(v) for v in self.settings[name]]

    def flags(self, name):
        return [bool(v) for v in self.settings[name]]

    def betas(self, at):
        return [float(v[at]) for v in self.settings["betas"]]

    def buffers_like_params(self, value=0.0):
        return ParameterList([torch.full_like(p, value, requires_grad=False) for p in self.params])

    def lr(self, i: int) -> float:
        return self.param_groups[self.group_of[i]]["lr"]

    def direction(self, i: int, p: Tensor, given: Tensor) -> Tensor:
        """The gradient as it is followed: its sign, and the decay of the weight, which a decoupled one makes at once."""
        grad = -given if self.maximize[i] else given
        if self.weight_decay[i] != 0.0:
            if self.decoupled[i]:
                p.mul_(1 - self.lr(i) * self.weight_decay[i])
            else:
                grad = torch.add(grad, p, alpha=self.weight_decay[i])
        return grad

    def step(self) -> None:
        with torch.no_grad():
            for i, p in enumerate(self.params):
                given = p.grad
                if given is not None:
                    self.update(i, p, given)

    def zero_grad(self, set_to_none: bool = True) -> None:
        for p in self.params:
            p.grad = None


class SGD(Optimizer):
    def __init__(self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None,
                 differentiable=False, fused=None):
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                                  "nesterov": nesterov, "maximize": maximize})
        self.momentum = self.floats("momentum")
        self.dampening = self.floats("dampening")
        self.nesterov = self.flags("nesterov")
        self.velocity = self.buffers_like_params()
        self.settings = None

    def update(self, i: int, p: Tensor, given: Tensor) -> None:
        grad = self.direction(i, p, given)
        if self.momentum[i] != 0.0:
            velocity = self.velocity[i]
            if self.dampening[i] != 0.0 and self.steps[i] == 0:
                velocity.copy_(grad)
            else:
                velocity.mul_(self.momentum[i]).add_(grad, alpha=1 - self.dampening[i])
            if self.dampening[i] != 0.0:
                self.steps[i] = 1
            grad = torch.add(grad, velocity, alpha=self.momentum[i]) if self.nesterov[i] else velocity
        p.add_(grad, alpha=-self.lr(i))


class _Moments(Optimizer):
    """Moving averages of a gradient and of its square."""

    def make_moments(self):
        self.beta1 = self.betas(0)
        self.beta2 = self.betas(1)
        self.eps = self.floats("eps")
        self.exp_avg = self.buffers_like_params()
        self.exp_avg_sq = self.buffers_like_params()

    def update_moments(self, i: int, grad: Tensor) -> None:
        self.exp_avg[i].lerp_(grad, 1 - self.beta1[i])
        self.exp_avg_sq[i].mul_(self.beta2[i]).addcmul_(grad, grad, value=1 - self.beta2[i])


class Adam(_Moments):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None,
                 maximize=False, capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                                  "maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay})
        self.make_moments()
        self.amsgrad = self.flags("amsgrad")
        self.max_exp_avg_sq = self.buffers_like_params()
        self.settings = None

    def update(self, i: int, p: Tensor, given: Tensor) -> None:
        lr = self.lr(i)
        beta1, beta2 = self.beta1[i], self.beta2[i]
        grad = self.direction(i, p, given)
        self.steps[i] += 1
        exp_avg, exp_avg_sq = self.exp_avg[i], self.exp_avg_sq[i]
        self.update_moments(i, grad)
        step_size = lr / (1 - beta1 ** self.steps[i])
        correction = math.sqrt(1 - beta2 ** self.steps[i])
        if self.amsgrad[i]:
            largest = self.max_exp_avg_sq[i]
            largest.copy_(torch.maximum(largest, exp_avg_sq))
            denominator = (torch.sqrt(largest) / correction).add_(self.eps[i])
        else:
            denominator = (torch.sqrt(exp_avg_sq) / correction).add_(self.eps[i])
        p.addcdiv_(exp_avg, denominator, value=-step_size)


class AdamW(Adam):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False,
                 foreach=None, capturable=False, differentiable=False, fused=None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True)


class NAdam(_Moments):
    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3,
                 decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False, differentiable=False):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
                                  "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay})
        self.make_moments()
        self.momentum_decay = self.floats("momentum_decay")
        self.mu_product = [1.0 for p in self.params]
        self.settings = None

    def update(self, i: int, p: Tensor, given: Tensor) -> None:
        lr = self.lr(i)
        beta1, beta2 = self.beta1[i], self.beta2[i]
        grad = self.direction(i, p, given)
        self.steps[i] += 1
        step = self.steps[i]
        mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * self.momentum_decay[i])))
        mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * self.momentum_decay[i])))
        self.mu_product[i] = self.mu_product[i] * mu
        exp_avg, exp_avg_sq = self.exp_avg[i], self.exp_avg_sq[i]
        self.update_moments(i, grad)
        denominator = (exp_avg_sq / (1 - beta2 ** step)).sqrt().add_(self.eps[i])
        product = self.mu_product[i]
        p.addcdiv_(grad, denominator, value=-lr * (1.0 - mu) / (1.0 - product))
        p.addcdiv_(exp_avg, denominator, value=(-lr * mu_next) / (1.0 - product * mu_next))


class Adamax(Optimizer):
    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *, maximize=False,
                 differentiable=False, capturable=False):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize})
        self.beta1 = self.betas(0)
        self.beta2 = self.betas(1)
        self.eps = self.floats("eps")
        self.exp_avg = self.buffers_like_params()
        self.exp_inf = self.buffers_like_params()
        self.settings = None

    def update(self, i: int, p: Tensor, given: Tensor) -> None:
        beta1, beta2 = self.beta1[i], self.beta2[i]
        grad = self.direction(i, p, given)
        self.steps[i] += 1
        exp_avg, exp_inf = self.exp_avg[i], self.exp_inf[i]
        exp_avg.lerp_(grad, 1 - beta1)
        exp_inf.copy_(torch.maximum(exp_inf * beta2, torch.abs(grad) + self.eps[i]))
        rate = self.lr(i) / (1 - beta1 ** self.steps[i])
        p.addcdiv_(exp_avg, exp_inf, value=-rate)


class RMSprop(Optimizer):
    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, capturable=False,
                 foreach=None, maximize=False, differentiable=False):
        super().__init__(params, {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum,
                                  "centered": centered, "maximize": maximize})
        self.alpha = self.floats("alpha")
        self.eps = self.floats("eps")
        self.momentum = self.floats("momentum")
        self.centered = self.flags("centered")
        self.square_avg = self.buffers_like_params()
        self.grad_avg = self.buffers_like_params()
        self.velocity = self.buffers_like_params()
        self.settings = None

    def update(self, i: int, p: Tensor, given: Tensor) -> None:
        lr = self.lr(i)
        alpha = self.alpha[i]
        grad = self.direction(i, p, given)
        square_avg = self.square_avg[i]
        square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if self.centered[i]:
            grad_avg = self.grad_avg[i]
            grad_avg.lerp_(grad, 1 - alpha)
            root = torch.addcmul(square_avg, grad_avg, grad_avg, value=-1).sqrt()
        else:
            root = torch.sqrt(square_avg)
        root = root + self.eps[i]
        if self.momentum[i] > 0.0:
            velocity = self.velocity[i]
            velocity.mul_(self.momentum[i]).addcdiv_(grad, root)
            p.add_(velocity, alpha=-lr)
        else:
            p.addcdiv_(grad, root, value=-lr)


class Adagrad(Optimizer):
    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *,
                 maximize=False, differentiable=False, fused=None):
        super().__init__(params, {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps, "maximize": maximize})
        self.lr_decay = self.floats("lr_decay")
        self.eps = self.floats("eps")
        self.total = self.buffers_like_params(float(initial_accumulator_value))
        self.settings = None

    def update(self, i: int, p: Tensor, given: Tensor) -> None:
        grad = self.direction(i, p, given)
        self.steps[i] += 1
        rate = self.lr(i) / (1 + (self.steps[i] - 1) * self.lr_decay[i])
        total = self.total[i]
        total.addcmul_(grad, grad, value=1.0)
        p.addcdiv_(grad, torch.sqrt(total) + self.eps[i], value=-rate)


class Adadelta(Optimizer):
    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False, maximize=False,
                 differentiable=False):
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize})
        self.rho = self.floats("rho")
        self.eps = self.floats("eps")
        self.square_avg = self.buffers_like_params()
        self.acc_delta = self.buffers_like_params()
        self.settings = None

    def update(self, i: int, p: Tensor, given: Tensor) -> None:
        rho = self.rho[i]
        grad = self.direction(i, p, given)
        square_avg, acc_delta = self.square_avg[i], self.acc_delta[i]
        square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = torch.sqrt(acc_delta + self.eps[i]) / torch.sqrt(square_avg + self.eps[i]) * grad
        acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        p.add_(delta, alpha=-self.lr(i))
