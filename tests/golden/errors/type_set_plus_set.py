# RUN: tsc %s --entry f
# ERROR: 4:12: no overload of add takes (Set[int], Set[int])
def f(n: int):
    return {n} + {1}
