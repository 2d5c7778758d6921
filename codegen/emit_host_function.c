/* codegen/emit_host_function.c - the small steps of emission: memory, slots, boxing, symbols. */
#include "codegen/emit_host.h"

#include "runtime/values/tensor.h"

enum { VALUE_BYTES = sizeof(rt_value), PAYLOAD = offsetof(rt_value, as) };

bool host_is_native(const ir_type *t) {
    return t->kind == IR_INT || t->kind == IR_FLOAT || t->kind == IR_BOOL;
}

LLVMTypeRef host_native_type(host_function *f, const ir_type *t) {
    if (t->kind == IR_INT)
        return f->unit->i64;
    return t->kind == IR_FLOAT ? f->unit->f64 : f->unit->i1;
}

LLVMValueRef host_int(host_function *f, int64_t i) {
    return LLVMConstInt(f->unit->i64, (unsigned long long)i, true);
}

LLVMValueRef host_word(host_function *f, uint32_t i) {
    return LLVMConstInt(f->unit->i32, i, false);
}

LLVMValueRef host_offset(host_function *f, LLVMValueRef pointer, int64_t bytes) {
    if (bytes == 0)
        return pointer;
    LLVMValueRef index = host_int(f, bytes);
    return LLVMBuildInBoundsGEP2(f->b, f->unit->i8, pointer, &index, 1, "");
}

LLVMValueRef host_load(host_function *f, LLVMTypeRef type, LLVMValueRef pointer, int64_t bytes) {
    return LLVMBuildLoad2(f->b, type, host_offset(f, pointer, bytes), "");
}

void host_store(host_function *f, LLVMValueRef value, LLVMValueRef pointer, int64_t bytes) {
    LLVMBuildStore(f->b, value, host_offset(f, pointer, bytes));
}

LLVMBasicBlockRef host_block(host_function *f, const char *name) {
    return LLVMAppendBasicBlockInContext(f->unit->context, f->function, name);
}

/* A value of 16 bytes as two words of 8: what memory copies of values use. */
static void copy_bits(host_function *f, LLVMValueRef to, LLVMValueRef from) {
    LLVMValueRef a = host_load(f, f->unit->i64, from, 0);
    LLVMValueRef b = host_load(f, f->unit->i64, from, PAYLOAD);
    host_store(f, a, to, 0);
    host_store(f, b, to, PAYLOAD);
}

LLVMValueRef host_call(host_function *f, int service, LLVMValueRef *args, unsigned count) {
    LLVMValueRef callee =
        host_load(f, f->unit->pointer, f->services, service * (int64_t)sizeof(void *));
    return LLVMBuildCall2(f->b, f->hm->service_types[service], callee, args, count, "");
}

void host_branch(host_function *f, LLVMValueRef condition, LLVMBasicBlockRef then,
                 LLVMBasicBlockRef otherwise, bool is_likely) {
    LLVMValueRef branch = LLVMBuildCondBr(f->b, condition, then, otherwise);
    cg_unit_weigh_branch(f->unit, branch, is_likely ? 4000 : 1, is_likely ? 1 : 4000);
}

void host_check(host_function *f, LLVMValueRef status) {
    LLVMBasicBlockRef next = host_block(f, "");
    LLVMValueRef failed = LLVMBuildIsNotNull(f->b, status, "");
    LLVMBasicBlockRef from = LLVMGetInsertBlock(f->b);
    host_branch(f, failed, f->error, next, false);
    LLVMAddIncoming(f->error_status, &status, &from, 1);
    LLVMPositionBuilderAtEnd(f->b, next);
}

/* ---- slots ---- */

size_t host_slot_take(host_function *f) {
    for (size_t i = 0; i < f->slot_count; i++)
        if (!f->slot_used[i]) {
            f->slot_used[i] = true;
            return i;
        }
    TS_APPEND(f->unit->arena, f->slot_used, f->slot_count, f->slot_capacity, true);
    return f->slot_count - 1;
}

