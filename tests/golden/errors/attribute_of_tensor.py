# RUN: tsc %s --entry f
# ERROR: 5:12: Tensor has no attribute 'shap'
from torch import Tensor
def f(x: Tensor):
    return x.shap
