/* ir/verify.c - the rules of docs/ir.md, one function each; a message names the rule it broke. */
#include "ir/ir_internal.h"

enum { REGION_DEPTH = 1000 };

typedef struct verifier {
    ir_module *m;
    ts_arena *arena;
    const ir_function *function;
    const ir_value **visible; /* by value number */
    size_t count, capacity;
} verifier;

static const char *name_of(const ir_op *op, char out[64]) {
    ts_str name = op->opcode == IR_OP_CORE ? rt_op_name(op->core)
                                           : ts_str_of(ir_opcode_name(op->opcode));
    size_t length = name.length > 63 ? 63 : name.length;
    memcpy(out, name.data, length);
    out[length] = 0;
    return out;
}

static ts_status broken(const verifier *v, const ir_op *op, const char *rule, const char *text) {
    char name[64] = "the function";
    return ts_error_at(TS_ERR_INTERNAL, op ? op->place : v->function->place,
                       "rule %s: %s in @%.*s: %s", rule, op ? name_of(op, name) : name,
                       TS_STR_ARG(v->function->name), text);
}

static ts_status type_error(const verifier *v, const ir_op *op, const char *rule,
                            const ir_type *expected, const ir_type *found) {
    ts_str e = ir_type_text(v->m, expected), f = ir_type_text(v->m, found);
    char name[64];
    return ts_error_at(TS_ERR_INTERNAL, op->place, "rule %s: %s in @%.*s: expected %.*s, found %.*s",
                       rule, name_of(op, name), TS_STR_ARG(v->function->name), TS_STR_ARG(e),
                       TS_STR_ARG(f));
}

static ts_status need_type(const verifier *v, const ir_op *op, const char *rule,
                           const ir_type *found, const ir_type *expected) {
    return ir_type_is_refinement(found, expected) ? NULL : type_error(v, op, rule, expected, found);
}

static ts_status need_kind(const verifier *v, const ir_op *op, const char *rule, const ir_value *x,
                           ir_kind kind) {
    if (x->type->kind == kind)
        return NULL;
    return type_error(v, op, rule, ir_type_simple(v->m, kind), x->type);
}

static ts_status need_counts(const verifier *v, const ir_op *op, const char *rule, size_t operands,
                             size_t results, size_t regions) {
    if (op->operand_count == operands && op->result_count == results &&
        op->region_count == regions)
        return NULL;
    char name[64];
    return ts_error_at(TS_ERR_INTERNAL, op->place,
                       "rule %s: %s in @%.*s: expected %zu operands, %zu results and %zu regions, "
                       "found %zu, %zu and %zu",
                       rule, name_of(op, name), TS_STR_ARG(v->function->name), operands, results,
                       regions, op->operand_count, op->result_count, op->region_count);
}

/* ---- structure ---- */

static void show(verifier *v, ir_value *x) {
    x->number = (uint32_t)v->count;
    TS_APPEND(v->arena, v->visible, v->count, v->capacity, x);
}

static ts_status rule_links(const verifier *v, const ir_block *b, const ir_op *op) {
    if (op->block != b || (op->previous ? op->previous->next : b->first) != op ||
        (op->next ? op->next->previous : b->last) != op)
        return broken(v, op, "links", "expected an operator linked into its block");
    for (size_t i = 0; i < op->result_count; i++)
        if (op->results[i]->def != op || op->results[i]->index != i)
            return broken(v, op, "links", "expected results that name their operator");
    for (size_t i = 0; i < op->region_count; i++)
        if (op->regions[i]->parent != op || op->regions[i]->function != v->function)
            return broken(v, op, "links", "expected regions that name their operator");
    return NULL;
}

