"""Iterators: advance() leaves the next item in `value`, and says whether there was one."""


class list_iterator:
    def __init__(self, items):
        self.items = items
        self.at = 0

    def advance(self) -> bool:
        if self.at < len(self.items):
            self.value = self.items[self.at]
            self.at += 1
            return True
        return False


class next_iterator:
    """Of an object with __next__."""

    def __init__(self, source):
        self.source = source

    def advance(self) -> bool:
        more = True
        try:
            self.value = self.source.__next__()
        except StopIteration:
            more = False
        return more


class item_iterator:
    """Of an object with __getitem__ only."""

    def __init__(self, source):
        self.source = source
        self.at = 0

    def advance(self) -> bool:
        more = True
        try:
            self.value = self.source[self.at]
        except IndexError:
            more = False
        self.at += 1
        return more


class enumerate_iterator:
    def __init__(self, source, start: int):
        self.source = source
        self.at = start

    def advance(self) -> bool:
        if self.source.advance():
            self.value = (self.at, self.source.value)
            self.at += 1
            return True
        return False


class zip_iterator:
    def __init__(self, a, b):
        self.a = a
        self.b = b

    def advance(self) -> bool:
        if self.a.advance():
            x = self.a.value
            if self.b.advance():
                self.value = (x, self.b.value)
                return True
        return False


class zip_three_iterator:
    def __init__(self, a, b, c):
        self.a = a
        self.b = b
        self.c = c

    def advance(self) -> bool:
        if self.a.advance():
            x = self.a.value
            if self.b.advance():
                y = self.b.value
                if self.c.advance():
                    self.value = (x, y, self.c.value)
                    return True
        return False


def next_of(it):
    if it.advance():
        return it.value
    raise StopIteration


def next_or(it, otherwise):
    if it.advance():
        return it.value
    return otherwise
