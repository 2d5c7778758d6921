# RUN: tsc %s --entry f
# ERROR: 9:12: expected List[int] for the field, found int
from dataclasses import dataclass
from typing import List
@dataclass
class P:
    x: List[int]
def f(n: int):
    return P(n).x
