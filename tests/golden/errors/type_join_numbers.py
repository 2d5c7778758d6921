# RUN: tsc %s --entry f
# ERROR: 5:12: no overload of join takes (str, List[int])
from typing import List
def f(xs: List[int]):
    return ",".join(xs)
