# RUN: tsc %s --entry f
# ERROR: 4:5: break outside a loop
def f(n: int):
    break
