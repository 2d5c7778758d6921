/* frontend/emit_operator.c - arithmetic, comparison, membership. */
#include "frontend/emit_builtin.h"

static const struct {
    ast_operator op;
    const char *number, *tensor, *in_place, *method, *reflected, *in_place_method;
} binary_table[] = {
    {AST_ADD, "add", "add", "add_", "__add__", "__radd__", "__iadd__"},
    {AST_SUB, "sub", "sub", "sub_", "__sub__", "__rsub__", "__isub__"},
    {AST_MUL, "mul", "mul", "mul_", "__mul__", "__rmul__", "__imul__"},
    {AST_DIV, "div", "div", "div_", "__truediv__", "__rtruediv__", "__itruediv__"},
    {AST_FLOORDIV, "floordiv", "floor_divide", "floor_divide_", "__floordiv__", "__rfloordiv__", "__ifloordiv__"},
    {AST_MOD, "remainder", "remainder", "remainder_", "__mod__", "__rmod__", "__imod__"},
    {AST_POW, "pow", "pow", "pow_", "__pow__", "__rpow__", "__ipow__"},
    {AST_MATMUL, "matmul", "matmul", NULL, "__matmul__", "__rmatmul__", "__imatmul__"},
    {AST_LSHIFT, "__lshift__", "bitwise_left_shift", "bitwise_left_shift_", "__lshift__", "__rlshift__", "__ilshift__"},
    {AST_RSHIFT, "__rshift__", "bitwise_right_shift", "bitwise_right_shift_", "__rshift__", "__rrshift__", "__irshift__"},
    {AST_BITAND, "__and__", "bitwise_and", "bitwise_and_", "__and__", "__rand__", "__iand__"},
    {AST_BITOR, "__or__", "bitwise_or", "bitwise_or_", "__or__", "__ror__", "__ior__"},
    {AST_BITXOR, "__xor__", "bitwise_xor", "bitwise_xor_", "__xor__", "__rxor__", "__ixor__"}};

static bool is_tensor(const ir_value *v) {
    return v->type->kind == IR_TENSOR ||
           (v->type->kind == IR_OPTIONAL && v->type->args[0]->kind == IR_TENSOR);
}

static em tuple_items(emitter *E, em v) {
    if (v.kind == EM_TUPLE)
        return v;
    ir_op *op = ir_build_op(&E->b, IR_OP_TUPLE_UNPACK, &v.value, 1, v.value->type->args,
                            v.value->type->arg_count);
    em out = {.kind = EM_TUPLE, .count = op->result_count};
    out.items = TS_NEW_ARRAY(E->arena, em, op->result_count + 1);
    for (size_t i = 0; i < op->result_count; i++)
        out.items[i] = em_value(op->results[i]);
    return out;
}

/* A named tuple may have operators of its own. */
static bool is_tuple(em v) {
    static const char *const own[] = {"__add__", "__radd__", "__mul__", "__rmul__"};
    bool is_plain = v.kind == EM_TUPLE || (v.kind == EM_VALUE && v.value->type->kind == IR_TUPLE);
    for (size_t i = 0; v.kind == EM_VALUE && is_plain && i < sizeof own / sizeof *own; i++)
        is_plain = !em_class_has_method(v.value->type, own[i]);
    return is_plain;
}

static em add_tuples(emitter *E, em a, em b) {
    a = tuple_items(E, a);
    b = tuple_items(E, b);
    em out = {.kind = EM_TUPLE, .count = a.count + b.count};
    out.items = TS_NEW_ARRAY(E->arena, em, out.count + 1);
    if (a.count)
        memcpy(out.items, a.items, a.count * sizeof(em));
    if (b.count)
        memcpy(out.items + a.count, b.items, b.count * sizeof(em));
    return out;
}

static em repeat_tuple(emitter *E, em t, int64_t n) {
    t = tuple_items(E, t);
    em out = {.kind = EM_TUPLE};
    for (int64_t i = 0; i < n && i < 10000; i++)
        out = add_tuples(E, out, t);
    return out;
}

static bool stands_for_tuple(em v) { return v.kind == EM_VALUE && (v.is_tuple || v.is_size); }

/* A tuple of equal types as a list, for what has a length known only at run time:
 * (x.shape[0],) + (1,) * (x.ndim - 1). Other ems stay. */
static em tuple_as_list(emitter *E, em t, const ast_node *node) {
    if (!is_tuple(t))
        return t;
    em items = tuple_items(E, t);
    ir_value **values = TS_NEW_ARRAY(E->arena, ir_value *, items.count + 1);
    for (size_t i = 0; i < items.count; i++) {
        values[i] = em_ir(E, items.items[i], node, NULL);
        if (!values[i] || !ir_type_same_shape_of(values[i]->type, values[0]->type))
            return t;
    }
    em list = items.count ? em_value(em_list_of(E, values, items.count, values[0]->type)) : t;
    list.is_tuple = list.kind == EM_VALUE;
    return list;
}

static bool is_list(em v) { return v.kind == EM_VALUE && v.value && v.value->type->kind == IR_LIST; }

static bool is_written_list(const ast_node *n) { return n && (n->kind == AST_LIST || n->kind == AST_LIST_COMP); }

