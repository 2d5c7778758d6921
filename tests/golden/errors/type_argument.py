# RUN: tsc %s --entry f
# ERROR: 6:14: expected int for argument 'n', found str
def g(n: int) -> int:
    return n
def f(s: str):
    return g(s)
