/* frontend/archive/exported_conditions.c - what the exporter assumed of its inputs on the way ("guards"),
 * as statements at the beginning of forward: where one does not hold, the graph may be of another branch
 * of the source.
 *
 * A condition is Python text over L['name']['part'].size()[0]; what the printer of sympy writes beside
 * these is a short list (torch/utils/_sympy/printers.py). Other text is told of and not checked. */
#include "frontend/archive/exported.h"

#include "frontend/diagnostics.h"

enum { MAX_CONDITION = 64 << 10, MAX_CONDITIONS = 100000, SHOWN = 200 };

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static size_t word_length(const char *p) {
    size_t n = 0;
    while (is_letter(p[n]) || (n && is_digit(p[n])))
        n++;
    return n;
}

/* ['key'], [0] or .attribute; its length, or 0. The path is spelled as fe_exported_path spells it. */
static size_t read_part(const char *p, ts_buffer *path) {
    size_t n = 0;
    if (*p == '.' && (n = word_length(p + 1)) > 0) {
        ts_buffer_format(path, "['%.*s']", (int)n, p + 1);
        return n + 1;
    }
    if (*p != '[')
        return 0;
    if (p[1] == '\'') {
        const char *end = strchr(p + 2, '\'');
        n = end && end[1] == ']' ? (size_t)(end + 2 - p) : 0;
    } else {
        while (is_digit(p[1 + n]))
            n++;
        n = n && p[1 + n] == ']' ? n + 2 : 0;
    }
    ts_buffer_append(path, p, n);
    return n;
}

/* What stands for an input in the text, by a path that names it; of *values and **named, too, whose
 * parts are parameters: values_0, name. */
static const ts_str *find_input(fe_archive *a, ts_str path) {
    const ts_str *found = fe_map_get(&a->exported->paths, path);
    const char *second = path.length ? memchr(path.data, ']', path.length) : NULL;
    if (found || !second || second + 2 >= path.data + path.length || path.data[1] != '\'')
        return found;
    ts_str head = {path.data + 2, (size_t)(second - path.data) - 3};
    ts_str rest = {second + 1, (size_t)(path.data + path.length - second) - 1};
    if (rest.data[1] == '\'')
        return fe_map_get(&a->exported->paths, rest);
    const char *close = memchr(rest.data, ']', rest.length);
    if (!close || !is_digit(rest.data[1]))
        return NULL;
    ts_str joined = ts_arena_format(a->arena, "['%.*s_%.*s']%.*s", (int)head.length, head.data,
                                    (int)(close - rest.data) - 1, rest.data + 1,
                                    (int)(rest.data + rest.length - close) - 1, close + 1);
    return fe_map_get(&a->exported->paths, joined);
}

/* L['x'].size()[0] */
static size_t read_input(fe_archive *a, const char *p, ts_buffer *out) {
    static const char size[] = ".size()[";
    ts_buffer path = {0};
    size_t at = 1, n;
    while (strncmp(p + at, size, sizeof size - 1) != 0 && (n = read_part(p + at, &path)) > 0)
        at += n;
    const ts_str *input = find_input(a, ts_arena_str(a->arena, (ts_str){path.data ? path.data : "", path.length}));
    ts_buffer_deinit(&path);
    if (!input)
        return 0;
    if (strncmp(p + at, size, sizeof size - 1) != 0) {
        ts_buffer_str(out, *input);
        return at;
    }
    const char *dim = p + at + sizeof size - 1;
    for (n = 0; is_digit(dim[n]); n++)
        continue;
    if (!n || n > 2 || dim[n] != ']')
        return 0;
    ts_buffer_format(out, "torch.size(%.*s, %.*s)", (int)input->length, input->data, (int)n, dim);
    return (size_t)(dim + n + 1 - p);
}

