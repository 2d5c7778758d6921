/* ir/ir.h - the program as data: types, values, operators, blocks, functions, modules.
 *
 * SSA with structured control flow. Everything lives in the compilation's arena and is never freed
 * singly; removing an operator unlinks it. Construct through ir_build_*, change through
 * ir_replace_uses / ir_op_remove / ir_op_set_operand, so that use lists stay right.
 * docs/ir.md has the grammar and the verifier's rules. Not thread-safe. */
#ifndef IR_IR_H
#define IR_IR_H

#include "runtime/base/arena.h"
#include "runtime/base/buffer.h"
#include "runtime/base/map.h"
#include "runtime/base/status.h"
#include "runtime/ops/ops.h"
#include "runtime/values/value.h"

typedef struct ir_type ir_type;
typedef struct ir_class ir_class;
typedef struct ir_value ir_value;
typedef struct ir_op ir_op;
typedef struct ir_block ir_block;
typedef struct ir_function ir_function;
typedef struct ir_module ir_module;

/* ================= types (ir/type.c): interned, compared by pointer ================= */

typedef enum ir_kind {
#define KIND(name, text, is_mutable, holds) IR_##name,
#include "ir/type_kinds.def"
} ir_kind;

typedef enum ir_layout {
    IR_LAYOUT_ANY,          /* strides unknown: the value must be asked */
    IR_LAYOUT_CONTIGUOUS,   /* row-major, dense */
    IR_LAYOUT_CHANNELS_LAST /* rank 3, 4, 5: N, spatial, C in memory order, dense */
} ir_layout;

struct ir_type {
    ir_kind kind;
    /* tensor */
    rt_dtype dtype;     /* or RT_DTYPE_UNKNOWN */
    int rank;           /* or -1 */
    const rt_dim *dims; /* [rank]; handles are the module's size expressions */
    ir_layout layout;
    /* containers */
    const ir_type *const *args;
    size_t arg_count;
    const ir_class *class_;
    ts_str name; /* VAR; INT that stands for something: "torch.dtype", a fact as a tensor's dtype is one */
    int depth;   /* of nesting; what would nest deeper than IR_TYPE_DEPTH is Any */
    uint32_t weight; /* types in it, each as often as it stands there; beyond IR_TYPE_WEIGHT: Any */
    bool is_mutable; /* its values, or parts of them, can be written to */
};
enum { IR_TYPE_DEPTH = 64, IR_TYPE_WEIGHT = 1 << 16 };

const ir_type *ir_type_simple(ir_module *m, ir_kind kind); /* kinds without parameters */
const ir_type *ir_type_meant(ir_module *m, rt_meaning meaning); /* INT, which the front end knows to be a dtype, ... */
rt_meaning ir_type_meaning(const ir_type *t);
const ir_type *ir_type_tensor(ir_module *m, rt_dtype dtype, int rank, const rt_dim *dims,
                              ir_layout layout);
const ir_type *ir_type_any_tensor(ir_module *m); /* "Tensor": nothing known */
const ir_type *ir_type_list(ir_module *m, const ir_type *element);
const ir_type *ir_type_dict(ir_module *m, const ir_type *key, const ir_type *value);
const ir_type *ir_type_tuple(ir_module *m, const ir_type *const *items, size_t count,
                             const ir_class *named); /* named may be NULL */
const ir_type *ir_type_optional(ir_module *m, const ir_type *t); /* flattens */
const ir_type *ir_type_union(ir_module *m, const ir_type *const *items, size_t count); /* flattens,
                    dedups; becomes Optional, the single member or Any where that is the same */
const ir_type *ir_type_future(ir_module *m, const ir_type *t);
const ir_type *ir_type_of_class(ir_module *m, const ir_class *class_); /* CLASS ENUM or TUPLE */

/* Every value of `sub` is one of `super`, tensor facts ignored in both (so Tensor and float32[2]
 * are subtypes of one another; List and Dict are invariant but for such facts). int is no float. */
