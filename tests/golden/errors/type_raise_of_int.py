# RUN: tsc %s --entry f
# ERROR: 4:11: expected an exception to raise, found int
def f(n: int):
    raise n
