# RUN: tsc %s --entry f
# ERROR: 3:10: unknown type Tensr
def f(x: Tensr):
    return x
