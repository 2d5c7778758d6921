# RUN: tsc %s --entry f
# ERROR: 7:12: P has no attribute 'm'
class P:
    def __init__(self, n: int):
        self.n = n
def f(n: int):
    return P(n).m
