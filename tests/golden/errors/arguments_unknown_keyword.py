# RUN: tsc %s --entry f
# ERROR: 6:23: g has no parameter 'scale'
def g(a: int) -> int:
    return a
def f(n: int):
    return g(n, scale=2)
