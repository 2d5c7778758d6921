/* frontend/init_eval_dispatch.c - the evaluator of scripts: operators by name, chosen by values.
 *
 * Candidates are the rows of the core table called `name` and the functions of the library. What a
 * value costs as an argument decides, and the table's order where that is equal; forms that have no
 * row of their own (foo_, out=) are derived from foo. */
#include <stdlib.h>

#include "frontend/init_eval_internal.h"
#include "runtime/ops/ops.h"
#include "runtime/values/tensor.h"

enum { NO_MATCH = 1 << 20, MAX_ARGS = 40 };

typedef struct row_list {
    rt_op *items;
    size_t count, capacity;
} row_list;

static row_list *rows_of(evaluator *ev, ts_str name) {
    if (!ev->rows.count) {
        for (int i = 0; i < (int)OP_COUNT; i++) {
            ts_str full = rt_op_name((rt_op)i);
            const char *dot = memchr(full.data, '.', full.length);
            ts_str base = {full.data, dot ? (size_t)(dot - full.data) : full.length};
            row_list *list = fe_map_get(&ev->rows, base);
            if (!list) {
                list = TS_NEW(ev->arena, row_list);
                fe_map_set(ev->arena, &ev->rows, base, list);
            }
            TS_APPEND(ev->arena, list->items, list->count, list->capacity, (rt_op)i);
        }
    }
    return fe_map_get(&ev->rows, name);
}

/* ---- what a value costs as an argument of a type ---- */

static bool is_zero_rank(rt_value v) {
    return v.tag == RT_TAG_TENSOR && v.as.tensor->element_count == 1;
}

static int cost(const ir_type *type, int64_t fixed_length, rt_value v) {
    switch (type->kind) {
    case IR_NONE: return v.tag == RT_TAG_NONE ? 0 : NO_MATCH;
    case IR_BOOL: return v.tag == RT_TAG_BOOL ? 0 : is_zero_rank(v) ? 9 : NO_MATCH;
    case IR_INT:
        if (v.tag == RT_TAG_INT)
            return 0;
        if (v.tag == RT_TAG_BOOL)
            return 2;
        return is_zero_rank(v) && !rt_dtype_is_float((rt_dtype)v.as.tensor->dtype) ? 9 : NO_MATCH;
    case IR_FLOAT:
        return v.tag == RT_TAG_FLOAT ? 0
               : v.tag == RT_TAG_INT ? 1
               : v.tag == RT_TAG_BOOL ? 3
               : is_zero_rank(v)      ? 9
                                      : NO_MATCH;
    case IR_COMPLEX: return v.tag == RT_TAG_COMPLEX ? 0 : ev_is_number(v) ? 4 : NO_MATCH;
    case IR_NUMBER:
        return ev_is_number(v) || v.tag == RT_TAG_COMPLEX ? 1 : is_zero_rank(v) ? 9 : NO_MATCH;
    case IR_STR: return v.tag == RT_TAG_STR ? 0 : NO_MATCH;
    case IR_DEVICE: return v.tag == RT_TAG_DEVICE ? 0 : v.tag == RT_TAG_STR ? 2 : NO_MATCH;
    case IR_GENERATOR: return v.tag == RT_TAG_GENERATOR ? 0 : NO_MATCH;
    case IR_TENSOR:
        return v.tag == RT_TAG_TENSOR ? 0 : ev_is_number(v) || v.tag == RT_TAG_COMPLEX ? 50 : NO_MATCH;
    case IR_LIST: {
        if (ev_is_sequence(v) || ev_as_range(v)) {
            size_t n = 0;
            rt_value *items = ev_is_sequence(v) ? ev_items(v, &n) : NULL;
            int worst = v.tag == RT_TAG_LIST ? 0 : 1;
            for (size_t i = 0; i < n; i++) {
                int c = cost(type->args[0], 0, items[i]);
                if (c >= NO_MATCH)
                    return NO_MATCH;
                worst = c > worst ? c : worst;
            }
            return worst;
        }
        if (fixed_length > 0 && cost(type->args[0], 0, v) < NO_MATCH)
            return 3;
        return NO_MATCH;
    }
    case IR_TUPLE: return v.tag == RT_TAG_TUPLE ? 0 : NO_MATCH;
    case IR_DICT: return v.tag == RT_TAG_DICT ? 0 : NO_MATCH;
    case IR_OPTIONAL:
        return v.tag == RT_TAG_NONE ? 0 : cost(type->args[0], fixed_length, v);
    case IR_UNION: {
        int best = NO_MATCH;
        for (size_t i = 0; i < type->arg_count; i++) {
            int c = cost(type->args[i], fixed_length, v);
            best = c < best ? c : best;
        }
        return best;
    }
    case IR_ENUM: return v.tag == RT_TAG_ENUM ? 0 : NO_MATCH;
    case IR_CLASS: return v.tag == RT_TAG_OBJECT ? 0 : NO_MATCH;
    case IR_ANY: return 20;
    case IR_FUTURE:
    case IR_CAPSULE: return v.tag == RT_TAG_CAPSULE ? 0 : NO_MATCH;
    case IR_VAR: return 1;
    }
    return NO_MATCH;
}

