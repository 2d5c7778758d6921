# RUN: tsc %s --entry f
# ERROR: 4:12: await is not supported yet
def f(n: int):
    return await n
