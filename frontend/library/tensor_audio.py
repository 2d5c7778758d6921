"""The operators of torchaudio: torchaudio_name is torchaudio::name, or ::_name. Its recursive filter is a row of the core table."""
from typing import List, Tuple

import torch
from torch import Tensor


def torchaudio_overdrive_core_loop(waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor,
                                    output_waveform: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    # high[i] = temp[i] - temp[i - 1] + 0.995 high[i - 1]
    steps = torch.cat([last_in.unsqueeze(1), temp], dim=1)
    change = (temp - steps[:, :-1]).unsqueeze(0)
    high = torch.cat([last_out.unsqueeze(1), torch.zeros_like(temp)], dim=1).unsqueeze(0)
    feedback = torch.tensor([[-0.995, 0.0]], dtype=temp.dtype).repeat([temp.size(0), 1])
    torch.torchaudio_lfilter_core_loop(change, feedback, high)
    output_waveform.copy_(waveform * 0.5 + high[0, :, 1:] * 0.75)
    if temp.size(1) > 0:
        last_in.copy_(temp[:, -1])
        last_out.copy_(high[0, :, -1])
    return last_in, last_out, output_waveform


def torchaudio_rnnt_loss_forward(logits: Tensor, targets: Tensor, logit_lengths: Tensor, target_lengths: Tensor, blank: int,
                                 clamp: float, fused_log_softmax: bool = True) -> Tuple[Tensor, Tensor]:
    # Graves, "Sequence transduction with recurrent neural networks" (2012), section 2.4: sums over all ways through a lattice
    # of time and targets, forwards and backwards, a time step at once: what is emitted at one is a running sum.
    if logits.dim() != 4:
        raise RuntimeError("logits must be 4-D (batch, time, target, class)")
    if blank < 0 or blank >= logits.size(3):
        raise RuntimeError("blank must be within [0, logits.shape[-1])")
    if int(logit_lengths.max()) != logits.size(1):
        raise RuntimeError("input length mismatch")
    if int(target_lengths.max()) + 1 != logits.size(2):
        raise RuntimeError("output length mismatch")
    frames, places = logits.size(1), logits.size(2)
    log_probs = logits.double()  # differences of large sums are exponents below
    if fused_log_softmax:
        log_probs = log_probs.log_softmax(3)
    never = -1e30
    labels = torch.full([logits.size(0), places], blank, dtype=torch.int64)
    labels[:, :places - 1] = targets.to(torch.int64)[:, :places - 1]
    last_place = target_lengths.to(torch.int64).unsqueeze(1)
    last_frame = logit_lengths.to(torch.int64).unsqueeze(1) - 1
    place = torch.arange(places).unsqueeze(0)
    blanks = log_probs[:, :, :, blank]
    which = labels.unsqueeze(1).expand([logits.size(0), frames, places]).unsqueeze(3)
    emits = log_probs.gather(3, which).squeeze(3)
    emits = emits.masked_fill((place >= last_place).unsqueeze(1), 0.0)
    until = emits.cumsum(2) - emits  # what was emitted at a time step before a place
    start = torch.where(place == 0, 0.0, never).expand([logits.size(0), places])
    alphas: List[Tensor] = []
    for t in range(frames):
        arrived = start if t == 0 else alphas[t - 1] + blanks[:, t - 1]
        alphas.append(until[:, t] + (arrived - until[:, t]).logcumsumexp(1))
    alpha = torch.stack(alphas, 1)
    ends = alpha + blanks
    at_end = ends.gather(1, last_frame.unsqueeze(2).expand([logits.size(0), 1, places])).squeeze(1).gather(1, last_place)
    costs = -at_end.squeeze(1)
    end = torch.where(place == last_place, 0.0, never)
    nexts: List[Tensor] = []
    betas: List[Tensor] = []
    following = end
    for back in range(frames):
        t = frames - 1 - back
        following = torch.where(last_frame == t, end, following)
        nexts.append(following)
        leaves = (following + blanks[:, t] + until[:, t]).masked_fill(place > last_place, never)
        following = leaves.flip(1).logcumsumexp(1).flip(1) - until[:, t]
        betas.append(following)
    beta, after = torch.stack(betas, 1).flip(1), torch.stack(nexts, 1).flip(1)
    above = torch.cat([beta[:, :, 1:], torch.full([logits.size(0), frames, 1], never)], 2)
    above = above.masked_fill((place >= last_place).unsqueeze(1), never)
    passing = log_probs + (alpha + costs.reshape([-1, 1, 1])).unsqueeze(3)
    classes = torch.arange(logits.size(3))
    is_blank = (classes == blank).reshape([1, 1, 1, -1])
    is_label = (classes.reshape([1, 1, -1]) == labels.unsqueeze(2)).unsqueeze(1) & (place < last_place).unsqueeze(1).unsqueeze(3)
    taken = torch.where(is_blank, (passing + after.unsqueeze(3)).exp(), 0.0)
    taken = taken + torch.where(is_label, (passing + above.unsqueeze(3)).exp(), 0.0)
    gradient = -taken
    if fused_log_softmax:
        gradient = gradient + (passing + beta.unsqueeze(3)).exp()
    inside = ((torch.arange(frames).unsqueeze(0) <= last_frame).unsqueeze(2) & (place <= last_place).unsqueeze(1)).unsqueeze(3)
    gradient = torch.where(inside, gradient, 0.0)
    if clamp > 0:
        gradient = gradient.clamp(-clamp, clamp)
    return costs.to(logits.dtype), gradient.to(logits.dtype)
