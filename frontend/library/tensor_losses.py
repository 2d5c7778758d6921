"""Loss operators: what torch.nn.functional's losses call. reduction: 0 none, 1 mean, 2 sum."""
import math
from typing import List, Optional, Tuple

import torch
from torch import Tensor


def _reduce_loss(loss: Tensor, reduction: int) -> Tensor:
    if reduction == 1:
        return torch.mean(loss)
    if reduction == 2:
        return torch.sum(loss)
    return loss


def _rounded(number: float, like: Tensor) -> float:
    """The number as a tensor of 16-bit floats holds it: PyTorch's kernels are of either kind, steps in that dtype or in float32."""
    if like.dtype == torch.float16 or like.dtype == torch.bfloat16:
        return float(torch.full([], number, dtype=like.dtype))
    return number


def mse_loss(self: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    d = self - target
    return _reduce_loss(d * d, reduction)


def l1_loss(self: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    return _reduce_loss(torch.abs(self - target), reduction)


def _smooth_l1(d: Tensor, beta: float, knee: float) -> Tensor:
    return torch.where(d < beta, 0.5 * d * d / knee, d - 0.5 * beta)


def smooth_l1_loss(self: Tensor, target: Tensor, reduction: int = 1, beta: float = 1.0) -> Tensor:
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0.0:
        return l1_loss(self, target, reduction)
    if self.dtype == torch.bfloat16 and target.dtype == torch.bfloat16:
        d = torch.abs(torch.to(self, torch.float32) - torch.to(target, torch.float32))
        return _reduce_loss(torch.to(_smooth_l1(d, beta, beta), torch.bfloat16), reduction)
    return _reduce_loss(_smooth_l1(torch.abs(self - target), beta, _rounded(beta, self)), reduction)


def _huber(d: Tensor, delta: float, slope: float) -> Tensor:
    return torch.where(d < delta, 0.5 * d * d, slope * (d - 0.5 * delta))


def huber_loss(self: Tensor, target: Tensor, reduction: int = 1, delta: float = 1.0) -> Tensor:
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if self.dtype == torch.float16 and target.dtype == torch.float16:
        d = torch.abs(torch.to(self, torch.float32) - torch.to(target, torch.float32))
        return _reduce_loss(torch.to(_huber(d, delta, delta), torch.float16), reduction)
    return _reduce_loss(_huber(torch.abs(self - target), delta, _rounded(delta, self)), reduction)


def soft_margin_loss(self: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    return _reduce_loss(torch.log1p(torch.exp(-target * self)), reduction)


def hinge_embedding_loss(self: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1) -> Tensor:
    zero = torch.zeros_like(self)
    far = torch.where(target != 1, torch.clamp_min(margin - self, 0), zero)
    near = torch.where(target != -1, self, zero)
    return _reduce_loss(far + near, reduction)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                        reduction: int = 1) -> Tensor:
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: {input1.size()}, "
                           f"input2: {input2.size()}, target: {target.size()} ")
    return _reduce_loss(torch.clamp_min(-target * (input1 - input2) + margin, 0), reduction)


def kl_div(self: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
    if log_target:
        loss = torch.exp(target) * (target - self)
    else:
        loss = torch.xlogy(target, target) - target * self
    return _reduce_loss(loss, reduction)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float,
                     reduction: int) -> Tensor:
    if log_input:
        loss = torch.exp(input) - target * input
    else:
        loss = input - target * torch.log(input + eps)
    if full:
        stirling = target * torch.log(target) - target + 0.5 * torch.log(2 * math.pi * target)
        loss = loss + torch.masked_fill(stirling, target <= 1, 0)
    return _reduce_loss(loss, reduction)


def binary_cross_entropy(self: Tensor, target: Tensor, weight: Optional[Tensor] = None, reduction: int = 1) -> Tensor:
    if not bool(torch.all(torch.logical_and(self >= 0, self <= 1))):
        raise RuntimeError("all elements of input should be between 0 and 1")
    loss = (target - 1) * torch.clamp_min(torch.log1p(-self), -100) - target * torch.clamp_min(torch.log(self), -100)
    if weight is not None:
        loss = loss * weight
    return _reduce_loss(loss, reduction)


def binary_cross_entropy_with_logits(self: Tensor, target: Tensor, weight: Optional[Tensor] = None,
                                     pos_weight: Optional[Tensor] = None, reduction: int = 1) -> Tensor:
    softened = torch.log_sigmoid(self)
    if pos_weight is not None:
        log_weight = (pos_weight - 1) * target + 1
        loss = (1 - target) * self - log_weight * softened
    else:
        loss = (1 - target) * self - softened
    if weight is not None:
        loss = loss * weight
    return _reduce_loss(loss, reduction)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    a, b = torch.broadcast_tensors([x1, x2])
    length_a = torch.clamp_min(torch.linalg_vector_norm(a, 2, [dim], True), eps)
    length_b = torch.clamp_min(torch.linalg_vector_norm(b, 2, [dim], True), eps)
    return torch.sum((a / length_a) * (b / length_b), [dim])


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                          reduction: int = 1) -> Tensor:
    eps = 1e-12
    dim = torch.dim(target)
    dot = torch.sum(input1 * input2, [dim])
    square1 = torch.sum(input1 * input1, [dim]) + eps
    square2 = torch.sum(input2 * input2, [dim]) + eps
    cosine = dot / torch.sqrt(square1 * square2)
    zero = torch.zeros_like(cosine)
    near = torch.where(target == 1, 1 - cosine, zero)
    far = torch.where(target == -1, torch.clamp_min(cosine - margin, 0), zero)
    return _reduce_loss(near + far, reduction)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2, eps: float = 1e-06, keepdim: bool = False) -> Tensor:
    return torch.norm(x1 - x2 + eps, p, [-1], keepdim)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
                        eps: float = 1e-06, swap: bool = False, reduction: int = 1) -> Tensor:
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = torch.minimum(far, pairwise_distance(positive, negative, p, eps))
    return _reduce_loss(torch.clamp_min(margin + near - far, 0), reduction)


