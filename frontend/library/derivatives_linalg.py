"""Derivatives of linear algebra; see derivatives.py for the form. Real matrices: the pass refuses complex ones.

Formulas: Giles, Collected Matrix Derivative Results for Forward and Reverse Mode Algorithmic Differentiation (2008), with those of
PyTorch (torch/csrc/autograd/FunctionsManual.cpp) for factors whose signs or vectors are free."""
import math
from typing import List, Optional, Tuple

import torch
from torch import Tensor


def _mT(A: Tensor) -> Tensor:
    return torch.transpose(A, -2, -1)


def _times_matrix(g: Tensor, A: Tensor) -> Tensor:
    """A number for each matrix, times it."""
    return torch.unsqueeze(torch.unsqueeze(g, -1), -1) * A


# ---- determinants, inverses, systems ----
def d_linalg_det(grad: Tensor, A: Tensor, result: Tensor) -> Tensor:
    return _times_matrix(grad * result, _mT(torch.linalg_inv(A)))


def d_det(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return d_linalg_det(grad, self, result)


def d_linalg_slogdet(grad1: Tensor, A: Tensor) -> Tensor:
    return _times_matrix(grad1, _mT(torch.linalg_inv(A)))


def d_slogdet(grad1: Tensor, self: Tensor) -> Tensor:
    return d_linalg_slogdet(grad1, self)


def d_logdet(grad: Tensor, self: Tensor) -> Tensor:
    return d_linalg_slogdet(grad, self)


def d_inverse(grad: Tensor, result: Tensor) -> Tensor:
    t = _mT(result)
    return torch.neg(torch.matmul(torch.matmul(t, grad), t))


def d_linalg_solve(grad: Tensor, A: Tensor, B: Tensor, left: bool, result: Tensor) -> Tuple[Tensor, Tensor]:
    vector = B.dim() == 1 or (B.dim() == A.dim() - 1 and B.size() == A.size()[:-1])
    g = torch.linalg_solve(_mT(A), grad, left=left)
    if vector:
        own = torch.unsqueeze(g, -1) * torch.unsqueeze(result, -2)
    elif left:
        own = torch.matmul(g, _mT(result))
    else:
        own = torch.matmul(_mT(result), g)
    return torch.sum_to_size(torch.neg(own), A.size()), torch.sum_to_size(g, B.size())


def d_solve_triangular(grad: Tensor, self: Tensor, B: Tensor, upper: bool, left: bool, unitriangular: bool,
                       result: Tensor) -> Tuple[Tensor, Tensor]:
    g = torch.linalg_solve_triangular(_mT(self), grad, upper=not upper, left=left, unitriangular=unitriangular)
    own = torch.neg(torch.matmul(g, _mT(result)) if left else torch.matmul(_mT(result), g))
    skipped = 1 if unitriangular else 0
    own = torch.triu(own, skipped) if upper else torch.tril(own, -skipped)
    return torch.sum_to_size(own, self.size()), torch.sum_to_size(g, B.size())


# ---- Cholesky ----
def _cholesky_backward(g: Tensor, L: Tensor) -> Tensor:
    p = torch.tril(torch.matmul(_mT(L), g))
    p = 0.5 * (p + _mT(p) - torch.diag_embed(torch.diagonal(p, 0, -2, -1)))
    half = torch.linalg_solve_triangular(_mT(L), p, upper=True)
    return torch.linalg_solve_triangular(L, half, upper=False, left=False)


def d_cholesky(grad: Tensor, upper: bool, result: Tensor) -> Tensor:
    return _cholesky_backward(_mT(grad), _mT(result)) if upper else _cholesky_backward(grad, result)


def d_cholesky_solve(grad: Tensor, self: Tensor, input2: Tensor, upper: bool, result: Tensor) -> Tuple[Tensor, Tensor]:
    g = torch.cholesky_solve(grad, input2, upper)
    common = torch.matmul(g, _mT(result))
    common = common + _mT(common)
    own = torch.matmul(input2, common) if upper else torch.matmul(common, input2)
    return torch.sum_to_size(g, self.size()), torch.sum_to_size(torch.neg(own), input2.size())


def d_cholesky_inverse(grad: Tensor, self: Tensor, upper: bool, result: Tensor) -> Tensor:
    common = torch.matmul(result, torch.matmul(grad + _mT(grad), result))
    return torch.neg(torch.matmul(self, common) if upper else torch.matmul(common, self))


# ---- eigenvalues, singular values ----
def _gaps(values: Tensor) -> Tensor:
    """values[j] - values[i], 1 on the diagonal."""
    return torch.unsqueeze(values, -2) - torch.unsqueeze(values, -1) + torch.eye(values.size(-1), dtype=values.dtype)


def d_eigh(grad: Tensor, grad1: Tensor, result: Tensor, result1: Tensor) -> Tensor:
    inner = torch.matmul(_mT(result1), grad1) / _gaps(result)
    inner = inner - torch.diag_embed(torch.diagonal(inner, 0, -2, -1)) + torch.diag_embed(grad)
    return torch.matmul(torch.matmul(result1, inner), _mT(result1))


def d_eigvalsh(grad: Tensor, self: Tensor, UPLO: str) -> Tensor:
    _, vectors = torch.linalg_eigh(self, UPLO)
    return torch.matmul(vectors * torch.unsqueeze(grad, -2), _mT(vectors))


def _svd_backward(gU: Tensor, gS: Tensor, gVh: Tensor, U: Tensor, S: Tensor, Vh: Tensor) -> Tensor:
    count = S.size(-1)
    u = torch.narrow(U, -1, 0, count)
    gu = torch.narrow(gU, -1, 0, count)
    vh = torch.narrow(Vh, -2, 0, count)
    gvh = torch.narrow(gVh, -2, 0, count)
    gaps = _gaps(S * S)
    left = torch.matmul(_mT(u), gu)
    right = torch.matmul(vh, _mT(gvh))
    row = torch.unsqueeze(S, -2)
    column = torch.unsqueeze(S, -1)
    inner = (left - _mT(left)) / gaps * row + column * ((right - _mT(right)) / gaps) + torch.diag_embed(gS)
    result = torch.matmul(torch.matmul(u, inner), vh)
    if U.size(-2) > count:
        scaled = gu / row
        result = result + torch.matmul(scaled - torch.matmul(u, torch.matmul(_mT(u), scaled)), vh)
    if Vh.size(-1) > count:
        scaled = gvh / column
        result = result + torch.matmul(u, scaled - torch.matmul(torch.matmul(scaled, _mT(vh)), vh))
    return result


def d_linalg_svd(grad: Tensor, grad1: Tensor, grad2: Tensor, result: Tensor, result1: Tensor, result2: Tensor) -> Tensor:
    return _svd_backward(grad, grad1, grad2, result, result1, result2)


def d_svd(grad: Tensor, grad1: Tensor, grad2: Tensor, result: Tensor, result1: Tensor, result2: Tensor) -> Tensor:
    return _svd_backward(grad, grad1, _mT(grad2), result, result1, _mT(result2))


def d_svdvals(grad: Tensor, A: Tensor) -> Tensor:
    U, _, Vh = torch.linalg_svd(A, False)
    return torch.matmul(U * torch.unsqueeze(grad, -2), Vh)


def d_nuclear_norm(grad: Tensor, self: Tensor) -> Tensor:
    U, _, Vh = torch.linalg_svd(self, False)
    return torch.reshape(grad, [1, 1]) * torch.matmul(U, Vh)


# ---- orthogonal factors ----
def _qr_tall(gQ: Tensor, gR: Tensor, Q: Tensor, R: Tensor) -> Tensor:
    m = torch.matmul(R, _mT(gR)) - torch.matmul(_mT(gQ), Q)
    m = torch.tril(m) + _mT(torch.tril(m, -1))
    return torch.linalg_solve_triangular(_mT(R), gQ + torch.matmul(Q, m), upper=False, left=False)


def _qr_backward(gQ: Tensor, gR: Tensor, A: Tensor, Q: Tensor, R: Tensor) -> Tensor:
    rows = A.size(-2)
    columns = A.size(-1)
    if Q.size(-1) != min(rows, columns):
        raise RuntimeError("the QR decomposition is not differentiable when mode='complete' and nrows > ncols")
    if rows >= columns:
        return _qr_tall(gQ, gR, Q, R)
    rest = torch.narrow(gR, -1, rows, columns - rows)
    behind = torch.narrow(A, -1, rows, columns - rows)
    square = _qr_tall(gQ + torch.matmul(behind, _mT(rest)), torch.narrow(gR, -1, 0, rows), Q, torch.narrow(R, -1, 0, rows))
    return torch.cat([square, torch.matmul(Q, rest)], -1)


def d_linalg_qr(grad: Tensor, grad1: Tensor, A: Tensor, result: Tensor, result1: Tensor) -> Tensor:
    return _qr_backward(grad, grad1, A, result, result1)


def d_qr(grad: Tensor, grad1: Tensor, self: Tensor, result: Tensor, result1: Tensor) -> Tensor:
    return _qr_backward(grad, grad1, self, result, result1)


# ---- pseudo-inverses, exponentials ----
def _pinv_backward(g: Tensor, P: Tensor, A: Tensor) -> Tensor:
    # Golub and Pereyra, The Differentiation of Pseudo-Inverses (1973), equation 4.12
    t = _mT(g)
    p = _mT(P)
    if A.size(-2) <= A.size(-1):
        k = torch.matmul(t, P)
        kp = torch.matmul(k, p)
        return (kp - _mT(torch.matmul(P, k)) - torch.matmul(torch.matmul(A, P), kp)
                + torch.matmul(torch.matmul(p, P), t - torch.matmul(k, A)))
    k = torch.matmul(P, t)
    pk = torch.matmul(p, k)
    return (pk - _mT(torch.matmul(k, P)) + torch.matmul(torch.matmul(t - torch.matmul(A, k), P), p)
            - torch.matmul(torch.matmul(pk, P), A))


def d_pinv(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return _pinv_backward(grad, result, self)


def d_lstsq(grad: Tensor, self: Tensor, b: Tensor) -> Tuple[Tensor, Tensor]:
    P = torch.linalg_pinv(self)
    return _pinv_backward(torch.matmul(grad, _mT(b)), P, self), torch.matmul(_mT(P), grad)


def d_matrix_exp(grad: Tensor, self: Tensor) -> Tensor:
    # the exponential of a block matrix holds the derivative: Al-Mohy and Higham (2009), theorem 2.1
    n = self.size(-1)
    t = _mT(self)
    top = torch.cat([t, grad], -1)
    low = torch.cat([torch.zeros_like(t), t], -1)
    whole = torch.linalg_matrix_exp(torch.cat([top, low], -2))
    return torch.narrow(torch.narrow(whole, -2, 0, n), -1, n, n)
