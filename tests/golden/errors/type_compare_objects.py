# RUN: tsc %s --entry f
# ERROR: 7:12: P and P cannot be ordered
class P:
    def __init__(self, n: int):
        self.n = n
def f(n: int):
    return P(n) < P(2)
