# RUN: tsc %s --entry f
# ERROR: 5:12: a set cannot be indexed
def f(n: int):
    s = {n}
    return s[0]
