# RUN: tsc %s --entry f
# ERROR: 6:12: the variable 'a' is used before it is assigned
def f(n: int):
    a = n
    del a
    return a