static ts_status device_of(rt_value text, rt_value *out) {
    ts_str s = ev_text(text);
    static const char *const names[] = {"cpu", "cuda", "opencl", "meta"};
    for (uint32_t i = 0; i < 4; i++) {
        if (!ts_str_starts_with(s, names[i]))
            continue;
        size_t n = strlen(names[i]);
        *out = (rt_value){.tag = RT_TAG_DEVICE, .aux = i, .as.i = -1};
        if (s.length == n)
            return NULL;
        if (s.data[n] == ':' && s.length > n + 1) {
            out->as.i = strtoll(s.data + n + 1, NULL, 10);
            return NULL;
        }
    }
    *out = rt_none();
    return ts_raise("RuntimeError", "Expected one of cpu, cuda device type at start of device string: %.*s",
                    TS_STR_ARG(s));
}

/* The value as the type asks: a new reference. */
static ts_status convert(evaluator *ev, const ir_type *type, rt_value v, rt_value *out) {
    *out = rt_none();
    if (type->kind == IR_OPTIONAL)
        return v.tag == RT_TAG_NONE ? NULL : convert(ev, type->args[0], v, out);
    bool is_item = v.tag == RT_TAG_TENSOR &&
                   (type->kind == IR_INT || type->kind == IR_FLOAT || type->kind == IR_BOOL ||
                    type->kind == IR_NUMBER);
    if (is_item) {
        rt_value item;
        TS_TRY(rt_tensor_item(v.as.tensor, &item));
        ts_status status = convert(ev, type, item, out);
        rt_release(item);
        return status;
    }
    if (type->kind == IR_FLOAT && ev_is_int(v)) {
        *out = rt_float((double)v.as.i);
        return NULL;
    }
    if (type->kind == IR_INT && v.tag == RT_TAG_BOOL) {
        *out = rt_int(v.as.i);
        return NULL;
    }
    if (type->kind == IR_DEVICE && v.tag == RT_TAG_STR)
        return device_of(v, out);
    if (type->kind == IR_TENSOR && v.tag != RT_TAG_TENSOR) {
        rt_tensor *t;
        TS_TRY(rt_tensor_from_number(v, RT_DTYPE_UNKNOWN, &t));
        *out = rt_from_tensor(t);
        return NULL;
    }
    if (type->kind == IR_LIST) {
        rt_value list, items;
        if (!ev_is_sequence(v) && !ev_as_range(v)) {
            rt_value one;
            TS_TRY(convert(ev, type->args[0], v, &one));
            ts_status status = rt_list_make(1, &list);
            if (!status)
                status = rt_list_append(list.as.list, one);
            rt_release(one);
            *out = list;
            return status;
        }
        bool is_same = v.tag == RT_TAG_LIST && type->args[0]->kind != IR_FLOAT &&
                       type->args[0]->kind != IR_INT && type->args[0]->kind != IR_LIST &&
                       type->args[0]->kind != IR_TENSOR;
        if (is_same) {
            *out = rt_retain(v);
            return NULL;
        }
        TS_TRY(ev_to_list(ev, v, &items));
        ts_status status = rt_list_make(items.as.list->count, &list);
        for (size_t i = 0; i < items.as.list->count && !status; i++) {
            rt_value item;
            status = convert(ev, type->args[0], items.as.list->items[i], &item);
            if (!status)
                status = rt_list_append(list.as.list, item);
            rt_release(item);
        }
        rt_release(items);
        *out = list;
        return status;
    }
    *out = rt_retain(v);
    return NULL;
}

