# RUN: tsc %s --entry f
# A text is no row of bytes: their count and their items differ.
# ERROR: 8:22: str.encode without a decode() behind it is not supported yet: there are no bytes
# ERROR: 9:9: encodings other than UTF-8 are not supported
# ERROR: 10:9: str has no method 'decode'
def f(s: str):
    t = s.encode("utf-8").decode(encoding="utf-8")
    n = len(t) + len(s.encode())
    a = s.encode("latin-1").decode("latin-1")
    b = s.decode()
    return n, a, b