/* [1] + (2,), x.shape + [1]: where one is surely a list. What a parameter holds may be either. */
static bool adds_list_and_tuple(em a, em b, bool in_place, const ast_node *node) {
    if (node->kind != AST_BINARY && node->kind != AST_AUG_ASSIGN)
        return false;
    bool a_is_tuple = is_tuple(a) || stands_for_tuple(a), b_is_tuple = is_tuple(b) || stands_for_tuple(b);
    bool a_is_list = a.is_list || is_written_list(node->left), b_is_list = b.is_list || is_written_list(node->right);
    return (a_is_tuple && b_is_list) || (b_is_tuple && !in_place && a_is_list);
}

static em kinds_refused(emitter *E, bool left_is_tuple, const ast_node *node) {
    EM_ERR(E, node, "expected %s to add to the %s, found %s", left_is_tuple ? "a tuple" : "a list",
           left_is_tuple ? "tuple" : "list", left_is_tuple ? "a list" : "a tuple");
    return em_error();
}

static bool is_int(em v) {
    return v.kind == EM_VALUE && v.value && v.value->type->kind == IR_INT;
}

/* Number on the left of a tensor. */
static ir_value *reflected(emitter *E, ast_operator op, ir_value *a, ir_value *b, const ast_node *node) {
    switch (op) {
    case AST_SUB:
        return em_op(E, "rsub", node, 2, b, a);
    case AST_DIV:
        if (a->type->kind == IR_INT || a->type->kind == IR_FLOAT || a->type->kind == IR_BOOL ||
            a->type->kind == IR_NUMBER)
            return em_op(E, "mul", node, 2, em_op(E, "reciprocal", node, 1, b), a);
        return em_op(E, "div", node, 2, a, b);
    case AST_ADD:
    case AST_MUL:
        return em_op(E, op == AST_ADD ? "add" : "mul", node, 2, b, a);
    case AST_BITAND:
        return em_op(E, "bitwise_and", node, 2, b, a);
    case AST_BITOR:
        return em_op(E, "bitwise_or", node, 2, b, a);
    case AST_BITXOR:
        return em_op(E, "bitwise_xor", node, 2, b, a);
    case AST_POW:
        return em_op(E, "pow", node, 2, a, b);
    case AST_MOD:
        return em_op(E, "remainder", node, 2, a, b);
    case AST_FLOORDIV:
        return em_op(E, "floor_divide", node, 2, em_op(E, "prim_NumToTensor", node, 1, a), b);
    case AST_LSHIFT:
    case AST_RSHIFT:
        return em_op(E, op == AST_LSHIFT ? "bitwise_left_shift" : "bitwise_right_shift", node, 2,
                     em_op(E, "prim_NumToTensor", node, 1, a), b);
    default:
        return em_op(E, "matmul", node, 2, a, b);
    }
}

/* The letter of a format's conversion number `index` (from 0), 's' where it is not known. */
static char conversion(const ir_value *format, size_t index) {
    rt_value c;
    if (!ir_const_value(format, &c) || c.tag != RT_TAG_STR)
        return 's';
    ts_str s = rt_str_text(c.as.str);
    for (size_t i = 0; i < s.length; i++) {
        if (s.data[i] != '%')
            continue;
        for (i++; i < s.length && strchr("#0- +.123456789", s.data[i]); i++) {}
        if (i < s.length && s.data[i] != '%' && index-- == 0)
            return s.data[i];
    }
    return 's';
}

static ir_value *percent_item(emitter *E, ir_value *format, size_t index, em v, const ast_node *node) {
    if (conversion(format, index) == 's')
        return em_shown(E, v, node);
    ir_value *x = em_ir(E, v, node, NULL);
    if (x && conversion(format, index) == 'r') /* which `without_repr` makes an s */
        return em_repr(E, x, node);
    return x && x->type->kind == IR_TENSOR ? em_op(E, "item", node, 1, x) : x;
}

/* The format with %s where %r stands. */
static ir_value *without_repr(emitter *E, ir_value *format) {
    rt_value c;
    if (!ir_const_value(format, &c) || c.tag != RT_TAG_STR)
        return format;
    ts_str s = rt_str_text(c.as.str);
    char *text = memcpy(TS_NEW_ARRAY(E->arena, char, s.length + 1), s.data, s.length);
    for (size_t i = 0; i < s.length; i++) {
        if (s.data[i] != '%')
            continue;
        for (i++; i < s.length && strchr("#0- +.123456789", s.data[i]); i++) {}
        if (i < s.length && s.data[i] == 'r')
            text[i] = 's';
    }
    return ir_build_str(&E->b, (ts_str){text, s.length});
}

