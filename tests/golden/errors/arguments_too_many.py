# RUN: tsc %s --entry f
# ERROR: 6:12: g takes 1 argument, 2 were given
def g(a: int) -> int:
    return a
def f(n: int):
    return g(n, n)
