/* passes/fold_constants.c - computes at compile time what does not depend on the inputs.
 *
 *   %y = add.int(2, 3)        =>  5
 *   if true { A } else { B }  =>  A
 *   loop %i to 0 ...          =>  the initial values
 *   is_instance, cast, refine, dim, list and tuple of constants
 *
 * An operator that raises is left for run time. A tensor result is folded only where it is small
 * (ctx->fold_byte_budget), known beforehand to be, and nobody writes or returns it: each run must
 * see a fresh one. Total work is bounded by ctx->fold_op_budget. */
#include "passes/alias.h"

enum { DEFAULT_BYTES = 1 << 16, LIST_ITEMS = 4096, TEXT_ITEMS = 1 << 20,
       ALL_TENSORS = 8 /* times the budget of one */ };
static const double MOST_PRODUCT = 2e8; /* multiplications */

typedef struct folder {
    pass_context *ctx;
    ir_module *m;
    ir_function *f;
    pass_alias *alias; /* made when first asked; the set of values only shrinks meanwhile */
    uint64_t work;
    bool has_gradients; /* a gradient is asked for, perhaps of a constant */
} folder;

static bool is_constant_operand(const ir_value *v) {
    if (ir_is_const(v))
        return true;
    if (!v->def || v->def->opcode != IR_OP_LIST || !ir_list_is_stable(v))
        return false;
    for (size_t i = 0; i < v->def->operand_count; i++)
        if (!ir_is_const(v->def->operands[i]))
            return false;
    return true;
}

static ts_status operand_value(const ir_value *v, rt_value *out) {
    if (ir_is_const(v)) {
        *out = rt_retain(v->def->value);
        return NULL;
    }
    TS_TRY(rt_list_make(v->def->operand_count, out));
    for (size_t i = 0; i < v->def->operand_count; i++) {
        ts_status status = rt_list_append(out->as.list, v->def->operands[i]->def->value);
        if (status) {
            rt_release(*out);
            *out = rt_none();
            return status;
        }
    }
    return NULL;
}

static void replace_with_constant(folder *fo, ir_op *op, rt_value v, const ir_type *type) {
    ir_builder b = pass_before(fo->m, op);
    ir_value *made = ir_build_const_typed(&b, v, type);
    made->number = op->results[0]->number; /* the alias sets speak of it too */
    pass_replace(fo->m, op->results[0], made);
    ir_op_remove(op);
    pass_count(fo->ctx, "folded", 1);
}

/* ---- how large it gets ---- */

static uint64_t constant_size(const ir_value *v) {
    rt_value c;
    if (v->def && v->def->opcode == IR_OP_LIST)
        return v->def->operand_count;
    if (!ir_const_value(v, &c))
        return 0;
    return c.tag == RT_TAG_STR     ? c.as.str->length
           : c.tag == RT_TAG_LIST  ? c.as.list->count
           : c.tag == RT_TAG_TUPLE ? c.as.tuple->count
                                   : 0;
}

static bool is_among(const ir_op *op, const char *const *names) {
    for (; *names; names++)
        if (ts_str_is(rt_op_name(op->core), *names))
            return true;
    return false;
}

/* Strings and lists: a bound from the sizes of the operands, before anything is made. */
static bool fits_text_budget(const ir_op *op) {
    static const char *const multiplies[] = {"mul.left_t", "mul.right_", "mul.str_int", "mul.int_str",
                                             "mul_.t",     "replace",    "join",        "expandtabs",
                                             NULL};
    static const char *const extends[] = {"ljust", "rjust",      "center",        "zfill",
                                          "format", "prim_range", "prim_rangelist", NULL};
    bool is_product = is_among(op, multiplies), is_extended = is_among(op, extends);
    uint64_t sum = 0, product = 1, number = 0;
    for (size_t i = 0; i < op->operand_count; i++) {
        uint64_t size = constant_size(op->operands[i]) + 1;
        int64_t n = 0;
        if (ir_const_int(op->operands[i], &n) && n > 0)
            number = (uint64_t)n > number ? (uint64_t)n : number;
        sum += size;
        product = product > TEXT_ITEMS || size > TEXT_ITEMS ? TEXT_ITEMS + 1 : product * size;
    }
    if (number > TEXT_ITEMS)
        number = TEXT_ITEMS + 1;
    if (is_product)
        return product <= TEXT_ITEMS && product * (number ? number : 1) <= TEXT_ITEMS;
    return sum + (is_extended ? number : 0) <= TEXT_ITEMS;
}

