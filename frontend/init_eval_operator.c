/* frontend/init_eval_operator.c - the evaluator of scripts: arithmetic, comparison, truth.
 *
 * Integers are 64 bits: what does not fit is an OverflowError and never wraps. Anything with a tensor
 * goes to the operators' reference kernels. */
#include <math.h>
#include <stdlib.h>

#include "frontend/init_eval_internal.h"
#include "runtime/base/checked.h"
#include "runtime/values/tensor.h"

static ts_status overflow(void) {
    return ts_raise("OverflowError", "integer result does not fit 64 bits");
}

static ts_status operand_error(ast_operator op, rt_value a, rt_value b) {
    ts_str left = ev_type_name(a), right = ev_type_name(b);
    return ts_raise("TypeError", "unsupported operand type(s) for %s: '%.*s' and '%.*s'",
                    op == AST_POW ? "** or pow()" : ast_operator_text(op), TS_STR_ARG(left),
                    TS_STR_ARG(right));
}

static int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

static ts_status int_power(int64_t base, int64_t exponent, rt_value *out) {
    if (exponent < 0) {
        if (base == 0)
            return ts_raise("ZeroDivisionError", "0.0 cannot be raised to a negative power");
        *out = rt_float(pow((double)base, (double)exponent));
        return NULL;
    }
    int64_t result = 1;
    while (exponent) {
        if ((exponent & 1) && !ts_mul_i64(result, base, &result))
            return overflow();
        exponent >>= 1;
        if (exponent && !ts_mul_i64(base, base, &base))
            return overflow();
    }
    *out = rt_int(result);
    return NULL;
}

static ts_status int_binary(ast_operator op, rt_value x, rt_value y, rt_value *out) {
    int64_t a = x.as.i, b = y.as.i, r = 0;
    bool fits = true, are_bools = x.tag == RT_TAG_BOOL && y.tag == RT_TAG_BOOL;
    switch (op) {
    case AST_ADD: fits = ts_add_i64(a, b, &r); break;
    case AST_SUB: fits = ts_sub_i64(a, b, &r); break;
    case AST_MUL: fits = ts_mul_i64(a, b, &r); break;
    case AST_DIV:
        if (b == 0)
            return ts_raise("ZeroDivisionError", "division by zero");
        *out = rt_float((double)a / (double)b);
        return NULL;
    case AST_FLOORDIV:
    case AST_MOD:
        if (b == 0)
            return ts_raise("ZeroDivisionError", op == AST_MOD ? "integer modulo by zero"
                                                               : "integer division or modulo by zero");
        if (b == -1) {
            fits = op == AST_MOD || a != INT64_MIN;
            r = op == AST_MOD || !fits ? 0 : -a;
            break;
        }
        r = floor_div(a, b);
        if (op == AST_MOD)
            r = a - r * b;
        break;
    case AST_POW: return int_power(a, b, out);
    case AST_LSHIFT:
        if (b < 0)
            return ts_raise("ValueError", "negative shift count");
        if (a != 0 && (b > 62 || (a < 0 ? a < (INT64_MIN >> b) : a > (INT64_MAX >> b))))
            return overflow();
        r = a * (b > 62 ? 0 : INT64_C(1) << b);
        break;
    case AST_RSHIFT:
        if (b < 0)
            return ts_raise("ValueError", "negative shift count");
        r = a >> (b > 63 ? 63 : b);
        break;
    case AST_BITAND: r = a & b; break;
    case AST_BITOR: r = a | b; break;
    case AST_BITXOR: r = a ^ b; break;
    default: return operand_error(op, x, y);
    }
    if (!fits)
        return overflow();
    *out = are_bools && (op == AST_BITAND || op == AST_BITOR || op == AST_BITXOR) ? rt_bool(r != 0)
                                                                                 : rt_int(r);
    return NULL;
}

