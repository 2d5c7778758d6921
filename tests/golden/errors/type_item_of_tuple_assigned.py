# RUN: tsc %s --entry f
# ERROR: 5:5: items of Tuple[int, int] cannot be assigned
from typing import Tuple
def f(t: Tuple[int, int]):
    t[0] = 5
    return t
