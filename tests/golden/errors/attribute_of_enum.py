# RUN: tsc %s --entry f
# ERROR: 7:12: class C has no attribute 'GREEN'
from enum import Enum
class C(Enum):
    RED = 1
def f(n: int):
    return C.GREEN.value
