/* frontend/emit_index.c - x[i], read, written, deleted: tensors as PyTorch slices them, lists, dicts,
 * strings, tuples, module containers, user classes. */
#include "frontend/emit_builtin.h"

typedef enum index_kind { IX_VALUE, IX_SLICE, IX_ELLIPSIS, IX_NONE } index_kind;
typedef struct index_item {
    index_kind kind;
    em v;
    ir_value *start, *stop, *step;
    const ast_node *node;
} index_item;
typedef struct index_list {
    index_item *items;
    size_t count;
    bool is_tuple;
    const ast_node *node;
    bool failed;
} index_list;

static index_item item_of(emitter *E, em v, const ast_node *node) {
    index_item item = {.kind = IX_VALUE, .v = v, .node = node};
    bool is_name = v.kind == EM_BINDING && v.binding->kind == FE_NAME;
    if (is_name && ts_str_is(v.binding->path, "builtins.Ellipsis"))
        item.kind = IX_ELLIPSIS;
    if (v.kind == EM_VALUE && v.value->type->kind == IR_NONE)
        item.kind = IX_NONE;
    if (v.kind == EM_VALUE && em_is_slice(v.value->type)) {
        ir_value *parts[3];
        em_slice_parts(E, v.value, parts, node);
        item.kind = IX_SLICE;
        item.start = parts[0];
        item.stop = parts[1];
        item.step = parts[2];
    }
    return item;
}

static void parse_item(emitter *E, const ast_node *node, index_list *out) {
    index_item *item = &out->items[out->count++];
    *item = (index_item){.node = node};
    switch (node->kind) {
    case AST_SLICE: {
        item->kind = IX_SLICE;
        const ast_node *parts[3] = {node->left, node->right, node->third};
        ir_value **to[3] = {&item->start, &item->stop, &item->step};
        for (int i = 0; i < 3; i++)
            if (parts[i]) {
                *to[i] = em_index_of(E, em_expression_ir(E, parts[i], NULL), node);
                out->failed = out->failed || !*to[i];
                if (*to[i] && (*to[i])->type->kind == IR_NONE)
                    *to[i] = NULL;
            }
        break;
    }
    case AST_ELLIPSIS:
        item->kind = IX_ELLIPSIS;
        break;
    case AST_NONE:
        item->kind = IX_NONE;
        break;
    default:
        *item = item_of(E, em_expression(E, node, NULL), node);
        out->failed = out->failed || item->v.kind == EM_ERROR;
        break;
    }
}

static index_list parse_index(emitter *E, const ast_node *node) {
    index_list list = {.node = node, .is_tuple = node->kind == AST_TUPLE};
    size_t count = list.is_tuple ? node->list.count : 1;
    list.items = TS_NEW_ARRAY(E->arena, index_item, count + 1);
    if (list.is_tuple)
        for (size_t i = 0; i < count; i++)
            parse_item(E, node->list.items[i], &list);
    else
        parse_item(E, node, &list);
    return list;
}

/* What __getitem__ and its kind are given. */
static em key_of(emitter *E, const index_list *ix) {
    em *keys = TS_NEW_ARRAY(E->arena, em, ix->count + 1);
    for (size_t i = 0; i < ix->count; i++) {
        const index_item *item = &ix->items[i];
        ir_value *parts[3] = {item->start, item->stop, item->step};
        keys[i] = em_key(E, item->v, item->node);
        if (item->kind == IX_SLICE && item->v.kind != EM_VALUE)
            keys[i] = em_slice_object(E, parts, item->node);
        if (item->kind == IX_NONE)
            keys[i] = em_value(ir_build_none(&E->b));
    }
    return ix->is_tuple ? (em){.kind = EM_TUPLE, .items = keys, .count = ix->count} : keys[0];
}

