/* runtime/runtime_internal.h - models, sessions and values behind tsrt.h. */
#ifndef RUNTIME_RUNTIME_INTERNAL_H
#define RUNTIME_RUNTIME_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/base/arena.h"
#include "runtime/format/host_abi.h"
#include "runtime/format/tsm.h"
#include "runtime/ops/ops.h"
#include "runtime/ops/quantized_lift.h"
#include "runtime/tsrt.h"
#include "runtime/values/tensor.h"

/* ---- the tables of a program (program.c) ---- */

typedef struct rt_model_class { /* base.info points to the class itself */
    rt_class base;
    uint32_t number;
} rt_model_class;

typedef struct rt_model_type {
    tsm_type_kind kind;
    rt_dtype dtype;
    int rank; /* -1 unknown */
    int layout;
    const rt_class *class_;
    uint32_t *args;
    uint32_t arg_count;
    int64_t *dims;
    ts_str text;
} rt_model_type;

typedef struct rt_storage_row {
    uint64_t offset, bytes;
    bool is_mutable;
} rt_storage_row;

typedef struct rt_node { /* a counted constant; refs are rt_values whose payload is a node number */
    uint32_t tag;
    const rt_class *class_;
    ts_str text;
    double re, im;
    rt_value *refs;
    size_t ref_count;
    /* TENSOR */
    rt_dtype dtype;
    bool requires_grad, is_conjugated;
    uint32_t storage; /* + 1 */
    int64_t offset, zero_point; /* scale: re; quantized per channel: refs to scales, zero points */
    int64_t axis;
    int rank;
    int64_t *sizes, *strides;
} rt_node;

typedef struct rt_port {
    ts_str name;
    uint32_t type;
    uint32_t default_constant; /* + 1; 0 none */
} rt_port;

/* What inputs must satisfy: see ir_need. */
typedef struct rt_need {
    tsm_need_kind kind;
    uint32_t input, other;
    int dim, other_dim; /* negative: from the end */
    int64_t value;
} rt_need;

typedef struct rt_entry {
    ts_str name;
    uint32_t function;
    uint32_t self_constant; /* + 1; 0: none */
    rt_port *ports;
    size_t port_count;
    uint32_t result_type;
    uint32_t kernel_count, compiled_count, dynamic_count;
    ts_str dynamic_text;
    rt_need *needs;
    size_t need_count;
    ts_str need_text; /* a line for each need */
    ts_str own_text, fast_text; /* what the program itself raises for; what fast paths expect */
} rt_entry;

typedef struct rt_method {
    uint32_t class_, name, function;
} rt_method;

typedef struct rt_kernel_row {
    ts_str name;
    uint32_t place;
    double flops, bytes;
} rt_kernel_row;

typedef struct rt_program {
    ts_str *meta_keys, *meta_values;
    size_t meta_count;
    ts_str *strings;
    size_t string_count;
    ts_place *places;
    size_t place_count;
    rt_model_class *classes;
    size_t class_count;
    rt_model_type *types;
    size_t type_count;
    ts_str *symbols;
    size_t symbol_count;
    rt_storage_row *storages;
    size_t storage_count;
    rt_node *nodes;
    size_t node_count;
    rt_value *constants; /* refs */
    size_t constant_count;
    ts_str *operators;
    uint32_t *operator_args; /* how many each takes */
    rt_operator_lift *operator_lifts; /* NULL where quantized kernels are not linked in */
    size_t operator_count;
    ts_str *functions;
    size_t function_count;
    rt_method *methods;
    size_t method_count;
    rt_kernel_row *kernels;
    size_t kernel_count;
    uint32_t header_count;
    int64_t arena_bytes;
    rt_entry *entries;
    size_t entry_count;
} rt_program;

/* Decodes and checks every index; memory of the arena, texts in the section itself. */
ts_status rt_program_read(ts_arena *arena, const void *data, size_t length, uint64_t weight_bytes,
                          rt_program *out) TS_WARN_UNUSED;