static double tensor_elements(const ir_value *v) {
    rt_value c;
    return ir_const_value(v, &c) && c.tag == RT_TAG_TENSOR ? (double)c.as.tensor->element_count : 0;
}

/* Bytes of a result as far as inference knows them before anything is allocated. */
static bool fits_budget(folder *fo, const ir_op *op) {
    ir_module *m = fo->m;
    uint64_t budget = fo->ctx->fold_byte_budget ? fo->ctx->fold_byte_budget : DEFAULT_BYTES;
    bool has_tensor = false;
    uint64_t bytes = 0;
    double elements = 1;
    for (size_t i = 0; i < op->result_count; i++)
        has_tensor |= op->results[i]->type->kind == IR_TENSOR;
    if (!has_tensor)
        return fits_text_budget(op);
    rt_fact *args = TS_NEW_ARRAY(fo->ctx->scratch, rt_fact, op->operand_count);
    rt_fact *outs = TS_NEW_ARRAY(fo->ctx->scratch, rt_fact, op->result_count);
    for (size_t i = 0; i < op->operand_count; i++)
        args[i] = ir_fact_of_value(m, fo->ctx->scratch, op->operands[i]);
    rt_infer_context ic = {.arena = fo->ctx->scratch, .algebra = ir_dim_algebra(m)};
    ts_status status = rt_op_get(op->core)->infer(&ic, args, op->operand_count, outs,
                                                  op->result_count);
    if (status) {
        ts_status_release(status);
        return false;
    }
    for (size_t i = 0; i < op->result_count; i++) {
        if (op->results[i]->type->kind != IR_TENSOR)
            continue;
        int64_t count;
        if (outs[i].kind != RT_FACT_TENSOR || outs[i].rank < 0 || outs[i].dtype < 0)
            return false;
        for (int j = 0; j < outs[i].rank; j++)
            if (!rt_dim_is_constant(outs[i].dims[j]))
                return false;
        if (!rt_element_count(outs[i].dims, outs[i].rank, &count) ||
            (uint64_t)count > budget / rt_dtype_size(outs[i].dtype))
            return false;
        bytes += (uint64_t)count * rt_dtype_size(outs[i].dtype);
        elements *= (double)count + 1;
    }
    /* Of m x k times k x n: the root of mk * kn * mn. Reference kernels are slow. */
    for (size_t i = 0; i < op->operand_count; i++)
        if (op->operands[i]->type->kind == IR_TENSOR)
            elements *= tensor_elements(op->operands[i]) + 1;
    bool is_product = rt_op_get(op->core)->lower == LOWER_contraction;
    if ((is_product && elements > MOST_PRODUCT * MOST_PRODUCT) ||
        fo->ctx->folded_bytes + bytes > ALL_TENSORS * budget)
        return false;
    fo->ctx->folded_bytes += bytes;
    return true;
}

static bool wants_gradient(const ir_value *v) {
    rt_value c;
    return ir_const_value(v, &c) && c.tag == RT_TAG_TENSOR && c.as.tensor->requires_grad;
}

/* Of a parameter that nothing writes: folded, a gradient would not find its way back to it. */
static bool leads_to_parameter(const folder *fo, const ir_op *op) {
    const ir_type *t = op->results[0]->type;
    if (!fo->has_gradients || (t->kind != IR_TENSOR && t->kind != IR_LIST && t->kind != IR_ANY))
        return false;
    for (size_t i = 0; i < op->operand_count; i++) {
        const ir_op *list = op->operands[i]->def;
        if (wants_gradient(op->operands[i]))
            return true;
        for (size_t k = 0; list->opcode == IR_OP_LIST && k < list->operand_count; k++)
            if (wants_gradient(list->operands[k]))
                return true;
    }
    return false;
}

/* The result may become one constant for all runs. */
static bool may_be_shared(folder *fo, const ir_value *r) {
    if (!ir_type_is_mutable(r->type))
        return true;
    if (r->type->kind == IR_LIST) {
        /* Readers only: as for a list that an operator list(...) makes. */
        return ir_list_is_stable(r);
    }
    if (r->type->kind == IR_ANY) /* of unlike items, or at an index that was none; see fold_core */
        return ir_is_core(r->def, OP_prim_tuple_getitem);
    if (r->type->kind != IR_TENSOR)
        return false;
    if (!fo->alias)
        fo->alias = pass_alias_make(fo->ctx, fo->m, fo->f);
    return !pass_is_written(fo->alias, r) && !pass_is_returned(fo->alias, r) &&
           !pass_is_reshaped(fo->alias, r);
}

