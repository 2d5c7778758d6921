# RUN: tsc %s --entry f
# ERROR: 6:5: expected str for the key, found int
from typing import Dict
def f(n: int):
    d: Dict[str, int] = {}
    d[n] = 1
    return d
