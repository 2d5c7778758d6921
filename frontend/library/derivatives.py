"""Derivatives of core operators: passes/derivatives.def says which function belongs to which operator and to which of
its arguments. A function takes what it names: grad (grad1, ...), the gradient of the result (of the second, ...); grads,
those of the tensors of a list; result, result1, ...; arguments of the operator by their names. It returns the gradient of
each argument of its row, a tuple where there are several. Rows marked as broadcasting may return a gradient of the
result's sizes: the pass sums what broadcasting has repeated.

This file: elementwise operators. Formulas are those of PyTorch, also where an operator has a
corner: ties of max share the gradient, clamp passes it at the bounds, relu does not at 0."""
import math
from typing import List, Optional, Tuple

import torch
from torch import Tensor


# ---- what the pass itself calls ----

def _first_gradient(output: Tensor) -> Tensor:
    if output.numel() != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    return torch.ones_like(output)


def _unused_input(allow_unused: bool) -> None:
    if not allow_unused:
        raise RuntimeError("One of the differentiated Tensors appears to not have been used in the graph. "
                           "Set allow_unused=True if this is the desired behavior.")


def _real_gradient(grad: Tensor, operand: Tensor) -> Tensor:
    if torch.is_complex(grad) or torch.is_complex(operand):
        raise NotImplementedError("the derivative of an operator between complex tensors whose dtype is known only at run time is "
                                  "not supported yet: declare the dtypes of the inputs")
    return grad


def _zero_of(value: Optional[Tensor]) -> Tensor:
    if value is None:
        return torch.zeros([])
    return torch.zeros_like(value)


def _add_gradients(first: Optional[Tensor], second: Optional[Tensor]) -> Optional[Tensor]:
    if first is None:
        return second
    if second is None:
        return first
    return first + second


def _zero_gradients(values: List[Tensor]) -> List[Tensor]:
    return [torch.zeros_like(v) for v in values]


def _accumulate(grads: List[Tensor], index: int, grad: Tensor) -> None:
    grads[index] = grads[index] + grad


def _accumulate_all(grads: List[Tensor], more: List[Tensor]) -> None:
    for i in range(len(more)):
        grads[i] = grads[i] + more[i]


def _accumulate_start(grads: List[Tensor], more: List[Tensor]) -> None:
    for i in range(len(grads)):
        grads[i] = grads[i] + more[i]


def _accumulate_end(grads: List[Tensor], more: List[Tensor]) -> None:
    skipped = len(more) - len(grads)
    for i in range(len(grads)):
        grads[i] = grads[i] + more[i + skipped]


def _accumulate_slice(grads: List[Tensor], more: List[Tensor], start: Optional[int], end: Optional[int], step: int) -> None:
    places = [i for i in range(len(grads))]
    places = torch.slice(places, start, end, step)
    for i in range(len(more)):
        grads[places[i]] = grads[places[i]] + more[i]


def _take_gradient(grads: List[Tensor], index: int) -> Tensor:
    grad = grads[index]
    grads[index] = torch.zeros_like(grad)
    return grad


# ---- elementwise, one operand ----

def d_zeros(grad: Tensor) -> Tensor:
    return torch.zeros_like(grad)


def d_nextafter(grad: Tensor) -> Tuple[Tensor, Tensor]:
    return grad, torch.zeros_like(grad)


def d_identity(grad: Tensor) -> Tensor:
    return grad


def d_relu(grad: Tensor, result: Tensor) -> Tensor:
    return torch.masked_fill(grad, torch.le(result, 0), 0)


def d_relu6(grad: Tensor, self: Tensor) -> Tensor:
    return torch.masked_fill(grad, torch.logical_or(torch.le(self, 0), torch.ge(self, 6)), 0)


def d_silu(grad: Tensor, self: Tensor) -> Tensor:
    s = torch.sigmoid(self)
    return grad * s * (1 + self * (1 - s))


def d_mish(grad: Tensor, self: Tensor) -> Tensor:
    t = torch.tanh(torch.softplus(self))
    return grad * (t + self * torch.sigmoid(self) * (1 - t * t))


def d_hardswish(grad: Tensor, self: Tensor) -> Tensor:
    middle = torch.masked_fill(grad * (self / 3 + 0.5), torch.le(self, -3), 0)
    return torch.where(torch.ge(self, 3), grad, middle)


