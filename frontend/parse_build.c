/* frontend/parse_build.c - builds nodes of the syntax tree and checks what the grammar cannot. */
#include "frontend/parse_internal.h"

ts_str fe_span_text(const fe_parser *p, fe_span span) {
    return (ts_str){p->source->text.data + span.begin, span.end - span.begin};
}

static fe_span node_span(const ast_node *node) {
    return (fe_span){node->offset, node->offset + node->length};
}

ast_node *fe_node_make(fe_parser *p, ast_kind kind, fe_span span) {
    ast_node *node = TS_NEW(p->arena, ast_node);
    node->kind = kind;
    node->source = p->source;
    node->offset = span.begin;
    node->length = span.end > span.begin ? span.end - span.begin : 0;
    node->depth = 1;
    return node;
}

static uint32_t deeper(uint32_t depth, const ast_node *child) {
    return child && child->depth > depth ? child->depth : depth;
}

static uint32_t deepest(uint32_t depth, const ast_list *list) {
    for (size_t i = 0; i < list->count; i++)
        depth = deeper(depth, list->items[i]);
    return depth;
}

ast_node *fe_node_seal(fe_parser *p, ast_node *node) {
    uint32_t depth = deeper(0, node->left);
    depth = deeper(depth, node->right);
    depth = deeper(depth, node->third);
    depth = deeper(depth, node->test);
    depth = deepest(depth, &node->list);
    depth = deepest(depth, &node->body);
    depth = deepest(depth, &node->orelse);
    depth = deepest(depth, &node->finally_body);
    depth = deepest(depth, &node->decorators);
    for (size_t i = 0; i < node->parameters.count; i++) {
        depth = deeper(depth, node->parameters.items[i].annotation);
        depth = deeper(depth, node->parameters.items[i].default_value);
    }
    node->depth = depth + 1;
    if (node->depth > AST_MAX_DEPTH && !p->must_stop) {
        fe_parse_error(p, node_span(node), "expressions and blocks are nested deeper than %d",
                       AST_MAX_DEPTH);
        p->must_stop = true;
    }
    return node;
}

void fe_list_add(fe_parser *p, ast_list *list, ast_node *node) {
    TS_APPEND(p->arena, list->items, list->count, list->capacity, node);
}

void fe_list_concat(fe_parser *p, ast_list *list, ast_list more) {
    if (list->count == 0) {
        *list = more;
        return;
    }
    for (size_t i = 0; i < more.count; i++)
        fe_list_add(p, list, more.items[i]);
}

static void set_op(fe_parser *p, ast_node *node, ast_operator op) {
    /* ops is as long as the list's capacity: it grows with it. */
    size_t n = node->list.count - 1;
    if (n && !node->ops)
        node->ops = TS_NEW_ARRAY(p->arena, ast_operator, node->list.capacity);
    node->ops[n - 1] = op;
}

static void extend(fe_parser *p, ast_node *node, ast_operator op, ast_node *right) {
    size_t capacity = node->list.capacity;
    fe_list_add(p, &node->list, right);
    if (node->list.capacity != capacity) {
        ast_operator *old = node->ops;
        node->ops = TS_NEW_ARRAY(p->arena, ast_operator, node->list.capacity);
        if (old)
            memcpy(node->ops, old, (node->list.count - 2) * sizeof *old);
    }
    set_op(p, node, op);
    node->length = right->offset + right->length - node->offset;
    if (node->depth <= right->depth) {
        node->depth = right->depth;
        fe_node_seal(p, node);
    }
}

