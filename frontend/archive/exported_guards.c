/* frontend/archive/exported_guards.c - what an exported program asks of the sizes of its inputs, as
 * statements at the beginning of forward: bounds of symbols, and sizes that follow from others.
 *
 * A size is an int or an expression in the notation of sympy: Symbol('s77', ...), Integer(2),
 * Mul(a, b), Add(a, b); older files have s0, 2*s0 for it. Other forms are not guarded. */
#include "frontend/archive/exported.h"

/* "Symbol('s77', positive=True, integer=True)" or "s77": the symbol's name; empty for expressions. */
ts_str fe_exported_symbol(const char *text) {
    static const char start[] = "Symbol('";
    size_t n = 0;
    bool is_call = strncmp(text, start, sizeof start - 1) == 0;
    const char *name = is_call ? text + sizeof start - 1 : text;
    while ((name[n] >= 'a' && name[n] <= 'z') || name[n] == '_' || (name[n] >= '0' && name[n] <= '9') ||
           (name[n] >= 'A' && name[n] <= 'Z'))
        n++;
    bool is_whole = is_call ? name[n] == '\'' && strchr(name, ')') && !strchr(name, ')')[1] : !name[n];
    bool is_name = n && n < 40 && !(name[0] >= '0' && name[0] <= '9');
    return is_whole && is_name ? (ts_str){name, n} : (ts_str){0};
}

static void skip_blank(const char **at) {
    while (**at == ' ')
        (*at)++;
}

static bool take(const char **at, const char *word) {
    size_t n = strlen(word);
    skip_blank(at);
    if (strncmp(*at, word, n) != 0)
        return false;
    *at += n;
    return true;
}

static bool write_expression(fe_archive *a, const char **at, int depth, ts_buffer *out);

/* Mul(a, b, ...) as torch.mul(a, torch.mul(b, ...)). */
static bool write_nest(fe_archive *a, const char **at, const char *function, int depth,
                       ts_buffer *out) {
    ts_buffer first = {0}, rest = {0};
    bool fits = write_expression(a, at, depth + 1, &first);
    if (fits && take(at, ",")) {
        fits = depth < 20 && write_nest(a, at, function, depth + 1, &rest);
        ts_buffer_format(out, "%s(", function);
        ts_buffer_append(out, first.data ? first.data : "", first.length);
        ts_buffer_text(out, ", ");
        ts_buffer_append(out, rest.data ? rest.data : "", rest.length);
        ts_buffer_char(out, ')');
    } else if (fits) {
        fits = take(at, ")");
        ts_buffer_append(out, first.data ? first.data : "", first.length);
    }
    ts_buffer_deinit(&first);
    ts_buffer_deinit(&rest);
    return fits;
}

static bool write_symbol(fe_archive *a, ts_str symbol, ts_buffer *out) {
    const ts_str *bound = fe_map_get(&a->exported->sizes, symbol);
    if (bound)
        ts_buffer_str(out, *bound);
    return bound != NULL;
}

static bool write_int(const char **at, ts_buffer *out) {
    const char *from = *at;
    if (**at == '-')
        (*at)++;
    size_t digits = 0;
    while (**at >= '0' && **at <= '9' && digits < 18) {
        (*at)++;
        digits++;
    }
    ts_buffer_append(out, from, (size_t)(*at - from));
    return digits > 0;
}

static bool write_expression(fe_archive *a, const char **at, int depth, ts_buffer *out) {
    if (depth > 20)
        return false;
    if (take(at, "Integer("))
        return write_int(at, out) && take(at, ")");
    if (take(at, "Mul("))
        return write_nest(a, at, "torch.mul", depth, out);
    if (take(at, "Add("))
        return write_nest(a, at, "torch.add", depth, out);
    if (take(at, "Symbol('")) {
        const char *from = *at, *end = strchr(from, '\'');
        const char *close = end ? strchr(end, ')') : NULL;
        if (!close)
            return false;
        *at = close + 1;
        return write_symbol(a, (ts_str){from, (size_t)(end - from)}, out);
    }
    /* "2*s0" */
    skip_blank(at);
    ts_buffer factor = {0};
    bool has_factor = (**at >= '0' && **at <= '9') && write_int(at, &factor) && take(at, "*");
    size_t n = 0;
    while (((*at)[n] >= 'a' && (*at)[n] <= 'z') || ((*at)[n] >= '0' && (*at)[n] <= '9'))
        n++;
    ts_buffer name = {0};
    bool fits = n && !((*at)[0] >= '0' && (*at)[0] <= '9') && write_symbol(a, (ts_str){*at, n}, &name);
    *at += n;
    if (fits)
        ts_buffer_format(out, has_factor ? "torch.mul(%.*s, %.*s)" : "%.*s%.*s", (int)factor.length,
                         factor.data ? factor.data : "", (int)name.length, name.data ? name.data : "");
    ts_buffer_deinit(&factor);
    ts_buffer_deinit(&name);
    return fits;
}

