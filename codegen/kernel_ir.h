/* codegen/kernel_ir.h - kernels as data, between the IR and the emitters.
 *
 * A kernel is an iteration space (dims) and a graph of scalar nodes over it. Each dim has a role:
 *
 *   OUTER   parallel: the work items are the product of the outer dims (and of chunks of the
 *           vector dim where that is not reduced)
 *   SERIAL  a loop inside an item; reductions run over serial dims
 *   VECTOR  one at most, the last dim: the contiguous one, walked in vectors
 *
 * If the vector dim is reduced too (`reduces_vector`: rows of softmax, layer norm), a reduction
 * gives one scalar an item; otherwise (sums over leading dims, pooling, depthwise convolution) it
 * gives a vector. A reduction ends a stage: nodes that depend on it run in a later pass over the
 * row. A contraction adds a matrix product whose tile is the node TILE and whose epilogue is the
 * same kind of graph over (batch dims..., m, n).
 *
 * Sizes, strides and offsets are rt_dim: a constant, or a size expression of the module that the
 * host program computes and passes as a parameter. */
#ifndef CODEGEN_KERNEL_IR_H
#define CODEGEN_KERNEL_IR_H

#include "codegen/codegen_internal.h"
#include "codegen/weight_formats.h"

enum { KN_MAX_DIMS = 8, KN_MAX_STAGES = 8 };

typedef enum kn_code {
    KN_CONSTANT, /* number or integer, by type */
    KN_PARAM,    /* scalar operand number `param` of the kernel's parameters */
    KN_LOAD,     /* args[0]: int64 node, elements behind the access; -1 none */
    KN_TILE,     /* the contraction's result at (m, n) */
    KN_INDEX,    /* int64: the index in dim `dim` */
    KN_COUNT,    /* int64: how many window positions of this item are inside the input */
    KN_CAST,
    KN_REDUCE,
#define SCALAR(id, arity, opencl, cuda) KN_##id,
#include "codegen/scalar_ops.def"
    KN_CODE_COUNT
} kn_code;

typedef enum kn_reduction { KN_RED_SUM, KN_RED_PROD, KN_RED_MAX, KN_RED_MIN, KN_RED_ARGMAX,
                            KN_RED_ARGMIN, KN_RED_ANY, KN_RED_ALL } kn_reduction;

typedef struct kn_access {
    int buffer; /* index into the kernel's buffers */
    rt_dtype element;
    rt_dim offset;               /* elements */
    rt_dim strides[KN_MAX_DIMS]; /* elements per step in each dim */
} kn_access;

typedef struct kn_node {
    kn_code code;
    rt_dtype type; /* in registers; bool is one bit, half types never appear */
    int args[3];   /* nodes, -1 none */
    double number;
    int64_t integer;
    int param;
    int dim;
    kn_access access;
    kn_reduction reduction;
    /* Filled by kn_schedule. */
    uint32_t dims;  /* which dims the value varies with */
    int stage;      /* the pass in which it can be computed */
    bool is_heavy;  /* has a transcendental function under it */
    bool is_needed;
    int64_t save;   /* byte offset in scratch of the row that keeps it for later stages; -1 */
} kn_node;

typedef struct kn_store {
    int node;
    kn_access access;
} kn_store;

typedef enum kn_role { KN_OUTER, KN_SERIAL, KN_VECTOR } kn_role;

/* A serial dim may be a window of pooling or convolution over an outer dim: position
 * out * stride + index * dilation - padding must lie in [0, input); others are skipped. */
typedef struct kn_window {
    bool is_on;
    int outer;
    int64_t stride, dilation, padding;
    rt_dim input;
} kn_window;

typedef struct kn_dim {
    rt_dim size;
    kn_role role;
    kn_window window;
} kn_dim;

/* Where the left operand of a contraction comes from:
 *   ROWS         it is a matrix
 *   CONVOLUTION  pixels of an image, at an address for each row and tap
 *   LINES        lines of an image, copied with their padding: then rows lie in constant steps
 *   PACKED       rows, or patches of an image, copied one by one */