/* "%(name)d" % dict: the format without names, and the items in their order. */
static void by_name(emitter *E, ir_value **format, em *args, const ast_node *node) {
    rt_value c;
    bool is_dict = args->kind == EM_VALUE && args->value->type->kind == IR_DICT;
    if (!is_dict || !ir_const_value(*format, &c) || c.tag != RT_TAG_STR)
        return;
    ts_str s = rt_str_text(c.as.str);
    ts_buffer out = {0};
    em *items = TS_NEW_ARRAY(E->arena, em, s.length + 1);
    size_t count = 0;
    for (size_t i = 0; i < s.length; i++) {
        ts_buffer_char(&out, s.data[i]);
        if (s.data[i] != '%' || i + 1 == s.length)
            continue;
        const char *end = s.data[i + 1] == '(' ? memchr(s.data + i, ')', s.length - i) : NULL;
        if (!end) {
            ts_buffer_char(&out, s.data[++i]);
            continue;
        }
        ts_str name = {s.data + i + 2, (size_t)(end - s.data) - i - 2};
        items[count++] = em_value(em_op(E, "__getitem__", node, 2, args->value, ir_build_str(&E->b, name)));
        i = (size_t)(end - s.data);
    }
    if (count) {
        *format = ir_build_str(&E->b, (ts_str){out.data, out.length});
        *args = (em){.kind = EM_TUPLE, .items = items, .count = count};
    }
    ts_buffer_deinit(&out);
}

static ir_value *percent(emitter *E, ir_value *format, em args, const ast_node *node) {
    ir_value *tuple;
    by_name(E, &format, &args, node);
    if (is_tuple(args)) {
        em items = tuple_items(E, args);
        ir_value **values = TS_NEW_ARRAY(E->arena, ir_value *, items.count + 1);
        for (size_t i = 0; i < items.count; i++) {
            values[i] = percent_item(E, format, i, items.items[i], node);
            if (!values[i])
                return NULL;
        }
        tuple = em_tuple_of(E, values, items.count);
    } else {
        ir_value *one = percent_item(E, format, 0, args, node);
        if (!one)
            return NULL;
        tuple = em_tuple_of(E, &one, 1);
    }
    return em_row(E, "percentFormat", node, 2, without_repr(E, format), tuple);
}

/* A member of an IntEnum or StrEnum as its value; other ems stay. */
bool em_is_mixed_enum(em v) {
    const rt_value *known = v.kind == EM_BINDING && v.binding->kind == FE_VALUE ? &v.binding->value : NULL;
    const ir_class *c = known && known->tag == RT_TAG_ENUM ? known->as.enumeration->class_->info
                        : v.kind == EM_VALUE && v.value && v.value->type->kind == IR_ENUM ? v.value->type->class_ : NULL;
    const fe_class *class_ = fe_class_of(c);
    return class_ && class_->is_mixed_enum;
}

em em_enum_value(emitter *E, em v, const ast_node *node) {
    if (v.kind == EM_BINDING && v.binding->kind == FE_VALUE && v.binding->value.tag == RT_TAG_ENUM)
        v = em_value(em_ir(E, v, node, NULL));
    fe_class *c = v.kind == EM_VALUE && v.value && v.value->type->kind == IR_ENUM ? fe_class_of(v.value->type->class_) : NULL;
    return c && c->is_number_enum ? em_attribute_of(E, v, TS_STR("value"), node, false) : v;
}

/* What a method gave says that it does not know the other operand. */
static bool is_not_implemented(em v) {
    return v.kind == EM_VALUE && v.value->type->kind == IR_CLASS &&
           ts_str_is(v.value->type->class_->base.name, "name.builtins.NotImplemented");
}

/* keys() and items() of a dict are sets, too. */
static bool is_set_view(em v) {
    return v.kind == EM_ITEMS && (ts_str_is(v.name, "keys") || ts_str_is(v.name, "items"));
}

/* A constant, a length, a place in a loop, or a sum or product of such. */
static bool is_never_negative(const ir_value *v, int depth) {
    static const char *const sizes[] = {"len", "dim", "size.int", "numel", "abs", "bitwise_and"};
    static const char *const closed[] = {"add.int", "mul.int", "floordiv.int", "prim_max.int"};
    int64_t known;
    if (ir_const_int(v, &known))
        return known >= 0;
    if (!v->def) /* the counter of a loop */
        return v->block->parent && v->block->parent->opcode == IR_OP_LOOP && v->index == 0;
    if (v->def->opcode != IR_OP_CORE || depth > 6)
        return false;
    ts_str name = rt_op_name(v->def->core);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (ts_str_starts_with(name, sizes[i]))
            return true;
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
        if (ts_str_is(name, closed[i]) && v->def->operand_count == 2)
            return is_never_negative(v->def->operands[0], depth + 1) && is_never_negative(v->def->operands[1], depth + 1);
    return false;
}

/* An item of tolist(), an exception's argument: beside a number it is one, of which kind is known at run time. */
static em number_beside(emitter *E, em v, em other) {
    bool is_any = v.kind == EM_VALUE && v.value && v.value->type->kind == IR_ANY;
    bool is_beside = other.kind == EM_VALUE && other.value && em_is_number(other.value->type);
    return is_any && is_beside ? em_value(em_check_cast(E, v.value, em_simple(E, IR_NUMBER))) : v;
}