def multi_margin_loss(self: Tensor, target: Tensor, p: number = 1, margin: number = 1, weight: Optional[Tensor] = None,
                      reduction: int = 1) -> Tensor:
    batched = torch.dim(self) == 2
    x = self if batched else torch.reshape(self, [1, -1])
    t = torch.reshape(target, [-1, 1])
    at = torch.gather(x, 1, t)
    z = torch.clamp_min(margin - at + x, 0)
    if p != 1:
        z = z * z
    if weight is not None:
        z = z * torch.unsqueeze(torch.index_select(weight, 0, torch.reshape(target, [-1])), 1)
    z = torch.scatter(z, 1, t, 0)
    loss = torch.sum(z, [1]) / torch.size(x, 1)
    if not batched and reduction == 0:
        return torch.reshape(loss, torch.size(target))
    return _reduce_loss(loss, reduction)


def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    batched = torch.dim(self) == 2
    x = self if batched else torch.reshape(self, [1, -1])
    t = target if batched else torch.reshape(target, [1, -1])
    count = torch.size(x, 1)
    # A target list ends at its first -1.
    live = torch.cumsum(torch.to(t == -1, 4), 1) == 0
    index = torch.where(live, t, torch.zeros_like(t))
    is_target = torch.scatter_add(torch.zeros_like(t), 1, index, torch.to(live, 4)) > 0
    at = torch.gather(x, 1, index)
    z = torch.clamp_min(1 - (torch.unsqueeze(at, 2) - torch.unsqueeze(x, 1)), 0)
    keep = torch.logical_and(torch.unsqueeze(live, 2), torch.logical_not(torch.unsqueeze(is_target, 1)))
    loss = torch.sum(torch.where(keep, z, torch.zeros_like(z)), [1, 2]) / count
    if not batched and reduction == 0:
        return torch.reshape(loss, [])
    return _reduce_loss(loss, reduction)


def _check_classes(x: Tensor, target: Tensor, weight: Optional[Tensor]) -> None:
    if torch.dim(target) != torch.dim(x) - 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported" if torch.dim(x) == 2 else
                           f"only batches of spatial targets supported ({torch.dim(x) - 1}D tensors) but got targets of dimension: {torch.dim(target)}")
    if torch.size(x, 0) != torch.size(target, 0):
        raise ValueError(f"Expected input batch_size ({torch.size(x, 0)}) to match target batch_size ({torch.size(target, 0)}).")
    for i in range(1, torch.dim(target)):
        if torch.size(target, i) != torch.size(x, i + 1):
            raise RuntimeError(f"size mismatch (got input: {x.size()} , target: {target.size()}")
    if weight is not None and torch.numel(weight) != torch.size(x, 1):
        raise RuntimeError(f"weight tensor should be defined either for all {torch.size(x, 1)} classes or no classes but got weight "
                           f"tensor of shape: {weight.size()}")


