"""Derivatives of linear algebra; see derivatives.py for the form. Formulas with _mT are those of holomorphic functions, which
rows of COMPLEX in passes/derivatives.def put between conjugates for complex matrices; those with _mH hold for both as they are.

Formulas: Giles, Collected Matrix Derivative Results for Forward and Reverse Mode Algorithmic Differentiation (2008), with those of
PyTorch (torch/csrc/autograd/FunctionsManual.cpp) for factors whose signs or vectors are free."""
import math
from typing import List, Optional, Tuple

import torch
from torch import Tensor


def _mT(A: Tensor) -> Tensor:
    return torch.transpose(A, -2, -1)


def _mH(A: Tensor) -> Tensor:
    return torch.conj(torch.transpose(A, -2, -1)) if torch.is_complex(A) else torch.transpose(A, -2, -1)


def _times_matrix(g: Tensor, A: Tensor) -> Tensor:
    """A number for each matrix, times it."""
    return torch.unsqueeze(torch.unsqueeze(g, -1), -1) * A


# ---- factors L and U ----
def _lu_backward(gL: Tensor, gU: Tensor, P: Tensor, L: Tensor, U: Tensor) -> Tensor:
    """With F = L^-1 P^T dA U^-1 of the square part: dL = L tril(F, -1), dU = triu(F) U; what is beyond it follows."""
    k = min(L.size(-2), U.size(-1))
    L1, U1 = torch.narrow(L, -2, 0, k), torch.narrow(U, -1, 0, k)
    lower = torch.tril(torch.matmul(_mT(L1), torch.narrow(gL, -2, 0, k)), -1)
    upper = torch.triu(torch.matmul(torch.narrow(gU, -1, 0, k), _mT(U1)))
    if L.size(-2) > k:
        rest = L.size(-2) - k
        below = torch.narrow(gL, -2, k, rest)
        upper = upper - torch.triu(torch.matmul(_mT(torch.narrow(L, -2, k, rest)), below))
        inner = torch.cat([torch.linalg_solve_triangular(_mT(L1), lower + upper, upper=True, unitriangular=True), below], -2)
        g = torch.linalg_solve_triangular(_mT(U1), inner, upper=False, left=False)
    elif U.size(-1) > k:
        rest = U.size(-1) - k
        beside = torch.narrow(gU, -1, k, rest)
        lower = lower - torch.tril(torch.matmul(beside, _mT(torch.narrow(U, -1, k, rest))), -1)
        inner = torch.cat([torch.linalg_solve_triangular(_mT(U1), lower + upper, upper=False, left=False), beside], -1)
        g = torch.linalg_solve_triangular(_mT(L1), inner, upper=True, unitriangular=True)
    else:
        inner = torch.linalg_solve_triangular(_mT(U1), lower + upper, upper=False, left=False)
        g = torch.linalg_solve_triangular(_mT(L1), inner, upper=True, unitriangular=True)
    if P.dim() < g.dim() or P.size(-1) != g.size(-2):
        return g  # without pivots
    return torch.matmul(P, g)


def d_linalg_lu(grad1: Tensor, grad2: Tensor, result: Tensor, result1: Tensor, result2: Tensor) -> Tensor:
    return _lu_backward(grad1, grad2, result, result1, result2)


def d_lu_factor(grad: Tensor, result: Tensor, result1: Tensor) -> Tensor:
    k = min(result.size(-2), result.size(-1))
    P, L, U = torch.lu_unpack(result, result1)
    return _lu_backward(torch.narrow(grad, -1, 0, k), torch.narrow(grad, -2, 0, k), P, L, U)


def d_lu_unpack(grad1: Tensor, grad2: Tensor, LU_data: Tensor) -> Tensor:
    m, n = LU_data.size(-2), LU_data.size(-1)
    lower = torch.constant_pad_nd(torch.tril(grad1, -1), [0, n - min(m, n)], 0)
    upper = torch.constant_pad_nd(torch.triu(grad2), [0, 0, 0, m - min(m, n)], 0)
    return lower + upper


def open_lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    return open_linalg_lu_solve(LU_data, LU_pivots, self, True, False)


