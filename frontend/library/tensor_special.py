"""Special functions that follow from others: recurrences, identities, classical definitions."""
import math
from typing import List, Optional, Tuple

import torch
from torch import Tensor


def mvlgamma(self: Tensor, p: int) -> Tensor:
    """log of the multivariate gamma function: its product over (1 - j) / 2."""
    x = self if torch.is_floating_point(self) else torch.to(self, 6)
    halves = torch.arange(0.5 * (1 - p), 0.5, 0.5, dtype=x.dtype)
    logs = torch.lgamma(torch.unsqueeze(x, -1) + halves)
    return torch.sum(logs, [-1]) + 0.25 * p * (p - 1) * math.log(math.pi)


def special_multigammaln(self: Tensor, p: int) -> Tensor:
    return mvlgamma(self, p)


def special_entr(self: Tensor) -> Tensor:
    x = self if torch.is_floating_point(self) else torch.to(self, 6)
    inside = -x * torch.log(x)
    result = torch.where(x > 0, inside, torch.full_like(x, -float("inf")))
    result = torch.where(x == 0, torch.zeros_like(x), result)
    return torch.where(torch.isnan(x), x, result)


def special_ndtr(self: Tensor) -> Tensor:
    """The normal distribution function, from erf in the middle and erfc in the tails."""
    x = (self if torch.is_floating_point(self) else torch.to(self, 6)) * math.sqrt(0.5)
    if x.dtype == torch.float16 or x.dtype == torch.bfloat16:  # PyTorch's own steps, each rounded
        return (1 + torch.erf(x)) * 0.5
    tail = 0.5 * torch.erfc(torch.abs(x))
    return torch.where(torch.abs(x) < math.sqrt(0.5), 0.5 + 0.5 * torch.erf(x), torch.where(x > 0, 1 - tail, tail))


def special_log_ndtr(self: Tensor) -> Tensor:
    x = self if torch.is_floating_point(self) else torch.to(self, 6)
    t = x * math.sqrt(0.5)
    is_low = x < -1.0
    down = torch.where(is_low, t, -torch.ones_like(t))  # each formula sees only its own numbers: the other's have no gradient
    up = torch.where(is_low, torch.zeros_like(t), t)
    return torch.where(is_low, torch.log(torch.special_erfcx(-down) / 2) - down * down, torch.log1p(-torch.erfc(up) / 2))


def special_xlog1py(self: Tensor, other: Tensor) -> Tensor:
    a, b = torch.broadcast_tensors([self, other])
    product = a * torch.log1p(b)
    result = torch.where(a == 0, torch.zeros_like(product), product)
    return torch.where(torch.isnan(b), torch.full_like(product, float("nan")), result)


def special_xlog1py__other_scalar(self: Tensor, other: number) -> Tensor:
    return special_xlog1py(self, torch.scalar_tensor(other))


def special_xlog1py__self_scalar(self: number, other: Tensor) -> Tensor:
    return special_xlog1py(torch.scalar_tensor(self), other)


def special_expit(self: Tensor) -> Tensor:
    return torch.sigmoid(self)


def special_softmax(self: Tensor, dim: int, dtype: Optional[int] = None) -> Tensor:
    return torch.softmax(self, dim, dtype)


def special_log_softmax(self: Tensor, dim: int, *, dtype: Optional[int] = None) -> Tensor:
    return torch.log_softmax(self, dim, dtype)


# ---- orthogonal polynomials by their three-term recurrences ----
# x and n broadcast; each element has its own degree, so all run to the largest one.

def _degrees(x: Tensor, n: Tensor) -> Tuple[Tensor, Tensor, int]:
    a, b = torch.broadcast_tensors([x, n])
    a = a if torch.is_floating_point(a) else torch.to(a, 6)
    degree = torch.to(torch.trunc(torch.to(b, 7)), 4)
    top = 0
    if torch.numel(degree) > 0:
        top = int(torch.item(torch.max(degree)))
    return a, degree, top


def _pick(result: Tensor, degree: Tensor, k: int, value: Tensor) -> Tensor:
    return torch.where(degree == k, value, result)


