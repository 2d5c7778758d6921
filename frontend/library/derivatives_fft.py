"""Fourier transforms that a gradient goes through, opened to transforms of complex numbers, whose own derivative is the
transform back; see derivatives_nn.py for what is opened.

What a real transform leaves out is the conjugate of what it gives (Oppenheim and Schafer, Discrete-Time Signal Processing, 8.6)."""
import math
from typing import List, Optional, Tuple

import torch
from torch import Tensor


def _fft_scale(norm: Optional[str], forward: bool) -> int:
    # 0 none, 1 by the root of the count, 2 by the count
    if norm is not None and norm == "ortho":
        return 1
    is_forward = norm is not None and norm == "forward"
    return 2 if is_forward == forward else 0


def _fft_wide(x: Tensor) -> Tensor:
    return x if torch.is_complex(x) else torch.complex(x, torch.zeros_like(x))


def _fft_fit(x: Tensor, n: int, dim: int) -> Tensor:
    have = x.size(dim)
    if n < have:
        return torch.narrow(x, dim, 0, n)
    if n == have:
        return x
    behind = x.dim() - 1 - dim if dim >= 0 else -1 - dim
    return torch.constant_pad_nd(x, [0 for _ in range(2 * behind)] + [0, n - have], 0)


def _fft_dims(x: Tensor, s: Optional[List[int]], dim: Optional[List[int]]) -> List[int]:
    if dim is not None:
        return dim
    count = x.dim() if s is None else len(s)
    return [x.dim() - count + d for d in range(count)]


def _fft_sized(x: Tensor, s: Optional[List[int]], dims: List[int]) -> Tensor:
    if s is not None:
        for i in range(len(dims)):
            if s[i] != -1:
                x = _fft_fit(x, s[i], dims[i])
    return x


def open_fft_fft(self: Tensor, n: Optional[int], dim: int, norm: Optional[str]) -> Tensor:
    x = self if n is None else _fft_fit(self, n, dim)
    return torch._fft_c2c(_fft_wide(x), [dim], _fft_scale(norm, True), True)


def open_fft_ifft(self: Tensor, n: Optional[int], dim: int, norm: Optional[str]) -> Tensor:
    x = self if n is None else _fft_fit(self, n, dim)
    return torch._fft_c2c(_fft_wide(x), [dim], _fft_scale(norm, False), False)


