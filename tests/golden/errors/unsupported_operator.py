# RUN: tsc %s --entry f
# ERROR: 5:12: the operator no_such_method is not supported yet
from torch import Tensor
def f(x: Tensor):
    return x.no_such_method(3)
