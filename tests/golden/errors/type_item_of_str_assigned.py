# RUN: tsc %s --entry f
# ERROR: 4:5: items of str cannot be assigned
def f(s: str):
    s[0] = "a"
    return s
