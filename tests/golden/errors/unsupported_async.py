# RUN: tsc %s --entry f
# ERROR: 3:1: async is not supported
async def f(n: int):
    return n
