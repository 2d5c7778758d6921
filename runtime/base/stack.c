/* runtime/base/stack.c - where the stack of a thread ends. */
#define _GNU_SOURCE
#include "runtime/base/stack.h"

#include <pthread.h>

uintptr_t ts_stack_limit(size_t reserve) {
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return 0;
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    return (uintptr_t)low + (size / 4 < reserve ? size / 4 : reserve);
}
