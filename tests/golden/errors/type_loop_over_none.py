# RUN: tsc %s --entry f
# ERROR: 4:14: expected something to loop over, found None
def f(n: int):
    for i in None:
        print(i)
