"""What Python's int, float and math have beyond the operators: math.NAME is math_NAME here."""
import math
from typing import List


def math_prod__int(xs: List[int], start: int = 1) -> int:
    for x in xs:
        start = start * x
    return start


def math_prod__float(xs: List[float], start: float = 1.0) -> float:
    for x in xs:
        start = start * x
    return start


def math_fsum(xs: List[float]) -> float:
    """Shewchuk's partial sums: each is exact, their sum is rounded once."""
    partials: List[float] = []
    for value in xs:
        x = value
        kept: List[float] = []
        for p in partials:
            y = p
            if abs(x) < abs(y):
                x, y = y, x
            high = x + y
            low = y - (high - x)
            if low != 0.0:
                kept.append(low)
            x = high
        kept.append(x)
        partials = kept
    total = 0.0
    i = len(partials) - 1
    while i >= 0:
        total = total + partials[i]
        i -= 1
    return total


def math_dist(p: List[float], q: List[float]) -> float:
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    total = 0.0
    for i in range(len(p)):
        total += (p[i] - q[i]) * (p[i] - q[i])
    return math.sqrt(total)


def math_isclose(a: float, b: float, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> bool:
    if rel_tol < 0.0 or abs_tol < 0.0:
        raise ValueError("tolerances must be non-negative")
    if a == b:
        return True
    if math.isinf(a) or math.isinf(b):
        return False
    d = abs(b - a)
    return d <= abs(rel_tol * b) or d <= abs(rel_tol * a) or d <= abs_tol


def math_lcm(a: int, b: int) -> int:
    if a == 0 or b == 0:
        return 0
    return abs(a // math.gcd(a, b) * b)


def math_perm(n: int, k: int) -> int:
    if n < 0 or k < 0:
        raise ValueError("n must be a non-negative integer" if n < 0 else "k must be a non-negative integer")
    result = 1
    for i in range(k):
        result *= n - i
    return result


def bit_length(self: int) -> int:
    n = abs(self)
    bits = 0
    while n > 0:
        n = n >> 1
        bits += 1
    return bits


def is_integer(self: float) -> bool:
    return not math.isinf(self) and not math.isnan(self) and self % 1.0 == 0.0


def Int__base(text: str, base: int) -> int:
    if base != 0 and (base < 2 or base > 36):
        raise ValueError("int() base must be >= 2 and <= 36, or 0")
    s = text.strip().lower().replace("_", "")
    sign = 1
    if len(s) > 0 and (s[0] == "-" or s[0] == "+"):
        sign = -1 if s[0] == "-" else 1
        s = s[1:]
    if len(s) > 2 and s[0] == "0":
        c = s[1]
        prefix = 16 if c == "x" else 8 if c == "o" else 2 if c == "b" else 0
        if prefix != 0 and (base == 0 or base == prefix):
            base = prefix
            s = s[2:]
    if base == 0:
        base = 10
    value = 0
    if len(s) == 0:
        raise ValueError("invalid literal for int() with base " + str(base) + ": '" + text + "'")
    for c in s:
        digit = "0123456789abcdefghijklmnopqrstuvwxyz".find(c)
        if digit < 0 or digit >= base:
            raise ValueError("invalid literal for int() with base " + str(base) + ": '" + text + "'")
        value = value * base + digit
    return sign * value


def __set_order(keys: List[int]) -> List[int]:
    # The order in which CPython walks a set of these ints, added in this order and never removed: an open table of
    # a power of two with runs of up to nine slots before the hash is perturbed (Objects/setobject.c).
    mask = 7
    used = 0
    table: List[int] = [-1, -1, -1, -1, -1, -1, -1, -1]
    for n in range(len(keys)):
        __set_place(table, mask, keys, n)
        used += 1
        if used * 5 >= mask * 3:
            wanted = used * 2 if used > 50000 else used * 4
            size = 8
            while size <= wanted:
                size *= 2
            table2: List[int] = [-1] * size
            for k in table:
                if k >= 0:
                    __set_place(table2, size - 1, keys, k)
            table = table2
            mask = size - 1
    out: List[int] = []
    for k in table:
        if k >= 0:
            out.append(keys[k])
    return out


def __set_place(table: List[int], mask: int, keys: List[int], n: int) -> int:
    value = keys[n]
    large = 2305843009213693951
    hash = value
    if value >= large or value <= -large:
        hash = abs(value) % large if value != -9223372036854775807 - 1 else 4
        if value < 0:
            hash = -hash
    if hash == -1:
        hash = -2
    perturb = hash
    first = True
    i = hash & mask
    while True:
        run = 9 if i + 9 <= mask else 0
        for j in range(run + 1):
            if table[i + j] < 0:
                table[i + j] = n
                return i + j
        perturb = (perturb >> 5) & 576460752303423487 if first else perturb >> 5
        first = False
        i = (i * 5 + 1 + perturb) & mask
    return 0
