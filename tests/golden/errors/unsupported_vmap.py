# RUN: tsc %s --entry f
# ERROR: 6:12: torch.vmap is not supported yet: write the batched form, or torch.stack over a loop
import torch

def f(x):
    return torch.vmap(lambda t: t * 2)(x)
