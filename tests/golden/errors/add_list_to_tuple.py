# RUN: tsc %s --entry f
# ERROR: 7:9: expected a tuple to add to the tuple, found a list
# ERROR: 8:9: expected a list to add to the list, found a tuple
import torch

def f(x: torch.Tensor):
    s = x.shape + [1]
    t = [1] + (2, 3)
    return x.view(s), t
