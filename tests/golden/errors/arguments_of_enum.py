# RUN: tsc %s --entry f
# ERROR: 7:12: expected one value for a member of C, found 2
from enum import Enum
class C(Enum):
    A = 1
def f(n: int):
    return C(n, 2).value
