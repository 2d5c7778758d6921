# RUN: tsc %s --entry f
# ERROR: 4:12: int cannot be called
def f(n: int):
    return n(3)
