# RUN: tsc %s --entry f
# ERROR: 3:9: expected ':', found end of line
def f(x)
    return x
