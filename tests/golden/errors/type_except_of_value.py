# RUN: tsc %s --entry f
# ERROR: 6:12: expected an exception class after except
def f(n: int):
    try:
        return n
    except "text":
        return 0