LLVMValueRef host_slot(host_function *f, size_t slot) {
    return host_offset(f, f->frame, (int64_t)slot * VALUE_BYTES);
}

host_value *host_of(host_function *f, const ir_value *v) { return &f->values[v->number]; }

void host_set_native(host_function *f, const ir_value *v, LLVMValueRef native) {
    *host_of(f, v) = (host_value){.kind = HOST_NATIVE, .llvm = native};
}

LLVMValueRef host_set_slot(host_function *f, const ir_value *v) {
    size_t slot = host_slot_take(f);
    *host_of(f, v) = (host_value){.kind = HOST_SLOT, .slot = slot};
    return host_slot(f, slot);
}

bool host_dies_at(host_function *f, const ir_value *v, const ir_op *op) {
    return host_of(f, v)->kind == HOST_SLOT && f->last_use[v->number] == op;
}

/* ---- boxing ---- */

static uint32_t native_tag(const ir_type *t) {
    return t->kind == IR_INT ? RT_TAG_INT : t->kind == IR_FLOAT ? RT_TAG_FLOAT : RT_TAG_BOOL;
}

void host_box_native(host_function *f, LLVMValueRef native, const ir_type *t,
                     LLVMValueRef pointer) {
    host_store(f, host_int(f, native_tag(t)), pointer, 0); /* tag and aux 0 */
    if (t->kind == IR_BOOL)
        native = LLVMBuildZExt(f->b, native, f->unit->i64, "");
    host_store(f, native, pointer, PAYLOAD);
}

/* Where a boxed value lies; NULL for a native one. */
static LLVMValueRef boxed_pointer(host_function *f, const ir_value *v) {
    const host_value *h = host_of(f, v);
    switch (h->kind) {
    case HOST_SLOT: return host_slot(f, h->slot);
    case HOST_BORROWED: return h->llvm;
    case HOST_ARGUMENT: return host_offset(f, f->args, (int64_t)h->slot * VALUE_BYTES);
    case HOST_CONST: return host_offset(f, f->constants, (int64_t)h->slot * VALUE_BYTES);
    case HOST_NATIVE:
    case HOST_NONE:
    case HOST_UNSET: break;
    }
    return NULL;
}

void host_put_boxed(host_function *f, const ir_value *v, LLVMValueRef pointer) {
    const host_value *h = host_of(f, v);
    if (h->kind == HOST_NATIVE) {
        host_box_native(f, h->llvm, v->type, pointer);
    } else if (h->kind == HOST_NONE) {
        host_store(f, host_int(f, RT_TAG_NONE), pointer, 0);
        host_store(f, host_int(f, 0), pointer, PAYLOAD);
    } else {
        LLVMValueRef from = boxed_pointer(f, v);
        if (from)
            copy_bits(f, pointer, from);
        else
            host_fail(f, NULL, "a value is used before it is made");
    }
}

void host_put_arg(host_function *f, const ir_value *v, size_t index) {
    host_put_boxed(f, v, host_offset(f, f->scratch_args, (int64_t)index * VALUE_BYTES));
}

LLVMValueRef host_boxed(host_function *f, const ir_value *v, size_t scratch) {
    LLVMValueRef at = boxed_pointer(f, v);
    if (at)
        return at;
    host_put_arg(f, v, scratch);
    return host_offset(f, f->scratch_args, (int64_t)scratch * VALUE_BYTES);
}