bool ir_type_is_subtype(const ir_type *sub, const ir_type *super);
/* The same with facts: float32[2] under Tensor and float32[?], not the other way round. */
bool ir_type_is_refinement(const ir_type *sub, const ir_type *super);
/* Equal once tensor facts are forgotten. */
bool ir_type_same_shape_of(const ir_type *a, const ir_type *b);
const ir_type *ir_type_forget(ir_module *m, const ir_type *t); /* tensors inside become Tensor */
/* The smallest type that holds both; Any at worst. Tensor facts that differ become unknown. */
const ir_type *ir_type_join(ir_module *m, const ir_type *a, const ir_type *b);
/* t without None: T for Optional[T]. */
const ir_type *ir_type_without_none(ir_module *m, const ir_type *t);
bool ir_type_admits_none(const ir_type *t);
bool ir_type_is_scalar(const ir_type *t); /* NONE BOOL INT FLOAT: held unboxed by codegen */
/* The type of a boxed value; a tensor's with its dtype and sizes. Lists take their elements' join;
 * an empty list is List[Tensor] as in TorchScript unless told otherwise. */
const ir_type *ir_type_of_value(ir_module *m, rt_value v);
void ir_type_print(const ir_module *m, const ir_type *t, ts_buffer *out);
ts_str ir_type_text(ir_module *m, const ir_type *t);
/* "float32[N,3]", "List[int]", "Optional[Tensor]", a class's name. Letters are size symbols of the
 * module, made when new; "N=1..64" bounds one. */
ts_status ir_type_parse(ir_module *m, ts_str text, const ir_type **out) TS_WARN_UNUSED;

/* ================= symbolic sizes (ir/size_expr.c) ================= */

rt_dim ir_dim_symbol(ir_module *m, ts_str name);       /* the same name, the same symbol */
rt_dim ir_dim_fresh(ir_module *m);                     /* a symbol of its own: "s0", "s1" */
void ir_dim_set_bounds(ir_module *m, rt_dim symbol, int64_t low, int64_t high);
/* The range that bounds of symbols imply; INT64_MIN and INT64_MAX where there is none. */
bool ir_dim_bounds(const ir_module *m, rt_dim d, int64_t *out_low, int64_t *out_high);
/* What d is where each symbol is `symbol`, or what its bounds have next to that; -1: unknown, or less than 0. */
int64_t ir_dim_estimate(const ir_module *m, rt_dim d, int64_t symbol);
const rt_dim_algebra *ir_dim_algebra(ir_module *m);    /* normal form: equal means same handle */
void ir_dim_print(const ir_module *m, rt_dim d, ts_buffer *out); /* 3, N, 2*N+1, N//4, ? */
/* Which symbol a handle is, or an empty string where it is an expression. */
ts_str ir_dim_symbol_name(const ir_module *m, rt_dim d);

typedef enum ir_dim_kind { IR_DIM_CONST, IR_DIM_SYMBOL, IR_DIM_ADD, IR_DIM_MUL, IR_DIM_FLOORDIV,
                           IR_DIM_MAX, IR_DIM_MIN } ir_dim_kind;
typedef struct ir_dim_node { /* for those who emit code that computes a size */
    ir_dim_kind kind;
    int64_t constant;
    ts_str symbol;
    rt_dim a, b;
} ir_dim_node;
ir_dim_node ir_dim_get(const ir_module *m, rt_dim d);

/* ================= classes ================= */

typedef struct ir_field {
    ts_str name;
    const ir_type *type;
    bool is_parameter, is_buffer, is_constant;
    bool is_inferred; /* not annotated: the front end may find a wider type */
    rt_value constant; /* where is_constant: Final[...] in the class text */
} ir_field;

typedef struct ir_method {
    ts_str name;
    ir_function *function; /* NULL until somebody asked the frontend for it */
} ir_method;

struct ir_class {
    rt_class base; /* what the running program knows; base.info points back here */
    const ir_field *fields;
    size_t field_count;
    ir_method *methods;
    size_t method_count, method_capacity;
    const ir_type *type;
    rt_value *enum_members; /* rt_enum values, for kind ENUM */
    size_t enum_member_count;
    void *frontend; /* the frontend's own */
};

