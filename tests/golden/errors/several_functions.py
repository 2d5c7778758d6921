# RUN: tsc %s --entry f
# ERROR: 5:12: expected str for the returned value, found int
# ERROR: 7:12: expected int for the returned value, found str
def g(n: int) -> str:
    return n
def h(s: str) -> int:
    return s
def f(n: int):
    return g(n), h("x")
