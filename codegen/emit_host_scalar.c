/* codegen/emit_host_scalar.c - numbers at the speed of C: native code for operators on int, float
 * and bool, and for the cheap questions to lists and tensors.
 *
 * Each lowering is a fast path with a condition under which it is right (no overflow, divisor not
 * zero, index in range); everything else calls the operator's reference kernel, which raises what
 * Python raises. So there is one text and one meaning for the unusual cases. */
#include "codegen/emit_host.h"

#include "runtime/values/tensor.h"

typedef enum scalar_kind {
    S_ADD, S_SUB, S_MUL, S_DIV, S_FLOORDIV, S_REMAINDER, S_NEG, S_ABS, S_AND, S_OR, S_XOR,
    S_SHIFT_LEFT, S_SHIFT_RIGHT, S_EQ, S_NE, S_LT, S_LE, S_GT, S_GE, S_NOT, S_BOOL, S_INT,
    S_FLOAT, S_MAX, S_MIN, S_FLOOR, S_CEIL, S_TRUNC, S_SQRT, S_FABS, S_IS, S_ISNOT, S_LEN,
    S_GETITEM, S_SETITEM, S_SIZE, S_DIM, S_NUMEL, S_DTYPE, S_DERIVE_INDEX, S_RANGE_LENGTH
} scalar_kind;

typedef struct host_scalar {
    const char *name; /* without overload; prim_ in front is the same operator */
    scalar_kind kind;
    size_t operands;
} host_scalar;

static const host_scalar scalars[] = {
    {"add", S_ADD, 2}, {"sub", S_SUB, 2}, {"mul", S_MUL, 2}, {"div", S_DIV, 2},
    {"floordiv", S_FLOORDIV, 2}, {"remainder", S_REMAINDER, 2}, {"neg", S_NEG, 1},
    {"abs", S_ABS, 1}, {"__and__", S_AND, 2}, {"__or__", S_OR, 2}, {"__xor__", S_XOR, 2},
    {"__lshift__", S_SHIFT_LEFT, 2}, {"__rshift__", S_SHIFT_RIGHT, 2}, {"eq", S_EQ, 2},
    {"ne", S_NE, 2}, {"lt", S_LT, 2}, {"le", S_LE, 2}, {"gt", S_GT, 2}, {"ge", S_GE, 2},
    {"__not__", S_NOT, 1}, {"Bool", S_BOOL, 1}, {"Int", S_INT, 1}, {"Float", S_FLOAT, 1},
    {"max", S_MAX, 2}, {"min", S_MIN, 2}, {"floor", S_FLOOR, 1}, {"ceil", S_CEIL, 1},
    {"trunc", S_TRUNC, 1}, {"sqrt", S_SQRT, 1}, {"fabs", S_FABS, 1}, {"__is__", S_IS, 2},
    {"__isnot__", S_ISNOT, 2}, {"len", S_LEN, 1}, {"__getitem__", S_GETITEM, 2},
    {"_set_item", S_SETITEM, 3}, {"size", S_SIZE, 2}, {"dim", S_DIM, 1}, {"numel", S_NUMEL, 1},
    {"dtype", S_DTYPE, 1}, {"__derive_index", S_DERIVE_INDEX, 3},
    {"__range_length", S_RANGE_LENGTH, 3},
};

static const host_scalar *find_scalar(host_module *hm, rt_op op) {
    uint64_t bit = (uint64_t)1 << (op % 64);
    if (hm->scalar_known[op / 64] & bit)
        return hm->scalar_of[op];
    hm->scalar_known[op / 64] |= bit;
    ts_str name = rt_op_name(op);
    if (ts_str_starts_with(name, "prim_"))
        name = (ts_str){name.data + 5, name.length - 5};
    const char *dot = name.length > 1 ? memchr(name.data + 1, '.', name.length - 1) : NULL;
    if (dot)
        name.length = (size_t)(dot - name.data);
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++)
        if (ts_str_is(name, scalars[i].name))
            return hm->scalar_of[op] = &scalars[i];
    return NULL;
}

/* ---- building blocks ---- */

typedef LLVMValueRef V;

