# RUN: tsc %s --entry f
# ERROR: 4:12: expected something that has a length, found int
def f(n: int):
    return len(n)