/* ================= values, operators, blocks ================= */

typedef struct ir_use {
    ir_op *op;
    size_t operand;
} ir_use;

struct ir_value {
    const ir_type *type;
    ts_str name;      /* "" or the user's name; printed %name, made unique by the printer */
    ir_op *def;       /* the operator that makes it, or NULL for a block's parameter */
    ir_block *block;  /* the block whose parameter it is, or NULL */
    size_t index;     /* which result or parameter */
    ir_use *uses;
    size_t use_count, use_capacity;
    int64_t buffer_offset; /* set by plan_memory: bytes in the arena; -1 none */
    uint32_t number;  /* scratch for passes and the printer */
};

/* Structural operators; CORE is everything in core_ops.def. Columns: name in the text. */
#define IR_OPCODES(X)                                                                              \
    X(CORE, "")                                                                                    \
    X(CONST, "const")             /* -> value; attr value */                                       \
    X(IF, "if")                   /* (cond:bool); regions then, else; results = yields */          \
    X(LOOP, "loop")               /* (max:int, cond:bool, carried...); region(i, carried...) */    \
                                  /* yields (cond, carried...); results carried */                 \
    X(YIELD, "yield")             /* ends a region's block */                                      \
    X(RETURN, "return")           /* ends a function's block */                                    \
    X(RAISE, "raise")             /* (message:str[, exception:str]); attr name = exception type   */ \
                                  /* where it is known; what follows in */                         \
                                  /* the block is not reached */                                   \
    X(CALL, "call")               /* (args...); attr function */                                   \
    X(TRY_CALL, "try_call")       /* (args...) -> ok:bool, exception:str, message:str, result: what */ \
                                  /* @function raises becomes values; attr function */             \
    X(CALL_METHOD, "call_method") /* (object, args...); attr name: by the object's own class */    \
    X(TUPLE, "tuple") X(TUPLE_GET, "tuple_get") /* attr integer */                                 \
    X(TUPLE_UNPACK, "tuple_unpack")                                                                \
    X(LIST, "list")               /* (items...) -> List[T] */                                      \
    X(LIST_UNPACK, "list_unpack") /* (list) -> n results; ValueError on another count */           \
    X(DICT, "dict")               /* (k, v, k, v, ...) */                                          \
    X(GET_ATTR, "get_attr")       /* (object); attr name */                                        \
    X(SET_ATTR, "set_attr")       /* (object, value); attr name */                                 \
    X(NEW_OBJECT, "new_object")   /* attr type: an instance with fields unset */                   \
    X(IS_INSTANCE, "is_instance") /* (value) -> bool; attr types */                                \
    X(CAST, "cast")               /* (value) -> other type, known to hold: no check */             \
    X(CHECK_CAST, "check_cast")   /* (value) -> other type; TypeError where it does not hold */    \
    X(UNINITIALIZED, "uninitialized") /* a value never read */                                     \
    X(REFINE, "refine")           /* (tensor) -> bool: has the dtype, rank, sizes of attr type */  \
    X(DIM, "dim")                 /* -> int: value of the symbolic size attr integer (rt_dim) */   \
    X(KERNEL, "kernel")           /* (inputs...) -> outputs; one region: the fused body, */        \
                                  /* parameters = operands, yield = results; attr kernel */

typedef enum ir_opcode {
#define X(name, text) IR_OP_##name,
    IR_OPCODES(X)
#undef X
        IR_OPCODE_COUNT
} ir_opcode;

typedef enum ir_kernel_kind {
    IR_KERNEL_POINTWISE, /* elementwise, views and row reductions in one loop nest */
    IR_KERNEL_CONTRACTION, /* one matrix product, convolution or attention with its epilogue */
    IR_KERNEL_STREAM       /* two kernels; what the first makes goes to the second band by band */
} ir_kernel_kind;

