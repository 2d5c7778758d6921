# RUN: tsc %s --entry f
# ERROR: 6:12: g: the positional-only argument 'a' is missing
def g(a: int, /) -> int:
    return a
def f(n: int):
    return g(a=n)