/* The tensor of an input, and its sizes as the graph has them; NULL for other inputs. */
static const json_t *sizes_of(fe_archive *a, const json_t *argument, ts_str *out_tensor) {
    const json_t *value = NULL;
    const char *which = fe_exported_choice(argument, &value);
    const char *name = json_string_value(json_object_get(value, "name"));
    const json_t *graph = json_object_get(json_object_get(a->exported->root, "graph_module"), "graph");
    if (!which || strcmp(which, "as_tensor") != 0 || !name)
        return NULL;
    *out_tensor = fe_exported_name(a, name);
    const json_t *sizes = json_object_get(json_object_get(json_object_get(graph, "tensor_values"), name),
                                          "sizes");
    return json_is_array(sizes) && json_array_size(sizes) <= RT_MAX_RANK ? sizes : NULL;
}

static const char *expression_of(const json_t *size) {
    return json_string_value(json_object_get(json_object_get(size, "as_expr"), "expr_str"));
}

void fe_exported_bind_sizes(fe_archive *a, const json_t *argument) {
    ts_str tensor = {0};
    const json_t *sizes = sizes_of(a, argument, &tensor);
    for (size_t d = 0; d < json_array_size(sizes); d++) {
        const char *text = expression_of(json_array_get(sizes, d));
        ts_str symbol = text ? fe_exported_symbol(text) : (ts_str){0};
        if (!symbol.length || fe_map_get(&a->exported->sizes, symbol))
            continue;
        ts_str *size = TS_NEW(a->arena, ts_str);
        *size = ts_arena_format(a->arena, "torch.size(%.*s, %zu)", (int)tensor.length, tensor.data, d);
        fe_map_set(a->arena, &a->exported->sizes, ts_arena_str(a->arena, symbol), size);
    }
}

static void write_raise(fe_archive *a, ts_str condition, const char *text) {
    ts_buffer_format(&a->exported->text, "    if %.*s:\n      ops.prim.RaiseException(\"%s\", "
                     "\"builtins.RuntimeError\")\n", (int)condition.length, condition.data, text);
}

/* Up to 2 a lower bound only says that the program was not made for 0 or 1; it holds for them as well. */
static void write_bounds(fe_archive *a, ts_str symbol, ts_str size) {
    const json_t *range = json_object_get(json_object_get(a->exported->root, "range_constraints"),
                                          ts_arena_copy(a->arena, symbol.data, symbol.length));
    const json_t *low = json_object_get(range, "min_val"), *high = json_object_get(range, "max_val");
    char text[120];
    if (json_is_integer(low) && json_integer_value(low) > 2) {
        snprintf(text, sizeof text, "size %.40s of the inputs: expected %lld or more",
                 ts_arena_copy(a->arena, symbol.data, symbol.length), (long long)json_integer_value(low));
        write_raise(a, ts_arena_format(a->arena, "torch.lt(%.*s, %lld)", (int)size.length, size.data,
                                       (long long)json_integer_value(low)), text);
    }
    if (json_is_integer(high) && json_integer_value(high) < ((json_int_t)1 << 60)) {
        snprintf(text, sizeof text, "size %.40s of the inputs: expected at most %lld",
                 ts_arena_copy(a->arena, symbol.data, symbol.length), (long long)json_integer_value(high));
        write_raise(a, ts_arena_format(a->arena, "torch.gt(%.*s, %lld)", (int)size.length, size.data,
                                       (long long)json_integer_value(high)), text);
    }
}

void fe_exported_write_guards(fe_archive *a, const json_t *argument) {
    ts_str tensor = {0};
    const json_t *sizes = sizes_of(a, argument, &tensor);
    ts_buffer all = {0};
    /* Declared inputs are checked on entry; what lies in a structure, or follows, is checked here. */
    bool is_needed = sizes != NULL;
    for (size_t i = 0; i < a->exported->input_count; i++)
        is_needed = is_needed && !ts_str_equal(a->exported->inputs[i].name, tensor);
    for (size_t d = 0; d < json_array_size(sizes); d++) {
        const json_t *size = json_array_get(sizes, d);
        const char *text = expression_of(size);
        ts_str symbol = text ? fe_exported_symbol(text) : (ts_str){0};
        ts_str own = ts_arena_format(a->arena, "torch.size(%.*s, %zu)", (int)tensor.length, tensor.data, d);
        const ts_str *bound = symbol.length ? fe_map_get(&a->exported->sizes, symbol) : NULL;
        ts_buffer_text(&all, d ? ", " : "");
        if (bound && ts_str_equal(*bound, own))
            write_bounds(a, symbol, own);
        ts_buffer one = {0};
        if (json_is_integer(json_object_get(size, "as_int")))
            ts_buffer_format(&one, "%lld", (long long)json_integer_value(json_object_get(size, "as_int")));
        else if (bound)
            ts_buffer_str(&one, *bound);
        else if (text && write_expression(a, &text, 0, &one) && !*text)
            is_needed = true;
        else
            one.length = 0;
        if (one.length)
            ts_buffer_append(&all, one.data, one.length);
        else
            ts_buffer_str(&all, own);
        ts_buffer_deinit(&one);
    }
    if (is_needed && json_array_size(sizes))
        write_raise(a, ts_arena_format(a->arena, "torch.ne(torch.size(%.*s), [%.*s])", (int)tensor.length,
                                       tensor.data, (int)all.length, all.data ? all.data : ""),
                    ts_arena_format(a->arena, "the sizes of %.*s are not those that the program was "
                                    "exported for", (int)tensor.length, tensor.data).data);
    ts_buffer_deinit(&all);
}
