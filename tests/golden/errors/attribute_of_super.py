# RUN: tsc %s --entry f
# ERROR: 8:16: no base class has a method 'k'
class A:
    def g(self) -> int:
        return 1
class B(A):
    def h(self) -> int:
        return super().k()
def f(n: int):
    return B().h()
