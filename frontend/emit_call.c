/* frontend/emit_call.c - the call: what the callee is, and who makes the call of it. */
#include "frontend/emit_builtin.h"
#include "frontend/overload.h"

static em call_super(emitter *E, em callee, em_arguments *args, const ast_node *node) {
    fe_class *owner;
    fe_function *method = em_super_method(E, callee.after, callee.name, &owner);
    if (!method && ts_str_is(callee.name, "__init__")) {
        /* super().__init__() of a class whose bases have none */
        if (em_is_exception(callee.value->type) && !em_exception_init(E, callee.value, args, node))
            return em_error();
        return em_value(ir_build_none(&E->b));
    }
    if (!method) {
        EM_ERR(E, node, "no base class has a method '%.*s'", TS_STR_ARG(callee.name));
        return em_error();
    }
    if (method->is_static)
        return em_call_function(E, method, args, node);
    return em_call_method_of(E, callee.value, owner, method, args, node);
}

/* Whatever an archive was made on, it runs on the cpu here. */
static void on_this_machine(emitter *E, em_arguments *args) {
    static const char *const kinds[] = {"cuda", "hip", "xpu", "mps"};
    rt_value v;
    if (!args->count || args->items[0].v.kind != EM_VALUE ||
        !ir_const_value(args->items[0].v.value, &v) || v.tag != RT_TAG_STR)
        return;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ts_str_starts_with(rt_str_text(v.as.str), kinds[i])) {
            args->items[0].v = em_value(ir_build_str(&E->b, TS_STR("cpu")));
            args->count = 1;
        }
}

/* One tensor, where a list of them may be given. passes/differentiate.c makes operators of it. */
static em autograd_grad(emitter *E, em_arguments *args, const ast_node *node) {
    for (size_t i = 0; i < args->count; i++) {
        em_argument *a = &args->items[i];
        bool is_list = a->name.length ? ts_str_is(a->name, "outputs") || ts_str_is(a->name, "inputs") ||
                                            ts_str_is(a->name, "grad_outputs")
                                      : i < 3;
        if (is_list && a->v.kind == EM_VALUE && a->v.value->type->kind == IR_TENSOR)
            a->v = em_value(em_list_of(E, &a->v.value, 1, a->v.value->type));
    }
    return em_operator(E, TS_STR("autograd_grad"), args, node);
}

/* checkpoint(f, x, use_reentrant=False) gives f(x): what it says of memory is the compiler's own matter. */
static em checkpoint(emitter *E, em_arguments *args, const ast_node *node, const ir_type *hint) {
    static const char *const own[] = {"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug"};
    em_arguments rest = {0};
    for (size_t i = 1; i < args->count; i++) {
        bool is_own = false;
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            is_own = is_own || ts_str_is(args->items[i].name, own[k]);
        if (!is_own)
            TS_APPEND(E->arena, rest.items, rest.count, rest.capacity, args->items[i]);
    }
    return em_call_value(E, args->items[0].v, &rest, node, hint);
}

/* torch.mul(2, x) of two numbers is a tensor in Python, where the operator of that name has an overload of numbers;
 * torch.sqrt(2.0) is an error there. false: it was told. */
