# RUN: tsc %s --entry f
# ERROR: 8:13: P with an equality of its own in a set or as a key of a dict is not supported yet
class P:
    def __init__(self, x: int):
        self.x = x
    def __eq__(self, other: "P") -> bool: return self.x == other.x
def f(n: int):
    return {P(n): 1}[P(n)]