/* A word of the printer's; its length, or 0. */
static size_t read_word(const char *p, ts_buffer *out) {
    static const char *const words[][2] = {{"and", "and"}, {"or", "or"}, {"not", "not"}, {"max", "ops.prim.max"},
                                           {"min", "ops.prim.min"}, {"int", "int"}, {"float", "float"},
                                           {"abs", "ops.prim.abs"}, {"math.trunc", "int"}, {"math.floor", "torch.floor"},
                                           {"math.ceil", "torch.ceil"}, {"torch._sym_sqrt", "torch.sqrt"},
                                           {"torch.sym_float", "float"}};
    size_t n = word_length(p);
    if (n && p[n] == '.' && word_length(p + n + 1))
        n += 1 + word_length(p + n + 1);
    for (size_t i = 0; n && i < sizeof words / sizeof *words; i++)
        if (strlen(words[i][0]) == n && strncmp(p, words[i][0], n) == 0) {
            ts_buffer_text(out, words[i][1]);
            return n;
        }
    return 0;
}

/* A whole number; the printer's "no bound" is beyond 64 bits, and a float here. */
static size_t read_number(const char *p, ts_buffer *out) {
    size_t n = 0;
    while (is_digit(p[n]))
        n++;
    ts_buffer_append(out, p, n);
    if (n > 18 && p[n] != '.')
        ts_buffer_text(out, ".0");
    return n;
}

static bool translate(fe_archive *a, const char *p, ts_buffer *out) {
    while (*p) {
        size_t n = p[0] == 'L' && (p[1] == '[' || p[1] == '.') ? read_input(a, p, out)
                   : is_digit(*p)                                ? read_number(p, out)
                                                                 : read_word(p, out);
        if (!n && strchr(" ()+-*/%<>=!,.", *p)) {
            ts_buffer_char(out, *p);
            n = 1;
        }
        if (!n)
            return false;
        p += n;
    }
    return true;
}

/* The text without L['...'] around names, for messages: no quotes or backslashes that end a string. */
static ts_str readable(fe_archive *a, const char *p) {
    ts_buffer out = {0};
    while (*p && out.length < SHOWN) {
        const char *end = strncmp(p, "L['", 3) == 0 ? strstr(p, "']") : NULL;
        if (end) {
            for (p += 3; p < end; p++)
                ts_buffer_char(&out, is_letter(*p) || is_digit(*p) ? *p : '?');
            p += 2;
            continue;
        }
        ts_buffer_char(&out, *p == '"' || *p == '\\' || (unsigned char)*p < 32 || (unsigned char)*p > 126 ? '?' : *p);
        p++;
    }
    ts_str text = ts_arena_format(a->arena, "%.*s%s", (int)out.length, out.data ? out.data : "", *p ? "..." : "");
    ts_buffer_deinit(&out);
    return text;
}

void fe_exported_path(fe_archive *a, ts_str path, ts_str expression) {
    ts_str *kept = TS_NEW(a->arena, ts_str);
    *kept = expression;
    fe_map_set(a->arena, &a->exported->paths, path, kept);
}

ts_status fe_exported_write_conditions(fe_archive *a) {
    const json_t *list = json_object_get(a->exported->root, "guards_code");
    if (json_array_size(list) > MAX_CONDITIONS)
        return fe_exported_bad("guards_code: more than %d conditions", MAX_CONDITIONS);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text || strlen(text) > MAX_CONDITION)
            return fe_exported_bad("guards_code: expected texts of at most %d bytes", MAX_CONDITION);
        ts_str shown = readable(a, text);
        ts_buffer condition = {0};
        if (translate(a, text, &condition) && condition.length)
            ts_buffer_format(&a->exported->text,
                             "    if torch.__not__(bool(%.*s)):\n      ops.prim.RaiseException(\"the inputs are not what the "
                             "program was exported for: expected %.*s\", \"builtins.RuntimeError\")\n",
                             (int)condition.length, condition.data, (int)shown.length, shown.data);
        else
            fe_report_place(a->diagnostics, FE_WARNING, TS_ERR_UNSUPPORTED, (ts_place){.file = a->path}, (ts_str){0},
                            "a condition of the exported program is not understood and not checked: %.*s",
                            (int)shown.length, shown.data);
        ts_buffer_deinit(&condition);
        if (a->exported->text.length > FE_ARCHIVE_MAX_CODE)
            return fe_exported_bad("more than %d bytes of text", FE_ARCHIVE_MAX_CODE);
    }
    return NULL;
}
