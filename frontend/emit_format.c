/* frontend/emit_format.c - "...".format(...) of a known text: the f-string it stands for, whose expressions are hidden
 * names of the arguments. "{:>{}} {k.x!r}".format(a, w, k=v) is f"{$0:>{$1}} {$k.x!r}". */
#include "frontend/emit_internal.h"
#include "frontend/rewrite.h"

typedef struct format_reader {
    emitter *E;
    ts_str text;
    size_t at;
    size_t next; /* automatic numbering */
    bool is_numbered, is_automatic;
    const em_arguments *args;
    const ast_node *node;
} format_reader;

static ast_node *part_of(format_reader *r, ast_kind kind, ts_str text) {
    ast_node *n = rw_node(r->E->arena, kind, r->node);
    n->text = ts_arena_str(r->E->arena, text);
    return n;
}

static bool is_number(ts_str s) {
    for (size_t i = 0; i < s.length; i++)
        if (s.data[i] < '0' || s.data[i] > '9')
            return false;
    return s.length && s.length < 10;
}

static size_t number_of(ts_str s) {
    size_t n = 0;
    for (size_t i = 0; i < s.length; i++)
        n = n * 10 + (size_t)(s.data[i] - '0');
    return n;
}

/* The argument as a hidden name; NULL where there is none. */
static ast_node *argument(format_reader *r, ts_str name) {
    size_t wanted = 0, count = 0;
    if (!name.length || is_number(name)) {
        bool is_given = name.length > 0;
        wanted = is_given ? number_of(name) : r->next++;
        r->is_numbered = r->is_numbered || is_given;
        r->is_automatic = r->is_automatic || !is_given;
        if (r->is_numbered && r->is_automatic)
            return NULL;
    }
    for (size_t i = 0; i < r->args->count; i++) {
        ts_str own = r->args->items[i].name;
        bool is_it = own.length ? ts_str_equal(own, name) : (!name.length || is_number(name)) && count++ == wanted;
        if (is_it)
            return rw_name(r->E->arena, ts_arena_format(r->E->arena, "$format%zu", i), r->node);
    }
    return NULL;
}

static size_t end_of(const format_reader *r, const char *stops) {
    size_t at = r->at;
    while (at < r->text.length && !strchr(stops, r->text.data[at]))
        at++;
    return at;
}

static ts_str taken(format_reader *r, size_t end) {
    ts_str s = {r->text.data + r->at, end - r->at};
    r->at = end;
    return s;
}

static ast_node *read_text(format_reader *r, int depth);

/* What stands between the braces. */
static ast_node *read_field(format_reader *r, int depth) {
    ast_node *v = argument(r, taken(r, end_of(r, ".[!:}")));
    while (v && r->at < r->text.length && (r->text.data[r->at] == '.' || r->text.data[r->at] == '[')) {
        bool is_item = r->text.data[r->at++] == '[';
        ts_str name = taken(r, end_of(r, is_item ? "]" : ".[!:}"));
        if (!name.length || (is_item && r->at++ >= r->text.length))
            return NULL;
        ast_node *outer = part_of(r, is_item ? AST_SUBSCRIPT : AST_ATTRIBUTE, name);
        outer->left = v;
        if (is_item) {
            outer->right = part_of(r, is_number(name) ? AST_INT : AST_STRING, name);
            outer->right->integer = is_number(name) ? (int64_t)number_of(name) : 0;
        }
        v = outer;
    }
    if (!v)
        return NULL;
    ast_node *field = part_of(r, AST_FORMATTED, (ts_str){"", 0});
    field->left = v;
    if (r->at + 1 < r->text.length && r->text.data[r->at] == '!') {
        field->text = ts_arena_str(r->E->arena, (ts_str){r->text.data + r->at + 1, 1});
        r->at += 2;
    }
    if (r->at < r->text.length && r->text.data[r->at] == ':') {
        r->at++;
        field->right = read_text(r, depth + 1);
        if (!field->right)
            return NULL;
    }
    return r->at < r->text.length && r->text.data[r->at++] == '}' ? field : NULL;
}

/* depth 1: a specification, which ends before its }. */
static ast_node *read_text(format_reader *r, int depth) {
    ast_node *whole = part_of(r, AST_FSTRING, (ts_str){"", 0});
    ts_buffer plain = {0};
    bool good = depth < 3;
    while (good && r->at < r->text.length) {
        char c = r->text.data[r->at];
        bool is_doubled = r->at + 1 < r->text.length && r->text.data[r->at + 1] == c;
        if (c == '}' && depth)
            break;
        if (c != '{' && c != '}') {
            ts_buffer_char(&plain, c);
            r->at++;
        } else if (is_doubled && !depth) {
            ts_buffer_char(&plain, c);
            r->at += 2;
        } else if (c == '}') {
            good = false;
        } else {
            if (plain.length)
                rw_append(r->E->arena, &whole->list, part_of(r, AST_STRING, (ts_str){plain.data, plain.length}));
            plain.length = 0;
            r->at++;
            ast_node *field = read_field(r, depth);
            good = field != NULL;
            if (good)
                rw_append(r->E->arena, &whole->list, field);
        }
    }
    if (plain.length)
        rw_append(r->E->arena, &whole->list, part_of(r, AST_STRING, (ts_str){plain.data, plain.length}));
    ts_buffer_deinit(&plain);
    return good ? whole : NULL;
}

/* False: the text is not known, or wrong: what the runtime raises then is right. */
bool em_format_call(emitter *E, ir_value *format, const em_arguments *args, const ast_node *node, ir_value **out) {
    rt_value c;
    if (!ir_const_value(format, &c) || c.tag != RT_TAG_STR || !node->source || node->source->is_archive)
        return false;
    format_reader r = {.E = E, .text = rt_str_text(c.as.str), .args = args, .node = node};
    ast_node *tree = read_text(&r, 0);
    if (!tree || r.at < r.text.length)
        return false;
    size_t locals = E->local_count;
    for (size_t i = 0; i < args->count; i++) {
        em_local local = {.name = ts_arena_format(E->arena, "$format%zu", i), .v = args->items[i].v};
        TS_APPEND(E->arena, E->locals, E->local_count, E->local_capacity, local);
    }
    *out = em_fstring(E, tree);
    E->local_count = locals;
    return true;
}
