"""heapq"""


def heappush(heap, item):
    heap.append(item)
    at = len(heap) - 1
    while at > 0:
        up = (at - 1) // 2
        if not heap[at] < heap[up]:
            break
        x = heap[at]
        heap[at] = heap[up]
        heap[up] = x
        at = up


def heappop(heap):
    if len(heap) == 0:
        raise IndexError("index out of range")
    last = heap.pop()
    if len(heap) == 0:
        return last
    top = heap[0]
    heap[0] = last
    sift_down(heap, 0)
    return top


def sift_down(heap, start: int):
    at = start
    n = len(heap)
    while True:
        least = at
        for child in range(2 * at + 1, min(2 * at + 3, n)):
            if heap[child] < heap[least]:
                least = child
        if least == at:
            break
        x = heap[at]
        heap[at] = heap[least]
        heap[least] = x
        at = least


def heapify(heap):
    for i in range(len(heap) // 2 - 1, -1, -1):
        sift_down(heap, i)


def heappushpop(heap, item):
    if len(heap) > 0 and heap[0] < item:
        top = heap[0]
        heap[0] = item
        sift_down(heap, 0)
        return top
    return item


def heapreplace(heap, item):
    top = heap[0]
    heap[0] = item
    sift_down(heap, 0)
    return top


def nsmallest(n: int, iterable, key=None):
    return sorted(iterable, key=key)[:n]


def nlargest(n: int, iterable, key=None):
    return sorted(iterable, key=key, reverse=True)[:n]
