# RUN: tsc %s --entry f
# ERROR: 4:17: expected int for range, found str
def f(s: str):
    return list(range(s))
