/* frontend/init_eval_math.c - the evaluator of scripts: Python's module math. */
#include <math.h>
#include <stdlib.h>

#include "frontend/init_eval_builtin.h"
#include "runtime/base/checked.h"

/* ---- math ---- */

static ts_status domain(void) { return ts_raise("ValueError", "math domain error"); }

static ts_status math1(ts_str name, double x, bool *out_found, double *out) {
    static const struct {
        const char *name;
        double (*run)(double);
    } functions[] = {{"sin", sin}, {"cos", cos}, {"tan", tan}, {"asin", asin}, {"acos", acos},
                     {"atan", atan}, {"sinh", sinh}, {"cosh", cosh}, {"tanh", tanh},
                     {"asinh", asinh}, {"acosh", acosh}, {"atanh", atanh}, {"exp", exp},
                     {"expm1", expm1}, {"exp2", exp2}, {"log2", log2}, {"log10", log10}, {"log1p", log1p},
                     {"sqrt", sqrt}, {"cbrt", cbrt}, {"fabs", fabs}, {"erf", erf}, {"erfc", erfc},
                     {"gamma", tgamma}, {"lgamma", lgamma}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (ts_str_is(name, functions[i].name)) {
            *out_found = true;
            if ((ts_str_is(name, "log2") || ts_str_is(name, "log10")) && x <= 0)
                return domain();
            *out = functions[i].run(x);
            if (isnan(*out) && !isnan(x))
                return domain();
            if (isinf(*out) && isfinite(x))
                return ts_str_starts_with(name, "log") || ts_str_is(name, "atanh") ||
                               ts_str_is(name, "lgamma") || ts_str_is(name, "gamma")
                           ? domain()
                           : ts_raise("OverflowError", "math range error");
            return NULL;
        }
    *out_found = false;
    return NULL;
}

static ts_status math_numbers(evaluator *ev, ev_arguments *args, double *x, size_t max) {
    for (size_t i = 0; i < args->count && i < max; i++) {
        rt_value v = ARG(i), f;
        if (args->items[i].name.length)
            continue;
        if (v.tag == RT_TAG_TENSOR) {
            ev_arguments one = {&args->items[i], 1, 1};
            TS_TRY(ev_do_float(ev, &one, &f));
            v = f;
        }
        if (!ev_is_number(v))
            return ts_raise("TypeError", "must be real number, not %.*s", TS_STR_ARG(ev_type_name(v)));
        x[i] = ev_double(v);
    }
    return NULL;
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

static ts_status math_integers(ts_str name, ev_arguments *args, bool *out_found, rt_value *out) {
    *out_found = true;
    bool is_gcd = ts_str_is(name, "gcd"), is_lcm = ts_str_is(name, "lcm");
    bool is_known = is_gcd || is_lcm || ts_str_is(name, "factorial") || ts_str_is(name, "comb") ||
                    ts_str_is(name, "perm") || ts_str_is(name, "isqrt");
    if (!is_known) {
        *out_found = false;
        return NULL;
    }
    for (size_t i = 0; i < args->count; i++)
        if (!ev_is_int(ARG(i)))
            return ts_raise("TypeError", "'%.*s' object cannot be interpreted as an integer",
                            TS_STR_ARG(ev_type_name(ARG(i))));
    int64_t r = is_lcm ? 1 : 0;
    if (is_gcd || is_lcm) {
        for (size_t i = 0; i < args->count; i++) {
            int64_t n = ARG(i).as.i, g = gcd(r, n);
            if (is_gcd)
                r = g;
            else if (g == 0 || !ts_mul_i64(r, n / g, &r))
                r = 0;
        }
        *out = rt_int(r < 0 ? -r : r);
        return NULL;
    }
    if (!args->count || ARG(0).as.i < 0)
        return ts_raise("ValueError", "%.*s() not defined for negative values", TS_STR_ARG(name));
    int64_t n = ARG(0).as.i, k = args->count > 1 ? ARG(1).as.i : n;
    if (ts_str_is(name, "isqrt")) {
        int64_t root = (int64_t)sqrt((double)n);
        while (root > 0 && root > n / root)
            root--;
        while ((root + 1) <= n / (root + 1))
            root++;
        *out = rt_int(root);
        return NULL;
    }
    bool is_comb = ts_str_is(name, "comb");
    if (ts_str_is(name, "factorial"))
        k = n;
    if (k < 0)
        return ts_raise("ValueError", "k must be a non-negative integer");
    if (k > n) {
        *out = rt_int(0);
        return NULL;
    }
    if (is_comb && k > n - k)
        k = n - k;
    r = 1;
    for (int64_t i = 0; i < k; i++) {
        if (!ts_mul_i64(r, n - i, &r))
            return ts_raise("OverflowError", "integer result does not fit 64 bits");
        if (is_comb)
            r /= i + 1;
    }
    *out = rt_int(r);
    return NULL;
}

static ts_status math_list(evaluator *ev, ts_str name, ev_arguments *args, bool *out_found,
                           rt_value *out) {
    *out_found = true;
    rt_value list, other;
    if (ts_str_is(name, "prod") && args->count) {
        TS_TRY(ev_to_list(ev, ARG(0), &list));
        rt_value total = args->count > 1 ? rt_retain(ARG(1)) : rt_int(1);
        ts_status status = NULL;
        for (size_t i = 0; i < list.as.list->count && !status; i++) {
            rt_value next;
            status = ev_binary(ev, AST_MUL, total, list.as.list->items[i], &next);
            rt_assign(&total, next);
        }
        rt_release(list);
        *out = total;
        return status;
    }
    if (ts_str_is(name, "fsum") && args->count == 1) {
        /* Neumaier's compensated sum: exact where the terms' spread allows */
        double sum = 0, c = 0;
        TS_TRY(ev_to_list(ev, ARG(0), &list));
        for (size_t i = 0; i < list.as.list->count; i++) {
            double x = ev_double(list.as.list->items[i]), t = sum + x;
            c += fabs(sum) >= fabs(x) ? (sum - t) + x : (x - t) + sum;
            sum = t;
        }
        rt_release(list);
        *out = rt_float(sum + c);
        return NULL;
    }
    if (ts_str_is(name, "dist") && args->count == 2) {
        double sum = 0;
        TS_TRY(ev_to_list(ev, ARG(0), &list));
        TS_TRY(ev_to_list(ev, ARG(1), &other));
        for (size_t i = 0; i < list.as.list->count && i < other.as.list->count; i++)
            sum = hypot(sum, ev_double(list.as.list->items[i]) - ev_double(other.as.list->items[i]));
        rt_release(list);
        rt_release(other);
        *out = rt_float(sum);
        return NULL;
    }
    *out_found = false;
    return NULL;
}

ts_status ev_math(evaluator *ev, ts_str name, ev_arguments *args, rt_value *out) {
    bool found;
    *out = rt_none();
    TS_TRY(math_integers(name, args, &found, out));
    if (!found)
        TS_TRY(math_list(ev, name, args, &found, out));
    if (found)
        return NULL;
    double x[4] = {0}, r = 0;
    TS_TRY(math_numbers(ev, args, x, 4));
    size_t n = args->count;
    if (n == 0)
        return ts_raise("TypeError", "math.%.*s() takes at least one argument (0 given)",
                        TS_STR_ARG(name));
    if (ts_str_is(name, "floor") || ts_str_is(name, "ceil") || ts_str_is(name, "trunc")) {
        if (ev_is_int(ARG(0))) {
            *out = rt_int(ARG(0).as.i);
            return NULL;
        }
        return ev_float_to_int(name.data[0] == 'f' ? floor(x[0]) : name.data[0] == 'c' ? ceil(x[0]) : trunc(x[0]),
                            out);
    }
    if (ts_str_is(name, "log")) {
        if (x[0] <= 0 || (n > 1 && x[1] <= 0))
            return domain();
        *out = rt_float(n > 1 ? log(x[0]) / log(x[1]) : log(x[0]));
        return NULL;
    }
    if (ts_str_is(name, "isnan") || ts_str_is(name, "isinf") || ts_str_is(name, "isfinite")) {
        *out = rt_bool(ts_str_is(name, "isnan") ? isnan(x[0])
                       : ts_str_is(name, "isinf") ? isinf(x[0]) != 0
                                                  : isfinite(x[0]) != 0);
        return NULL;
    }
    if (ts_str_is(name, "isclose")) {
        double relative = 1e-9, absolute = 0;
        for (size_t i = 2; i < n; i++) {
            if (ts_str_is(args->items[i].name, "rel_tol"))
                relative = ev_double(ARG(i));
            if (ts_str_is(args->items[i].name, "abs_tol"))
                absolute = ev_double(ARG(i));
        }
        double d = fabs(x[0] - x[1]);
        *out = rt_bool(x[0] == x[1] ||
                       (isfinite(d) && (d <= relative * fabs(x[0]) || d <= relative * fabs(x[1]) ||
                                        d <= absolute)));
        return NULL;
    }
    if (ts_str_is(name, "degrees") || ts_str_is(name, "radians")) {
        const double pi = 3.14159265358979323846;
        *out = rt_float(name.data[0] == 'd' ? x[0] * (180 / pi) : x[0] * (pi / 180));
        return NULL;
    }
    if (n >= 2) {
        found = true;
        if (ts_str_is(name, "pow")) {
            r = pow(x[0], x[1]);
            if (isnan(r) && !isnan(x[0]) && !isnan(x[1]))
                return domain();
        } else if (ts_str_is(name, "atan2")) {
            r = atan2(x[0], x[1]);
        } else if (ts_str_is(name, "fmod")) {
            r = fmod(x[0], x[1]);
            if (isnan(r) && !isnan(x[0]) && !isnan(x[1]))
                return domain();
        } else if (ts_str_is(name, "remainder")) {
            r = remainder(x[0], x[1]);
        } else if (ts_str_is(name, "copysign")) {
            r = copysign(x[0], x[1]);
        } else if (ts_str_is(name, "hypot")) {
            r = hypot(hypot(x[0], x[1]), hypot(x[2], x[3]));
        } else if (ts_str_is(name, "ldexp")) {
            r = ldexp(x[0], (int)x[1]);
        } else {
            found = false;
        }
        if (found) {
            *out = rt_float(r);
            return NULL;
        }
    }
    TS_TRY(math1(name, x[0], &found, &r));
    if (found) {
        *out = rt_float(r);
        return NULL;
    }
    return ts_error_make(TS_ERR_UNSUPPORTED, "math.%.*s is not available when a script is compiled",
                         TS_STR_ARG(name));
}
