# RUN: tsc %s --entry f
# ERROR: 5:12: math.squareroot is not supported yet
import math
def f(x: float):
    return math.squareroot(x)