static ts_status rule_uses(const verifier *v, const ir_op *op) {
    const ir_value *before = NULL;
    size_t after = 0; /* where the use of the operand before stands, + 1 */
    for (size_t i = 0; i < op->operand_count; i++) {
        const ir_value *x = op->operands[i];
        /* A list of one value thousands of times: its uses stand one after the other. */
        bool found = x == before && after < x->use_count && x->uses[after].op == op &&
                     x->uses[after].operand == i;
        if (found)
            after++;
        /* Constants may have thousands of uses; the newest stand last. */
        for (size_t j = x->use_count; j-- > 0 && !found;) {
            found = x->uses[j].op == op && x->uses[j].operand == i;
            after = j + 1;
        }
        before = x;
        if (!found)
            return broken(v, op, "uses", "expected each operand to list this use");
    }
    return NULL;
}

static ts_status rule_dominance(const verifier *v, const ir_op *op) {
    for (size_t i = 0; i < op->operand_count; i++) {
        const ir_value *x = op->operands[i];
        if (x->number >= v->count || v->visible[x->number] != x) {
            char name[64];
            return ts_error_at(TS_ERR_INTERNAL, op->place,
                               "rule dominance: %s in @%.*s: operand %zu%s%.*s is not defined here",
                               name_of(op, name), TS_STR_ARG(v->function->name), i,
                               x->name.length ? " %" : "", TS_STR_ARG(x->name));
        }
    }
    return NULL;
}

static ts_status rule_terminator(const verifier *v, const ir_block *b) {
    ir_opcode wanted = b->parent ? IR_OP_YIELD : IR_OP_RETURN;
    if (!b->last || b->last->opcode != wanted)
        return broken(v, b->parent, "terminator",
                      b->parent ? "expected a region that ends in yield"
                                : "expected a body that ends in return");
    for (const ir_op *op = b->first; op != b->last; op = op->next)
        if (op->opcode == IR_OP_YIELD || op->opcode == IR_OP_RETURN)
            return broken(v, op, "terminator", "expected it to stand last");
    return NULL;
}

/* ---- operators ---- */

static ts_status rule_core(const verifier *v, const ir_op *op) {
    const ir_schema *s = ir_schema_of(v->m, op->core);
    if (op->region_count || (op->result_count != s->result_count && !s->is_variadic))
        return need_counts(v, op, "core", op->operand_count, s->result_count, 0);
    if (op->operand_count < s->arg_count ||
        (op->operand_count > s->arg_count && !s->is_variadic))
        return need_counts(v, op, "core", s->arg_count, s->result_count, 0);
    ir_type_bindings bindings = {0};
    for (size_t i = 0; i < s->arg_count; i++)
        if (!ir_type_match(v->m, s->args[i].type, op->operands[i]->type, &bindings))
            return type_error(v, op, "core", s->args[i].type, op->operands[i]->type);
    for (size_t i = 0; i < op->result_count && i < s->result_count; i++) {
        const ir_type *declared = ir_type_substitute(v->m, s->results[i], &bindings);
        /* A result may be wider than its operands have become since. */
        if (!ir_type_is_subtype(op->results[i]->type, declared) &&
            !ir_type_is_subtype(declared, op->results[i]->type))
            return type_error(v, op, "core", declared, op->results[i]->type);
    }
    return NULL;
}

static ts_status rule_const(const verifier *v, const ir_op *op) {
    TS_TRY(need_counts(v, op, "const", 0, 1, 0));
    const ir_type *type = op->results[0]->type;
    if (op->value.tag == RT_TAG_TENSOR)
        return need_type(v, op, "const", ir_type_of_value(v->m, op->value),
                         type->kind == IR_TENSOR && type->layout != IR_LAYOUT_ANY
                             ? ir_type_tensor(v->m, type->dtype, type->rank, type->dims,
                                              IR_LAYOUT_ANY)
                             : type);
    bool is_container = op->value.tag == RT_TAG_LIST || op->value.tag == RT_TAG_DICT ||
                        op->value.tag == RT_TAG_TUPLE;
    if (is_container) /* an empty list fits any; the types of items do not show in the value */
        return NULL;
    if (op->value.tag == RT_TAG_INT && type->kind == IR_INT) /* which of them is a dtype is no rule */
        return NULL;
    return need_type(v, op, "const", ir_type_of_value(v->m, op->value), type);
}

