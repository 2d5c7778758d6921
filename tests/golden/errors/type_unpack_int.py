# RUN: tsc %s --entry f
# ERROR: 4:5: expected a tuple or list to unpack, found int
def f(n: int):
    a, b = n
    return a
