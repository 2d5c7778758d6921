# RUN: tsc %s --entry f
# ERROR: 7:5: return outside a function
import torch

class A:
    """A docstring is none of these."""
    return 3

def f(n: int):
    return n
