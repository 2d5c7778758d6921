/* frontend/parse_match.c - match statements as assignments and a chain of if.
 *
 * match s: case p: body  becomes  $match1 = s; if <test of p on $match1>: captures; body; else: ...
 * so that nothing behind the parser has to know them. */
#include "frontend/parse_internal.h"

typedef struct pattern {
    ast_list tests;     /* all must hold, in this order; names that a guard or alternative needs are walruses */
    ast_list captures;  /* ASSIGN statements */
    bool in_test;       /* captures become tests that always hold */
    bool is_refutable;  /* there are tests beside captures */
} pattern;

static fe_span span_of(const ast_node *n) { return (fe_span){n->offset, n->offset + n->length}; }

static ast_node *name(fe_parser *p, ts_str text, const ast_node *at) {
    ast_node *n = fe_node_make(p, AST_NAME, span_of(at));
    n->text = text;
    return fe_node_seal(p, n);
}

static ast_node *compare(fe_parser *p, ast_operator op, ast_node *a, ast_node *b) {
    return fe_build_compare(p, op, a, b, false, span_of(b));
}

static ast_node *integer(fe_parser *p, int64_t value, const ast_node *at) {
    ast_node *n = fe_node_make(p, AST_INT, span_of(at));
    n->text = ts_arena_format(p->arena, "%lld", (long long)value);
    n->integer = value;
    if (value < 0) {
        n->integer = -value;
        return fe_build_unary(p, AST_NEG, fe_node_seal(p, n), span_of(at));
    }
    return fe_node_seal(p, n);
}

static ast_node *call1(fe_parser *p, const char *function, ast_node *a, ast_node *b, const ast_node *at) {
    ast_list arguments = {0};
    fe_list_add(p, &arguments, a);
    if (b)
        fe_list_add(p, &arguments, b);
    return fe_build_call(p, name(p, ts_str_of(function), at), arguments, span_of(at));
}

static ast_node *item(fe_parser *p, ast_node *of, ast_node *index, const ast_node *at) {
    ast_node *n = fe_node_make(p, AST_SUBSCRIPT, span_of(at));
    n->left = of;
    n->right = index;
    return fe_node_seal(p, n);
}

static void test(fe_parser *p, pattern *out, ast_node *holds) {
    fe_list_add(p, &out->tests, holds);
    out->is_refutable = true;
}

static void capture(fe_parser *p, pattern *out, ts_str text, ast_node *value, const ast_node *at) {
    ast_list rest = {0};
    if (ts_str_is(text, "_"))
        return;
    if (out->in_test) { /* (text := value, True)[1] */
        ast_node *walrus = fe_node_make(p, AST_WALRUS, span_of(at));
        walrus->text = text;
        walrus->left = value;
        fe_list_add(p, &rest, fe_node_seal(p, walrus));
        fe_list_add(p, &rest, fe_node_seal(p, fe_node_make(p, AST_TRUE, span_of(at))));
        ast_node *pair = fe_build_sequence(p, AST_TUPLE, rest, span_of(at));
        fe_list_add(p, &out->tests, item(p, pair, integer(p, 1, at), at));
        return;
    }
    fe_list_add(p, &rest, value);
    fe_list_add(p, &out->captures, fe_build_assign(p, name(p, text, at), rest, span_of(at)));
}

static ast_node *all_of(fe_parser *p, ast_list tests) {
    ast_node *all = tests.items[0];
    for (size_t i = 1; i < tests.count; i++)
        all = fe_build_boolop(p, AST_AND, all, tests.items[i], span_of(tests.items[i]));
    return all;
}

static void match(fe_parser *p, const ast_node *n, ast_node *subject, pattern *out);