/* ---- rows ---- */

static bool same_name(const ir_schema_arg *a, size_t position, ts_str given) {
    if (ts_str_equal(a->name, given))
        return true;
    if (position == 0 && ts_str_is(given, "input") && ts_str_is(a->name, "self"))
        return true;
    if (ts_str_is(given, "axis") && ts_str_is(a->name, "dim"))
        return true;
    return ts_str_is(given, "keepdims") && ts_str_is(a->name, "keepdim");
}

/* int[] and Tensor[]: their items may be given one by one. */
static const ir_type *spread_list(const ir_type *t) {
    if (t->kind == IR_OPTIONAL)
        t = t->args[0];
    return t->kind == IR_LIST && (t->args[0]->kind == IR_INT || t->args[0]->kind == IR_TENSOR) ? t : NULL;
}

typedef struct bound_row {
    rt_value values[MAX_ARGS]; /* borrowed; UNINITIALIZED: the default */
    int rest_at;               /* the argument that takes several ints, or -1 */
    size_t rest_from, rest_count;
} bound_row;

static int match_row(const ir_schema *s, const ev_arguments *args, bound_row *out) {
    if (s->arg_count > MAX_ARGS)
        return NO_MATCH;
    int total = 0;
    size_t position = 0;
    out->rest_at = -1;
    for (size_t i = 0; i < s->arg_count; i++)
        out->values[i].tag = RT_TAG_UNINITIALIZED;
    for (size_t i = 0; i < args->count; i++) {
        const fe_value_argument *a = &args->items[i];
        size_t k = position;
        if (a->name.length) {
            k = 0;
            while (k < s->arg_count && !same_name(&s->args[k], k, a->name))
                k++;
            if (k == s->arg_count || ev_is_given(out->values[k]))
                return NO_MATCH;
        } else {
            if (k >= s->arg_count || s->args[k].is_keyword_only)
                return NO_MATCH;
            /* view(2, 3), meshgrid(x, y): items of the list given one by one */
            const ir_type *list = s->args[k].fixed_length <= 0 ? spread_list(s->args[k].type) : NULL;
            if (list && cost(list->args[0], 0, a->value) < NO_MATCH) {
                size_t end = i;
                while (end < args->count && !args->items[end].name.length &&
                       cost(list->args[0], 0, args->items[end].value) < 50)
                    end++;
                bool is_rest = end == args->count || args->items[end].name.length;
                if (is_rest && end > i) {
                    out->rest_at = (int)k;
                    out->rest_from = i;
                    out->rest_count = end - i;
                    out->values[k] = a->value;
                    total += 5;
                    i = end - 1;
                    position = s->arg_count;
                    continue;
                }
            }
            position++;
        }
        int c = cost(s->args[k].type, s->args[k].fixed_length, a->value);
        if (c >= NO_MATCH)
            return NO_MATCH;
        if (c >= 50 && k == 0)
            c += 50;
        total += c;
        out->values[k] = a->value;
    }
    for (size_t k = 0; k < s->arg_count; k++)
        if (!ev_is_given(out->values[k]) && !s->args[k].has_default) {
            /* "generator: Generator?" of a .generator row has no default */
            return NO_MATCH;
        }
    /* A dtype is an int here: x.view(6) means the size. */
    if (ts_str_is(s->name, "view") && ts_str_is(s->overload, "dtype"))
        total += 10;
    return total;
}