def open_fft_fftn(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    dims = _fft_dims(self, s, dim)
    return torch._fft_c2c(_fft_wide(_fft_sized(self, s, dims)), dims, _fft_scale(norm, True), True)


def open_fft_ifftn(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    dims = _fft_dims(self, s, dim)
    return torch._fft_c2c(_fft_wide(_fft_sized(self, s, dims)), dims, _fft_scale(norm, False), False)


def open_fft_rfft(self: Tensor, n: Optional[int], dim: int, norm: Optional[str]) -> Tensor:
    full = open_fft_fft(self, n, dim, norm)
    return torch.narrow(full, dim, 0, full.size(dim) // 2 + 1)


def open_fft_ihfft(self: Tensor, n: Optional[int], dim: int, norm: Optional[str]) -> Tensor:
    full = open_fft_ifft(self, n, dim, norm)
    return torch.narrow(full, dim, 0, full.size(dim) // 2 + 1)


def open_fft_rfftn(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    full = open_fft_fftn(self, s, dim, norm)
    last = _fft_dims(self, s, dim)[-1]
    return torch.narrow(full, last, 0, full.size(last) // 2 + 1)


def open_fft_ihfftn(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    full = open_fft_ifftn(self, s, dim, norm)
    last = _fft_dims(self, s, dim)[-1]
    return torch.narrow(full, last, 0, full.size(last) // 2 + 1)


def _fft_whole(x: Tensor, n: int, dim: int) -> Tensor:
    """The half that a real transform gives, with its conjugate half."""
    half = _fft_fit(x, n // 2 + 1, dim)
    rest = torch.narrow(half, dim, 1, (n + 1) // 2 - 1)
    return torch.cat([half, torch.conj_physical(torch.flip(rest, [dim]))], dim)


def _fft_to_real(x: Tensor, n: Optional[int], dim: int, scale: int, forward: bool) -> Tensor:
    size = 2 * (x.size(dim) - 1) if n is None else n
    return torch.real(torch._fft_c2c(_fft_whole(_fft_wide(x), size, dim), [dim], scale, forward))


def open_fft_irfft(self: Tensor, n: Optional[int], dim: int, norm: Optional[str]) -> Tensor:
    return _fft_to_real(self, n, dim, _fft_scale(norm, False), False)


def open_fft_hfft(self: Tensor, n: Optional[int], dim: int, norm: Optional[str]) -> Tensor:
    return _fft_to_real(self, n, dim, _fft_scale(norm, True), True)


def _fft_to_real_n(x: Tensor, s: Optional[List[int]], dim: Optional[List[int]], scale: int, forward: bool) -> Tensor:
    dims = _fft_dims(x, s, dim)
    count = len(dims) - 1
    first = dims[:count]
    wide = _fft_wide(x if s is None else _fft_sized(x, s[:count], first))
    size: Optional[int] = None
    if s is not None and s[-1] != -1:
        size = s[-1]
    if count > 0:
        wide = torch._fft_c2c(wide, first, scale, forward)
    return _fft_to_real(wide, size, dims[-1], scale, forward)


def open_fft_irfftn(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    return _fft_to_real_n(self, s, dim, _fft_scale(norm, False), False)


def open_fft_hfftn(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    return _fft_to_real_n(self, s, dim, _fft_scale(norm, True), True)


# ---- in windows of time ----

def _stft_window(x: Tensor, window: Optional[Tensor], n_fft: int, win_length: Optional[int]) -> Tensor:
    length = n_fft if win_length is None else win_length
    own = torch.ones([length], dtype=x.dtype) if window is None else window
    left = (n_fft - length) // 2
    return torch.constant_pad_nd(own, [left, n_fft - length - left], 0)


def open_stft(self: Tensor, n_fft: int, hop_length: Optional[int], win_length: Optional[int], window: Optional[Tensor],
              normalized: bool, onesided: Optional[bool], return_complex: Optional[bool],
              align_to_window: Optional[bool]) -> Tensor:
    x = self if self.dim() == 2 else torch.unsqueeze(self, 0)
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    step = length if align_to_window is not None and align_to_window else n_fft
    frames = torch.unfold(x, 1, step, hop)
    own = _stft_window(torch.abs(self), window, n_fft, win_length)
    if step != n_fft:
        left = (n_fft - length) // 2
        frames = torch.constant_pad_nd(frames, [left, n_fft - length - left], 0)
    spectrum = torch._fft_c2c(_fft_wide(frames * own), [2], 1 if normalized else 0, True)
    if onesided is None or onesided:
        if not torch.is_complex(self):
            spectrum = torch.narrow(spectrum, 2, 0, n_fft // 2 + 1)
    spectrum = torch.transpose(spectrum, 1, 2)
    if self.dim() == 1:
        spectrum = torch.squeeze(spectrum, 0)
    if torch.is_complex(self) if return_complex is None else return_complex:
        return spectrum
    return torch.view_as_real(spectrum)


def open_stft_center(self: Tensor, n_fft: int, hop_length: Optional[int], win_length: Optional[int], window: Optional[Tensor],
                     center: bool, pad_mode: str, normalized: bool, onesided: Optional[bool], return_complex: Optional[bool],
                     align_to_window: Optional[bool]) -> Tensor:
    x = self
    if center:
        wide = x if x.dim() == 2 else torch.unsqueeze(x, 0)
        padded = torch.pad(torch.unsqueeze(wide, 1), [n_fft // 2, n_fft // 2], pad_mode)
        x = torch.squeeze(padded, 1) if x.dim() == 2 else torch.squeeze(torch.squeeze(padded, 1), 0)
    return open_stft(x, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window)


def open_istft(self: Tensor, n_fft: int, hop_length: Optional[int], win_length: Optional[int], window: Optional[Tensor],
               center: bool, normalized: bool, onesided: Optional[bool], length: Optional[int], return_complex: bool) -> Tensor:
    x = self if self.dim() == 3 else torch.unsqueeze(self, 0)
    hop = n_fft // 4 if hop_length is None else hop_length
    own = _stft_window(torch.real(self), window, n_fft, win_length)
    lines = torch.transpose(x, 1, 2)
    scale = 1 if normalized else 2
    if return_complex:
        frames = torch._fft_c2c(lines, [2], scale, False)
    else:
        frames = _fft_to_real(lines, n_fft, 2, scale, False)  # of both sides PyTorch takes the first, too
    count = frames.size(1)
    total = n_fft + hop * (count - 1)
    places = torch.reshape(torch.unsqueeze(torch.arange(count) * hop, 1) + torch.arange(n_fft), [count * n_fft])
    flat = torch.reshape(frames * own, [frames.size(0), count * n_fft])
    sums = torch.index_add(torch.zeros([frames.size(0), total], dtype=flat.dtype), 1, places, flat)
    weights = torch.reshape(torch.expand(own * own, [count, n_fft]), [count * n_fft])
    envelope = torch.index_add(torch.zeros([total], dtype=weights.dtype), 0, places, weights)
    start = n_fft // 2 if center else 0
    end = total - n_fft // 2 if center and length is None else total
    if length is not None:
        end = min(start + length, total)
    result = torch.narrow(sums, 1, start, end - start) / torch.narrow(envelope, 0, start, end - start)
    if length is not None and end - start < length:
        result = torch.constant_pad_nd(result, [0, length - (end - start)], 0)
    return result if self.dim() == 3 else torch.squeeze(result, 0)
