# RUN: tsc %s --entry f
# ERROR: 4:12: no overload of neg takes (str)
def f(s: str):
    return -s
