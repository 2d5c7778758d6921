"""Builtin functions and methods of builtin types that are no operators: TYPE_METHOD."""


class slice:
    def __init__(self, start: Optional[int], stop: Optional[int], step: Optional[int]):
        self.start = start
        self.stop = stop
        self.step = step

    @property
    def step_or_1(self) -> int:
        step = self.step
        return 1 if step is None else step

    def __repr__(self) -> str:
        return f"slice({self.start}, {self.stop}, {self.step})"

    def __eq__(self, other) -> bool:
        return self.start == other.start and self.stop == other.stop and self.step == other.step

    def indices(self, length: int) -> Tuple[int, int, int]:
        step = self.step_or_1
        if step == 0:
            raise ValueError("slice step cannot be zero")
        low, high = (0, length) if step > 0 else (-1, length - 1)
        start, stop = self.start, self.stop
        first = low if step > 0 else high
        last = high if step > 0 else low
        if start is not None:
            first = max(min(start + length if start < 0 else start, high), low)
        if stop is not None:
            last = max(min(stop + length if stop < 0 else stop, high), low)
        return first, last, step


def tensor_by_slices(x: Tensor, parts: List[slice]) -> Tensor:
    for d in range(len(parts)):
        x = torch.slice(x, d, parts[d].start, parts[d].stop, parts[d].step_or_1)
    return x


def index_by_lists(indices):
    """x[[[0, 1], [1, 0]]]: PyTorch takes fewer than 32 lists as a tuple of indices."""
    if len(indices) < 32:
        return [torch.tensor(i) for i in indices]
    return [torch.tensor(indices)]


def ascii(x):
    return ascii_text(repr(x))


def ascii_text(text: str) -> str:
    out = ""
    for c in text:
        n = ord(c)
        if n < 128:
            out += c
        elif n < 256:
            out += f"\\x{n:02x}"
        elif n < 65536:
            out += f"\\u{n:04x}"
        else:
            out += f"\\U{n:08x}"
    return out


def pow__mod(base: int, exponent: int, modulus: int) -> int:
    if modulus == 0:
        raise ValueError("pow() 3rd argument cannot be 0")
    size = abs(modulus)
    b = base % size
    e = exponent
    if e < 0:
        old, now = b, size
        x, y = 1, 0
        while now != 0:
            q = old // now
            old, now = now, old - q * now
            x, y = y, x - q * y
        if old != 1:
            raise ValueError("base is not invertible for the given modulus")
        b = x % size
        e = -e
    result = 1 % size
    while e > 0:
        if e % 2 == 1:
            result = mul_mod(result, b, size)
        b = mul_mod(b, b, size)
        e = e // 2
    if modulus < 0 and result != 0:
        return result - size
    return result


def mul_mod(a: int, b: int, size: int) -> int:
    if size < 3037000499:  # products fit 64 bits
        return a * b % size
    out = 0
    while b > 0:
        if b % 2 == 1:
            out = out - (size - a) if out >= size - a else out + a
        a = a - (size - a) if a >= size - a else a + a
        b = b // 2
    return out


def str_maketrans(a: str, b: str, gone: str = "") -> Dict[int, Optional[str]]:
    if len(a) != len(b):
        raise ValueError("the first two maketrans arguments must have equal length")
    table: Dict[int, Optional[str]] = {}
    for i in range(len(a)):
        table[ord(a[i])] = b[i]
    for c in gone:
        table[ord(c)] = None
    return table


def str_translate(s: str, table):
    out = ""
    for c in s:
        n = ord(c)
        if n in table:
            to = table[n]
            if to is not None:
                out += to
        else:
            out += c
    return out


def dict_fromkeys(keys, value=None):
    if value is None:
        return {k: None for k in keys}
    else:
        return {k: value for k in keys}


def int_bit_count(x: int) -> int:
    return bin(abs(x)).count("1")


def int_as_integer_ratio(x: int):
    return x, 1


def int_conjugate(x: int) -> int:
    return x


def int_is_integer(x: int) -> bool:
    return True


def float_conjugate(x: float) -> float:
    return x


def float_as_integer_ratio(x: float):
    if x != x:
        raise ValueError("cannot convert NaN to integer ratio")
    if x - x != 0.0:
        raise OverflowError("cannot convert Infinity to integer ratio")
    n = 1
    while x != math.floor(x):
        x = x * 2.0
        n = n * 2
    return int(x), n


def list_copy(xs):
    return xs[:]


def math_gcd(xs: List[int]) -> int:
    out = 0
    for x in xs:
        out = math.gcd(out, x)
    return out


