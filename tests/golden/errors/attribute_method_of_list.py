# RUN: tsc %s --entry f
# ERROR: 5:5: List[int] has no method 'push'
from typing import List
def f(xs: List[int]):
    xs.push(3)
    return xs