static bool is_foldable(folder *fo, const ir_op *op) {
    if (op->opcode != IR_OP_CORE || op->result_count != 1)
        return false;
    uint32_t effects = ir_effects(op);
    if (effects & (IR_EFFECT_WRITES | IR_EFFECT_RANDOM | IR_EFFECT_PRINTS))
        return false;
    for (size_t i = 0; i < op->operand_count; i++) {
        const ir_value *v = op->operands[i];
        if (!is_constant_operand(v))
            return false;
        if (v->type->kind != IR_TENSOR)
            continue;
        if (!fo->alias)
            fo->alias = pass_alias_make(fo->ctx, fo->m, fo->f);
        if (pass_is_written(fo->alias, v))
            return false;
    }
    ir_kind kind = op->results[0]->type->kind;
    if (kind == IR_DICT || kind == IR_CLASS || kind == IR_GENERATOR || kind == IR_CAPSULE)
        return false;
    if (fo->ctx->fold_op_budget && fo->work > fo->ctx->fold_op_budget)
        return false;
    return !leads_to_parameter(fo, op) && /* all operands are constants by now */
           may_be_shared(fo, op->results[0]) && fits_budget(fo, op);
}

static const ir_type *constant_type(ir_module *m, rt_value v, const ir_type *declared) {
    const ir_type *own = ir_type_of_value(m, v);
    if (v.tag == RT_TAG_TENSOR) /* whatever was said of it before */
        return own;
    return v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE || !ir_type_is_refinement(own, declared)
               ? declared
               : own;
}

/* x is None, where the type of x decides. */
static bool fold_is_none(folder *fo, ir_op *op) {
    bool is = ts_str_is(rt_op_name(op->core), "__is__");
    if (!is && !ts_str_is(rt_op_name(op->core), "__isnot__"))
        return false;
    for (size_t i = 0; i < 2; i++) {
        const ir_type *x = op->operands[i]->type, *y = op->operands[1 - i]->type;
        if (y->kind != IR_NONE || (x->kind != IR_NONE && ir_type_admits_none(x)))
            continue;
        bool same = x->kind == IR_NONE;
        replace_with_constant(fo, op, rt_bool(same == is), op->results[0]->type);
        return true;
    }
    return false;
}

/* Dropout in evaluation hands its input on. */
static bool fold_dropout(folder *fo, ir_op *op) {
    static const char *const names[] = {"dropout",       "dropout_",       "feature_dropout",
                                        "alpha_dropout", "feature_dropout_", "alpha_dropout_",
                                        "feature_alpha_dropout", "feature_alpha_dropout_"};
    bool train, found = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !found; i++)
        found = ts_str_is(rt_op_name(op->core), names[i]);
    if (!found || op->operand_count < 3 || !ir_const_bool(op->operands[2], &train) || train)
        return false;
    fo->alias = NULL; /* the result now shares memory with the input */
    pass_replace(fo->m, op->results[0], op->operands[0]);
    ir_op_remove(op);
    pass_count(fo->ctx, "dropouts", 1);
    return true;
}

/* copy_(x, x), which an in-place form of something that does nothing leaves behind. */
static bool fold_self_copy(folder *fo, ir_op *op) {
    if (!ts_str_is(rt_op_name(op->core), "copy_") || op->operands[0] != op->operands[1])
        return false;
    pass_replace(fo->m, op->results[0], op->operands[0]);
    ir_op_remove(op);
    pass_count(fo->ctx, "copies", 1);
    return true;
}

static ts_status fold_core(folder *fo, ir_op *op) {
    if (fold_self_copy(fo, op) || fold_is_none(fo, op) || fold_dropout(fo, op) || !is_foldable(fo, op))
        return NULL;
    rt_value *values = TS_NEW_ARRAY(fo->ctx->scratch, rt_value, op->operand_count);
    rt_value out = rt_none();
    ts_status status = NULL;
    size_t count = 0;
    for (; count < op->operand_count && !status; count++)
        status = operand_value(op->operands[count], &values[count]);
    ir_evaluator_options options = {.context = fo->ctx->evaluate_context};
    if (!status)
        status = ir_evaluate_op(fo->m, op, values, &options, &out);
    for (size_t i = 0; i < count; i++)
        rt_release(values[i]);
    fo->work++;
    if (status) {
        if (ts_status_code(status) == TS_ERR_NO_MEMORY)
            return status;
        ts_status_release(status); /* run time reports it, if it gets there */
        return NULL;
    }
    bool stays = out.tag == RT_TAG_LIST && out.as.list->count > LIST_ITEMS;
    if (op->results[0]->type->kind == IR_ANY && ir_type_is_mutable(ir_type_of_value(fo->m, out)))
        stays = true; /* an object that others may change */
    if (out.tag == RT_TAG_TENSOR)
        fo->work += (uint64_t)out.as.tensor->element_count / 64;
    if (!stays && out.tag != RT_TAG_UNINITIALIZED)
        replace_with_constant(fo, op, out, constant_type(fo->m, out, op->results[0]->type));
    rt_release(out);
    return NULL;
}

