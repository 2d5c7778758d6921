# RUN: tsc %s --entry f
# ERROR: 5:12: len() takes no keyword arguments, found 'obj'
from typing import List
def f(a: List[int]):
    return len(obj=a)