struct ir_op {
    ir_opcode opcode;
    rt_op core; /* where opcode is CORE */
    ir_value **operands;
    size_t operand_count, operand_capacity;
    ir_value **results;
    size_t result_count;
    ir_block **regions; /* one block each */
    size_t region_count;
    /* attributes, by opcode */
    rt_value value;               /* CONST: retained by the module */
    ts_str weight_name;           /* CONST of a tensor: where it came from: "layer1.0.weight" */
    ts_str name;                  /* GET_ATTR SET_ATTR CALL_METHOD RAISE */
    ir_function *function;        /* CALL */
    const ir_type *type;          /* NEW_OBJECT REFINE UNINITIALIZED */
    const ir_type *const *types;  /* IS_INSTANCE */
    size_t type_count;
    int64_t integer;              /* TUPLE_GET DIM */
    ir_kernel_kind kernel_kind;   /* KERNEL */
    ts_place place;
    ir_block *block;
    ir_op *previous, *next;
    uint32_t number, position; /* scratch for passes */
};

struct ir_block {
    ir_value **parameters;
    size_t parameter_count, parameter_capacity;
    ir_op *first, *last; /* last is the terminator: YIELD or RETURN */
    ir_op *parent;       /* the operator whose region this is, or NULL */
    ir_function *function;
};

/* What an input of an entry must satisfy: the program raises where it does not, whatever path it
 * takes. Checked where the entry is called. */
typedef enum ir_need_kind {
    IR_NEED_DTYPE,    /* value: a bit for each dtype that will do */
    IR_NEED_RANK,     /* value: a bit for each rank below IR_NEED_RANKS; what has more dims will do */
    IR_NEED_SIZE,     /* size dim is value */
    IR_NEED_MULTIPLE, /* of value */
    IR_NEED_SAME,     /* size dim is size other_dim of the input `other` */
    IR_NEED_COUNT
} ir_need_kind;
enum { IR_NEED_RANKS = 9 };

typedef struct ir_need {
    ir_need_kind kind;
    int dim, other_dim; /* negative: from the end. No such dim: nothing is asked */
    size_t input, other; /* parameters */
    int64_t value;
    bool is_own; /* the program raises an exception of its own: listed, not checked */
} ir_need;

struct ir_function {
    ts_str name; /* "forward", "__torch__.f" */
    ir_module *module;
    ir_block *body;
    const ir_type *return_type;
    ts_str *parameter_names;
    rt_value *defaults; /* [parameter count]; UNINITIALIZED where there is none */
    bool is_entry;
    bool is_library; /* of frontend/library: inlined by decompose */
    bool is_kept;    /* calls of it stay calls: see passes/inline.c */
    ir_need *needs; /* of an entry: see passes/infer_needs.c */
    size_t need_count;
    ts_place place;
    uint32_t number;
    ir_function *next;
};

struct ir_module {
    ts_arena *arena;
    ir_function *functions, *last_function;
    rt_value root;       /* the module object that was compiled, or NONE for functions alone */
    ir_class **classes;
    size_t class_count, class_capacity;
    ts_map function_names, class_names; /* of those in the module; ir/module.c keeps them */
    ts_map function_numbers, class_numbers; /* the last of NAME_1, NAME_2 ... that was given, by NAME */
    /* Values that IR constants hold are retained here and released with the module. */
    rt_value *retained;
    size_t retained_count, retained_capacity;
    /* Objects and containers that were read from text: emptied first, since they may form cycles. */
    rt_value *made;
    size_t made_count, made_capacity;
    struct ir_type_table *types;
    struct ir_size_table *sizes;
    struct ir_schema_table *schemas;
};

/* ================= module and builder (ir/module.c, ir/op.c, ir/builder.c) ================= */

ir_module *ir_module_make(ts_arena *arena);
void ir_module_deinit(ir_module *m); /* releases the retained values, not the arena */
void ir_module_retain(ir_module *m, rt_value v); /* keeps a reference until deinit */
ir_function *ir_function_make(ir_module *m, ts_str name);
void ir_function_rename(ir_function *f, ts_str name);
/* The name, or the first of NAME_1, NAME_2 ... that none has. */
ts_str ir_function_free_name(ir_module *m, ts_str name);
ts_str ir_class_free_name(ir_module *m, ts_str name);
/* Only the first `count` classes stay. */
void ir_class_forget(ir_module *m, size_t count);
ir_function *ir_function_find(const ir_module *m, ts_str name);
void ir_function_remove(ir_module *m, ir_function *f);
void ir_function_restore(ir_module *m, ir_function *f); /* back, with what it calls, if it was removed */
ir_value *ir_function_add_parameter(ir_function *f, ts_str name, const ir_type *type,
                                    rt_value default_or_uninitialized);