static ts_status float_binary(ast_operator op, rt_value x, rt_value y, rt_value *out) {
    double a = ev_double(x), b = ev_double(y), r = 0;
    switch (op) {
    case AST_ADD: r = a + b; break;
    case AST_SUB: r = a - b; break;
    case AST_MUL: r = a * b; break;
    case AST_DIV:
        if (b == 0)
            return ts_raise("ZeroDivisionError", "division by zero");
        r = a / b;
        break;
    case AST_FLOORDIV:
    case AST_MOD: {
        if (b == 0)
            return ts_raise("ZeroDivisionError", op == AST_MOD ? "float modulo by zero"
                                                               : "float floor division by zero");
        /* CPython's float_divmod: the remainder has the divisor's sign. */
        double m = fmod(a, b), q = (a - m) / b;
        if (m != 0) {
            if ((b < 0) != (m < 0)) {
                m += b;
                q -= 1;
            }
        } else {
            m = copysign(0, b);
        }
        if (q != 0) {
            double f = floor(q);
            q = q - f > 0.5 ? f + 1 : f;
        } else {
            q = copysign(0, a / b);
        }
        r = op == AST_MOD ? m : q;
        break;
    }
    case AST_POW:
        if (a == 0 && b < 0)
            return ts_raise("ZeroDivisionError", "0.0 cannot be raised to a negative power");
        if (a < 0 && isfinite(b) && b != floor(b))
            return ts_error_make(TS_ERR_UNSUPPORTED,
                                 "a negative number raised to a fraction is complex: not supported");
        r = pow(a, b);
        if (isinf(r) && isfinite(a) && isfinite(b))
            return ts_raise("OverflowError", "(34, 'Numerical result out of range')");
        break;
    default: return operand_error(op, x, y);
    }
    *out = rt_float(r);
    return NULL;
}

static void complex_parts(rt_value v, double *re, double *im) {
    *re = v.tag == RT_TAG_COMPLEX ? v.as.complex->re : ev_double(v);
    *im = v.tag == RT_TAG_COMPLEX ? v.as.complex->im : 0;
}

static ts_status complex_binary(ast_operator op, rt_value x, rt_value y, rt_value *out) {
    double a, b, c, d;
    complex_parts(x, &a, &b);
    complex_parts(y, &c, &d);
    switch (op) {
    case AST_ADD: return rt_complex_make(a + c, b + d, out);
    case AST_SUB: return rt_complex_make(a - c, b - d, out);
    case AST_MUL: return rt_complex_make(a * c - b * d, a * d + b * c, out);
    case AST_DIV: {
        double n = c * c + d * d;
        if (n == 0)
            return ts_raise("ZeroDivisionError", "division by zero");
        return rt_complex_make((a * c + b * d) / n, (b * c - a * d) / n, out);
    }
    default: return operand_error(op, x, y);
    }
}

/* ---- tensors ---- */

static const char *tensor_op(ast_operator op) {
    switch (op) {
    case AST_ADD: return "add";
    case AST_SUB: return "sub";
    case AST_MUL: return "mul";
    case AST_DIV: return "div";
    case AST_FLOORDIV: return "floor_divide";
    case AST_MOD: return "remainder";
    case AST_POW: return "pow";
    case AST_MATMUL: return "matmul";
    case AST_LSHIFT: return "bitwise_left_shift";
    case AST_RSHIFT: return "bitwise_right_shift";
    case AST_BITAND: return "bitwise_and";
    case AST_BITOR: return "bitwise_or";
    case AST_BITXOR: return "bitwise_xor";
    case AST_EQ: return "eq";
    case AST_NE: return "ne";
    case AST_LT: return "lt";
    case AST_LE: return "le";
    case AST_GT: return "gt";
    case AST_GE: return "ge";
    default: return "?";
    }
}

static ast_operator mirrored(ast_operator op) {
    switch (op) {
    case AST_LT: return AST_GT;
    case AST_LE: return AST_GE;
    case AST_GT: return AST_LT;
    case AST_GE: return AST_LE;
    default: return op;
    }
}