def open_linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Tensor:
    P, L, U = torch.lu_unpack(LU, pivots)
    if left and not adjoint:
        y = torch.linalg_solve_triangular(L, torch.matmul(_mT(P), B), upper=False, unitriangular=True)
        return torch.linalg_solve_triangular(U, y, upper=True)
    if left:
        y = torch.linalg_solve_triangular(_mH(U), B, upper=False)
        return torch.matmul(P, torch.linalg_solve_triangular(_mH(L), y, upper=True, unitriangular=True))
    if not adjoint:
        y = torch.linalg_solve_triangular(U, B, upper=True, left=False)
        return torch.matmul(torch.linalg_solve_triangular(L, y, upper=False, left=False, unitriangular=True), _mT(P))
    y = torch.linalg_solve_triangular(_mH(L), torch.matmul(B, P), upper=True, left=False, unitriangular=True)
    return torch.linalg_solve_triangular(_mH(U), y, upper=False, left=False)


def open_triangular_solve(self: Tensor, A: Tensor, upper: bool, transpose: bool, unitriangular: bool) -> Tuple[Tensor, Tensor]:
    if transpose:
        return torch.linalg_solve_triangular(_mT(A), self, upper=not upper, unitriangular=unitriangular), A * 1
    return torch.linalg_solve_triangular(A, self, upper=upper, unitriangular=unitriangular), A * 1


def open_tensorinv(self: Tensor, ind: int) -> Tensor:
    first, last = torch.size(self)[:ind], torch.size(self)[ind:]
    rows = 1
    for n in last:
        rows = rows * n
    return torch.reshape(torch.linalg_inv(torch.reshape(self, [rows, rows])), last + first)


def open_tensorsolve(self: Tensor, other: Tensor, dims: Optional[List[int]]) -> Tensor:
    x = self
    if dims is not None:
        moved = [d + self.dim() if d < 0 else d for d in dims]
        x = torch.permute(self, [d for d in range(self.dim()) if d not in moved] + moved)
    shape = torch.size(x)[other.dim():]
    rows = other.numel()
    return torch.reshape(torch.linalg_solve(torch.reshape(x, [rows, rows]), torch.reshape(other, [rows])), shape)


# ---- reflectors ----
def _reflect(x: Tensor, v: Tensor, tau: Tensor, k: int, left: bool) -> Tensor:
    """(1 - tau v v^H) x, or x times it, of reflector k."""
    column = torch.narrow(v, -1, k, 1)
    t = torch.unsqueeze(torch.narrow(tau, -1, k, 1), -1)
    if left:
        return x - t * torch.matmul(column, torch.matmul(_mH(column), x))
    return x - t * torch.matmul(torch.matmul(x, column), _mH(column))


def _reflectors(input: Tensor) -> Tensor:
    return torch.tril(input, -1) + torch.eye(input.size(-2), input.size(-1), dtype=input.dtype)


def open_householder_product(input: Tensor, tau: Tensor) -> Tensor:
    v = _reflectors(input)
    x = torch.expand_as(torch.eye(input.size(-2), input.size(-1), dtype=input.dtype), input)
    count = tau.size(-1)
    for k in range(count):
        x = _reflect(x, v, tau, count - 1 - k, True)
    return x


def open_ormqr(self: Tensor, input2: Tensor, input3: Tensor, left: bool, transpose: bool) -> Tensor:
    v = _reflectors(self)
    x = input3
    count = input2.size(-1)
    tau = torch.conj(input2) if transpose and torch.is_complex(input2) else input2
    for k in range(count):
        x = _reflect(x, v, tau, k if left == transpose else count - 1 - k, left)
    return x


def open_orgqr(self: Tensor, input2: Tensor) -> Tensor:
    return open_householder_product(self, input2)


# ---- determinants, inverses, systems ----
def d_linalg_det(grad: Tensor, A: Tensor, result: Tensor) -> Tensor:
    return _times_matrix(grad * result, _mT(torch.linalg_inv(A)))


