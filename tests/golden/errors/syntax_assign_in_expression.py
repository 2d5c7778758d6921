# RUN: tsc %s --entry f
# ERROR: 4:10: expected ':', found '='
def f(n: int):
    if n = 1:
        return 1
    return 0
