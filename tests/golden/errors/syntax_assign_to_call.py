# RUN: tsc %s --entry f
# ERROR: 4:5: cannot assign to a call
def f(n: int):
    f(n) = 3
    return n
