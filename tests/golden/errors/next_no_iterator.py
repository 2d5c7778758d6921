# RUN: tsc %s --entry f
# ERROR: 10:9: expected an iterator for next(), found List[int]
# ERROR: 11:9: expected an iterator for next(), found a range
# ERROR: 12:9: expected an iterator for next(), found a tuple
# ERROR: 13:9: expected an iterator for next(), found a view of a dict
# ERROR: 14:9: expected an iterator for next(), found str
from typing import List

def f(xs: List[int]):
    a = next(xs)
    b = next(range(3), 0)
    c = next((1, 2))
    d = next({1: 2}.items())
    e = next("abc")
    return a, b, c, d, e
