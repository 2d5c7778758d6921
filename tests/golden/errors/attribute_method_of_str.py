# RUN: tsc %s --entry f
# ERROR: 4:12: str has no method 'uppercase'
def f(s: str):
    return s.uppercase()
