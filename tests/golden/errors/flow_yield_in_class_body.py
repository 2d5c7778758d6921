# RUN: tsc %s --entry f
# ERROR: 6:5: yield outside a function
import torch

class A:
    yield 3

def f(n: int):
    return n