/* A left-nested tree of BINARY nodes as one CHAIN. */
static ast_node *flatten(fe_parser *p, ast_node *binary) {
    size_t count = 1;
    ast_node *first = binary;
    for (; first->kind == AST_BINARY; first = first->left)
        count++;
    ast_node *chain = fe_node_make(p, AST_CHAIN, node_span(binary));
    chain->list.items = TS_NEW_ARRAY(p->arena, ast_node *, count);
    chain->list.count = chain->list.capacity = count;
    chain->ops = TS_NEW_ARRAY(p->arena, ast_operator, count);
    chain->list.items[0] = first;
    for (ast_node *n = binary; n->kind == AST_BINARY; n = n->left) {
        chain->list.items[--count] = n->right;
        chain->ops[count - 1] = n->op;
    }
    return fe_node_seal(p, chain);
}

/* ---- 2**63 - 1, -2**63: parts that are beyond 64 bits, a whole that is not ---- */

typedef struct wide {
    uint64_t magnitude;
    bool is_negative;
    bool exceeds; /* it, or what it is made of, is no int64 */
} wide;

static wide wide_make(uint64_t magnitude, bool is_negative, bool exceeds) {
    bool fits = magnitude <= (uint64_t)INT64_MAX + (is_negative ? 1u : 0u);
    return (wide){magnitude, is_negative && magnitude, exceeds || !fits};
}

static bool wide_multiply(wide a, wide b, wide *out) {
    if (b.magnitude && a.magnitude > UINT64_MAX / b.magnitude)
        return false;
    *out = wide_make(a.magnitude * b.magnitude, a.is_negative != b.is_negative, a.exceeds || b.exceeds);
    return true;
}

static bool wide_add(wide a, wide b, wide *out) {
    bool exceeds = a.exceeds || b.exceeds;
    if (a.is_negative != b.is_negative) {
        bool a_is_more = a.magnitude > b.magnitude;
        *out = wide_make(a_is_more ? a.magnitude - b.magnitude : b.magnitude - a.magnitude,
                         a_is_more ? a.is_negative : b.is_negative, exceeds);
        return true;
    }
    if (a.magnitude > UINT64_MAX - b.magnitude)
        return false;
    *out = wide_make(a.magnitude + b.magnitude, a.is_negative, exceeds);
    return true;
}

static bool wide_power(wide a, wide b, wide *out) {
    if (b.is_negative || b.magnitude > 64)
        return false;
    *out = wide_make(1, false, a.exceeds || b.exceeds);
    for (uint64_t i = 0; i < b.magnitude; i++)
        if (!wide_multiply(*out, a, out))
            return false;
    return true;
}

/* The value of an expression of int literals; false: it is another, or beyond 64 bits and a sign. */
static bool wide_of(const ast_node *n, wide *out) {
    wide a, b;
    switch (n->kind) {
    case AST_INT:
        if (n->is_big)
            return false;
        *out = wide_make(n->integer < 0 ? 0 - (uint64_t)n->integer : (uint64_t)n->integer, n->integer < 0, false);
        return true;
    case AST_UNARY:
        if (n->op != AST_NEG || !wide_of(n->left, &a))
            return false;
        *out = wide_make(a.magnitude, !a.is_negative, a.exceeds);
        return true;
    case AST_BINARY:
        if (!wide_of(n->left, &a) || !wide_of(n->right, &b))
            return false;
        b.is_negative = n->op == AST_SUB ? !b.is_negative : b.is_negative;
        if (n->op == AST_ADD || n->op == AST_SUB)
            return wide_add(a, b, out);
        if (n->op == AST_LSHIFT)
            return !b.is_negative && wide_power((wide){.magnitude = 2}, b, &b) && wide_multiply(a, b, out);
        return n->op == AST_MUL ? wide_multiply(a, b, out) : n->op == AST_POW && wide_power(a, b, out);
    default: return false;
    }
}

static ast_node *narrowed(fe_parser *p, ast_node *node) {
    wide w;
    if (!wide_of(node, &w) || !w.exceeds || w.magnitude > (uint64_t)INT64_MAX + (w.is_negative ? 1u : 0u))
        return node;
    ast_node *made = fe_node_make(p, AST_INT, node_span(node));
    made->integer = w.is_negative ? -1 - (int64_t)(w.magnitude - 1) : (int64_t)w.magnitude;
    made->text = ts_arena_format(p->arena, "%lld", (long long)made->integer);
    return fe_node_seal(p, made);
}

