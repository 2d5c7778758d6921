# RUN: tsc %s --entry f
# ERROR: 7:16: sorting P without __lt__ is not supported yet
class P:
    def __init__(self, n: int):
        self.n = n
def f(n: int):
    return len(sorted([P(n), P(2)]))