em em_binary(emitter *E, ast_operator op, em a, em b, bool in_place, const ast_node *node) {
    if (a.kind == EM_ERROR || b.kind == EM_ERROR)
        return em_error();
    a = em_enum_value(E, a, node);
    b = em_enum_value(E, b, node);
    size_t row = 0;
    while (row < sizeof binary_table / sizeof *binary_table && binary_table[row].op != op)
        row++;
    if (a.kind == EM_BINDING && a.binding->kind == FE_VALUE)
        a = em_value(em_ir(E, a, node, NULL));
    if (b.kind == EM_BINDING && b.binding->kind == FE_VALUE)
        b = em_value(em_ir(E, b, node, NULL));
    if (em_is_number_or_tensor(a) || em_is_number_or_tensor(b))
        return em_binary_by_part(E, op, a, b, in_place, node);
    if (em_is_script(node)) {
        a = number_beside(E, a, b);
        b = number_beside(E, b, a);
    }
    if (op == AST_ADD && em_is_script(node) && adds_list_and_tuple(a, b, in_place, node))
        return kinds_refused(E, is_tuple(a) || stands_for_tuple(a), node);
    if (op == AST_ADD && is_tuple(a) && is_tuple(b))
        return add_tuples(E, a, b);
    int64_t n;
    if (op == AST_MUL && is_tuple(a) && b.kind == EM_VALUE && ir_const_int(b.value, &n))
        return repeat_tuple(E, a, n);
    if (op == AST_MUL && is_tuple(b) && a.kind == EM_VALUE && ir_const_int(a.value, &n))
        return repeat_tuple(E, b, n);
    if ((op == AST_MUL && (is_int(a) || is_int(b))) || (op == AST_ADD && (is_list(a) || is_list(b)))) {
        a = tuple_as_list(E, a, node);
        b = tuple_as_list(E, b, node);
    }
    bool is_set_operation = op == AST_BITOR || op == AST_BITAND || op == AST_SUB || op == AST_BITXOR;
    if (is_set_operation && (is_set_view(a) || is_set_view(b))) {
        a = em_value(em_set_from(E, a, node, NULL));
        b = em_value(em_set_from(E, b, node, a.kind == EM_VALUE ? a.value->type : NULL));
    }
    ir_value *x = em_ir(E, a, node, NULL);
    if (!x)
        return em_error();
    if (op == AST_MOD && x->type->kind == IR_STR)
        return em_value(percent(E, x, b, node));
    if (in_place && em_class_has_method(x->type, binary_table[row].in_place_method))
        return em_call_method0(E, x, binary_table[row].in_place_method, &b, 1, node);
    if (em_class_has_method(x->type, binary_table[row].method)) {
        em r = em_call_method0(E, x, binary_table[row].method, &b, 1, node);
        if (!is_not_implemented(r))
            return r;
    }
    ir_value *y = em_ir(E, b, node, x->type->kind == IR_LIST ? x->type : NULL);
    if (!y)
        return em_error();
    if (em_class_has_method(y->type, binary_table[row].reflected)) {
        em left = em_value(x);
        return em_call_method0(E, y, binary_table[row].reflected, &left, 1, node);
    }
    if (x->type->kind == IR_LIST) {
        if (op == AST_ADD && y->type->kind == IR_LIST && !ir_type_same_shape_of(x->type, y->type) &&
            (em_retype_empty(E, x, y->type) || em_retype_empty(E, y, x->type)))
            return em_value(em_uninitialized(E, x->type));
        if (op == AST_ADD) {
            y = y->type->kind == IR_LIST && !ir_type_same_shape_of(x->type, y->type) &&
                        em_conversion_cost(E, y, x->type, 0) >= 0
                    ? em_coerce(E, y, x->type, 0, node, "the list") : y;
            if (in_place && !stands_for_tuple(a)) {
                if (y && y->type->kind != IR_LIST)
                    y = em_op(E, "list", node, 1, y);
                em_op(E, "extend", node, 2, x, y);
                return a;
            }
            ir_value **items;
            size_t count;
            if (y && !ir_type_same_shape_of(x->type, y->type) && em_is_list_literal(x, &items, &count) &&
                em_conversion_cost(E, x, y->type, 0) >= 0)
                x = em_coerce(E, x, y->type, 0, node, "the list");
            return (em){.kind = EM_VALUE, .value = em_op(E, "add", node, 2, x, y),
                         .is_tuple = a.is_tuple, .is_size = a.is_size || b.is_size};
        }
        if (op == AST_MUL && in_place && !stands_for_tuple(a) && fe_operator_exists(E->fe, TS_STR("mul_"))) {
            em_op(E, "mul_", node, 2, x, y);
            return a;
        }
        if (op == AST_MUL && stands_for_tuple(a))
            return (em){.kind = EM_VALUE, .value = em_op(E, "mul", node, 2, x, y), .is_tuple = a.is_tuple, .is_size = a.is_size};
    }
    if (op == AST_MATMUL && (em_is_number(x->type) || em_is_number(y->type)) &&
        (x->type->kind == IR_TENSOR || y->type->kind == IR_TENSOR)) {
        EM_ERR(E, node, "expected Tensors for @, found %s and %s", em_type_text(E, x->type), em_type_text(E, y->type));
        return em_error();
    }
    bool is_bitwise = (is_set_operation && op != AST_SUB) || op == AST_LSHIFT || op == AST_RSHIFT;
    if (is_bitwise && em_is_number(x->type) && em_is_number(y->type) && (x->type->kind == IR_FLOAT || y->type->kind == IR_FLOAT)) {
        EM_ERR(E, node, "expected ints for a bitwise operator, found %s and %s", em_type_text(E, x->type), em_type_text(E, y->type));
        return em_error();
    }
    if (em_is_set_type(x->type) && em_is_set_type(y->type) && is_set_operation)
        return em_set_binary(E, op, x, y, in_place, node);
    if (x->type->kind == IR_DICT && y->type->kind == IR_DICT && op == AST_BITOR) {
        ir_value *copy = in_place ? x : em_op(E, "copy", node, 1, x);
        em_op(E, "update", node, 2, copy, y);
        return em_value(copy);
    }
    bool tx = is_tensor(x), ty = is_tensor(y);
    if (tx && in_place && binary_table[row].in_place) {
        em_op(E, binary_table[row].in_place, node, 2, x, y);
        return a;
    }
    if (!tx && ty && em_is_number(x->type))
        return em_value(reflected(E, op, x, y, node));
    if (tx || ty)
        return em_value(em_op(E, binary_table[row].tensor, node, 2, x, y));
    ir_kind kx = x->type->kind, ky = y->type->kind;
    if (op == AST_POW && (kx == IR_INT || kx == IR_BOOL) && (ky == IR_INT || ky == IR_BOOL)) {
        int64_t exponent;
        bool is_known = ir_const_int(y, &exponent);
        if (!is_known && em_is_script(node) && !is_never_negative(y, 0)) /* which of both it gives is known at run time */
            return em_value(em_row(E, "prim_pow", node, 2, em_cast(E, x, em_simple(E, IR_NUMBER)),
                                   em_cast(E, y, em_simple(E, IR_NUMBER))));
        if (!is_known || exponent >= 0) {
            x = em_coerce(E, x, em_simple(E, IR_INT), 0, node, "the base");
            y = em_coerce(E, y, em_simple(E, IR_INT), 0, node, "the exponent");
            return em_value(em_row(E, "pow.int_to_int", node, 2, x, y));
        }
    }
    if ((op == AST_POW || op == AST_DIV) && (kx == IR_COMPLEX) != (ky == IR_COMPLEX)) {
        ir_value **real = kx == IR_COMPLEX ? &y : &x;
        *real = em_op(E, "Complex", node, 2, *real, ir_build_int(&E->b, 0));
        return em_value(*real ? em_row(E, op == AST_POW ? "pow.complex" : "div.complex", node, 2, x, y) : NULL);
    }
    bool may_be_ints = (kx == IR_NUMBER && ky != IR_FLOAT && ky != IR_COMPLEX) ||
                       (ky == IR_NUMBER && kx != IR_FLOAT && kx != IR_COMPLEX);
    if (op == AST_POW && may_be_ints && node->source && !node->source->is_archive)
        return em_value(em_row(E, "prim_pow", node, 2, x, y));
    return em_value(em_op(E, binary_table[row].number, node, 2, x, y));
}

