"""torch.nn.utils.parametrizations: a weight put together from its parts before each call of the module. PyTorch does so at
each access; the names of the parts in a state_dict are its own."""
import torch
from torch import Tensor
from torch.nn import Module, ModuleDict, Parameter


class _WeightNorm(Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim


class ParametrizationList(Module):
    def __init__(self, function, length, direction):
        super().__init__()
        self.add_module("0", function)
        self.original0 = Parameter(length)
        self.original1 = Parameter(direction)
        self.dim = function.dim


def _parametrized_hook(module, args):
    parts = module.parametrizations["weight"]
    module.weight = torch._weight_norm(parts.original1, parts.original0, parts.dim)


def weight_norm(module, name="weight", dim=0):
    if name != "weight":
        raise NotImplementedError("weight_norm of '" + name + "' is not supported: only of 'weight'")
    if hasattr(module, "parametrizations"):
        raise NotImplementedError("a second parametrization of a module is not supported")
    over = -1 if dim is None else dim
    weight = module.weight
    del module.weight
    parts = ParametrizationList(_WeightNorm(over), torch.norm_except_dim(weight, 2, over), weight)
    module.parametrizations = ModuleDict({"weight": parts})
    module.weight = torch._weight_norm(parts.original1, parts.original0, over)
    module.register_forward_pre_hook(_parametrized_hook)
    return module
