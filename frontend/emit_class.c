/* frontend/emit_class.c - class and function statements as the emitter needs them: methods,
 * variables, ancestors, and the ir_class of a class. */
#include "frontend/emit_internal.h"

/* ---- builtin classes ---- */

static const struct { const char *name, *base; } exception_classes[] = {
    {"BaseException", ""}, {"Exception", "BaseException"}, {"ArithmeticError", "Exception"},
    {"AssertionError", "Exception"}, {"AttributeError", "Exception"}, {"BufferError", "Exception"},
    {"EOFError", "Exception"}, {"ImportError", "Exception"}, {"LookupError", "Exception"},
    {"MemoryError", "Exception"}, {"NameError", "Exception"}, {"OSError", "Exception"},
    {"ReferenceError", "Exception"}, {"RuntimeError", "Exception"}, {"StopIteration", "Exception"},
    {"SyntaxError", "Exception"}, {"SystemError", "Exception"}, {"TypeError", "Exception"},
    {"ValueError", "Exception"}, {"Warning", "Exception"}, {"FloatingPointError", "ArithmeticError"},
    {"OverflowError", "ArithmeticError"}, {"ZeroDivisionError", "ArithmeticError"},
    {"ModuleNotFoundError", "ImportError"}, {"IndexError", "LookupError"},
    {"KeyError", "LookupError"}, {"UnboundLocalError", "NameError"},
    {"FileNotFoundError", "OSError"}, {"IOError", "OSError"}, {"TimeoutError", "OSError"}, {"PermissionError", "OSError"},
    {"NotImplementedError", "RuntimeError"}, {"RecursionError", "RuntimeError"},
    {"UnicodeError", "ValueError"}, {"UserWarning", "Warning"}, {"DeprecationWarning", "Warning"},
    {"RuntimeWarning", "Warning"}, {"FutureWarning", "Warning"},
    {"FrozenInstanceError", "AttributeError"}, {"_LinAlgError", "RuntimeError"}};

size_t em_exception_names(fe_context *fe, fe_class *wanted, ts_str **out) {
    const fe_map *names = &fe->scope->names;
    size_t builtin_count = sizeof exception_classes / sizeof *exception_classes, count = 0;
    *out = TS_NEW_ARRAY(fe->arena, ts_str, builtin_count + names->count + 1);
    (*out)[count++] = wanted->bare_name;
    for (size_t i = 0; i < builtin_count; i++) {
        fe_class *c = fe_builtin_class(
            fe, ts_arena_format(fe->arena, "builtins.%s", exception_classes[i].name));
        if (c && c != wanted && fe_class_is_a(c, wanted))
            (*out)[count++] = c->bare_name;
    }
    for (size_t i = 0; i < names->count; i++) {
        const fe_binding *b = names->values[i];
        if (b->kind == FE_CLASS && b->class_ != wanted && b->class_->kind == RT_CLASS_EXCEPTION &&
            fe_class_is_a(b->class_, wanted))
            (*out)[count++] = b->class_->bare_name;
    }
    return count;
}

static void add_ancestor(fe_context *fe, fe_class *c, fe_class *ancestor) {
    fe_class **list = TS_NEW_ARRAY(fe->arena, fe_class *, c->ancestor_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < c->ancestor_count; i++)
        if (c->ancestors[i] != ancestor) /* the last mention counts: a shared base comes last */
            list[count++] = c->ancestors[i];
    list[count++] = ancestor;
    c->ancestors = list;
    c->ancestor_count = count;
    ancestor->has_subclasses = true;
}

fe_class *fe_builtin_class(fe_context *fe, ts_str path) {
    fe_class *known = fe_map_get(&fe->builtin_classes, path);
    if (known)
        return known;
    ts_str base = {0}, bare = {0};
    rt_class_kind kind = RT_CLASS_MODULE;
    if (ts_str_is(path, "torch.nn.Module")) {
        bare = TS_STR("Module");
    } else if (ts_str_starts_with(path, "builtins.")) {
        ts_str name = {path.data + 9, path.length - 9};
        kind = RT_CLASS_EXCEPTION;
        for (size_t i = 0; i < sizeof exception_classes / sizeof *exception_classes; i++)
            if (ts_str_is(name, exception_classes[i].name)) {
                bare = name;
                base = ts_str_of(exception_classes[i].base);
            }
    }
    if (!bare.length)
        return NULL;
    fe_class *c = TS_NEW(fe->arena, fe_class);
    c->name = ts_arena_str(fe->arena, path);
    c->bare_name = ts_arena_str(fe->arena, bare);
    c->kind = kind;
    if (base.length) {
        fe_class *parent = fe_builtin_class(
            fe, ts_arena_format(fe->arena, "builtins.%.*s", (int)base.length, base.data));
        add_ancestor(fe, c, parent);
        for (size_t i = 0; i < parent->ancestor_count; i++)
            add_ancestor(fe, c, parent->ancestors[i]);
    }
    fe_map_set(fe->arena, &fe->builtin_classes, c->name, c);
    return c;
}

