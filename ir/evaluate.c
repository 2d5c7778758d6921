/* ir/evaluate.c - runs IR with the reference kernels and boxed values.
 *
 * Constant folding of regions and calls, and the oracle of --check-each. Values of a call live in a
 * frame indexed by value number; numbers are set when a function is first met, so no pass may run
 * meanwhile. Sizes (DIM, REFINE) are bound from the sizes of typed parameters and by REFINE. */
#include <stdlib.h>

#include "ir/ir_internal.h"

enum { DEFAULT_DEPTH = 200, VALUE_DEPTH = 100 };

typedef struct known_function {
    const ir_function *function;
    size_t value_count;
} known_function;

typedef struct bound_size {
    ts_str symbol;
    int64_t value;
} bound_size;

typedef struct evaluator {
    ir_module *m;
    const ir_evaluator_options *options;
    ts_arena *arena;
    known_function *functions;
    size_t function_count, function_capacity;
    bound_size *sizes;
    size_t size_count, size_capacity;
    uint64_t executed;
    int depth;
} evaluator;

static ts_status run_function(evaluator *ev, const ir_function *f, const rt_value *args,
                              rt_value *out);
static ts_status run_block(evaluator *ev, const ir_block *b, rt_value *frame, rt_value *out_values);

/* ---- frames ---- */

static void number_block(const ir_block *b, size_t *count) {
    for (size_t i = 0; i < b->parameter_count; i++)
        b->parameters[i]->number = (uint32_t)(*count)++;
    for (const ir_op *op = b->first; op; op = op->next) {
        for (size_t i = 0; i < op->result_count; i++)
            op->results[i]->number = (uint32_t)(*count)++;
        for (size_t i = 0; i < op->region_count; i++)
            number_block(op->regions[i], count);
    }
}

static size_t value_count(evaluator *ev, const ir_function *f) {
    for (size_t i = 0; i < ev->function_count; i++)
        if (ev->functions[i].function == f)
            return ev->functions[i].value_count;
    known_function known = {.function = f};
    number_block(f->body, &known.value_count);
    TS_APPEND(ev->arena, ev->functions, ev->function_count, ev->function_capacity, known);
    return known.value_count;
}

/* ---- sizes ---- */

static ts_status bind_size(evaluator *ev, rt_dim d, int64_t size, bool *out_fits) {
    *out_fits = true;
    if (d == RT_DIM_UNKNOWN)
        return NULL;
    if (rt_dim_is_constant(d)) {
        *out_fits = d == size;
        return NULL;
    }
    ts_str symbol = ir_dim_symbol_name(ev->m, d);
    if (!symbol.length)
        return NULL; /* an expression says nothing that its symbols do not */
    int64_t low, high;
    ir_dim_bounds(ev->m, d, &low, &high);
    if (size < low || size > high) {
        *out_fits = false;
        return NULL;
    }
    for (size_t i = 0; i < ev->size_count; i++)
        if (ts_str_equal(ev->sizes[i].symbol, symbol)) {
            *out_fits = ev->sizes[i].value == size;
            return NULL;
        }
    bound_size bound = {symbol, size};
    TS_APPEND(ev->arena, ev->sizes, ev->size_count, ev->size_capacity, bound);
    return NULL;
}

static ts_status fits_type(evaluator *ev, rt_value v, const ir_type *t, bool *out_fits) {
    *out_fits = true;
    if (t->kind != IR_TENSOR || v.tag != RT_TAG_TENSOR)
        return NULL;
    const rt_tensor *x = v.as.tensor;
    *out_fits = (t->dtype == RT_DTYPE_UNKNOWN || t->dtype == (rt_dtype)x->dtype) &&
                (t->rank < 0 || t->rank == x->rank);
    for (int i = 0; *out_fits && i < t->rank; i++)
        TS_TRY(bind_size(ev, t->dims[i], x->sizes[i], out_fits));
    return NULL;
}