def nll_loss_nd(self: Tensor, target: Tensor, weight: Optional[Tensor] = None, reduction: int = 1,
                ignore_index: int = -100) -> Tensor:
    rank = torch.dim(self)
    x = self
    t = target
    if rank == 1:
        x = torch.unsqueeze(x, 0)
        t = torch.reshape(t, [1])
    _check_classes(x, t, weight)
    keep = t != ignore_index
    index = torch.where(keep, t, torch.zeros_like(t))
    loss = torch.squeeze(torch.neg(torch.gather(x, 1, torch.unsqueeze(index, 1))), 1)
    if weight is not None:
        w = torch.reshape(torch.index_select(weight, 0, torch.reshape(index, [-1])), torch.size(index))
        w = torch.where(keep, w, torch.zeros_like(w))
    else:
        w = torch.to(keep, self.dtype)
    loss = torch.where(keep, loss * w, torch.zeros_like(loss))
    if reduction == 0:
        if rank == 1:
            return torch.squeeze(loss, 0)
        return loss
    if reduction == 1:
        return torch.sum(loss) / torch.sum(w)
    return torch.sum(loss)


def nll_loss(self: Tensor, target: Tensor, weight: Optional[Tensor] = None, reduction: int = 1,
             ignore_index: int = -100) -> Tensor:
    return nll_loss_nd(self, target, weight, reduction, ignore_index)


def nll_loss2d(self: Tensor, target: Tensor, weight: Optional[Tensor] = None, reduction: int = 1,
               ignore_index: int = -100) -> Tensor:
    return nll_loss_nd(self, target, weight, reduction, ignore_index)


def cross_entropy_loss(self: Tensor, target: Tensor, weight: Optional[Tensor] = None, reduction: int = 1,
                       ignore_index: int = -100, label_smoothing: float = 0.0) -> Tensor:
    if label_smoothing < 0.0 or label_smoothing > 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    class_dim = 0 if torch.dim(self) == 1 else 1
    logp = torch.log_softmax(self, class_dim)
    classes = torch.size(self, class_dim)
    if torch.dim(self) == torch.dim(target) and torch.is_floating_point(target):
        # Probabilities of classes.
        t = target
        if label_smoothing > 0.0:
            t = t * (1 - label_smoothing) + label_smoothing / max(classes, 1)
        per_class = logp * t
        if weight is not None:
            per_class = per_class * _along(weight, torch.dim(self), class_dim)
        loss = torch.neg(torch.sum(per_class, [class_dim]))
        if reduction == 1:
            if torch.numel(self) == 0:
                return torch.sum(loss) * float("nan")
            return torch.sum(loss) / (torch.numel(self) // classes)
        return _reduce_loss(loss, reduction)
    nll = nll_loss_nd(logp, target, weight, reduction, ignore_index)
    if label_smoothing == 0.0:
        return nll
    keep = target != ignore_index
    smooth = logp
    if weight is not None:
        smooth = smooth * _along(weight, torch.dim(self), class_dim)
    total = torch.neg(torch.sum(smooth, [class_dim]))
    total = torch.where(keep, total, torch.zeros_like(total))
    if reduction == 1:
        if weight is not None:
            index = torch.where(keep, target, torch.zeros_like(target))
            w = torch.reshape(torch.index_select(weight, 0, torch.reshape(index, [-1])), torch.size(index))
            total = torch.sum(total) / torch.sum(torch.where(keep, w, torch.zeros_like(w)))
        else:
            total = torch.sum(total) / torch.sum(keep)
    elif reduction == 2:
        total = torch.sum(total)
    return (1 - label_smoothing) * nll + total * (label_smoothing / classes)


def _along(vector: Tensor, rank: int, dim: int) -> Tensor:
    sizes: List[int] = []
    for i in range(rank):
        sizes.append(-1 if i == dim else 1)
    return torch.reshape(vector, sizes)
