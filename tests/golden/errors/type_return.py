# RUN: tsc %s --entry f
# ERROR: 4:12: expected str for the returned value, found int
def f(n: int) -> str:
    return n
