/* frontend/rewrite_generator.c - a generator function as a class of states.
 *
 *   def g(n):               class g:
 *       for i in f(n):          def __init__(self, n): self.n = n; self.$state = 0
 *           yield i             def advance(self) -> bool:
 *                                   while True:
 *                                       if self.$state == 0: self.$it = $iter(f(self.n)); self.$state = 1
 *                                       elif self.$state == 1:
 *                                           if self.$it.advance(): self.i = self.$it.value; self.$state = 3
 *                                           else: self.$state = 2
 *                                       elif self.$state == 3: self.value = self.i; self.$state = 1; return True
 *                                       else: return False
 *
 * All names of the function are attributes, so they live from one item to the next. Statements without a
 * yield stay as they are; those with one are cut into blocks. */
#include "frontend/rewrite.h"

typedef struct block_list {
    ast_list *items;
    size_t count, capacity;
} block_list;

typedef struct machine {
    ts_arena *arena;
    rewriter names;
    block_list blocks;
    size_t now; /* the block that statements go to */
    int64_t break_to, continue_to; /* -1: no loop around that was cut */
    size_t iterators;
    const ast_node *where;
    const char *why;
} machine;

static const ts_str self = {"$g", 2};

static ast_node *integer(machine *m, int64_t v, const ast_node *place) {
    ast_node *n = rw_node(m->arena, AST_INT, place);
    n->integer = v;
    return n;
}

static ast_node *go_to(machine *m, int64_t state, const ast_node *place) {
    return rw_assign(m->arena, rw_attribute(m->arena, self, TS_STR("$state"), place), integer(m, state, place), place);
}

static ast_node *give(machine *m, bool v, const ast_node *place) {
    ast_node *n = rw_node(m->arena, AST_RETURN, place);
    n->left = rw_node(m->arena, v ? AST_TRUE : AST_FALSE, place);
    return n;
}

static void add(machine *m, ast_node *n) { rw_append(m->arena, &m->blocks.items[m->now], n); }

static size_t new_block(machine *m) {
    ast_list empty = {0};
    TS_APPEND(m->arena, m->blocks.items, m->blocks.count, m->blocks.capacity, empty);
    return m->blocks.count - 1;
}

static void refuse(machine *m, const ast_node *where, const char *why) {
    if (!m->why) {
        m->why = why;
        m->where = where;
    }
}

/* return, break and continue in statements that stay whole. */
static void leave_within(machine *m, ast_list *list, bool in_loop) {
    for (size_t i = 0; i < list->count; i++) {
        ast_node *s = list->items[i];
        if (s->kind == AST_FUNCTION || s->kind == AST_CLASS)
            continue;
        if (s->kind == AST_RETURN || (!in_loop && (s->kind == AST_BREAK || s->kind == AST_CONTINUE))) {
            int64_t to = s->kind == AST_RETURN ? -1 : s->kind == AST_BREAK ? m->break_to : m->continue_to;
            ast_node *always = rw_node(m->arena, AST_IF, s); /* two statements in the place of one */
            always->test = rw_node(m->arena, AST_TRUE, s);
            rw_append(m->arena, &always->body, go_to(m, to, s));
            rw_append(m->arena, &always->body,
                      s->kind == AST_RETURN ? give(m, false, s) : rw_node(m->arena, AST_CONTINUE, s));
            list->items[i] = always;
            continue;
        }
        bool is_loop = s->kind == AST_FOR || s->kind == AST_WHILE;
        leave_within(m, &s->body, in_loop || is_loop);
        leave_within(m, &s->orelse, in_loop);
        leave_within(m, &s->finally_body, in_loop);
        if (s->kind == AST_TRY)
            for (size_t k = 0; k < s->list.count; k++)
                leave_within(m, &s->list.items[k]->body, in_loop);
    }
}

static void statements(machine *m, const ast_list *list);

static void yield_value(machine *m, ast_node *value, const ast_node *place) {
    add(m, rw_assign(m->arena, rw_attribute(m->arena, self, TS_STR("value"), place), value, place));
    size_t next = new_block(m);
    add(m, go_to(m, (int64_t)next, place));
    add(m, give(m, true, place));
    m->now = next;
}

