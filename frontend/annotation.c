/* frontend/annotation.c - annotations (List[Tensor], Optional[int], int | None, "Node") to types. */
#include "frontend/emit_internal.h"

static const ir_type *annotation(fe_context *fe, fe_scope *scope, const ast_node *node, int depth);

/* What a name means here; in type comments the names of typing need no import. */
static fe_binding meaning(fe_context *fe, fe_scope *scope, const ast_node *node) {
    fe_binding b = fe_resolve_dotted(fe, scope, node);
    if (b.kind != FE_UNBOUND || node->kind != AST_NAME)
        return b;
    if (ts_str_is(node->text, "Tensor"))
        return (fe_binding){.kind = FE_NAME, .path = TS_STR("torch.Tensor")};
    if (ts_str_is(node->text, "List") || ts_str_is(node->text, "Dict") ||
        ts_str_is(node->text, "Tuple") || ts_str_is(node->text, "Optional") ||
        ts_str_is(node->text, "Union") || ts_str_is(node->text, "Any"))
        return (fe_binding){.kind = FE_NAME,
                            .path = ts_arena_format(fe->arena, "typing.%.*s", TS_STR_ARG(node->text))};
    return b;
}

static const ir_type *refuse(fe_context *fe, const ast_node *node, const char *what) {
    fe_report(fe->diagnostics, FE_ERROR, TS_ERR_UNSUPPORTED, node, "%s is not supported yet", what);
    return NULL;
}

static const ir_type *refuse_count(fe_context *fe, const ast_node *node, const char *of, const char *wanted, size_t count) {
    fe_report(fe->diagnostics, FE_ERROR, TS_ERR_TYPE, node, "expected %s in the brackets of %s, found %zu", wanted, of, count);
    return NULL;
}

static const struct {
    const char *path;
    ir_kind kind;
} simple_types[] = {
    {"builtins.int", IR_INT}, {"builtins.float", IR_FLOAT}, {"builtins.bool", IR_BOOL},
    {"builtins.str", IR_STR}, {"builtins.complex", IR_COMPLEX}, {"builtins.object", IR_ANY},
    {"torch.Tensor", IR_TENSOR}, {"torch.FloatTensor", IR_TENSOR}, {"torch.LongTensor", IR_TENSOR},
    {"torch.IntTensor", IR_TENSOR}, {"torch.DoubleTensor", IR_TENSOR}, {"torch.BoolTensor", IR_TENSOR},
    {"torch.device", IR_DEVICE}, {"torch.Generator", IR_GENERATOR},
    {"torch.nn.Parameter", IR_TENSOR}, {"torch.types.Number", IR_NUMBER},
    {"torch.types.Device", IR_DEVICE}, {"numbers.Number", IR_NUMBER},
    {"typing.Any", IR_ANY}, {"typing.NoReturn", IR_NONE}, {"typing.Text", IR_STR},
    {"archive.Tensor", IR_TENSOR}, {"archive.number", IR_NUMBER}, {"archive.NoneType", IR_NONE},
    {"archive.Device", IR_DEVICE}, {"archive.Generator", IR_GENERATOR},
    {"archive.Stream", IR_CAPSULE}, {"archive.Capsule", IR_CAPSULE}, {"archive.Any", IR_ANY}};

