/* frontend/emit_operator_call.c - a call of an operator by its name: arguments made ready, the overload
 * picked, its call built, or the reason told. */
#include <stdarg.h>

#include "frontend/overload.h"

/* "add.Tensor" as add, and the overload that is meant; without a dot none is. */
static ts_str split_overload(ts_str name, ts_str *out_overload) {
    *out_overload = (ts_str){0};
    for (size_t i = 1; i + 1 < name.length; i++)
        if (name.data[i] == '.') {
            *out_overload = name;
            return (ts_str){name.data, i};
        }
    return name;
}

/* A row is "add.Tensor", a function of the library add__Tensor. */
static bool is_overload(const em_candidate *c, ts_str full) {
    ts_str name = em_candidate_name(c);
    if (!full.length || !c->function)
        return full.length && ts_str_equal(name, full);
    size_t dot = 0;
    while (full.data[dot] != '.')
        dot++;
    return name.length == full.length + 1 && memcmp(name.data, full.data, dot) == 0 &&
           memcmp(name.data + dot, "__", 2) == 0 &&
           memcmp(name.data + dot + 2, full.data + dot + 1, full.length - dot - 1) == 0;
}

/* ---- building the chosen call ---- */

static em results_of(emitter *E, ir_op *op) {
    if (op->result_count == 0)
        return em_value(ir_build_none(&E->b));
    if (op->result_count == 1)
        return em_value(op->results[0]);
    return em_value(em_tuple_of(E, op->results, op->result_count));
}

void em_check_fits(emitter *E, ir_value *like, ir_value *number, bool with_halves, const ast_node *node) {
    const char *row = like->type->kind == IR_TENSOR ? "prim_check_fits.like" : "prim_check_fits.dtype";
    em_row(E, row, node, 3, like, em_cast(E, number, em_simple(E, IR_NUMBER)), ir_build_bool(&E->b, with_halves));
}

/* Operators that write a number into a dtype, which it must fit: which operands the tensor of that dtype, the
 * dtype and the number are; -1: none. */
static void check_number(emitter *E, rt_op op, ir_value *const *operands, const ast_node *node) {
    static const struct { rt_op op; int like, dtype, number; bool with_halves; } rows[] = {
        {OP_fill__Scalar, 0, -1, 1, true},         {OP_fill_Scalar, 0, -1, 1, true},
        {OP_fill_diagonal_, 0, -1, 1, true},       {OP_masked_fill_Scalar, 0, -1, 2, true},
        {OP_masked_fill__Scalar, 0, -1, 2, true},  {OP_index_fill_int_Scalar, 0, -1, 3, true},
        {OP_index_fill__int_Scalar, 0, -1, 3, true}, {OP_scatter_value, 0, -1, 3, true},
        {OP_scatter__value, 0, -1, 3, true},       {OP_full, -1, 2, 1, false},
        {OP_scalar_tensor, -1, 1, 0, false},       {OP_full_like, 0, 2, 1, false},
        {OP_new_full, 0, 3, 2, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].op != op)
            continue;
        ir_value *dtype = rows[i].dtype >= 0 ? operands[rows[i].dtype] : NULL;
        while (dtype && dtype->def && dtype->def->opcode == IR_OP_CAST)
            dtype = dtype->def->operands[0];
        ir_value *like = dtype && dtype->type->kind == IR_INT ? dtype
                         : rows[i].like >= 0 && (!dtype || dtype->type->kind == IR_NONE) ? operands[rows[i].like]
                                                                                        : NULL;
        if (like)
            em_check_fits(E, like, operands[rows[i].number], rows[i].with_halves, node);
    }
}

/* Operators that turn a number into the dtype of their result, which it must fit. A number that is not known
 * when the model is compiled is looked at where it is an int: no float of a program is beyond float32. */
