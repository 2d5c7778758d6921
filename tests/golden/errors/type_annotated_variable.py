# RUN: tsc %s --entry f
# ERROR: 4:14: expected int for the value, found float
def f(x: float):
    n: int = x
    return n