static ts_status size_of(evaluator *ev, rt_dim d, int64_t *out, int depth) {
    ir_dim_node n = ir_dim_get(ev->m, d);
    int64_t a = 0, b = 0;
    if (depth > VALUE_DEPTH || d == RT_DIM_UNKNOWN)
        return ts_error_make(TS_ERR_INTERNAL, "a size is not known");
    if (n.kind == IR_DIM_CONST) {
        *out = n.constant;
        return NULL;
    }
    if (n.kind == IR_DIM_SYMBOL) {
        for (size_t i = 0; i < ev->size_count; i++)
            if (ts_str_equal(ev->sizes[i].symbol, n.symbol)) {
                *out = ev->sizes[i].value;
                return NULL;
            }
        return ts_error_make(TS_ERR_INTERNAL, "the size %.*s is not bound", TS_STR_ARG(n.symbol));
    }
    TS_TRY(size_of(ev, n.a, &a, depth + 1));
    TS_TRY(size_of(ev, n.b, &b, depth + 1));
    if (n.kind == IR_DIM_FLOORDIV && b == 0)
        return ts_raise("ZeroDivisionError", "integer division or modulo by zero");
    *out = n.kind == IR_DIM_ADD   ? (int64_t)((uint64_t)a + (uint64_t)b)
           : n.kind == IR_DIM_MUL ? (int64_t)((uint64_t)a * (uint64_t)b)
           : n.kind == IR_DIM_MAX ? (a > b ? a : b)
           : n.kind == IR_DIM_MIN ? (a < b ? a : b)
                                  : a / b - (a % b != 0 && (a < 0) != (b < 0));
    return NULL;
}

/* ---- types at run time ---- */

static bool value_is(rt_value v, const ir_type *t, int depth) {
    if (depth > VALUE_DEPTH)
        return false;
    switch (t->kind) {
    case IR_ANY:
        return true;
    case IR_NONE:
        return v.tag == RT_TAG_NONE;
    case IR_BOOL:
        return v.tag == RT_TAG_BOOL;
    case IR_INT:
        return v.tag == RT_TAG_INT;
    case IR_FLOAT:
        return v.tag == RT_TAG_FLOAT;
    case IR_COMPLEX:
        return v.tag == RT_TAG_COMPLEX;
    case IR_NUMBER:
        return v.tag == RT_TAG_BOOL || v.tag == RT_TAG_INT || v.tag == RT_TAG_FLOAT ||
               v.tag == RT_TAG_COMPLEX;
    case IR_STR:
        return v.tag == RT_TAG_STR;
    case IR_DEVICE:
        return v.tag == RT_TAG_DEVICE;
    case IR_GENERATOR:
        return v.tag == RT_TAG_GENERATOR;
    case IR_TENSOR:
        return v.tag == RT_TAG_TENSOR;
    case IR_LIST:
        if (v.tag != RT_TAG_LIST)
            return false;
        for (size_t i = 0; i < v.as.list->count; i++)
            if (!value_is(v.as.list->items[i], t->args[0], depth + 1))
                return false;
        return true;
    case IR_TUPLE:
        if (v.tag != RT_TAG_TUPLE || v.as.tuple->count != t->arg_count ||
            (t->class_ && v.as.tuple->class_ != &t->class_->base))
            return false;
        for (size_t i = 0; i < t->arg_count; i++)
            if (!value_is(v.as.tuple->items[i], t->args[i], depth + 1))
                return false;
        return true;
    case IR_DICT: {
        if (v.tag != RT_TAG_DICT)
            return false;
        const rt_dict_entry *e;
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at));)
            if (!value_is(e->key, t->args[0], depth + 1) ||
                !value_is(e->value, t->args[1], depth + 1))
                return false;
        return true;
    }
    case IR_OPTIONAL:
        return v.tag == RT_TAG_NONE || value_is(v, t->args[0], depth + 1);
    case IR_UNION:
        for (size_t i = 0; i < t->arg_count; i++)
            if (value_is(v, t->args[i], depth + 1))
                return true;
        return false;
    case IR_CLASS:
        return v.tag == RT_TAG_OBJECT && rt_class_is_a(v.as.object->class_, &t->class_->base);
    case IR_ENUM:
        return v.tag == RT_TAG_ENUM && v.as.enumeration->class_ == &t->class_->base;
    case IR_CAPSULE:
        return v.tag == RT_TAG_CAPSULE;
    case IR_FUTURE:
        return value_is(v, t->args[0], depth + 1);
    case IR_VAR:
        break;
    }
    return false;
}

