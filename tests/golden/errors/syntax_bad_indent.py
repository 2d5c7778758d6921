# RUN: tsc %s --entry f
# ERROR: 5:7: expected no indentation here, found a line indented by 6
def f(n: int):
    a = 1
      b = 2
    return a
