# RUN: tsc %s --entry f
# ERROR: 7:9: return in finally is not supported yet
def f(n: int):
    try:
        n += 1
    finally:
        return n
