/* runtime/format/host_abi.h - what compiled code sees of a run. Offsets of the members up to
 * `interrupt`, the order of services.def and the layouts of rt_value, rt_list, rt_tuple,
 * rt_object and rt_tensor are compiled into artifacts: a change raises TSM_ABI.
 *
 * A compiled function is
 *
 *   ts_status f(rt_run *run, const rt_value *args, rt_value *out);
 *
 * args are borrowed; *out is written with an owned value only on success. Frames of boxed values
 * live on the run's frame stack, which holds zeroes (NONE) above frame_top. */
#ifndef RUNTIME_FORMAT_HOST_ABI_H
#define RUNTIME_FORMAT_HOST_ABI_H

#include "runtime/values/value.h"

struct rt_context;
typedef struct rt_run rt_run;
typedef ts_status (*rt_compiled)(rt_run *run, const rt_value *args, rt_value *out);
/* See codegen/kernel.h. */
typedef void (*rt_compiled_kernel)(void *const *buffers, const int64_t *params, int64_t begin,
                                   int64_t end, void *scratch);

/* What a launch needs beside its operands; a constant of the code image. */
typedef struct rt_launch {
    int64_t grain, scratch_bytes;
    uint32_t kernel; /* row of the program's kernel table */
    uint32_t place;
    /* For device_launch: how many operands, results, constants and parameters there are. The area
     * holds their data pointers in that order (a constant's: offset in the weights), then the
     * parameters, then the constants' sizes in bytes, then a tensor for each operand and result. */
    uint32_t operands, results, constants, params;
    uint32_t on_device; /* 0: by the CPU's kernel all the same */
    uint32_t alternates; /* 1: every other time from the last item to the first */
} rt_launch;

typedef struct rt_services {
#define SERVICE(name, signature, result, parameters) result(*name) parameters;
#include "runtime/format/services.def"
} rt_services;

struct rt_run {
    const rt_services *services;
    const rt_value *constants;
    const char *weights;
    char *arena;
    rt_value *frame_top, *frame_end;
    uintptr_t stack_limit; /* below it: RecursionError */
    int64_t depth_left;
    _Atomic uint32_t interrupt; /* not 0: call poll */
    uint32_t padding;
    /* what follows is the runtime's own (runtime/runtime_internal.h) */
};

/* What --emit=obj and --emit=so export: the parts of a .tsm as symbols of a linked program. */
struct tsrt_linked_model {
    uint32_t abi, format; /* TSM_ABI, TSM_FORMAT */
    uint64_t features;    /* TSM_CPU_ bits that the code needs */
    const char *level;
    const void *program; /* the PROGRAM section */
    uint64_t program_bytes;
    const char *weights;
    uint64_t weight_bytes;
    const rt_compiled *functions;
    uint64_t function_count;
    /* Reference kernels by operator row; NULL (a shared library): found by name. */
    ts_status (*const *kernels)(struct rt_context *context, const rt_value *args, rt_value *outs);
};

#endif