/* x[t] of a tuple t: as if its items were written. */
static index_list without_tuple(emitter *E, const index_list *ix) {
    em v = ix->items[0].v;
    if (ix->is_tuple || ix->items[0].kind != IX_VALUE)
        return *ix;
    if (v.kind == EM_VALUE && v.value->type->kind == IR_TUPLE) {
        const ir_type *t = v.value->type;
        ir_op *op = ir_build_op(&E->b, IR_OP_TUPLE_UNPACK, &v.value, 1, t->args, t->arg_count);
        v = (em){.kind = EM_TUPLE, .count = t->arg_count, .items = TS_NEW_ARRAY(E->arena, em, t->arg_count + 1)};
        for (size_t i = 0; i < v.count; i++)
            v.items[i] = em_value(op->results[i]);
    }
    if (v.kind != EM_TUPLE)
        return *ix;
    index_list out = {.is_tuple = true, .node = ix->node, .count = v.count};
    out.items = TS_NEW_ARRAY(E->arena, index_item, v.count + 1);
    for (size_t i = 0; i < v.count; i++)
        out.items[i] = item_of(E, v.items[i], ix->items[0].node);
    return out;
}

static ir_value *or_none(emitter *E, ir_value *v) { return v ? v : ir_build_none(&E->b); }

/* ---- tensors ---- */

static bool is_advanced(emitter *E, index_item *item, ir_value **out) {
    ir_value *v = em_ir(E, item->v, item->node, NULL);
    *out = v;
    if (!v)
        return false;
    if (v->type->kind == IR_OPTIONAL)
        *out = v = em_check_cast(E, v, v->type->args[0]);
    if (v->type->kind == IR_LIST) {
        *out = em_op(E, "tensor", item->node, 1, v);
        return true;
    }
    return v->type->kind == IR_TENSOR;
}

static bool is_bool(const index_item *item) {
    return item->kind == IX_VALUE && item->v.kind == EM_VALUE && item->v.value->type->kind == IR_BOOL;
}

static size_t consuming_after(const index_list *ix, size_t from) {
    size_t n = 0;
    for (size_t i = from; i < ix->count; i++)
        if ((ix->items[i].kind == IX_VALUE && !is_bool(&ix->items[i])) || ix->items[i].kind == IX_SLICE)
            n++;
    return n;
}