static ts_status run_row(evaluator *ev, rt_op op, const ir_schema *s, const ev_arguments *args,
                         const bound_row *b, rt_value *out) {
    rt_value values[MAX_ARGS], outs[16];
    ts_status status = NULL;
    size_t made = 0;
    for (; made < s->arg_count && !status; made++) {
        values[made] = rt_none();
        if ((int)made == b->rest_at) {
            rt_value list;
            status = rt_list_make(b->rest_count, &list);
            for (size_t i = 0; i < b->rest_count && !status; i++) {
                rt_value item;
                status = convert(ev, spread_list(s->args[made].type)->args[0],
                                 args->items[b->rest_from + i].value, &item);
                if (!status)
                    status = rt_list_append(list.as.list, item);
            }
            values[made] = list;
        } else if (ev_is_given(b->values[made])) {
            status = convert(ev, s->args[made].type, b->values[made], &values[made]);
            int64_t length = s->args[made].fixed_length;
            /* int[2] given one number: as often as it is long */
            if (!status && length > 1 && values[made].tag == RT_TAG_LIST &&
                values[made].as.list->count == 1 && !ev_is_sequence(b->values[made]))
                for (int64_t i = 1; i < length && !status; i++)
                    status = rt_list_append(values[made].as.list, values[made].as.list->items[0]);
        } else {
            values[made] = rt_retain(s->args[made].default_value);
        }
    }
    for (size_t i = 0; i < 16; i++)
        outs[i] = rt_none();
    if (!status && s->result_count > 16)
        status = ts_error_make(TS_ERR_INTERNAL, "an operator has too many results");
    const rt_op_info *info = rt_op_get(op);
    if (!status && !info->ref)
        status = ts_error_make(TS_ERR_UNSUPPORTED, "operator %.*s cannot run when a script is compiled",
                               TS_STR_ARG(rt_op_name(op)));
    if (!status)
        status = info->ref(&ev->fe->runtime, values, outs);
    for (size_t i = 0; i < made; i++)
        rt_release(values[i]);
    TS_TRY(status);
    if (s->result_count == 1) {
        *out = outs[0];
        return NULL;
    }
    if (s->result_count > 1) {
        status = ev_tuple(outs, s->result_count, out);
        for (size_t i = 0; i < s->result_count; i++)
            rt_release(outs[i]);
    }
    return status;
}

/* ---- library functions ---- */

static bool accepts(const ast_node *annotation, rt_value v) {
    if (!annotation)
        return true;
    ts_str name = annotation->text;
    if (annotation->kind == AST_SUBSCRIPT) {
        name = annotation->left->text;
        if (ts_str_is(name, "Optional"))
            return rt_is_none(v) || accepts(annotation->right, v);
        if (ts_str_is(name, "List") || ts_str_is(name, "list")) {
            size_t n;
            rt_value *items = ev_is_sequence(v) ? ev_items(v, &n) : NULL;
            return items && (!n || accepts(annotation->right, items[0]));
        }
        if (ts_str_is(name, "Tuple"))
            return v.tag == RT_TAG_TUPLE;
        return true;
    }
    if (ts_str_is(name, "Tensor"))
        return v.tag == RT_TAG_TENSOR;
    if (ts_str_is(name, "int"))
        return ev_is_int(v);
    if (ts_str_is(name, "float") || ts_str_is(name, "number") || ts_str_is(name, "Scalar"))
        return ev_is_number(v) || (v.tag == RT_TAG_COMPLEX && !ts_str_is(name, "float"));
    if (ts_str_is(name, "bool"))
        return v.tag == RT_TAG_BOOL;
    if (ts_str_is(name, "str"))
        return v.tag == RT_TAG_STR;
    return true;
}