static ts_status rule_yields(const verifier *v, const ir_op *op, const ir_block *b, size_t skip,
                             ir_value *const *targets, size_t count) {
    const ir_op *end = b->last;
    if (end->operand_count != count + skip)
        return broken(v, op, "yield", "expected as many yielded values as results");
    for (size_t i = 0; i < count; i++)
        TS_TRY(need_type(v, end, "yield", end->operands[i + skip]->type, targets[i]->type));
    return NULL;
}

static ts_status rule_if(const verifier *v, const ir_op *op) {
    TS_TRY(need_counts(v, op, "if", 1, op->result_count, 2));
    TS_TRY(need_kind(v, op, "if", op->operands[0], IR_BOOL));
    for (int i = 0; i < 2; i++) {
        if (op->regions[i]->parameter_count)
            return broken(v, op, "if", "expected regions without parameters");
        if (op->regions[i]->last->operand_count != op->result_count)
            return broken(v, op, "yield", "expected as many yielded values as results");
    }
    /* Inference may know which arm is taken: the result then has that arm's facts, and the other
     * arm's tensor may have others. One arm must fit exactly. */
    for (size_t k = 0; k < op->result_count; k++) {
        const ir_op *end[2] = {op->regions[0]->last, op->regions[1]->last};
        const ir_type *want = op->results[k]->type;
        const ir_type *loose = ir_type_forget(v->m, want);
        bool fits[2];
        for (int i = 0; i < 2; i++) {
            fits[i] = ir_type_is_refinement(end[i]->operands[k]->type, want);
            if (!fits[i])
                TS_TRY(need_type(v, end[i], "yield", end[i]->operands[k]->type, loose));
        }
        if (!fits[0] && !fits[1])
            return type_error(v, end[0], "yield", want, end[0]->operands[k]->type);
    }
    return NULL;
}

static ts_status rule_loop(const verifier *v, const ir_op *op) {
    TS_TRY(need_counts(v, op, "loop", op->result_count + 2, op->result_count, 1));
    TS_TRY(need_kind(v, op, "loop", op->operands[0], IR_INT));
    TS_TRY(need_kind(v, op, "loop", op->operands[1], IR_BOOL));
    const ir_block *b = op->regions[0];
    if (b->parameter_count != op->result_count + 1 || b->parameters[0]->type->kind != IR_INT)
        return broken(v, op, "loop", "expected a counter and one parameter for each carried value");
    for (size_t i = 0; i < op->result_count; i++) {
        TS_TRY(need_type(v, op, "loop", op->operands[i + 2]->type, b->parameters[i + 1]->type));
        TS_TRY(need_type(v, op, "loop", b->parameters[i + 1]->type, op->results[i]->type));
    }
    TS_TRY(rule_yields(v, op, b, 1, b->parameters + 1, op->result_count));
    return need_kind(v, b->last, "loop", b->last->operands[0], IR_BOOL);
}

static ts_status rule_kernel(const verifier *v, const ir_op *op) {
    TS_TRY(need_counts(v, op, "kernel", op->operand_count, op->result_count, 1));
    const ir_block *b = op->regions[0];
    if (b->parameter_count != op->operand_count)
        return broken(v, op, "kernel", "expected one parameter for each input");
    for (size_t i = 0; i < op->operand_count; i++)
        TS_TRY(need_type(v, op, "kernel", op->operands[i]->type, b->parameters[i]->type));
    bool is_stream = op->kernel_kind == IR_KERNEL_STREAM;
    for (const ir_op *inner = b->first; is_stream && inner != b->last; inner = inner->next)
        if (inner->opcode != IR_OP_KERNEL || inner->kernel_kind == IR_KERNEL_STREAM)
            return broken(v, inner, "kernel", "expected kernels alone in a stream");
    for (const ir_op *inner = b->first; !is_stream && inner != b->last; inner = inner->next)
        if (inner->opcode != IR_OP_CORE && inner->opcode != IR_OP_CONST &&
            inner->opcode != IR_OP_LIST && inner->opcode != IR_OP_DIM)
            return broken(v, inner, "kernel", "expected operators and constants alone in a kernel");
    return rule_yields(v, op, b, 0, op->results, op->result_count);
}

