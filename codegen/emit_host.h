/* codegen/emit_host.h - shared by the emit_host_*.c files: the emission of one function.
 *
 * int, float and bool are SSA values of LLVM; every other value lives boxed (rt_value) in a slot
 * of the function's frame, which lies on the run's frame stack. Rules that keep frames right:
 *  - a slot that is not in use holds NONE; the value stored there is owned by the slot;
 *  - a value is released right after the last operator of its own block that uses it (a use inside
 *    a region counts as a use by the operator that has the region), so buffers come back early;
 *  - on an error all slots are released by one loop at the function's error exit. */
#ifndef CODEGEN_EMIT_HOST_H
#define CODEGEN_EMIT_HOST_H

#include "codegen/host_program.h"
#include "runtime/format/host_abi.h"

typedef enum host_kind {
    HOST_UNSET,
    HOST_NATIVE,   /* llvm: i64, double or i1, by the value's type */
    HOST_NONE,     /* a value of type None */
    HOST_SLOT,     /* owned, in frame slot `slot` */
    HOST_BORROWED, /* llvm: pointer to an rt_value that outlives the function's run */
    HOST_ARGUMENT, /* the same: the function's argument number `slot` */
    HOST_CONST     /* the program's constant number `slot` */
} host_kind;

typedef struct host_value {
    host_kind kind;
    bool is_dense; /* a compiled kernel made it: it has the layout that its type states */
    size_t slot;
    LLVMValueRef llvm;
} host_value;

typedef struct host_death { /* values that die after an operator: a list */
    const ir_value *value;
    struct host_death *next;
} host_death;

typedef struct host_symbol { /* a symbolic size whose number is at hand */
    rt_dim dim;
    LLVMValueRef value; /* i64 */
    bool is_guess;      /* from a refine: for comparisons by later refines only */
    size_t slot;        /* of the frame, where pieces find it; SIZE_MAX none */
    size_t piece;       /* in whose function of LLVM the value is */
} host_symbol;

enum { HOST_PART = 64 /* values given to a service at once */ };

enum {
#define SERVICE(name, signature, result, parameters) SERVICE_##name,
#include "runtime/format/services.def"
    SERVICE_COUNT
};

typedef struct host_module { /* one CPU level */
    cg_unit *unit;
    cg_program *program;
    LLVMTypeRef service_types[SERVICE_COUNT];
    LLVMTypeRef function_type;
    LLVMValueRef *functions; /* by index of program->functions */
    size_t function_capacity;
    const struct host_scalar *scalar_of[OP_COUNT + 1]; /* native lowerings, found at first use */
    uint64_t scalar_known[OP_COUNT / 64 + 1];
    struct host_counts *counts; /* by function; NULL where another level counted already */
    struct host_kernel *kernels; /* in the order in which emission meets them */
    size_t kernel_count, kernel_capacity, kernel_cursor, kernel_scan;
    size_t header_cursor;
} host_module;

typedef struct host_body {
    uint64_t hash[2]; /* 0: there is none */
} host_body;

typedef struct host_kernel { /* an IR_OP_KERNEL, lowered */
    const ir_op *op;
    cg_kernel *kernel; /* NULL: its operators run one by one */
    uint64_t hash;
    host_body body;
} host_kernel;

typedef struct host_counts {
    uint32_t kernels, compiled, dynamic;
    const ir_op **dynamic_ops;
    size_t dynamic_count, dynamic_capacity;
} host_counts;

typedef struct host_function {
    host_module *hm;
    cg_unit *unit;
    ir_function *ir;
    LLVMBuilderRef b;
    LLVMValueRef function, run, args, out;
    LLVMValueRef services, constants, weights, frame;
    LLVMValueRef scratch_args, scratch_outs; /* allocas: borrowed arguments, results */
    size_t scratch_arg_count, scratch_out_count;
    LLVMValueRef launch_area; /* buffers, parameters and sizes of a launch */
    size_t launch_words;
    LLVMBasicBlockRef entry, error;
    LLVMValueRef error_status; /* phi */
    host_value *values;        /* by ir_value.number */
    size_t value_count;
    host_death **deaths;       /* by ir_op.number */
    const ir_op **last_use;    /* by ir_value.number: in its own block; NULL none */
    size_t op_count;
    bool *slot_used;
    size_t slot_count, slot_capacity;
    host_symbol *symbols;
    size_t symbol_count, symbol_capacity;
    host_counts *counts;
    ts_status status; /* what went wrong in emission */
    size_t piece, piece_count; /* see emit_host_piece.c */
    bool is_whole;      /* blocks are emitted in one piece */
} host_function;

/* ---- emit_host_function.c: the frame, values in and out ---- */
bool host_is_native(const ir_type *t);          /* INT FLOAT BOOL */
LLVMTypeRef host_native_type(host_function *f, const ir_type *t);
LLVMValueRef host_call(host_function *f, int service, LLVMValueRef *args, unsigned count);
void host_check(host_function *f, LLVMValueRef status); /* branches to the error exit */
LLVMValueRef host_int(host_function *f, int64_t i);     /* i64 */
LLVMValueRef host_word(host_function *f, uint32_t i);   /* i32 */
LLVMValueRef host_offset(host_function *f, LLVMValueRef pointer, int64_t bytes);
LLVMValueRef host_load(host_function *f, LLVMTypeRef type, LLVMValueRef pointer, int64_t bytes);
void host_store(host_function *f, LLVMValueRef value, LLVMValueRef pointer, int64_t bytes);
LLVMBasicBlockRef host_block(host_function *f, const char *name);
size_t host_slot_take(host_function *f);
LLVMValueRef host_slot(host_function *f, size_t slot); /* pointer */
/* Pointer to the boxed form; native values are boxed into scratch slot `scratch` of the argument
 * area, so the result is valid until that slot is written again. */
