# RUN: tsc %s --entry f
# ERROR: 6:9: no overload of add takes (int, str)
# ERROR: 7:9: the name 'undefined_name' is not defined
# ERROR: 8:9: str has no method 'nothing'
def f(n: int, s: str):
    a = n + s
    b = undefined_name
    c = s.nothing()
    return len(n)
