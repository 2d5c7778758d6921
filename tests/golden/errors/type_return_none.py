# RUN: tsc %s --entry f
# ERROR: 5:16: expected int for the returned value, found None
def f(n: int) -> int:
    if n > 0:
        return None
    return n
