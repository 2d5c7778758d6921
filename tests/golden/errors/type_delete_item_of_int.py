# RUN: tsc %s --entry f
# ERROR: 4:9: expected a list or dict whose item is deleted, found int
def f(n: int):
    del n[0]
    return n
