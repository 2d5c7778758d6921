/* codegen/emit_llvm_kernel.h - what the files that print kernels through LLVM share.
 *
 * Values are vectors of `width` lanes where they vary with the vector dim and plain scalars where
 * they do not; width 1 gives scalars everywhere. No IR pipeline runs afterwards, so what should be
 * outside of a loop is put there here. */
#ifndef CODEGEN_EMIT_LLVM_KERNEL_H
#define CODEGEN_EMIT_LLVM_KERNEL_H

#include "codegen/kernel_ir.h"

enum { KN_MAX_CARRIED = 40 };

typedef struct kn_emitter {
    cg_unit *unit;
    kn_kernel *k;
    LLVMBuilderRef b;
    LLVMValueRef function;
    int lanes; /* of this target: float32 lanes of a register */
    int width; /* of vector values being emitted: lanes, or 1 */
    LLVMValueRef *buffers;
    LLVMValueRef *params; /* int64 each; NULL until used: they are loaded at the entry */
    LLVMValueRef scratch;
    LLVMValueRef begin, end; /* items of this part */
    LLVMBasicBlockRef entry; /* parameters are loaded here, before its terminator */
    LLVMValueRef index[KN_MAX_DIMS];
    LLVMValueRef mask; /* <width x i1>: lanes that exist; NULL all */
    LLVMValueRef *memo;   /* [node_count]: values of this scope */
    LLVMValueRef *bases;  /* [node_count]: address of a load but for serial and vector dims */
    LLVMValueRef *store_bases;
    LLVMValueRef row_index; /* linear index over serial and vector dims, lane 0 (saved rows) */
    LLVMValueRef windows_inside; /* i1: no window of this item reaches out of the image; or NULL */
    LLVMValueRef count;     /* KN_COUNT of this item */
    int stage;              /* the pass being emitted */
    LLVMValueRef tile;      /* address of the tile's vector at this row and column */
    LLVMValueRef tile_value; /* that vector itself, where tiles stay in registers; or NULL */
} kn_emitter;

/* ---- emit_llvm_scalar.c ---- */
LLVMTypeRef kn_llvm_type(kn_emitter *e, rt_dtype type, int width);
LLVMTypeRef kn_vector_of(LLVMTypeRef scalar, int width); /* scalar itself for width 1 */
LLVMValueRef kn_splat(kn_emitter *e, LLVMValueRef scalar, int width);
LLVMValueRef kn_float_constant(kn_emitter *e, rt_dtype type, int width, double value);
LLVMValueRef kn_int_constant(kn_emitter *e, rt_dtype type, int width, int64_t value);
LLVMValueRef kn_fma(kn_emitter *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c);
/* Asks for the line at an address, to be read soon, into the second-level cache. */
void kn_prefetch(kn_emitter *e, LLVMValueRef address);
LLVMValueRef kn_intrinsic(kn_emitter *e, const char *name, LLVMTypeRef *types, unsigned type_count,
                          LLVMValueRef *args, unsigned arg_count);
LLVMValueRef kn_emit_scalar(kn_emitter *e, kn_code code, rt_dtype type, int width,
                            LLVMValueRef *args);
/* e^x for float32 x of at most 0 as a softmax needs it: the error is 8e-8 and 2e-8 |x| of the result, and 0
 * stands for what is below 2^-126. */
LLVMValueRef kn_emit_softmax_exp(kn_emitter *e, int width, LLVMValueRef x);
LLVMValueRef kn_emit_cast(kn_emitter *e, LLVMValueRef v, rt_dtype from, rt_dtype to, int width);
bool kn_scalar_is_heavy(kn_code code);
bool kn_scalar_has_type(kn_code code, rt_dtype type); /* type of the arguments */
/* Memory: width elements from address on, `stride` elements apart (i64, NULL: adjacent). */
LLVMValueRef kn_emit_load(kn_emitter *e, LLVMValueRef address, LLVMValueRef stride,
                          rt_dtype element, int width, LLVMValueRef mask);
/* Of each lane the element at its own offset (i64 vector, elements). */
LLVMValueRef kn_emit_gather(kn_emitter *e, LLVMValueRef address, LLVMValueRef offsets,
                            rt_dtype element, int width, LLVMValueRef mask);
void kn_emit_store(kn_emitter *e, LLVMValueRef value, LLVMValueRef address, LLVMValueRef stride,
                   rt_dtype element, int width, LLVMValueRef mask);

/* ---- emit_llvm_loop.c: control flow and addresses ---- */
typedef struct kn_loop {
    LLVMBasicBlockRef before, head, exit;
    LLVMValueRef index, phis[KN_MAX_CARRIED], exit_phis[KN_MAX_CARRIED];
    LLVMValueRef end, step, initial[KN_MAX_CARRIED];
    int carried;
    int64_t trips; /* how often it usually runs: where registers run short, code generation asks; 0: not known */
    LLVMValueRef *saved_memo;
} kn_loop;

