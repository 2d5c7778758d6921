# RUN: tsc %s --entry f
# ERROR: 5:5: print has no parameter 'foo'

def f(n: int):
    print(n, foo=1)
    return n