static ts_status tensor_binary(evaluator *ev, ast_operator op, rt_value a, rt_value b,
                               rt_value *out) {
    rt_value args[2] = {a, b};
    if (a.tag == RT_TAG_TENSOR) {
        if (b.tag != RT_TAG_TENSOR && !ev_is_number(b) && b.tag != RT_TAG_COMPLEX)
            return operand_error(op, a, b);
        return ev_op(ev, tensor_op(op), args, 2, out);
    }
    if (!ev_is_number(a) && a.tag != RT_TAG_COMPLEX)
        return operand_error(op, a, b);
    rt_value swapped[2] = {b, a}, t = rt_none();
    switch (op) {
    case AST_ADD:
    case AST_MUL:
    case AST_BITAND:
    case AST_BITOR:
    case AST_BITXOR:
    case AST_EQ:
    case AST_NE:
    case AST_LT:
    case AST_LE:
    case AST_GT:
    case AST_GE: return ev_op(ev, tensor_op(mirrored(op)), swapped, 2, out);
    case AST_SUB: return ev_op(ev, "rsub", swapped, 2, out);
    case AST_DIV: { /* as Tensor.__rtruediv__ does: reciprocal times the number */
        TS_TRY(ev_op(ev, "reciprocal", &b, 1, &t));
        rt_value product[2] = {t, a};
        ts_status status = ev_op(ev, "mul", product, 2, out);
        rt_release(t);
        return status;
    }
    case AST_POW:
    case AST_MOD: return ev_op(ev, tensor_op(op), args, 2, out);
    case AST_FLOORDIV: {
        rt_tensor *boxed;
        TS_TRY(rt_tensor_from_number(a, RT_DTYPE_UNKNOWN, &boxed));
        rt_value pair[2] = {rt_from_tensor(boxed), b};
        ts_status status = ev_op(ev, "floor_divide", pair, 2, out);
        rt_release(pair[0]);
        return status;
    }
    default: return operand_error(op, a, b);
    }
}

/* ---- objects ---- */

static const char *dunder(ast_operator op, bool is_reflected) {
    switch (op) {
    case AST_ADD: return is_reflected ? "__radd__" : "__add__";
    case AST_SUB: return is_reflected ? "__rsub__" : "__sub__";
    case AST_MUL: return is_reflected ? "__rmul__" : "__mul__";
    case AST_DIV: return is_reflected ? "__rtruediv__" : "__truediv__";
    case AST_FLOORDIV: return is_reflected ? "__rfloordiv__" : "__floordiv__";
    case AST_MOD: return is_reflected ? "__rmod__" : "__mod__";
    case AST_POW: return is_reflected ? "__rpow__" : "__pow__";
    case AST_MATMUL: return is_reflected ? "__rmatmul__" : "__matmul__";
    case AST_LSHIFT: return is_reflected ? "__rlshift__" : "__lshift__";
    case AST_RSHIFT: return is_reflected ? "__rrshift__" : "__rshift__";
    case AST_BITAND: return is_reflected ? "__rand__" : "__and__";
    case AST_BITOR: return is_reflected ? "__ror__" : "__or__";
    case AST_BITXOR: return is_reflected ? "__rxor__" : "__xor__";
    case AST_EQ: return "__eq__";
    case AST_NE: return "__ne__";
    case AST_LT: return is_reflected ? "__gt__" : "__lt__";
    case AST_LE: return is_reflected ? "__ge__" : "__le__";
    case AST_GT: return is_reflected ? "__lt__" : "__gt__";
    case AST_GE: return is_reflected ? "__le__" : "__ge__";
    default: return "";
    }
}

static fe_function *object_method(rt_value v, const char *name) {
    fe_class *c = v.tag == RT_TAG_OBJECT ? ev_class_of(v) : NULL;
    return c && *name ? fe_class_method(c, ts_str_of(name)) : NULL;
}