static void sequence(fe_parser *p, const ast_node *n, ast_node *subject, pattern *out) {
    size_t count = n->list.count, star = count;
    for (size_t i = 0; i < count; i++)
        if (n->list.items[i]->kind == AST_STARRED)
            star = i;
    ast_list kinds = {0};
    fe_list_add(p, &kinds, name(p, TS_STR("list"), n));
    fe_list_add(p, &kinds, name(p, TS_STR("tuple"), n));
    test(p, out, call1(p, "isinstance", subject,
                                      fe_build_sequence(p, AST_TUPLE, kinds, span_of(n)), n));
    ast_node *length = call1(p, "len", subject, NULL, n);
    fe_list_add(p, &out->tests,
                compare(p, star < count ? AST_GE : AST_EQ, length,
                        integer(p, (int64_t)(star < count ? count - 1 : count), n)));
    for (size_t i = 0; i < count; i++) {
        const ast_node *part = n->list.items[i];
        if (i != star) {
            int64_t at = i < star ? (int64_t)i : (int64_t)i - (int64_t)count;
            match(p, part, item(p, subject, integer(p, at, part), part), out);
            continue;
        }
        ast_node *slice = fe_node_make(p, AST_SLICE, span_of(part));
        if (star)
            slice->left = integer(p, (int64_t)star, part);
        if (star + 1 < count)
            slice->right = integer(p, -(int64_t)(count - star - 1), part);
        fe_node_seal(p, slice);
        if (part->left->kind == AST_NAME)
            capture(p, out, part->left->text, call1(p, "list", item(p, subject, slice, part), NULL, part), part);
    }
}

static void mapping(fe_parser *p, const ast_node *n, ast_node *subject, pattern *out) {
    ast_list keys = {0};
    test(p, out, call1(p, "isinstance", subject, name(p, TS_STR("dict"), n), n));
    for (size_t i = 0; i + 1 < n->list.count; i += 2) {
        ast_node *key = n->list.items[i], *value = n->list.items[i + 1];
        if (key) {
            fe_list_add(p, &keys, key);
            test(p, out, compare(p, AST_IN, key, subject));
            match(p, value, item(p, subject, key, n), out);
            continue;
        }
        /* **rest: {k: v for k, v in subject.items() if k not in (keys)} */
        ast_list pair = {0}, clauses = {0};
        fe_list_add(p, &pair, name(p, TS_STR("$key"), value));
        fe_list_add(p, &pair, name(p, TS_STR("$value"), value));
        ast_node *each = fe_node_make(p, AST_COMP_FOR, span_of(value));
        ast_node *items = fe_node_make(p, AST_ATTRIBUTE, span_of(value));
        items->left = subject;
        items->text = TS_STR("items");
        each->left = fe_build_sequence(p, AST_TUPLE, pair, span_of(value));
        each->right = fe_build_call(p, fe_node_seal(p, items), (ast_list){0}, span_of(value));
        if (keys.count)
            fe_list_add(p, &each->list,
                        compare(p, AST_NOT_IN, pair.items[0], fe_build_sequence(p, AST_LIST, keys, span_of(n))));
        fe_list_add(p, &clauses, fe_node_seal(p, each));
        ast_node *rest = fe_node_make(p, AST_DICT_COMP, span_of(value));
        rest->left = pair.items[0];
        rest->right = pair.items[1];
        rest->list = clauses;
        if (value->kind == AST_NAME)
            capture(p, out, value->text, fe_node_seal(p, rest), value);
    }
}

/* Each side binds its names in its own test. */
static void alternatives(fe_parser *p, const ast_node *n, ast_node *subject, pattern *out) {
    pattern a = {.in_test = true}, b = {.in_test = true};
    match(p, n->left, subject, &a);
    match(p, n->right, subject, &b);
    if (a.tests.count && b.tests.count)
        test(p, out, fe_build_boolop(p, AST_OR, all_of(p, a.tests), all_of(p, b.tests), span_of(n)));
}

