# RUN: tsc %s --entry f
# ERROR: 5:12: the tuple has 2 items: there is no index 5
from typing import Tuple
def f(t: Tuple[int, str]):
    return t[5]
