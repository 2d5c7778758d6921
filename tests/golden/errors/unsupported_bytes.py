# RUN: tsc %s --entry f
# ERROR: 4:16: bytes literals are not supported
def f(n: int):
    return len(b"abc") + n