/* for TARGET in SOURCE, cut: enters the body's block; gives the head's and the end's. */
static void begin_for(machine *m, ast_node *source, const ast_node *place, size_t *out_head, size_t *out_end,
                      ast_node **out_value) {
    ts_str it = ts_arena_format(m->arena, "$it%zu", m->iterators++);
    ast_node *holder = rw_attribute(m->arena, self, it, place);
    add(m, rw_assign(m->arena, holder, rw_call(m->arena, rw_name(m->arena, TS_STR("$iter"), place), source, place), place));
    *out_head = new_block(m);
    size_t body = new_block(m);
    *out_end = new_block(m);
    add(m, go_to(m, (int64_t)*out_head, place));
    m->now = *out_head;
    ast_node *advance = rw_node(m->arena, AST_ATTRIBUTE, place);
    advance->left = rw_attribute(m->arena, self, it, place);
    advance->text = TS_STR("advance");
    ast_node *value = rw_node(m->arena, AST_ATTRIBUTE, place);
    value->left = rw_attribute(m->arena, self, it, place);
    value->text = TS_STR("value");
    ast_node *test = rw_node(m->arena, AST_IF, place);
    test->test = rw_call(m->arena, advance, NULL, place);
    rw_append(m->arena, &test->body, go_to(m, (int64_t)body, place));
    rw_append(m->arena, &test->orelse, go_to(m, (int64_t)*out_end, place));
    add(m, test);
    m->now = body;
    *out_value = value;
}

static void loop_body(machine *m, const ast_list *body, size_t head, size_t end, size_t after, const ast_node *place) {
    int64_t saved_break = m->break_to, saved_continue = m->continue_to;
    (void)end;
    m->break_to = (int64_t)after;
    m->continue_to = (int64_t)head;
    statements(m, body);
    add(m, go_to(m, (int64_t)head, place));
    m->break_to = saved_break;
    m->continue_to = saved_continue;
}

/* What a loop that came to its end does; break goes to the block after it. */
static void loop_else(machine *m, const ast_list *body, size_t end, size_t after, const ast_node *place) {
    m->now = end;
    if (end == after)
        return;
    statements(m, body);
    add(m, go_to(m, (int64_t)after, place));
    m->now = after;
}

static void cut_for(machine *m, const ast_node *s) {
    size_t head, end;
    ast_node *value;
    begin_for(m, rw_copy(&m->names, s->right), s, &head, &end, &value);
    size_t after = s->orelse.count ? new_block(m) : end;
    add(m, rw_assign(m->arena, rw_copy(&m->names, s->left), value, s));
    loop_body(m, &s->body, head, end, after, s);
    loop_else(m, &s->orelse, end, after, s);
}

static void cut_while(machine *m, const ast_node *s) {
    size_t head = new_block(m), body = new_block(m), end = new_block(m);
    size_t after = s->orelse.count ? new_block(m) : end;
    add(m, go_to(m, (int64_t)head, s));
    m->now = head;
    ast_node *test = rw_node(m->arena, AST_IF, s);
    test->test = rw_copy(&m->names, s->test);
    rw_append(m->arena, &test->body, go_to(m, (int64_t)body, s));
    rw_append(m->arena, &test->orelse, go_to(m, (int64_t)end, s));
    add(m, test);
    m->now = body;
    loop_body(m, &s->body, head, end, after, s);
    loop_else(m, &s->orelse, end, after, s);
}

static void cut_if(machine *m, const ast_node *s) {
    size_t yes = new_block(m), no = new_block(m), end = new_block(m);
    ast_node *test = rw_node(m->arena, AST_IF, s);
    test->test = rw_copy(&m->names, s->test);
    rw_append(m->arena, &test->body, go_to(m, (int64_t)yes, s));
    rw_append(m->arena, &test->orelse, go_to(m, (int64_t)no, s));
    add(m, test);
    m->now = yes;
    statements(m, &s->body);
    add(m, go_to(m, (int64_t)end, s));
    m->now = no;
    statements(m, &s->orelse);
    add(m, go_to(m, (int64_t)end, s));
    m->now = end;
}

static void statement(machine *m, const ast_node *s) {
    const ast_node *yielded = s->kind == AST_EXPR_STMT && s->left->kind == AST_YIELD_EXPR ? s->left : NULL;
    if (!rw_has_yield(s)) {
        ast_list one = {0};
        rw_append(m->arena, &one, rw_copy(&m->names, s));
        leave_within(m, &one, false);
        add(m, one.items[0]);
    } else if (yielded && rw_has_yield(yielded->left)) {
        refuse(m, s, "a yield in an expression is not supported yet");
    } else if (yielded && ts_str_is(yielded->text, "from")) {
        size_t head, end;
        ast_node *value;
        begin_for(m, rw_copy(&m->names, yielded->left), s, &head, &end, &value);
        yield_value(m, value, s);
        add(m, go_to(m, (int64_t)head, s));
        m->now = end;
    } else if (yielded) {
        yield_value(m, yielded->left ? rw_copy(&m->names, yielded->left) : rw_node(m->arena, AST_NONE, s), s);
    } else if (s->kind == AST_FOR && !rw_has_yield(s->right)) {
        cut_for(m, s);
    } else if (s->kind == AST_WHILE && !rw_has_yield(s->test)) {
        cut_while(m, s);
    } else if (s->kind == AST_IF && !rw_has_yield(s->test)) {
        cut_if(m, s);
    } else if (s->kind == AST_TRY && !s->list.count) {
        /* try: ... finally: the end of it runs where the body is left in order. */
        statements(m, &s->body);
        statements(m, &s->finally_body);
    } else {
        refuse(m, s, s->kind == AST_TRY || s->kind == AST_WITH
                         ? "a yield inside try or with is not supported yet"
                         : "a yield in an expression is not supported yet");
    }
}