ast_node *fe_build_binary(fe_parser *p, ast_operator op, ast_node *left, ast_node *right,
                          fe_span span) {
    if (left->kind == AST_BINARY && left->depth > AST_CHAIN_TERMS) {
        size_t spine = 0;
        for (const ast_node *n = left; n->kind == AST_BINARY; n = n->left)
            spine++;
        if (spine >= AST_CHAIN_TERMS)
            left = flatten(p, left);
    }
    if (left->kind == AST_CHAIN) {
        extend(p, left, op, right);
        left->offset = span.begin;
        left->length = span.end - span.begin;
        return left;
    }
    ast_node *node = fe_node_make(p, AST_BINARY, span);
    node->op = op;
    node->left = left;
    node->right = right;
    return narrowed(p, fe_node_seal(p, node));
}

ast_node *fe_build_unary(fe_parser *p, ast_operator op, ast_node *operand, fe_span span) {
    /* -2**63 fits 64 bits though 2**63 does not. */
    if (op == AST_NEG && operand->kind == AST_INT && operand->is_big &&
        ts_str_is(operand->text, "9223372036854775808")) {
        ast_node *node = fe_node_make(p, AST_INT, span);
        node->text = TS_STR("-9223372036854775808");
        node->integer = INT64_MIN;
        return fe_node_seal(p, node);
    }
    ast_node *node = fe_node_make(p, AST_UNARY, span);
    node->op = op;
    node->left = operand;
    return narrowed(p, fe_node_seal(p, node));
}

ast_node *fe_build_boolop(fe_parser *p, ast_operator op, ast_node *left, ast_node *right,
                          fe_span span) {
    ast_node *node = left;
    if (left->kind != AST_BOOLOP || left->op != op) {
        node = fe_node_make(p, AST_BOOLOP, span);
        node->op = op;
        fe_list_add(p, &node->list, left);
        node->depth = left->depth + 1;
    }
    fe_list_add(p, &node->list, right);
    node->offset = span.begin;
    node->length = span.end - span.begin;
    if (node->depth <= right->depth || node->list.count == 2)
        fe_node_seal(p, node);
    return node;
}

ast_node *fe_build_compare(fe_parser *p, ast_operator op, ast_node *left, ast_node *right,
                           bool extends, fe_span span) {
    if (extends) {
        extend(p, left, op, right);
        return left;
    }
    ast_node *node = fe_node_make(p, AST_COMPARE, span);
    fe_list_add(p, &node->list, left);
    fe_list_add(p, &node->list, right);
    set_op(p, node, op);
    return fe_node_seal(p, node);
}

ast_node *fe_build_sequence(fe_parser *p, ast_kind kind, ast_list items, fe_span span) {
    ast_node *node = fe_node_make(p, kind, span);
    node->list = items;
    return fe_node_seal(p, node);
}

ast_node *fe_build_group(fe_parser *p, ast_list items, bool has_comma, fe_span span) {
    if (items.count != 1 || has_comma)
        return fe_build_sequence(p, AST_TUPLE, items, span);
    if (items.items[0]->kind == AST_STARRED)
        fe_parse_error(p, node_span(items.items[0]), "a starred expression needs a tuple or list");
    return items.items[0];
}

ast_node *fe_build_call(fe_parser *p, ast_node *callee, ast_list arguments, fe_span span) {
    bool has_keyword = false;
    for (size_t i = 0; i < arguments.count; i++) {
        ast_node *a = arguments.items[i];
        if (a->kind == AST_GENERATOR && arguments.count > 1 && a->other.length)
            fe_parse_error(p, node_span(a), "a generator beside other arguments needs parentheses");
        if (a->kind == AST_KEYWORD)
            has_keyword = true;
        else if (has_keyword && a->kind != AST_STARRED)
            fe_parse_error(p, node_span(a), "a positional argument follows a keyword argument");
    }
    ast_node *node = fe_node_make(p, AST_CALL, span);
    node->left = callee;
    node->list = arguments;
    return fe_node_seal(p, node);
}

