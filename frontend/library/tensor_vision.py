"""The operators of torchvision beside those of the core table: torchvision_roi_pool is torchvision::roi_pool.

Regions of interest are rows (image, x1, y1, x2, y2). Sampled points are gathered as rows of channels, so that
channels are innermost."""
import math
from typing import List, Tuple

import torch
from torch import Tensor


def _vision_bilinear(rows: Tensor, base: Tensor, ys: Tensor, xs: Tensor, height: int, width: int) -> Tensor:
    """rows [images * height * width, C] at the points (ys[k, a], xs[k, b]) of the images that begin at row base[k]:
    [k, a, b, C]. Points more than one pixel outside are 0."""
    inside = torch.logical_and(torch.logical_and(ys >= -1.0, ys <= height).unsqueeze(2),
                               torch.logical_and(xs >= -1.0, xs <= width).unsqueeze(1))
    y, x = torch.clamp(ys, 0.0, float(height - 1)), torch.clamp(xs, 0.0, float(width - 1))
    y_low, x_low = y.to(torch.int64), x.to(torch.int64)
    y_high, x_high = torch.clamp(y_low + 1, max=height - 1), torch.clamp(x_low + 1, max=width - 1)
    ly, lx = (y - y_low.to(y.dtype)).unsqueeze(2).unsqueeze(3), (x - x_low.to(x.dtype)).unsqueeze(1).unsqueeze(3)
    top = base.unsqueeze(1).unsqueeze(2) + (y_low * width).unsqueeze(2)
    bottom = base.unsqueeze(1).unsqueeze(2) + (y_high * width).unsqueeze(2)
    left, right = x_low.unsqueeze(1), x_high.unsqueeze(1)
    shape = [ys.size(0), ys.size(1), xs.size(1), rows.size(1)]
    a = torch.index_select(rows, 0, (top + left).flatten()).view(shape)
    b = torch.index_select(rows, 0, (top + right).flatten()).view(shape)
    c = torch.index_select(rows, 0, (bottom + left).flatten()).view(shape)
    d = torch.index_select(rows, 0, (bottom + right).flatten()).view(shape)
    value = (1 - ly) * (1 - lx) * a + (1 - ly) * lx * b + ly * (1 - lx) * c + ly * lx * d
    return value * inside.unsqueeze(3).to(rows.dtype)


def _vision_points(start: Tensor, size: Tensor, bins: int, grid: int) -> Tensor:
    """Where each bin of each region is sampled: [regions, bins * grid]."""
    bin_size = (size / bins).unsqueeze(1).unsqueeze(2)
    bin = torch.arange(bins, dtype=start.dtype).unsqueeze(1)
    step = torch.arange(grid, dtype=start.dtype) + 0.5
    return (start.unsqueeze(1).unsqueeze(2) + bin * bin_size + step * bin_size / grid).flatten(1)


def _vision_pool(rows: Tensor, base: Tensor, start_y: Tensor, start_x: Tensor, size_y: Tensor, size_x: Tensor, height: int, width: int,
                 bins_y: int, bins_x: int, grid_y: int, grid_x: int) -> Tensor:
    """Means over the sampled points of each bin: [regions, bins_y, bins_x, C]."""
    ys, xs = _vision_points(start_y, size_y, bins_y, grid_y), _vision_points(start_x, size_x, bins_x, grid_x)
    values = _vision_bilinear(rows, base, ys, xs, height, width)
    values = values.view([base.size(0), bins_y, grid_y, bins_x, grid_x, rows.size(1)])
    return torch.mean(values, dim=[2, 4])


