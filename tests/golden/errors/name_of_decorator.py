# RUN: tsc %s --entry f
# ERROR: 3:2: NameError: name 'nodeco' is not defined
@nodeco
def f(n: int):
    return n
