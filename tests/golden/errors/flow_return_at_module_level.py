# RUN: tsc %s --entry f
# ERROR: 3:1: return outside a function
return 3
def f(n: int):
    return n