/* ---- models ---- */

struct tsrt_model {
    atomic_size_t references;
    ts_arena *arena;
    const unsigned char *data;
    size_t length;
    bool is_mapped;
    const tsm_section *sections;
    size_t section_count;
    const tsm_section *code_section;
    unsigned char *code; /* executable */
    size_t code_length;
    const char *weights;
    uint64_t weight_bytes;
    rt_program program;
    const rt_kernel *kernels; /* by operator row */
    const rt_compiled *functions;
    void *kernel_memory, *function_memory; /* where those two lie on the heap; or NULL */
    const char *level;
    uint64_t load_ns;
};

ts_status rt_model_make(tsrt_model **out) TS_WARN_UNUSED;
/* Reads the tables; weight_bytes is set before. */
ts_status rt_model_read_program(tsrt_model *m, const void *data, size_t length) TS_WARN_UNUSED;
/* Finds the reference kernels of a program's operators: the only place that pulls in the whole
 * operator table (dynamic.c). */
ts_status rt_model_bind_operators(tsrt_model *model) TS_WARN_UNUSED;
/* Features of this processor, TSM_CPU_ bits, and their names (cpu.c). */
int rt_cpu_count(void); /* by affinity and cgroup */
uint64_t rt_now_ns(void);

/* ---- memory of kernel results (pool.c) ---- */

typedef struct rt_pool rt_pool; /* counted: a storage keeps its pool */
ts_status rt_pool_make(rt_pool **out) TS_WARN_UNUSED;
void rt_pool_release(rt_pool *pool);
rt_account *rt_pool_account(rt_pool *pool); /* for rt_account_use */
void rt_pool_set_limit(rt_pool *pool, uint64_t bytes);
uint64_t rt_pool_limit(const rt_pool *pool); /* 0: none */
ts_status rt_pool_storage(rt_pool *pool, size_t bytes, rt_storage **out) TS_WARN_UNUSED;
void rt_pool_statistics(rt_pool *pool, uint64_t *out_held, uint64_t *out_peak,
                        uint64_t *out_allocations);

/* ---- threads (threads.c) ---- */

/* Runs part(user, index) for index in [0, count), part 0 on the caller's thread, others on the
 * process's pool where it is free; else all on the caller's. Returns when all are done. */
void rt_parallel(int count, void (*part)(void *user, int index), void *user);

/* ---- sessions ---- */

typedef struct rt_profile rt_profile;
typedef struct rt_device rt_device;

/* Containers that may have come to hold themselves; the list holds a reference of each (cycles.c). */
typedef struct rt_cycles {
    rt_value *items;
    size_t count, capacity;
    size_t hand;  /* where the look for entries that nobody else holds goes on */
    size_t additions;
    size_t count_limit;
    uint64_t memory_limit; /* of what sessions hold: beyond either, a search is due within a run */
    bool is_due;  /* something was noted since the last run */
} rt_cycles;

struct tsrt_session {
    rt_run run; /* first: services get the run and see the session */
    tsrt_model *model;
    rt_context context;
    rt_value *constants;
    rt_value *nodes; /* all constants that have references */
    rt_storage **storages;
    rt_value *frame;
    rt_storage *arena;   /* planned buffers; NULL where there are none */
    rt_tensor **headers; /* preallocated, by number */
    rt_pool *pool;
    rt_device *device; /* NULL: the CPU alone */
    void **scratch; /* by part of a launch */
    size_t *scratch_bytes;
    uint8_t *turns; /* by kernel that alternates: 1 where it went backward last */
    int thread_count;
    int depth_limit;
    bool has_stack_limit; /* of stack_thread */
    pthread_t stack_thread;
    uintptr_t stack_limit;
    uint64_t deadline_ns;
    _Atomic uint32_t is_cancelled;
    tsrt_text_function print;
    void *print_user;
    uint64_t run_count, last_run_ns, dynamic_calls;
    rt_profile *profile; /* NULL: not recording */
    rt_cycles cycles;
};