static V icmp(host_function *f, LLVMIntPredicate p, V a, V b) {
    return LLVMBuildICmp(f->b, p, a, b, "");
}
static V both(host_function *f, V a, V b) { return LLVMBuildAnd(f->b, a, b, ""); }


static V intrinsic(host_function *f, const char *name, LLVMTypeRef type, V *args, unsigned count) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    V callee = LLVMGetIntrinsicDeclaration(f->unit->module, id, &type, 1);
    LLVMTypeRef ft = LLVMIntrinsicGetType(f->unit->context, id, &type, 1);
    return LLVMBuildCall2(f->b, ft, callee, args, count, "");
}

/* What a lowering gives: ok NULL means always right. The value is made by `make` in the block
 * where ok holds, so it may divide or read memory there. */
typedef struct lowering {
    host_function *f;
    const ir_op *op;
    scalar_kind kind;
    bool is_float; /* operands are taken as doubles */
    V a, b, c;
    V ok, ready; /* ready: the value, where it could be computed before the check */
} lowering;

/* |i| <= 2^53: converts to a double without rounding. */
static V is_exact(host_function *f, V i) {
    V limit = host_int(f, (int64_t)1 << 53);
    V moved = LLVMBuildAdd(f->b, i, limit, "");
    return icmp(f, LLVMIntULE, moved, host_int(f, (int64_t)1 << 54));
}

static V overflow_op(lowering *l, const char *name, V a, V b) {
    host_function *f = l->f;
    V args[] = {a, b};
    V pair = intrinsic(f, name, f->unit->i64, args, 2);
    V bad = LLVMBuildExtractValue(f->b, pair, 1, "");
    V fine = LLVMBuildNot(f->b, bad, "");
    l->ok = l->ok ? both(f, l->ok, fine) : fine;
    return LLVMBuildExtractValue(f->b, pair, 0, "");
}

static V floor_quotient(host_function *f, V a, V b, V *out_remainder) {
    V q = LLVMBuildSDiv(f->b, a, b, "");
    V r = LLVMBuildSub(f->b, a, LLVMBuildMul(f->b, q, b, ""), "");
    V zero = host_int(f, 0);
    V wrong = both(f, icmp(f, LLVMIntNE, r, zero),
                   icmp(f, LLVMIntSLT, LLVMBuildXor(f->b, r, b, ""), zero));
    *out_remainder = LLVMBuildAdd(f->b, r, LLVMBuildSelect(f->b, wrong, b, zero, ""), "");
    return LLVMBuildSub(f->b, q, LLVMBuildZExt(f->b, wrong, f->unit->i64, ""), "");
}

static LLVMRealPredicate real_predicate(scalar_kind k) {
    switch (k) {
    case S_NE: return LLVMRealUNE;
    case S_LT: return LLVMRealOLT;
    case S_LE: return LLVMRealOLE;
    case S_GT: return LLVMRealOGT;
    case S_GE: return LLVMRealOGE;
    default: return LLVMRealOEQ;
    }
}

static LLVMIntPredicate int_predicate(scalar_kind k) {
    switch (k) {
    case S_NE: return LLVMIntNE;
    case S_LT: return LLVMIntSLT;
    case S_LE: return LLVMIntSLE;
    case S_GT: return LLVMIntSGT;
    case S_GE: return LLVMIntSGE;
    default: return LLVMIntEQ;
    }
}

/* ---- arithmetic: sets ok and perhaps ready; false: no lowering ---- */