static void check_number_of_result(emitter *E, rt_op op, ir_value *const *operands, ir_value *result,
                                   const ast_node *node) {
    static const struct { rt_op op; int number; bool with_floats, with_halves; } rows[] = {
        {OP_where_ScalarOther, 2, true, false}, {OP_where_ScalarSelf, 1, true, false},
        {OP_clamp, 1, true, true},              {OP_clamp, 2, true, true},
        {OP_clamp_min, 1, true, true},          {OP_clamp_max, 1, true, true},
        {OP_pow_Tensor_Scalar, 1, false, true}, /* powers of floats are computed in double */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].op != op)
            continue;
        const ir_value *number = operands[rows[i].number];
        while (number->def && number->def->opcode == IR_OP_CAST)
            number = number->def->operands[0];
        rt_value constant;
        bool is_float = rows[i].with_floats && number->type->kind == IR_FLOAT && ir_const_value(number, &constant);
        if (is_float || number->type->kind == IR_INT)
            em_check_fits(E, result, operands[rows[i].number], rows[i].with_halves, node);
    }
}

static em build(emitter *E, em_candidate *c, const em_arguments *args, ir_value *const *values,
                const ast_node *node) {
    ir_value *operands[EM_MAX_PARAMETERS];
    ir_type_bindings bindings = {0};
    for (size_t i = 0; i < c->count; i++) {
        em_parameter p = em_parameter_of(c, i);
        if (c->source[i] == -1) {
            rt_value v = p.default_value;
            const ir_type *t = ir_type_of_value(E->m, v);
            if (v.tag == RT_TAG_LIST && v.as.list->count == 0)
                t = ir_type_without_none(E->m, p.type);
            operands[i] = ir_build_const_typed(&E->b, v, t);
            continue;
        }
        if (c->source[i] == -2) {
            ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, c->pack_count);
            for (size_t k = 0; k < c->pack_count; k++)
                items[k] = em_coerce(E, values[c->pack_from + k], em_simple(E, IR_INT), 0, node, "size");
            operands[i] = em_list_of(E, items, c->pack_count, em_simple(E, IR_INT));
            continue;
        }
        ir_value *v = values[c->source[i]];
        ir_type_bindings saved = bindings;
        bool has_variable = ir_type_substitute(E->m, p.type, &(ir_type_bindings){0}) != p.type;
        const ir_type *want = p.type;
        if (has_variable) {
            bool fits = ir_type_match(E->m, p.type, v->type, &bindings);
            const ir_type *first = ir_type_substitute(E->m, p.type, &saved);
            if (!fits || (p.type->kind == IR_VAR && first->kind != IR_ANY)) {
                bindings = saved;
                want = first;
            } else {
                want = NULL;
            }
        }
        if (want && want->kind != IR_ANY)
            v = em_coerce(E, v, want, p.fixed_length, args->items[c->source[i]].node, "argument");
        if (!v)
            return em_error();
        operands[i] = v;
    }
    em_place(E, node);
    if (c->function) {
        ir_function *f = fe_function_ir(E->fe, c->function);
        if (!f) {
            E->failed = true;
            EM_ERR(E, node, "the library function %.*s has errors", TS_STR_ARG(c->function->bare_name));
            return em_error();
        }
        for (size_t i = 0; i < c->count; i++)
            operands[i] = em_cast(E, operands[i], f->body->parameters[i]->type);
        const ir_type *returns = f->return_type ? f->return_type
                                                : em_simple(E, IR_ANY);
        ir_op *op = ir_build_op(&E->b, IR_OP_CALL, operands, c->count, &returns, 1);
        op->function = f;
        return em_value(op->results[0]);
    }
    /* Rows for ints as keys would forget what such ints stand for. */
    static const rt_op views[][2] = {{OP_keys_int, OP_keys_any}, {OP_items_int, OP_items_any}, {OP_popitem_int, OP_popitem_any}};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        if (c->op == views[i][0] && ir_type_meaning(operands[0]->type->args[0]))
            c->op = views[i][1];
    check_number(E, c->op, operands, node);
    ir_op *made = ir_build_core(&E->b, c->op, operands, c->count);
    if (made->result_count == 1)
        check_number_of_result(E, c->op, operands, made->results[0], node);
    return results_of(E, made);
}

/* Within an arm of an if, however deep: code that may never run. The body of a loop does run. */
static bool is_in_arm(const ir_block *block) {
    for (; block && block->parent; block = block->parent->block)
        if (block->parent->opcode == IR_OP_IF)
            return true;
    return false;
}

