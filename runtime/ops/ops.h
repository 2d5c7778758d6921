/* runtime/ops/ops.h - the operator contract: what the compiler and the runtime both know.
 *
 * core_ops.def has one row per overload, named as PyTorch names it:
 *
 *   OP(id, "schema", infer, ref, lower, grad, effects)
 *
 *   id       add_Tensor for "add.Tensor", relu for "relu": OP_<id> is its number
 *   schema   PyTorch's text with aliasing and defaults; Scalar is a number
 *   infer    rt_infer_<infer>: dtype, rank and sizes of the results from facts about arguments
 *   ref      rt_ref_<ref>: the reference kernel over boxed values; any rank, strides, dtype
 *   lower    the codegen family: pointwise reduction contraction view copy index scalar none ...
 *            (LOWER_<lower>); none: always the reference kernel
 *   grad     script none zero via_pure
 *   effects  0, or a sum of EFFECT_RANDOM EFFECT_RAISES EFFECT_STATE EFFECT_PRINTS; writes and
 *            aliases come from the schema
 *
 * Rows cover tensors and also the operators of numbers, strings, lists and dicts (add.int,
 * append.t, upper), as TorchScript's registry does. */
#ifndef RUNTIME_OPS_OPS_H
#define RUNTIME_OPS_OPS_H

#include "runtime/base/arena.h"
#include "runtime/values/tensor.h"
#include "runtime/values/value.h"

typedef enum rt_op {
#define OP(id, schema, infer, ref, lower, grad, effects) OP_##id,
#include "runtime/ops/core_ops.def"
    OP_COUNT
} rt_op;

enum { EFFECT_RANDOM = 1, EFFECT_RAISES = 2, EFFECT_STATE = 4, EFFECT_PRINTS = 8 };

/* Families of lowering. Codegen has one file for most; `scalar` is host arithmetic. */
#define RT_LOWERINGS(X)                                                                            \
    X(none) X(pointwise) X(reduction) X(scan) X(contraction) X(pooling) X(softmax) X(norm)         \
    X(view) X(copy) X(index) X(factory) X(scalar)

typedef enum rt_lowering {
#define X(name) LOWER_##name,
    RT_LOWERINGS(X)
#undef X
        LOWER_COUNT
} rt_lowering;

typedef enum rt_grad { GRAD_none, GRAD_script, GRAD_zero, GRAD_via_pure } rt_grad;

/* ---- what a kernel runs in ---- */

/* Everything of a run that is not a value. One user at a time. */
typedef struct rt_context {
    rt_generator *generator; /* the default generator: torch.manual_seed's */
    void (*print)(void *user, ts_str text); /* where print() goes; NULL: nowhere */
    void *print_user;
    bool grad_enabled;
    int thread_budget;
    void *session; /* the runtime's session, NULL at compile time */
} rt_context;

/* args are borrowed, one for each argument of the schema in order, defaults filled in; outs are
 * written with owned values, one for each result, only on success. */
typedef ts_status (*rt_kernel)(rt_context *context, const rt_value *args, rt_value *outs);

/* ---- facts: what is known of a value before the run ---- */

/* A size or another int: RT_DIM_UNKNOWN: nothing is known; below RT_DIM_HANDLES: a handle of the
 * algebra's symbolic expressions; everything else is that constant itself (so the -1 of dim=-1 is
 * -1). Constants below RT_DIM_HANDLES are given as unknown. */
typedef int64_t rt_dim;
#define RT_DIM_UNKNOWN INT64_MIN
#define RT_DIM_HANDLES (-((int64_t)1 << 62))
static inline bool rt_dim_is_constant(rt_dim d) { return d >= RT_DIM_HANDLES; }
static inline bool rt_dim_is_symbolic(rt_dim d) {
    return d < RT_DIM_HANDLES && d != RT_DIM_UNKNOWN;
}

/* Every function gives RT_DIM_UNKNOWN where an operand is unknown or the result overflows. */
typedef struct rt_dim_algebra {
    void *user;
    rt_dim (*add)(void *user, rt_dim a, rt_dim b);
    rt_dim (*sub)(void *user, rt_dim a, rt_dim b);
    rt_dim (*mul)(void *user, rt_dim a, rt_dim b);
    rt_dim (*floordiv)(void *user, rt_dim a, rt_dim b);
    rt_dim (*max)(void *user, rt_dim a, rt_dim b);
    rt_dim (*min)(void *user, rt_dim a, rt_dim b);
    bool (*equal)(void *user, rt_dim a, rt_dim b); /* known to be equal */
} rt_dim_algebra;

typedef enum rt_fact_kind {
    RT_FACT_UNKNOWN, /* anything */
    RT_FACT_NONE,
    RT_FACT_BOOL,
    RT_FACT_INT,    /* also dtypes, layouts */
    RT_FACT_FLOAT,
    RT_FACT_COMPLEX,
    RT_FACT_STR,
    RT_FACT_DEVICE,
    RT_FACT_TENSOR,
    RT_FACT_LIST,   /* list or tuple */
    RT_FACT_OTHER
} rt_fact_kind;

typedef struct rt_fact {
    rt_fact_kind kind;
    bool is_known;     /* BOOL, INT, FLOAT, STR: the value is known (INT: dim may be symbolic) */
    rt_dim dim;        /* BOOL, INT; also the element of a known 0-d integer tensor */
    double f;          /* FLOAT */
    ts_str s;          /* STR */
    rt_dtype dtype;    /* TENSOR: RT_DTYPE_UNKNOWN or known */
    int rank;          /* TENSOR: -1 or known */
    const rt_dim *dims; /* TENSOR: [rank] */
    bool count_known;  /* LIST, OTHER */
    size_t count;
    const struct rt_fact *items; /* LIST, and OTHER of packed parameters (packed.h): [count], or NULL; if !count_known items[0] (when items is
                                    not NULL) holds for each element */
} rt_fact;

/* What a rule says of two sizes that are not known to be equal. */
typedef enum rt_match {
    RT_MATCH_MUST,     /* equal, or the operator raises */
    RT_MATCH_OR_ONE,   /* equal, or one of them is 1, or it raises */
    RT_MATCH_MULTIPLE  /* the first is a multiple of the second, or it raises */
} rt_match;

typedef struct rt_infer_context {
    ts_arena *arena; /* for dims and items of results */
    const rt_dim_algebra *algebra;
    void (*match)(void *user, rt_dim a, rt_dim b, rt_match how); /* or NULL */
    void *match_user;
} rt_infer_context;

/* Fills one fact per result. What cannot be known is left unknown; an error is returned only for
 * what must fail at run time whatever the unknown is (rank mismatch of known ranks, ...): the
 * compiler then reports it with its place as a warning and keeps the run-time error. */
typedef ts_status (*rt_infer)(const rt_infer_context *ic, const rt_fact *args, size_t arg_count,
                              rt_fact *outs, size_t out_count);

/* ---- the table ---- */
typedef struct rt_op_info {
    const char *schema; /* "add.Tensor(Tensor self, ...) -> Tensor" */
    rt_infer infer;
    rt_kernel ref;
    rt_lowering lower;
    rt_grad grad;
    uint32_t effects;
} rt_op_info;

const rt_op_info *rt_op_get(rt_op op);
/* "add.Tensor": the schema's text up to its parenthesis. */
ts_str rt_op_name(rt_op op);
/* The operator of a full name ("add.Tensor"); OP_COUNT if there is none. */
rt_op rt_op_find(ts_str name);

#endif