static bool prepare_float(lowering *l) {
    host_function *f = l->f;
    V zero = LLVMConstNull(f->unit->f64);
    switch (l->kind) {
    case S_ADD: l->ready = LLVMBuildFAdd(f->b, l->a, l->b, ""); return true;
    case S_SUB: l->ready = LLVMBuildFSub(f->b, l->a, l->b, ""); return true;
    case S_MUL: l->ready = LLVMBuildFMul(f->b, l->a, l->b, ""); return true;
    case S_DIV: {
        V fine = LLVMBuildFCmp(f->b, LLVMRealUNE, l->b, zero, "");
        l->ok = l->ok ? both(f, l->ok, fine) : fine;
        l->ready = LLVMBuildFDiv(f->b, l->a, l->b, "");
        return true;
    }
    case S_NEG: l->ready = LLVMBuildFNeg(f->b, l->a, ""); return true;
    case S_ABS:
    case S_FABS: l->ready = intrinsic(f, "llvm.fabs", f->unit->f64, &l->a, 1); return true;
    case S_SQRT:
        l->ok = LLVMBuildFCmp(f->b, LLVMRealOGE, l->a, zero, "");
        l->ready = intrinsic(f, "llvm.sqrt", f->unit->f64, &l->a, 1);
        return true;
    case S_EQ: case S_NE: case S_LT: case S_LE: case S_GT: case S_GE:
        l->ready = LLVMBuildFCmp(f->b, real_predicate(l->kind), l->a, l->b, "");
        return true;
    case S_MAX: /* Python's: the second only where it is greater */
        l->ready = LLVMBuildSelect(
            f->b, LLVMBuildFCmp(f->b, LLVMRealOGT, l->b, l->a, ""), l->b, l->a, "");
        return true;
    case S_MIN:
        l->ready = LLVMBuildSelect(
            f->b, LLVMBuildFCmp(f->b, LLVMRealOLT, l->b, l->a, ""), l->b, l->a, "");
        return true;
    case S_BOOL: l->ready = LLVMBuildFCmp(f->b, LLVMRealUNE, l->a, zero, ""); return true;
    case S_FLOAT: l->ready = l->a; return true;
    case S_INT: case S_FLOOR: case S_CEIL: case S_TRUNC: {
        V limit = LLVMConstReal(f->unit->f64, 9007199254740992.0 * 512.0); /* 2^62 */
        V size = intrinsic(f, "llvm.fabs", f->unit->f64, &l->a, 1);
        l->ok = LLVMBuildFCmp(f->b, LLVMRealOLT, size, limit, "");
        return true;
    }
    default: return false;
    }
}

static bool prepare_int(lowering *l) {
    host_function *f = l->f;
    V zero = host_int(f, 0);
    switch (l->kind) {
    case S_ADD: l->ready = overflow_op(l, "llvm.sadd.with.overflow", l->a, l->b); return true;
    case S_SUB: l->ready = overflow_op(l, "llvm.ssub.with.overflow", l->a, l->b); return true;
    case S_MUL: l->ready = overflow_op(l, "llvm.smul.with.overflow", l->a, l->b); return true;
    case S_NEG: l->ready = overflow_op(l, "llvm.ssub.with.overflow", zero, l->a); return true;
    case S_ABS: {
        V minus = overflow_op(l, "llvm.ssub.with.overflow", zero, l->a);
        l->ready = LLVMBuildSelect(f->b, icmp(f, LLVMIntSLT, l->a, zero), minus, l->a, "");
        return true;
    }
    case S_FLOORDIV:
    case S_REMAINDER: {
        V least = icmp(f, LLVMIntEQ, l->a, host_int(f, INT64_MIN));
        V bad = both(f, least, icmp(f, LLVMIntEQ, l->b, host_int(f, -1)));
        l->ok = both(f, icmp(f, LLVMIntNE, l->b, zero), LLVMBuildNot(f->b, bad, ""));
        return true;
    }
    case S_AND: l->ready = LLVMBuildAnd(f->b, l->a, l->b, ""); return true;
    case S_OR: l->ready = LLVMBuildOr(f->b, l->a, l->b, ""); return true;
    case S_XOR: l->ready = LLVMBuildXor(f->b, l->a, l->b, ""); return true;
    case S_SHIFT_LEFT: case S_SHIFT_RIGHT:
        l->ok = icmp(f, LLVMIntULT, l->b, host_int(f, 63));
        if (l->kind == S_SHIFT_LEFT) { /* shifting back gives the same unless bits fell out */
            V count = LLVMBuildAnd(f->b, l->b, host_int(f, 63), "");
            l->ready = LLVMBuildShl(f->b, l->a, count, "");
            V back = LLVMBuildAShr(f->b, l->ready, count, "");
            l->ok = both(f, l->ok, icmp(f, LLVMIntEQ, back, l->a));
        }
        return true;
    case S_EQ: case S_NE: case S_LT: case S_LE: case S_GT: case S_GE:
        l->ready = icmp(f, int_predicate(l->kind), l->a, l->b);
        return true;
    case S_MAX:
        l->ready = LLVMBuildSelect(f->b, icmp(f, LLVMIntSGT, l->b, l->a), l->b, l->a, "");
        return true;
    case S_MIN:
        l->ready = LLVMBuildSelect(f->b, icmp(f, LLVMIntSLT, l->b, l->a), l->b, l->a, "");
        return true;
    case S_BOOL: l->ready = icmp(f, LLVMIntNE, l->a, zero); return true;
    case S_DERIVE_INDEX: {
        V offset = overflow_op(l, "llvm.smul.with.overflow", l->a, l->c);
        l->ready = overflow_op(l, "llvm.sadd.with.overflow", l->b, offset);
        return true;
    }
    case S_RANGE_LENGTH: { /* lo, hi, step > 0 and a distance that fits; else the slow path */
        V distance = overflow_op(l, "llvm.ssub.with.overflow", l->b, l->a);
        l->ok = both(f, l->ok, icmp(f, LLVMIntSGT, l->c, zero));
        l->b = distance;
        return true;
    }
    default: return false;
    }
}

