# RUN: tsc %s --entry f
# ERROR: 4:10: expected ']' for the '[' that begins here, found 'return'
def f(n: int):
    xs = [1, 2
    return xs
