# RUN: tsc %s --entry f
# ERROR: 3:1: f calls itself: its return type must be annotated
def f(n: int):
    return n * f(n - 1)
