# RUN: tsc %s --entry f
# ERROR: 4:12: no overload of add takes (int, str)
def f(n: int, s: str):
    return n + s