/* ---- operators ---- */

static ts_status get_attr(const ir_op *op, rt_value object, rt_value *out) {
    if (object.tag != RT_TAG_OBJECT)
        return ts_raise("AttributeError", "'%s' object has no attribute '%.*s'",
                        rt_tag_name(object), TS_STR_ARG(op->name));
    const rt_object *o = object.as.object;
    int64_t at = rt_class_field(o->class_, op->name);
    if (at >= 0 && (size_t)at < o->field_count && o->fields[at].tag != RT_TAG_UNINITIALIZED) {
        *out = rt_retain(o->fields[at]);
        return NULL;
    }
    const ir_class *c = o->class_->info;
    for (size_t i = 0; c && i < c->field_count; i++)
        if (c->fields[i].is_constant && ts_str_equal(c->fields[i].name, op->name)) {
            *out = rt_retain(c->fields[i].constant);
            return NULL;
        }
    return ts_raise("AttributeError", "'%.*s' object has no attribute '%.*s'",
                    TS_STR_ARG(o->class_->bare_name), TS_STR_ARG(op->name));
}

static ts_status set_attr(const ir_op *op, rt_value object, rt_value v) {
    int64_t at = object.tag == RT_TAG_OBJECT ? rt_class_field(object.as.object->class_, op->name)
                                             : -1;
    if (at < 0 || (size_t)at >= object.as.object->field_count)
        return ts_raise("AttributeError", "'%s' object has no attribute '%.*s'",
                        rt_tag_name(object), TS_STR_ARG(op->name));
    rt_assign(&object.as.object->fields[at], rt_retain(v));
    return NULL;
}

static const ir_function *find_method(const rt_class *class_, ts_str name) {
    const ir_class *c = class_->info;
    for (size_t i = 0; c && i < c->method_count; i++)
        if (ts_str_equal(c->methods[i].name, name) && c->methods[i].function)
            return c->methods[i].function;
    for (size_t i = 0; i < class_->base_count; i++) {
        const ir_class *base = class_->bases[i]->info;
        for (size_t j = 0; base && j < base->method_count; j++)
            if (ts_str_equal(base->methods[j].name, name) && base->methods[j].function)
                return base->methods[j].function;
    }
    return NULL;
}

static ts_status unpack(const rt_value *items, size_t count, const ir_op *op, rt_value *outs) {
    if (count < op->result_count)
        return ts_raise("ValueError", "not enough values to unpack (expected %zu, got %zu)",
                        op->result_count, count);
    if (count > op->result_count)
        return ts_raise("ValueError", "too many values to unpack (expected %zu)", op->result_count);
    for (size_t i = 0; i < count; i++)
        outs[i] = rt_retain(items[i]);
    return NULL;
}

static ts_status make_list(const rt_value *operands, size_t count, rt_value *out) {
    TS_TRY(rt_list_make(count, out));
    for (size_t i = 0; i < count; i++) {
        ts_status status = rt_list_append(out->as.list, operands[i]);
        if (status) {
            rt_release(*out);
            *out = rt_none();
            return status;
        }
    }
    return NULL;
}

static ts_status make_dict(const rt_value *operands, size_t count, rt_value *out) {
    TS_TRY(rt_dict_make(out));
    for (size_t i = 0; i + 1 < count; i += 2) {
        ts_status status = rt_dict_set(out->as.dict, operands[i], operands[i + 1]);
        if (status) {
            rt_release(*out);
            *out = rt_none();
            return status;
        }
    }
    return NULL;
}

static ts_status make_tuple(const ir_op *op, const rt_value *operands, rt_value *out) {
    TS_TRY(rt_tuple_make(op->operand_count, out));
    const ir_type *t = op->results[0]->type;
    if (t->kind == IR_TUPLE && t->class_)
        out->as.tuple->class_ = &t->class_->base;
    for (size_t i = 0; i < op->operand_count; i++)
        out->as.tuple->items[i] = rt_retain(operands[i]);
    return NULL;
}

