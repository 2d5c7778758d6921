# RUN: tsc %s --entry f
# ERROR: 4:10: expected a context manager (__enter__ and __exit__), found int
def f(n: int):
    with n:
        return n