static ts_status rule_call(const verifier *v, const ir_op *op) {
    const ir_function *f = op->function;
    if (!f || ir_function_find(v->m, f->name) != f)
        return broken(v, op, "call", "expected a function of the module");
    bool is_try = op->opcode == IR_OP_TRY_CALL;
    TS_TRY(need_counts(v, op, "call", f->body->parameter_count, is_try ? 4 : 1, 0));
    for (size_t i = 0; i < op->operand_count; i++)
        if (!ir_type_is_subtype(op->operands[i]->type, f->body->parameters[i]->type))
            return type_error(v, op, "call", f->body->parameters[i]->type, op->operands[i]->type);
    const ir_value *result = op->results[is_try ? 3 : 0];
    if (!ir_type_is_subtype(f->return_type, result->type))
        return type_error(v, op, "call", result->type, f->return_type);
    for (size_t i = 0; is_try && i < 3; i++)
        TS_TRY(need_kind(v, op, "call", op->results[i], i ? IR_STR : IR_BOOL));
    return NULL;
}

static ts_status rule_return(const verifier *v, const ir_op *op) {
    TS_TRY(need_counts(v, op, "return", 1, 0, 0));
    return need_type(v, op, "return", op->operands[0]->type, v->function->return_type);
}

static ts_status rule_tuple(const verifier *v, const ir_op *op) {
    const ir_type *t;
    switch (op->opcode) {
    case IR_OP_TUPLE:
        TS_TRY(need_counts(v, op, "tuple", op->operand_count, 1, 0));
        t = op->results[0]->type;
        if (t->kind == IR_ANY) /* nested beyond what types say */
            return NULL;
        if (t->kind != IR_TUPLE || t->arg_count != op->operand_count)
            return broken(v, op, "tuple", "expected a tuple type of as many items");
        for (size_t i = 0; i < t->arg_count; i++)
            TS_TRY(need_type(v, op, "tuple", op->operands[i]->type, t->args[i]));
        return NULL;
    case IR_OP_TUPLE_GET:
        TS_TRY(need_counts(v, op, "tuple", 1, 1, 0));
        t = op->operands[0]->type;
        if (t->kind != IR_TUPLE || op->integer < 0 || (size_t)op->integer >= t->arg_count)
            return broken(v, op, "tuple", "expected an item that the tuple has");
        return need_type(v, op, "tuple", t->args[op->integer], op->results[0]->type);
    default:
        TS_TRY(need_counts(v, op, "tuple", 1, op->result_count, 0));
        t = op->operands[0]->type;
        if (t->kind != IR_TUPLE || t->arg_count != op->result_count)
            return broken(v, op, "tuple", "expected one result for each item");
        for (size_t i = 0; i < t->arg_count; i++)
            TS_TRY(need_type(v, op, "tuple", t->args[i], op->results[i]->type));
        return NULL;
    }
}