/* ---- declaring ---- */

static fe_binding decorator_binding(fe_context *fe, fe_scope *scope, const ast_node *decorator) {
    return fe_resolve_dotted(fe, scope, decorator->kind == AST_CALL ? decorator->left : decorator);
}

static bool path_is(fe_binding b, const char *path) {
    return b.kind == FE_NAME && ts_str_is(b.path, path);
}

/* What says no type of ours (Callable, Iterator[int]) is as if it was not there: calls say which. */
static bool is_open(fe_context *fe, fe_scope *scope, const ast_node *annotation) {
    static const char *const names[] = {"Callable", "Iterator", "Iterable", "Generator", "Deque", "Counter", "DefaultDict",
                                        "Hashable", "Collection", "Reversible", "deque", "defaultdict"};
    if (!annotation)
        return false;
    fe_binding b = fe_resolve_dotted(fe, scope, annotation->kind == AST_SUBSCRIPT ? annotation->left : annotation);
    if (b.kind == FE_CLASS && b.class_->is_open_tuple)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names && b.kind == FE_NAME; i++)
        if (ts_str_ends_with(b.path, names[i]) &&
            (ts_str_starts_with(b.path, "typing.") || ts_str_starts_with(b.path, "collections.")))
            return true;
    return false;
}

static void forget_open_annotations(fe_context *fe, fe_scope *scope, ast_node *node) {
    for (size_t i = 0; i < node->parameters.count; i++)
        if (is_open(fe, scope, node->parameters.items[i].annotation))
            node->parameters.items[i].annotation = NULL;
    if (node->third && node->kind == AST_FUNCTION && is_open(fe, scope, node->third))
        node->third = NULL;
}

fe_function *fe_function_declare(fe_context *fe, fe_scope *scope, const ast_node *node,
                                 ts_str qualified_name, fe_class *owner) {
    fe_function *f = TS_NEW(fe->arena, fe_function);
    f->name = qualified_name;
    f->number = fe->function_count++;
    f->bare_name = node->text;
    f->node = node;
    f->scope = scope;
    f->owner = owner;
    f->is_library = node->source && node->source->is_library;
    if (!(node->source && (node->source->is_archive || node->source->is_library)))
        forget_open_annotations(fe, scope, (ast_node *)(uintptr_t)node);
    for (size_t i = 0; i < node->decorators.count; i++) {
        const ast_node *decorator = node->decorators.items[i];
        if (decorator->kind == AST_ATTRIBUTE && ts_str_is(decorator->text, "setter")) {
            f->is_property = f->is_setter = true;
            continue;
        }
        fe_binding b = decorator_binding(fe, scope, decorator);
        if (path_is(b, "builtins.staticmethod"))
            f->is_static = true;
        else if (path_is(b, "builtins.classmethod"))
            f->is_class_method = true;
        else if (path_is(b, "builtins.property") || path_is(b, "functools.cached_property"))
            f->is_property = true;
        else if (path_is(b, "abc.abstractmethod"))
            f->is_abstract = true;
        else if (path_is(b, "torch.jit.export"))
            f->is_exported = true;
        else if (path_is(b, "torch.jit.ignore") || path_is(b, "torch.jit.unused"))
            f->is_ignored = true;
        else if (path_is(b, "torch.jit._overload") || path_is(b, "torch.jit._overload_method") ||
                 path_is(b, "typing.overload"))
            f->is_overload_stub = true;
    }
    return f;
}

static void add_variable(fe_context *fe, fe_class *c, ts_str name, const ast_node *node,
                         const ast_node *annotation, const ast_node *initial) {
    fe_class_variable variable = {
        .name = name, .node = node, .annotation = annotation, .initial = initial};
    for (size_t i = 0; i < c->variable_count; i++)
        if (ts_str_equal(c->variables[i].name, name)) {
            if (!annotation)
                variable.annotation = c->variables[i].annotation;
            c->variables[i] = variable;
            return;
        }
    TS_APPEND(fe->arena, c->variables, c->variable_count, c->variable_capacity, variable);
}

