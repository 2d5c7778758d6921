"""Containers of torch.nn. What they hold is kept by the evaluator (frontend/init_eval_container.c)
under the names "0", "1", ... or the user's keys, in order."""
from torch.nn import Module


class Sequential(Module):
    def forward(self, input):
        for module in self:
            input = module(input)
        return input


class ModuleList(Module):
    pass


class ModuleDict(Module):
    pass


class ParameterList(Module):
    pass


class ParameterDict(Module):
    pass
