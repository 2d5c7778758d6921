"""itertools: generators, typed by what they are called with."""


def chain(*iterables):
    for xs in iterables:
        for x in xs:
            yield x


def chain_from_iterable(iterables):
    for xs in iterables:
        for x in xs:
            yield x


def count(start=0, step=1):
    n = start
    while True:
        yield n
        n = n + step


def cycle(iterable):
    saved = list(iterable)
    while len(saved) > 0:
        for x in saved:
            yield x


def repeat(object):
    while True:
        yield object


def repeat__times(object, times: int):
    for i in range(times):
        yield object


def islice__range(iterable, start: int, stop: int, step: int):
    if start < 0 or stop < 0:
        raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    if step <= 0:
        raise ValueError("Step for islice() must be a positive integer or None.")
    at = 0
    wanted = start
    it = iter(iterable)
    while wanted < stop:
        if not it.advance():
            break
        if at == wanted:
            yield it.value
            wanted += step
        at += 1


def takewhile(predicate, iterable):
    for x in iterable:
        if not predicate(x):
            break
        yield x


def dropwhile(predicate, iterable):
    dropping = True
    for x in iterable:
        if dropping and predicate(x):
            continue
        dropping = False
        yield x


def filterfalse__truth(iterable):
    for x in iterable:
        if not x:
            yield x


def filterfalse(predicate, iterable):
    for x in iterable:
        if not predicate(x):
            yield x


def compress(data, selectors):
    for x, s in zip(data, selectors):
        if s:
            yield x


def accumulate__add(iterable):
    first = True
    for x in iterable:
        if first:
            total = x
            first = False
        else:
            total = total + x
        yield total


def accumulate__by(iterable, function):
    first = True
    for x in iterable:
        if first:
            total = x
            first = False
        else:
            total = function(total, x)
        yield total


def accumulate__add_from(iterable, initial):
    total = initial
    yield total
    for x in iterable:
        total = total + x
        yield total


def accumulate__from(iterable, function, initial):
    total = initial
    yield total
    for x in iterable:
        total = function(total, x)
        yield total


def pairwise(iterable):
    first = True
    for x in iterable:
        if not first:
            yield before, x
        before = x
        first = False


def product__one(a):
    for x in a:
        yield (x,)


def product__two(a, b):
    second = list(b)
    for x in a:
        for y in second:
            yield x, y


def product__three(a, b, c):
    second = list(b)
    third = list(c)
    for x in a:
        for y in second:
            for z in third:
                yield x, y, z


def product__repeat(a, repeat: int):
    if repeat < 0:
        raise ValueError("repeat argument cannot be negative")
    pool = list(a)
    at = [0] * repeat
    n = len(pool)
    going = n > 0 or repeat == 0
    while going:
        yield tuple([pool[i] for i in at])
        k = repeat - 1
        while k >= 0:
            at[k] += 1
            if at[k] < n:
                break
            at[k] = 0
            k -= 1
        going = k >= 0


def combinations__pairs(iterable):
    pool = list(iterable)
    for i in range(len(pool)):
        for j in range(i + 1, len(pool)):
            yield pool[i], pool[j]


def combinations__triples(iterable):
    pool = list(iterable)
    for i in range(len(pool)):
        for j in range(i + 1, len(pool)):
            for k in range(j + 1, len(pool)):
                yield pool[i], pool[j], pool[k]


def combinations__any(iterable, r: int):
    if r < 0:
        raise ValueError("r must be non-negative")
    pool = list(iterable)
    n = len(pool)
    at = [i for i in range(r)]
    going = r <= n
    while going:
        yield tuple([pool[i] for i in at])
        k = r - 1
        while k >= 0 and at[k] == k + n - r:
            k -= 1
        going = k >= 0
        if going:
            at[k] += 1
            for j in range(k + 1, r):
                at[j] = at[j - 1] + 1


def combinations_with_replacement__pairs(iterable):
    pool = list(iterable)
    for i in range(len(pool)):
        for j in range(i, len(pool)):
            yield pool[i], pool[j]


def combinations_with_replacement__triples(iterable):
    pool = list(iterable)
    for i in range(len(pool)):
        for j in range(i, len(pool)):
            for k in range(j, len(pool)):
                yield pool[i], pool[j], pool[k]


def combinations_with_replacement__any(iterable, r: int):
    if r < 0:
        raise ValueError("r must be non-negative")
    pool = list(iterable)
    n = len(pool)
    at = [0] * r
    going = n > 0 or r == 0
    while going:
        yield tuple([pool[i] for i in at])
        k = r - 1
        while k >= 0 and at[k] == n - 1:
            k -= 1
        going = k >= 0
        if going:
            first = at[k] + 1
            for j in range(k, r):
                at[j] = first


def permutations__pairs(iterable):
    pool = list(iterable)
    for i in range(len(pool)):
        for j in range(len(pool)):
            if i != j:
                yield pool[i], pool[j]


def permutations__all(iterable):
    pool = list(iterable)
    for p in permutations__any(pool, len(pool)):
        yield p


def permutations__any(iterable, r: int):
    if r < 0:
        raise ValueError("r must be non-negative")
    pool = list(iterable)
    n = len(pool)
    length = r
    at = [i for i in range(n)]
    cycles = [n - i for i in range(length)]
    going = length <= n
    while going:
        yield tuple([pool[at[i]] for i in range(length)])
        going = False
        for i in range(length - 1, -1, -1):
            cycles[i] -= 1
            if cycles[i] == 0:
                first = at[i]
                for j in range(i, n - 1):
                    at[j] = at[j + 1]
                at[n - 1] = first
                cycles[i] = n - i
            else:
                j = n - cycles[i]
                x = at[i]
                at[i] = at[j]
                at[j] = x
                going = True
                break


def permutations__three(iterable):
    pool = list(iterable)
    n = len(pool)
    for i in range(n):
        for j in range(n):
            for k in range(n):
                if i != j and i != k and j != k:
                    yield pool[i], pool[j], pool[k]


def zip_longest__two(a, b, fillvalue=None):
    first = list(a)
    second = list(b)
    for i in range(max(len(first), len(second))):
        x = first[i] if i < len(first) else fillvalue
        y = second[i] if i < len(second) else fillvalue
        yield x, y


def zip_longest__three(a, b, c, fillvalue=None):
    first = list(a)
    second = list(b)
    third = list(c)
    for i in range(max(len(first), len(second), len(third))):
        x = first[i] if i < len(first) else fillvalue
        y = second[i] if i < len(second) else fillvalue
        z = third[i] if i < len(third) else fillvalue
        yield x, y, z


def starmap(function, iterable):
    for args in iterable:
        yield function(*args)


def groupby__items(iterable):
    group = []
    for x in iterable:
        if len(group) > 0:
            if not group[-1] == x:
                yield group[0], group
                group = []
        group.append(x)
    if len(group) > 0:
        yield group[0], group


def groupby__key(iterable, key):
    group = []
    keys = []
    for x in iterable:
        k = key(x)
        if len(group) > 0:
            if not keys[0] == k:
                yield keys[0], group
                group = []
                keys = []
        if len(keys) == 0:
            keys.append(k)
        group.append(x)
    if len(group) > 0:
        yield keys[0], group


def tee__two(iterable):
    items = list(iterable)
    return iter(items), iter(items)


def tee__three(iterable):
    items = list(iterable)
    return iter(items), iter(items), iter(items)
