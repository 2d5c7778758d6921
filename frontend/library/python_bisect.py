"""bisect"""


def bisect_left(a, x, lo: int = 0, hi: int = -1) -> int:
    low = lo
    high = len(a) if hi < 0 else hi
    while low < high:
        mid = (low + high) // 2
        if a[mid] < x:
            low = mid + 1
        else:
            high = mid
    return low


def bisect_right(a, x, lo: int = 0, hi: int = -1) -> int:
    low = lo
    high = len(a) if hi < 0 else hi
    while low < high:
        mid = (low + high) // 2
        if x < a[mid]:
            high = mid
        else:
            low = mid + 1
    return low


def bisect(a, x, lo: int = 0, hi: int = -1) -> int:
    return bisect_right(a, x, lo, hi)


def insort(a, x):
    a.insert(bisect_right(a, x), x)


def insort_right(a, x):
    a.insert(bisect_right(a, x), x)


def insort_left(a, x):
    a.insert(bisect_left(a, x), x)
