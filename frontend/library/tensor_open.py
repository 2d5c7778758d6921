"""What passes/open_operators.c puts in the place of operators that have no kernel form: each function takes the
arguments of the operator that it is named for, which the pass has found to be of the usual kind."""
from typing import List, Optional

import torch
from torch import Tensor


def _open_norm(input: Tensor, groups: int, weight: Optional[Tensor], bias: Optional[Tensor], eps: float) -> Tensor:
    shape = input.size()
    count = shape[1] // groups
    channel = [1, shape[1]]
    for d in range(2, input.dim()):
        count = count * shape[d]
        channel.append(1)
    rows = torch.reshape(input, [shape[0], groups, count])
    centered = rows - torch.mean(rows, [2], True)
    variance = torch.mean(centered * centered, [2], True)
    result = torch.reshape(centered * torch.rsqrt(variance + eps), shape)
    if weight is not None:
        result = result * torch.view(weight, channel)
    if bias is not None:
        result = result + torch.view(bias, channel)
    return result


def _open_group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor], bias: Optional[Tensor], eps: float,
                     cudnn_enabled: bool) -> Tensor:
    return _open_norm(input, num_groups, weight, bias, eps)


def _open_instance_norm(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Optional[Tensor],
                        running_var: Optional[Tensor], use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:
    return _open_norm(input, input.size(1), weight, bias, eps)


def _open_conv3d(input: Tensor, weight: Tensor, bias: Optional[Tensor], stride: List[int], padding: List[int], dilation: List[int],
                 groups: int) -> Tensor:
    # a convolution over frames: the depth of the kernel becomes channels
    s, p, d = stride, padding, dilation
    size = input.size()
    count, depth = weight.size(0), weight.size(2)
    frames = torch.transpose(input, 1, 2)
    if p[0] > 0:
        frames = torch.constant_pad_nd(frames, [0, 0, 0, 0, 0, 0, p[0], p[0]], 0)
    steps = (size[2] + 2 * p[0] - d[0] * (depth - 1) - 1) // s[0] + 1
    parts: List[Tensor] = []
    for k in range(depth):
        parts.append(torch.slice(frames, 1, k * d[0], k * d[0] + (steps - 1) * s[0] + 1, s[0]))
    if groups == 1:
        stacked = torch.cat(parts, 2) if depth > 1 else parts[0]
        filters = torch.reshape(torch.permute(weight, [0, 2, 1, 3, 4]), [count, depth * size[1], weight.size(3), weight.size(4)])
        result = torch.conv2d(torch.reshape(stacked, [size[0] * steps, depth * size[1], size[3], size[4]]), filters, bias,
                              [s[1], s[2]], [p[1], p[2]], [d[1], d[2]], 1)
    else:
        result = torch.conv2d(torch.reshape(parts[0], [size[0] * steps, size[1], size[3], size[4]]), torch.select(weight, 2, 0), bias,
                              [s[1], s[2]], [p[1], p[2]], [d[1], d[2]], groups)
        for k in range(1, depth):
            result = result + torch.conv2d(torch.reshape(parts[k], [size[0] * steps, size[1], size[3], size[4]]),
                                           torch.select(weight, 2, k), None, [s[1], s[2]], [p[1], p[2]], [d[1], d[2]], groups)
    result = torch.view(result, [size[0], steps, count, result.size(2), result.size(3)])
    return torch.contiguous(torch.transpose(result, 1, 2))
