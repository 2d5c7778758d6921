# RUN: tsc %s --entry f
# ERROR: 7:12: P.__init__ takes 1 argument, 2 were given
class P:
    def __init__(self, n: int):
        self.n = n
def f(n: int):
    return P(n, n).n
