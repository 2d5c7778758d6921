# RUN: tsc %s --entry f
# ERROR: 5:12: no overload of sub takes (List[int], List[int])
from typing import List
def f(a: List[int]):
    return a - [1]