static void declare_member(fe_context *fe, fe_class *c, fe_scope *scope, const ast_node *node) {
    switch (node->kind) {
    case AST_FUNCTION: {
        ts_str name = ts_arena_format(fe->arena, "%.*s.%.*s", (int)c->name.length, c->name.data,
                                      (int)node->text.length, node->text.data);
        fe_function *f = fe_function_declare(fe, scope, node, name, c);
        if (f->is_overload_stub)
            return;
        ts_str key = node->text;
        if (f->is_setter)
            key = ts_arena_format(fe->arena, "%.*s.setter", (int)key.length, key.data);
        fe_map_set(fe->arena, &c->methods, key, f);
        return;
    }
    case AST_ASSIGN:
        for (size_t i = 0; i < node->list.count; i++) {
            const ast_node *target = node->list.items[i];
            if (target->kind == AST_NAME) {
                fe_function *alias = node->right->kind == AST_NAME
                                         ? fe_map_get(&c->methods, node->right->text) : NULL;
                if (alias)
                    fe_map_set(fe->arena, &c->methods, target->text, alias);
                else
                    add_variable(fe, c, target->text, node, NULL, node->right);
            } else if (target->kind == AST_SUBSCRIPT && target->left->kind == AST_NAME &&
                       ts_str_is(target->left->text, "__annotations__") &&
                       target->right->kind == AST_STRING) {
                /* The archive's way to declare a name that is no identifier. */
                add_variable(fe, c, target->right->text, node, node->right, NULL);
            }
        }
        return;
    case AST_ANN_ASSIGN:
        if (node->left->kind == AST_NAME)
            add_variable(fe, c, node->left->text, node, node->third, node->right);
        return;
    case AST_IF: /* both arms declare; which one ran matters to init_eval alone */
        for (size_t i = 0; i < node->body.count; i++)
            declare_member(fe, c, scope, node->body.items[i]);
        for (size_t i = 0; i < node->orelse.count; i++)
            declare_member(fe, c, scope, node->orelse.items[i]);
        return;
    default:
        return;
    }
}

fe_class *fe_class_declare(fe_context *fe, fe_scope *scope, const ast_node *node,
                           ts_str qualified_name) {
    fe_class *c = TS_NEW(fe->arena, fe_class);
    c->name = qualified_name;
    c->bare_name = node->text;
    c->kind = RT_CLASS_PLAIN;
    c->node = node;
    c->scope = scope;
    c->is_library = node->source && node->source->is_library;
    c->is_archive = node->source && node->source->is_archive;
    for (size_t i = 0; i < node->list.count; i++) {
        const ast_node *base = node->list.items[i];
        if (base->kind == AST_KEYWORD)
            continue; /* metaclass=ABCMeta and the like */
        if (base->kind == AST_SUBSCRIPT)
            base = base->left; /* Generic[T] */
        fe_binding b = fe_resolve_dotted(fe, scope, base);
        if (b.kind == FE_CLASS && b.class_ == c)
            continue;
        if (b.kind == FE_CLASS) {
            add_ancestor(fe, c, b.class_);
            for (size_t k = 0; k < b.class_->ancestor_count; k++)
                add_ancestor(fe, c, b.class_->ancestors[k]);
            if (b.class_->kind != RT_CLASS_PLAIN)
                c->kind = b.class_->kind;
            c->is_dataclass = c->is_dataclass || b.class_->is_dataclass;
            c->is_open_tuple = c->is_open_tuple || b.class_->is_open_tuple;
        } else if (path_is(b, "typing.NamedTuple") || path_is(b, "archive.NamedTuple")) {
            c->kind = RT_CLASS_NAMED_TUPLE;
        } else if (path_is(b, "enum.Enum") || path_is(b, "enum.IntEnum") ||
                   path_is(b, "enum.StrEnum") || path_is(b, "archive.Enum")) {
            c->kind = RT_CLASS_ENUM;
            c->is_number_enum = !path_is(b, "enum.Enum") && !path_is(b, "archive.Enum");
        } else if (path_is(b, "enum.IntFlag")) {
            c->kind = RT_CLASS_ENUM;
            c->is_number_enum = c->is_flag = true;
        } else if (path_is(b, "enum.Flag")) {
            fe_report(fe->diagnostics, FE_ERROR, TS_ERR_UNSUPPORTED, base, "enum.Flag is not supported yet, enum.IntFlag is");
        } else if (path_is(b, "archive.Module")) {
            c->kind = RT_CLASS_MODULE;
            add_ancestor(fe, c, fe_builtin_class(fe, TS_STR("torch.nn.Module")));
        } else if (path_is(b, "archive.Interface") || path_is(b, "archive.ModuleInterface") ||
                   path_is(b, "typing.Protocol")) {
            c->kind = RT_CLASS_INTERFACE;
        } else if (b.kind == FE_UNBOUND || b.kind == FE_VALUE) {
            fe_report(fe->diagnostics, FE_ERROR, TS_ERR_TYPE, base,
                      "the base of class %.*s is not a known class", TS_STR_ARG(c->bare_name));
        }
    }
    for (size_t i = 0; c->kind == RT_CLASS_ENUM && i < node->list.count; i++) {
        fe_binding b = fe_resolve_dotted(fe, scope, node->list.items[i]);
        if (path_is(b, "builtins.str") || path_is(b, "builtins.int") || path_is(b, "builtins.float"))
            c->is_number_enum = c->is_mixed_enum = true;
    }
    for (size_t i = 0; i < node->decorators.count; i++) {
        fe_binding b = decorator_binding(fe, scope, node->decorators.items[i]);
        if (path_is(b, "dataclasses.dataclass"))
            c->is_dataclass = true;
        if (path_is(b, "torch.jit.interface"))
            c->kind = RT_CLASS_INTERFACE;
    }
    for (size_t i = 0; i < node->body.count; i++)
        declare_member(fe, c, scope, node->body.items[i]);
    return c;
}