static inline tsrt_session *rt_session_of(rt_run *run) { return (tsrt_session *)(void *)run; }

extern const rt_services rt_service_table;
/* A container was written to, so that it may now hold itself. */
void rt_cycles_note(tsrt_session *session, rt_value v);
/* Frees what was noted and only holds itself. True: the result may hold itself, as may the
 * arguments, whose handles are marked. */
bool rt_cycles_end_run(tsrt_session *session, tsrt_value *const *args, size_t arg_count,
                       rt_value result);
/* Releases constants and what was noted, also those that hold each other, and the arrays. */
void rt_cycles_close(rt_cycles *c, rt_value *nodes, size_t node_count);
/* Releases a value and frees what it reaches where that only holds itself. */
void rt_cycles_release_value(rt_value v);
/* The session's own objects from the program's constants (instantiate.c). */
ts_status rt_instantiate(tsrt_session *session) TS_WARN_UNUSED;
/* CANCELLED where a cancel or a deadline asks for it. */
ts_status rt_check_interrupt(tsrt_session *session) TS_WARN_UNUSED;
ts_place rt_place(const tsrt_model *model, uint32_t place);

/* ---- devices (device.c): memory there mirrors storages; whoever reads or writes host memory of a
 * tensor asks first ---- */

/* Opens the device that the options and the model ask for; none for the CPU. */
ts_status rt_device_open(tsrt_session *session, const char *device, bool may_fall_back)
    TS_WARN_UNUSED;
void rt_device_close(tsrt_session *session);
/* Host memory of the tensors in v is made current; will_write: the device's copy is void after. */
ts_status rt_device_to_host(tsrt_session *session, rt_value v, bool will_write) TS_WARN_UNUSED;
/* After a run: mirrors of what others own go. */
ts_status rt_device_end_run(tsrt_session *session) TS_WARN_UNUSED;

/* ---- types at run time (types.c) ---- */

bool rt_type_holds(const tsrt_model *model, uint32_t type, rt_value v, int depth);
/* "float32[3,5]", "int": for messages. */
enum { RT_DESCRIPTION = 200 };
void rt_describe(rt_value v, char *out, size_t capacity);
/* Whether the inputs (one for each port) satisfy what the entry needs; INVALID_INPUT says what does not
 * (needs.c). */
ts_status rt_check_needs(const rt_entry *e, const rt_value *inputs) TS_WARN_UNUSED;
/* An argument made fit for a parameter: *out is owned. symbols: sizes bound so far, -1 unbound. */
ts_status rt_port_convert(const tsrt_model *model, const rt_port *port, rt_value v,
                          int64_t *symbols, rt_value *out) TS_WARN_UNUSED;

/* ---- values ---- */

struct tsrt_value {
    atomic_size_t references;
    rt_value value;
    tsrt_model *model; /* kept for classes that the value refers to; may be NULL */
    tsrt_value *whole; /* kept: the handle of what this is an item of, where that may hold itself */
    atomic_bool may_cycle;
};

/* Takes v (released on an error). model may be NULL. */
ts_status rt_value_wrap(rt_value v, tsrt_model *model, tsrt_value **out) TS_WARN_UNUSED;

/* ---- profile.c ---- */
enum { RT_PROFILE_KERNEL, RT_PROFILE_OPERATOR, RT_PROFILE_RUN };
void rt_profile_add(tsrt_session *session, int kind, uint32_t row, uint32_t place,
                    uint64_t begin_ns, uint64_t end_ns);
void rt_profile_release(rt_profile *profile);

/* The layouts of error handles are one. */
static inline tsrt_status *rt_out(ts_status status) { return (tsrt_status *)(void *)status; }

#endif