/* False: an operator unknown to us in one arm of an archive: an error only where it runs. */
static bool refuse(emitter *E, ts_str name, em_candidate *list, size_t count, ir_value *const *values,
                   const em_arguments *args, const ast_node *node) {
    if (!count && node && node->source && node->source->is_archive && is_in_arm(E->b.block))
        return false;
    ts_buffer text = {0};
    for (size_t i = 0; i < args->count; i++) {
        if (i)
            ts_buffer_text(&text, ", ");
        if (args->items[i].name.length) {
            ts_buffer_str(&text, args->items[i].name);
            ts_buffer_text(&text, "=");
        }
        ts_buffer_text(&text, em_type_text(E, values[i]->type));
    }
    if (!text.data)
        ts_buffer_text(&text, "");
    const char *reason = count ? NULL : fe_archive_reason(name);
    if (!count && ts_str_is(name, "vmap"))
        reason = "torch.vmap is not supported yet: write the batched form, or torch.stack over a loop";
    bool is_optional = false;
    for (size_t i = 0; i < args->count; i++)
        is_optional = is_optional || values[i]->type->kind == IR_OPTIONAL;
    if (reason)
        EM_UNSUPPORTED(E, node, "%s", reason);
    else if (!count)
        EM_UNSUPPORTED(E, node, "the operator %.*s is not supported yet", TS_STR_ARG(name));
    else
        EM_ERR(E, node, is_optional ? "no overload of %.*s takes (%.*s): check first that it is not None"
                                    : "no overload of %.*s takes (%.*s)", TS_STR_ARG(name), (int)text.length,
               text.data ? text.data : "");
    ts_buffer_deinit(&text);
    for (size_t i = 0; i < count && i < 8; i++)
        fe_report(E->fe->diagnostics, FE_NOTE, TS_ERR_TYPE, list[i].function ? list[i].function->node : NULL,
                  "candidate %.*s: %.*s", TS_STR_ARG(em_candidate_name(&list[i])),
                  (int)list[i].why.length, list[i].why.data);
    return true;
}

em em_missing_operator(emitter *E, ts_str name, const ast_node *node) {
    fe_report(E->fe->diagnostics, FE_WARNING, TS_ERR_UNSUPPORTED, node,
              "the operator %.*s is not supported yet: reaching it raises", TS_STR_ARG(name));
    em_place(E, node);
    em_raise_named(E, TS_STR("NotImplementedError"),
                   ir_build_str(&E->b, ts_arena_format(E->arena, "the operator %.*s is not supported yet",
                                                       TS_STR_ARG(name))));
    return em_value(em_uninitialized(E, em_simple(E, IR_ANY)));
}

/* A number that a trace met in arithmetic (x * 0.5) is stored as a 0-d tensor of 64 bits; it takes
 * part in type promotion as the number that it was, as in PyTorch's own interpreter. */
static void unwrap_traced_numbers(emitter *E, ts_str name, const em_arguments *args,
                                  ir_value **values) {
    static const char *const names[] = {"add",  "sub",  "mul",  "div",  "floor_divide",
                                        "add_", "sub_", "mul_", "div_", "floor_divide_"};
    bool is_arithmetic = false, has_tensor = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        is_arithmetic = is_arithmetic || ts_str_is(name, names[i]);
    if (!is_arithmetic || args->count < 2)
        return;
    for (size_t i = 0; i < 2; i++) {
        const ast_node *node = args->items[i].node;
        bool is_constant = node && node->kind == AST_ATTRIBUTE && node->left &&
                           node->left->kind == AST_NAME &&
                           ts_str_is(node->left->text, "CONSTANTS");
        rt_value v, number;
        has_tensor = has_tensor || (!is_constant && values[i]->type->kind == IR_TENSOR);
        if (i == 0 || !is_constant || !has_tensor || !ir_const_value(values[i], &v) ||
            v.tag != RT_TAG_TENSOR || v.as.tensor->rank > 0 ||
            (v.as.tensor->dtype != RT_float64 && v.as.tensor->dtype != RT_int64))
            continue;
        ts_status status = rt_tensor_item(v.as.tensor, &number);
        if (status)
            ts_status_release(status);
        else
            values[i] = ir_build_const(&E->b, number);
    }
}

static bool holds_tensors(const ir_type *item) {
    return item->kind == IR_TENSOR || (item->kind == IR_OPTIONAL && item->args[0]->kind == IR_TENSOR);
}

