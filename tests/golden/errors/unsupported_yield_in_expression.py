# RUN: tsc %s --entry f
# ERROR: 4:5: a yield in an expression is not supported yet
def g(n: int):
    x = yield n
    yield x
def f(n: int):
    return list(g(n))