static const char *target_problem(const ast_node *node) {
    switch (node->kind) {
    case AST_CALL: return "a call";
    case AST_TRUE: case AST_FALSE: case AST_NONE: case AST_ELLIPSIS: return "a constant";
    case AST_INT: case AST_FLOAT: case AST_IMAGINARY: case AST_STRING: case AST_FSTRING:
        return "a literal";
    case AST_COMPARE: return "a comparison";
    case AST_LAMBDA: return "a lambda";
    case AST_CONDITIONAL: return "a conditional expression";
    case AST_LIST_COMP: case AST_SET_COMP: case AST_DICT_COMP: case AST_GENERATOR:
        return "a comprehension";
    default: return "an expression";
    }
}

/* Depth is bounded by the tree's. */
void fe_check_target(fe_parser *p, const ast_node *node, const char *what, bool is_inner) {
    switch (node->kind) {
    case AST_NAME:
    case AST_ATTRIBUTE:
    case AST_SUBSCRIPT:
        return;
    case AST_STARRED:
        if (!is_inner || !strcmp(what, "delete"))
            break;
        fe_check_target(p, node->left, what, false);
        return;
    case AST_TUPLE:
    case AST_LIST: {
        size_t stars = 0;
        for (size_t i = 0; i < node->list.count; i++) {
            stars += node->list.items[i]->kind == AST_STARRED;
            fe_check_target(p, node->list.items[i], what, true);
        }
        if (stars > 1)
            fe_parse_error(p, node_span(node), "expected one starred target at most, found %zu",
                           stars);
        return;
    }
    default:
        break;
    }
    if (node->kind == AST_STARRED)
        fe_parse_error(p, node_span(node), "a starred target needs a tuple or list");
    else
        fe_parse_error(p, node_span(node), "cannot %s %s", what, target_problem(node));
}

ast_node *fe_build_assign(fe_parser *p, ast_node *first, ast_list rest, fe_span span) {
    ast_node *node = fe_node_make(p, AST_ASSIGN, span);
    fe_list_add(p, &node->list, first);
    for (size_t i = 0; i + 1 < rest.count; i++)
        fe_list_add(p, &node->list, rest.items[i]);
    node->right = rest.items[rest.count - 1];
    for (size_t i = 0; i < node->list.count; i++)
        fe_check_target(p, node->list.items[i], "assign to", false);
    return fe_node_seal(p, node);
}

ast_node *fe_build_ann_assign(fe_parser *p, ast_node *target, ast_node *annotation,
                              ast_node *value, fe_span span) {
    if (target->kind == AST_TUPLE || target->kind == AST_LIST)
        fe_parse_error(p, node_span(target), "only one target can have an annotation");
    else
        fe_check_target(p, target, "annotate", false);
    ast_node *node = fe_node_make(p, AST_ANN_ASSIGN, span);
    node->left = target;
    node->third = annotation;
    node->right = value;
    return fe_node_seal(p, node);
}

ast_node *fe_build_aug_assign(fe_parser *p, ast_operator op, ast_node *target, ast_node *value,
                              fe_span span) {
    if (target->kind == AST_TUPLE || target->kind == AST_LIST)
        fe_parse_error(p, node_span(target), "cannot use '%s=' on several targets",
                       ast_operator_text(op));
    else
        fe_check_target(p, target, "assign to", false);
    ast_node *node = fe_node_make(p, AST_AUG_ASSIGN, span);
    node->op = op;
    node->left = target;
    node->right = value;
    return fe_node_seal(p, node);
}

