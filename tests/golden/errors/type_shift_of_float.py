# RUN: tsc %s --entry f
# ERROR: 4:12: expected ints for a bitwise operator, found float and int
def f(x: float):
    return x << 1