ir_class *ir_class_make(ir_module *m, ts_str qualified_name, rt_class_kind kind);
ir_class *ir_class_find(const ir_module *m, ts_str qualified_name);

/* Where new operators go. */
typedef struct ir_builder {
    ir_module *module;
    ir_block *block;
    ir_op *before; /* insert before this one; NULL: at the end */
    ts_place place;
} ir_builder;

ir_block *ir_block_make(ir_module *m, ir_op *parent, ir_function *f);
ir_value *ir_block_add_parameter(ir_module *m, ir_block *b, const ir_type *t, ts_str name);

/* The general constructor: results get the given types; CORE operators go through ir_build_core. */
ir_op *ir_build_op(ir_builder *b, ir_opcode opcode, ir_value *const *operands, size_t count,
                   const ir_type *const *result_types, size_t result_count);
/* Checks count and types of operands against the schema; result types from the schema (tensors
 * unknown; infer_types refines them). All arguments are given, defaults included. */
ir_op *ir_build_core(ir_builder *b, rt_op op, ir_value *const *operands, size_t count);
/* The same for one of a single result. */
ir_value *ir_build_core1(ir_builder *b, rt_op op, ir_value *const *operands, size_t count);
ir_value *ir_build_const(ir_builder *b, rt_value v); /* retains v */
ir_value *ir_build_const_typed(ir_builder *b, rt_value v, const ir_type *t);
ir_value *ir_build_int(ir_builder *b, int64_t i);
/* A size as an int: a constant, or the number that a symbol stands for. */
ir_value *ir_build_size(ir_builder *b, rt_dim d);
ir_value *ir_build_bool(ir_builder *b, bool v);
ir_value *ir_build_float(ir_builder *b, double f);
ir_value *ir_build_none(ir_builder *b);
ir_value *ir_build_str(ir_builder *b, ts_str s);
/* IF and LOOP come with empty regions to be filled; add results with ir_op_add_result. The loop's
 * region has the trip counter as its only parameter yet: add one for each carried value with the
 * type that holds for all iterations. */
ir_op *ir_build_if(ir_builder *b, ir_value *condition);
ir_op *ir_build_loop(ir_builder *b, ir_value *max, ir_value *condition, ir_value *const *carried,
                     size_t count);
/* KERNEL with an empty region whose parameters have the inputs' types; add yield and results. */
ir_op *ir_build_kernel(ir_builder *b, ir_kernel_kind kind, ir_value *const *inputs, size_t count);
void ir_build_yield(ir_builder *b, ir_value *const *values, size_t count);
void ir_build_return(ir_builder *b, ir_value *const *values, size_t count); /* one value */
ir_value *ir_op_add_result(ir_module *m, ir_op *op, const ir_type *type, ts_str name);
void ir_op_add_operand(ir_module *m, ir_op *op, ir_value *v);
void ir_op_set_operand(ir_module *m, ir_op *op, size_t index, ir_value *v);
void ir_op_remove_operand(ir_module *m, ir_op *op, size_t index);
void ir_op_remove_result(ir_op *op, size_t index); /* must be unused */
void ir_op_remove(ir_op *op);                      /* results must be unused; regions go too */
void ir_op_move_before(ir_op *op, ir_op *before);
void ir_block_remove_parameter(ir_block *b, size_t index); /* must be unused */
void ir_replace_uses(ir_module *m, ir_value *old, ir_value *with);
/* Copies op (with regions) to the builder's place, mapping operands through map[value->number]
 * where a caller's numbering says so; see ir/clone.c. */
