# RUN: tsc %s --entry f
# ERROR: 5:10: expected one type in the brackets of a list, found 2
from typing import List

def f(n: List[int, str]):
    return n