def math_lcm(xs: List[int]) -> int:
    out = 1
    for x in xs:
        out = abs(out * x) // math.gcd(out, x) if out != 0 and x != 0 else 0
    return out


def math_hypot(xs: List[float]) -> float:
    most = 0.0
    for x in xs:
        if x - x != 0.0 and x == x:
            return math.inf
        most = max(most, abs(x)) if x == x else x
    if most == 0.0 or most != most:
        return most
    return most * math.sqrt(math.fsum([(x / most) * (x / most) for x in xs]))


def math_ulp(x: float) -> float:
    if x != x:
        return x
    y = abs(x)
    if y - y != 0.0:
        return y
    m, e = math.frexp(y)
    return math.ldexp(1.0, max(e - 53, -1074))


def math_nextafter(x: float, y: float) -> float:
    if x != x or y != y:
        return math.nan
    if x == y:
        return y
    if x - x != 0.0:
        return math.copysign(1.7976931348623157e308, x)
    if x == 0.0:
        return math.copysign(5e-324, y)
    up = (y > x) == (x > 0.0)
    m, e = math.frexp(abs(x))
    step = math.ldexp(1.0, max(e - 53, -1074))
    if up:
        return math.copysign(abs(x) + step, x)
    if m == 0.5 and e > -1021:
        step = step * 0.5
    return math.copysign(abs(x) - step, x)


def zip_strict(lengths: List[int]) -> None:
    for i in range(1, len(lengths)):
        if lengths[i] != lengths[0]:
            word = "shorter" if lengths[i] < lengths[0] else "longer"
            before = "argument 1" if i == 1 else f"arguments 1-{i}"
            raise ValueError(f"zip() argument {i + 1} is {word} than {before}")


def percent_by_name(text: str, names: List[str]) -> Tuple[str, List[str]]:
    """A format whose conversions %(name)d are in order, and the names in that order."""
    out = ""
    order: List[str] = []
    i = 0
    while i < len(text):
        if text[i] == "%" and i + 1 < len(text) and text[i + 1] == "(":
            end = text.index(")", i)
            order.append(text[i + 2:end])
            out += "%"
            i = end + 1
        else:
            out += text[i]
            i += 1
    return out, order


def sum_numbers(xs, start):
    total = start
    for x in xs:
        total = total + x
    return total


def sum_objects(xs, start):
    if len(xs) == 0:
        raise ValueError("the sum of no objects is not known when a model is compiled")
    total = start + xs[0]
    for i in range(1, len(xs)):
        total = total + xs[i]
    return total


def dict_move_to_end(d, key, last: bool = True) -> None:
    value = d.pop(key)
    if last:
        d[key] = value
    else:
        items = list(d.items())
        d.clear()
        d[key] = value
        for k, v in items:
            d[k] = v


def dict_popitem__last(d, last: bool):
    if len(d) == 0:
        raise KeyError("dictionary is empty")
    keys = list(d.keys())
    key = keys[-1] if last else keys[0]
    return key, d.pop(key)


def equal_optional(a, b) -> bool:
    if a is None:
        return b is None
    if b is None:
        return False
    return a == b


def equal_lists(a, b) -> bool:
    if len(a) != len(b):
        return False
    for i in range(len(a)):
        if not a[i] == b[i]:
            return False
    return True


def equal_dicts(a, b) -> bool:
    if len(a) != len(b):
        return False
    for k in a:
        if k not in b:
            return False
        if not a[k] == b[k]:
            return False
    return True


def check_arguments(n: int, names: List[str], most: int, before: int, name: str) -> None:
    if n < len(names):
        missing = [repr(x) for x in names[n:]]
        text = " and ".join(missing)
        if len(missing) > 2:
            text = ", ".join(missing[:-1]) + ", and " + missing[-1]
        raise TypeError(f"{name}() missing {len(missing)} required positional argument{'s' if len(missing) > 1 else ''}: {text}")
    if n > most and most >= 0:
        few = f"from {before + len(names)} to {before + most}" if len(names) < most else str(before + most)
        raise TypeError(f"{name}() takes {few} positional argument{'s' if before + most > 1 else ''} but {before + n} were given")


def raise_unhashable(name: str) -> None:
    raise TypeError("unhashable type: '" + name + "'")


def same_key(d, key):
    """The key of d that equals the given one, else that itself."""
    for k in d:
        if k is key or k == key:
            return k
    return key


def update_by_keys(d, other) -> None:
    for k, v in other.items():
        d[k] = v


def dict_by_keys(pairs):
    return {k: v for k, v in pairs}