static V convert_to_int(lowering *l) {
    host_function *f = l->f;
    V x = l->a;
    if (l->kind == S_FLOOR)
        x = intrinsic(f, "llvm.floor", f->unit->f64, &x, 1);
    else if (l->kind == S_CEIL)
        x = intrinsic(f, "llvm.ceil", f->unit->f64, &x, 1);
    return LLVMBuildFPToSI(f->b, x, f->unit->i64, "");
}

static V make_number(lowering *l) {
    host_function *f = l->f;
    V remainder, zero = host_int(f, 0);
    switch (l->kind) {
    case S_FLOORDIV: return floor_quotient(f, l->a, l->b, &remainder);
    case S_REMAINDER: floor_quotient(f, l->a, l->b, &remainder); return remainder;
    case S_SHIFT_RIGHT: return LLVMBuildAShr(f->b, l->a, l->b, "");
    case S_INT: case S_FLOOR: case S_CEIL: case S_TRUNC: return convert_to_int(l);
    case S_RANGE_LENGTH: {
        V positive = icmp(f, LLVMIntSGT, l->b, zero);
        V n = LLVMBuildSub(f->b, l->b, host_int(f, 1), "");
        n = LLVMBuildAdd(f->b, LLVMBuildSDiv(f->b, n, l->c, ""), host_int(f, 1), "");
        return LLVMBuildSelect(f->b, positive, n, zero, "");
    }
    default: return l->ready;
    }
}

/* ---- the two paths and where they meet ---- */

static V slow_native(lowering *l) {
    host_function *f = l->f;
    const ir_op *op = l->op;
    for (size_t i = 0; i < op->operand_count; i++)
        host_put_arg(f, op->operands[i], i);
    V args[] = {f->run, host_word(f, cg_program_operator(f->hm->program, op->core)),
                f->scratch_args, f->scratch_outs, host_word(f, host_place(f, op))};
    host_check(f, host_call(f, SERVICE_op_call, args, 5));
    return host_unbox(f, f->scratch_outs, op->results[0]->type);
}

static void finish_number(lowering *l, V (*make)(lowering *)) {
    host_function *f = l->f;
    const ir_value *result = l->op->results[0];
    if (!l->ok) {
        host_set_native(f, result, make(l));
        return;
    }
    LLVMBasicBlockRef fast = host_block(f, ""), slow = host_block(f, "slow"),
                      join = host_block(f, "");
    host_branch(f, l->ok, fast, slow, true);
    LLVMPositionBuilderAtEnd(f->b, fast);
    V values[2] = {make(l), NULL};
    LLVMBasicBlockRef ends[2] = {LLVMGetInsertBlock(f->b), NULL};
    LLVMBuildBr(f->b, join);
    LLVMPositionBuilderAtEnd(f->b, slow);
    values[1] = slow_native(l);
    ends[1] = LLVMGetInsertBlock(f->b);
    LLVMBuildBr(f->b, join);
    LLVMPositionBuilderAtEnd(f->b, join);
    V phi = LLVMBuildPhi(f->b, host_native_type(f, result->type), "");
    LLVMAddIncoming(phi, values, ends, 2);
    host_set_native(f, result, phi);
}

