# RUN: tsc %s --entry f
# ERROR: 7:5: 'g' is assigned before it is declared global

g = 1
def f(n: int):
    g = 2
    global g
    return n + g
