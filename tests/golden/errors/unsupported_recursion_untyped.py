# RUN: tsc %s --entry f
# ERROR: 4:32: f calls itself: its return type must be annotated
def f(n: int):
    return 1 if n < 2 else n * f(n - 1)