static ts_status object_binary(evaluator *ev, ast_operator op, rt_value a, rt_value b,
                               bool *out_found, rt_value *out) {
    for (int side = 0; side < 2; side++) {
        rt_value self = side ? b : a, other = side ? a : b;
        fe_function *method = object_method(self, dunder(op, side == 1));
        if (!method)
            continue;
        *out_found = true;
        ev_arguments args = {0};
        ev_arguments_add(ev, &args, (ts_str){0}, rt_retain(other));
        ts_status status = ev_call_function(ev, method, &self, &args, out);
        ev_arguments_release(&args);
        return status;
    }
    *out_found = false;
    return NULL;
}

/* ---- containers ---- */

static ts_status check_items(size_t a, size_t b) {
    size_t n;
    if (!ts_mul_size(a, b, &n) || n > EV_MAX_ITEMS)
        return ts_raise("MemoryError", "a result of %zu times %zu items is too large", a, b);
    return NULL;
}

static ts_status concatenate(rt_value a, rt_value b, rt_value *out) {
    size_t n, m;
    rt_value *x = ev_items(a, &n), *y = ev_items(b, &m);
    TS_TRY(check_items(n + m, 1));
    if (a.tag == RT_TAG_TUPLE) {
        TS_TRY(rt_tuple_make(n + m, out));
        for (size_t i = 0; i < n + m; i++)
            out->as.tuple->items[i] = rt_retain(i < n ? x[i] : y[i - n]);
        return NULL;
    }
    TS_TRY(rt_list_make(n + m, out));
    for (size_t i = 0; i < n + m; i++)
        TS_TRY(rt_list_append(out->as.list, i < n ? x[i] : y[i - n]));
    return NULL;
}

static ts_status repeat(rt_value v, int64_t times, rt_value *out) {
    size_t k = times > 0 ? (size_t)times : 0;
    if (ev_is_str(v)) {
        ts_str text = ev_text(v);
        TS_TRY(check_items(text.length, k));
        ts_buffer b = {0};
        for (size_t i = 0; i < k; i++)
            ts_buffer_str(&b, text);
        ts_status status = ts_buffer_status(&b);
        if (!status)
            status = rt_str_make((ts_str){b.data, b.length}, out);
        ts_buffer_deinit(&b);
        return status;
    }
    size_t n;
    rt_value *items = ev_items(v, &n);
    TS_TRY(check_items(n, k));
    if (v.tag == RT_TAG_TUPLE) {
        TS_TRY(rt_tuple_make(n * k, out));
        for (size_t i = 0; i < n * k; i++)
            out->as.tuple->items[i] = rt_retain(items[i % n]);
        return NULL;
    }
    TS_TRY(rt_list_make(n * k, out));
    for (size_t i = 0; i < n * k; i++)
        TS_TRY(rt_list_append(out->as.list, items[i % n]));
    return NULL;
}

static ts_status set_binary(ast_operator op, rt_value a, rt_value b, rt_value *out) {
    TS_TRY(rt_dict_make(out));
    out->as.counted->flags |= EV_FLAG_SET;
    for (int side = 0; side < 2; side++) {
        rt_value from = side ? b : a, other = side ? a : b;
        if (side && (op == AST_SUB || op == AST_BITAND))
            break;
        rt_dict_entry *e, *found;
        for (size_t at = 0; (e = rt_dict_next(from.as.dict, &at));) {
            TS_TRY(rt_dict_find(other.as.dict, e->key, &found));
            bool takes = op == AST_BITOR || (op == AST_BITAND ? found != NULL : found == NULL);
            if (takes)
                TS_TRY(rt_dict_set(out->as.dict, e->key, rt_none()));
        }
    }
    return NULL;
}

