# RUN: tsc %s --entry f
# ERROR: 5:9: the variable 'y' is used before it is assigned

def f(n: int):
    del y
    y = n
    return y