static ts_status rule_container(const verifier *v, const ir_op *op) {
    const ir_type *t;
    if (op->opcode == IR_OP_LIST_UNPACK) {
        TS_TRY(need_counts(v, op, "list", 1, op->result_count, 0));
        t = op->operands[0]->type;
        if (t->kind != IR_LIST)
            return broken(v, op, "list", "expected a list");
        /* More may be known of a single tensor than of all that the list holds. */
        for (size_t i = 0; i < op->result_count; i++)
            if (!ir_type_same_shape_of(t->args[0], op->results[i]->type))
                TS_TRY(need_type(v, op, "list", t->args[0], op->results[i]->type));
        return NULL;
    }
    TS_TRY(need_counts(v, op, "list", op->operand_count, 1, 0));
    t = op->results[0]->type;
    bool is_list = op->opcode == IR_OP_LIST;
    if (t->kind != (is_list ? IR_LIST : IR_DICT) || (!is_list && op->operand_count % 2))
        return broken(v, op, "list", "expected the type of a list or dict, and pairs for a dict");
    for (size_t i = 0; i < op->operand_count; i++)
        TS_TRY(need_type(v, op, "list", op->operands[i]->type, t->args[is_list ? 0 : i % 2]));
    return NULL;
}

static ts_status rule_attribute(const verifier *v, const ir_op *op) {
    bool is_set = op->opcode == IR_OP_SET_ATTR;
    TS_TRY(need_counts(v, op, "attribute", is_set ? 2 : 1, is_set ? 0 : 1, 0));
    const ir_type *t = op->operands[0]->type;
    if (t->kind != IR_CLASS)
        return broken(v, op, "attribute", "expected an object");
    for (size_t i = 0; i < t->class_->field_count; i++) {
        const ir_field *f = &t->class_->fields[i];
        if (!ts_str_equal(f->name, op->name))
            continue;
        const ir_type *sub = is_set ? op->operands[1]->type : f->type;
        const ir_type *super = is_set ? f->type : op->results[0]->type;
        return ir_type_is_subtype(sub, super) ? NULL : type_error(v, op, "attribute", super, sub);
    }
    return broken(v, op, "attribute", "expected an attribute that the class declares");
}

static ts_status rule_operator(const verifier *v, const ir_op *op) {
    switch (op->opcode) {
    case IR_OP_CORE:
        return rule_core(v, op);
    case IR_OP_CONST:
        return rule_const(v, op);
    case IR_OP_IF:
        return rule_if(v, op);
    case IR_OP_LOOP:
        return rule_loop(v, op);
    case IR_OP_YIELD:
        return need_counts(v, op, "yield", op->operand_count, 0, 0);
    case IR_OP_RETURN:
        return rule_return(v, op);
    case IR_OP_RAISE:
        TS_TRY(need_counts(v, op, "raise", op->operand_count == 2 ? 2 : 1, 0, 0));
        if (op->operand_count == 2)
            TS_TRY(need_kind(v, op, "raise", op->operands[1], IR_STR));
        return need_kind(v, op, "raise", op->operands[0], IR_STR);
    case IR_OP_CALL:
    case IR_OP_TRY_CALL:
        return rule_call(v, op);
    case IR_OP_CALL_METHOD:
        if (op->operand_count < 1 || op->operands[0]->type->kind != IR_CLASS)
            return broken(v, op, "call", "expected an object first");
        return need_counts(v, op, "call", op->operand_count, 1, 0);
    case IR_OP_TUPLE:
    case IR_OP_TUPLE_GET:
    case IR_OP_TUPLE_UNPACK:
        return rule_tuple(v, op);
    case IR_OP_LIST:
    case IR_OP_DICT:
    case IR_OP_LIST_UNPACK:
        return rule_container(v, op);
    case IR_OP_GET_ATTR:
    case IR_OP_SET_ATTR:
        return rule_attribute(v, op);
    case IR_OP_NEW_OBJECT:
        TS_TRY(need_counts(v, op, "object", 0, 1, 0));
        return op->type && op->type->kind == IR_CLASS
                   ? need_type(v, op, "object", op->type, op->results[0]->type)
                   : broken(v, op, "object", "expected a class");
    case IR_OP_UNINITIALIZED:
        return need_counts(v, op, "cast", 0, 1, 0);
    case IR_OP_IS_INSTANCE:
        TS_TRY(need_counts(v, op, "cast", 1, 1, 0));
        return need_kind(v, op, "cast", op->results[0], IR_BOOL);
    case IR_OP_CAST:
    case IR_OP_CHECK_CAST:
        return need_counts(v, op, "cast", 1, 1, 0);
    case IR_OP_REFINE:
        TS_TRY(need_counts(v, op, "refine", 1, 1, 0));
        TS_TRY(need_kind(v, op, "refine", op->operands[0], IR_TENSOR));
        if (!op->type || op->type->kind != IR_TENSOR)
            return broken(v, op, "refine", "expected a tensor's type");
        return need_kind(v, op, "refine", op->results[0], IR_BOOL);
    case IR_OP_DIM:
        TS_TRY(need_counts(v, op, "dim", 0, 1, 0));
        return need_kind(v, op, "dim", op->results[0], IR_INT);
    case IR_OP_KERNEL:
        return rule_kernel(v, op);
    case IR_OPCODE_COUNT:
        break;
    }
    return broken(v, op, "opcode", "expected a known operator");
}

