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