/* The view that the basic parts select; *out_indices the list for index(), NULL where there is none. */
static ir_value *select_view(emitter *E, ir_value *x, index_list *given, ir_value **out_indices,
                             const ast_node *node) {
    index_list whole = without_tuple(E, given), *ix = &whole;
    em first = ix->count ? ix->items[0].v : em_error();
    if (ix->count == 1 && ix->items[0].kind == IX_VALUE && first.kind == EM_VALUE &&
        first.value->type->kind == IR_LIST && em_is_slice(first.value->type->args[0])) {
        em operands[2] = {em_value(x), first};
        *out_indices = NULL;
        return em_ir(E, em_call_python(E, "builtins.tensor_by_slices", operands, 2, node), node, NULL);
    }
    if (ix->count == 1 && !ix->is_tuple && ix->items[0].kind == IX_VALUE && first.kind == EM_VALUE && em_is_script(node) &&
        first.value->type->kind == IR_LIST && first.value->type->args[0]->kind == IR_TENSOR) {
        *out_indices = first.value; /* x[torch.where(m)], x[[n, n]]: as a tuple of them */
        return x;
    }
    if (ix->count == 1 && !ix->is_tuple && ix->items[0].kind == IX_VALUE && em_is_script(node)) {
        ir_value *lists = em_ir(E, first, node, NULL);
        if (lists && lists->type->kind == IR_LIST &&
            (lists->type->args[0]->kind == IR_LIST || lists->type->args[0]->kind == IR_TUPLE)) {
            em operand = em_value(lists);
            *out_indices = em_ir(E, em_call_python(E, "builtins.index_by_lists", &operand, 1, node), node, NULL);
            return *out_indices ? x : NULL;
        }
    }
    int64_t dim = 0;
    bool from_end = false;
    size_t consumed_late = 0;
    ir_value **tensors = TS_NEW_ARRAY(E->arena, ir_value *, ix->count + 65);
    size_t tensor_count = 0, late_from = 0;
    bool any = false;
    ir_value *ellipsis_pad = NULL;
    (void)consumed_late;
    (void)late_from;
    /* After an ellipsis dims count from the end: `left` consuming items are still to come, so the
     * next stands at -left (tensors that stay in place count, too). */
    for (size_t i = 0; i < ix->count && x; i++) {
        index_item *item = &ix->items[i];
        size_t left = consuming_after(ix, i);
        int64_t at = from_end ? -(int64_t)left : dim;
        switch (item->kind) {
        case IX_NONE:
            x = em_op(E, "unsqueeze", item->node, 2, x,
                      ir_build_int(&E->b, from_end ? -(int64_t)left - 1 : dim));
            if (from_end)
                tensors[tensor_count++] = NULL;
            else
                tensors[tensor_count++] = NULL;
            dim++;
            break;
        case IX_ELLIPSIS: {
            size_t after = consuming_after(ix, i + 1);
            if (!after) {
                bool none_after = false;
                for (size_t k = i + 1; k < ix->count; k++)
                    none_after = none_after || ix->items[k].kind == IX_NONE;
                if (!none_after)
                    return *out_indices = NULL, any ? NULL : x;
            }
            from_end = true;
            bool tensors_after = false;
            for (size_t k = i + 1; k < ix->count; k++)
                if (ix->items[k].kind == IX_VALUE) {
                    ir_value *v = em_ir(E, ix->items[k].v, ix->items[k].node, NULL);
                    tensors_after = tensors_after || (v && (v->type->kind == IR_TENSOR || v->type->kind == IR_LIST));
                }
            if (tensors_after) {
                /* As many untouched dims as the rank says. */
                ir_value *rank = em_op(E, "dim", node, 1, x);
                ellipsis_pad = em_op(E, "sub", node, 2, rank, ir_build_int(&E->b, dim + (int64_t)after));
                late_from = tensor_count;
            }
            break;
        }
        case IX_SLICE:
            if (item->start || item->stop || item->step)
                x = em_op(E, "slice", item->node, 5, x, ir_build_int(&E->b, at), or_none(E, item->start),
                          or_none(E, item->stop), item->step ? item->step : ir_build_int(&E->b, 1));
            tensors[tensor_count++] = NULL;
            dim++;
            break;
        case IX_VALUE: {
            ir_value *v;
            if (is_advanced(E, item, &v)) {
                tensors[tensor_count++] = v;
                any = true;
                dim++;
            } else if (v) {
                if (is_bool(item)) { /* a mask of one item over a new dimension */
                    ir_value *mask = em_op(E, "tensor", item->node, 1, em_list_of(E, &v, 1, v->type));
                    x = em_op(E, "unsqueeze", item->node, 2, x, ir_build_int(&E->b, at));
                    tensors[tensor_count++] = mask;
                    any = true;
                    dim++;
                    break;
                }
                x = em_op(E, "select", item->node, 3, x, ir_build_int(&E->b, at), v);
            } else {
                x = NULL;
            }
            break;
        }
        }
    }
    *out_indices = NULL;
    if (!any || !x)
        return x;
    const ir_type *optional = ir_type_optional(E->m, ir_type_any_tensor(E->m));
    ir_value *parts[2] = {NULL, NULL};
    size_t split = ellipsis_pad ? late_from : tensor_count;
    for (int p = 0; p < 2; p++) {
        size_t from = p ? split : 0, to = p ? tensor_count : split;
        if (!p && ellipsis_pad) {
            /* what stands before the ellipsis, then the padding */
        }
        while (p == 1 ? to > from && !tensors[to - 1] : !ellipsis_pad && to > from && !tensors[to - 1])
            to--;
        ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, to - from + 1);
        for (size_t i = from; i < to; i++)
            items[i - from] = tensors[i] ? em_cast(E, tensors[i], optional)
                                         : em_cast(E, ir_build_none(&E->b), optional);
        parts[p] = em_list_of(E, items, to - from, optional);
    }
    ir_value *list = parts[0];
    if (ellipsis_pad) {
        ir_value *none = em_cast(E, ir_build_none(&E->b), optional);
        ir_value *pad = em_row(E, "mul.left_t", node, 2, em_list_of(E, &none, 1, optional), ellipsis_pad);
        list = em_row(E, "add.t", node, 2, list, pad);
        list = em_row(E, "add.t", node, 2, list, parts[1]);
    }
    *out_indices = list;
    return x;
}

