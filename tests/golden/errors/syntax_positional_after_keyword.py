# RUN: tsc %s --entry f
# ERROR: 6:19: a positional argument follows a keyword argument
def g(a: int, b: int) -> int:
    return a
def f(n: int):
    return g(a=1, 2)
