# RUN: tsc %s --entry f
# ERROR: 4:5: expected 2 values to unpack, found 3
def f(n: int):
    a, b = n, n, n
    return a