static em get_tensor(emitter *E, ir_value *x, index_list *ix, const ast_node *node) {
    ir_value *indices = NULL;
    ir_value *view = select_view(E, x, ix, &indices, node);
    if (!view)
        return em_error();
    if (indices)
        return em_value(em_op(E, em_is_script(node) ? "prim_getitem" /* a 0-d tensor of ints selects, as an int does */ : "index", node, 2, view, indices));
    if (view == x) /* x[...], x[:] */
        return em_value(em_op(E, "alias", node, 1, x));
    return em_value(view);
}

static void set_tensor(emitter *E, ir_value *x, index_list *ix, em v, const ast_node *node) {
    ir_value *indices = NULL;
    ir_value *value = em_ir(E, v, node, NULL);
    ir_value *view = select_view(E, x, ix, &indices, node);
    if (!view || !value)
        return;
    if (value->type->kind == IR_OPTIONAL)
        value = em_check_cast(E, value, value->type->args[0]);
    bool is_tensor = value->type->kind == IR_TENSOR;
    if (!indices) {
        ir_value *fill = is_tensor ? NULL : em_coerce(E, value, em_simple(E, IR_NUMBER), 0, node, "the value");
        if (is_tensor) {
            em_op(E, "copy_", node, 2, view, value);
        } else if (fill) {
            em_check_fits(E, view, fill, false, node);
            em_row(E, "fill_.Scalar", node, 2, view, fill);
        }
        return;
    }
    if (!is_tensor) {
        em_arguments args = {0};
        em_argument data = {.v = em_value(value), .node = node};
        em_argument dtype = {.name = TS_STR("dtype"), .node = node,
                             .v = em_value(em_op(E, "prim_dtype", node, 1, view))};
        TS_APPEND(E->arena, args.items, args.count, args.capacity, data);
        TS_APPEND(E->arena, args.items, args.count, args.capacity, dtype);
        em t = em_operator(E, TS_STR("tensor"), &args, node);
        if (t.kind != EM_VALUE)
            return;
        value = t.value;
    }
    em_op(E, em_is_script(node) ? "prim_setitem_" : "index_put_", node, 3, view, indices, value);
}

/* ---- tuples, lists, modules ---- */

/* One of several modules or functions, chosen at run time: calls and methods go through a chain of
 * ifs (emit_call.c). */
static em choice_of(emitter *E, em *items, ir_value **keys, size_t count, ir_value *index,
                    const ast_node *node) {
    if (!count || count > 64) {
        EM_UNSUPPORTED(E, node, "a choice among %zu modules or functions is not supported yet", count);
        return em_error();
    }
    if (!keys) {
        index = em_coerce(E, index, em_simple(E, IR_INT), 0, node, "the index");
        if (!index)
            return em_error();
        ir_value *size = ir_build_int(&E->b, (int64_t)count);
        em_choice choice;
        em_choose(E, &choice, em_row(E, "lt.int", node, 2, index, ir_build_int(&E->b, 0)));
        em_choose_other(E, &choice, em_row(E, "add.int", node, 2, index, size));
        index = em_choose_end(E, &choice, index, node);
    }
    return (em){.kind = EM_CHOICE, .items = items, .keys = keys, .count = count, .value = index};
}