static ts_status check_block(verifier *v, ir_block *b, int depth) {
    if (depth > REGION_DEPTH)
        return broken(v, b->parent, "depth", "expected at most 250 nested regions");
    TS_TRY(rule_terminator(v, b));
    size_t from = v->count;
    for (size_t i = 0; i < b->parameter_count; i++) {
        if (b->parameters[i]->block != b || b->parameters[i]->index != i)
            return broken(v, b->parent, "links", "expected parameters that name their block");
        show(v, b->parameters[i]);
    }
    for (ir_op *op = b->first; op; op = op->next) {
        TS_TRY(rule_links(v, b, op));
        TS_TRY(rule_dominance(v, op));
        TS_TRY(rule_uses(v, op));
        for (size_t i = 0; i < op->region_count; i++)
            TS_TRY(check_block(v, op->regions[i], depth + 1));
        TS_TRY(rule_operator(v, op));
        for (size_t i = 0; i < op->result_count; i++)
            show(v, op->results[i]);
    }
    /* Numbers stay taken, so what was defined inside is not found again. */
    for (size_t i = from; i < v->count; i++)
        v->visible[i] = NULL;
    return NULL;
}

static ts_status rule_parameters(const verifier *v) {
    const ir_function *f = v->function;
    if (f->body->parameter_count && (!f->parameter_names || !f->defaults))
        return broken(v, NULL, "parameters", "expected a name and a default for each parameter");
    return NULL;
}

static ts_status rule_needs(const verifier *v) {
    const ir_function *f = v->function;
    for (size_t i = 0; i < f->need_count; i++) {
        const ir_need *need = &f->needs[i];
        if (!f->is_entry)
            return broken(v, NULL, "needs", "expected them of an entry");
        if (need->input >= f->body->parameter_count || need->other >= f->body->parameter_count ||
            f->body->parameters[need->input]->type->kind != IR_TENSOR ||
            (need->kind == IR_NEED_SAME &&
             f->body->parameters[need->other]->type->kind != IR_TENSOR))
            return broken(v, NULL, "needs", "expected inputs that are tensors");
    }
    return NULL;
}

ts_status ir_verify_function(ir_module *m, const ir_function *f) {
    verifier v = {.m = m, .function = f, .arena = ts_arena_create(0)};
    if (!v.arena)
        return ts_no_memory();
    ts_arena_set_handler(v.arena, ts_arena_handler(m->arena));
    ts_status status = rule_parameters(&v);
    if (!status)
        status = rule_needs(&v);
    if (!status)
        status = check_block(&v, f->body, 0);
    ts_arena_release(v.arena);
    return status;
}

ts_status ir_verify_module(ir_module *m) {
    for (const ir_function *f = m->functions; f; f = f->next)
        TS_TRY(ir_verify_function(m, f));
    return NULL;
}
