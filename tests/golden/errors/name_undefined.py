# RUN: tsc %s --entry f
# ERROR: 4:16: the name 'misspelt' is not defined
def f(n: int):
    return n + misspelt