/* In Python the result is a tuple; in TorchScript, whose schemas these are, a list. */
static bool gives_tuple(ts_str name, const ir_type *t, const ast_node *node) {
    static const char *const names[] = {"split", "chunk", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit", "meshgrid",
                                        "broadcast_tensors", "nonzero_numpy", "where", "unsafe_split", "unsafe_chunk",
                                        "split_with_sizes", "unsafe_split_with_sizes", "autograd_grad", "atleast_1d",
                                        "atleast_2d", "atleast_3d", "unravel_index"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = ts_str_is(name, names[i]);
    return found && t->kind == IR_LIST && holds_tensors(t->args[0]) && node && node->source && !node->source->is_archive && !node->source->is_library;
}

/* x.view(*x.shape[:-1], 2, 3): where the length of a starred list is known only at run time, the sizes behind
 * the tensor become one list. False after an error. */
static bool pack_starred(emitter *E, em_arguments *args, const ast_node *node) {
    size_t stars = 0, count = 0;
    for (; count < args->count && (!args->items[count].name.length || ts_str_is(args->items[count].name, "*")); count++)
        stars += args->items[count].name.length > 0;
    if (!stars)
        return true;
    em first = args->items[0].v;
    bool has_self = !args->items[0].name.length && first.kind == EM_VALUE && first.value->type->kind == IR_TENSOR;
    const ir_type *item = em_simple(E, IR_INT);
    ir_value *all = NULL;
    for (size_t i = has_self; i < count; i++) {
        ir_value *v = em_ir(E, args->items[i].v, args->items[i].node, NULL);
        if (!v)
            return false;
        if (args->items[i].name.length && !all && v->type->kind == IR_LIST)
            item = v->type->args[0];
        if (!args->items[i].name.length) {
            v = em_coerce(E, v, item, 0, args->items[i].node, "the size");
            if (!v)
                return false;
            v = em_list_of(E, &v, 1, item);
        }
        all = all ? em_row(E, "add.t", node, 2, all, v) : v;
    }
    args->items[has_self] = (em_argument){.v = em_value(all), .node = node};
    for (size_t i = count; i < args->count; i++)
        args->items[has_self + 1 + i - count] = args->items[i];
    args->count -= count - has_self - 1;
    return true;
}

em em_operator(emitter *E, ts_str name, em_arguments *args, const ast_node *node) {
    ts_str overload;
    name = split_overload(name, &overload);
    name = fe_canonical_operator(E->arena, name);
    if (ts_str_is(name, "item") && !em_operator_is_there(E->fe, name))
        name = TS_STR("ScalarImplicit");
    if (!pack_starred(E, args, node))
        return em_error();
    ir_value **values = TS_NEW_ARRAY(E->arena, ir_value *, args->count + 1);
    for (size_t i = 0; i < args->count; i++) {
        values[i] = em_ir(E, args->items[i].v, args->items[i].node ? args->items[i].node : node, NULL);
        if (!values[i])
            return em_error();
    }
    if (node && node->source && node->source->is_archive && !overload.length && args->count && values[0]->type->kind == IR_TENSOR)
        name = ts_str_is(name, "index") ? TS_STR("prim_getitem") /* of x[n], with n perhaps of no dims */
               : ts_str_is(name, "index_put_") ? TS_STR("prim_setitem_") : name;
    unwrap_traced_numbers(E, name, args, values);
    em_candidate *list = TS_NEW_ARRAY(E->arena, em_candidate, EM_MAX_CANDIDATES);
    size_t count = em_find_candidates(E, name, list);
    em_candidate *best = NULL;
    for (size_t i = 0; i < count; i++) {
        em_match(E, &list[i], args, values);
        /* Asked for by its full name, as exported programs do; but a number among the arguments of
         * add.Tensor stays a number, as it does in PyTorch. */
        if (list[i].cost >= 0 && list[i].cost < COST_NUMBER_AS_TENSOR && is_overload(&list[i], overload)) {
            best = &list[i];
            break;
        }
        if (list[i].cost >= 0 && (!best || list[i].cost < best->cost))
            best = &list[i];
    }
    if (best) {
        em made = build(E, best, args, values, node);
        if ((ts_str_is(name, "result_type") || ts_str_is(name, "promote_types")) && made.kind == EM_VALUE && node &&
            node->source && !node->source->is_archive)
            made.value->type = ir_type_meant(E->m, RT_MEANING_DTYPE);
        made.is_tuple = made.is_tuple || (made.kind == EM_VALUE && gives_tuple(name, made.value->type, node));
        bool of_archive = made.kind == EM_VALUE && node && node->source && node->source->is_archive;
        if (of_archive && args->count == 1 && (ts_str_is(name, "prim_dtype") || ts_str_is(name, "prim_layout")) &&
            made.value->type->kind == IR_INT)
            made.value->type = ir_type_meant(E->m, ts_str_is(name, "prim_dtype") ? RT_MEANING_DTYPE : RT_MEANING_LAYOUT);
        /* An archive has no other spelling of x.shape; [x.size(0)] and list(x.shape) are told apart there, too. */
        made.is_size = made.is_size || (of_archive && args->count && ((ts_str_is(name, "size") && args->count == 1) ||
                                                        (ts_str_is(name, "slice") && args->items[0].v.is_size)));
        return made;
    }
    for (size_t i = 0; i < args->count; i++) { /* where no overload has requires_grad= */
        bool wanted;
        if (!ts_str_is(args->items[i].name, "requires_grad") || !ir_const_bool(values[i], &wanted))
            continue;
        em_arguments rest = em_arguments_without(E, args, i);
        em made = em_operator(E, name, &rest, node);
        return wanted && made.kind == EM_VALUE ? em_value(em_op(E, "requires_grad_", node, 1, made.value)) : made;
    }
    size_t out_at[EM_MAX_PARAMETERS];
    size_t out_count = em_find_named_outs(list, count, args, values, out_at, EM_MAX_PARAMETERS);
    if (out_count > 1) {
        ir_value **outs = TS_NEW_ARRAY(E->arena, ir_value *, out_count);
        em_arguments rest = {0};
        for (size_t i = 0, k = 0; i < args->count; i++) {
            if (k < out_count && out_at[k] == i)
                outs[k++] = values[i];
            else
                TS_APPEND(E->arena, rest.items, rest.count, rest.capacity, args->items[i]);
        }
        return em_derive_outs(E, name, &rest, outs, out_count, node);
    }
    for (size_t i = 0; i < args->count; i++)
        if (ts_str_is(args->items[i].name, "out")) {
            if (values[i]->type->kind == IR_NONE) { /* out=None */
                em_arguments rest = em_arguments_without(E, args, i);
                return em_operator(E, name, &rest, node);
            }
            return em_derive_out(E, name, args, i, node);
        }
    ts_str pure;
    if (em_is_in_place(name, &pure) && em_operator_is_there(E->fe, pure) && args->count &&
        values[0]->type->kind == IR_TENSOR) {
        em r = em_operator(E, pure, args, node);
        if (r.kind != EM_VALUE)
            return r;
        return em_row(E, "prim_check_result", node, 2, values[0], r.value)
                   ? em_value(em_op(E, "copy_", node, 2, values[0], r.value)) : em_error();
    }
    if (refuse(E, name, list, count, values, args, node))
        return em_error();
    return em_missing_operator(E, name, node);
}

ir_value *em_op(emitter *E, const char *name, const ast_node *node, size_t count, ...) {
    em_arguments args = {0};
    va_list list;
    va_start(list, count);
    bool failed = false;
    for (size_t i = 0; i < count; i++) {
        ir_value *v = va_arg(list, ir_value *);
        failed = failed || !v;
        em_argument a = {.v = em_value(v), .node = node};
        TS_APPEND(E->arena, args.items, args.count, args.capacity, a);
    }
    va_end(list);
    if (failed)
        return NULL;
    em r = em_operator(E, ts_str_of(name), &args, node);
    return r.kind == EM_VALUE ? r.value : NULL;
}

ir_value *em_row(emitter *E, const char *full_name, const ast_node *node, size_t count, ...) {
    ir_value *operands[8];
    va_list list;
    va_start(list, count);
    bool failed = count > 8;
    for (size_t i = 0; i < count && !failed; i++) {
        operands[i] = va_arg(list, ir_value *);
        failed = !operands[i];
    }
    va_end(list);
    if (failed)
        return NULL;
    rt_op op = rt_op_find(ts_str_of(full_name));
    if (op == OP_COUNT) {
        EM_UNSUPPORTED(E, node, "the operator %s is not supported yet", full_name);
        return NULL;
    }
    em_place(E, node);
    em r = results_of(E, ir_build_core(&E->b, op, operands, count));
    return r.value;
}
