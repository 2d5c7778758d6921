# RUN: tsc %s --entry f
# ERROR: 6:12: g: argument 'b' is missing
def g(a: int, *, b: int) -> int:
    return a + b
def f(n: int):
    return g(n, n)
