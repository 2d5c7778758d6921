# RUN: tsc %s --entry f
# ERROR: 6:19: g: argument 'a' is given twice
def g(a: int) -> int:
    return a
def f(n: int):
    return g(n, a=n)
