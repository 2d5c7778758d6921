# RUN: tsc %s --entry f
# ERROR: 6:23: expected Tensor for argument 'input' of torch.sqrt, found float
# ERROR: 6:41: expected Tensor for argument 'input' of torch.maximum, found int
import torch
def f(n: int, x: float):
    return torch.sqrt(x), torch.maximum(n, 3)