void fe_parameters_add(fe_parser *p, ast_parameters *list, ast_parameter parameter) {
    const ast_node *place = parameter.place;
    bool after_star = false, has_default = false;
    for (size_t i = 0; i < list->count; i++) {
        const ast_parameter *q = &list->items[i];
        after_star |= q->is_star || q->is_keyword_only;
        has_default |= q->default_value != NULL;
        if (q->is_double_star)
            fe_parse_error(p, node_span(place), "no parameter may follow **%.*s",
                           TS_STR_ARG(q->name));
        if (parameter.name.length && ts_str_equal(q->name, parameter.name))
            fe_parse_error(p, node_span(place), "parameter %.*s is given twice",
                           TS_STR_ARG(parameter.name));
    }
    if (place->kind == AST_PASS) { /* "/": those before are positional only */
        if (list->count == 0 || after_star)
            fe_parse_error(p, node_span(place), "'/' must follow a positional parameter");
        for (size_t i = 0; i < list->count; i++)
            list->items[i].is_positional_only = true;
        return;
    }
    if (parameter.is_star && after_star)
        fe_parse_error(p, node_span(place), "expected one '*' among the parameters, found two");
    parameter.is_keyword_only = after_star && !parameter.is_star && !parameter.is_double_star;
    if (!parameter.default_value && has_default && !after_star && !parameter.is_star &&
        !parameter.is_double_star)
        fe_parse_error(p, node_span(place), "parameter %.*s without a default follows one with",
                       TS_STR_ARG(parameter.name));
    TS_APPEND(p->arena, list->items, list->count, list->capacity, parameter);
}

/* A bare '*' only makes what follows keyword-only. */
static void drop_bare_star(fe_parser *p, ast_parameters *list) {
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].is_star && !list->items[i].name.length) {
            if (i + 1 == list->count)
                fe_parse_error(p, node_span(list->items[i].place),
                               "expected a parameter after '*'");
            continue;
        }
        list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

/* An expression held in a comment: one that does not parse is left as text, as Python does. */
static ast_node *comment_expression(fe_parser *p, uint32_t begin, uint32_t end) {
    fe_diagnostics *outer = p->diagnostics;
    fe_diagnostics quiet = {.arena = p->arena};
    size_t errors = p->error_count;
    bool must_stop = p->must_stop;
    p->diagnostics = &quiet;
    ast_node *node = fe_parse_range(p, begin, end);
    p->diagnostics = outer;
    p->error_count = errors;
    p->must_stop = must_stop;
    return node;
}

static uint32_t comment_end(const fe_comment *c) { return c->offset + (uint32_t)c->text.length; }

/* "# type: (A, B) -> R" of a function becomes annotations where none were written. */
static void apply_signature(fe_parser *p, ast_node *function, fe_comment comment) {
    const char *t = comment.text.data;
    size_t arrow = 0;
    for (size_t i = 0; i + 1 < comment.text.length; i++)
        if (t[i] == '-' && t[i + 1] == '>')
            arrow = i;
    if (!arrow || t[0] != '(')
        return;
    if (!function->third)
        function->third =
            comment_expression(p, comment.offset + (uint32_t)arrow + 2, comment_end(&comment));
    ast_node *types = comment_expression(p, comment.offset, comment.offset + (uint32_t)arrow);
    if (!types || types->kind == AST_ELLIPSIS)
        return;
    ast_list one = {&types, 1, 1};
    ast_list list = types->kind == AST_TUPLE ? types->list : one;
    size_t count = function->parameters.count;
    size_t skipped = count == list.count + 1 ? 1 : 0; /* self */
    if (count != list.count + skipped)
        return;
    for (size_t i = skipped; i < count; i++)
        if (!function->parameters.items[i].annotation)
            function->parameters.items[i].annotation = list.items[i - skipped];
}