def d_hardsigmoid(grad: Tensor, self: Tensor) -> Tensor:
    return torch.masked_fill(grad / 6, torch.logical_or(torch.le(self, -3), torch.ge(self, 3)), 0)


def d_log_sigmoid(grad: Tensor, self: Tensor) -> Tensor:
    return grad * torch.sigmoid(-self)


def d_exp2(grad: Tensor, result: Tensor) -> Tensor:
    return grad * result * math.log(2)


def d_expm1(grad: Tensor, result: Tensor) -> Tensor:
    return grad * (result + 1)


def d_log2(grad: Tensor, self: Tensor) -> Tensor:
    return grad / (self * math.log(2))


def d_log10(grad: Tensor, self: Tensor) -> Tensor:
    return grad / (self * math.log(10))


def d_log1p(grad: Tensor, self: Tensor) -> Tensor:
    return grad / (self + 1)


def d_tan(grad: Tensor, result: Tensor) -> Tensor:
    return grad * (1 + result * result)


def d_asin(grad: Tensor, self: Tensor) -> Tensor:
    return grad * torch.rsqrt(1 - self * self)


def d_acos(grad: Tensor, self: Tensor) -> Tensor:
    return -grad * torch.rsqrt(1 - self * self)


def d_atan(grad: Tensor, self: Tensor) -> Tensor:
    return grad / (self * self + 1)


def d_sinh(grad: Tensor, self: Tensor) -> Tensor:
    return grad * torch.cosh(self)


def d_cosh(grad: Tensor, self: Tensor) -> Tensor:
    return grad * torch.sinh(self)


def d_asinh(grad: Tensor, self: Tensor) -> Tensor:
    return grad * torch.rsqrt(self * self + 1)


def d_acosh(grad: Tensor, self: Tensor) -> Tensor:
    return grad * torch.rsqrt(self * self - 1)


def d_atanh(grad: Tensor, self: Tensor) -> Tensor:
    return grad / (1 - self * self)


def d_erf(grad: Tensor, self: Tensor) -> Tensor:
    return grad * (2 / math.sqrt(math.pi)) * torch.exp(-(self * self))


def d_erfc(grad: Tensor, self: Tensor) -> Tensor:
    return grad * (-2 / math.sqrt(math.pi)) * torch.exp(-(self * self))


def d_erfinv(grad: Tensor, result: Tensor) -> Tensor:
    return grad * (math.sqrt(math.pi) / 2) * torch.exp(result * result)


def d_lgamma(grad: Tensor, self: Tensor) -> Tensor:
    return grad * torch.digamma(self)


def d_digamma(grad: Tensor, self: Tensor) -> Tensor:
    return grad * torch.polygamma(1, self)


def d_polygamma(grad: Tensor, n: int, self: Tensor) -> Tensor:
    return grad * torch.polygamma(n + 1, self)


def d_sinc(grad: Tensor, self: Tensor) -> Tensor:
    x = self * math.pi
    slope = (x * torch.cos(x) - torch.sin(x)) / (x * self)
    return torch.where(torch.eq(self, 0), torch.zeros_like(grad), grad * slope)


def d_deg2rad(grad: Tensor) -> Tensor:
    return grad * (math.pi / 180)


def d_rad2deg(grad: Tensor) -> Tensor:
    return grad * (180 / math.pi)


def d_square(grad: Tensor, self: Tensor) -> Tensor:
    return grad * self * 2


def d_i0(grad: Tensor, self: Tensor) -> Tensor:
    return grad * torch.special_i1(self)