LLVMValueRef host_boxed(host_function *f, const ir_value *v, size_t scratch);
/* Copies a value, borrowed, into argument `index` of the scratch area. */
void host_put_arg(host_function *f, const ir_value *v, size_t index);
/* Writes the boxed form to memory, without touching references. */
void host_put_boxed(host_function *f, const ir_value *v, LLVMValueRef pointer);
void host_box_native(host_function *f, LLVMValueRef native, const ir_type *t, LLVMValueRef pointer);
/* The native form as type t (INT FLOAT BOOL) of any value. */
LLVMValueRef host_native(host_function *f, const ir_value *v, const ir_type *t);
/* Reads memory at pointer (a boxed value) as a native of type t. */
LLVMValueRef host_unbox(host_function *f, LLVMValueRef pointer, const ir_type *t);
void host_set_native(host_function *f, const ir_value *v, LLVMValueRef native);
/* A fresh slot for a boxed result; returns its pointer. */
LLVMValueRef host_set_slot(host_function *f, const ir_value *v);
host_value *host_of(host_function *f, const ir_value *v);
/* True where the value is owned by a slot and dies at op: the slot may be moved from. */
bool host_dies_at(host_function *f, const ir_value *v, const ir_op *op);
/* Sets result from memory at `from` (owned there when owned): native or into a slot. */
void host_result_from(host_function *f, const ir_value *result, LLVMValueRef from, bool owned);
bool host_is_in_loop(const ir_op *op);
uint32_t host_place(host_function *f, const ir_op *op);
/* Records sizes of a tensor value that just came to be. */
void host_bind_symbols(host_function *f, const ir_value *v);
void host_add_symbol(host_function *f, rt_dim d, LLVMValueRef value, bool is_guess);
LLVMValueRef host_symbol_value(host_function *f, host_symbol *s);
/* The number of a size; NULL where a symbol is not known here. */
LLVMValueRef host_dim(host_function *f, rt_dim d);
/* A branch whose usual way is known: what is rare is laid out of the way. */
void host_branch(host_function *f, LLVMValueRef condition, LLVMBasicBlockRef then,
                 LLVMBasicBlockRef otherwise, bool is_likely);
void host_fail(host_function *f, const ir_op *op, const char *what);
void host_count(host_function *f, const ir_op *op, bool is_dynamic);

/* ---- emit_host_ops.c ---- */
void host_emit_block(host_function *f, ir_block *block);
void host_emit_op(host_function *f, ir_op *op);

/* ---- emit_host_dynamic.c ---- */
void host_emit_core(host_function *f, const ir_op *op);
/* The dynamic path of a CORE operator: results by the reference kernel. */
void host_emit_dynamic(host_function *f, const ir_op *op);

/* ---- emit_host_flow.c ---- */
void host_emit_if(host_function *f, ir_op *op);
void host_emit_loop(host_function *f, ir_op *op);
void host_emit_raise(host_function *f, const ir_op *op);
void host_emit_return(host_function *f, const ir_op *op);

/* ---- emit_host_call.c ---- */
void host_emit_call(host_function *f, ir_op *op);
void host_emit_try_call(host_function *f, ir_op *op);

/* ---- emit_host_result.c ---- */
LLVMValueRef host_out(host_function *f, size_t index); /* a place of the scratch memory for results */
void host_clear_slot(host_function *f, size_t slot);   /* it holds NONE */
void host_free_slot(host_function *f, const ir_value *v); /* other values may take it */
void host_release(host_function *f, const ir_value *v);
/* Releases what dies with op and still lies in its slot. */
void host_release_dead(host_function *f, const ir_op *op);
/* Writes an owned value to memory that holds nothing: moves where operand `index` of op dies with
 * it (and is no later operand of it too), else copies. */
void host_move_or_copy(host_function *f, const ir_value *from, const ir_op *op, size_t index,
                       LLVMValueRef to);
/* Where a service writes a result: straight into the value's slot, or into scratch memory. */
LLVMValueRef host_result_target(host_function *f, const ir_value *v);
/* After the service: the value is what it wrote there. */
void host_result_written(host_function *f, const ir_value *v);

/* ---- emit_host_piece.c ---- */
/* Whether a block is so long that it is emitted as functions of its own. */
bool host_needs_pieces(const host_function *f, const ir_block *block);
void host_emit_pieces(host_function *f, ir_block *block);
/* The values that every function of LLVM loads anew. */
void host_load_tables(host_function *f);

/* ---- emit_host_scalar.c ---- */
/* Emits op natively where there is a lowering for these types; false: nothing was emitted. */
bool host_emit_scalar(host_function *f, const ir_op *op);

/* ---- emit_host_kernel.c ---- */
void host_emit_kernel(host_function *f, ir_op *op);
/* Kernels are lowered before functions are numbered: lowering may number values itself. */
ts_status host_lower_kernels(host_module *hm) TS_WARN_UNUSED;

/* ---- host_same_kernel.c ---- */
/* True where one compiled kernel serves both. */
bool host_same_kernel(const ir_op *a, const ir_op *b);
uint64_t host_kernel_hash(const ir_op *op); /* equal for those */
/* The same in every compilation of the same operators and types for the same level and version. */
uint64_t host_kernel_key(ir_module *m, const ir_op *op, const char *level);

/* ---- emit_host.c ---- */
/* Emits every function of the program into the unit. */
ts_status host_emit_module(cg_unit *unit, cg_program *program, bool counts) TS_WARN_UNUSED;

#endif
