# RUN: tsc %s --entry f
# ERROR: 8:12: P: argument 'b' is missing
from typing import NamedTuple
class P(NamedTuple):
    a: int
    b: int
def f(n: int):
    return P(n).a
