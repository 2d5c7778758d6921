# RUN: tsc %s --entry f
# ERROR: 4:12: no overload of mul takes (str, float)
def f(s: str):
    return s * 2.0
