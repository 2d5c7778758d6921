"""heapq"""


def move_up(heap, top: int, start: int):
    at = start
    x = heap[at]
    while at > top:
        up = (at - 1) // 2
        if not x < heap[up]:
            break
        heap[at] = heap[up]
        at = up
    heap[at] = x


def move_down(heap, top: int):
    """CPython's way: a hole goes down to a leaf first, so that equal items lie as they do there."""
    at = top
    n = len(heap)
    x = heap[at]
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n:
            if not heap[child] < heap[child + 1]:
                child += 1
        heap[at] = heap[child]
        at = child
    heap[at] = x
    move_up(heap, top, at)


def heappush(heap, item):
    heap.append(item)
    move_up(heap, 0, len(heap) - 1)


def heappop(heap):
    if len(heap) == 0:
        raise IndexError("index out of range")
    last = heap.pop()
    if len(heap) == 0:
        return last
    top = heap[0]
    heap[0] = last
    move_down(heap, 0)
    return top


def heapify(heap):
    for i in range(len(heap) // 2 - 1, -1, -1):
        move_down(heap, i)


def heappushpop(heap, item):
    if len(heap) > 0 and heap[0] < item:
        top = heap[0]
        heap[0] = item
        move_down(heap, 0)
        return top
    return item


def heapreplace(heap, item):
    top = heap[0]
    heap[0] = item
    move_down(heap, 0)
    return top


def nsmallest(n: int, iterable, key=None):
    return sorted(iterable, key=key)[:max(n, 0)]


def nlargest(n: int, iterable, key=None):
    return sorted(iterable, key=key, reverse=True)[:max(n, 0)]


def merge(*iterables, key=None, reverse: bool = False):
    """All of them are read first: CPython's result, but not its laziness."""
    rows = [list(xs) for xs in iterables]
    if key is None:
        ranks = rows
    else:
        ranks = [[key(x) for x in row] for row in rows]
    at = [0 for row in rows]
    out = rows[0][:0]
    left = sum([len(row) for row in rows])
    while left > 0:
        best = -1
        for i in range(len(rows)):
            if at[i] < len(rows[i]):
                if best < 0:
                    best = i
                elif reverse:
                    if ranks[best][at[best]] < ranks[i][at[i]]:
                        best = i
                elif ranks[i][at[i]] < ranks[best][at[best]]:
                    best = i
        out.append(rows[best][at[best]])
        at[best] += 1
        left -= 1
    return out