LLVMValueRef kn_i64(kn_emitter *e, int64_t value);
LLVMValueRef kn_add(kn_emitter *e, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef kn_sub(kn_emitter *e, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef kn_mul(kn_emitter *e, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef kn_min(kn_emitter *e, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef kn_max(kn_emitter *e, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef kn_size(kn_emitter *e, rt_dim d);
LLVMValueRef kn_param_bits(kn_emitter *e, int param); /* int64, loaded at the entry */
LLVMValueRef kn_address(kn_emitter *e, LLVMValueRef base, LLVMValueRef bytes);
LLVMValueRef kn_element(kn_emitter *e, LLVMValueRef base, LLVMValueRef index, int64_t bytes);
/* for (index = begin; index < end; index += step) with carried values; values made inside are
 * forgotten at its end. The body may run zero times. */
void kn_loop_begin(kn_emitter *e, kn_loop *loop, LLVMValueRef begin, LLVMValueRef end, int64_t step,
                   LLVMValueRef *carried, int count);
void kn_loop_end(kn_emitter *e, kn_loop *loop, LLVMValueRef *next);
/* A loop that runs once where the condition holds. */
void kn_when_begin(kn_emitter *e, kn_loop *loop, LLVMValueRef condition, LLVMValueRef *carried, int count);
LLVMValueRef kn_lane_mask(kn_emitter *e, LLVMValueRef left, int width); /* lane < left */
void kn_emitter_start(kn_emitter *e, cg_unit *unit, kn_kernel *k, LLVMValueRef function);
void kn_emitter_use(kn_emitter *e, kn_kernel *part); /* goes on to another part */

/* ---- emit_llvm_kernel.c: nodes and nests ---- */
LLVMValueRef kn_value(kn_emitter *e, int node);        /* scalar or vector, by its dims */
LLVMValueRef kn_vector_value(kn_emitter *e, int node); /* splat where needed */
void kn_emit_store_node(kn_emitter *e, int store);
void kn_prepare_bases(kn_emitter *e, uint32_t dims); /* addresses from the indices of `dims` */
bool kn_is_uniform(const kn_emitter *e, const kn_node *n);
/* Bases `count` steps of dim d behind these. */
void kn_step_bases(kn_emitter *e, LLVMValueRef *bases, LLVMValueRef *store_bases, int d,
                   int64_t count);
LLVMValueRef kn_lane_numbers(kn_emitter *e); /* int64: 0, 1, ... of a vector */
/* The positions of a window that lie inside of the input, for the index of its outer dim. */
void kn_window_range(kn_emitter *e, const kn_dim *d, LLVMValueRef *begin, LLVMValueRef *end);
void kn_emit_count(kn_emitter *e); /* sets e->count */

/* Items of a nest whose one outer dim are `lines` lines, `step` elements apart, of what buffer holds: how many a
 * line has; 0: it is another nest. */
int64_t kn_items_of_line(const kn_kernel *k, int buffer, rt_dim lines, rt_dim step);

/* ---- emit_llvm_reduction.c ---- */
typedef struct kn_reduction_set {
    int nodes[KN_MAX_CARRIED];
    int count;   /* reductions of this stage */
    int carried; /* values carried for one copy */
} kn_reduction_set;

bool kn_reduces_to_position(const kn_node *n); /* argmax, argmin: value and position are carried */
LLVMValueRef kn_lane(kn_emitter *e, LLVMValueRef v, int i);
LLVMValueRef kn_neutral(kn_emitter *e, const kn_node *reduce, rt_dtype type, int width);
LLVMValueRef kn_combine(kn_emitter *e, const kn_node *reduce, rt_dtype type, LLVMValueRef v,
                        LLVMValueRef sum, int width);
void kn_reductions_of(const kn_emitter *e, int stage, kn_reduction_set *out);
void kn_initial_values(kn_emitter *e, const kn_reduction_set *set, LLVMValueRef *acc);
void kn_accumulate(kn_emitter *e, const kn_reduction_set *set, LLVMValueRef *acc);
/* acc holds `copies` sets; the results become the nodes' values. */
void kn_finish_rows(kn_emitter *e, const kn_reduction_set *set, LLVMValueRef *acc, int copies);

/* ---- emit_llvm_window.c: depthwise convolution and pooling; false: a nest like others ---- */
bool kn_plan_window(kn_kernel *k, const cg_target_info *target);
bool kn_emit_window(kn_emitter *e);
/* Items of a window over one image: `chunks` of each block of `lines` output lines. */
typedef struct kn_window_items {
    rt_dim blocks, out_lines;
    int64_t lines, chunks;
    int64_t taps;     /* lines of the window */
    kn_window window; /* over lines */
} kn_window_items;
bool kn_window_items_of(const kn_kernel *k, const cg_target_info *target, kn_window_items *out);

/* ---- emit_llvm_contraction.c ---- */
ts_status kn_plan_contraction(kn_kernel *k, const cg_target_info *target) TS_WARN_UNUSED;
/* Items of one product: `groups` (of columns) of each block of `rows` rows, which are `most` at most. */
typedef struct kn_row_items {
    rt_dim blocks, rows, most;
    int64_t groups;
} kn_row_items;
bool kn_row_items_of(kn_kernel *k, const cg_target_info *target, kn_row_items *out);
void kn_emit_contraction(kn_emitter *e);

/* ---- emit_llvm_attention.c ---- */
ts_status kn_plan_attention(kn_kernel *k, const cg_target_info *target) TS_WARN_UNUSED;
void kn_emit_attention(kn_emitter *e);
/* The square of `count` vectors of `count` floats, count a power of two, transposed in place. */
void kn_transpose(kn_emitter *e, LLVMValueRef *rows, int count);

#endif
