# RUN: tsc %s --entry f
# ERROR: 5:12: argument 'b' is missing
def f(n: int):
    g = lambda a, b: a + b
    return g(n)
