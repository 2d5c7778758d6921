"""functools: what is no decorator."""


def reduce__plain(function, iterable):
    it = iter(iterable)
    if not it.advance():
        raise TypeError("reduce() of empty iterable with no initial value")
    total = it.value
    while it.advance():
        total = function(total, it.value)
    return total


def reduce__from(function, iterable, initial):
    total = initial
    for x in iterable:
        total = function(total, x)
    return total
