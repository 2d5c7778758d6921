# RUN: tsc %s --entry f
# ERROR: 4:14: expected something to loop over, found int
def f(n: int):
    for i in n:
        print(i)
    return n