fe_function *fe_class_method(const fe_class *class_, ts_str name) {
    fe_function *f = fe_map_get(&class_->methods, name);
    for (size_t i = 0; !f && i < class_->ancestor_count; i++)
        f = fe_map_get(&class_->ancestors[i]->methods, name);
    return f;
}

bool fe_class_is_optimizer(const fe_class *class_) {
    for (size_t k = 0; class_ && k <= class_->ancestor_count; k++) {
        const fe_class *c = k ? class_->ancestors[k - 1] : class_;
        if (c->is_library && ts_str_is(c->bare_name, "Optimizer"))
            return true;
    }
    return false;
}

static fe_class_variable *own_variable(const fe_class *c, ts_str name) {
    for (size_t i = 0; i < c->variable_count; i++)
        if (ts_str_equal(c->variables[i].name, name))
            return &c->variables[i];
    return NULL;
}

fe_class_variable *fe_class_find_variable(const fe_class *class_, ts_str name) {
    fe_class_variable *v = own_variable(class_, name);
    for (size_t i = 0; !v && i < class_->ancestor_count; i++)
        v = own_variable(class_->ancestors[i], name);
    return v;
}

bool fe_class_is_a(const fe_class *class_, const fe_class *ancestor) {
    if (class_ == ancestor)
        return true;
    for (size_t i = 0; i < class_->ancestor_count; i++)
        if (class_->ancestors[i] == ancestor)
            return true;
    return false;
}

fe_class *fe_class_of(const ir_class *c) { return c ? c->frontend : NULL; }

/* ---- ir classes ---- */

void fe_ir_class_set_fields(fe_context *fe, ir_class *c, const ir_field *fields, size_t count) {
    ir_field *copy = TS_NEW_ARRAY(fe->arena, ir_field, count ? count : 1);
    ts_str *names = TS_NEW_ARRAY(fe->arena, ts_str, count ? count : 1);
    size_t named = 0;
    /* Constants are no fields of objects: they stand after the others. */
    size_t at = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < count; i++)
            if (fields[i].is_constant == (pass == 1)) {
                copy[at] = fields[i];
                /* Before version 4 packed quantized parameters went as tensors. */
                if (ts_str_is(fields[i].name, "_packed_params") &&
                    fields[i].type->kind == IR_TENSOR)
                    copy[at].type = ir_type_simple(fe->module, IR_CAPSULE);
                at++;
                if (!pass)
                    names[named++] = fields[i].name;
            }
    c->fields = copy;
    c->field_count = count;
    c->base.fields = names;
    c->base.field_count = named;
}