typedef enum kn_left_kind {
    KN_LEFT_ROWS,
    KN_LEFT_CONVOLUTION,
    KN_LEFT_LINES,
    KN_LEFT_PACKED
} kn_left_kind;

typedef struct kn_contraction {
    bool is_on;
    int batch_count;  /* dims 0 .. batch_count-1 are batch, then m, then n */
    rt_dim k;         /* length of the sum, all taps together */
    kn_left_kind left_kind;
    bool has_pixel_rows; /* ROWS that are pixels of images: one row is not to be expected */
    kn_access left;   /* strides of batch dims and m; row elements lie left_k apart */
    rt_dim left_k;
    /* CONVOLUTION, LINES, and PACKED where kernel_h > 0: m is (image, out_h, out_w) row-major, the
     * sum's term of a tap and channel number c * term_c + h * term_h + w * term_w. */
    rt_dim image_stride, h_stride, w_stride; /* of the input, elements; channels left_k apart */
    rt_dim input_h, input_w, out_h, out_w;
    int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
    /* Where out_h is a batch dim, because lines of the result lie apart: m is out_w alone. */
    bool has_line_dim;
    int line_dim;
    int64_t channels; /* of one tap */
    int64_t term_c, term_h, term_w;
    int winograd;     /* CONVOLUTION: outputs of a tile along a side (winograd.c); 0: a direct sum */
    rt_dim images;    /* of m, where winograd is on */
    int zeros_buffer; /* a constant buffer of zeros, [channels] */
    /* Bytes times int8, TILE is int32 (emit_llvm_integer.c): rows are copied, right's strides count
     * bytes. `zero` is an int32 node that does not vary: what counts as nothing in the left operand. */
    bool is_integer;
    int zero;
    /* Right operand: a packed constant ([batch...][panels][k][16]; of winograd
     * [panels][place of a tile][channel][16]), or packed at run time. */
    bool right_is_packed;
    bool right_has_parts; /* of a packed constant: kn_weights_have_parts; asked of targets with AMX alone */
    kn_format format; /* of a packed constant, else FLOAT32; with BFLOAT16_DOT rows are PACKED or
                       * LINES */
    kn_access right;  /* packed: offset and strides of batch dims; else also n */
    rt_dim right_k;
} kn_contraction;

/* Attention: result[m] = sum over n of softmax(score)[m, n] * value[n], in one pass over n. The dims
 * are batch dims, then n (the keys, SERIAL), then m (the queries, VECTOR); `score` is a graph over
 * them around TILE, the product of a query and a key. */
typedef struct kn_attention {
    bool is_on;
    int batch_count;
    int64_t depth, width;    /* of a query and a key; of a value */
    kn_access query, key, value, result; /* strides of batch dims; then one for rows, one along them */
    rt_dim query_row, query_step, key_row, key_step, value_row, value_step, result_row, result_step;
    int score;
    double scale;            /* of TILE, put into the queries */
    int ends;                /* buffer of int64[queries]: keys from there on weigh nothing; -1 none */
    bool zeroes_empty;       /* a query that sees no key gets zeros, not NaN */
} kn_attention;

/* A kernel may have several parts (the pieces of a concatenation), each a nest over items of its
 * own; parameters and constants are the first part's. */
