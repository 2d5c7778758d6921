# RUN: tsc %s --entry f
# ERROR: 6:2: tabs and blanks are mixed so that the indentation of this line depends on the width of a tab
def f(n: int):
    if n:
        a = 1
	return a