static void fold_if(folder *fo, ir_op *op) {
    bool condition;
    if (!ir_const_bool(op->operands[0], &condition))
        return;
    ir_block *b = op->regions[condition ? 0 : 1];
    pass_move_body(op, b);
    for (size_t i = 0; i < op->result_count; i++)
        pass_replace(fo->m, op->results[i], b->last->operands[i]);
    ir_op_remove(op);
    pass_count(fo->ctx, "branches", 1);
}

static void fold_loop(folder *fo, ir_op *op) {
    int64_t max;
    bool condition;
    bool never = (ir_const_int(op->operands[0], &max) && max <= 0) ||
                 (ir_const_bool(op->operands[1], &condition) && !condition);
    if (!never)
        return;
    for (size_t i = 0; i < op->result_count; i++)
        pass_replace(fo->m, op->results[i], op->operands[i + 2]);
    ir_op_remove(op);
    pass_count(fo->ctx, "loops", 1);
}

/* Whether a value of type t is never one of u: only for kinds whose values differ for certain. */
static bool never_is(const ir_type *t, const ir_type *u) {
    if (t->kind == IR_OPTIONAL || t->kind == IR_UNION || t->kind == IR_ANY ||
        u->kind == IR_OPTIONAL || u->kind == IR_UNION || u->kind == IR_ANY ||
        t->kind == IR_NUMBER || u->kind == IR_NUMBER || t->kind == IR_FUTURE ||
        u->kind == IR_FUTURE || t->kind == IR_VAR)
        return false;
    return t->kind != u->kind;
}

static void fold_is_instance(folder *fo, ir_op *op) {
    bool never = true;
    for (size_t i = 0; i < op->type_count; i++) {
        /* Lists may be empty and then are of every list type: containers are asked at run time. */
        bool decided = !op->types[i]->arg_count || op->types[i]->kind == IR_OPTIONAL;
        if (decided && ir_type_is_subtype(op->operands[0]->type, op->types[i])) {
            replace_with_constant(fo, op, rt_bool(true), op->results[0]->type);
            return;
        }
        never &= never_is(op->operands[0]->type, op->types[i]);
    }
    if (never)
        replace_with_constant(fo, op, rt_bool(false), op->results[0]->type);
}

static void fold_cast(folder *fo, ir_op *op) {
    ir_value *v = op->operands[0];
    const ir_type *wanted = op->results[0]->type;
    if (ir_type_is_refinement(v->type, wanted)) {
        /* Widening needs no operator where no user minds: facts and Optional alike. */
        ir_replace_uses(fo->m, op->results[0], v);
        ir_op_remove(op);
        pass_count(fo->ctx, "casts", 1);
        return;
    }
    rt_value c;
    if (ir_const_value(v, &c) && ir_value_is(c, wanted) && c.tag != RT_TAG_DICT) {
        const ir_type *own = ir_type_of_value(fo->m, c), *inner = ir_type_without_none(fo->m, wanted);
        if (own->kind == IR_INT && inner->kind == IR_INT)
            own = inner; /* a dtype, perhaps */
        replace_with_constant(fo, op, c, ir_type_is_refinement(own, wanted) ? own : wanted);
    }
}

static void fold_list(folder *fo, ir_op *op) {
    ir_value *r = op->results[0];
    if (!is_constant_operand(r) || op->operand_count > LIST_ITEMS)
        return;
    for (size_t i = 0; i < op->operand_count; i++)
        if (ir_type_is_mutable(op->operands[i]->type))
            return; /* of tensors: their own uses say more */
    rt_value list;
    ts_status status = operand_value(r, &list);
    if (status) {
        ts_status_release(status);
        return;
    }
    replace_with_constant(fo, op, list, r->type);
    rt_release(list);
}