static em get_tuple(emitter *E, em tuple, index_list *ix, const ast_node *node) {
    index_item *item = &ix->items[0];
    em *items = tuple.items;
    size_t count = tuple.count;
    ir_value *whole = NULL;
    if (tuple.kind == EM_VALUE) {
        whole = tuple.value;
        count = whole->type->arg_count;
    }
    if (item->kind == IX_SLICE) {
        int64_t parts[3] = {0, (int64_t)count, 1};
        bool given[3] = {item->start != NULL, item->stop != NULL, item->step != NULL};
        ir_value *values[3] = {item->start, item->stop, item->step};
        for (int i = 2; i >= 0; i--)
            if (given[i] && !ir_const_int(values[i], &parts[i])) {
                EM_UNSUPPORTED(E, node, "a slice of a tuple with unknown bounds is not supported yet");
                return em_error();
            }
        int64_t n = (int64_t)count, step = parts[2];
        if (!step) {
            EM_ERR(E, node, "slice step cannot be zero");
            return em_error();
        }
        int64_t start = given[0] ? parts[0] : step > 0 ? 0 : n - 1;
        int64_t stop = given[1] ? parts[1] : step > 0 ? n : -n - 1;
        if (start < 0)
            start += n;
        if (stop < 0)
            stop += n;
        int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
        start = start < low ? low : start > high ? high : start;
        stop = stop < low ? low : stop > high ? high : stop;
        em *out = TS_NEW_ARRAY(E->arena, em, count + 1);
        size_t out_count = 0;
        ir_op *op = whole ? ir_build_op(&E->b, IR_OP_TUPLE_UNPACK, &whole, 1, whole->type->args, count) : NULL;
        for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step)
            out[out_count++] = whole ? em_value(op->results[i]) : items[i];
        return (em){.kind = EM_TUPLE, .items = out, .count = out_count};
    }
    ir_value *at = item->kind == IX_VALUE ? em_index_of(E, em_ir(E, item->v, item->node, NULL), node) : NULL;
    int64_t index;
    if (!at)
        return em_error();
    if (ir_const_int(at, &index)) {
        int64_t n = (int64_t)count;
        if (index < 0)
            index += n;
        if (index < 0 || index >= n) {
            EM_ERR(E, node, "the tuple has %zu items: there is no index %lld", count,
                   (long long)(index < 0 ? index - n : index));
            return em_error();
        }
        if (!whole)
            return items[index];
        ir_op *op = ir_build_op(&E->b, IR_OP_TUPLE_GET, &whole, 1, &whole->type->args[index], 1);
        op->integer = index;
        return em_value(op->results[0]);
    }
    bool static_items = false;
    for (size_t i = 0; !whole && i < count; i++)
        static_items = static_items || (items[i].kind == EM_BINDING && items[i].binding->kind != FE_VALUE) ||
                       items[i].kind == EM_CLOSURE || items[i].kind == EM_METHOD;
    if (static_items)
        return choice_of(E, items, NULL, count, at, node);
    if (!whole)
        whole = em_ir(E, tuple, node, NULL);
    if (!whole || !count)
        return em_error();
    const ir_type *type = whole->type->args[0];
    for (size_t i = 1; i < count; i++)
        type = ir_type_join(E->m, type, whole->type->args[i]);
    ir_value *v = em_row(E, "prim_tuple_getitem", node, 2, whole,
                         em_coerce(E, at, em_simple(E, IR_INT), 0, node, "the index"));
    return em_value(em_cast(E, v, type));
}

/* One of several parameters: an item of a list of them, which aliases what it is. */
static em choose_value(emitter *E, const em_iteration *it, ir_value *index, const ast_node *node) {
    ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, it->count);
    for (size_t i = 0; i < it->count; i++)
        if (!(items[i] = em_ir(E, it->items[i], node, NULL)))
            return em_error();
    index = em_coerce(E, index, em_simple(E, IR_INT), 0, node, "the index");
    ir_value *list = em_list_of(E, items, it->count, ir_type_any_tensor(E->m));
    return index ? em_value(em_op(E, "__getitem__", node, 2, list, index)) : em_error();
}

static em get_module(emitter *E, ir_value *object, index_list *ix, const ast_node *node) {
    const ir_class *c = object->type->class_;
    em_iteration it;
    em children = {.kind = EM_CHILDREN, .value = object, .name = TS_STR("children"), .has_repeats = true};
    bool parameters = false;
    for (size_t i = 0; i < c->field_count; i++)
        parameters = parameters || c->fields[i].is_parameter;
    if (parameters)
        children.name = TS_STR("parameters");
    index_item *item = &ix->items[0];
    rt_value key;
    ir_value *k = item->kind == IX_VALUE ? em_ir(E, item->v, item->node, NULL) : NULL;
    if (k && ir_const_value(k, &key) && key.tag == RT_TAG_STR)
        return em_attribute_of(E, em_value(object), rt_str_text(key.as.str), node, false);
    if (!em_iterate(E, children, node, &it))
        return em_error();
    if (k && k->type->kind == IR_STR) {
        em_iteration names;
        em keys = {.kind = EM_CHILDREN, .value = object, .name = TS_STR("keys")};
        if (!em_iterate(E, keys, node, &names) || names.count != it.count)
            return em_error();
        ir_value **values = TS_NEW_ARRAY(E->arena, ir_value *, it.count + 1);
        for (size_t i = 0; i < it.count; i++)
            values[i] = names.items[i].value;
        return choice_of(E, it.items, values, it.count, k, node);
    }
    int64_t index;
    if (item->kind == IX_VALUE && k && !ir_const_int(k, &index))
        return parameters && it.count ? choose_value(E, &it, k, node)
                                      : choice_of(E, it.items, NULL, it.count, k, node);
    em part = get_tuple(E, (em){.kind = EM_TUPLE, .items = it.items, .count = it.count}, ix, node);
    if (part.kind == EM_TUPLE && item->kind == IX_SLICE && ts_str_is(c->base.bare_name, "Sequential"))
        part.name = c->base.bare_name; /* it can be called */
    return part;
}