static bool function_fits(const fe_function *f, const ev_arguments *args) {
    const ast_parameters *p = &f->node->parameters;
    bool given[MAX_ARGS] = {false};
    size_t position = 0;
    if (p->count > MAX_ARGS)
        return false;
    for (size_t i = 0; i < args->count; i++) {
        size_t k = position;
        if (args->items[i].name.length) {
            k = 0;
            while (k < p->count && !ts_str_equal(p->items[k].name, args->items[i].name))
                k++;
        } else {
            position++;
        }
        if (k >= p->count || given[k] || (p->items[k].is_keyword_only && !args->items[i].name.length) ||
            !accepts(p->items[k].annotation, args->items[i].value))
            return false;
        given[k] = true;
    }
    for (size_t k = 0; k < p->count; k++)
        if (!given[k] && !p->items[k].default_value)
            return false;
    return true;
}

/* The arguments with those from a list parameter on gathered into one list: meshgrid(x, y). */
static ts_status gather(evaluator *ev, const fe_function *f, const ev_arguments *args, bool *out_done,
                        ev_arguments *out) {
    const ast_parameters *p = &f->node->parameters;
    size_t at = 0;
    rt_value list;
    *out_done = false;
    while (at < p->count && !(p->items[at].annotation && p->items[at].annotation->kind == AST_SUBSCRIPT &&
                              ts_str_is(p->items[at].annotation->left->text, "List")))
        at++;
    if (at >= p->count || at >= args->count || args->items[at].name.length)
        return NULL;
    TS_TRY(rt_list_make(args->count, &list));
    for (size_t i = 0; i < args->count; i++) {
        bool is_item = i >= at && !args->items[i].name.length;
        if (is_item) {
            ts_status status = rt_list_append(list.as.list, args->items[i].value);
            if (status) {
                rt_release(list);
                return status;
            }
        }
        if (i == at)
            ev_arguments_add(ev, out, (ts_str){0}, list);
        else if (!is_item)
            ev_arguments_add(ev, out, args->items[i].name, rt_retain(args->items[i].value));
    }
    *out_done = true;
    return NULL;
}

/* torch.f(input=x): the library calls its first parameter self. */
static void rename_input(const fe_function *f, ev_arguments *args) {
    const ast_parameters *p = &f->node->parameters;
    for (size_t i = 0; i < args->count && p->count; i++)
        if (ts_str_is(args->items[i].name, "input") && ts_str_is(p->items[0].name, "self"))
            args->items[i].name = p->items[0].name;
}

/* ---- the choice ---- */

static ts_status choose(evaluator *ev, ts_str name, ev_arguments *args, bool *out_found,
                        rt_value *out) {
    row_list *rows = rows_of(ev, name);
    bound_row best, now;
    int lowest = NO_MATCH;
    rt_op op = OP_COUNT;
    *out_found = true;
    for (size_t i = 0; rows && i < rows->count; i++) {
        const ir_schema *s = ir_schema_of(ev->fe->module, rows->items[i]);
        int c = s ? match_row(s, args, &now) : NO_MATCH;
        if (c < lowest) {
            lowest = c;
            best = now;
            op = rows->items[i];
        }
    }
    if (op != OP_COUNT && lowest < 50)
        return run_row(ev, op, ir_schema_of(ev->fe->module, op), args, &best, out);
    fe_function *functions[16];
    size_t count = fe_library_overloads(ev->fe, name, functions, 16);
    for (size_t i = 0; i < count && i < 16; i++) {
        rename_input(functions[i], args);
        if (function_fits(functions[i], args))
            return ev_call_function(ev, functions[i], NULL, args, out);
    }
    for (size_t i = 0; i < count && i < 16; i++) {
        ev_arguments gathered = {0};
        bool is_done;
        ts_status status = gather(ev, functions[i], args, &is_done, &gathered);
        bool fits = !status && is_done && function_fits(functions[i], &gathered);
        if (fits)
            status = ev_call_function(ev, functions[i], NULL, &gathered, out);
        ev_arguments_release(&gathered);
        if (fits || status)
            return status;
    }
    if (op != OP_COUNT)
        return run_row(ev, op, ir_schema_of(ev->fe->module, op), args, &best, out);
    *out_found = false;
    return NULL;
}