static ts_status container_binary(evaluator *ev, ast_operator op, rt_value a, rt_value b,
                                  rt_value *out) {
    if (op == AST_ADD && ev_is_str(a) && ev_is_str(b)) {
        TS_TRY(check_items(ev_text(a).length + ev_text(b).length, 1));
        ts_buffer text = {0};
        ts_buffer_str(&text, ev_text(a));
        ts_buffer_str(&text, ev_text(b));
        ts_status status = ts_buffer_status(&text);
        if (!status)
            status = rt_str_make((ts_str){text.data, text.length}, out);
        ts_buffer_deinit(&text);
        return status;
    }
    if (op == AST_ADD && ev_is_str(a))
        return ts_raise("TypeError", "can only concatenate str (not \"%.*s\") to str",
                        TS_STR_ARG(ev_type_name(b)));
    if (op == AST_MOD && ev_is_str(a))
        return ev_percent_format(ev, ev_text(a), b, out);
    if (op == AST_ADD && ev_is_sequence(a) && a.tag == b.tag)
        return concatenate(a, b, out);
    if (op == AST_MUL && (ev_is_sequence(a) || ev_is_str(a)) && ev_is_int(b))
        return repeat(a, b.as.i, out);
    if (op == AST_MUL && (ev_is_sequence(b) || ev_is_str(b)) && ev_is_int(a))
        return repeat(b, a.as.i, out);
    if (ev_is_set(a) && ev_is_set(b) &&
        (op == AST_BITAND || op == AST_BITOR || op == AST_BITXOR || op == AST_SUB))
        return set_binary(op, a, b, out);
    if (op == AST_BITOR && a.tag == RT_TAG_DICT && b.tag == RT_TAG_DICT) {
        TS_TRY(rt_dict_make(out));
        for (int side = 0; side < 2; side++) {
            rt_dict_entry *e;
            for (size_t at = 0; (e = rt_dict_next(side ? b.as.dict : a.as.dict, &at));)
                TS_TRY(rt_dict_set(out->as.dict, e->key, e->value));
        }
        return NULL;
    }
    return operand_error(op, a, b);
}

ts_status ev_binary(evaluator *ev, ast_operator op, rt_value a, rt_value b, rt_value *out) {
    *out = rt_none();
    ts_status status;
    if (ev_is_int(a) && ev_is_int(b))
        return int_binary(op, a, b, out);
    if (ev_is_number(a) && ev_is_number(b))
        return float_binary(op, a, b, out);
    if (a.tag == RT_TAG_OBJECT || b.tag == RT_TAG_OBJECT) {
        bool found;
        TS_TRY(object_binary(ev, op, a, b, &found, out));
        if (found)
            return NULL;
        status = operand_error(op, a, b);
    } else if (a.tag == RT_TAG_TENSOR || b.tag == RT_TAG_TENSOR) {
        status = tensor_binary(ev, op, a, b, out);
    } else if ((ev_is_number(a) || a.tag == RT_TAG_COMPLEX) &&
               (ev_is_number(b) || b.tag == RT_TAG_COMPLEX)) {
        status = complex_binary(op, a, b, out);
    } else if (op == AST_BITOR && (a.tag == RT_TAG_FUNCTION || b.tag == RT_TAG_FUNCTION)) {
        *out = rt_retain(a.tag == RT_TAG_FUNCTION ? a : b); /* int | None: a type */
        return NULL;
    } else {
        status = container_binary(ev, op, a, b, out);
    }
    if (status)
        rt_assign(out, rt_none());
    return status;
}