def _vision_align(input: Tensor, rois: Tensor, spatial_scale: float, bins_y: int, bins_x: int, sampling_ratio: int) -> Tensor:
    """Averages of bilinear samples: [regions, bins_y, bins_x, C]; NaN for regions without a sample."""
    images, channels, height, width = input.size(0), input.size(1), input.size(2), input.size(3)
    rows = input.permute(0, 2, 3, 1).reshape([images * height * width, channels])
    base = rois[:, 0].to(torch.int64) * (height * width)
    start_x, start_y = rois[:, 1] * spatial_scale - 0.5, rois[:, 2] * spatial_scale - 0.5
    size_x, size_y = rois[:, 3] * spatial_scale - 0.5 - start_x, rois[:, 4] * spatial_scale - 0.5 - start_y
    if sampling_ratio > 0:
        return _vision_pool(rows, base, start_y, start_x, size_y, size_x, height, width, bins_y, bins_x, sampling_ratio, sampling_ratio)
    result = torch.full([rois.size(0), bins_y, bins_x, channels], float("nan"), dtype=input.dtype)
    grids_y, grids_x = torch.ceil(size_y / bins_y).to(torch.int64), torch.ceil(size_x / bins_x).to(torch.int64)
    for k in range(rois.size(0)):
        grid_y, grid_x = int(grids_y[k]), int(grids_x[k])
        if grid_y > 0 and grid_x > 0:
            result[k:k + 1] = _vision_pool(rows, base[k:k + 1], start_y[k:k + 1], start_x[k:k + 1], size_y[k:k + 1], size_x[k:k + 1],
                                           height, width, bins_y, bins_x, grid_y, grid_x)
    return result


