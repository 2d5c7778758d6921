# RUN: tsc %s --entry f
# ERROR: 5:5: expected List[int] for the slice's new items, found int
from typing import List
def f(a: List[int]):
    a[0:1] = 5
    return a