/* A dict of the module level that holds functions: by a known key, or a choice. */
static bool get_of_functions(emitter *E, const rt_dict *dict, index_item *item, const ast_node *node,
                             em *out) {
    const rt_dict_entry *entry;
    size_t count = 0;
    em *items = TS_NEW_ARRAY(E->arena, em, dict->live_count + 1);
    ir_value **keys = TS_NEW_ARRAY(E->arena, ir_value *, dict->live_count + 1);
    bool any = false;
    for (size_t at = 0; (entry = rt_dict_next(dict, &at));) {
        any = any || entry->value.tag == RT_TAG_FUNCTION;
        count++;
    }
    if (!any)
        return false;
    ir_value *k = em_ir(E, item->v, item->node, NULL);
    *out = em_error();
    if (!k)
        return true;
    rt_value known;
    bool is_known = ir_const_value(k, &known);
    count = 0;
    for (size_t at = 0; (entry = rt_dict_next(dict, &at));) {
        bool same = false;
        if (is_known) {
            ts_status status = rt_equal(known, entry->key, &same);
            ts_status_release(status);
            if (same) {
                *out = em_of_value(E, entry->value);
                return true;
            }
        }
        items[count] = em_of_value(E, entry->value);
        keys[count++] = ir_build_const(&E->b, entry->key);
    }
    *out = choice_of(E, items, keys, count, k, node);
    return true;
}

