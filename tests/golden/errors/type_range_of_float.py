# RUN: tsc %s --entry f
# ERROR: 4:24: expected int for range, found float
def f(x: float):
    return [i for i in range(x)]