typedef struct ir_value_map ir_value_map; /* ir_value* -> ir_value* */
ir_value_map *ir_value_map_make(ts_arena *arena);
void ir_value_map_set(ir_value_map *map, const ir_value *from, ir_value *to);
ir_value *ir_value_map_get(const ir_value_map *map, const ir_value *from); /* NULL if absent */
ir_op *ir_clone_op(ir_builder *b, const ir_op *op, ir_value_map *map);
/* Clones the operators of a block but its terminator; the terminator's operands, mapped, go to
 * out_values[terminator operand_count]. */
void ir_clone_block_body(ir_builder *b, const ir_block *block, ir_value_map *map,
                         ir_value **out_values);

/* ================= questions ================= */

bool ir_is_const(const ir_value *v);             /* made by a CONST */
bool ir_const_value(const ir_value *v, rt_value *out); /* borrowed */
bool ir_const_int(const ir_value *v, int64_t *out);
bool ir_const_bool(const ir_value *v, bool *out);
bool ir_const_double(const ir_value *v, double *out); /* int or float */
bool ir_const_int_list(const ir_value *v, int64_t *out, size_t max, size_t *out_count); /* const
                                        list, or LIST of constants */
bool ir_same_constant(rt_value a, rt_value b); /* same tag and contents, floats by bits; objects,
                                                  tensors and dicts only if they are the same */
bool ir_is_core(const ir_op *op, rt_op core);
/* Effects of an operator as a whole, its regions included. */
enum {
    IR_EFFECT_WRITES = 1, /* changes a tensor, list, dict or object that others may see */
    IR_EFFECT_READS = 2,  /* its result depends on such memory */
    IR_EFFECT_RAISES = 4,
    IR_EFFECT_RANDOM = 8,
    IR_EFFECT_PRINTS = 16,
    IR_EFFECT_ALIASES = 32, /* a result shares memory with an operand */
    IR_EFFECT_FRESH = 64    /* a result is new mutable memory: list, dict, object, tensor */
};
uint32_t ir_effects(const ir_op *op);
/* The effects column of a CORE operator, less what its constant arguments and inferred types rule
 * out: no draws and no state where training is false, no exceptions about shapes once they fit. */
uint32_t ir_column_effects(const ir_op *op);
/* A core operator writes memory of that operand: its schema says so, or it is a running statistic of
 * a normalisation that may train, of which PyTorch's schemas say nothing. */
bool ir_op_writes(const ir_op *op, size_t operand);
/* The container that may hold itself once op has run: the one that it writes to, or the copy that it
 * makes; NULL: none can. */
const ir_value *ir_op_closes_cycle(const ir_op *op);
bool ir_is_removable(const ir_op *op); /* nobody would notice if it were gone (results unused) */
/* A function of its operands' values: no writes, draws, exceptions or prints; makes no list, dict
 * or object and reads none (but for stable lists). Such operators may be
 * merged and moved as long as no operator in between writes a tensor that they read or alias:
 * where the function writes tensors at all, ask passes/alias.h. */
bool ir_is_pure(const ir_op *op);
/* A constant, LIST or fresh result that only operators see which neither write it nor hand it on. */
bool ir_list_is_stable(const ir_value *v);
bool ir_type_is_mutable(const ir_type *t); /* tensors, lists, dicts, objects, or holds such */
bool ir_dominates(const ir_op *a, const ir_op *b); /* a runs before b whenever b runs */

/* ================= schemas (ir/schema.c) ================= */

/* Type variables of a schema: matching `t[]` with List[int] binds t. */
typedef struct ir_type_bindings {
    ts_str names[4];
    const ir_type *types[4];
    size_t count;
} ir_type_bindings;
/* True where a value of `actual` may be given for `pattern` (variables bound or joined on the way;
 * an int is a Scalar, anything is an Any, an Optional takes its inside). */
bool ir_type_match(ir_module *m, const ir_type *pattern, const ir_type *actual,
                   ir_type_bindings *bindings);
/* Bound variables replaced; unbound ones become Any. */
const ir_type *ir_type_substitute(ir_module *m, const ir_type *pattern,
                                  const ir_type_bindings *bindings);
