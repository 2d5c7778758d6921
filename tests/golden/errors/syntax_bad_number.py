# RUN: tsc %s --entry f
# ERROR: 4:12: expected a number, found '0x'
def f(n: int):
    return 0x + n