/* An exception becomes values; every other error goes on. */
static ts_status try_function(evaluator *ev, const ir_function *f, const rt_value *in,
                              rt_value *outs) {
    int depth = ev->depth;
    outs[3] = (rt_value){.tag = RT_TAG_UNINITIALIZED};
    ts_status status = run_function(ev, f, in, &outs[3]);
    outs[0] = rt_bool(!status);
    if (ts_status_code(status) != TS_ERR_RAISED)
        return status;
    ev->depth = depth;
    outs[3] = (rt_value){.tag = RT_TAG_UNINITIALIZED};
    ts_status made = rt_str_make(ts_str_of(ts_status_exception(status)), &outs[1]);
    if (!made)
        made = rt_str_make(ts_str_of(ts_status_message(status)), &outs[2]);
    ts_status_release(status);
    return made;
}

/* Operators without regions. */
static ts_status run_simple(evaluator *ev, const ir_op *op, const rt_value *in, rt_value *outs) {
    bool flag = false;
    int64_t size = 0;
    const ir_function *method;
    switch (op->opcode) {
    case IR_OP_CORE:
        return rt_op_get(op->core)->ref(ev->options->context, in, outs);
    case IR_OP_CONST:
        outs[0] = rt_retain(op->value);
        return NULL;
    case IR_OP_RAISE:
        return ts_raise_str(op->operand_count == 2 ? rt_str_text(in[1].as.str) : op->name, in[0].tag == RT_TAG_STR ? rt_str_text(in[0].as.str)
                                                              : (ts_str){0});
    case IR_OP_CALL:
        return run_function(ev, op->function, in, outs);
    case IR_OP_TRY_CALL:
        return try_function(ev, op->function, in, outs);
    case IR_OP_CALL_METHOD:
        if (in[0].tag != RT_TAG_OBJECT)
            return ts_raise("AttributeError", "'%s' object has no attribute '%.*s'",
                            rt_tag_name(in[0]), TS_STR_ARG(op->name));
        method = find_method(in[0].as.object->class_, op->name);
        if (!method)
            return ts_error_make(TS_ERR_INTERNAL, "no method '%.*s' in class '%.*s'",
                                 TS_STR_ARG(op->name),
                                 TS_STR_ARG(in[0].as.object->class_->name));
        if (method->body->parameter_count != op->operand_count)
            return ts_raise("TypeError", "%.*s() takes %zu positional arguments but %zu were given",
                            TS_STR_ARG(op->name), method->body->parameter_count,
                            op->operand_count);
        return run_function(ev, method, in, outs);
    case IR_OP_TUPLE:
        return make_tuple(op, in, outs);
    case IR_OP_TUPLE_GET:
        outs[0] = rt_retain(in[0].as.tuple->items[op->integer]);
        return NULL;
    case IR_OP_TUPLE_UNPACK:
        return unpack(in[0].as.tuple->items, in[0].as.tuple->count, op, outs);
    case IR_OP_LIST:
        return make_list(in, op->operand_count, outs);
    case IR_OP_LIST_UNPACK:
        return unpack(in[0].as.list->items, in[0].as.list->count, op, outs);
    case IR_OP_DICT:
        return make_dict(in, op->operand_count, outs);
    case IR_OP_GET_ATTR:
        return get_attr(op, in[0], outs);
    case IR_OP_SET_ATTR:
        return set_attr(op, in[0], in[1]);
    case IR_OP_NEW_OBJECT:
        return rt_object_make(&op->type->class_->base, outs);
    case IR_OP_IS_INSTANCE:
        for (size_t i = 0; i < op->type_count && !flag; i++)
            flag = value_is(in[0], op->types[i], 0);
        outs[0] = rt_bool(flag);
        return NULL;
    case IR_OP_CHECK_CAST:
        if (!value_is(in[0], op->results[0]->type, 0)) {
            ts_str wanted = ir_type_text(ev->m, op->results[0]->type);
            return ts_raise("TypeError", "expected %.*s, found %s", TS_STR_ARG(wanted),
                            rt_tag_name(in[0]));
        }
        outs[0] = rt_retain(in[0]);
        return NULL;
    case IR_OP_CAST:
        outs[0] = rt_retain(in[0]);
        return NULL;
    case IR_OP_UNINITIALIZED:
        outs[0] = (rt_value){.tag = RT_TAG_UNINITIALIZED};
        return NULL;
    case IR_OP_REFINE:
        TS_TRY(fits_type(ev, in[0], op->type, &flag));
        outs[0] = rt_bool(flag);
        return NULL;
    case IR_OP_DIM:
        TS_TRY(size_of(ev, op->integer, &size, 0));
        outs[0] = rt_int(size);
        return NULL;
    case IR_OP_IF:
    case IR_OP_LOOP:
    case IR_OP_KERNEL:
    case IR_OP_YIELD:
    case IR_OP_RETURN:
    case IR_OPCODE_COUNT:
        break;
    }
    return ts_error_make(TS_ERR_INTERNAL, "an operator that cannot be run by itself");
}

