# RUN: tsc %s --entry f
# ERROR: 4:12: the name 'compute' is not defined
def f(n: int):
    return compute(n)