def _chebyshev(x: Tensor, n: Tensor, first: Tensor, at_one: Tensor) -> Tensor:
    """p0 = 1, p1 = first, p(k+1) = 2 * at_one * p(k) - p(k-1)."""
    _, degree, top = _degrees(x, n)
    before = torch.ones_like(first)
    now = first
    result = torch.where(degree == 0, before, torch.zeros_like(first))
    result = _pick(result, degree, 1, now)
    for k in range(2, top + 1):
        after = 2 * at_one * now - before
        before = now
        now = after
        result = _pick(result, degree, k, now)
    return result


def special_chebyshev_polynomial_t(x: Tensor, n: Tensor) -> Tensor:
    a, _, _ = _degrees(x, n)
    return _chebyshev(x, n, a, a)


def special_chebyshev_polynomial_u(x: Tensor, n: Tensor) -> Tensor:
    a, _, _ = _degrees(x, n)
    return _chebyshev(x, n, 2 * a, a)


def special_chebyshev_polynomial_v(x: Tensor, n: Tensor) -> Tensor:
    a, _, _ = _degrees(x, n)
    return _chebyshev(x, n, 2 * a - 1, a)


def special_chebyshev_polynomial_w(x: Tensor, n: Tensor) -> Tensor:
    a, _, _ = _degrees(x, n)
    return _chebyshev(x, n, 2 * a + 1, a)


def special_shifted_chebyshev_polynomial_t(x: Tensor, n: Tensor) -> Tensor:
    a, _, _ = _degrees(x, n)
    s = 2 * a - 1
    return _chebyshev(x, n, s, s)


def special_shifted_chebyshev_polynomial_u(x: Tensor, n: Tensor) -> Tensor:
    a, _, _ = _degrees(x, n)
    s = 2 * a - 1
    return _chebyshev(x, n, 2 * s, s)


def special_shifted_chebyshev_polynomial_v(x: Tensor, n: Tensor) -> Tensor:
    a, _, _ = _degrees(x, n)
    s = 2 * a - 1
    return _chebyshev(x, n, 2 * s - 1, s)


def special_shifted_chebyshev_polynomial_w(x: Tensor, n: Tensor) -> Tensor:
    a, _, _ = _degrees(x, n)
    s = 2 * a - 1
    return _chebyshev(x, n, 2 * s + 1, s)


def special_hermite_polynomial_h(x: Tensor, n: Tensor) -> Tensor:
    a, degree, top = _degrees(x, n)
    before = torch.ones_like(a)
    now = 2 * a
    result = torch.where(degree == 0, before, torch.zeros_like(a))
    result = _pick(result, degree, 1, now)
    for k in range(2, top + 1):
        after = 2 * (a * now - (k - 1) * before)
        before = now
        now = after
        result = _pick(result, degree, k, now)
    return result


def special_hermite_polynomial_he(x: Tensor, n: Tensor) -> Tensor:
    a, degree, top = _degrees(x, n)
    before = torch.ones_like(a)
    now = a
    result = torch.where(degree == 0, before, torch.zeros_like(a))
    result = _pick(result, degree, 1, now)
    for k in range(2, top + 1):
        after = a * now - (k - 1) * before
        before = now
        now = after
        result = _pick(result, degree, k, now)
    return result


def special_laguerre_polynomial_l(x: Tensor, n: Tensor) -> Tensor:
    a, degree, top = _degrees(x, n)
    before = torch.ones_like(a)
    now = 1 - a
    result = torch.where(degree == 0, before, torch.zeros_like(a))
    result = _pick(result, degree, 1, now)
    for k in range(2, top + 1):
        after = ((2 * k - 1 - a) * now - (k - 1) * before) / k
        before = now
        now = after
        result = _pick(result, degree, k, now)
    return result


def special_legendre_polynomial_p(x: Tensor, n: Tensor) -> Tensor:
    a, degree, top = _degrees(x, n)
    before = torch.ones_like(a)
    now = a
    result = torch.where(degree == 0, before, torch.zeros_like(a))
    result = _pick(result, degree, 1, now)
    for k in range(2, top + 1):
        after = ((2 * k - 1) * a * now - (k - 1) * before) / k
        before = now
        now = after
        result = _pick(result, degree, k, now)
    return result


def special_chebyshev_polynomial_t__n_scalar(x: Tensor, n: number) -> Tensor:
    return special_chebyshev_polynomial_t(x, torch.scalar_tensor(n))