const ir_type *ir_type_var(ir_module *m, ts_str name);

typedef struct ir_schema_arg {
    ts_str name;
    const ir_type *type;
    bool has_default, is_keyword_only;
    rt_value default_value;
    bool is_written;        /* "!" */
    char alias;             /* letter of its alias set, or 0 */
    int64_t fixed_length;   /* int[2]: a single int stands for the list; else -1 (int[]), 0 none */
} ir_schema_arg;

typedef struct ir_schema {
    ts_str name;          /* "add" */
    ts_str overload;      /* "Tensor" or "" */
    ir_schema_arg *args;
    size_t arg_count;
    const ir_type **results;
    char *result_aliases; /* letter, '*' for "may alias anything inside the arguments", or 0 */
    size_t result_count;
    bool is_variadic;
} ir_schema;

const ir_schema *ir_schema_of(ir_module *m, rt_op op); /* parsed at first use */
ts_status ir_schema_parse(ir_module *m, ts_str text, ir_schema *out) TS_WARN_UNUSED;

/* ================= text (ir/print.c, ir/parse.c), verifier, evaluator ================= */

/* The whole module as .tsir. Tensor constants beyond 8 elements are listed in out_weights (name ->
 * tensor, in order) for the safetensors file beside; out_weights may be NULL. */
typedef struct ir_weight_list {
    ts_str *names;
    rt_value *tensors;
    size_t count, capacity;
} ir_weight_list;
void ir_print_module(ir_module *m, ts_buffer *out, ir_weight_list *out_weights);
const char *ir_opcode_name(ir_opcode opcode);
void ir_print_function(ir_module *m, const ir_function *f, ts_buffer *out);
void ir_print_op(ir_module *m, const ir_op *op, ts_buffer *out);
/* find_weight may be NULL where the text names none. */
typedef ts_status (*ir_find_weight)(void *user, ts_str name, rt_value *out);
ts_status ir_parse_module(ir_module *m, ts_str file, ts_str text, ir_find_weight find_weight,
                          void *user) TS_WARN_UNUSED;
ts_status ir_verify_module(ir_module *m) TS_WARN_UNUSED;
ts_status ir_verify_function(ir_module *m, const ir_function *f) TS_WARN_UNUSED;

/* Runs a function with the reference kernels. args borrowed, *out owned. op_budget counts executed
 * operators (0: no limit); TS_ERR_UNSUPPORTED when it is spent. */
typedef struct ir_evaluator_options {
    rt_context *context;
    uint64_t op_budget;
    int depth_limit;
    /* Called after each executed operator; may be NULL. A non-NULL status stops the run. */
    ts_status (*observe)(void *user, const ir_op *op, const rt_value *results);
    void *user;
} ir_evaluator_options;
ts_status ir_evaluate(ir_module *m, const ir_function *f, const rt_value *args, size_t arg_count,
                      const ir_evaluator_options *options, rt_value *out) TS_WARN_UNUSED;
/* One operator whose operands are all given (constant folding); outs[result_count]. */
ts_status ir_evaluate_op(ir_module *m, const ir_op *op, const rt_value *operands,
                         const ir_evaluator_options *options, rt_value *outs) TS_WARN_UNUSED;
bool ir_value_is(rt_value v, const ir_type *t); /* isinstance, with element types; facts ignored */

/* "x.size(-1) == 784": for those who call an entry. */
void ir_need_print(const ir_function *f, const ir_need *need, ts_buffer *out);
/* A line for each fast path of an entry: what it takes for granted of the inputs. */
void ir_print_assumptions(const ir_function *f, ts_buffer *out);

/* ================= inference over facts (ir/facts.c) ================= */

/* The fact of a type / of a constant, and a type from a fact and the schema's type. */
rt_fact ir_fact_of_type(ts_arena *scratch, const ir_type *t);
rt_fact ir_fact_of_value(ir_module *m, ts_arena *scratch, const ir_value *v);
const ir_type *ir_type_from_fact(ir_module *m, const rt_fact *fact, const ir_type *declared);

#endif
