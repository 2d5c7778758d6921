# RUN: tsc %s --entry f
# ERROR: 7:12: no overload of add takes (C, int)
from enum import Enum
class C(Enum):
    A = 1
def f(n: int):
    return C.A + 1