def special_chebyshev_polynomial_t__x_scalar(x: number, n: Tensor) -> Tensor:
    return special_chebyshev_polynomial_t(torch.scalar_tensor(x), n)


def special_chebyshev_polynomial_u__n_scalar(x: Tensor, n: number) -> Tensor:
    return special_chebyshev_polynomial_u(x, torch.scalar_tensor(n))


def special_chebyshev_polynomial_u__x_scalar(x: number, n: Tensor) -> Tensor:
    return special_chebyshev_polynomial_u(torch.scalar_tensor(x), n)


def special_chebyshev_polynomial_v__n_scalar(x: Tensor, n: number) -> Tensor:
    return special_chebyshev_polynomial_v(x, torch.scalar_tensor(n))


def special_chebyshev_polynomial_v__x_scalar(x: number, n: Tensor) -> Tensor:
    return special_chebyshev_polynomial_v(torch.scalar_tensor(x), n)


def special_chebyshev_polynomial_w__n_scalar(x: Tensor, n: number) -> Tensor:
    return special_chebyshev_polynomial_w(x, torch.scalar_tensor(n))


def special_chebyshev_polynomial_w__x_scalar(x: number, n: Tensor) -> Tensor:
    return special_chebyshev_polynomial_w(torch.scalar_tensor(x), n)


def special_shifted_chebyshev_polynomial_t__n_scalar(x: Tensor, n: number) -> Tensor:
    return special_shifted_chebyshev_polynomial_t(x, torch.scalar_tensor(n))


def special_shifted_chebyshev_polynomial_t__x_scalar(x: number, n: Tensor) -> Tensor:
    return special_shifted_chebyshev_polynomial_t(torch.scalar_tensor(x), n)


def special_shifted_chebyshev_polynomial_u__n_scalar(x: Tensor, n: number) -> Tensor:
    return special_shifted_chebyshev_polynomial_u(x, torch.scalar_tensor(n))


def special_shifted_chebyshev_polynomial_u__x_scalar(x: number, n: Tensor) -> Tensor:
    return special_shifted_chebyshev_polynomial_u(torch.scalar_tensor(x), n)


def special_shifted_chebyshev_polynomial_v__n_scalar(x: Tensor, n: number) -> Tensor:
    return special_shifted_chebyshev_polynomial_v(x, torch.scalar_tensor(n))


def special_shifted_chebyshev_polynomial_v__x_scalar(x: number, n: Tensor) -> Tensor:
    return special_shifted_chebyshev_polynomial_v(torch.scalar_tensor(x), n)


def special_shifted_chebyshev_polynomial_w__n_scalar(x: Tensor, n: number) -> Tensor:
    return special_shifted_chebyshev_polynomial_w(x, torch.scalar_tensor(n))


def special_shifted_chebyshev_polynomial_w__x_scalar(x: number, n: Tensor) -> Tensor:
    return special_shifted_chebyshev_polynomial_w(torch.scalar_tensor(x), n)


def special_hermite_polynomial_h__n_scalar(x: Tensor, n: number) -> Tensor:
    return special_hermite_polynomial_h(x, torch.scalar_tensor(n))


def special_hermite_polynomial_h__x_scalar(x: number, n: Tensor) -> Tensor:
    return special_hermite_polynomial_h(torch.scalar_tensor(x), n)


def special_hermite_polynomial_he__n_scalar(x: Tensor, n: number) -> Tensor:
    return special_hermite_polynomial_he(x, torch.scalar_tensor(n))


def special_hermite_polynomial_he__x_scalar(x: number, n: Tensor) -> Tensor:
    return special_hermite_polynomial_he(torch.scalar_tensor(x), n)


def special_laguerre_polynomial_l__n_scalar(x: Tensor, n: number) -> Tensor:
    return special_laguerre_polynomial_l(x, torch.scalar_tensor(n))


def special_laguerre_polynomial_l__x_scalar(x: number, n: Tensor) -> Tensor:
    return special_laguerre_polynomial_l(torch.scalar_tensor(x), n)


def special_legendre_polynomial_p__n_scalar(x: Tensor, n: number) -> Tensor:
    return special_legendre_polynomial_p(x, torch.scalar_tensor(n))


def special_legendre_polynomial_p__x_scalar(x: number, n: Tensor) -> Tensor:
    return special_legendre_polynomial_p(torch.scalar_tensor(x), n)