static const ir_type *named_type(fe_context *fe, const ast_node *node, fe_binding b) {
    ir_module *m = fe->module;
    if (b.kind == FE_NAME) {
        for (size_t i = 0; i < sizeof simple_types / sizeof *simple_types; i++)
            if (ts_str_is(b.path, simple_types[i].path))
                return ir_type_simple(m, simple_types[i].kind);
        static const struct { const char *path; rt_meaning meaning; } meant[] = {
            {"torch.dtype", RT_MEANING_DTYPE}, {"torch.types._dtype", RT_MEANING_DTYPE}, {"torch.layout", RT_MEANING_LAYOUT},
            {"torch.memory_format", RT_MEANING_MEMORY_FORMAT}, {"torch.qscheme", RT_MEANING_QSCHEME}};
        for (size_t i = 0; i < sizeof meant / sizeof *meant; i++)
            if (ts_str_is(b.path, meant[i].path))
                return ir_type_meant(m, meant[i].meaning);
        if (ts_str_is(b.path, "builtins.slice") && em_slice_class(fe))
            return fe_class_ir(fe, em_slice_class(fe))->type;
        if (ts_str_is(b.path, "torch.Size"))
            return ir_type_list(m, ir_type_simple(m, IR_INT));
        if (ts_str_is(b.path, "typing.List") || ts_str_is(b.path, "builtins.list"))
            return ir_type_list(m, ir_type_any_tensor(m));
        if (ts_str_is(b.path, "typing.Dict") || ts_str_is(b.path, "builtins.dict"))
            return ir_type_dict(m, ir_type_simple(m, IR_STR), ir_type_any_tensor(m));
        if (ts_str_starts_with(b.path, "torch.classes.") || ts_str_starts_with(b.path, "__torch__.torch.classes."))
            return ir_type_simple(m, IR_CAPSULE);
    }
    if (b.kind == FE_CLASS) {
        ir_class *ir = fe_class_ir(fe, b.class_);
        if (ir)
            return ir->type;
        if (b.class_->kind == RT_CLASS_MODULE)
            return ir_type_simple(m, IR_ANY);
    }
    if (b.kind == FE_NAMESPACE && ts_str_starts_with(b.path, "__torch__.torch.classes"))
        return ir_type_simple(m, IR_CAPSULE);
    if (b.kind == FE_VALUE && rt_is_none(b.value))
        return ir_type_simple(m, IR_NONE);
    if (b.kind == FE_UNBOUND)
        fe_report(fe->diagnostics, FE_ERROR, TS_ERR_TYPE, node, "unknown type %.*s",
                  TS_STR_ARG(node->text));
    else
        fe_report(fe->diagnostics, FE_ERROR, TS_ERR_UNSUPPORTED, node,
                  "the type %.*s is not supported yet", TS_STR_ARG(b.path.length ? b.path : node->text));
    return NULL;
}

/* Subscript's arguments: a tuple's items, or the one. */
static size_t arguments(const ast_node *node, ast_node *const **out, const ast_node **one) {
    if (node->kind == AST_TUPLE) {
        *out = node->list.items;
        return node->list.count;
    }
    *one = node;
    *out = (ast_node *const *)one;
    return 1;
}

static bool is_one_of(ts_str path, const char *word) {
    size_t n = strlen(word);
    return path.length > n && path.data[path.length - n - 1] == '.' && ts_str_ends_with(path, word);
}

static const ir_type *generic(fe_context *fe, fe_scope *scope, const ast_node *node, int depth) {
    ir_module *m = fe->module;
    fe_binding b = meaning(fe, scope, node->left);
    const ast_node *one;
    ast_node *const *items;
    size_t count = arguments(node->right, &items, &one);
    if (b.kind == FE_CLASS)
        return named_type(fe, node->left, b);
    if (b.kind != FE_NAME)
        return named_type(fe, node->left, b);
    ts_str p = b.path;
    if (is_one_of(p, "Literal"))
        return items[0]->kind == AST_STRING ? ir_type_simple(m, IR_STR) : ir_type_simple(m, IR_INT);
    if (is_one_of(p, "Callable"))
        return refuse(fe, node, "a parameter that is a function (Callable)");
    if (is_one_of(p, "Tuple") || is_one_of(p, "tuple")) {
        if (count == 2 && items[1]->kind == AST_ELLIPSIS) {
            const ir_type *t = annotation(fe, scope, items[0], depth + 1);
            return t ? ir_type_list(m, t) : NULL;
        }
    }
    const ir_type **types = TS_NEW_ARRAY(fe->arena, const ir_type *, count + 1);
    for (size_t i = 0; i < count; i++) {
        types[i] = annotation(fe, scope, items[i], depth + 1);
        if (!types[i])
            return NULL;
    }
    if (is_one_of(p, "List") || is_one_of(p, "list") || is_one_of(p, "Sequence") ||
        is_one_of(p, "Iterable") || is_one_of(p, "BroadcastingList1") ||
        is_one_of(p, "BroadcastingList2") || is_one_of(p, "BroadcastingList3"))
        return count == 1 ? ir_type_list(m, types[0]) : refuse_count(fe, node, "a list", "one type", count);
    if (is_one_of(p, "Dict") || is_one_of(p, "dict") || is_one_of(p, "Mapping") ||
        is_one_of(p, "OrderedDict") || is_one_of(p, "MutableMapping"))
        return count == 2 ? ir_type_dict(m, types[0], types[1]) : refuse_count(fe, node, "a dict", "two types", count);
    if (is_one_of(p, "FrozenSet") || is_one_of(p, "frozenset"))
        return count == 1 ? ir_type_dict(m, types[0], ir_type_tuple(m, NULL, 0, NULL)) : refuse_count(fe, node, "a set", "one type", count);
    if (is_one_of(p, "Set") || is_one_of(p, "set") || is_one_of(p, "MutableSet") || is_one_of(p, "AbstractSet"))
        return count == 1 ? ir_type_dict(m, types[0], ir_type_simple(m, IR_NONE)) : refuse_count(fe, node, "a set", "one type", count);
    if (is_one_of(p, "Optional"))
        return count == 1 ? ir_type_optional(m, types[0]) : refuse_count(fe, node, "Optional", "one type", count);
    if (is_one_of(p, "Tuple") || is_one_of(p, "tuple"))
        return ir_type_tuple(m, types, count, NULL);
    if (is_one_of(p, "Union"))
        return ir_type_union(m, types, count);
    if (is_one_of(p, "Final") || is_one_of(p, "ClassVar") || is_one_of(p, "Annotated"))
        return types[0];
    if (is_one_of(p, "Future") || is_one_of(p, "Await"))
        return ir_type_future(m, types[0]);
    fe_report(fe->diagnostics, FE_ERROR, TS_ERR_UNSUPPORTED, node,
              "the type %.*s is not supported yet", TS_STR_ARG(p));
    return NULL;
}

