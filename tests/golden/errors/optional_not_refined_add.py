# RUN: tsc %s --entry f
# ERROR: 5:9: no overload of add takes (str, Optional[int]): check first that it is not None
from typing import Optional
def f(a: Optional[int]):
    s = "x" + a
    return s