em em_unary(emitter *E, const ast_node *node) {
    if (node->op == AST_NOT) {
        em_condition c = em_condition_of(E, node);
        return em_value(em_condition_ir(E, &c));
    }
    if (node->op == AST_NEG && node->left->kind == AST_INT) {
        if (!node->left->is_big && node->left->integer != INT64_MIN)
            return em_value(ir_build_int(&E->b, -node->left->integer));
        if (ts_str_is(node->left->text, "9223372036854775808"))
            return em_value(ir_build_int(&E->b, INT64_MIN));
    }
    ir_value *v = em_expression_ir(E, node->left, NULL);
    if (!v)
        return em_error();
    em_place(E, node);
    return em_is_number_or_tensor(em_value(v)) ? em_unary_by_part(E, v, false, node) : em_unary_of(E, v, node);
}

em em_unary_of(emitter *E, ir_value *v, const ast_node *node) {
    double f;
    if (node->op == AST_NEG && v->type->kind == IR_FLOAT && ir_const_double(v, &f))
        return em_value(ir_build_float(&E->b, -f));
    const char *method = node->op == AST_NEG ? "__neg__" : node->op == AST_POS ? "__pos__" : "__invert__";
    if (em_class_has_method(v->type, method))
        return em_call_method0(E, v, method, NULL, 0, node);
    bool tensor = is_tensor(v);
    if (v->type->kind == IR_BOOL)
        v = em_coerce(E, v, em_simple(E, IR_INT), 0, node, "the operand");
    switch (node->op) {
    case AST_NEG:
        return em_value(em_op(E, "neg", node, 1, v));
    case AST_POS:
        return tensor && fe_operator_exists(E->fe, TS_STR("positive"))
                   ? em_value(em_op(E, "positive", node, 1, v)) : em_value(v);
    default:
        return em_value(em_op(E, tensor ? "bitwise_not" : "prim_invert", node, 1, v));
    }
}

/* ---- comparison ---- */

static const struct {
    ast_operator op;
    const char *name, *swapped, *generic, *method, *swapped_method;
} compare_table[] = {{AST_EQ, "eq", "eq", "prim_eq", "__eq__", "__eq__"},
                     {AST_NE, "ne", "ne", "prim_ne", "__ne__", "__ne__"},
                     {AST_LT, "lt", "gt", "prim_lt", "__lt__", "__gt__"},
                     {AST_LE, "le", "ge", "prim_le", "__le__", "__ge__"},
                     {AST_GT, "gt", "lt", "prim_gt", "__gt__", "__lt__"},
                     {AST_GE, "ge", "le", "prim_ge", "__ge__", "__le__"}};