typedef struct kn_kernel {
    ts_arena *arena;
    ir_module *ir;
    struct kn_kernel *owner; /* the first part; NULL: this is it */
    struct kn_kernel *next;  /* the next part */
    const cg_variant *variant; /* never NULL */
    kn_dim dims[KN_MAX_DIMS];
    int dim_count;
    bool reduces_vector;
    kn_node *nodes;
    int node_count, node_capacity;
    kn_store *stores;
    int store_count, store_capacity;
    kn_contraction contraction;
    kn_attention attention;
    /* Interface. */
    cg_param *params;
    int param_count, param_capacity;
    cg_constant *constants;
    int constant_count, constant_capacity;
    int buffer_count; /* operands and results; constants follow */
    /* Filled by kn_schedule. */
    int stage_count;
    int64_t chunk; /* elements of the vector dim an item covers; 0: all */
    rt_dim work_items; /* of all parts in the first one */
    rt_dim part_items; /* of this part */
    rt_dim scratch_bytes;
    bool alternates; /* in a loop, its items may go from the last to the first every other time */
    int64_t grain;
    double flops, bytes;
} kn_kernel;

kn_kernel *kn_make(ts_arena *arena, ir_module *ir, int buffer_count);
kn_node kn_blank(kn_code code, rt_dtype type); /* without arguments */
int kn_add_node(kn_kernel *k, kn_node node); /* equal nodes are shared */
int kn_constant_number(kn_kernel *k, rt_dtype type, double value);
int kn_constant_integer(kn_kernel *k, rt_dtype type, int64_t value);
int kn_op1(kn_kernel *k, kn_code code, int a);
int kn_op2(kn_kernel *k, kn_code code, int a, int b); /* both of one type */
int kn_op3(kn_kernel *k, kn_code code, int a, int b, int c);
int kn_cast(kn_kernel *k, int a, rt_dtype type);
int kn_load(kn_kernel *k, const kn_access *access);
int kn_load_at(kn_kernel *k, const kn_access *access, int offset); /* int64 node: elements behind */
int kn_reduce(kn_kernel *k, kn_reduction reduction, int a);
void kn_add_store(kn_kernel *k, int node, const kn_access *access);
int kn_add_constant(kn_kernel *k, const void *data, size_t bytes); /* -> its buffer's index */
int kn_dim_param(kn_kernel *k, rt_dim d);    /* index among the parameters of a symbolic size */
int kn_scalar_param(kn_kernel *k, size_t operand);
/* Makes parameters of those that are no constants; an error where one is unknown, naming what needs it. */
ts_status kn_need_sizes(kn_kernel *k, const rt_dim *sizes, size_t count, const char *what) TS_WARN_UNUSED;

/* Sizes. */
rt_dim kn_dim_add(const kn_kernel *k, rt_dim a, rt_dim b);
rt_dim kn_dim_mul(const kn_kernel *k, rt_dim a, rt_dim b);
rt_dim kn_dim_max(const kn_kernel *k, rt_dim a, rt_dim b);
rt_dim kn_dim_min(const kn_kernel *k, rt_dim a, rt_dim b);
rt_dim kn_dim_ceil_div(const kn_kernel *k, rt_dim a, int64_t b);
/* Blocks of one size, whole multiples of `unit`, so that there are about `blocks`: a short one would wait for the
 * weights as long. */
rt_dim kn_dim_even_block(const kn_kernel *k, rt_dim size, rt_dim blocks, int64_t unit);
bool kn_dim_same(const kn_kernel *k, rt_dim a, rt_dim b);
static inline int64_t kn_known_or(rt_dim d, int64_t otherwise) { return rt_dim_is_constant(d) ? d : otherwise; }
static inline int64_t kn_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Makes dims d and d+1 (out_h and out_w of a convolution) one; false where a load or store keeps
 * them apart. Nodes and stores must be complete. */
bool kn_merge_pixels(kn_kernel *k, int d);
/* schedule.c: merges dims, decides stages, chunks, saved rows. */
ts_status kn_schedule(kn_kernel *k, const cg_target_info *target) TS_WARN_UNUSED;
/* emit_llvm_kernel.c: the body of `function`. UNSUPPORTED before emitting. */
ts_status kn_check_supported(kn_kernel *k, const cg_target_info *target) TS_WARN_UNUSED;
void kn_emit_llvm(cg_unit *unit, kn_kernel *k, LLVMValueRef function);

#endif