static ts_status refuse(evaluator *ev, ts_str name, const ev_arguments *args) {
    ts_buffer text = {0};
    for (size_t i = 0; i < args->count; i++) {
        ts_buffer_text(&text, i ? ", " : "");
        if (args->items[i].name.length)
            ts_buffer_format(&text, "%.*s=", TS_STR_ARG(args->items[i].name));
        ts_buffer_str(&text, ev_type_name(args->items[i].value));
    }
    bool exists = fe_operator_exists(ev->fe, name);
    ts_status status =
        exists ? ts_raise("TypeError", "%.*s() received an invalid combination of arguments: (%.*s)",
                          TS_STR_ARG(name), (int)(text.length > 200 ? 200 : text.length),
                          text.data ? text.data : "")
               : ts_error_make(TS_ERR_UNSUPPORTED, "operator %.*s is not supported", TS_STR_ARG(name));
    ts_buffer_deinit(&text);
    return status;
}

static ts_status copy_result(rt_value into, rt_value result) {
    if (into.tag != RT_TAG_TENSOR || result.tag != RT_TAG_TENSOR)
        return ts_raise("TypeError", "expected tensors");
    return rt_tensor_copy_into(into.as.tensor, result.as.tensor);
}

ts_status ev_dispatch(evaluator *ev, ts_str name, ev_arguments *args, rt_value *out) {
    bool found;
    *out = rt_none();
    TS_TRY(choose(ev, name, args, &found, out));
    if (found)
        return NULL;
    for (size_t i = 0; i < args->count; i++) { /* out= */
        if (!ts_str_is(args->items[i].name, "out") || args->items[i].value.tag != RT_TAG_TENSOR)
            continue;
        ev_arguments rest = {0};
        for (size_t k = 0; k < args->count; k++)
            if (k != i)
                ev_arguments_add(ev, &rest, args->items[k].name, rt_retain(args->items[k].value));
        rt_value result;
        ts_status status = ev_dispatch(ev, name, &rest, &result);
        ev_arguments_release(&rest);
        TS_TRY(status);
        status = copy_result(args->items[i].value, result);
        rt_release(result);
        if (!status)
            *out = rt_retain(args->items[i].value);
        return status;
    }
    if (name.length > 1 && name.data[name.length - 1] == '_' && args->count &&
        name.data[name.length - 2] != '_') {
        ts_str pure = {name.data, name.length - 1};
        rt_value result;
        TS_TRY(choose(ev, pure, args, &found, &result));
        if (found) {
            ts_status status = copy_result(args->items[0].value, result);
            rt_release(result);
            if (!status)
                *out = rt_retain(args->items[0].value);
            return status;
        }
    }
    return refuse(ev, name, args);
}

ts_status ev_op(evaluator *ev, const char *name, const rt_value *args, size_t count,
                rt_value *out) {
    fe_value_argument items[8];
    ev_arguments a = {items, count, 8};
    for (size_t i = 0; i < count && i < 8; i++)
        items[i] = (fe_value_argument){{0}, args[i]};
    return ev_dispatch(ev, ts_str_of(name), &a, out);
}

ts_status ev_row(evaluator *ev, const char *full_name, const rt_value *args, rt_value *out) {
    *out = rt_none();
    rt_op op = rt_op_find(ts_str_of(full_name));
    if (op == OP_COUNT || !rt_op_get(op)->ref)
        return ts_error_make(TS_ERR_UNSUPPORTED, "operator %s is not available when a script is compiled",
                             full_name);
    return rt_op_get(op)->ref(&ev->fe->runtime, args, out);
}
