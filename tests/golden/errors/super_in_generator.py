# RUN: tsc %s --entry f
# ERROR: 10:20: super() in a generator or a nested function is not supported yet

class Base:
    def g(self):
        yield 1

class Derived(Base):
    def g(self):
        yield from super().g()

def f():
    return [v for v in Derived().g()]
