# RUN: tsc %s --entry f
# ERROR: 6:16: None has no attribute 'upper'
from typing import Optional
def f(a: Optional[str]):
    if a is None:
        return a.upper()
    return "x"
