# RUN: tsc %s --entry f
# ERROR: 4:12: enum.Flag is not supported yet, enum.IntFlag is
from enum import Flag
class Mode(Flag):
    READ = 1
def f(n: int):
    return n