LLVMValueRef host_unbox(host_function *f, LLVMValueRef pointer, const ir_type *t) {
    if (t->kind == IR_INT)
        return host_load(f, f->unit->i64, pointer, PAYLOAD);
    LLVMValueRef bits = host_load(f, f->unit->i64, pointer, PAYLOAD);
    if (t->kind == IR_BOOL)
        return LLVMBuildICmp(f->b, LLVMIntNE, bits, host_int(f, 0), "");
    /* A float slot may hold an int: numbers convert where the language converts them. */
    LLVMValueRef tag = host_load(f, f->unit->i32, pointer, 0);
    LLVMValueRef is_float = LLVMBuildICmp(f->b, LLVMIntEQ, tag, host_word(f, RT_TAG_FLOAT), "");
    LLVMValueRef direct = LLVMBuildBitCast(f->b, bits, f->unit->f64, "");
    LLVMValueRef converted = LLVMBuildSIToFP(f->b, bits, f->unit->f64, "");
    return LLVMBuildSelect(f->b, is_float, direct, converted, "");
}

LLVMValueRef host_native(host_function *f, const ir_value *v, const ir_type *t) {
    const host_value *h = host_of(f, v);
    if (h->kind != HOST_NATIVE) {
        LLVMValueRef at = boxed_pointer(f, v);
        if (at)
            return host_unbox(f, at, t);
        if (h->kind == HOST_UNSET)
            host_fail(f, NULL, "a number is used before it is made");
        return LLVMConstNull(host_native_type(f, t)); /* None: a path that is not taken */
    }
    if (v->type->kind == t->kind)
        return h->llvm;
    if (t->kind == IR_BOOL) {
        if (v->type->kind == IR_FLOAT)
            return LLVMBuildFCmp(f->b, LLVMRealUNE, h->llvm, LLVMConstNull(f->unit->f64), "");
        return LLVMBuildICmp(f->b, LLVMIntNE, h->llvm, host_int(f, 0), "");
    }
    LLVMValueRef i = h->llvm;
    if (v->type->kind == IR_BOOL)
        i = LLVMBuildZExt(f->b, i, f->unit->i64, "");
    else if (v->type->kind == IR_FLOAT)
        i = LLVMBuildFPToSI(f->b, i, f->unit->i64, "");
    return t->kind == IR_FLOAT ? LLVMBuildSIToFP(f->b, i, f->unit->f64, "") : i;
}

void host_result_from(host_function *f, const ir_value *result, LLVMValueRef from, bool owned) {
    if (host_is_native(result->type)) {
        host_set_native(f, result, host_unbox(f, from, result->type));
        return;
    }
    if (result->type->kind == IR_NONE) {
        *host_of(f, result) = (host_value){.kind = HOST_NONE};
        return;
    }
    LLVMValueRef to = host_set_slot(f, result);
    if (owned) {
        copy_bits(f, to, from);
    } else {
        LLVMValueRef args[] = {to, from};
        host_call(f, SERVICE_copy, args, 2);
    }
    host_bind_symbols(f, result);
}

/* ---- places, counters, failures ---- */

uint32_t host_place(host_function *f, const ir_op *op) {
    return cg_program_place(f->hm->program, op->place);
}

void host_fail(host_function *f, const ir_op *op, const char *what) {
    if (f->status)
        return;
    f->status = ts_error_make(TS_ERR_INTERNAL, "code generation of %.*s: %s",
                              TS_STR_ARG(f->ir->name), what);
    if (op)
        f->status = ts_status_set_place(f->status, op->place);
}

void host_count(host_function *f, const ir_op *op, bool is_dynamic) {
    if (!f->counts)
        return;
    if (!is_dynamic) {
        f->counts->compiled++;
        return;
    }
    f->counts->dynamic++;
    TS_APPEND(f->unit->arena, f->counts->dynamic_ops, f->counts->dynamic_count,
              f->counts->dynamic_capacity, op);
}

/* ---- symbolic sizes ---- */

static LLVMValueRef find_symbol(host_function *f, rt_dim d) {
    for (size_t i = f->symbol_count; i-- > 0;)
        if (f->symbols[i].dim == d && !f->symbols[i].is_guess)
            return host_symbol_value(f, &f->symbols[i]);
    /* Where a type with this size stands, the refine that guessed it was right. */
    for (size_t i = f->symbol_count; i-- > 0;)
        if (f->symbols[i].dim == d)
            return host_symbol_value(f, &f->symbols[i]);
    return NULL;
}

