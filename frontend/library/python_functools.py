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


class compared:
    def __init__(self, compare, value):
        self.compare = compare
        self.value = value

    def __lt__(self, other):
        return self.compare(self.value, other.value) < 0


def cmp_to_key(compare):
    return lambda x: compared(compare, x)
