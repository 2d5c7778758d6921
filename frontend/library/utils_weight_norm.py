"""torch.nn.utils.weight_norm: a weight as its direction times its length, put together before each call of the module."""
import torch
from torch import Tensor
from torch.nn import Parameter


def _weight_norm_hook(module, args):
    module.weight = torch._weight_norm(module.weight_v, module.weight_g, module._weight_norm_dim)


def weight_norm(module, name="weight", dim=0):
    if name != "weight":
        raise NotImplementedError("weight_norm of '" + name + "' is not supported: only of 'weight'")
    if hasattr(module, "_weight_norm_dim"):
        raise RuntimeError("Cannot register two weight_norm hooks on the same parameter weight")
    over = -1 if dim is None else dim
    weight = module.weight
    del module.weight
    module.register_parameter("weight_g", Parameter(torch.norm_except_dim(weight, 2, over)))
    module.register_parameter("weight_v", Parameter(weight))
    module._weight_norm_dim = over
    module.weight = torch._weight_norm(module.weight_v, module.weight_g, over)
    module.register_forward_pre_hook(_weight_norm_hook)
    return module