/* "x,  # type: int" after a parameter. */
static void apply_inner_comments(fe_parser *p, ast_node *function) {
    ast_parameters *parameters = &function->parameters;
    while (p->inner_count) {
        fe_comment comment = p->inner_comments[p->inner_count - 1];
        if (comment.offset < function->offset)
            break;
        p->inner_count--;
        ast_parameter *last = NULL;
        for (size_t i = 0; i < parameters->count; i++)
            if (parameters->items[i].place->offset < comment.offset)
                last = &parameters->items[i];
        if (last && !last->annotation)
            last->annotation = comment_expression(p, comment.offset, comment_end(&comment));
    }
}

ast_node *fe_build_function(fe_parser *p, ts_str name, ast_parameters parameters,
                            ast_node *returns, fe_block block, fe_span span) {
    ast_node *node = fe_node_make(p, AST_FUNCTION, span);
    node->text = name;
    drop_bare_star(p, &parameters);
    node->parameters = parameters;
    node->third = returns;
    node->body = block.body;
    node->type_comment = block.comment.text;
    apply_inner_comments(p, node);
    if (block.comment.text.length)
        apply_signature(p, node, block.comment);
    return fe_node_seal(p, node);
}

ast_node *fe_build_if(fe_parser *p, ast_list arms, ast_list orelse) {
    for (size_t i = arms.count; i-- > 0;) {
        arms.items[i]->orelse = orelse;
        fe_node_seal(p, arms.items[i]);
        orelse = (ast_list){0};
        fe_list_add(p, &orelse, arms.items[i]);
    }
    return arms.items[0];
}

/* Adjacent literals are one. */
ast_node *fe_build_strings(fe_parser *p, ast_list parts, fe_span span) {
    if (parts.count == 1)
        return parts.items[0];
    ast_list flat = {0};
    bool is_format = false;
    for (size_t i = 0; i < parts.count; i++) {
        if (parts.items[i]->kind == AST_STRING) {
            fe_list_add(p, &flat, parts.items[i]);
            continue;
        }
        is_format = true;
        for (size_t k = 0; k < parts.items[i]->list.count; k++)
            fe_list_add(p, &flat, parts.items[i]->list.items[k]);
    }
    ast_list joined = {0};
    for (size_t i = 0; i < flat.count;) {
        size_t end = i, length = 0;
        while (end < flat.count && flat.items[end]->kind == AST_STRING)
            length += flat.items[end++]->text.length;
        if (end == i) {
            fe_list_add(p, &joined, flat.items[i++]);
            continue;
        }
        ast_node *node = fe_node_make(p, AST_STRING, span);
        char *text = ts_arena_array(p->arena, length + 1, 1);
        node->text = (ts_str){text, length};
        for (; i < end; i++) {
            memcpy(text, flat.items[i]->text.data, flat.items[i]->text.length);
            text += flat.items[i]->text.length;
        }
        if (length || !is_format)
            fe_list_add(p, &joined, node);
    }
    if (!is_format)
        return fe_node_seal(p, joined.items[0]);
    return fe_build_sequence(p, AST_FSTRING, joined, span);
}

void fe_attach_comment(fe_parser *p, ast_node **statement, fe_comment comment) {
    if (!comment.text.length || !*statement)
        return;
    ast_node *node = *statement;
    node->type_comment = comment.text;
    /* "x = []  # type: List[int]" declares as "x: List[int] = []" does. */
    if (node->kind == AST_ASSIGN && node->list.count == 1 &&
        (node->list.items[0]->kind == AST_NAME || node->list.items[0]->kind == AST_ATTRIBUTE)) {
        ast_node *annotation = comment_expression(p, comment.offset, comment_end(&comment));
        if (!annotation)
            return;
        node->kind = AST_ANN_ASSIGN;
        node->left = node->list.items[0];
        node->third = annotation;
        node->list = (ast_list){0};
        fe_node_seal(p, node);
    }
}

void fe_check_statement(fe_parser *p) {
    if (p->with_targets > 0)
        fe_parse_error(p, node_span(p->with_target), "'as' is allowed in a with statement only");
    p->with_targets = 0;
}