void host_add_symbol(host_function *f, rt_dim d, LLVMValueRef value, bool is_guess) {
    host_symbol s = {d, value, is_guess, SIZE_MAX, f->piece};
    TS_APPEND(f->unit->arena, f->symbols, f->symbol_count, f->symbol_capacity, s);
}

void host_bind_symbols(host_function *f, const ir_value *v) {
    const ir_type *t = v->type;
    if (t->kind != IR_TENSOR || t->rank <= 0)
        return;
    LLVMValueRef tensor = NULL, sizes = NULL;
    for (int i = 0; i < t->rank; i++) {
        rt_dim d = t->dims[i];
        if (!rt_dim_is_symbolic(d) || ir_dim_get(f->unit->ir, d).kind != IR_DIM_SYMBOL ||
            find_symbol(f, d))
            continue;
        if (!tensor) {
            LLVMValueRef at = boxed_pointer(f, v);
            if (!at)
                return;
            tensor = host_load(f, f->unit->pointer, at, PAYLOAD);
            sizes = host_load(f, f->unit->pointer, tensor, offsetof(rt_tensor, sizes));
        }
        host_add_symbol(f, d, host_load(f, f->unit->i64, sizes, 8 * (int64_t)i), false);
    }
}

static LLVMValueRef floor_divide(host_function *f, LLVMValueRef a, LLVMValueRef b) {
    /* Divisors in sizes are positive; the guard keeps the division defined all the same. */
    LLVMValueRef zero = host_int(f, 0), one = host_int(f, 1);
    LLVMValueRef safe = LLVMBuildSelect(
        f->b, LLVMBuildICmp(f->b, LLVMIntSGT, b, zero, ""), b, one, "");
    LLVMValueRef q = LLVMBuildSDiv(f->b, a, safe, "");
    LLVMValueRef r = LLVMBuildSub(f->b, a, LLVMBuildMul(f->b, q, safe, ""), "");
    LLVMValueRef adjust = LLVMBuildICmp(f->b, LLVMIntSLT, r, zero, "");
    return LLVMBuildSub(f->b, q, LLVMBuildZExt(f->b, adjust, f->unit->i64, ""), "");
}

static LLVMValueRef dim_within(host_function *f, rt_dim d, int depth) {
    if (rt_dim_is_constant(d))
        return host_int(f, d);
    if (!rt_dim_is_symbolic(d) || depth > 200)
        return NULL;
    LLVMValueRef known = find_symbol(f, d);
    if (known)
        return known;
    ir_dim_node n = ir_dim_get(f->unit->ir, d);
    if (n.kind == IR_DIM_CONST)
        return host_int(f, n.constant);
    if (n.kind == IR_DIM_SYMBOL)
        return NULL;
    LLVMValueRef a = dim_within(f, n.a, depth + 1);
    LLVMValueRef b = a ? dim_within(f, n.b, depth + 1) : NULL;
    if (!b)
        return NULL;
    switch (n.kind) {
    case IR_DIM_ADD: return LLVMBuildAdd(f->b, a, b, "");
    case IR_DIM_MUL: return LLVMBuildMul(f->b, a, b, "");
    case IR_DIM_FLOORDIV: return floor_divide(f, a, b);
    case IR_DIM_MAX:
        return LLVMBuildSelect(f->b, LLVMBuildICmp(f->b, LLVMIntSGT, a, b, ""), a, b, "");
    case IR_DIM_MIN:
        return LLVMBuildSelect(f->b, LLVMBuildICmp(f->b, LLVMIntSLT, a, b, ""), a, b, "");
    case IR_DIM_CONST:
    case IR_DIM_SYMBOL: break;
    }
    return NULL;
}

LLVMValueRef host_dim(host_function *f, rt_dim d) { return dim_within(f, d, 0); }
