# RUN: tsc %s --entry f
# ERROR: 5:9: expected a list or dict whose item is deleted, found Tuple[int, int]
def f(n: int):
    t = (n, 1)
    del t[0]
    return t
