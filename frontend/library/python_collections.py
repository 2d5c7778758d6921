"""collections: classes over lists and dicts."""


class deque:
    def __init__(self, items=None, maxlen: Optional[int] = None):
        self.items = [] if items is None else list(items)
        self.maxlen = maxlen
        self.trim(True)

    def trim(self, at_left: bool):
        most = self.maxlen
        if most is not None:
            while len(self.items) > most:
                if at_left:
                    self.items.pop(0)
                else:
                    self.items.pop()

    def append(self, x):
        self.items.append(x)
        self.trim(True)

    def appendleft(self, x):
        self.items.insert(0, x)
        self.trim(False)

    def pop(self):
        if len(self.items) == 0:
            raise IndexError("pop from an empty deque")
        return self.items.pop()

    def popleft(self):
        if len(self.items) == 0:
            raise IndexError("pop from an empty deque")
        return self.items.pop(0)

    def extend(self, xs):
        for x in xs:
            self.append(x)

    def extendleft(self, xs):
        for x in xs:
            self.appendleft(x)

    def rotate(self, n: int = 1):
        size = len(self.items)
        if size > 0:
            k = n % size
            self.items = self.items[size - k:] + self.items[:size - k]

    def clear(self):
        self.items.clear()

    def copy(self):
        return deque(self.items, self.maxlen)

    def count(self, x):
        return self.items.count(x)

    def index(self, x):
        return self.items.index(x)

    def insert(self, i: int, x):
        self.items.insert(i, x)

    def remove(self, x):
        self.items.remove(x)

    def reverse(self):
        self.items.reverse()

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int):
        if i >= len(self.items) or i < -len(self.items):
            raise IndexError("deque index out of range")
        return self.items[i]

    def __setitem__(self, i: int, x):
        self.items[i] = x

    def __delitem__(self, i: int):
        del self.items[i]

    def __contains__(self, x) -> bool:
        return x in self.items

    def __iter__(self):
        return iter(self.items)

    def __reversed__(self):
        return reversed(self.items)

    def __eq__(self, other) -> bool:
        return self.items == other.items

    def __repr__(self) -> str:
        if self.maxlen is None:
            return "deque(" + repr(self.items) + ")"
        return "deque(" + repr(self.items) + ", maxlen=" + repr(self.maxlen) + ")"


class defaultdict:
    def __init__(self, factory=None, items=None):
        self.data = {} if items is None else dict(items)
        self.factory = factory

    def __getitem__(self, key):
        if key not in self.data:
            self.data[key] = self.factory()
        return self.data[key]

    def __setitem__(self, key, value):
        self.data[key] = value

    def __delitem__(self, key):
        del self.data[key]

    def __contains__(self, key) -> bool:
        return key in self.data

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self):
        return iter(self.data)

    def keys(self):
        return list(self.data.keys())

    def values(self):
        return list(self.data.values())

    def items(self):
        return list(self.data.items())

    def get(self, key, otherwise=None):
        return self.data.get(key, otherwise)

    def pop(self, key):
        return self.data.pop(key)

    def setdefault(self, key, value):
        if key not in self.data:
            self.data[key] = value
        return self.data[key]

    def update(self, other):
        self.data.update(dict(other))

    def clear(self):
        self.data.clear()

    def as_python(self):
        return self.data

    def __repr__(self) -> str:
        return "defaultdict(" + repr(self.data) + ")"


class Counter:
    def __init__(self, items=None):
        self.data = {}
        if items is not None:
            self.update(items)

    def update(self, items):
        for x in items:
            self.data[x] = self.data.get(x, 0) + 1

    def subtract(self, items):
        for x in items:
            self.data[x] = self.data.get(x, 0) - 1

    def __getitem__(self, key) -> int:
        if key in self.data:
            return self.data[key]
        return 0

    def __setitem__(self, key, value: int):
        self.data[key] = value

    def __delitem__(self, key):
        self.data.pop(key, 0)

    def __contains__(self, key) -> bool:
        return key in self.data

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self):
        return iter(self.data)

    def keys(self):
        return list(self.data.keys())

    def values(self):
        return list(self.data.values())

    def items(self):
        return list(self.data.items())

    def get(self, key, otherwise: int = 0):
        return self.data.get(key, otherwise)

    def pop(self, key):
        return self.data.pop(key)

    def elements(self):
        return [k for k, n in self.data.items() for i in range(n)]

    def total(self) -> int:
        return sum(self.data.values())

    def most_common(self, n: int = -1):
        ordered = sorted(self.data.items(), key=lambda pair: pair[1], reverse=True)
        if n < 0:
            return ordered
        return ordered[:n]

    def copy(self):
        return self.combined(self, 0)

    def combined(self, other, sign: int):
        out = Counter([k for k in self.data.keys()])
        for k in self.data.keys():
            out.data[k] = self.data[k]
        for k in other.data.keys():
            out.data[k] = out.data.get(k, 0) + sign * other.data[k]
        return out

    def positive(self):
        for k in list(self.data.keys()):
            if self.data[k] <= 0:
                self.data.pop(k)
        return self

    def __add__(self, other):
        return self.combined(other, 1).positive()

    def __sub__(self, other):
        return self.combined(other, -1).positive()

    def __eq__(self, other) -> bool:
        return self.data == other.data

    def as_python(self):
        return self.data

    def __repr__(self) -> str:
        if len(self.data) == 0:
            return "Counter()"
        return "Counter({" + ", ".join([repr(k) + ": " + repr(n) for k, n in self.most_common()]) + "})"