/* The exact class of a value that is read though no path set it. */
static bool has_unset(const rt_value *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (values[i].tag == RT_TAG_UNINITIALIZED)
            return true;
    return false;
}

static ts_status count_operator(evaluator *ev) {
    if (ev->options->op_budget && ++ev->executed > ev->options->op_budget)
        return ts_error_make(TS_ERR_UNSUPPORTED, "more operators than the budget of %llu",
                             (unsigned long long)ev->options->op_budget);
    return NULL;
}

static void release_all(rt_value *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        rt_assign(&values[i], rt_none());
}

static ts_status run_loop(evaluator *ev, const ir_op *op, rt_value *frame, const rt_value *in,
                          rt_value *outs) {
    const ir_block *b = op->regions[0];
    size_t count = op->result_count;
    int64_t max = in[0].as.i;
    bool go = in[1].as.i != 0;
    rt_value *yields = calloc(count + 1, sizeof *yields);
    if (!yields)
        return ts_no_memory();
    ts_status status = NULL;
    for (size_t i = 0; i < count; i++)
        outs[i] = rt_retain(in[i + 2]);
    for (int64_t i = 0; i < max && go; i++) {
        TS_TRY_OR(count_operator(ev), done);
        rt_assign(&frame[b->parameters[0]->number], rt_int(i));
        for (size_t j = 0; j < count; j++)
            rt_assign(&frame[b->parameters[j + 1]->number], rt_retain(outs[j]));
        TS_TRY_OR(run_block(ev, b, frame, yields), done);
        go = yields[0].as.i != 0;
        for (size_t j = 0; j < count; j++) {
            rt_assign(&outs[j], yields[j + 1]);
            yields[j + 1] = rt_none();
        }
    }
done:
    release_all(yields, count + 1);
    free(yields);
    if (status)
        release_all(outs, count);
    return status;
}

static ts_status run_op(evaluator *ev, const ir_op *op, rt_value *frame, const rt_value *in,
                        rt_value *outs) {
    const ir_block *b;
    switch (op->opcode) {
    case IR_OP_IF:
        return run_block(ev, op->regions[in[0].as.i ? 0 : 1], frame, outs);
    case IR_OP_LOOP:
        return run_loop(ev, op, frame, in, outs);
    case IR_OP_KERNEL:
        b = op->regions[0];
        for (size_t i = 0; i < op->operand_count; i++)
            rt_assign(&frame[b->parameters[i]->number], rt_retain(in[i]));
        return run_block(ev, b, frame, outs);
    default:
        return run_simple(ev, op, in, outs);
    }
}

/* Runs a block; the terminator's operands (owned) go to out_values. */
static ts_status run_block(evaluator *ev, const ir_block *b, rt_value *frame,
                           rt_value *out_values) {
    rt_value small[16] = {0};
    for (const ir_op *op = b->first; op != b->last; op = op->next) {
        size_t total = op->operand_count + op->result_count;
        rt_value *values = small;
        if (total > sizeof small / sizeof small[0] && !(values = calloc(total, sizeof *values)))
            return ts_no_memory();
        rt_value *outs = values + op->operand_count;
        for (size_t i = 0; i < op->operand_count; i++)
            values[i] = frame[op->operands[i]->number]; /* borrowed from the frame */
        for (size_t i = 0; i < op->result_count; i++)
            outs[i] = rt_none();
        ts_status status = count_operator(ev);
        if (!status && op->opcode == IR_OP_CORE && has_unset(values, op->operand_count))
            status = ts_error_make(TS_ERR_INTERNAL, "a value is read that no path has set");
        if (!status)
            status = run_op(ev, op, frame, values, outs);
        if (!status && ev->options->observe) {
            status = ev->options->observe(ev->options->user, op, outs);
            if (status)
                release_all(outs, op->result_count);
        }
        for (size_t i = 0; !status && i < op->result_count; i++)
            rt_assign(&frame[op->results[i]->number], outs[i]);
        if (values != small)
            free(values);
        if (status)
            return ts_status_set_place(status, op->place);
    }
    for (size_t i = 0; i < b->last->operand_count; i++)
        out_values[i] = rt_retain(frame[b->last->operands[i]->number]);
    return NULL;
}