def d_i0e(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return grad * (torch.special_i1e(self) - torch.sign(self) * result)


def _ratio_at_zero(x: Tensor, over: Tensor) -> Tensor:
    # over / x, which is 1/2 at 0 for the Bessel functions that ask
    safe = torch.where(torch.eq(x, 0), torch.ones_like(x), x)
    return torch.where(torch.eq(x, 0), torch.full_like(x, 0.5), over / safe)


def d_i1(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return grad * (torch.i0(self) - _ratio_at_zero(self, result))


def d_i1e(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return grad * (torch.special_i0e(self) - torch.sign(self) * result - _ratio_at_zero(self, result))


def d_erfcx(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return grad * (2 * self * result - 2 / math.sqrt(math.pi))


def d_ndtri(grad: Tensor, result: Tensor) -> Tensor:
    return grad * math.sqrt(2 * math.pi) * torch.exp(result * result / 2)


def d_logit(grad: Tensor, self: Tensor, eps: Optional[float]) -> Tensor:
    slope = grad / (self * (1 - self))
    if eps is None:
        outside = torch.logical_or(torch.lt(self, 0), torch.gt(self, 1))
        return torch.masked_fill(slope, outside, float("nan"))
    return torch.masked_fill(slope, torch.logical_or(torch.lt(self, eps), torch.gt(self, 1 - eps)), 0)


def d_gelu(grad: Tensor, self: Tensor, approximate: str) -> Tensor:
    if approximate == "tanh":
        t = torch.tanh(math.sqrt(2 / math.pi) * (self + 0.044715 * self * self * self))
        slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * self * self)
        return grad * (0.5 * (1 + t) + 0.5 * self * (1 - t * t) * slope)
    share = 0.5 * (1 + torch.erf(self * math.sqrt(0.5)))
    return grad * (share + self * torch.exp(self * self * -0.5) * (1 / math.sqrt(2 * math.pi)))


def d_hardtanh(grad: Tensor, self: Tensor, min_val: number, max_val: number) -> Tensor:
    return torch.masked_fill(grad, torch.logical_or(torch.le(self, min_val), torch.ge(self, max_val)), 0)


def d_elu(grad: Tensor, self: Tensor, alpha: number, scale: number, input_scale: number) -> Tensor:
    a, s, i = float(alpha), float(scale), float(input_scale)
    return torch.where(torch.le(self, 0), grad * (a * s * i) * torch.exp(self * i), grad * s)


def d_celu(grad: Tensor, self: Tensor, alpha: number) -> Tensor:
    return torch.where(torch.le(self, 0), grad * torch.exp(self / float(alpha)), grad)


def d_selu(grad: Tensor, self: Tensor) -> Tensor:
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return torch.where(torch.le(self, 0), grad * (alpha * scale) * torch.exp(self), grad * scale)


def d_leaky_relu(grad: Tensor, self: Tensor, negative_slope: number) -> Tensor:
    return torch.where(torch.gt(self, 0), grad, grad * float(negative_slope))


def d_softplus(grad: Tensor, self: Tensor, beta: number, threshold: number) -> Tensor:
    scaled = self * float(beta)
    return torch.where(torch.gt(scaled, threshold), grad, grad * torch.sigmoid(scaled))


def d_softshrink(grad: Tensor, self: Tensor, lambd: number) -> Tensor:
    inside = torch.logical_and(torch.ge(self, -float(lambd)), torch.le(self, lambd))
    return torch.masked_fill(grad, inside, 0)


def d_threshold(grad: Tensor, self: Tensor, threshold: number) -> Tensor:
    return torch.masked_fill(grad, torch.le(self, threshold), 0)


def d_nan_to_num(grad: Tensor, self: Tensor) -> Tensor:
    return torch.masked_fill(grad, torch.logical_not(torch.isfinite(self)), 0)


def d_clamp(grad: Tensor, self: Tensor, min: Optional[number], max: Optional[number]) -> Tensor:
    if min is not None:
        grad = torch.masked_fill(grad, torch.lt(self, min), 0)
    if max is not None:
        grad = torch.masked_fill(grad, torch.gt(self, max), 0)
    return grad


def d_clamp_min(grad: Tensor, self: Tensor, min: number) -> Tensor:
    return torch.masked_fill(grad, torch.lt(self, min), 0)


def d_clamp_max(grad: Tensor, self: Tensor, max: number) -> Tensor:
    return torch.masked_fill(grad, torch.gt(self, max), 0)


def d_positive(grad: Tensor) -> Tensor:
    return grad


def d_frexp(grad: Tensor, result1: Tensor) -> Tensor:
    return grad / torch.exp2(result1.to(grad.dtype))


# ---- elementwise, several operands ----

def d_rsub__Tensor(grad: Tensor, alpha: number) -> Tuple[Tensor, Tensor]:
    return -grad * alpha, grad


def d_div__Tensor_mode(grad: Tensor, self: Tensor, other: Tensor, rounding_mode: Optional[str]) -> Tuple[Tensor, Tensor]:
    if rounding_mode is not None:
        return torch.zeros_like(grad), torch.zeros_like(grad)
    return grad / other, -grad * (self / other) / other


def d_div__Scalar_mode(grad: Tensor, other: number, rounding_mode: Optional[str]) -> Tensor:
    if rounding_mode is not None:
        return torch.zeros_like(grad)
    return grad / other


def d_remainder__Tensor(grad: Tensor, self: Tensor, other: Tensor) -> Tuple[Tensor, Tensor]:
    return grad, -grad * torch.div(self, other, rounding_mode="floor")


def d_fmod__Tensor(grad: Tensor, self: Tensor, other: Tensor) -> Tuple[Tensor, Tensor]:
    return grad, -grad * torch.div(self, other, rounding_mode="trunc")


def _pow_self(grad: Tensor, self: Tensor, exponent: Tensor) -> Tensor:
    return torch.where(torch.eq(exponent, 0), torch.zeros_like(grad), grad * exponent * torch.pow(self, exponent - 1))


def _not_negative(exponent: Tensor) -> Tensor:
    if torch.is_complex(exponent):
        return torch.logical_and(torch.eq(torch.imag(exponent), 0), torch.ge(torch.real(exponent), 0))
    return torch.ge(exponent, 0)


def _pow_exponent(grad: Tensor, self: Tensor, exponent: Tensor, result: Tensor) -> Tensor:
    flat = torch.logical_and(torch.eq(self, 0), _not_negative(exponent))
    return grad * torch.where(flat, torch.zeros_like(result), result * torch.log(self))


def d_pow__Tensor_Tensor(grad: Tensor, self: Tensor, exponent: Tensor, result: Tensor) -> Tuple[Tensor, Tensor]:
    return _pow_self(grad, self, exponent), _pow_exponent(grad, self, exponent, result)


def d_pow__Tensor_Scalar(grad: Tensor, self: Tensor, exponent: number) -> Tensor:
    if exponent == 0:
        return torch.zeros_like(grad)
    return grad * (torch.pow(self, exponent - 1) * exponent)


def d_pow__Scalar(grad: Tensor, self: number, exponent: Tensor, result: Tensor) -> Tensor:
    if self == 0:
        return torch.where(_not_negative(exponent), torch.zeros_like(grad), grad * result * -math.inf)
    return grad * (result * torch.log(torch.scalar_tensor(self, dtype=result.dtype)))


def d_float_power__Tensor_Tensor(grad: Tensor, self: Tensor, exponent: Tensor, result: Tensor) -> Tuple[Tensor, Tensor]:
    x, y = self.to(result.dtype), exponent.to(result.dtype)
    return _pow_self(grad, x, y), _pow_exponent(grad, x, y, result)


def d_float_power__Tensor_Scalar(grad: Tensor, self: Tensor, exponent: number, result: Tensor) -> Tensor:
    return d_pow__Tensor_Scalar(grad, self.to(result.dtype), exponent).to(self.dtype)


def d_float_power__Scalar(grad: Tensor, self: number, exponent: Tensor, result: Tensor) -> Tensor:
    return d_pow__Scalar(grad, self, exponent.to(result.dtype), result).to(exponent.dtype)


def d_maximum(grad: Tensor, self: Tensor, other: Tensor) -> Tuple[Tensor, Tensor]:
    ties = torch.eq(self, other)
    return (torch.masked_fill(torch.where(ties, grad / 2, grad), torch.lt(self, other), 0),
            torch.masked_fill(torch.where(ties, grad / 2, grad), torch.gt(self, other), 0))


def d_minimum(grad: Tensor, self: Tensor, other: Tensor) -> Tuple[Tensor, Tensor]:
    ties = torch.eq(self, other)
    return (torch.masked_fill(torch.where(ties, grad / 2, grad), torch.gt(self, other), 0),
            torch.masked_fill(torch.where(ties, grad / 2, grad), torch.lt(self, other), 0))


def d_fmax(grad: Tensor, self: Tensor, other: Tensor) -> Tuple[Tensor, Tensor]:
    first = torch.logical_or(torch.ge(self, other), torch.isnan(other))
    return torch.masked_fill(grad, torch.logical_not(first), 0), torch.masked_fill(grad, first, 0)


def d_fmin(grad: Tensor, self: Tensor, other: Tensor) -> Tuple[Tensor, Tensor]:
    first = torch.logical_or(torch.le(self, other), torch.isnan(other))
    return torch.masked_fill(grad, torch.logical_not(first), 0), torch.masked_fill(grad, first, 0)


def d_hypot(grad: Tensor, self: Tensor, other: Tensor, result: Tensor) -> Tuple[Tensor, Tensor]:
    return grad * (self / result), grad * (other / result)


def d_copysign__Tensor(grad: Tensor, self: Tensor, result: Tensor) -> Tuple[Tensor, Tensor]:
    ratio = torch.where(torch.eq(self, 0), torch.zeros_like(result), result / self)
    return grad * ratio, torch.zeros_like(grad)


def d_copysign__Scalar(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return grad * torch.where(torch.eq(self, 0), torch.zeros_like(result), result / self)


def d_atan2(grad: Tensor, self: Tensor, other: Tensor) -> Tuple[Tensor, Tensor]:
    scaled = grad / (self * self + other * other)
    return scaled * other, scaled * -self


def d_logaddexp(grad: Tensor, self: Tensor, other: Tensor, result: Tensor) -> Tuple[Tensor, Tensor]:
    return grad * torch.exp(self - result), grad * torch.exp(other - result)


def d_logaddexp2(grad: Tensor, self: Tensor, other: Tensor, result: Tensor) -> Tuple[Tensor, Tensor]:
    return grad * torch.exp2(self - result), grad * torch.exp2(other - result)


def d_ldexp(grad: Tensor, self: Tensor, other: Tensor, result: Tensor) -> Tuple[Tensor, Tensor]:
    return grad * torch.pow(2.0, other), grad * result * math.log(2)


def d_igamma(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    return grad * torch.exp((self - 1) * torch.log(other) - other - torch.lgamma(self))


def d_igammac(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    return -d_igamma(grad, self, other)


def d_zeta(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    return grad * -self * torch.special_zeta(self + 1, other)


def d_zeta__self_scalar(grad: Tensor, self: number, other: Tensor) -> Tensor:
    return grad * -self * torch.special_zeta(self + 1, other)


def d_xlogy__Tensor(grad: Tensor, self: Tensor, other: Tensor) -> Tuple[Tensor, Tensor]:
    flat = torch.logical_and(torch.eq(self, 0), torch.le(other, 0))
    return grad * torch.masked_fill(torch.log(other), flat, 0), grad * self / other


def d_xlogy__Scalar_Other(grad: Tensor, self: Tensor, other: number) -> Tensor:
    if other > 0:
        return grad * math.log(float(other))
    return torch.masked_fill(grad * float("-inf" if other == 0 else "nan"), torch.eq(self, 0), 0)


def d_xlogy__Scalar_Self(grad: Tensor, self: number, other: Tensor) -> Tensor:
    return grad * float(self) / other


def d_xlog1py(grad: Tensor, self: Tensor, other: Tensor) -> Tuple[Tensor, Tensor]:
    flat = torch.logical_and(torch.eq(self, 0), torch.le(other, -1))
    return grad * torch.masked_fill(torch.log1p(other), flat, 0), grad * self / (other + 1)


def d_xlog1py__other_scalar(grad: Tensor, other: number) -> Tensor:
    return grad * math.log1p(float(other))


def d_xlog1py__self_scalar(grad: Tensor, self: number, other: Tensor) -> Tensor:
    return grad * float(self) / (other + 1)


def d_where__ScalarOther(grad: Tensor, condition: Tensor) -> Tensor:
    return torch.where(condition, grad, torch.zeros_like(grad))


def d_where__ScalarSelf(grad: Tensor, condition: Tensor) -> Tensor:
    return torch.where(condition, torch.zeros_like(grad), grad)


def d_masked_fill__Scalar(grad: Tensor, mask: Tensor) -> Tensor:
    return torch.masked_fill(grad, mask, 0)


def d_masked_fill__Tensor(grad: Tensor, self: Tensor, mask: Tensor) -> Tuple[Tensor, Tensor]:
    own = torch.sum_to_size(torch.masked_fill(grad, mask, 0), torch.size(self))
    return own, torch.sum(torch.masked_fill(grad, torch.logical_not(mask), 0))


def d_angle(grad: Tensor, self: Tensor) -> Tensor:
    if not torch.is_complex(self):
        return torch.zeros_like(grad)
    x, y = torch.real(self), torch.imag(self)
    square = x * x + y * y
    none = torch.eq(square, 0)
    return torch.complex(torch.masked_fill(-grad * y / square, none, 0), torch.masked_fill(grad * x / square, none, 0))


def d_sgn(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    if not torch.is_complex(self):
        return torch.zeros_like(grad)
    size = torch.abs(self)
    own = (grad - torch.real(grad / torch.where(torch.eq(result, 0), torch.ones_like(result), result)) * result) / size
    return torch.where(torch.eq(size, 0), torch.zeros_like(own), own)


# ---- parts of complex numbers: the gradient of x + iy is that of x and i times that of y ----

def d_real(grad: Tensor, self: Tensor) -> Tensor:
    return torch.complex(grad, torch.zeros_like(grad)) if torch.is_complex(self) else grad


def d_imag(grad: Tensor) -> Tensor:
    return torch.complex(torch.zeros_like(grad), grad)


def d_complex(grad: Tensor, real: Tensor, imag: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.sum_to_size(torch.real(grad), torch.size(real)), torch.sum_to_size(torch.imag(grad), torch.size(imag))


def d_polar(grad: Tensor, abs: Tensor, angle: Tensor) -> Tuple[Tensor, Tensor]:
    c, s = torch.cos(angle), torch.sin(angle)
    x, y = torch.real(grad), torch.imag(grad)
    return torch.sum_to_size(x * c + y * s, torch.size(abs)), torch.sum_to_size(abs * (y * c - x * s), torch.size(angle))


def d_view_as_real(grad: Tensor) -> Tensor:
    return torch.view_as_complex(torch.contiguous(grad))


def d_view_as_complex(grad: Tensor) -> Tensor:
    return torch.view_as_real(torch.resolve_conj(grad))


def d_conj(grad: Tensor) -> Tensor:
    return torch.conj_physical(grad)


def d_fft_c2c(grad: Tensor, dim: List[int], normalization: int, forward: bool) -> Tensor:
    return torch._fft_c2c(grad, dim, normalization, not forward)


def d_clamp__Tensor(grad: Tensor, self: Tensor, min: Optional[Tensor], max: Optional[Tensor]) -> Tuple[Tensor, Tensor, Tensor]:
    own, low, high = grad, torch.zeros_like(grad), torch.zeros_like(grad)
    if min is not None and max is not None:
        own = torch.masked_fill(grad, torch.logical_or(torch.lt(self, min), torch.gt(self, max)), 0)
        low = torch.where(torch.logical_and(torch.lt(self, min), torch.lt(min, max)), grad, torch.zeros_like(grad))
        high = torch.where(torch.logical_or(torch.gt(self, max), torch.lt(max, min)), grad, torch.zeros_like(grad))
    elif min is not None:
        own = torch.masked_fill(grad, torch.lt(self, min), 0)
        low = torch.masked_fill(grad, torch.ge(self, min), 0)
    elif max is not None:
        own = torch.masked_fill(grad, torch.gt(self, max), 0)
        high = torch.masked_fill(grad, torch.le(self, max), 0)
    return own, low, high


def d_clamp_min__Tensor(grad: Tensor, self: Tensor, min: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.masked_fill(grad, torch.lt(self, min), 0), torch.masked_fill(grad, torch.ge(self, min), 0)


def d_clamp_max__Tensor(grad: Tensor, self: Tensor, max: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.masked_fill(grad, torch.gt(self, max), 0), torch.masked_fill(grad, torch.le(self, max), 0)


def d_lerp__Scalar(grad: Tensor, weight: number) -> Tuple[Tensor, Tensor]:
    return grad * (1 - weight), grad * weight


def d_lerp__Tensor(grad: Tensor, self: Tensor, end: Tensor, weight: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return grad * (1 - weight), grad * weight, grad * (end - self)


def d_addcmul(grad: Tensor, tensor1: Tensor, tensor2: Tensor, value: number) -> Tuple[Tensor, Tensor, Tensor]:
    scaled = grad * value
    return grad, scaled * tensor2, scaled * tensor1


def d_addcdiv(grad: Tensor, tensor1: Tensor, tensor2: Tensor, value: number) -> Tuple[Tensor, Tensor, Tensor]:
    scaled = grad * value
    return grad, scaled / tensor2, -scaled * (tensor1 / (tensor2 * tensor2))


def d_prelu(grad: Tensor, self: Tensor, weight: Tensor) -> Tuple[Tensor, Tensor]:
    shape = torch.size(weight)
    wide = weight
    if weight.numel() == 1:
        wide = torch.reshape(weight, [])
    elif self.dim() > 1:
        view = [1] * self.dim()
        view[1] = weight.numel()
        wide = torch.reshape(weight, view)
    positive = torch.gt(self, 0)
    own = torch.where(positive, grad, grad * wide)
    part = torch.masked_fill(grad * self, positive, 0)
    if weight.numel() == 1:
        return own, torch.reshape(torch.sum(part), shape)
    return own, torch.reshape(torch.sum_to_size(part, torch.size(wide)), shape)
