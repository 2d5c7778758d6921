/* frontend/emit_getattr.c - getattr and hasattr: a name that is known is an attribute; one that is known
 * only at run time is one of those that the class has, told by a chain of ifs.
 *
 *   getattr(self, f"layer{i}")(x)   =>   if name == "layer0" { layer0(x) } else if name == "layer1" ... */
#include "frontend/emit_builtin.h"

enum { MOST_CANDIDATES = 64 };

typedef struct candidates {
    ts_str names[MOST_CANDIDATES];
    size_t count;
    bool has_overflown;
} candidates;

/* What the text of a name begins with: "layer" of f"layer{i}" and "layer" + str(i). */
static ts_str prefix_of(const ast_node *name) {
    while (name->kind == AST_BINARY && name->op == AST_ADD)
        name = name->left;
    if (name->kind == AST_FSTRING && name->list.count)
        name = name->list.items[0];
    return name->kind == AST_STRING ? name->text : (ts_str){0};
}

static void add(candidates *c, ts_str name, ts_str prefix) {
    if (name.length < prefix.length || (prefix.length && memcmp(name.data, prefix.data, prefix.length) != 0))
        return;
    for (size_t i = 0; i < c->count; i++)
        if (ts_str_equal(c->names[i], name))
            return;
    c->has_overflown = c->has_overflown || c->count == MOST_CANDIDATES;
    if (!c->has_overflown)
        c->names[c->count++] = name;
}

static bool is_module(const ir_type *t) { return t->kind == IR_CLASS && t->class_->base.kind == RT_CLASS_MODULE; }

static bool is_hidden(ts_str name) { return ts_str_starts_with(name, "__") || ts_str_is(name, "training"); }

static void add_methods(candidates *out, const fe_class *class_, ts_str prefix) {
    for (size_t a = 0; class_ && a <= class_->ancestor_count; a++) {
        const fe_class *owner = a ? class_->ancestors[a - 1] : class_;
        for (size_t i = 0; owner->node && !owner->is_library && i < owner->methods.count; i++)
            if (!is_hidden(owner->methods.keys[i]) && !memchr(owner->methods.keys[i].data, '.', owner->methods.keys[i].length))
                add(out, owner->methods.keys[i], prefix);
    }
}

/* Modules of a module where it has some, else its fields, else its methods; with a prefix all of them. */
static candidates attributes(const ir_class *c, ts_str prefix) {
    candidates out = {0};
    bool has_modules = false, has_fields = false;
    for (size_t i = 0; i < c->field_count; i++) {
        has_modules = has_modules || is_module(c->fields[i].type);
        has_fields = has_fields || !is_hidden(c->fields[i].name);
    }
    for (size_t i = 0; i < c->field_count; i++)
        if (!is_hidden(c->fields[i].name) && (prefix.length || !has_modules || is_module(c->fields[i].type)))
            add(&out, c->fields[i].name, prefix);
    if (prefix.length || !has_fields)
        add_methods(&out, fe_class_of(c), prefix);
    return out;
}

void em_raise_no_attribute(emitter *E, ts_str class_name, ir_value *name, const ast_node *node) {
    ir_value *text = ir_build_str(&E->b, ts_arena_format(E->arena, "'%.*s' object has no attribute ",
                                                         TS_STR_ARG(class_name)));
    text = em_row(E, "add.str", node, 2, text, em_row(E, "prim_repr", node, 1, name));
    em_raise_named(E, TS_STR("AttributeError"), text);
}

/* The values of fields: if name == ... { value } else ... */
static ir_value *value_chain(emitter *E, ir_value *object, const candidates *c, size_t at, ir_value *name,
                             const ast_node *otherwise, const ast_node *node) {
    if (at == c->count) {
        if (otherwise)
            return em_expression_ir(E, otherwise, NULL);
        em_raise_no_attribute(E, object->type->class_->base.bare_name, name, node);
        return NULL;
    }
    em_choice choice;
    em_choose(E, &choice, em_row(E, "eq.str", node, 2, name, ir_build_str(&E->b, c->names[at])));
    em first = em_attribute_of(E, em_value(object), c->names[at], node, false);
    em_choose_other(E, &choice, em_ir(E, first, node, NULL));
    return em_choose_end(E, &choice, value_chain(E, object, c, at + 1, name, otherwise, node), node);
}

static bool is_callable(em v) {
    return v.kind == EM_METHOD || v.kind == EM_CLOSURE || v.kind == EM_BINDING ||
           (v.kind == EM_VALUE && is_module(v.value->type));
}

