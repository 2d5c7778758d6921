"""collections: classes over lists and dicts."""


class deque:
    def __init__(self, items=None, maxlen: Optional[int] = None):
        if maxlen is not None:
            if maxlen < 0:
                raise ValueError("maxlen must be non-negative")
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
        for x in list(xs):  # it may be the deque itself
            self.append(x)

    def extendleft(self, xs):
        for x in list(xs):
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

    def index(self, x, start: int = 0, stop: int = 9223372036854775807):
        if x not in self.items[start:stop]:
            raise ValueError(repr(x) + " is not in deque")
        return self.items.index(x, start, stop)

    def insert(self, i: int, x):
        most = self.maxlen
        if most is not None:
            if len(self.items) >= most:
                raise IndexError("deque already at its maximum size")
        self.items.insert(i, x)

    def remove(self, x):
        if x not in self.items:
            raise ValueError("deque.remove(x): x not in deque")
        self.items.remove(x)

    def reverse(self):
        self.items.reverse()

    def __len__(self) -> int:
        return len(self.items)

    def check_index(self, i: int):
        if i >= len(self.items) or i < -len(self.items):
            raise IndexError("deque index out of range")

    def __getitem__(self, i: int):
        self.check_index(i)
        return self.items[i]

    def __setitem__(self, i: int, x):
        self.check_index(i)
        self.items[i] = x

    def __delitem__(self, i: int):
        self.check_index(i)
        del self.items[i]

    def __contains__(self, x) -> bool:
        return x in self.items

    def __iter__(self):
        return iter(self.items)

    def __reversed__(self):
        return reversed(self.items)

    def __add__(self, other):
        return deque(self.items + other.items, self.maxlen)

    def __iadd__(self, other):
        self.extend(other)
        return self

    def __mul__(self, n: int):
        return deque(self.items * n, self.maxlen)

    def __eq__(self, other) -> bool:
        return self.items == other.items

    def __lt__(self, other) -> bool:
        return self.items < other.items

    def __le__(self, other) -> bool:
        return self.items <= other.items

    def __gt__(self, other) -> bool:
        return self.items > other.items

    def __ge__(self, other) -> bool:
        return self.items >= other.items

    def __repr__(self) -> str:
        if self.maxlen is None:
            return "deque(" + repr(self.items) + ")"
        return "deque(" + repr(self.items) + ", maxlen=" + repr(self.maxlen) + ")"


class over_dict:
    """What a class over a dict has of it."""

    def __setitem__(self, key, value):
        self.data[key] = value

    def __contains__(self, key) -> bool:
        return key in self.data

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self):
        return iter(self.data)

    def __reversed__(self):
        return reversed(list(self.data.keys()))

    def keys(self):
        return list(self.data.keys())

    def values(self):
        return list(self.data.values())

    def items(self):
        return list(self.data.items())

    def get(self, key, otherwise=None):
        return self.data.get(key, otherwise)

    def pop(self, key, *otherwise):
        return self.data.pop(key, *otherwise)

    def popitem(self):
        return self.data.popitem()

    def setdefault(self, key, value):
        return self.data.setdefault(key, value)

    def clear(self):
        self.data.clear()

    def __eq__(self, other) -> bool:
        return self.data == dict(other)

    def as_python(self):
        return self.data


class defaultdict(over_dict):
    def __init__(self, factory=None, items=None):
        self.data = {} if items is None else dict(items)
        self.factory = factory

    def __getitem__(self, key):
        if key not in self.data:
            if self.factory is None:
                raise KeyError(key)
            else:
                self.data[key] = self.factory()
        return self.data[key]

    def __delitem__(self, key):
        del self.data[key]

    def update(self, items=None, **more):
        if items is not None:
            self.data.update(dict(items))
        if not isinstance(more, Dict[str, Tensor]):  # keywords were given
            self.data.update(more)

    def copy(self):
        return defaultdict(self.factory, self.data)

    def __or__(self, other):
        out = defaultdict(self.factory, self.data)
        out.update(other)
        return out

    def __ior__(self, other):
        self.update(other)
        return self

    def __repr__(self) -> str:
        return "defaultdict(" + repr(self.factory) + ", " + repr(self.data) + ")"


