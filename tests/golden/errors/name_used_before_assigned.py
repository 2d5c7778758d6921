# RUN: tsc %s --entry f
# ERROR: 4:9: the variable 'b' is used before it is assigned
def f(n: int):
    a = b + n
    b = 1
    return a