static em get_by_name(emitter *E, em object, ir_value *name, const ast_list *a, const ast_node *node) {
    if (object.kind != EM_VALUE || object.value->type->kind != IR_CLASS) {
        EM_UNSUPPORTED(E, node, "getattr of this with a name known only at run time is not supported yet");
        return em_error();
    }
    const ir_class *c = object.value->type->class_;
    if (fe_class_of(c) && fe_class_of(c)->kind == RT_CLASS_PLAIN)
        fe_class_ir(E->fe, fe_class_of(c));
    candidates found = attributes(c, prefix_of(a->items[1]));
    if (found.has_overflown) {
        EM_UNSUPPORTED(E, node, "a choice among more than %d attributes is not supported yet", MOST_CANDIDATES);
        return em_error();
    }
    em *items = TS_NEW_ARRAY(E->arena, em, found.count + 1);
    ir_value **keys = TS_NEW_ARRAY(E->arena, ir_value *, found.count + 1);
    size_t callables = 0;
    for (size_t i = 0; i < found.count; i++) {
        const ir_field *f = em_find_field(c, found.names[i]);
        fe_function *m = f ? NULL : fe_class_method(fe_class_of(c), found.names[i]);
        if ((f && !is_module(f->type)) || (m && m->is_property))
            continue;
        items[i] = em_attribute_of(E, object, found.names[i], node, false);
        keys[i] = ir_build_str(&E->b, found.names[i]);
        callables += is_callable(items[i]);
    }
    if (!callables || callables < found.count)
        return em_value(value_chain(E, object.value, &found, 0, name, a->count == 3 ? a->items[2] : NULL, node));
    if (a->count == 3) {
        EM_UNSUPPORTED(E, node, "a default for a function or module whose name is known only at run time is not supported yet");
        return em_error();
    }
    return (em){.kind = EM_CHOICE, .items = items, .keys = keys, .count = found.count, .value = name,
                .name = c->base.bare_name};
}

static ir_value *has_by_name(emitter *E, em object, ir_value *name, const ast_node *node) {
    if (object.kind != EM_VALUE || object.value->type->kind != IR_CLASS) {
        EM_UNSUPPORTED(E, node, "hasattr of this with a name known only at run time is not supported yet");
        return NULL;
    }
    const ir_class *c = object.value->type->class_;
    candidates all = {0};
    for (size_t i = 0; i < c->field_count; i++)
        add(&all, c->fields[i].name, (ts_str){0});
    add_methods(&all, fe_class_of(c), (ts_str){0});
    ir_value *found = ir_build_bool(&E->b, false);
    for (size_t i = 0; i < all.count; i++)
        found = em_row(E, "__or__.bool", node, 2, found,
                       em_row(E, "eq.str", node, 2, name, ir_build_str(&E->b, all.names[i])));
    return found;
}

/* setattr(object, NAME, v): the field of that name whose type takes v. */
static void set_by_name(emitter *E, ir_value *object, ir_value *name, em v, const candidates *c, size_t at,
                        const ast_node *node) {
    if (at == c->count) {
        em_raise_no_attribute(E, object->type->class_->base.bare_name, name, node);
        return;
    }
    em_choice choice;
    em_choose(E, &choice, em_row(E, "eq.str", node, 2, name, ir_build_str(&E->b, c->names[at])));
    em_store_attribute(E, em_value(object), c->names[at], v, NULL, node);
    em_choose_other(E, &choice, ir_build_none(&E->b));
    set_by_name(E, object, name, v, c, at + 1, node);
    em_choose_end(E, &choice, E->env.state == EM_UNREACHABLE ? NULL : ir_build_none(&E->b), node);
}

em em_setattr(emitter *E, em_arguments *args, const ast_node *node) {
    ir_value *text = em_argument_ir(E, args, 1, node);
    em object = args->items[0].v, v = args->items[2].v;
    rt_value c;
    if (!text)
        return em_error();
    if (ir_const_value(text, &c) && c.tag == RT_TAG_STR) {
        em_store_attribute(E, object, ts_arena_str(E->arena, rt_str_text(c.as.str)), v, NULL, node);
        return em_value(ir_build_none(&E->b));
    }
    ir_value *x = em_ir(E, v, node, NULL);
    if (object.kind != EM_VALUE || object.value->type->kind != IR_CLASS || !x) {
        EM_UNSUPPORTED(E, node, "setattr of this with a name known only at run time is not supported yet");
        return em_error();
    }
    ts_str prefix = node->list.count > 1 ? prefix_of(node->list.items[1]) : (ts_str){0};
    const ir_class *class_ = object.value->type->class_;
    candidates fields = {0};
    for (size_t i = 0; i < class_->field_count; i++) {
        const ir_field *f = &class_->fields[i];
        if (!f->is_constant && !is_hidden(f->name) && em_conversion_cost(E, x, f->type, 0) >= 0)
            add(&fields, f->name, prefix);
    }
    if (!fields.count || fields.has_overflown) {
        EM_UNSUPPORTED(E, node, "setattr with a name known only at run time, of an attribute that nothing else sets, is "
                                "not supported yet");
        return em_error();
    }
    set_by_name(E, object.value, text, em_value(x), &fields, 0, node);
    return em_value(ir_build_none(&E->b));
}

em em_getattr(emitter *E, const ast_node *node, bool has, const ir_type *hint) {
    const ast_list *a = &node->list;
    em object = em_expression(E, a->items[0], NULL);
    ir_value *text = em_expression_ir(E, a->items[1], NULL);
    rt_value known;
    if (object.kind == EM_ERROR || !text)
        return em_error();
    if (!ir_const_value(text, &known)) {
        text = em_coerce(E, text, em_simple(E, IR_STR), 0, a->items[1], "the name");
        return !text ? em_error() : has ? em_value(has_by_name(E, object, text, node))
                                        : get_by_name(E, object, text, a, node);
    }
    if (known.tag != RT_TAG_STR) {
        EM_ERR(E, a->items[1], "attribute name must be string, not %s", em_type_text(E, text->type));
        return em_error();
    }
    ts_str name = ts_arena_str(E->arena, rt_str_text(known.as.str));
    if (has)
        return em_value(ir_build_bool(&E->b, em_has_attribute(E, object, name)));
    if (a->count == 3 && !em_has_attribute(E, object, name))
        return em_expression(E, a->items[2], hint);
    return em_attribute_of(E, object, name, node, false);
}