static void statements(machine *m, const ast_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        const ast_node *s = list->items[i];
        statement(m, s);
        if (s->kind == AST_RETURN || s->kind == AST_BREAK || s->kind == AST_CONTINUE || s->kind == AST_RAISE) {
            m->now = new_block(m); /* what follows is never reached */
            break;
        }
    }
}

/* if state == 0: ... elif state == 1: ... as halves, so that the tree is not deep. */
static ast_list dispatch(machine *m, size_t from, size_t count, const ast_node *place) {
    if (count == 1)
        return m->blocks.items[from].count ? m->blocks.items[from] : (ast_list){0};
    size_t half = count / 2;
    ast_node *choice = rw_node(m->arena, AST_IF, place);
    ast_node *test = rw_node(m->arena, AST_COMPARE, place);
    test->ops = TS_NEW_ARRAY(m->arena, ast_operator, 1);
    test->ops[0] = AST_LT;
    rw_append(m->arena, &test->list, rw_attribute(m->arena, self, TS_STR("$state"), place));
    rw_append(m->arena, &test->list, integer(m, (int64_t)(from + half), place));
    choice->test = test;
    choice->body = dispatch(m, from, half, place);
    choice->orelse = dispatch(m, from + half, count - half, place);
    ast_list out = {0};
    rw_append(m->arena, &out, choice);
    return out;
}

ast_node *rw_generator(ts_arena *arena, const ast_node *function, const fe_map *captured,
                       const ast_node **out_where, const char **out_why) {
    fe_map *names = TS_NEW(arena, fe_map);
    rw_bound_names(arena, function, names);
    for (size_t i = 0; captured && i < captured->count; i++)
        fe_map_set(arena, names, captured->keys[i], names);
    machine m = {.arena = arena, .names = {.arena = arena, .names = names, .object = self},
                 .break_to = -1, .continue_to = -1};
    m.now = new_block(&m);
    statements(&m, &function->body);
    add(&m, go_to(&m, -1, function));
    add(&m, give(&m, false, function));
    for (size_t i = 0; i < m.blocks.count; i++) /* what a return leaves unreached */
        if (!m.blocks.items[i].count) {
            m.now = i;
            add(&m, go_to(&m, -1, function));
            add(&m, give(&m, false, function));
        }
    *out_where = m.where;
    *out_why = m.why;
    if (m.why)
        return NULL;
    ast_node *init = rw_init(arena, self, &function->parameters, captured, function);
    rw_append(arena, &init->body, go_to(&m, 0, function));
    ast_node *advance = rw_node(arena, AST_FUNCTION, function);
    advance->text = TS_STR("advance");
    advance->third = rw_name(arena, TS_STR("bool"), function);
    ast_parameter p = {.name = self, .place = rw_name(arena, self, function)};
    TS_APPEND(arena, advance->parameters.items, advance->parameters.count, advance->parameters.capacity, p);
    ast_node *ended = rw_node(arena, AST_IF, function);
    ended->test = rw_node(arena, AST_COMPARE, function);
    ended->test->ops = TS_NEW_ARRAY(arena, ast_operator, 1);
    ended->test->ops[0] = AST_LT;
    rw_append(arena, &ended->test->list, rw_attribute(arena, self, TS_STR("$state"), function));
    rw_append(arena, &ended->test->list, integer(&m, 0, function));
    rw_append(arena, &ended->body, give(&m, false, function));
    ast_node *loop = rw_node(arena, AST_WHILE, function);
    loop->test = rw_node(arena, AST_TRUE, function);
    rw_append(arena, &loop->body, ended);
    ast_list choices = dispatch(&m, 0, m.blocks.count, function);
    for (size_t i = 0; i < choices.count; i++)
        rw_append(arena, &loop->body, choices.items[i]);
    rw_append(arena, &advance->body, loop);
    ast_node *c = rw_class(arena, function->text, function);
    rw_append(arena, &c->body, init);
    rw_append(arena, &c->body, advance);
    return c;
}
