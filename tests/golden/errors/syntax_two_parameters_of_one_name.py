# RUN: tsc %s --entry f
# ERROR: 3:15: parameter a is given twice
def f(a: int, a: int):
    return a