static ir_value *negate(emitter *E, ir_value *v, const ast_node *node) {
    bool b;
    if (v && ir_const_bool(v, &b))
        return ir_build_bool(&E->b, !b);
    return v ? em_row(E, "__not__", node, 1, v) : NULL;
}

/* Fields of two objects of a dataclass, compared as tuples. */
static ir_value *compare_dataclass(emitter *E, const char *row, ir_value *a, ir_value *b,
                                   const ast_node *node) {
    const ir_class *c = a->type->class_;
    ir_value *sides[2] = {a, b}, *tuples[2];
    for (int s = 0; s < 2; s++) {
        ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, c->field_count + 1);
        size_t count = 0;
        for (size_t i = 0; i < c->field_count; i++) {
            if (!em_field_option(E, fe_class_of(c), c->fields[i].name, "compare", true))
                continue;
            ir_op *op = ir_build_op(&E->b, IR_OP_GET_ATTR, &sides[s], 1, &c->fields[i].type, 1);
            op->name = c->fields[i].name;
            items[count++] = op->results[0];
        }
        tuples[s] = em_tuple_of(E, items, count);
    }
    return em_row(E, row, node, 2, tuples[0], tuples[1]);
}

static bool is_exception_class(em v) {
    return v.binding->kind == FE_CLASS && v.binding->class_->kind == RT_CLASS_EXCEPTION;
}

static ir_value *identity(emitter *E, ast_operator op, em a, em b, const ast_node *node) {
    bool negated = op == AST_IS_NOT || op == AST_NE;
    bool sa = a.kind == EM_BINDING && a.binding->kind != FE_VALUE;
    bool sb = b.kind == EM_BINDING && b.binding->kind != FE_VALUE;
    if (sa != sb && is_exception_class(sa ? a : b) && (sa ? b : a).kind == EM_VALUE &&
        (sa ? b : a).value->type->kind == IR_STR) { /* the name that __exit__ is given */
        ir_value *name = ir_build_str(&E->b, (sa ? a : b).binding->class_->bare_name);
        return em_row(E, negated ? "ne.str" : "eq.str", node, 2, (sa ? b : a).value, name);
    }
    if (sa || sb) {
        bool same = sa && sb && a.binding->kind == b.binding->kind &&
                    a.binding->function == b.binding->function && a.binding->class_ == b.binding->class_ &&
                    ts_str_equal(a.binding->path, b.binding->path);
        return ir_build_bool(&E->b, same != negated);
    }
    ir_value *x = em_ir(E, a, node, NULL), *y = em_ir(E, b, node, NULL);
    return em_row(E, negated ? "__isnot__" : "__is__", node, 2, x, y);
}

static bool is_none(em v) {
    return (v.kind == EM_VALUE && v.value->type->kind == IR_NONE) ||
           (v.kind == EM_BINDING && v.binding->kind == FE_VALUE && rt_is_none(v.binding->value));
}

/* A name known only at run time is that of a module or parameter of a ModuleDict or ParameterDict. */
static ir_value *is_child_name(emitter *E, const ir_class *c, ir_value *name, const ast_node *node) {
    ir_value *found = ir_build_bool(&E->b, false);
    for (size_t i = 0; i < c->field_count; i++) {
        const ir_type *t = c->fields[i].type;
        if (t->kind == IR_TENSOR || (t->kind == IR_CLASS && t->class_->base.kind == RT_CLASS_MODULE))
            found = em_row(E, "__or__.bool", node, 2, found,
                           em_row(E, "eq.str", node, 2, name, ir_build_str(&E->b, c->fields[i].name)));
    }
    return found;
}

static ir_value *contains(emitter *E, em item, em container, const ast_node *node) {
    if (container.kind == EM_VALUE && em_class_has_method(container.value->type, "__contains__")) {
        em r = em_call_method0(E, container.value, "__contains__", &item, 1, node);
        return r.kind == EM_VALUE ? em_truth(E, r, node) : NULL;
    }
    if (container.kind == EM_VALUE && container.value->type->kind == IR_CLASS &&
        container.value->type->class_->base.kind == RT_CLASS_MODULE) {
        ir_value *k = em_ir(E, item, node, NULL);
        rt_value key;
        if (k && ir_const_value(k, &key) && key.tag == RT_TAG_STR)
            return ir_build_bool(&E->b, em_find_field(container.value->type->class_,
                                                      rt_str_text(key.as.str)) != NULL);
        if (k && k->type->kind == IR_STR)
            return is_child_name(E, container.value->type->class_, k, node);
    }
    if (container.kind == EM_BINDING && container.binding->kind == FE_CLASS && container.binding->class_->kind == RT_CLASS_ENUM) {
        ir_value *member = em_ir(E, item, node, NULL);
        return member ? ir_build_bool(&E->b, member->type->kind == IR_ENUM &&
                                                 fe_class_of(member->type->class_) == container.binding->class_) : NULL;
    }
    if (container.kind == EM_ITEMS && ts_str_is(container.name, "keys"))
        container = em_value(container.value);
    if (is_tuple(container)) { /* item by item, so that user's __eq__ and tensors work */
        em items = tuple_items(E, container);
        bool plain = true;
        for (size_t i = 0; i < items.count; i++) {
            ir_value *v = em_ir(E, items.items[i], node, NULL);
            plain = plain && v && v->type->kind != IR_CLASS;
        }
        if (!plain) {
            EM_UNSUPPORTED(E, node, "`in` over these items is not supported yet");
            return NULL;
        }
    }
    ir_value *c = em_ir(E, container, node, NULL);
    ir_value *x = em_ir(E, item, node, NULL);
    if (!c || !x)
        return NULL;
    if (c->type->kind == IR_OPTIONAL)
        c = em_check_cast(E, c, c->type->args[0]);
    if (c->type->kind == IR_TENSOR) {
        ir_value *eq = em_op(E, "eq", node, 2, c, x);
        ir_value *any = em_op(E, "any", node, 1, eq);
        return em_op(E, "Bool", node, 1, any);
    }
    bool is_object = c->type->kind == IR_CLASS && c->type->class_->base.kind == RT_CLASS_PLAIN;
    if (is_object || (c->type->kind == IR_LIST && em_has_own_equality(c->type->args[0], 8))) {
        em operands[2] = {em_value(c), em_value(x)};
        return em_ir(E, em_call_python(E, "builtins.contains_equal", operands, 2, node), node, NULL);
    }
    if (c->type->kind == IR_DICT)
        x = em_same_key(E, c, em_ir(E, em_key(E, item, node), node, NULL), node);
    return em_row(E, "prim_contains", node, 2, c, x);
}

