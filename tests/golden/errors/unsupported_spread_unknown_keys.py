# RUN: tsc %s --entry f
# ERROR: 7:14: an argument **dict whose keys are known only at run time is not supported yet
from typing import Dict
def g(a: int, b: int = 2):
    return a + b
def f(d: Dict[str, int]):
    return g(**d)