void em_add_field(fe_context *fe, ir_class *c, ts_str name, const ir_type *type) {
    ir_field *fields = TS_NEW_ARRAY(fe->arena, ir_field, c->field_count + 1);
    for (size_t i = 0; i < c->field_count; i++)
        fields[i] = c->fields[i];
    fields[c->field_count] = (ir_field){.name = name, .type = type};
    fe_ir_class_set_fields(fe, c, fields, c->field_count + 1);
}

const ir_field *em_find_field(const ir_class *c, ts_str name) {
    for (size_t i = 0; i < c->field_count; i++)
        if (ts_str_equal(c->fields[i].name, name))
            return &c->fields[i];
    return NULL;
}

static ir_class *make_ir_class(fe_context *fe, fe_class *c) {
    ir_class *ir = ir_class_make(fe->module, ir_class_free_name(fe->module, c->name), c->kind);
    ir->frontend = c;
    ir->base.bare_name = c->bare_name;
    return ir;
}

ir_class *fe_module_ir_class(fe_context *fe, fe_class *class_) {
    return make_ir_class(fe, class_);
}

/* Names in the list of __parameters__, __buffers__. */
static bool listed(const fe_class *c, const char *list_name, ts_str name) {
    fe_class_variable *v = own_variable(c, ts_str_of(list_name));
    if (!v || !v->initial || (v->initial->kind != AST_LIST && v->initial->kind != AST_TUPLE))
        return false;
    for (size_t i = 0; i < v->initial->list.count; i++)
        if (v->initial->list.items[i]->kind == AST_STRING &&
            ts_str_equal(v->initial->list.items[i]->text, name))
            return true;
    return false;
}

static bool is_class_var(fe_context *fe, fe_scope *scope, const ast_node *annotation) {
    return annotation->kind == AST_SUBSCRIPT &&
           path_is(fe_resolve_dotted(fe, scope, annotation->left), "typing.ClassVar");
}

static void annotated_fields(fe_context *fe, ir_class *ir, fe_class *c) {
    for (size_t i = 0; i < c->variable_count; i++) {
        fe_class_variable *v = &c->variables[i];
        if (!v->annotation || is_class_var(fe, c->scope, v->annotation))
            continue;
        const ast_node *inner = v->annotation;
        bool is_final = fe_annotation_is_final(fe, c->scope, v->annotation, &inner);
        const ir_type *type = inner ? fe_annotation_type(fe, c->scope, inner) : NULL;
        ir_field field = {.name = v->name, .type = type};
        if (is_final && v->initial && c->kind == RT_CLASS_MODULE) {
            if (!fe_evaluate_expression(fe, c->scope, v->initial, &field.constant))
                continue;
            ir_module_retain(fe->module, field.constant);
            rt_release(field.constant);
            field.is_constant = true;
            if (!field.type)
                field.type = ir_type_of_value(fe->module, field.constant);
        }
        if (!field.type)
            continue;
        field.is_parameter = listed(c, "__parameters__", v->name);
        field.is_buffer = listed(c, "__buffers__", v->name);
        bool replaced = false;
        ir_field *fields = TS_NEW_ARRAY(fe->arena, ir_field, ir->field_count + 1);
        for (size_t k = 0; k < ir->field_count; k++) {
            fields[k] = ir->fields[k];
            if (ts_str_equal(fields[k].name, field.name)) {
                fields[k] = field;
                replaced = true;
            }
        }
        if (!replaced)
            fields[ir->field_count] = field;
        fe_ir_class_set_fields(fe, ir, fields, ir->field_count + !replaced);
    }
}

static size_t member_with(const rt_value *members, size_t count, rt_value value) {
    size_t i = 0;
    for (bool same = false; i < count; i++) {
        ts_status status = rt_equal(members[i].as.enumeration->value, value, &same);
        ts_status_release(status);
        if (same)
            break;
    }
    return i;
}