static bool is_totally_ordered(emitter *E, const fe_class *c) {
    for (size_t i = 0; c && c->node && i < c->node->decorators.count; i++) {
        fe_binding b = fe_resolve_dotted(E->fe, c->scope, c->node->decorators.items[i]);
        if (b.kind == FE_NAME && ts_str_is(b.path, "functools.total_ordering"))
            return true;
    }
    return false;
}

/* A list of the program's: written out, or a parameter that is declared as one. */
static bool is_surely_list(emitter *E, const ir_value *v) {
    ir_value **items;
    size_t count;
    const ast_parameters *p = E->function ? &E->function->node->parameters : NULL;
    for (size_t i = 0; p && i < p->count && i < E->f->body->parameter_count; i++)
        if (E->f->body->parameters[i] == v)
            return p->items[i].annotation != NULL;
    return em_is_list_literal(v, &items, &count);
}

/* A list that stands for a tuple compares as a list with another such, with a tuple of the same types,
 * and with a list that may stand for one, too. True: with a list of the program's, which a tuple never
 * equals, or with other values: both are to be what they are in Python. */
static bool tuples_of_unknown_length(emitter *E, em *a, em *b, const ast_node *node) {
    if (!stands_for_tuple(*a) && !stands_for_tuple(*b))
        return false;
    em *list = stands_for_tuple(*a) ? a : b, *other = list == a ? b : a;
    *other = tuple_as_list(E, *other, node);
    const ir_type *t = other->kind == EM_VALUE ? other->value->type : NULL;
    bool alike = t && ir_type_same_shape_of(t, list->value->type) &&
                 (stands_for_tuple(*other) || !is_surely_list(E, other->value));
    list->is_tuple = list->is_tuple || list->is_size;
    return !alike;
}

