# RUN: tsc %s --entry f
# ERROR: 6:5: expected int for the value, found str
from typing import Dict
def f(s: str):
    d: Dict[str, int] = {}
    d["a"] = s
    return d
