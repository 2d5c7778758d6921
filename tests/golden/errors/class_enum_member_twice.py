# RUN: tsc %s --entry f
# ERROR: 7:5: a member of an Enum is defined twice
from enum import Enum

class C(Enum):
    A = 1
    A = 2

def f(n: int):
    return C.A.value
