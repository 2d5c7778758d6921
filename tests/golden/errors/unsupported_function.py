# RUN: tsc %s --entry f
# ERROR: 4:12: the function input is not supported yet
def f(n: int):
    return input("?")
