/* runtime/base/stack.h - how much of the stack of this thread is left. */
#ifndef RUNTIME_BASE_STACK_H
#define RUNTIME_BASE_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/compiler.h"

/* The address that this thread's stack should not grow below: `reserve` bytes above its end, a quarter
 * of it at most. 0 where that is not known. Asking costs tens of microseconds on the main thread (it
 * reads /proc/self/maps). */
uintptr_t ts_stack_limit(size_t reserve);
/* Whether the caller lies below a limit of its own thread. */
#define TS_STACK_IS_LOW(limit) ((uintptr_t)TS_FRAME_ADDRESS() < (limit))

#endif