ts_status ev_augmented(evaluator *ev, ast_operator op, rt_value a, rt_value b, rt_value *out) {
    *out = rt_none();
    if (a.tag == RT_TAG_LIST && op == AST_ADD) {
        rt_value more;
        TS_TRY(ev_to_list(ev, b, &more));
        ts_status status = check_items(a.as.list->count + more.as.list->count, 1);
        size_t n = more.as.list->count;
        for (size_t i = 0; i < n && !status; i++)
            status = rt_list_append(a.as.list, more.as.list->items[i]);
        rt_release(more);
        if (!status)
            *out = rt_retain(a);
        return status;
    }
    if (a.tag == RT_TAG_TENSOR && op != AST_MATMUL) {
        rt_value args[2] = {a, b};
        char name[32];
        size_t n = strlen(tensor_op(op));
        memcpy(name, tensor_op(op), n);
        name[n] = '_';
        name[n + 1] = 0;
        if (b.tag != RT_TAG_TENSOR && !ev_is_number(b) && b.tag != RT_TAG_COMPLEX)
            return operand_error(op, a, b);
        rt_value result;
        TS_TRY(ev_op(ev, name, args, 2, &result));
        rt_release(result);
        *out = rt_retain(a);
        return NULL;
    }
    if (a.tag == RT_TAG_DICT && b.tag == RT_TAG_DICT && op == AST_BITOR) {
        rt_dict_entry *e;
        for (size_t at = 0; (e = rt_dict_next(b.as.dict, &at));)
            TS_TRY(rt_dict_set(a.as.dict, e->key, e->value));
        *out = rt_retain(a);
        return NULL;
    }
    char in_place[24] = "__i";
    const char *plain = dunder(op, false);
    fe_function *method = NULL;
    if (*plain) {
        memcpy(in_place + 3, plain + 2, strlen(plain) - 1);
        method = object_method(a, in_place);
    }
    if (method) {
        ev_arguments args = {0};
        ev_arguments_add(ev, &args, (ts_str){0}, rt_retain(b));
        ts_status status = ev_call_function(ev, method, &a, &args, out);
        ev_arguments_release(&args);
        return status;
    }
    return ev_binary(ev, op, a, b, out);
}

ts_status ev_unary(evaluator *ev, ast_operator op, rt_value a, rt_value *out) {
    *out = rt_none();
    if (op == AST_NOT) {
        bool truth;
        TS_TRY(ev_truth(ev, a, &truth));
        *out = rt_bool(!truth);
        return NULL;
    }
    if (ev_is_int(a)) {
        if (op == AST_NEG && a.as.i == INT64_MIN)
            return overflow();
        *out = rt_int(op == AST_NEG ? -a.as.i : op == AST_INVERT ? ~a.as.i : a.as.i);
        return NULL;
    }
    if (a.tag == RT_TAG_FLOAT && op != AST_INVERT) {
        *out = rt_float(op == AST_NEG ? -a.as.f : a.as.f);
        return NULL;
    }
    if (a.tag == RT_TAG_COMPLEX && op != AST_INVERT)
        return op == AST_NEG ? rt_complex_make(-a.as.complex->re, -a.as.complex->im, out)
                             : rt_complex_make(a.as.complex->re, a.as.complex->im, out);
    if (a.tag == RT_TAG_TENSOR) {
        if (op == AST_POS) {
            *out = rt_retain(a);
            return NULL;
        }
        return ev_op(ev, op == AST_NEG ? "neg" : "bitwise_not", &a, 1, out);
    }
    fe_function *method = object_method(a, op == AST_NEG   ? "__neg__"
                                           : op == AST_POS ? "__pos__"
                                                           : "__invert__");
    if (method) {
        ev_arguments none = {0};
        return ev_call_function(ev, method, &a, &none, out);
    }
    return ts_raise("TypeError", "bad operand type for unary %s: '%.*s'", ast_operator_text(op),
                    TS_STR_ARG(ev_type_name(a)));
}

/* ---- comparison ---- */

static bool same_binding(rt_value a, rt_value b) {
    fe_binding x = fe_binding_of_value(a), y = fe_binding_of_value(b);
    if (x.kind != y.kind)
        return false;
    switch (x.kind) {
    case FE_FUNCTION: return x.function == y.function;
    case FE_CLASS: return x.class_ == y.class_;
    case FE_METHOD: return x.function == y.function && rt_is(x.value, y.value);
    case FE_NAMESPACE:
    case FE_NAME: return ts_str_equal(x.path, y.path);
    default: return rt_is(a, b);
    }
}