static const ir_type *annotation(fe_context *fe, fe_scope *scope, const ast_node *node, int depth) {
    ir_module *m = fe->module;
    if (depth > 60)
        return refuse(fe, node, "a type nested this deeply");
    switch (node->kind) {
    case AST_NONE:
        return ir_type_simple(m, IR_NONE);
    case AST_NAME:
    case AST_ATTRIBUTE:
        return named_type(fe, node, meaning(fe, scope, node));
    case AST_SUBSCRIPT:
        return generic(fe, scope, node, depth);
    case AST_BINARY:
        if (node->op == AST_BITOR) {
            const ir_type *both[2] = {annotation(fe, scope, node->left, depth + 1),
                                      annotation(fe, scope, node->right, depth + 1)};
            return both[0] && both[1] ? ir_type_union(m, both, 2) : NULL;
        }
        break;
    case AST_TUPLE:
        if (!node->list.count)
            return ir_type_tuple(m, NULL, 0, NULL);
        break;
    case AST_STRING: {
        fe_source *source;
        ts_status status = fe_source_make(fe->arena, node->source ? node->source->name : TS_STR("?"),
                                          node->text, &source);
        if (status) {
            ts_status_release(status);
            break;
        }
        source->is_archive = node->source && node->source->is_archive;
        source->is_library = node->source && node->source->is_library;
        ast_node *parsed = fe_parse_expression(fe->arena, source, fe->diagnostics);
        return parsed ? annotation(fe, scope, parsed, depth + 1) : NULL;
    }
    default:
        break;
    }
    fe_report(fe->diagnostics, FE_ERROR, TS_ERR_TYPE, node, "expected a type");
    return NULL;
}

const ir_type *fe_annotation_type(fe_context *fe, fe_scope *scope, const ast_node *node) {
    return annotation(fe, scope, node, 0);
}

bool fe_annotation_is_final(fe_context *fe, fe_scope *scope, const ast_node *node,
                            const ast_node **out_inner) {
    const ast_node *base = node->kind == AST_SUBSCRIPT ? node->left : node;
    fe_binding b = fe_resolve_dotted(fe, scope, base);
    if (b.kind != FE_NAME || !is_one_of(b.path, "Final"))
        return false;
    *out_inner = node->kind == AST_SUBSCRIPT ? node->right : NULL;
    return true;
}

em em_open_tuple(fe_context *fe, fe_scope *scope, const ast_node *annotation) {
    em out = {0};
    if (!annotation || (annotation->source && annotation->source->is_archive))
        return out;
    const ast_node *const *items = NULL;
    if (annotation->kind == AST_SUBSCRIPT && annotation->right && annotation->right->kind == AST_TUPLE)
        items = (const ast_node *const *)annotation->right->list.items;
    bool is_open = items && annotation->right->list.count == 2 && items[1]->kind == AST_ELLIPSIS;
    fe_binding b = is_open || annotation->kind != AST_SUBSCRIPT
                       ? meaning(fe, scope, is_open ? annotation->left : annotation) : (fe_binding){0};
    out.is_tuple = is_open && b.kind == FE_NAME && (is_one_of(b.path, "Tuple") || is_one_of(b.path, "tuple"));
    out.is_size = !is_open && b.kind == FE_NAME && ts_str_is(b.path, "torch.Size");
    return out;
}