/* int(x): the subject itself; Point(x, y=0): attributes, positional ones as __match_args__ says. */
static void class_pattern(fe_parser *p, const ast_node *n, ast_node *subject, pattern *out) {
    static const char *const whole[] = {"bool", "bytearray", "bytes", "dict", "float", "frozenset",
                                        "int",  "list",      "set",   "str",  "tuple"};
    test(p, out, call1(p, "isinstance", subject, n->left, n));
    bool is_whole = false;
    for (size_t i = 0; n->left->kind == AST_NAME && i < sizeof whole / sizeof *whole; i++)
        is_whole |= ts_str_is(n->left->text, whole[i]);
    for (size_t i = 0; i < n->list.count; i++) {
        const ast_node *a = n->list.items[i];
        bool is_keyword = a->kind == AST_KEYWORD && a->text.length;
        if (!is_keyword && is_whole) {
            match(p, a, subject, out);
            continue;
        }
        ast_node *attribute = fe_node_make(p, AST_ATTRIBUTE, span_of(a));
        attribute->left = subject;
        attribute->text = is_keyword ? a->text : ts_arena_format(p->arena, FE_MATCH_ARGUMENT "%zu", i);
        match(p, is_keyword ? a->left : a, fe_node_seal(p, attribute), out);
    }
}

/* Depth is the tree's. */
static void match(fe_parser *p, const ast_node *n, ast_node *subject, pattern *out) {
    ast_node *value = (ast_node *)(uintptr_t)n;
    switch (n->kind) {
    case AST_NAME: capture(p, out, n->text, subject, n); return;
    case AST_NONE: test(p, out, compare(p, AST_IS, subject, value)); return;
    case AST_TRUE:
    case AST_FALSE:
    case AST_INT:
    case AST_FLOAT:
    case AST_IMAGINARY:
    case AST_STRING:
    case AST_ATTRIBUTE:
    case AST_UNARY: test(p, out, compare(p, AST_EQ, subject, value)); return;
    case AST_WITH_ITEM: /* (pattern as name) */
        match(p, n->left, subject, out);
        if (n->right->kind == AST_NAME)
            capture(p, out, n->right->text, subject, n->right);
        return;
    case AST_TUPLE:
    case AST_LIST: sequence(p, n, subject, out); return;
    case AST_DICT:
        mapping(p, n, subject, out);
        return;
    case AST_BINARY:
    case AST_CHAIN:
        if (n->kind == AST_BINARY && n->op == AST_BITOR) {
            alternatives(p, n, subject, out);
            return;
        }
        break;
    case AST_CALL: class_pattern(p, n, subject, out); return;
    default: break;
    }
    fe_parse_error(p, span_of(n), "expected a pattern");
}

ast_list fe_build_match(fe_parser *p, ast_node *subject, ast_list cases, fe_span span) {
    ast_list out = {0}, value = {0}, rest = {0};
    ts_str text = ts_arena_format(p->arena, "$match%d", ++p->match_count);
    fe_list_add(p, &value, subject);
    fe_list_add(p, &out, fe_build_assign(p, name(p, text, subject), value, span));
    for (size_t i = cases.count; i-- > 0;) {
        ast_node *c = cases.items[i];
        ast_node *guard = c->test;
        pattern found = {0};
        ast_node *s = name(p, text, c->left);
        match(p, c->left, s, &found);
        if (guard && found.is_refutable) { /* the guard reads what only a match has bound */
            found = (pattern){.in_test = true};
            match(p, c->left, s, &found);
        }
        if (c->text.length)
            capture(p, &found, c->text, s, c->left);
        ast_list body = found.captures;
        if (guard && !found.is_refutable && found.captures.count) {
            /* case n if n < 0: the name is bound whether the guard holds or not */
            ast_node *arm = fe_node_make(p, AST_IF, span_of(c));
            arm->test = guard;
            arm->body = c->body;
            arm->orelse = rest;
            fe_list_add(p, &body, fe_node_seal(p, arm));
            rest = body;
            continue;
        }
        if (guard)
            test(p, &found, guard);
        fe_list_concat(p, &body, c->body);
        if (!found.tests.count) {
            rest = body; /* what follows cannot be reached */
            continue;
        }
        c->kind = AST_IF;
        c->left = NULL;
        c->text = (ts_str){0};
        c->test = all_of(p, found.tests);
        c->body = body;
        c->orelse = rest;
        rest = (ast_list){0};
        fe_list_add(p, &rest, fe_node_seal(p, c));
    }
    fe_list_concat(p, &out, rest);
    return out;
}
