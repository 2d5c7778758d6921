# RUN: tsc %s --entry f
# ERROR: 5:14: unknown type Foo
def f(n: int):
    match n:
        case Foo(x=1):
            return 1
    return 2