static bool as_python_takes_numbers(emitter *E, ts_str name, em_arguments *args, const ast_node *node) {
    static const char *const making[] = {"add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide"};
    static const char *const refusing[] = {
        "eq", "ne", "lt", "le", "gt", "ge", "pow", "remainder", "fmod", "maximum", "minimum", "atan2", "max", "min",
        "abs", "neg", "sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
        "sinh", "cosh", "tanh", "floor", "ceil", "round", "erf", "erfc", "lgamma", "gcd", "isnan", "isinf", "isfinite", "sum"};
    if (!em_is_script(node) || !args->count || args->items[0].name.length)
        return true;
    ir_value *first = NULL;
    for (size_t i = 0; i < args->count; i++) {
        em v = args->items[i].v;
        bool is_value = v.kind == EM_VALUE || (v.kind == EM_BINDING && v.binding->kind == FE_VALUE);
        ir_value *ir = is_value ? em_ir(E, v, args->items[i].node, NULL) : NULL;
        if (!ir || !em_is_number(ir->type))
            return true;
        first = first ? first : ir;
    }
    for (size_t i = 0; args->count > 1 && i < sizeof making / sizeof *making; i++)
        if (ts_str_is(name, making[i])) {
            args->items[0].v = em_value(em_op(E, "tensor", node, 1, first));
            return args->items[0].v.value != NULL;
        }
    for (size_t i = 0; i < sizeof refusing / sizeof *refusing; i++)
        if (ts_str_is(name, refusing[i])) {
            EM_ERR(E, args->items[0].node, "expected Tensor for argument 'input' of torch.%.*s, found %s", TS_STR_ARG(name),
                   em_type_text(E, first->type));
            return false;
        }
    return true;
}

/* quantized.add as quantized_add; torchaudio._name has the name torchaudio_name here. */
static ts_str flat_name(emitter *E, ts_str path) {
    char *flat = ts_arena_copy(E->arena, path.data, path.length);
    size_t n = 0;
    for (size_t i = 0; i < path.length; i++) {
        flat[n++] = path.data[i] == '.' ? '_' : path.data[i];
        if (path.data[i] == '.')
            while (i + 1 < path.length && path.data[i + 1] == '_')
                i++;
    }
    return (ts_str){flat, n};
}

