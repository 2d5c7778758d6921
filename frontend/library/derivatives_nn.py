"""Derivatives of products, convolutions, pooling, normalisation, losses (see derivatives.py), and, at the end, operators as
functions of simpler ones: the pass puts an open_* function in the place of its operator where a gradient goes through it."""
import math
from typing import List, Optional, Tuple

import torch
from torch import Tensor


# ---- products ----

def d_mm(grad: Tensor, self: Tensor, mat2: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.matmul(grad, torch.t(mat2)), torch.matmul(torch.t(self), grad)


def d_bmm(grad: Tensor, self: Tensor, mat2: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.matmul(grad, torch.transpose(mat2, 1, 2)), torch.matmul(torch.transpose(self, 1, 2), grad)


def d_mv(grad: Tensor, self: Tensor, vec: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.unsqueeze(grad, 1) * vec, torch.matmul(torch.t(self), grad)


def d_dot(grad: Tensor, self: Tensor, tensor: Tensor) -> Tuple[Tensor, Tensor]:
    return grad * tensor, grad * self


def d_matmul(grad: Tensor, self: Tensor, other: Tensor) -> Tuple[Tensor, Tensor]:
    x, y, g = self, other, grad
    if self.dim() == 1:
        x = torch.unsqueeze(x, 0)
        g = torch.unsqueeze(g, -1 if other.dim() == 1 else -2)
    if other.dim() == 1:
        y = torch.unsqueeze(y, 1)
        if self.dim() > 1:
            g = torch.unsqueeze(g, -1)
        else:
            g = torch.reshape(g, [1, 1])
    own = torch.matmul(g, torch.transpose(y, -2, -1))
    given = torch.matmul(torch.transpose(x, -2, -1), g)
    return (torch.reshape(torch.sum_to_size(own, torch.size(x)), torch.size(self)),
            torch.reshape(torch.sum_to_size(given, torch.size(y)), torch.size(other)))


def d_linear(grad: Tensor, input: Tensor, weight: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    if weight.dim() == 1:
        wide = torch.unsqueeze(grad, -1)
        rows = torch.reshape(input, [-1, weight.size(0)])
        return wide * weight, torch.matmul(torch.t(rows), torch.reshape(grad, [-1])), torch.sum(grad)
    rows = torch.reshape(grad, [-1, weight.size(0)])
    return (torch.matmul(grad, weight), torch.matmul(torch.t(rows), torch.reshape(input, [-1, weight.size(1)])),
            torch.sum(rows, [0]))


def d_addmm(grad: Tensor, self: Tensor, mat1: Tensor, mat2: Tensor, beta: number, alpha: number) -> Tuple[Tensor, Tensor, Tensor]:
    scaled = grad * alpha
    return (torch.sum_to_size(grad * beta, torch.size(self)), torch.matmul(scaled, torch.t(mat2)),
            torch.matmul(torch.t(mat1), scaled))


def d_addmv(grad: Tensor, self: Tensor, mat: Tensor, vec: Tensor, beta: number, alpha: number) -> Tuple[Tensor, Tensor, Tensor]:
    scaled = grad * alpha
    return (torch.sum_to_size(grad * beta, torch.size(self)), torch.unsqueeze(scaled, 1) * vec,
            torch.matmul(torch.t(mat), scaled))


def d_baddbmm(grad: Tensor, self: Tensor, batch1: Tensor, batch2: Tensor, beta: number, alpha: number) -> Tuple[Tensor, Tensor, Tensor]:
    scaled = grad * alpha
    return (torch.sum_to_size(grad * beta, torch.size(self)), torch.matmul(scaled, torch.transpose(batch2, 1, 2)),
            torch.matmul(torch.transpose(batch1, 1, 2), scaled))


def d_addbmm(grad: Tensor, self: Tensor, batch1: Tensor, batch2: Tensor, beta: number, alpha: number) -> Tuple[Tensor, Tensor, Tensor]:
    scaled = grad * alpha
    return (torch.sum_to_size(grad * beta, torch.size(self)), torch.matmul(scaled, torch.transpose(batch2, 1, 2)),
            torch.matmul(torch.transpose(batch1, 1, 2), scaled))


def d_bilinear(grad: Tensor, input1: Tensor, input2: Tensor, weight: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    rows = 1
    for d in range(grad.dim() - 1):
        rows = rows * grad.size(d)
    g = torch.reshape(grad, [rows, weight.size(0)])
    x = torch.reshape(input1, [rows, weight.size(1)])
    y = torch.reshape(input2, [rows, weight.size(2)])
    mixed = torch.reshape(torch.matmul(g, torch.flatten(weight, 1)), [rows, weight.size(1), weight.size(2)])
    outer = torch.flatten(torch.unsqueeze(x, 2) * torch.unsqueeze(y, 1), 1)
    return (torch.reshape(torch.sum(mixed * torch.unsqueeze(y, 1), [2]), torch.size(input1)),
            torch.reshape(torch.sum(mixed * torch.unsqueeze(x, 2), [1]), torch.size(input2)),
            torch.reshape(torch.matmul(torch.t(g), outer), torch.size(weight)), torch.sum(g, [0]))


def d_tensordot(grad: Tensor, self: Tensor, other: Tensor, dims_self: List[int], dims_other: List[int]) -> Tuple[Tensor, Tensor]:
    first = [d % self.dim() for d in dims_self]
    second = [d % other.dim() for d in dims_other]
    free_first = [d for d in range(self.dim()) if d not in first]
    free_second = [d for d in range(other.dim()) if d not in second]
    order_first = free_first + first
    order_second = second + free_second
    rows, columns, inner = 1, 1, 1
    wide_first, wide_second = torch.size(self), torch.size(other)
    for k in range(len(first)):  # a size of 1 goes with any
        size = self.size(first[k]) if other.size(second[k]) == 1 else other.size(second[k])
        wide_first[first[k]] = size
        wide_second[second[k]] = size
        inner = inner * size
    for d in free_first:
        rows = rows * self.size(d)
    for d in free_second:
        columns = columns * other.size(d)
    g = torch.reshape(grad, [rows, columns])
    x = torch.permute(torch.expand(self, wide_first), order_first)
    y = torch.permute(torch.expand(other, wide_second), order_second)
    own = torch.matmul(g, torch.t(torch.reshape(y, [inner, columns])))
    given = torch.matmul(torch.t(torch.reshape(x, [rows, inner])), g)
    back_first = [0 for d in order_first]
    for d in range(len(order_first)):
        back_first[order_first[d]] = d
    back_second = [0 for d in order_second]
    for d in range(len(order_second)):
        back_second[order_second[d]] = d
    own = torch.permute(torch.reshape(own, torch.size(x)), back_first)
    given = torch.permute(torch.reshape(given, torch.size(y)), back_second)
    return torch.sum_to_size(own, torch.size(self)), torch.sum_to_size(given, torch.size(other))


def _implicit_output(inputs: str) -> str:
    # the letters that stand once, in order
    result = "..." if "..." in inputs else ""
    letters = inputs.replace("...", "").replace(",", "")
    for letter in sorted([c for c in letters]):
        if letters.count(letter) == 1:
            result = result + letter
    return result


def _einsum_dots(text: str, count: int) -> str:
    """That many letters which the equation does not use: what its ellipsis stands for."""
    dots = ""
    for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz":
        if len(dots) < count and letter not in text:
            dots = dots + letter
    return dots


def _einsum_part(grad: Tensor, left: str, term: str, given: List[Tensor], own: Tensor) -> Tensor:
    """The gradient of one operand: left are the letters of what is given, term its own."""
    once = ""
    kept = ""
    for letter in term:
        if letter not in once:
            once = once + letter
            if letter in left:
                kept = kept + letter
    part = torch.einsum(left + "->" + kept, given)
    for d in range(len(once)):
        if once[d] not in left:
            part = torch.unsqueeze(part, d)
    shape: List[int] = []
    for d in range(len(once)):
        size = own.size(term.index(once[d]))
        shape.append(size if part.size(d) == 1 else part.size(d))
    part = torch.expand(part, shape)
    spread = once
    for d in range(len(term)):
        if term[:d].count(term[d]) > 0:
            # a letter for the second time is a diagonal: zeros beside it
            fresh = _einsum_dots(term + spread, 1)
            eye = torch.eye(own.size(d), dtype=part.dtype)
            part = torch.einsum(spread + "," + term[d] + fresh + "->" + spread + fresh, [part, eye])
            spread = spread + fresh
    if len(spread) > len(once):
        order: List[int] = []
        beyond = len(once)
        for d in range(len(term)):
            if term[:d].count(term[d]) > 0:
                order.append(beyond)
                beyond += 1
            else:
                order.append(once.index(term[d]))
        part = torch.permute(part, order)
    return torch.sum_to_size(part, torch.size(own))


def d_einsum(grad: Tensor, equation: str, tensors: List[Tensor]) -> List[Tensor]:
    text = equation.replace(" ", "")
    sides = text.split("->")
    output = sides[1] if len(sides) > 1 else _implicit_output(sides[0])
    terms = sides[0].split(",")
    most = 0
    for i in range(len(terms)):
        most = max(most, tensors[i].dim() - len(terms[i].replace("...", "")))
    dots = _einsum_dots(text, most)
    output = output.replace("...", dots)
    spelt: List[str] = []
    for i in range(len(terms)):
        hidden = tensors[i].dim() - len(terms[i].replace("...", ""))
        spelt.append(terms[i].replace("...", dots[most - hidden:]))
    grads: List[Tensor] = []
    for i in range(len(terms)):
        left = output
        given = [grad]
        for k in range(len(terms)):
            if k != i:
                left = left + "," + spelt[k]
                given.append(torch.conj(tensors[k]) if torch.is_complex(tensors[k]) else tensors[k])
        grads.append(_einsum_part(grad, left, spelt[i], given, tensors[i]))
    return grads


# ---- convolutions ----

def _each(numbers: List[int], count: int) -> List[int]:
    # a list of one number stands for all dimensions
    return [numbers[d] if len(numbers) > 1 else numbers[0] for d in range(count)]


def _swap_groups(x: Tensor, groups: int) -> Tensor:
    # [N, G*C, ...] as [C, G*N, ...]
    if groups == 1:
        return torch.transpose(x, 0, 1)
    shape = torch.size(x)
    rest = [shape[d] for d in range(2, len(shape))]
    split = torch.reshape(x, [shape[0], groups, shape[1] // groups] + rest)
    order = [2, 1, 0] + [d + 1 for d in range(2, len(shape))]
    return torch.reshape(torch.permute(split, order), [shape[1] // groups, groups * shape[0]] + rest)


def _columns2d(x: Tensor, kernel: List[int], stride: List[int], padding: List[int], dilation: List[int], rows: int, columns: int) -> Tensor:
    # [N, C, H, W] as [C * kernel places, N * rows * columns]
    if padding[0] != 0 or padding[1] != 0:
        x = torch.constant_pad_nd(x, [padding[1], padding[1], padding[0], padding[0]], 0)
    parts: List[Tensor] = []
    for i in range(kernel[0]):
        line = torch.slice(x, 2, i * dilation[0], i * dilation[0] + (rows - 1) * stride[0] + 1, stride[0])
        for j in range(kernel[1]):
            parts.append(torch.slice(line, 3, j * dilation[1], j * dilation[1] + (columns - 1) * stride[1] + 1, stride[1]))
    stacked = torch.stack(parts, 2)
    return torch.reshape(torch.permute(stacked, [1, 2, 0, 3, 4]), [x.size(1) * kernel[0] * kernel[1], x.size(0) * rows * columns])


def _convolution_weight(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: List[int],
                        dilation: List[int], groups: int) -> Tensor:
    count = weight.dim() - 2
    if count == 2 and groups == 1:
        kernel = [weight.size(2), weight.size(3)]
        columns = _columns2d(input, kernel, stride, padding, dilation, grad.size(2), grad.size(3))
        g = torch.reshape(torch.transpose(grad, 0, 1), [grad.size(1), -1])
        return torch.reshape(torch.matmul(g, torch.t(columns)), torch.size(weight))
    none = [0 for d in range(count)]
    result = torch.convolution(_swap_groups(input, groups), torch.transpose(grad, 0, 1), None, dilation, padding, stride, False,
                               none, groups)
    for d in range(count):
        result = torch.narrow(result, d + 2, 0, weight.size(d + 2))
    return torch.transpose(result, 0, 1)


def _convolution_input(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: List[int],
                       dilation: List[int], groups: int) -> Tensor:
    count = weight.dim() - 2
    extra = [input.size(d + 2) - ((grad.size(d + 2) - 1) * stride[d] - 2 * padding[d]
                                  + dilation[d] * (weight.size(d + 2) - 1) + 1) for d in range(count)]
    return torch.convolution(grad, weight, None, stride, padding, dilation, True, extra, groups)


def _bias_of(grad: Tensor) -> Tensor:
    return torch.sum(grad, [0] + [d for d in range(2, grad.dim())])


def d_conv(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: List[int], dilation: List[int],
           groups: int) -> Tuple[Tensor, Tensor, Tensor]:
    count = weight.dim() - 2
    s, p, d = _each(stride, count), _each(padding, count), _each(dilation, count)
    if input.dim() == count + 1:
        g, x = torch.unsqueeze(grad, 0), torch.unsqueeze(input, 0)
        return (torch.squeeze(_convolution_input(g, x, weight, s, p, d, groups), 0),
                _convolution_weight(g, x, weight, s, p, d, groups), _bias_of(g))
    return (_convolution_input(grad, input, weight, s, p, d, groups),
            _convolution_weight(grad, input, weight, s, p, d, groups), _bias_of(grad))


def d_conv__padding(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: str, dilation: List[int],
                    groups: int) -> Tuple[Tensor, Tensor, Tensor]:
    count = weight.dim() - 2
    none = [0 for d in range(count)]
    dilations = _each(dilation, count)
    if padding == "valid":
        return d_conv(grad, input, weight, stride, none, dilation, groups)
    pads: List[int] = []
    for i in range(count):
        total = dilations[count - 1 - i] * (weight.size(weight.dim() - 1 - i) - 1)
        pads.append(total // 2)
        pads.append(total - total // 2)
    own, weights, bias = d_conv(grad, torch.constant_pad_nd(input, pads, 0), weight, stride, none, dilation, groups)
    return torch.constant_pad_nd(own, [-p for p in pads], 0), weights, bias


def d_conv_transpose(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: List[int], groups: int,
                     dilation: List[int]) -> Tuple[Tensor, Tensor, Tensor]:
    count = weight.dim() - 2
    s, p, d = _each(stride, count), _each(padding, count), _each(dilation, count)
    none = [0 for k in range(count)]
    g, x = grad, input
    if input.dim() == count + 1:
        g, x = torch.unsqueeze(grad, 0), torch.unsqueeze(input, 0)
    own = torch.convolution(g, weight, None, s, p, d, False, none, groups)
    for k in range(count):
        own = torch.narrow(own, k + 2, 0, x.size(k + 2))
    return torch.reshape(own, torch.size(input)), _convolution_weight(x, g, weight, s, p, d, groups), _bias_of(g)


def d_convolution(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: List[int], dilation: List[int],
                  transposed: bool, groups: int) -> Tuple[Tensor, Tensor, Tensor]:
    if transposed:
        return d_conv_transpose(grad, input, weight, stride, padding, groups, dilation)
    return d_conv(grad, input, weight, stride, padding, dilation, groups)


def d_im2col(grad: Tensor, self: Tensor, kernel_size: List[int], dilation: List[int], padding: List[int], stride: List[int]) -> Tensor:
    return torch.col2im(grad, [self.size(-2), self.size(-1)], kernel_size, dilation, padding, stride)


def d_col2im(grad: Tensor, kernel_size: List[int], dilation: List[int], padding: List[int], stride: List[int]) -> Tensor:
    return torch.im2col(grad, kernel_size, dilation, padding, stride)


# ---- pooling and resizing: what is linear along each line is a matrix, its operator applied to the identity ----

def _back_along(grad: Tensor, matrix: Tensor, dim: int) -> Tensor:
    # matrix [in, out]: the gradient of x[..., in, ...] from that of y[..., out, ...]
    if dim == grad.dim() - 1:
        return torch.matmul(grad, torch.t(matrix))
    return torch.transpose(torch.matmul(torch.transpose(grad, dim, -1), torch.t(matrix)), dim, -1)


def _identity(size: int, like: Tensor) -> Tensor:
    return torch.unsqueeze(torch.eye(size, dtype=like.dtype), 0)


def _avg_pool(grad: Tensor, self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], ceil_mode: bool,
              count_include_pad: bool, divisor_override: Optional[int], count: int) -> Tensor:
    k, p = _each(kernel_size, count), _each(padding, count)
    s = k
    if len(stride) > 0:
        s = _each(stride, count)
    places = 1
    for i in range(count):
        dim = self.dim() - count + i
        includes = count_include_pad or divisor_override is not None
        matrix = torch.avg_pool1d(_identity(self.size(dim), grad), [k[i]], [s[i]], [p[i]], ceil_mode, includes)[0]
        if divisor_override is not None:
            # whole windows: each element counts once
            matrix = torch.gt(matrix, 0).to(grad.dtype)
        grad = _back_along(grad, matrix, dim)
    if divisor_override is not None:
        grad = grad / divisor_override
    return grad


def d_avg_pool1d(grad: Tensor, self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], ceil_mode: bool,
                 count_include_pad: bool) -> Tensor:
    return _avg_pool(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, None, 1)


def d_avg_pool2d(grad: Tensor, self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], ceil_mode: bool,
                 count_include_pad: bool, divisor_override: Optional[int]) -> Tensor:
    return _avg_pool(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 2)


def d_avg_pool3d(grad: Tensor, self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], ceil_mode: bool,
                 count_include_pad: bool, divisor_override: Optional[int]) -> Tensor:
    return _avg_pool(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 3)


def _adaptive_avg(grad: Tensor, self: Tensor, count: int) -> Tensor:
    for i in range(count):
        dim = self.dim() - count + i
        if grad.size(dim) == 1:
            shape = [grad.size(d) if d != dim else self.size(dim) for d in range(self.dim())]
            grad = torch.expand(grad, shape) / self.size(dim)
        else:
            matrix = torch.adaptive_avg_pool1d(_identity(self.size(dim), grad), [grad.size(dim)])[0]
            grad = _back_along(grad, matrix, dim)
    return grad


def d_adaptive_avg_pool1d(grad: Tensor, self: Tensor) -> Tensor:
    return _adaptive_avg(grad, self, 1)


def d_adaptive_avg_pool2d(grad: Tensor, self: Tensor) -> Tensor:
    return _adaptive_avg(grad, self, 2)


def d_adaptive_avg_pool3d(grad: Tensor, self: Tensor) -> Tensor:
    return _adaptive_avg(grad, self, 3)


def _max_pool(grad: Tensor, self: Tensor, index: Tensor, count: int) -> Tensor:
    # indices are places in the flat image
    lead = [self.size(d) for d in range(self.dim() - count)]
    flat = torch.zeros_like(torch.reshape(self, lead + [-1]))
    flat = torch.scatter_add(flat, -1, torch.reshape(index, lead + [-1]), torch.reshape(grad, lead + [-1]))
    return torch.reshape(flat, torch.size(self))


def d_max_pool1d_with_indices(grad: Tensor, self: Tensor, result1: Tensor) -> Tensor:
    return _max_pool(grad, self, result1, 1)


def d_max_pool2d_with_indices(grad: Tensor, self: Tensor, result1: Tensor) -> Tensor:
    return _max_pool(grad, self, result1, 2)


def d_max_pool3d_with_indices(grad: Tensor, self: Tensor, result1: Tensor) -> Tensor:
    return _max_pool(grad, self, result1, 3)


def d_max_pool2d_backward(grad: Tensor, grad_output: Tensor, indices: Tensor) -> Tensor:
    return d_max_unpool2d(grad, grad_output, indices)


def d_max_pool3d_backward(grad: Tensor, grad_output: Tensor, indices: Tensor) -> Tensor:
    return d_max_unpool3d(grad, grad_output, indices)


def d_max_unpool2d(grad: Tensor, self: Tensor, indices: Tensor) -> Tensor:
    lead = [self.size(d) for d in range(self.dim() - 2)]
    return torch.reshape(torch.gather(torch.reshape(grad, lead + [-1]), -1, torch.reshape(indices, lead + [-1])), torch.size(self))


def d_max_unpool3d(grad: Tensor, self: Tensor, indices: Tensor) -> Tensor:
    lead = [self.size(d) for d in range(self.dim() - 3)]
    return torch.reshape(torch.gather(torch.reshape(grad, lead + [-1]), -1, torch.reshape(indices, lead + [-1])), torch.size(self))


def _scale_at(scales: Optional[List[float]], i: int) -> Optional[float]:
    if scales is None:
        return None
    return scales[i]


def _nearest(grad: Tensor, x: Tensor, scales: List[Optional[float]], exact: bool) -> Tensor:
    for i in range(len(scales)):
        dim = x.dim() - len(scales) + i
        if exact:
            matrix = torch._upsample_nearest_exact1d(_identity(x.size(dim), grad), [grad.size(dim)], scales[i])[0]
        else:
            matrix = torch.upsample_nearest1d(_identity(x.size(dim), grad), [grad.size(dim)], scales[i])[0]
        grad = _back_along(grad, matrix, dim)
    return grad


def d_nearest1d(grad: Tensor, self: Tensor, scales: Optional[float]) -> Tensor:
    return _nearest(grad, self, [scales], False)


def d_nearest2d(grad: Tensor, self: Tensor, scales_h: Optional[float], scales_w: Optional[float]) -> Tensor:
    return _nearest(grad, self, [scales_h, scales_w], False)


def d_nearest3d(grad: Tensor, self: Tensor, scales_d: Optional[float], scales_h: Optional[float], scales_w: Optional[float]) -> Tensor:
    return _nearest(grad, self, [scales_d, scales_h, scales_w], False)


def d_nearest_vec(grad: Tensor, input: Tensor, scale_factors: Optional[List[float]]) -> Tensor:
    return _nearest(grad, input, [_scale_at(scale_factors, i) for i in range(input.dim() - 2)], False)


def d_exact1d(grad: Tensor, self: Tensor, scales: Optional[float]) -> Tensor:
    return _nearest(grad, self, [scales], True)


def d_exact2d(grad: Tensor, self: Tensor, scales_h: Optional[float], scales_w: Optional[float]) -> Tensor:
    return _nearest(grad, self, [scales_h, scales_w], True)


def d_exact3d(grad: Tensor, self: Tensor, scales_d: Optional[float], scales_h: Optional[float], scales_w: Optional[float]) -> Tensor:
    return _nearest(grad, self, [scales_d, scales_h, scales_w], True)


def d_exact_vec(grad: Tensor, input: Tensor, scale_factors: Optional[List[float]]) -> Tensor:
    return _nearest(grad, input, [_scale_at(scale_factors, i) for i in range(input.dim() - 2)], True)


def _linear_lines(grad: Tensor, x: Tensor, align_corners: bool, scales: List[Optional[float]]) -> Tensor:
    for i in range(len(scales)):
        dim = x.dim() - len(scales) + i
        matrix = torch.upsample_linear1d(_identity(x.size(dim), grad), [grad.size(dim)], align_corners, scales[i])[0]
        grad = _back_along(grad, matrix, dim)
    return grad


def d_linear1d(grad: Tensor, self: Tensor, align_corners: bool, scales: Optional[float]) -> Tensor:
    return _linear_lines(grad, self, align_corners, [scales])


def d_linear2d(grad: Tensor, self: Tensor, align_corners: bool, scales_h: Optional[float], scales_w: Optional[float]) -> Tensor:
    return _linear_lines(grad, self, align_corners, [scales_h, scales_w])


def d_linear3d(grad: Tensor, self: Tensor, align_corners: bool, scales_d: Optional[float], scales_h: Optional[float],
               scales_w: Optional[float]) -> Tensor:
    return _linear_lines(grad, self, align_corners, [scales_d, scales_h, scales_w])


def d_linear_vec(grad: Tensor, input: Tensor, align_corners: bool, scale_factors: Optional[List[float]]) -> Tensor:
    return _linear_lines(grad, input, align_corners, [_scale_at(scale_factors, i) for i in range(input.dim() - 2)])


def _images(size: int, like: Tensor) -> Tensor:
    # one image whose lines are the identity
    return torch.unsqueeze(_identity(size, like), 0)


def d_bicubic2d(grad: Tensor, self: Tensor, align_corners: bool, scales_h: Optional[float], scales_w: Optional[float]) -> Tensor:
    h, w = self.size(2), self.size(3)
    rows = torch.upsample_bicubic2d(_images(h, grad), [h, grad.size(2)], align_corners, None, scales_h)[0, 0]
    columns = torch.upsample_bicubic2d(_images(w, grad), [w, grad.size(3)], align_corners, None, scales_w)[0, 0]
    return _back_along(_back_along(grad, rows, 2), columns, 3)


def d_bicubic_vec(grad: Tensor, input: Tensor, align_corners: bool, scale_factors: Optional[List[float]]) -> Tensor:
    return d_bicubic2d(grad, input, align_corners, _scale_at(scale_factors, 0), _scale_at(scale_factors, 1))


def d_bilinear_aa(grad: Tensor, self: Tensor, align_corners: bool, scales_h: Optional[float], scales_w: Optional[float]) -> Tensor:
    h, w = self.size(2), self.size(3)
    rows = torch._upsample_bilinear2d_aa(_images(h, grad), [h, grad.size(2)], align_corners, None, scales_h)[0, 0]
    columns = torch._upsample_bilinear2d_aa(_images(w, grad), [w, grad.size(3)], align_corners, None, scales_w)[0, 0]
    return _back_along(_back_along(grad, rows, 2), columns, 3)


def d_bilinear_aa_vec(grad: Tensor, input: Tensor, align_corners: bool, scale_factors: Optional[List[float]]) -> Tensor:
    return d_bilinear_aa(grad, input, align_corners, _scale_at(scale_factors, 0), _scale_at(scale_factors, 1))


def d_bicubic_aa(grad: Tensor, self: Tensor, align_corners: bool, scales_h: Optional[float], scales_w: Optional[float]) -> Tensor:
    h, w = self.size(2), self.size(3)
    rows = torch._upsample_bicubic2d_aa(_images(h, grad), [h, grad.size(2)], align_corners, None, scales_h)[0, 0]
    columns = torch._upsample_bicubic2d_aa(_images(w, grad), [w, grad.size(3)], align_corners, None, scales_w)[0, 0]
    return _back_along(_back_along(grad, rows, 2), columns, 3)


def d_bicubic_aa_vec(grad: Tensor, input: Tensor, align_corners: bool, scale_factors: Optional[List[float]]) -> Tensor:
    return d_bicubic_aa(grad, input, align_corners, _scale_at(scale_factors, 0), _scale_at(scale_factors, 1))


def d_affine_grid(grad: Tensor, theta: Tensor, size: List[int], align_corners: bool) -> Tensor:
    # the grid is linear in theta: base points times it
    count = len(size) - 2
    unit = torch.zeros([count + 1, count, count + 1], dtype=theta.dtype)
    lines: List[Tensor] = []
    for k in range(count + 1):
        one = torch.zeros([1, count, count + 1], dtype=theta.dtype)
        one[0, 0, k] = 1.0
        lines.append(torch.reshape(torch.select(torch.affine_grid_generator(one, [1] + size[1:], align_corners), -1, 0), [-1]))
    base = torch.stack(lines, 1)
    return torch.matmul(torch.transpose(torch.reshape(grad, [size[0], -1, count]), 1, 2), base)


# ---- normalisation ----

def _channel(v: Optional[Tensor], x: Tensor) -> Tensor:
    if v is None:
        return torch.ones([1], dtype=x.dtype)
    shape = [1 for d in range(x.dim())]
    shape[min(1, x.dim() - 1)] = v.numel()
    return torch.reshape(v, shape).to(x.dtype)


def _standard(grad: Tensor, input: Tensor, weight: Optional[Tensor], dims: List[int], eps: float) -> Tuple[Tensor, Tensor]:
    """The gradient of what is centered and divided by its deviation over dims, and the result before it is scaled."""
    centered = input - torch.mean(input, dims, True)
    rstd = torch.rsqrt(torch.mean(centered * centered, dims, True) + eps)
    normal = centered * rstd
    scaled = grad * _channel(weight, input)
    return rstd * (scaled - torch.mean(scaled, dims, True) - normal * torch.mean(scaled * normal, dims, True)), normal


def d_batch_norm(grad: Tensor, input: Tensor, weight: Optional[Tensor], running_mean: Optional[Tensor],
                 running_var: Optional[Tensor], training: bool, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    dims = [0] + [d for d in range(2, input.dim())]
    if training:
        own, normal = _standard(grad, input, weight, dims, eps)
        return own, torch.sum(grad * normal, dims), torch.sum(grad, dims)
    assert running_mean is not None and running_var is not None
    rstd = torch.rsqrt(_channel(running_var, input) + eps)
    return grad * _channel(weight, input) * rstd, torch.sum(grad * (input - _channel(running_mean, input)) * rstd, dims), torch.sum(grad, dims)


def d_native_batch_norm(grad: Tensor, input: Tensor, weight: Optional[Tensor], running_mean: Optional[Tensor],
                        running_var: Optional[Tensor], training: bool, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    return d_batch_norm(grad, input, weight, running_mean, running_var, training, eps)


def d_batch_norm_of_batch(grad: Tensor, input: Tensor, weight: Optional[Tensor], eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    return d_batch_norm(grad, input, weight, None, None, True, eps)


def d_instance_norm(grad: Tensor, input: Tensor, weight: Optional[Tensor], running_mean: Optional[Tensor],
                    running_var: Optional[Tensor], use_input_stats: bool, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    if not use_input_stats:
        return d_batch_norm(grad, input, weight, running_mean, running_var, False, eps)
    own, normal = _standard(grad, input, weight, [d for d in range(2, input.dim())], eps)
    dims = [0] + [d for d in range(2, input.dim())]
    return own, torch.sum(grad * normal, dims), torch.sum(grad, dims)


# ---- random ----

def d_native_dropout(grad: Tensor, p: float, train: Optional[bool], result1: Tensor) -> Tensor:
    if train is not None and not train:
        return grad
    if p >= 1.0:
        return torch.zeros_like(grad)
    return grad * result1.to(grad.dtype) * (1 / (1 - p))


def open_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    if not train or p == 0.0:
        return input * 1
    return torch.native_dropout(input, p, True)[0]


# ---- operators as functions of simpler ones ----

def open_max_pool1d(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int],
                    ceil_mode: bool) -> Tensor:
    return torch.max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


def open_max_pool2d(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int],
                    ceil_mode: bool) -> Tensor:
    return torch.max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


def open_max_pool3d(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int],
                    ceil_mode: bool) -> Tensor:
    return torch.max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


def open_layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor], bias: Optional[Tensor], eps: float,
                    cudnn_enable: bool) -> Tensor:
    dims = [-1 - d for d in range(len(normalized_shape))]
    centered = input - torch.mean(input, dims, True)
    result = centered * torch.rsqrt(torch.mean(centered * centered, dims, True) + eps)
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result


def open_native_layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor], bias: Optional[Tensor],
                           eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    dims = [-1 - d for d in range(len(normalized_shape))]
    mean = torch.mean(input, dims, True)
    centered = input - mean
    rstd = torch.rsqrt(torch.mean(centered * centered, dims, True) + eps)
    result = centered * rstd
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result, mean, rstd


def open_rms_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor], eps: Optional[float]) -> Tensor:
    dims = [-1 - d for d in range(len(normalized_shape))]
    small = torch.finfo(input.dtype).eps
    if eps is not None:
        small = eps
    result = input * torch.rsqrt(torch.mean(input * input, dims, True) + small)
    if weight is not None:
        result = result * weight
    return result


def open_group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor], bias: Optional[Tensor], eps: float,
                    cudnn_enabled: bool) -> Tensor:
    shape = torch.size(input)
    channel = [shape[1] if d == 1 else 1 for d in range(len(shape))]
    own = shape[1] // num_groups
    for d in range(2, len(shape)):
        own = own * shape[d]
    rows = torch.reshape(input, [shape[0], num_groups, own])
    centered = rows - torch.mean(rows, [2], True)
    result = torch.reshape(centered * torch.rsqrt(torch.mean(centered * centered, [2], True) + eps), shape)
    if weight is not None:
        result = result * torch.reshape(weight, channel)
    if bias is not None:
        result = result + torch.reshape(bias, channel)
    return result


def open_native_group_norm(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], N: int, C: int, HxW: int, group: int,
                           eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    rows = torch.reshape(input, [N, group, C // group * HxW])
    mean = torch.mean(rows, [2])
    centered = rows - torch.unsqueeze(mean, 2)
    rstd = torch.rsqrt(torch.mean(centered * centered, [2]) + eps)
    result = torch.reshape(centered * torch.unsqueeze(rstd, 2), torch.size(input))
    channel = [C if d == 1 else 1 for d in range(input.dim())]
    if weight is not None:
        result = result * torch.reshape(weight, channel)
    if bias is not None:
        result = result + torch.reshape(bias, channel)
    return result, mean, rstd


def open_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool,
                   scale: Optional[float], enable_gqa: bool) -> Tensor:
    factor = 1 / math.sqrt(query.size(-1))
    if scale is not None:
        factor = scale
    k, v = key, value
    if enable_gqa:
        k = torch.repeat_interleave(key, query.size(-3) // key.size(-3), -3)
        v = torch.repeat_interleave(value, query.size(-3) // value.size(-3), -3)
    scores = torch.matmul(query * factor, torch.transpose(k, -2, -1))
    if is_causal:
        seen = torch.tril(torch.ones([query.size(-2), key.size(-2)], dtype=torch.bool))
        scores = torch.masked_fill(scores, torch.logical_not(seen), -math.inf)
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = torch.masked_fill(scores, torch.logical_not(attn_mask), -math.inf)
        else:
            scores = scores + attn_mask
    shares = torch.softmax(scores, -1)
    if dropout_p > 0.0:
        shares = torch.dropout(shares, dropout_p, True)
    return torch.matmul(shares, v)


def open_cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: Optional[int]) -> Tensor:
    return torch.linalg_vector_norm(torch.unsqueeze(x1, -2) - torch.unsqueeze(x2, -3), p, [-1])


def open_pdist(self: Tensor, p: float) -> Tensor:
    pairs = torch.triu_indices(self.size(0), self.size(0), 1)
    return torch.linalg_vector_norm(torch.index_select(self, 0, pairs[0]) - torch.index_select(self, 0, pairs[1]), p, [-1])


def _plain_linear(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    result = torch.matmul(x, torch.t(weight))
    if bias is not None:
        result = result + bias
    return result


def open_lstm_cell(input: Tensor, hx: List[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor],
                   b_hh: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    gates = torch.chunk(_plain_linear(input, w_ih, b_ih) + _plain_linear(hx[0], w_hh, b_hh), 4, -1)
    c = torch.sigmoid(gates[1]) * hx[1] + torch.sigmoid(gates[0]) * torch.tanh(gates[2])
    return torch.sigmoid(gates[3]) * torch.tanh(c), c


def open_gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tensor:
    x = torch.chunk(_plain_linear(input, w_ih, b_ih), 3, -1)
    h = torch.chunk(_plain_linear(hx, w_hh, b_hh), 3, -1)
    reset, update = torch.sigmoid(x[0] + h[0]), torch.sigmoid(x[1] + h[1])
    new = torch.tanh(x[2] + reset * h[2])
    return new + update * (hx - new)


def open_rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tensor:
    return torch.tanh(_plain_linear(input, w_ih, b_ih) + _plain_linear(hx, w_hh, b_hh))


def open_rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tensor:
    return torch.relu(_plain_linear(input, w_ih, b_ih) + _plain_linear(hx, w_hh, b_hh))


def _open_recurrent(input: Tensor, h0: Tensor, c0: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float,
                    train: bool, bidirectional: bool, batch_first: bool, kind: int) -> Tuple[Tensor, Tensor, Tensor]:
    # kind: 0 LSTM, 1 GRU, 2 tanh, 3 relu
    directions = 2 if bidirectional else 1
    each = 4 if has_biases else 2
    batched = input.dim() == 3
    x = torch.transpose(input, 0, 1) if batched and batch_first else input
    last_h: List[Tensor] = []
    last_c: List[Tensor] = []
    for layer in range(num_layers):
        sides: List[Tensor] = []
        for side in range(directions):
            at = (layer * directions + side) * each
            w_hh = params[at + 1]
            given = torch.matmul(x, torch.t(params[at]))
            own_bias = torch.zeros([1], dtype=x.dtype)
            if has_biases:
                given = given + params[at + 2]
                own_bias = params[at + 3]
            h = torch.select(h0, 0, layer * directions + side)
            c = torch.select(c0, 0, layer * directions + side)
            steps = x.size(0)
            outs: List[Tensor] = []
            for t in range(steps):
                now = torch.select(given, 0, steps - 1 - t if side == 1 else t)
                own = torch.matmul(h, torch.t(w_hh)) + own_bias
                if kind == 0:
                    g = now + own
                    n = h.size(-1)
                    c = (torch.sigmoid(torch.narrow(g, -1, n, n)) * c
                         + torch.sigmoid(torch.narrow(g, -1, 0, n)) * torch.tanh(torch.narrow(g, -1, 2 * n, n)))
                    h = torch.sigmoid(torch.narrow(g, -1, 3 * n, n)) * torch.tanh(c)
                elif kind == 1:
                    n = h.size(-1)
                    reset = torch.sigmoid(torch.narrow(now, -1, 0, n) + torch.narrow(own, -1, 0, n))
                    update = torch.sigmoid(torch.narrow(now, -1, n, n) + torch.narrow(own, -1, n, n))
                    new = torch.tanh(torch.narrow(now, -1, 2 * n, n) + reset * torch.narrow(own, -1, 2 * n, n))
                    h = new + update * (h - new)
                elif kind == 2:
                    h = torch.tanh(now + own)
                else:
                    h = torch.relu(now + own)
                outs.append(h)
            line = torch.stack(outs, 0)
            if side == 1:
                line = torch.flip(line, [0])
            sides.append(line)
            last_h.append(h)
            last_c.append(c)
        x = torch.cat(sides, -1) if directions == 2 else sides[0]
        if dropout > 0.0 and train and layer + 1 < num_layers:
            x = torch.dropout(x, dropout, True)
    result = torch.transpose(x, 0, 1) if batched and batch_first else x
    return result, torch.stack(last_h, 0), torch.stack(last_c, 0)


def open_lstm(input: Tensor, hx: List[Tensor], params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
              bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor, Tensor]:
    directions = 2 if bidirectional else 1
    if len(params) != num_layers * directions * (4 if has_biases else 2):
        raise RuntimeError("the derivative of an LSTM with projections is not supported yet")
    return _open_recurrent(input, hx[0], hx[1], params, has_biases, num_layers, dropout, train, bidirectional, batch_first, 0)


def open_gru(input: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
             bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor]:
    y, h, c = _open_recurrent(input, hx, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, 1)
    return y, h


def open_rnn_tanh(input: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
                  bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor]:
    y, h, c = _open_recurrent(input, hx, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, 2)
    return y, h


def open_rnn_relu(input: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
                  bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor]:
    y, h, c = _open_recurrent(input, hx, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, 3)
    return y, h
