# RUN: tsc %s --entry f
# ERROR: 4:26: expected a type
def f(n: int):
    return isinstance(n, 3)
