# RUN: tsc %s --entry f
# ERROR: 5:12: None has no attribute 'item'
def f(n: int):
    x = None
    return x.item()
