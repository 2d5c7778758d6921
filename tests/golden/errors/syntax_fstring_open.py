# RUN: tsc %s --entry f
# ERROR: 4:14: expected '}' for this '{' of an f-string
def f(n: int):
    return f"{n"
