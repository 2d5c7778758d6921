/* frontend/parse_match.c - match statements as assignments and a chain of if.
 *
 * match s: case p: body  becomes  $match1 = s; if <test of p on $match1>: captures; body; else: ...
 * so that nothing behind the parser has to know them. */
#include "frontend/parse_internal.h"

typedef struct pattern {
    ast_list tests;     /* all must hold; none: it always matches */
    ast_list captures;  /* ASSIGN statements */
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

static void capture(fe_parser *p, pattern *out, ts_str text, ast_node *value, const ast_node *at) {
    ast_list rest = {0};
    if (ts_str_is(text, "_"))
        return;
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
    fe_list_add(p, &out->tests, call1(p, "isinstance", subject,
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

/* Depth is the tree's. */
static void match(fe_parser *p, const ast_node *n, ast_node *subject, pattern *out) {
    ast_node *value = (ast_node *)(uintptr_t)n;
    switch (n->kind) {
    case AST_NAME: capture(p, out, n->text, subject, n); return;
    case AST_NONE: fe_list_add(p, &out->tests, compare(p, AST_IS, subject, value)); return;
    case AST_TRUE:
    case AST_FALSE:
    case AST_INT:
    case AST_FLOAT:
    case AST_IMAGINARY:
    case AST_STRING:
    case AST_ATTRIBUTE:
    case AST_UNARY: fe_list_add(p, &out->tests, compare(p, AST_EQ, subject, value)); return;
    case AST_WITH_ITEM: /* (pattern as name) */
        match(p, n->left, subject, out);
        if (n->right->kind == AST_NAME)
            capture(p, out, n->right->text, subject, n->right);
        p->with_targets = 0;
        return;
    case AST_TUPLE:
    case AST_LIST: sequence(p, n, subject, out); return;
    case AST_DICT:
        fe_list_add(p, &out->tests, call1(p, "isinstance", subject, name(p, TS_STR("dict"), n), n));
        for (size_t i = 0; i + 1 < n->list.count; i += 2) {
            if (!n->list.items[i]) {
                fe_parse_error(p, span_of(n), "** in a mapping pattern is not supported");
                return;
            }
            fe_list_add(p, &out->tests, compare(p, AST_IN, n->list.items[i], subject));
            match(p, n->list.items[i + 1], item(p, subject, n->list.items[i], n), out);
        }
        return;
    case AST_BINARY:
    case AST_CHAIN:
        if (n->kind == AST_BINARY && n->op == AST_BITOR) {
            pattern a = {0}, b = {0};
            match(p, n->left, subject, &a);
            match(p, n->right, subject, &b);
            if (a.captures.count || b.captures.count)
                fe_parse_error(p, span_of(n), "names in alternatives of a pattern are not supported");
            else if (a.tests.count && b.tests.count)
                fe_list_add(p, &out->tests, fe_build_boolop(p, AST_OR, all_of(p, a.tests),
                                                            all_of(p, b.tests), span_of(n)));
            return;
        }
        break;
    case AST_CALL: {
        fe_list_add(p, &out->tests, call1(p, "isinstance", subject, n->left, n));
        for (size_t i = 0; i < n->list.count; i++) {
            const ast_node *a = n->list.items[i];
            if (a->kind == AST_KEYWORD && a->text.length) {
                ast_node *attribute = fe_node_make(p, AST_ATTRIBUTE, span_of(a));
                attribute->left = subject;
                attribute->text = a->text;
                match(p, a->left, fe_node_seal(p, attribute), out);
            } else if (n->list.count == 1 && a->kind == AST_NAME) {
                capture(p, out, a->text, subject, a); /* int(x) */
            } else {
                fe_parse_error(p, span_of(a), "positional parts of a class pattern are not supported");
            }
        }
        return;
    }
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
        pattern found = {0};
        ast_node *s = name(p, text, c->left);
        match(p, c->left, s, &found);
        if (c->text.length)
            capture(p, &found, c->text, s, c->left);
        ast_node *guard = c->test;
        ast_list body = found.captures;
        if (guard && found.captures.count && found.tests.count) {
            fe_parse_error(p, span_of(guard), "a guard on names of a pattern that may not match is not supported");
        } else if (guard && found.captures.count) {
            /* case n if n < 0: the name is bound whether the guard holds or not */
            ast_node *arm = fe_node_make(p, AST_IF, span_of(c));
            arm->test = guard;
            arm->body = c->body;
            arm->orelse = rest;
            fe_list_add(p, &body, fe_node_seal(p, arm));
            rest = body;
            continue;
        } else if (guard) {
            fe_list_add(p, &found.tests, guard);
        }
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
