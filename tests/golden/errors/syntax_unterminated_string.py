# RUN: tsc %s --entry f
# ERROR: 4:9: expected a closing quote for the string that begins here
def f(n: int):
    s = "abc
    return s
