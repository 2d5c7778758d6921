"""bisect"""


def bisect_left(a, x, lo: int = 0, hi: Optional[int] = None, key=None) -> int:
    return place_of(a, x, lo, hi, key, False)


def bisect_right(a, x, lo: int = 0, hi: Optional[int] = None, key=None) -> int:
    return place_of(a, x, lo, hi, key, True)


def bisect(a, x, lo: int = 0, hi: Optional[int] = None, key=None) -> int:
    return place_of(a, x, lo, hi, key, True)


def insort_left(a, x, lo: int = 0, hi: Optional[int] = None, key=None):
    a.insert(place_of(a, keyed(x, key), lo, hi, key, False), x)


def insort_right(a, x, lo: int = 0, hi: Optional[int] = None, key=None):
    a.insert(place_of(a, keyed(x, key), lo, hi, key, True), x)


def insort(a, x, lo: int = 0, hi: Optional[int] = None, key=None):
    insort_right(a, x, lo, hi, key)


def keyed(x, key):
    if key is None:
        return x
    else:
        return key(x)


def place_of(a, x, lo: int, hi: Optional[int], key, after_equals: bool) -> int:
    if lo < 0:
        raise ValueError("lo must be non-negative")
    low = lo
    high = len(a) if hi is None else hi
    while low < high:
        mid = (low + high) // 2
        y = keyed(a[mid], key)
        if (not x < y) if after_equals else y < x:
            low = mid + 1
        else:
            high = mid
    return low
