# RUN: tsc %s --entry f
# ERROR: 8:12: A has the abstract method 'g': it has no instances
from abc import ABC, abstractmethod
class A(ABC):
    @abstractmethod
    def g(self) -> int: ...
def f(n: int):
    return A().g()
