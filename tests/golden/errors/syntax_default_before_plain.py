# RUN: tsc %s --entry f
# ERROR: 3:19: parameter b without a default follows one with
def f(a: int = 1, b: int):
    return a + b