/* ---- numbers ---- */

static bool is_comparison(scalar_kind k) { return k >= S_EQ && k <= S_GE; }

static bool emit_number(host_function *f, const ir_op *op, scalar_kind kind) {
    lowering l = {.f = f, .op = op, .kind = kind};
    const ir_type *result = op->results[0]->type;
    bool any_float = false, all_bool = true;
    for (size_t i = 0; i < op->operand_count; i++) {
        const ir_type *t = op->operands[i]->type;
        if (!host_is_native(t))
            return false;
        any_float |= t->kind == IR_FLOAT;
        all_bool &= t->kind == IR_BOOL;
    }
    if (!host_is_native(result))
        return false;
    cg_unit *u = f->unit;
    const ir_type *float_type = ir_type_simple(u->ir, IR_FLOAT);
    const ir_type *int_type = ir_type_simple(u->ir, IR_INT);
    if (kind == S_NOT) {
        if (!all_bool)
            return false;
        host_set_native(f, op->results[0], LLVMBuildNot(f->b, host_native(f, op->operands[0],
                                                        op->operands[0]->type), ""));
        return true;
    }
    if (all_bool && (kind == S_AND || kind == S_OR || kind == S_XOR)) {
        V a = host_native(f, op->operands[0], op->operands[0]->type);
        V b = host_native(f, op->operands[1], op->operands[1]->type);
        if (result->kind != IR_BOOL)
            return false;
        host_set_native(f, op->results[0], kind == S_AND  ? LLVMBuildAnd(f->b, a, b, "")
                                           : kind == S_OR ? LLVMBuildOr(f->b, a, b, "")
                                                          : LLVMBuildXor(f->b, a, b, ""));
        return true;
    }
    bool is_whole = kind == S_INT || kind == S_FLOOR || kind == S_CEIL || kind == S_TRUNC;
    if (is_whole && !any_float) { /* there is nothing to round: an int is its own floor */
        if (result->kind != IR_INT)
            return false;
        host_set_native(f, op->results[0], host_native(f, op->operands[0], int_type));
        return true;
    }
    l.is_float = any_float || kind == S_DIV || kind == S_FLOAT || kind == S_SQRT || kind == S_FABS;
    if (l.is_float && (kind == S_FLOORDIV || kind == S_REMAINDER))
        return false;
    if (kind == S_MAX || kind == S_MIN)
        l.is_float = result->kind == IR_FLOAT;
    const ir_type *as = l.is_float ? float_type : int_type;
    V *places[3] = {&l.a, &l.b, &l.c};
    for (size_t i = 0; i < op->operand_count; i++) {
        *places[i] = host_native(f, op->operands[i], as);
        /* Python compares and divides an int and a float exactly; so do doubles below 2^53. */
        bool rounds = l.is_float && op->operands[i]->type->kind == IR_INT &&
                      (is_comparison(kind) || (kind == S_DIV && !any_float));
        if (rounds) {
            V exact = is_exact(f, host_native(f, op->operands[i], int_type));
            l.ok = l.ok ? both(f, l.ok, exact) : exact;
        }
    }
    if (!(l.is_float ? prepare_float(&l) : prepare_int(&l)))
        return false;
    finish_number(&l, make_number);
    return true;
}

/* ---- identity with None ---- */

static bool emit_is(host_function *f, const ir_op *op, bool negate) {
    const ir_value *other = NULL;
    if (op->operands[1]->type->kind == IR_NONE)
        other = op->operands[0];
    else if (op->operands[0]->type->kind == IR_NONE)
        other = op->operands[1];
    if (!other)
        return false;
    V is;
    if (other->type->kind == IR_NONE) {
        is = LLVMConstInt(f->unit->i1, 1, false);
    } else if (!ir_type_admits_none(other->type) && other->type->kind != IR_ANY) {
        is = LLVMConstNull(f->unit->i1);
    } else {
        V tag = host_load(f, f->unit->i32, host_boxed(f, other, 0), 0);
        is = icmp(f, LLVMIntEQ, tag, host_word(f, RT_TAG_NONE));
    }
    host_set_native(f, op->results[0], negate ? LLVMBuildNot(f->b, is, "") : is);
    return true;
}

