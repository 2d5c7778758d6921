# RUN: tsc %s --entry f
# ERROR: 4:5: expected a statement, found 'else'
def f(n: int):
    else:
        return 1