def defaultdict__of(factory=None, items=None, **more):
    made = defaultdict(factory, items)
    made.update(**more)
    return made


def counts_of(items):
    """Of a mapping what it has, of other items how often each is there."""
    if isinstance(items, over_dict):
        return items.data
    elif isinstance(items, dict):
        return items
    else:
        counts = {}
        for x in items:
            counts[x] = counts.get(x, 0) + 1
        return counts


def combined(a, operator: str, b):
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "&":
        return min(a, b)
    return max(a, b)


def Counter__of(items=None, **more):
    if items is None:
        return Counter(dict(more))
    else:
        made = Counter(dict(counts_of(items)))
        made.update(**more)
        return made


class Counter(over_dict):
    """Made of a dict that it keeps; Counter__of is what a script calls, so that the class goes by the dict's type alone."""

    def __init__(self, counts=None):
        self.data = {} if counts is None else counts

    def count(self, counts, sign: int):
        for key, n in counts.items():
            if key in self.data:
                self.data[key] += sign * n
            else:
                self.data[key] = sign * n

    def update(self, items=None, **more):
        if items is not None:
            self.count(counts_of(items), 1)
        if not isinstance(more, Dict[str, Tensor]):  # keywords were given
            self.count(more, 1)

    def subtract(self, items=None, **more):
        if items is not None:
            self.count(counts_of(items), -1)
        if not isinstance(more, Dict[str, Tensor]):
            self.count(more, -1)

    def __getitem__(self, key):
        if key in self.data:
            return self.data[key]
        return 0

    def __delitem__(self, key):
        if key in self.data:
            self.data.pop(key)

    def elements(self):
        return [key for key, n in self.data.items() for i in range(n)]

    def total(self):
        return sum(self.data.values())

    def most_common(self, n: Optional[int] = None):
        ordered = sorted(self.data.items(), key=lambda pair: pair[1], reverse=True)
        if n is None:
            return ordered
        return ordered[:max(n, 0)]

    def copy(self):
        return Counter(dict(self.data))

    def keep(self, operator: str, other):
        """Of both, what the operator makes of their counts, where it is positive."""
        counts = dict(self.data)
        for key in other.data.keys():
            if key not in counts:
                counts[key] = 0
        for key in list(counts.keys()):
            n = combined(self[key], operator, other[key])
            if n > 0:
                counts[key] = n
            else:
                counts.pop(key)
        return counts

    def keep_here(self, operator: str, other):
        counts = self.keep(operator, other)
        self.data.clear()
        self.data.update(counts)
        return self

    def __add__(self, other):
        return Counter(self.keep("+", other))

    def __sub__(self, other):
        return Counter(self.keep("-", other))

    def __and__(self, other):
        return Counter(self.keep("&", other))

    def __or__(self, other):
        return Counter(self.keep("|", other))

    def __iadd__(self, other):
        return self.keep_here("+", other)

    def __isub__(self, other):
        return self.keep_here("-", other)

    def __iand__(self, other):
        return self.keep_here("&", other)

    def __ior__(self, other):
        return self.keep_here("|", other)

    def __pos__(self):
        return Counter(self.keep("|", self))

    def __neg__(self):
        out = Counter(dict(self.data))
        out.subtract(self.data)
        return Counter(out.keep("-", self))

    def __eq__(self, other) -> bool:
        if isinstance(other, Counter):
            return self <= other and other <= self
        else:
            return self.data == dict(other)

    def __le__(self, other) -> bool:
        for key in list(self.data.keys()) + list(other.data.keys()):
            if self[key] > other[key]:
                return False
        return True

    def __lt__(self, other) -> bool:
        return self <= other and not other <= self

    def __ge__(self, other) -> bool:
        return other <= self

    def __gt__(self, other) -> bool:
        return other < self

    def __repr__(self) -> str:
        if len(self.data) == 0:
            return "Counter()"
        return "Counter({" + ", ".join([repr(k) + ": " + repr(n) for k, n in self.most_common()]) + "})"