/* ---- lists ---- */

static V payload(host_function *f, const ir_value *v) {
    return host_load(f, f->unit->pointer, host_boxed(f, v, 0), offsetof(rt_value, as));
}

/* The normalised index and whether it lies in [0, count). */
static V normal_index(host_function *f, V index, V count, V *out_ok) {
    V negative = icmp(f, LLVMIntSLT, index, host_int(f, 0));
    V moved = LLVMBuildAdd(f->b, index, count, "");
    index = LLVMBuildSelect(f->b, negative, moved, index, "");
    *out_ok = icmp(f, LLVMIntULT, index, count);
    return index;
}

static V item_pointer(host_function *f, V list, V index) {
    V items = host_load(f, f->unit->pointer, list, offsetof(rt_list, items));
    V bytes = LLVMBuildShl(f->b, index, host_int(f, 4), "");
    return LLVMBuildInBoundsGEP2(f->b, f->unit->i8, items, &bytes, 1, "");
}

static V make_item(lowering *l) {
    return host_unbox(l->f, item_pointer(l->f, l->a, l->b), l->op->results[0]->type);
}

static bool emit_getitem(host_function *f, const ir_op *op) {
    const ir_type *t = op->operands[0]->type;
    const ir_value *result = op->results[0];
    if (t->kind != IR_LIST || op->operands[1]->type->kind != IR_INT ||
        result->type->kind == IR_NONE)
        return false;
    lowering l = {.f = f, .op = op, .kind = S_GETITEM};
    l.a = payload(f, op->operands[0]);
    V count = host_load(f, f->unit->i64, l.a, offsetof(rt_list, count));
    V index = host_native(f, op->operands[1], op->operands[1]->type);
    l.b = normal_index(f, index, count, &l.ok);
    if (host_is_native(result->type)) {
        finish_number(&l, make_item);
        return true;
    }
    LLVMBasicBlockRef fast = host_block(f, ""), slow = host_block(f, "slow"),
                      join = host_block(f, "");
    V to = host_set_slot(f, result);
    host_branch(f, l.ok, fast, slow, true);
    LLVMPositionBuilderAtEnd(f->b, fast);
    V copy[] = {to, item_pointer(f, l.a, l.b)};
    host_call(f, SERVICE_copy, copy, 2);
    LLVMBuildBr(f->b, join);
    LLVMPositionBuilderAtEnd(f->b, slow);
    for (size_t i = 0; i < op->operand_count; i++)
        host_put_arg(f, op->operands[i], i);
    V args[] = {f->run, host_word(f, cg_program_operator(f->hm->program, op->core)),
                f->scratch_args, to, host_word(f, host_place(f, op))};
    host_check(f, host_call(f, SERVICE_op_call, args, 5));
    LLVMBuildBr(f->b, join);
    LLVMPositionBuilderAtEnd(f->b, join);
    host_bind_symbols(f, result);
    return true;
}