def contains_equal(xs, x) -> bool:
    for v in xs:
        if v == x:
            return True
    return False


def list_index_equal(xs, x) -> int:
    for i in range(len(xs)):
        if xs[i] == x:
            return i
    raise ValueError("list.index(x): x not in list")


def list_count_equal(xs, x) -> int:
    n = 0
    for v in xs:
        if v == x:
            n += 1
    return n


def list_remove_equal(xs, x) -> None:
    for i in range(len(xs)):
        if xs[i] == x:
            xs.pop(i)
            return
    raise ValueError("list.remove(x): x not in list")


def extreme_by_less(xs, greatest: bool):
    best = xs[0]
    for i in range(1, len(xs)):
        if greatest:
            if best < xs[i]:
                best = xs[i]
        else:
            if xs[i] < best:
                best = xs[i]
    return best


def type_name(x) -> str:
    if isinstance(x, bool):
        return "bool"
    if isinstance(x, int):
        return "int"
    if isinstance(x, float):
        return "float"
    if isinstance(x, str):
        return "str"
    return "NoneType"


def pairs_by_less(pairs, reverse: bool):
    """Pairs of an object and a place, by the objects' __lt__; stable."""
    out = pairs[:0]
    for p in pairs:
        low, high = 0, len(out)
        while low < high:
            middle = (low + high) // 2
            comes_before = out[middle][0] < p[0] if reverse else p[0] < out[middle][0]
            if comes_before:
                high = middle
            else:
                low = middle + 1
        out.insert(low, p)
    return out


def member_value(member):
    return member.value


def check_not_empty(size: int, is_max: bool) -> None:
    if size == 0:
        raise ValueError("max() arg is an empty sequence" if is_max else "min() arg is an empty sequence")


def dict_of_mapping(x):
    return {k: x[k] for k in x.keys()}


def dict_pop_or_none(d, key):
    if key in d:
        return d.pop(key)
    return None


def exception_argument(name: str, text: str) -> str:
    """What was raised, where the exception has one argument: the text of a KeyError is its repr()."""
    if name != "KeyError" or len(text) < 2 or (text[0] != "'" and text[0] != '"'):
        return text
    return text[1:-1].replace("\\\\", "\x00").replace("\\'", "'").replace("\\n", "\n").replace("\x00", "\\")


def exception_args(raised: Optional[List[Any]], name: str, text: str) -> List[Any]:
    if raised is not None and raised[0] == text:
        return raised[1:]
    if text == "":
        return []
    return [exception_argument(name, text)]


def exception_cause(raised: Optional[List[Any]], name: str, text: str) -> Any:
    if raised is not None and raised[0] == name and raised[1] == text:
        return raised[2]
    return None


def exception_repr(name: str, args: List[Any]) -> str:
    return name + "(" + ", ".join([repr(a) for a in args]) + ")"


def exception_text_repr(name: str, text: str) -> str:
    if name == "KeyError" or text == "":
        return f"{name}({text})"
    return f"{name}({text!r})"


def complex_of_text(text: str) -> complex:
    s = text.strip()
    if s.startswith("(") and s.endswith(")"):
        s = s[1:-1].strip()
    has_im = len(s) > 0 and s[-1] in "jJ"
    body = s[:-1] if has_im else s
    at = -1
    for i in range(1, len(body)):
        if body[i] in "+-" and body[i - 1] not in "eE":
            at = i
    re = "0" if has_im and at < 0 else body[:at] if has_im else body
    im = "0" if not has_im else body if at < 0 else body[at:]
    if im == "" or im == "+" or im == "-":
        im += "1"
    if body != "".join(body.split()):
        raise ValueError("complex() arg is a malformed string")
    try:
        return complex(float(re), float(im))
    except ValueError:
        raise ValueError("complex() arg is a malformed string")


def need_rows(count: int, columns: int):
    if count == 0:
        raise ValueError(f"not enough values to unpack (expected {columns}, got 0)")


def zip_star(rows):
    if len(rows) == 0:
        return [[x for x in row] for row in rows]
    n = len(rows[0])
    for row in rows:
        n = min(n, len(row))
    columns = [[row[i] for row in rows] for i in range(n)]
    for column in columns:
        torch.prim_mark(column, 256)  # RT_MARK_TUPLE
    return columns


def join_star(xs, separator: str) -> str:
    return separator.join([str(x) for x in xs])


def pairs_of(rows):
    for row in rows:
        if len(row) != 2:
            raise ValueError(f"dictionary update sequence element #0 has length {len(row)}; 2 is required")
    return [(row[0], row[1]) for row in rows]