static em get_item(emitter *E, em object, index_list *ix, const ast_node *node) {
    if (object.kind == EM_ERROR || ix->failed)
        return em_error();
    if (object.kind == EM_TUPLE)
        return get_tuple(E, object, ix, node);
    if (object.kind == EM_BINDING && object.binding->kind == FE_CLASS &&
        object.binding->class_->kind == RT_CLASS_ENUM) {
        fe_class *c = object.binding->class_;
        ir_value *k = em_coerce(E, em_ir(E, ix->items[0].v, node, NULL), em_simple(E, IR_STR), 0, node, "the member's name");
        rt_value key;
        fe_class_variable *known = NULL;
        if (!k || !fe_class_ir(E->fe, c))
            return em_error();
        if (ir_const_value(k, &key) && key.tag == RT_TAG_STR)
            known = fe_class_find_variable(c, rt_str_text(key.as.str));
        return known && known->value.tag == RT_TAG_ENUM ? em_of_value(E, known->value)
                                                        : em_enum_member_named(E, c, k, 0, node);
    }
    if (object.kind == EM_BINDING && object.binding->kind == FE_VALUE &&
        object.binding->value.tag == RT_TAG_DICT && ix->items[0].kind == IX_VALUE) {
        em r;
        if (get_of_functions(E, object.binding->value.as.dict, &ix->items[0], node, &r))
            return r;
    }
    ir_value *x = em_ir(E, object, node, NULL);
    if (!x)
        return em_error();
    const ir_type *t = x->type;
    if (t->kind == IR_OPTIONAL || (t->kind == IR_UNION && ir_type_admits_none(t))) {
        x = em_check_cast(E, x, ir_type_without_none(E->m, t));
        t = x->type;
    }
    index_item *item = &ix->items[0];
    switch (t->kind) {
    case IR_TENSOR:
        return get_tensor(E, x, ix, node);
    case IR_TUPLE:
        return get_tuple(E, em_value(x), ix, node);
    case IR_LIST:
    case IR_STR:
    case IR_DICT:
        if (em_is_set_type(t) && em_is_script(node)) {
            EM_ERR(E, node, "a set cannot be indexed");
            return em_error();
        }
        if (item->kind == IX_SLICE && !ix->is_tuple)
            return (em){.kind = EM_VALUE,
                        .is_tuple = object.kind == EM_VALUE && object.is_tuple,
                        .is_size = object.kind == EM_VALUE && object.is_size,
                        .value = em_op(E, "slice", node, 4, x, or_none(E, item->start), or_none(E, item->stop),
                                       item->step ? item->step : ir_build_int(&E->b, 1))};
        {
            ir_value *k = NULL;
            if (ix->is_tuple) {
                em *keys = TS_NEW_ARRAY(E->arena, em, ix->count + 1);
                for (size_t i = 0; i < ix->count; i++)
                    keys[i] = ix->items[i].v;
                k = em_ir(E, (em){.kind = EM_TUPLE, .items = keys, .count = ix->count}, node, NULL);
            } else if (item->kind == IX_VALUE) {
                k = em_ir(E, t->kind == IR_DICT ? em_key(E, item->v, item->node) : item->v, item->node, NULL);
            }
            if (!k) {
                EM_ERR(E, node, "this index does not fit %s", em_type_text(E, t));
                return em_error();
            }
            if (t->kind == IR_DICT)
                k = em_same_key(E, x, em_coerce(E, k, t->args[0], 0, node, "the key"), node);
            else if (k->type->kind == IR_STR || k->type->kind == IR_FLOAT || k->type->kind == IR_LIST || k->type->kind == IR_CLASS)
                k = em_coerce(E, k, em_simple(E, IR_INT), 0, node, "the index");
            return em_value(k ? em_op(E, "__getitem__", node, 2, x, k) : NULL);
        }
    case IR_CLASS:
        if (em_class_has_method(t, "__getitem__")) {
            em key = key_of(E, ix);
            return key.kind == EM_ERROR ? key : em_call_method0(E, x, "__getitem__", &key, 1, node);
        }
        if (t->class_->base.kind == RT_CLASS_MODULE)
            return get_module(E, x, ix, node);
        break;
    case IR_ANY:
        if (item->kind == IX_VALUE && !ix->is_tuple) {
            ir_value *k = em_ir(E, item->v, item->node, NULL);
            if (k && k->type->kind == IR_INT)
                return em_value(em_row(E, "prim_tuple_getitem", node, 2, x, k));
        }
        break;
    default:
        break;
    }
    const fe_class *made = t->kind == IR_CLASS ? fe_class_of(t->class_) : NULL;
    EM_ERR(E, node, "%s cannot be indexed", made && made->is_made ? "a function" : em_type_text(E, t));
    return em_error();
}

em em_subscript(emitter *E, const ast_node *node) {
    em object = em_expression(E, node->left, NULL);
    if (object.kind == EM_ERROR)
        return object;
    object = em_tensor_part(E, object);
    index_list ix = parse_index(E, node->right);
    em_place(E, node);
    return get_item(E, object, &ix, node);
}

static void set_item(emitter *E, ir_value *object, index_list *ix, em v, const ast_node *node) {
    if (ix->failed || v.kind == EM_ERROR)
        return;
    if (object->type->kind == IR_OPTIONAL)
        object = em_check_cast(E, object, object->type->args[0]);
    const ir_type *t = object->type;
    index_item *item = &ix->items[0];
    if (t->kind == IR_DICT || (t->kind == IR_LIST && item->kind != IX_SLICE))
        v = em_kept(E, v, node, t->args[t->kind == IR_DICT]);
    switch (t->kind) {
    case IR_TENSOR:
        set_tensor(E, object, ix, v, node);
        return;
    case IR_LIST:
        if (item->kind == IX_SLICE) {
            ir_value *values = em_ir(E, v, node, t);
            if (values && values->type->kind != IR_LIST && !em_is_number(values->type))
                values = em_op(E, "list", node, 1, values);
            values = em_coerce(E, values, t, 0, node, "the slice's new items");
            em_row(E, "prim_list_set_slice", node, 5, object, or_none(E, item->start),
                   or_none(E, item->stop), item->step ? item->step : ir_build_int(&E->b, 1), values);
            return;
        }
        em_op(E, "_set_item", node, 3, object, em_index_of(E, em_ir(E, item->v, node, NULL), node),
              em_cast(E, em_coerce(E, em_ir(E, v, node, t->args[0]), t->args[0], 0, node, "the item"), t->args[0]));
        return;
    case IR_DICT: {
        em key = key_of(E, ix);
        ir_value *k = em_ir(E, key, node, t->args[0]), *value = em_ir(E, v, node, t->args[1]);
        if (value && value->type->kind == IR_NONE && !em_is_set_type(t) && !ir_type_admits_none(t->args[1]) && k)
            value = em_cast(E, value, ir_type_optional(E->m, t->args[1]));
        if (em_retype_dict(E, object, k, value))
            return;
        k = em_same_key(E, object, em_coerce(E, k, t->args[0], 0, node, "the key"), node);
        em_op(E, "_set_item", node, 3, object, k,
              em_cast(E, em_coerce(E, value, t->args[1], 0, node, "the value"), t->args[1]));
        return;
    }
    case IR_CLASS:
        if (em_class_has_method(t, "__setitem__")) {
            em args[2] = {key_of(E, ix), v};
            em_call_method0(E, object, "__setitem__", args, 2, node);
            return;
        }
        break;
    default:
        break;
    }
    EM_ERR(E, node, "items of %s cannot be assigned", em_type_text(E, t));
}

