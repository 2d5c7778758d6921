# RUN: tsc %s --entry f
# ERROR: 5:12: no overload of add takes (Dict[str, int], Dict[str, int])
from typing import Dict
def f(d: Dict[str, int]):
    return d + d
