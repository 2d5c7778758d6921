# RUN: tsc %s --entry f
# ERROR: 9:5: no 'except' may follow one that catches everything

def f(n: int):
    try:
        n += 1
    except:
        n = 0
    except ValueError:
        n = 2
    return n