static em call_path(emitter *E, ts_str path, em_arguments *args, const ast_node *node,
                    const ir_type *hint) {
    bool known = false;
    em r = em_call_builtin(E, path, args, node, hint, &known);
    if (known)
        return r;
    if (ts_str_is(path, "torch.autograd.grad"))
        return autograd_grad(E, args, node);
    if (ts_str_is(path, "torch.utils.checkpoint.checkpoint") && args->count)
        return checkpoint(E, args, node, hint);
    if (ts_str_is(path, "torch.autograd.backward"))
        return em_operator(E, TS_STR("backward"), args, node);
    static const char *const prefixes[] = {"torch.Tensor.", "torch.", "math.", "ops.aten."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (ts_str_starts_with(path, prefixes[i])) {
            size_t n = strlen(prefixes[i]);
            ts_str name = {path.data + n, path.length - n};
            if (memchr(name.data, '.', name.length) && !ts_str_is(ts_str_of(prefixes[i]), "ops.aten."))
                break; /* ops.aten.add.Tensor names an overload */
            if (ts_str_is(ts_str_of(prefixes[i]), "torch.") && !as_python_takes_numbers(E, name, args, node))
                return em_error();
            bool has_tensor = false;
            for (size_t k = 0; k < args->count; k++)
                has_tensor = has_tensor || (args->items[k].v.kind == EM_VALUE &&
                                            args->items[k].v.value->type->kind == IR_TENSOR);
            if (node->source && node->source->is_archive)
                name = fe_archive_operator(E->fe, name, has_tensor);
            if (node->source && node->source->is_archive && ts_str_is(name, "device"))
                on_this_machine(E, args);
            /* What math has beyond the operators is in the library, as math_NAME. */
            if (ts_str_starts_with(path, "math.")) {
                r = em_math_of_many(E, name, args, node, &known);
                if (known)
                    return r;
            }
            if (ts_str_starts_with(path, "math.") &&
                (!fe_operator_exists(E->fe, name) || ts_str_is(name, "prod") || ts_str_is(name, "isclose") ||
                 ts_str_is(name, "dist") || ts_str_is(name, "lcm")))
                name = ts_arena_format(E->arena, "math_%.*s", (int)name.length, name.data);
            r = em_call_by_flags(E, name, args, node, &known);
            return known ? r : em_operator(E, name, args, node);
        }
    if (ts_str_starts_with(path, "ops.")) {
        ts_str rest = {path.data + 4, path.length - 4};
        ts_str flat = flat_name(E, rest);
        const char *space = memchr(rest.data, '.', rest.length), *behind = rest.data + rest.length;
        const char *end = space ? memchr(space + 1, '.', (size_t)(behind - space) - 1) : NULL;
        if (end && !em_operator_is_there(E->fe, flat)) { /* NAMESPACE.NAME.OVERLOAD */
            ts_str base = flat_name(E, (ts_str){rest.data, (size_t)(end - rest.data)});
            if (em_operator_is_there(E->fe, base))
                flat = ts_arena_format(E->arena, "%.*s%.*s", TS_STR_ARG(base), (int)(behind - end), end);
        }
        return em_operator(E, flat, args, node);
    }
    r = em_python_path(E, path, args, node, hint, &known);
    if (known)
        return r;
    EM_UNSUPPORTED(E, node, "%.*s is not supported yet", TS_STR_ARG(path));
    return em_error();
}

em em_call_value(emitter *E, em callee, em_arguments *args, const ast_node *node,
                 const ir_type *hint) {
    switch (callee.kind) {
    case EM_ERROR:
        return em_error();
    case EM_BINDING:
        switch (callee.binding->kind) {
        case FE_FUNCTION: {
            fe_function *f = callee.binding->function;
            if (f->owner && !f->is_static && !f->is_class_method && !f->owner->is_archive && args->count) {
                /* Class.method(object, ...) */
                ir_value *self = em_ir(E, args->items[0].v, node, NULL);
                if (!self)
                    return em_error();
                em_arguments rest = {.items = args->items + 1, .count = args->count - 1};
                return em_call_method_of(E, self, f->owner, f, &rest, node);
            }
            return em_call_function(E, f, args, node);
        }
        case FE_CLASS:
            return em_construct(E, callee.binding->class_, args, node);
        case FE_NAME:
            return call_path(E, callee.binding->path, args, node, hint);
        case FE_NAMESPACE:
            EM_UNSUPPORTED(E, node, "%.*s is not supported yet", TS_STR_ARG(callee.binding->path));
            return em_error();
        case FE_VALUE: {
            ir_value *v = em_ir(E, callee, node, NULL);
            return v ? em_call_value(E, em_value(v), args, node, hint) : em_error();
        }
        default:
            break;
        }
        break;
    case EM_METHOD:
        if (callee.after)
            return call_super(E, callee, args, node);
        if (callee.binding && ts_str_is(callee.name, "_make"))
            return em_named_tuple_make(E, callee.binding->class_, args, node);
        if (callee.binding) { /* X.__new__(X) */
            ir_class *c = fe_class_ir(E->fe, callee.binding->class_);
            return c ? em_value(em_new_object(E, c)) : em_error();
        }
        if (callee.function)
            return em_call_method(E, callee.value, callee.name, args, node);
        if (callee.value->type->kind == IR_UNION)
            return em_call_union(E, callee.value, callee.name, args, node, hint);
        return em_call_builtin_type_method(E, callee, args, node, hint);
    case EM_CHOICE:
        return em_call_choice(E, callee, args, node, hint);
    case EM_CLOSURE: {
        em *values = TS_NEW_ARRAY(E->arena, em, args->count + 1);
        size_t count = 0;
        while (count < args->count && !args->items[count].name.length) {
            values[count] = args->items[count].v;
            count++;
        }
        em_arguments named = {.items = args->items + count, .count = args->count - count};
        return em_call_closure(E, callee.node, values, count, &named, node);
    }
    case EM_VALUE: {
        ir_value *v = callee.value;
        if (v->type->kind == IR_OPTIONAL)
            v = em_check_cast(E, v, v->type->args[0]);
        em stands_for;
        if (em_callable_of(E, v, &stands_for))
            return em_call_value(E, stands_for, args, node, hint);
        if (em_spread_partial(E, v, args, node, &stands_for))
            return em_call_value(E, stands_for, args, node, hint);
        if (v->type->kind == IR_UNION)
            return em_call_union(E, v, (ts_str){0}, args, node, hint);
        if (v->type->kind == IR_CLASS) {
            fe_class *c = fe_class_of(v->type->class_);
            bool forward = c && (c->kind == RT_CLASS_MODULE || fe_class_method(c, TS_STR("forward")));
            if (c && c->kind == RT_CLASS_MODULE)
                return em_call_module(E, v, args, node);
            return em_call_method(E, v, forward ? TS_STR("forward") : TS_STR("__call__"), args, node);
        }
        EM_ERR(E, node, "%s cannot be called", em_type_text(E, v->type));
        return em_error();
    }
    case EM_TUPLE: /* a slice of a Sequential */
        if (!ts_str_is(callee.name, "Sequential"))
            break;
        for (size_t i = 0; i < callee.count; i++) {
            em made = em_call_value(E, callee.items[i], args, node, hint);
            em_argument *argument = TS_NEW(E->arena, em_argument);
            *argument = (em_argument){.v = made, .node = node};
            args = TS_NEW(E->arena, em_arguments);
            *args = (em_arguments){.items = argument, .count = 1};
        }
        return args->count == 1 ? args->items[0].v : em_error();
    default:
        break;
    }
    EM_ERR(E, node, "this cannot be called");
    return em_error();
}

static em make_super(emitter *E, const ast_node *node) {
    if (!E->self_class || !E->function || !E->function->owner) {
        EM_ERR(E, node, "super() outside a method");
        return em_error();
    }
    if (E->function->owner->is_made && !E->function->owner->is_library) { /* a generator's or a closure's own object */
        EM_UNSUPPORTED(E, node, "super() in a generator or a nested function is not supported yet");
        return em_error();
    }
    return (em){.kind = EM_SUPER, .value = E->f->body->parameters[0], .after = E->function->owner};
}

static em call_of(emitter *E, const ast_node *node, const ir_type *hint) {
    const ast_node *f = node->left;
    if (f->kind == AST_NAME && ts_str_is(f->text, "super") && !fe_map_get(&E->variables, f->text))
        return make_super(E, node);
    /* Tests whose answer may be known now. */
    if ((f->kind == AST_NAME || f->kind == AST_ATTRIBUTE) &&
        (ts_str_is(f->text, "isinstance") || ts_str_is(f->text, "__is__") ||
         ts_str_is(f->text, "__isnot__") || ts_str_is(f->text, "__not__"))) {
        em_condition c = {.known = -1};
        if (em_condition_call(E, node, &c)) {
            ir_value *v = em_condition_ir(E, &c);
            return em_value(v);
        }
    }
    if (f->kind == AST_NAME && ts_str_is(f->text, "$iter"))
        return em_value(em_iterator(E, em_expression(E, node->list.items[0], NULL), node));
    if (f->kind == AST_NAME && ts_str_is(f->text, "$new_cell"))
        return em_new_cell(E, node);
    bool done = false;
    em special = em_call_special(E, node, hint, &done);
    if (done)
        return special;
    em callee = em_expression(E, f, NULL);
    if (callee.kind == EM_ERROR)
        return callee;
    em_arguments args = {0};
    if (!em_evaluate_arguments(E, node, callee, &args))
        return em_error();
    em_place(E, node);
    return em_call_value(E, callee, &args, node, hint);
}

em em_call(emitter *E, const ast_node *node, const ir_type *hint) {
    const ast_node *outer = E->encoded, *inner = em_encoded_before(node);
    E->encoded = inner ? inner : outer == node ? outer : NULL;
    em out = call_of(E, node, hint);
    E->encoded = outer;
    return out;
}