def _vision_own_bins(values: Tensor, bins_y: int, bins_x: int) -> Tensor:
    """Of [regions, bins_y, bins_x, C], the channels that belong to each bin: [regions, C / bins, bins_y, bins_x]."""
    groups = values.view([values.size(0), bins_y, bins_x, values.size(3) // (bins_y * bins_x), bins_y, bins_x])
    own = torch.diagonal(torch.diagonal(groups, 0, 1, 4), 0, 1, 3)
    return own.contiguous()


def _vision_channel_mapping(regions: int, channels: int, bins_y: int, bins_x: int) -> Tensor:
    mapping = torch.arange(channels, dtype=torch.int32).view([channels // (bins_y * bins_x), bins_y, bins_x])
    return mapping.unsqueeze(0).repeat([regions, 1, 1, 1])


def torchvision_ps_roi_align(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
                             sampling_ratio: int) -> Tuple[Tensor, Tensor]:
    values = _vision_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio)
    return (_vision_own_bins(values, pooled_height, pooled_width),
            _vision_channel_mapping(rois.size(0), input.size(1), pooled_height, pooled_width))


def _vision_round(x: float) -> int:
    return int(math.floor(x + 0.5)) if x >= 0 else -int(math.floor(0.5 - x))


def torchvision_roi_pool(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int) -> Tuple[Tensor, Tensor]:
    channels, height, width = input.size(1), input.size(2), input.size(3)
    result = torch.zeros([rois.size(0), channels, pooled_height, pooled_width], dtype=input.dtype)
    where = torch.full([rois.size(0), channels, pooled_height, pooled_width], -1, dtype=torch.int32)
    for k in range(rois.size(0)):
        image = input[int(rois[k, 0])]
        x, y = _vision_round(float(rois[k, 1] * spatial_scale)), _vision_round(float(rois[k, 2] * spatial_scale))
        w = max(_vision_round(float(rois[k, 3] * spatial_scale)) - x + 1, 1)
        h = max(_vision_round(float(rois[k, 4] * spatial_scale)) - y + 1, 1)
        for i in range(pooled_height):
            y0 = min(max(i * h // pooled_height + y, 0), height)
            y1 = min(max(-(-(i + 1) * h // pooled_height) + y, 0), height)
            for j in range(pooled_width):
                x0 = min(max(j * w // pooled_width + x, 0), width)
                x1 = min(max(-(-(j + 1) * w // pooled_width) + x, 0), width)
                if y1 > y0 and x1 > x0:
                    window = image[:, y0:y1, x0:x1].reshape([channels, (y1 - y0) * (x1 - x0)])
                    best, index = torch.max(window, dim=1)
                    result[k, :, i, j] = best
                    where[k, :, i, j] = ((index // (x1 - x0) + y0) * width + index % (x1 - x0) + x0).to(torch.int32)
    return result, where


def torchvision_ps_roi_pool(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int,
                            pooled_width: int) -> Tuple[Tensor, Tensor]:
    channels, height, width = input.size(1) // (pooled_height * pooled_width), input.size(2), input.size(3)
    result = torch.zeros([rois.size(0), channels, pooled_height, pooled_width], dtype=input.dtype)
    for k in range(rois.size(0)):
        image = input[int(rois[k, 0])].view([channels, pooled_height, pooled_width, height, width])
        x, y = _vision_round(float(rois[k, 1] * spatial_scale)), _vision_round(float(rois[k, 2] * spatial_scale))
        w = max(_vision_round(float(rois[k, 3] * spatial_scale)) - x, 1)
        h = max(_vision_round(float(rois[k, 4] * spatial_scale)) - y, 1)
        for i in range(pooled_height):
            y0 = min(max(i * h // pooled_height + y, 0), height - 1)
            y1 = min(max(-(-(i + 1) * h // pooled_height) + y, 0), height - 1)
            for j in range(pooled_width):
                x0 = min(max(j * w // pooled_width + x, 0), width - 1)
                x1 = min(max(-(-(j + 1) * w // pooled_width) + x, 0), width - 1)
                if y1 > y0 and x1 > x0:
                    result[k, :, i, j] = torch.mean(image[:, i, j, y0:y1, x0:x1], dim=[1, 2])
    return result, _vision_channel_mapping(rois.size(0), input.size(1), pooled_height, pooled_width)


def torchvision_deform_conv2d(input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int, stride_w: int,
                              pad_h: int, pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int,
                              use_mask: bool) -> Tensor:
    images, channels, height, width = input.size(0), input.size(1), input.size(2), input.size(3)
    kh, kw, out_h, out_w = weight.size(2), weight.size(3), offset.size(2), offset.size(3)
    part = channels // offset_groups
    # one row of channels a pixel, image by image and offset group by offset group
    rows = input.view([images, offset_groups, part, height * width]).transpose(2, 3).reshape([images * offset_groups * height * width, part])
    moved = offset.view([images * offset_groups, kh * kw, 2, out_h, out_w])
    ky = torch.arange(kh, dtype=input.dtype).unsqueeze(1).repeat([1, kw]).view([kh * kw, 1, 1]) * dilation_h
    kx = torch.arange(kw, dtype=input.dtype).repeat([kh]).view([kh * kw, 1, 1]) * dilation_w
    oy = torch.arange(out_h, dtype=input.dtype).view([out_h, 1]) * stride_h - pad_h
    ox = torch.arange(out_w, dtype=input.dtype) * stride_w - pad_w
    y, x = moved[:, :, 0] + (ky + oy), moved[:, :, 1] + (kx + ox)
    y_floor, x_floor = torch.floor(y), torch.floor(x)
    ly, lx = y - y_floor, x - x_floor
    factor = torch.ones_like(y)
    if use_mask:
        factor = mask.view([images * offset_groups, kh * kw, out_h, out_w])
    base = (torch.arange(images * offset_groups) * (height * width)).view([images * offset_groups, 1, 1, 1])
    columns = torch.zeros([images * offset_groups, kh * kw, out_h, out_w, part], dtype=input.dtype)
    for corner in range(4):
        down, right = corner // 2, corner % 2
        cy, cx = y_floor + down, x_floor + right
        wy = ly if down == 1 else 1 - ly
        wx = lx if right == 1 else 1 - lx
        inside = torch.logical_and(torch.logical_and(cy >= 0, cy <= height - 1), torch.logical_and(cx >= 0, cx <= width - 1))
        at = base + torch.clamp(cy, 0.0, float(height - 1)).to(torch.int64) * width + torch.clamp(cx, 0.0, float(width - 1)).to(torch.int64)
        share = torch.where(inside, wy * wx * factor, 0.0)
        columns = columns + torch.index_select(rows, 0, at.flatten()).view(columns.size()) * share.unsqueeze(4)
    columns = columns.permute(0, 4, 1, 2, 3).reshape([images, groups, channels // groups * kh * kw, out_h * out_w])
    filters = weight.view([groups, weight.size(0) // groups, channels // groups * kh * kw])
    result = torch.matmul(filters, columns).view([images, weight.size(0), out_h, out_w])
    return result + bias.view([weight.size(0), 1, 1])
