# RUN: tsc %s --entry f
# ERROR: 6:5: expected int for the appended item, found str
from typing import List
def f(s: str):
    xs: List[int] = []
    xs.append(s)
    return xs