static void fold_tuple(folder *fo, ir_op *op) {
    for (size_t i = 0; i < op->operand_count; i++)
        if (!ir_is_const(op->operands[i]) || ir_type_is_mutable(op->operands[i]->type))
            return;
    rt_value tuple;
    ts_status status = rt_tuple_make(op->operand_count, &tuple);
    if (status) {
        ts_status_release(status);
        return;
    }
    const ir_type *t = op->results[0]->type;
    tuple.as.tuple->class_ = t->class_ ? &t->class_->base : NULL;
    for (size_t i = 0; i < op->operand_count; i++)
        tuple.as.tuple->items[i] = rt_retain(op->operands[i]->def->value);
    replace_with_constant(fo, op, tuple, t);
    rt_release(tuple);
}

static void fold_tuple_items(folder *fo, ir_op *op) {
    rt_value tuple;
    if (!ir_const_value(op->operands[0], &tuple) || tuple.tag != RT_TAG_TUPLE ||
        (op->opcode == IR_OP_TUPLE_UNPACK && tuple.as.tuple->count != op->result_count))
        return;
    for (size_t i = 0; i < op->result_count; i++) {
        size_t at = op->opcode == IR_OP_TUPLE_GET ? (size_t)op->integer : i;
        if (ir_type_is_mutable(op->results[i]->type) || at >= tuple.as.tuple->count)
            return;
    }
    ir_builder b = pass_before(fo->m, op);
    for (size_t i = 0; i < op->result_count; i++) {
        size_t at = op->opcode == IR_OP_TUPLE_GET ? (size_t)op->integer : i;
        rt_value item = tuple.as.tuple->items[at];
        pass_replace(fo->m, op->results[i],
                     ir_build_const_typed(&b, item,
                                          constant_type(fo->m, item, op->results[i]->type)));
    }
    ir_op_remove(op);
    pass_count(fo->ctx, "folded", 1);
}

/* list_unpack of a constant list of numbers. */
static void fold_list_items(folder *fo, ir_op *op) {
    rt_value list;
    if (!ir_const_value(op->operands[0], &list) || list.tag != RT_TAG_LIST ||
        list.as.list->count != op->result_count)
        return;
    for (size_t i = 0; i < op->result_count; i++)
        if (ir_type_is_mutable(op->results[i]->type))
            return;
    ir_builder b = pass_before(fo->m, op);
    for (size_t i = 0; i < op->result_count; i++) {
        rt_value item = list.as.list->items[i];
        pass_replace(fo->m, op->results[i],
                     ir_build_const_typed(&b, item,
                                          constant_type(fo->m, item, op->results[i]->type)));
    }
    ir_op_remove(op);
    pass_count(fo->ctx, "folded", 1);
}

static ts_status fold_op(folder *fo, ir_op *op) {
    switch (op->opcode) {
    case IR_OP_CORE:
        return fold_core(fo, op);
    case IR_OP_IF:
        fold_if(fo, op);
        return NULL;
    case IR_OP_LOOP:
        fold_loop(fo, op);
        return NULL;
    case IR_OP_IS_INSTANCE:
        fold_is_instance(fo, op);
        return NULL;
    case IR_OP_CAST:
    case IR_OP_CHECK_CAST:
        fold_cast(fo, op);
        return NULL;
    case IR_OP_LIST:
        fold_list(fo, op);
        return NULL;
    case IR_OP_TUPLE:
        fold_tuple(fo, op);
        return NULL;
    case IR_OP_TUPLE_GET:
    case IR_OP_TUPLE_UNPACK:
        fold_tuple_items(fo, op);
        return NULL;
    case IR_OP_LIST_UNPACK:
        fold_list_items(fo, op);
        return NULL;
    case IR_OP_REFINE:
        if (ir_type_is_refinement(op->operands[0]->type, op->type))
            replace_with_constant(fo, op, rt_bool(true), op->results[0]->type);
        return NULL;
    case IR_OP_DIM:
        if (rt_dim_is_constant(op->integer))
            replace_with_constant(fo, op, rt_int(op->integer), op->results[0]->type);
        return NULL;
    default:
        return NULL;
    }
}

ts_status pass_fold_constants(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next) {
        folder fo = {.ctx = ctx, .m = m, .f = f, .has_gradients = pass_asks_for_gradients(f->body)};
        pass_op_list ops = pass_collect(ctx, f);
        for (size_t i = 0; i < ops.count; i++)
            if (pass_is_linked(ops.items[i]))
                TS_TRY(fold_op(&fo, ops.items[i]));
    }
    return NULL;
}