/* l[i] = x for numbers: nothing to release, nothing to retain. */
static bool emit_setitem(host_function *f, const ir_op *op) {
    const ir_type *t = op->operands[0]->type;
    const ir_value *v = op->operands[2];
    if (t->kind != IR_LIST || !host_is_native(t->args[0]) || v->type != t->args[0] ||
        op->operands[1]->type->kind != IR_INT)
        return false;
    if (op->result_count && op->results[0]->use_count)
        return false;
    if (op->result_count) /* nobody looks at it, and it owns nothing */
        *host_of(f, op->results[0]) = (host_value){.kind = HOST_NONE};
    V list = payload(f, op->operands[0]), ok;
    V count = host_load(f, f->unit->i64, list, offsetof(rt_list, count));
    V index = host_native(f, op->operands[1], op->operands[1]->type);
    index = normal_index(f, index, count, &ok);
    LLVMBasicBlockRef fast = host_block(f, ""), slow = host_block(f, "slow"),
                      join = host_block(f, "");
    host_branch(f, ok, fast, slow, true);
    LLVMPositionBuilderAtEnd(f->b, fast);
    host_put_boxed(f, v, item_pointer(f, list, index));
    LLVMBuildBr(f->b, join);
    LLVMPositionBuilderAtEnd(f->b, slow);
    for (size_t i = 0; i < op->operand_count; i++)
        host_put_arg(f, op->operands[i], i);
    V args[] = {f->run, host_word(f, cg_program_operator(f->hm->program, op->core)),
                f->scratch_args, f->scratch_outs, host_word(f, host_place(f, op))};
    host_check(f, host_call(f, SERVICE_op_call, args, 5));
    V out = f->scratch_outs;
    if (op->result_count)
        host_call(f, SERVICE_release, &out, 1);
    LLVMBuildBr(f->b, join);
    LLVMPositionBuilderAtEnd(f->b, join);
    return true;
}

static bool emit_len(host_function *f, const ir_op *op) {
    const ir_value *v = op->operands[0];
    int64_t at;
    switch (v->type->kind) {
    case IR_LIST: at = offsetof(rt_list, count); break;
    case IR_DICT: at = offsetof(rt_dict, live_count); break;
    case IR_STR: at = offsetof(rt_str, code_points); break;
    default: return false;
    }
    host_set_native(f, op->results[0], host_load(f, f->unit->i64, payload(f, v), at));
    return true;
}

/* ---- tensors ---- */

static V make_size(lowering *l) {
    host_function *f = l->f;
    V sizes = host_load(f, f->unit->pointer, l->a, offsetof(rt_tensor, sizes));
    V bytes = LLVMBuildShl(f->b, l->b, host_int(f, 3), "");
    V at = LLVMBuildInBoundsGEP2(f->b, f->unit->i8, sizes, &bytes, 1, "");
    return LLVMBuildLoad2(f->b, f->unit->i64, at, "");
}

static bool emit_tensor_question(host_function *f, const ir_op *op, scalar_kind kind) {
    const ir_value *v = op->operands[0];
    if (v->type->kind != IR_TENSOR || !host_is_native(op->results[0]->type))
        return false;
    lowering l = {.f = f, .op = op, .kind = kind, .a = payload(f, v)};
    if (kind == S_NUMEL) {
        host_set_native(f, op->results[0],
                        host_load(f, f->unit->i64, l.a, offsetof(rt_tensor, element_count)));
        return true;
    }
    if (kind == S_DTYPE) {
        V d = host_load(f, f->unit->i8, l.a, offsetof(rt_tensor, dtype));
        host_set_native(f, op->results[0], LLVMBuildSExt(f->b, d, f->unit->i64, ""));
        return true;
    }
    V rank = host_load(f, f->unit->i32, l.a, offsetof(rt_tensor, rank));
    rank = LLVMBuildSExt(f->b, rank, f->unit->i64, "");
    if (kind == S_DIM) {
        host_set_native(f, op->results[0], rank);
        return true;
    }
    if (op->operands[1]->type->kind != IR_INT)
        return false;
    V index = host_native(f, op->operands[1], op->operands[1]->type);
    l.b = normal_index(f, index, rank, &l.ok);
    finish_number(&l, make_size);
    return true;
}

bool host_emit_scalar(host_function *f, const ir_op *op) {
    const host_scalar *s = find_scalar(f->hm, op->core);
    if (!s || op->operand_count != s->operands)
        return false;
    if (op->result_count != 1)
        return s->kind == S_SETITEM && emit_setitem(f, op);
    switch (s->kind) {
    case S_IS: return emit_is(f, op, false);
    case S_ISNOT: return emit_is(f, op, true);
    case S_LEN: return emit_len(f, op);
    case S_GETITEM: return emit_getitem(f, op);
    case S_SETITEM: return emit_setitem(f, op);
    case S_SIZE: case S_DIM: case S_NUMEL: case S_DTYPE:
        return emit_tensor_question(f, op, s->kind);
    default: return emit_number(f, op, s->kind);
    }
}