void em_store_subscript(emitter *E, const ast_node *target, ir_value *object, em v,
                        const ast_node *node) {
    index_list ix = parse_index(E, target->right);
    em_place(E, node);
    set_item(E, object, &ix, v, node);
}

void em_augmented_subscript(emitter *E, const ast_node *node) {
    const ast_node *target = node->left;
    ir_value *object = em_expression_ir(E, target->left, NULL);
    if (!object)
        return;
    index_list ix = parse_index(E, target->right);
    if (ix.failed)
        return;
    /* Indices are evaluated once. */
    for (size_t i = 0; i < ix.count; i++)
        if (ix.items[i].kind == IX_VALUE && ix.items[i].v.kind != EM_VALUE)
            ix.items[i].v = em_value(em_ir(E, ix.items[i].v, node, NULL));
    em old = get_item(E, em_value(object), &ix, target);
    em right = em_expression(E, node->right, old.kind == EM_VALUE ? old.value->type : NULL);
    em_place(E, node);
    em v = em_binary(E, node->op, old, right, true, node);
    if (v.kind == EM_ERROR)
        return;
    bool basic = object->type->kind == IR_TENSOR;
    for (size_t i = 0; i < ix.count && basic; i++)
        if (ix.items[i].kind == IX_VALUE && ix.items[i].v.kind == EM_VALUE &&
            (ix.items[i].v.value->type->kind == IR_TENSOR || ix.items[i].v.value->type->kind == IR_LIST))
            basic = false;
    if (basic && old.kind == EM_VALUE && v.kind == EM_VALUE && v.value == old.value)
        return; /* the view was changed in place */
    set_item(E, object, &ix, v, node);
}

void em_delete_subscript(emitter *E, const ast_node *target) {
    ir_value *object = em_expression_ir(E, target->left, NULL);
    if (!object)
        return;
    index_list ix = parse_index(E, target->right);
    if (ix.failed)
        return;
    index_item *item = &ix.items[0];
    if (object->type->kind == IR_LIST && item->kind == IX_SLICE) {
        em_row(E, "prim_list_delete_slice", target, 4, object, or_none(E, item->start),
               or_none(E, item->stop), item->step ? item->step : ir_build_int(&E->b, 1));
        return;
    }
    if (em_class_has_method(object->type, "__delitem__")) {
        em key = key_of(E, &ix);
        em_call_method0(E, object, "__delitem__", &key, 1, target);
        return;
    }
    bool is_set = em_is_set_type(object->type) && em_is_script(target);
    if ((object->type->kind != IR_DICT && object->type->kind != IR_LIST) || is_set) {
        EM_ERR(E, target, "expected a list or dict whose item is deleted, found %s", em_type_text(E, object->type));
        return;
    }
    ir_value *k = em_ir(E, object->type->kind == IR_DICT ? key_of(E, &ix) : item->v, target, NULL);
    em_op(E, "Delete", target, 2, object, object->type->kind == IR_DICT ? em_same_key(E, object, k, target) : k);
}