ts_status ev_equal(evaluator *ev, rt_value a, rt_value b, bool *out) {
    *out = false;
    if (a.tag == RT_TAG_FUNCTION || b.tag == RT_TAG_FUNCTION) {
        *out = a.tag == b.tag && same_binding(a, b);
        return NULL;
    }
    const ev_range *r = ev_as_range(a), *q = ev_as_range(b);
    if (r && q) {
        *out = r->count == q->count &&
               (!r->count || (r->start == q->start && (r->count == 1 || r->step == q->step)));
        return NULL;
    }
    if (a.tag == RT_TAG_TENSOR || b.tag == RT_TAG_TENSOR) {
        rt_value v;
        TS_TRY(ev_compare(ev, AST_EQ, a, b, &v));
        ts_status status = ev_truth(ev, v, out);
        rt_release(v);
        return status;
    }
    if (a.tag == RT_TAG_OBJECT || b.tag == RT_TAG_OBJECT) {
        bool found;
        rt_value v = rt_none();
        TS_TRY(object_binary(ev, AST_EQ, a, b, &found, &v));
        if (found) {
            ts_status status = ev_truth(ev, v, out);
            rt_release(v);
            return status;
        }
        fe_class *c = ev_class_of(a);
        if (a.tag == b.tag && c && c == ev_class_of(b) && c->is_dataclass) {
            const rt_object *x = a.as.object, *y = b.as.object;
            *out = x->field_count == y->field_count;
            for (size_t i = 0; i < x->field_count && *out; i++)
                if (ev_is_data_field(c, x->class_->fields[i]))
                    TS_TRY(ev_equal(ev, x->fields[i], y->fields[i], out));
            return NULL;
        }
        *out = rt_is(a, b);
        return NULL;
    }
    if (a.tag == b.tag && ev_is_sequence(a)) {
        size_t n, m;
        rt_value *x = ev_items(a, &n), *y = ev_items(b, &m);
        *out = n == m;
        TS_TRY(ev_step(ev, NULL)); /* what is held twice is compared twice */
        if (++ev->depth > EV_MAX_DEPTH)
            return ts_raise("RecursionError", "maximum recursion depth exceeded in comparison");
        for (size_t i = 0; i < n && *out; i++)
            if (!rt_is(x[i], y[i]))
                TS_TRY(ev_equal(ev, x[i], y[i], out));
        ev->depth--;
        return NULL;
    }
    return rt_equal(a, b, out);
}

ts_status ev_less(evaluator *ev, rt_value a, rt_value b, bool *out) {
    rt_value v;
    *out = false;
    TS_TRY(ev_compare(ev, AST_LT, a, b, &v));
    ts_status status = ev_truth(ev, v, out);
    rt_release(v);
    return status;
}

static ts_status order(evaluator *ev, ast_operator op, rt_value a, rt_value b, rt_value *out) {
    if (ev_is_set(a) && ev_is_set(b)) {
        rt_value small = op == AST_LT || op == AST_LE ? a : b, large = op == AST_LT || op == AST_LE ? b : a;
        bool is_subset = true;
        rt_dict_entry *e, *found;
        for (size_t at = 0; (e = rt_dict_next(small.as.dict, &at)) && is_subset;) {
            TS_TRY(rt_dict_find(large.as.dict, e->key, &found));
            is_subset = found != NULL;
        }
        bool is_strict = op == AST_LT || op == AST_GT;
        *out = rt_bool(is_subset &&
                       (!is_strict || small.as.dict->live_count < large.as.dict->live_count));
        return NULL;
    }
    if (ev_is_number(a) && ev_is_number(b) && (a.tag == RT_TAG_FLOAT || b.tag == RT_TAG_FLOAT)) {
        double x = ev_double(a), y = ev_double(b);
        *out = rt_bool(op == AST_LT ? x < y : op == AST_LE ? x <= y : op == AST_GT ? x > y : x >= y);
        return NULL;
    }
    if (a.tag == b.tag && ev_is_sequence(a)) {
        size_t n, m, i = 0;
        rt_value *x = ev_items(a, &n), *y = ev_items(b, &m);
        bool same = true;
        for (; i < n && i < m; i++) {
            TS_TRY(ev_equal(ev, x[i], y[i], &same));
            if (!same)
                return ev_compare(ev, op, x[i], y[i], out);
        }
        *out = rt_bool(op == AST_LT ? n < m : op == AST_LE ? n <= m : op == AST_GT ? n > m : n >= m);
        return NULL;
    }
    int c;
    ts_status status = rt_compare(a, b, &c);
    if (status) {
        ts_status_release(status);
        return ts_raise("TypeError", "'%s' not supported between instances of '%.*s' and '%.*s'",
                        ast_operator_text(op), TS_STR_ARG(ev_type_name(a)),
                        TS_STR_ARG(ev_type_name(b)));
    }
    *out = rt_bool(op == AST_LT ? c < 0 : op == AST_LE ? c <= 0 : op == AST_GT ? c > 0 : c >= 0);
    return NULL;
}