def d_det(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return d_linalg_det(grad, self, result)


def d_linalg_slogdet(grad: Tensor, grad1: Tensor, A: Tensor, result: Tensor) -> Tensor:
    if not torch.is_complex(A):
        return _times_matrix(grad1, _mT(torch.linalg_inv(A)))
    # the logarithm's real part is that of the size, its imaginary part the angle of the sign
    turned = torch.imag(torch.conj(grad) * result)
    return _times_matrix(torch.complex(grad1, -turned), _mH(torch.linalg_inv(A)))


def d_slogdet(grad: Tensor, grad1: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return d_linalg_slogdet(grad, grad1, self, result)


def d_logdet(grad: Tensor, self: Tensor) -> Tensor:
    return _times_matrix(grad, _mT(torch.linalg_inv(self)))


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
    p = torch.tril(torch.matmul(_mH(L), g))
    p = p - 0.5 * torch.diag_embed(torch.diagonal(p, 0, -2, -1))
    p = 0.5 * (p + _mH(p))
    half = torch.linalg_solve_triangular(_mH(L), p, upper=True)
    return torch.linalg_solve_triangular(L, half, upper=False, left=False)


def d_cholesky(grad: Tensor, upper: bool, result: Tensor) -> Tensor:
    return _cholesky_backward(_mH(grad), _mH(result)) if upper else _cholesky_backward(grad, result)


def d_cholesky_solve(grad: Tensor, self: Tensor, input2: Tensor, upper: bool, result: Tensor) -> Tuple[Tensor, Tensor]:
    g = torch.cholesky_solve(grad, input2, upper)
    common = torch.matmul(g, _mH(result))
    common = common + _mH(common)
    own = torch.matmul(input2, common) if upper else torch.matmul(common, input2)
    return torch.sum_to_size(g, self.size()), torch.sum_to_size(torch.neg(own), input2.size())


def d_cholesky_inverse(grad: Tensor, self: Tensor, upper: bool, result: Tensor) -> Tensor:
    common = torch.matmul(result, torch.matmul(grad + _mH(grad), result))
    return torch.neg(torch.matmul(self, common) if upper else torch.matmul(common, self))


# ---- eigenvalues, singular values ----
def _gaps(values: Tensor) -> Tensor:
    """values[j] - values[i], 1 on the diagonal."""
    return torch.unsqueeze(values, -2) - torch.unsqueeze(values, -1) + torch.eye(values.size(-1), dtype=values.dtype)


def d_eigh(grad: Tensor, grad1: Tensor, result: Tensor, result1: Tensor) -> Tensor:
    inner = torch.matmul(_mH(result1), grad1) / _gaps(result)
    inner = inner - torch.diag_embed(torch.diagonal(inner, 0, -2, -1)) + torch.diag_embed(grad)
    return torch.matmul(torch.matmul(result1, inner), _mH(result1))


def d_eig(grad: Tensor, grad1: Tensor, self: Tensor, result: Tensor, result1: Tensor) -> Tensor:
    # the vectors have length 1 and are free up to their angle: what is along them does not count
    t = _mH(result1)
    inner = torch.matmul(t, grad1)
    along = torch.real(torch.diagonal(inner, 0, -2, -1))
    inner = (inner - torch.matmul(t, result1 * torch.unsqueeze(along, -2))) / torch.conj(_gaps(result))
    inner = inner - torch.diag_embed(torch.diagonal(inner, 0, -2, -1)) + torch.diag_embed(grad)
    own = torch.linalg_solve(t, torch.matmul(inner, t))
    return own if torch.is_complex(self) else torch.real(own)


def d_eigvals(grad: Tensor, self: Tensor) -> Tensor:
    _, vectors = torch.linalg_eig(self)
    t = _mH(vectors)
    own = torch.linalg_solve(t, torch.unsqueeze(grad, -1) * t)
    return own if torch.is_complex(self) else torch.real(own)


def d_eigvalsh(grad: Tensor, self: Tensor, UPLO: str) -> Tensor:
    _, vectors = torch.linalg_eigh(self, UPLO)
    return torch.matmul(vectors * torch.unsqueeze(grad, -2), _mH(vectors))


def _svd_backward(gU: Tensor, gS: Tensor, gVh: Tensor, U: Tensor, S: Tensor, Vh: Tensor) -> Tensor:
    count = S.size(-1)
    u = torch.narrow(U, -1, 0, count)
    gu = torch.narrow(gU, -1, 0, count)
    vh = torch.narrow(Vh, -2, 0, count)
    gvh = torch.narrow(gVh, -2, 0, count)
    gaps = _gaps(S * S)
    left = torch.matmul(_mH(u), gu)
    right = torch.matmul(vh, _mH(gvh))
    row = torch.unsqueeze(S, -2)
    column = torch.unsqueeze(S, -1)
    left = left - _mH(left)
    inner = left / gaps * row + column * ((right - _mH(right)) / gaps) + torch.diag_embed(gS)
    if torch.is_complex(U):
        inner = inner + torch.diag_embed(torch.diagonal(left, 0, -2, -1) / (2 * S))
    result = torch.matmul(torch.matmul(u, inner), vh)
    if U.size(-2) > count:
        scaled = gu / row
        result = result + torch.matmul(scaled - torch.matmul(u, torch.matmul(_mH(u), scaled)), vh)
    if Vh.size(-1) > count:
        scaled = gvh / column
        result = result + torch.matmul(u, scaled - torch.matmul(torch.matmul(scaled, _mH(vh)), vh))
    return result


def d_linalg_svd(grad: Tensor, grad1: Tensor, grad2: Tensor, result: Tensor, result1: Tensor, result2: Tensor) -> Tensor:
    return _svd_backward(grad, grad1, grad2, result, result1, result2)


def d_svd(grad: Tensor, grad1: Tensor, grad2: Tensor, result: Tensor, result1: Tensor, result2: Tensor) -> Tensor:
    return _svd_backward(grad, grad1, _mH(grad2), result, result1, _mH(result2))


def d_svdvals(grad: Tensor, A: Tensor) -> Tensor:
    U, _, Vh = torch.linalg_svd(A, False)
    return torch.matmul(U * torch.unsqueeze(grad, -2), Vh)


def d_nuclear_norm(grad: Tensor, self: Tensor) -> Tensor:
    U, _, Vh = torch.linalg_svd(self, False)
    return torch.reshape(grad, [1, 1]) * torch.matmul(U, Vh)


# ---- orthogonal factors ----
def _qr_tall(gQ: Tensor, gR: Tensor, Q: Tensor, R: Tensor) -> Tensor:
    m = torch.matmul(R, _mH(gR)) - torch.matmul(_mH(gQ), Q)
    low = torch.tril(m, -1)
    m = low + _mH(low) + torch.diag_embed(torch.real(torch.diagonal(m, 0, -2, -1)))
    return torch.linalg_solve_triangular(_mH(R), gQ + torch.matmul(Q, m), upper=False, left=False)


def _qr_backward(gQ: Tensor, gR: Tensor, A: Tensor, Q: Tensor, R: Tensor) -> Tensor:
    rows = A.size(-2)
    columns = A.size(-1)
    if Q.size(-1) != min(rows, columns):
        raise RuntimeError("the QR decomposition is not differentiable when mode='complete' and nrows > ncols")
    if rows >= columns:
        return _qr_tall(gQ, gR, Q, R)
    rest = torch.narrow(gR, -1, rows, columns - rows)
    behind = torch.narrow(A, -1, rows, columns - rows)
    square = _qr_tall(gQ + torch.matmul(behind, _mH(rest)), torch.narrow(gR, -1, 0, rows), Q, torch.narrow(R, -1, 0, rows))
    return torch.cat([square, torch.matmul(Q, rest)], -1)


def d_linalg_qr(grad: Tensor, grad1: Tensor, A: Tensor, result: Tensor, result1: Tensor) -> Tensor:
    return _qr_backward(grad, grad1, A, result, result1)


def d_qr(grad: Tensor, grad1: Tensor, self: Tensor, result: Tensor, result1: Tensor) -> Tensor:
    return _qr_backward(grad, grad1, self, result, result1)


# ---- pseudo-inverses, exponentials ----
def _pinv_backward(g: Tensor, P: Tensor, A: Tensor) -> Tensor:
    # Golub and Pereyra, The Differentiation of Pseudo-Inverses (1973), equation 4.12
    t = _mH(g)
    p = _mH(P)
    if A.size(-2) <= A.size(-1):
        k = torch.matmul(t, P)
        kp = torch.matmul(k, p)
        return (kp - _mH(torch.matmul(P, k)) - torch.matmul(torch.matmul(A, P), kp)
                + torch.matmul(torch.matmul(p, P), t - torch.matmul(k, A)))
    k = torch.matmul(P, t)
    pk = torch.matmul(p, k)
    return (pk - _mH(torch.matmul(k, P)) + torch.matmul(torch.matmul(t - torch.matmul(A, k), P), p)
            - torch.matmul(torch.matmul(pk, P), A))


def d_pinv(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return _pinv_backward(grad, result, self)


def d_lstsq(grad: Tensor, self: Tensor, b: Tensor) -> Tuple[Tensor, Tensor]:
    P = torch.linalg_pinv(self)
    return _pinv_backward(torch.matmul(grad, _mH(b)), P, self), torch.matmul(_mH(P), grad)


def d_matrix_exp(grad: Tensor, self: Tensor) -> Tensor:
    # the exponential of a block matrix holds the derivative: Al-Mohy and Higham (2009), theorem 2.1
    n = self.size(-1)
    t = _mT(self)
    top = torch.cat([t, grad], -1)
    low = torch.cat([torch.zeros_like(t), t], -1)
    whole = torch.linalg_matrix_exp(torch.cat([top, low], -2))
    return torch.narrow(torch.narrow(whole, -2, 0, n), -1, n, n)
