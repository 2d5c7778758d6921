# RUN: tsc %s --entry f
# ERROR: 5:5: no function around this one has the variable that is declared nonlocal

def f(n: int):
    nonlocal q
    return n