ir_value *em_compare_two(emitter *E, ast_operator op, em a, em b, const ast_node *node) {
    if (a.kind == EM_ERROR || b.kind == EM_ERROR)
        return NULL;
    if (op == AST_IN || op == AST_NOT_IN) {
        ir_value *v = contains(E, a, b, node);
        return op == AST_IN ? v : negate(E, v, node);
    }
    if (is_none(a) || is_none(b)) {
        em other = is_none(b) ? a : b;
        if (op == AST_IS || op == AST_IS_NOT || op == AST_EQ || op == AST_NE) {
            em_condition c = em_none_test(E, other, NULL, op == AST_IS_NOT || op == AST_NE, node);
            return em_condition_ir(E, &c);
        }
    }
    if (op == AST_IS || op == AST_IS_NOT)
        return identity(E, op, a, b, node);
    if (em_is_number_or_tensor(a) || em_is_number_or_tensor(b))
        return em_compare_by_part(E, op, a, b, node);
    if ((a.kind == EM_BINDING && a.binding->kind != FE_VALUE) ||
        (b.kind == EM_BINDING && b.binding->kind != FE_VALUE))
        return identity(E, op, a, b, node);
    a = em_enum_value(E, a, node);
    b = em_enum_value(E, b, node);
    bool as_tuples = tuples_of_unknown_length(E, &a, &b, node);
    ir_value *x = as_tuples ? em_as_python(E, a, node) : em_ir(E, a, node, NULL);
    ir_value *y = as_tuples ? em_as_python(E, b, node) : em_ir(E, b, node, NULL);
    if (!x || !y)
        return NULL;
    size_t row = 0;
    while (compare_table[row].op != op)
        row++;
    const ir_type *tx = x->type, *ty = y->type;
    em ex = em_value(x), ey = em_value(y);
    if (em_class_has_method(tx, compare_table[row].method)) {
        em r = em_call_method0(E, x, compare_table[row].method, &ey, 1, node);
        if (!is_not_implemented(r))
            return em_truth(E, r, node);
    }
    if (op == AST_NE && em_class_has_method(tx, "__eq__")) {
        em r = em_call_method0(E, x, "__eq__", &ey, 1, node);
        if (!is_not_implemented(r))
            return negate(E, em_truth(E, r, node), node);
    }
    if (em_class_has_method(ty, compare_table[row].swapped_method)) {
        em r = em_call_method0(E, y, compare_table[row].swapped_method, &ex, 1, node);
        if (!is_not_implemented(r))
            return em_truth(E, r, node);
    }
    if (op >= AST_LT && op <= AST_GE && tx == ty && em_class_has_method(tx, "__lt__") && op != AST_LT &&
        is_totally_ordered(E, fe_class_of(tx->class_))) {
        ir_value *less = em_compare_two(E, AST_LT, ex, ey, node), *equal = em_compare_two(E, AST_EQ, ex, ey, node);
        if (!less || !equal)
            return NULL;
        ir_value *most = em_row(E, "__or__.bool", node, 2, less, equal);
        return op == AST_GE ? negate(E, less, node) : op == AST_LE ? most : negate(E, most, node);
    }
    if (tx->kind == IR_CLASS && tx == ty && fe_class_of(tx->class_) &&
        fe_class_of(tx->class_)->is_dataclass && (op == AST_EQ || op == AST_NE) &&
        em_dataclass_option(E, fe_class_of(tx->class_), "eq", true)) {
        ir_value *same = em_equal_dataclass(E, x, y, node);
        return op == AST_NE ? negate(E, same, node) : same;
    }
    if (tx->kind == IR_CLASS && tx == ty && op != AST_EQ && op != AST_NE && fe_class_of(tx->class_) &&
        em_is_ordered_dataclass(E, fe_class_of(tx->class_)))
        return compare_dataclass(E, compare_table[row].generic, x, y, node);
    if ((tx->kind == IR_CLASS || ty->kind == IR_CLASS) && tx->kind != IR_OPTIONAL && ty->kind != IR_OPTIONAL) {
        if (op == AST_EQ || op == AST_NE)
            return identity(E, op, ex, ey, node);
        EM_ERR(E, node, "%s and %s cannot be ordered", em_type_text(E, tx), em_type_text(E, ty));
        return NULL;
    }
    bool is_known = false;
    ir_value *deep = op == AST_EQ || op == AST_NE ? em_equal_deep(E, x, y, node, &is_known) : NULL;
    if (is_known)
        return op == AST_NE ? negate(E, deep, node) : deep;
    if (em_is_set_type(tx) && em_is_set_type(ty))
        return em_set_compare(E, op, x, y, node);
    if ((is_set_view(a) || is_set_view(b)) && (tx->kind == IR_LIST || em_is_set_type(tx)) && (ty->kind == IR_LIST || em_is_set_type(ty))) {
        ir_value *p = em_set_from(E, ex, node, NULL), *q = em_set_from(E, ey, node, NULL);
        return p && q ? em_set_compare(E, op, p, q, node) : NULL;
    }
    bool numbers = em_is_number(tx) && em_is_number(ty);
    bool strings = tx->kind == IR_STR && ty->kind == IR_STR;
    rt_value known_x, known_y;
    bool is_equality = strings && (op == AST_EQ || op == AST_NE);
    if (is_equality && ir_const_value(x, &known_x) && ir_const_value(y, &known_y)) /* a branch for one child's name */
        return ir_build_bool(&E->b, ts_str_equal(rt_str_text(known_x.as.str), rt_str_text(known_y.as.str)) == (op == AST_EQ));
    if (is_tensor(x) || is_tensor(y)) {
        if (!is_tensor(x) && em_is_number(tx))
            return em_op(E, compare_table[row].swapped, node, 2, y, x);
        if ((op == AST_EQ || op == AST_NE) && !em_is_number(ty) && !is_tensor(y))
            return em_row(E, compare_table[row].generic, node, 2, x, y);
        return em_op(E, compare_table[row].name, node, 2, x, y);
    }
    if (numbers || strings)
        return em_op(E, compare_table[row].name, node, 2, x, y);
    return em_row(E, compare_table[row].generic, node, 2, x, y);
}

em em_compare(emitter *E, const ast_node *node) {
    em left = em_expression(E, node->list.items[0], NULL);
    em right = em_expression(E, node->list.items[1], NULL);
    if (left.kind == EM_ERROR || right.kind == EM_ERROR)
        return em_error();
    em_place(E, node);
    ir_value *v = em_compare_two(E, node->ops[0], left, right, node);
    if (!v)
        return em_error();
    size_t count = node->list.count;
    if (count == 2)
        return em_value(v);
    /* a < b < c: c is evaluated only where a < b. */
    em_choice *choices = TS_NEW_ARRAY(E->arena, em_choice, count);
    size_t open = 0;
    for (size_t i = 2; i < count && v; i++) {
        if (right.kind != EM_VALUE)
            right = em_value(em_ir(E, right, node, NULL));
        em_choose(E, &choices[open++], em_truth(E, em_value(v), node));
        em next = em_expression(E, node->list.items[i], NULL);
        v = em_compare_two(E, node->ops[i - 1], right, next, node);
        right = next;
    }
    bool failed = !v;
    while (open) {
        em_choice *c = &choices[--open];
        em_choose_other(E, c, v);
        v = em_choose_end(E, c, ir_build_bool(&E->b, false), node);
    }
    return failed ? em_error() : em_value(v);
}