ts_status ev_compare(evaluator *ev, ast_operator op, rt_value a, rt_value b, rt_value *out) {
    bool truth;
    *out = rt_none();
    switch (op) {
    case AST_IS:
    case AST_IS_NOT:
        truth = a.tag == RT_TAG_FUNCTION && b.tag == RT_TAG_FUNCTION ? same_binding(a, b)
                                                                    : rt_is(a, b);
        *out = rt_bool(truth == (op == AST_IS));
        return NULL;
    case AST_IN:
    case AST_NOT_IN:
        TS_TRY(ev_contains(ev, b, a, &truth));
        *out = rt_bool(truth == (op == AST_IN));
        return NULL;
    default: break;
    }
    bool has_tensor = a.tag == RT_TAG_TENSOR || b.tag == RT_TAG_TENSOR;
    bool has_object = a.tag == RT_TAG_OBJECT || b.tag == RT_TAG_OBJECT;
    if (has_tensor && !has_object) {
        bool are_values = (a.tag == RT_TAG_TENSOR || ev_is_number(a) || a.tag == RT_TAG_COMPLEX) &&
                          (b.tag == RT_TAG_TENSOR || ev_is_number(b) || b.tag == RT_TAG_COMPLEX);
        if (are_values)
            return tensor_binary(ev, op, a, b, out);
    }
    if (has_object) {
        bool found;
        TS_TRY(object_binary(ev, op, a, b, &found, out));
        if (found)
            return NULL;
        if (op == AST_NE) {
            TS_TRY(ev_equal(ev, a, b, &truth));
            *out = rt_bool(!truth);
            return NULL;
        }
    }
    if (op == AST_EQ || op == AST_NE) {
        if (has_tensor)
            truth = false; /* a tensor and something that is no number */
        else
            TS_TRY(ev_equal(ev, a, b, &truth));
        *out = rt_bool(truth == (op == AST_EQ));
        return NULL;
    }
    return order(ev, op, a, b, out);
}

ts_status ev_truth(evaluator *ev, rt_value v, bool *out) {
    *out = true;
    if (v.tag == RT_TAG_OBJECT) {
        fe_function *method = object_method(v, "__bool__");
        bool is_length = !method;
        if (!method)
            method = object_method(v, "__len__");
        if (method) {
            ev_arguments none = {0};
            rt_value r;
            TS_TRY(ev_call_function(ev, method, &v, &none, &r));
            *out = is_length ? r.as.i != 0 : (r.tag != RT_TAG_BOOL || r.as.i != 0);
            rt_release(r);
            return NULL;
        }
        if (ev_container_kind(ev, v) != EV_NO_CONTAINER) {
            int64_t n;
            TS_TRY(ev_length(ev, v, &n));
            *out = n != 0;
        }
        return NULL;
    }
    if (v.tag == RT_TAG_FUNCTION || v.tag == RT_TAG_ENUM)
        return NULL;
    const ev_range *range = ev_as_range(v);
    if (range) {
        *out = range->count > 0;
        return NULL;
    }
    if (v.tag == RT_TAG_CAPSULE)
        return NULL;
    return rt_truth(v, out);
}