static void enum_members(fe_context *fe, ir_class *ir, fe_class *c) {
    size_t count = 0;
    int64_t next_auto = 1; /* one more than the greatest before */
    rt_value *members = TS_NEW_ARRAY(fe->arena, rt_value, c->variable_count + 1);
    for (size_t i = 0; i < c->variable_count; i++) {
        fe_class_variable *v = &c->variables[i];
        if (!v->initial || ts_str_starts_with(v->name, "__"))
            continue;
        rt_value value;
        if (v->initial->kind == AST_CALL &&
            path_is(fe_resolve_dotted(fe, c->scope, v->initial->left), "enum.auto"))
            value = rt_int(next_auto);
        else if (!fe_evaluate_expression(fe, c->scope, v->initial, &value))
            continue;
        if (value.tag == RT_TAG_INT && value.as.i >= next_auto)
            next_auto = value.as.i + 1;
        while (c->is_flag && (next_auto & (next_auto - 1)))
            next_auto += next_auto & -next_auto; /* the next power of two */
        size_t first = member_with(members, count, value);
        if (first < count) { /* another name of that one */
            v->value = members[first];
            v->is_evaluated = true;
            rt_release(value);
            continue;
        }
        rt_value member;
        ts_status status = rt_enum_make(&ir->base, v->name, value, &member);
        rt_release(value);
        if (status) {
            ts_status_release(status);
            continue;
        }
        ir_module_retain(fe->module, member);
        rt_release(member);
        v->value = member;
        v->is_evaluated = true;
        members[count++] = member;
    }
    ir->enum_members = members;
    ir->enum_member_count = count;
}

ir_class *fe_class_ir(fe_context *fe, fe_class *c) {
    if (c->ir_state)
        return c->ir;
    if (c->kind == RT_CLASS_MODULE && !c->is_archive)
        return NULL;
    c->ir_state = 1;
    c->ir = make_ir_class(fe, c);
    const rt_class **bases = TS_NEW_ARRAY(fe->arena, const rt_class *, c->ancestor_count + 1);
    size_t base_count = 0;
    for (size_t i = 0; i < c->ancestor_count; i++) {
        ir_class *base = fe_class_ir(fe, c->ancestors[i]);
        if (base)
            bases[base_count++] = &base->base;
    }
    c->ir->base.bases = bases;
    c->ir->base.base_count = base_count;
    switch (c->kind) {
    case RT_CLASS_ENUM:
        enum_members(fe, c->ir, c);
        break;
    case RT_CLASS_EXCEPTION:
        em_exception_fields(fe, c->ir);
        if (c->node && fe_class_method(c, TS_STR("__init__")))
            fe_method_ir(fe, c->ir, TS_STR("__init__"));
        break;
    case RT_CLASS_INTERFACE:
        break;
    case RT_CLASS_NAMED_TUPLE:
        for (size_t i = c->ancestor_count; i-- > 0;)
            annotated_fields(fe, c->ir, c->ancestors[i]);
        annotated_fields(fe, c->ir, c);
        break;
    case RT_CLASS_MODULE:
        annotated_fields(fe, c->ir, c);
        break;
    case RT_CLASS_PLAIN:
        if (c->is_archive || c->is_dataclass) {
            for (size_t i = c->ancestor_count; i-- > 0;)
                annotated_fields(fe, c->ir, c->ancestors[i]);
            annotated_fields(fe, c->ir, c);
        } else if (fe_class_method(c, TS_STR("__init__"))) {
            fe_method_ir(fe, c->ir, TS_STR("__init__")); /* adds a field at its first assignment */
        }
        break;
    }
    if (c->kind == RT_CLASS_NAMED_TUPLE)
        c->ir->type = ir_type_of_class(fe->module, c->ir); /* a tuple of the fields' types */
    c->ir_state = 2;
    return c->ir;
}

/* ---- archives ---- */

fe_binding fe_archive_lookup(fe_context *fe, ts_str qualified_name) {
    fe_binding *known = fe_map_get(&fe->archive_names, qualified_name);
    if (known)
        return *known;
    const ast_node *node = fe->archive ? fe_archive_find_node(fe, qualified_name) : NULL;
    if (!node)
        return (fe_binding){.kind = FE_UNBOUND};
    ts_str name = ts_arena_str(fe->arena, qualified_name);
    fe_scope *scope = fe_scope_make(fe->arena, NULL, node->source, name);
    known = TS_NEW(fe->arena, fe_binding);
    fe_map_set(fe->arena, &fe->archive_names, name, known);
    known->place = node;
    if (node->kind == AST_CLASS) {
        known->kind = FE_CLASS;
        known->class_ = fe_class_declare(fe, scope, node, name);
    } else {
        known->kind = FE_FUNCTION;
        known->function = fe_function_declare(fe, scope, node, name, NULL);
    }
    return *known;
}

fe_class *fe_archive_class(fe_context *fe, ts_str qualified_name) {
    fe_binding b = fe_archive_lookup(fe, qualified_name);
    return b.kind == FE_CLASS ? b.class_ : NULL;
}