static ts_status bind_parameters(evaluator *ev, const ir_function *f, const rt_value *args) {
    for (size_t i = 0; f->is_entry && i < f->body->parameter_count; i++) {
        bool fits;
        const ir_type *t = f->body->parameters[i]->type;
        TS_TRY(fits_type(ev, args[i], t, &fits));
        if (!fits) {
            ts_str wanted = ir_type_text(ev->m, t);
            return ts_error_make(TS_ERR_INVALID_INPUT,
                                 "argument '%.*s': expected %.*s, found a tensor of other dtype, "
                                 "rank or sizes",
                                 TS_STR_ARG(f->parameter_names[i]), TS_STR_ARG(wanted));
        }
    }
    return NULL;
}

static ts_status run_function(evaluator *ev, const ir_function *f, const rt_value *args,
                              rt_value *out) {
    int limit = ev->options->depth_limit > 0 ? ev->options->depth_limit : DEFAULT_DEPTH;
    if (ev->depth >= limit)
        return ts_raise("RecursionError", "maximum recursion depth exceeded");
    size_t count = value_count(ev, f);
    rt_value *frame = calloc(count ? count : 1, sizeof *frame);
    if (!frame)
        return ts_no_memory();
    ev->depth++;
    size_t outer_sizes = ev->size_count;
    ts_status status = bind_parameters(ev, f, args);
    for (size_t i = 0; i < f->body->parameter_count; i++)
        frame[f->body->parameters[i]->number] = rt_retain(args[i]);
    rt_value result = rt_none();
    if (!status)
        status = run_block(ev, f->body, frame, &result);
    for (size_t i = 0; i < count; i++)
        rt_release(frame[i]);
    free(frame);
    ev->depth--;
    if (ev->depth == 0 || f->is_entry)
        ev->size_count = outer_sizes;
    if (!status)
        *out = result;
    return status;
}

static bool start(evaluator *ev, ir_module *m, const ir_evaluator_options *options) {
    *ev = (evaluator){.m = m, .options = options, .arena = ts_arena_create(0)};
    if (ev->arena)
        ts_arena_set_handler(ev->arena, ts_arena_handler(m->arena));
    return ev->arena != NULL;
}

ts_status ir_evaluate(ir_module *m, const ir_function *f, const rt_value *args, size_t arg_count,
                      const ir_evaluator_options *options, rt_value *out) {
    *out = rt_none();
    if (arg_count != f->body->parameter_count)
        return ts_error_make(TS_ERR_INVALID_INPUT, "expected %zu arguments, found %zu",
                             f->body->parameter_count, arg_count);
    evaluator ev;
    if (!start(&ev, m, options))
        return ts_no_memory();
    ts_status status = run_function(&ev, f, args, out);
    ts_arena_release(ev.arena);
    return status;
}

ts_status ir_evaluate_op(ir_module *m, const ir_op *op, const rt_value *operands,
                         const ir_evaluator_options *options, rt_value *outs) {
    evaluator ev;
    if (op->region_count)
        return ts_error_make(TS_ERR_INTERNAL, "an operator with regions needs a frame");
    if (!start(&ev, m, options))
        return ts_no_memory();
    for (size_t i = 0; i < op->result_count; i++)
        outs[i] = rt_none();
    ts_status status = run_simple(&ev, op, operands, outs);
    ts_arena_release(ev.arena);
    return status;
}

bool ir_value_is(rt_value v, const ir_type *t) { return value_is(v, t, 0); }
