# RUN: tsc %s --entry f
# ERROR: 4:12: str cannot be called
def f(s: str):
    return s()
