/* passes/guard_operators.c - the usual case of operators whose inputs are not known.
 *
 *   %y = conv1d(%x, WEIGHT, ...)            %x : Tensor
 *     =>  %ok = refine<float32[s0,128,s1]>(%x)
 *         %y = if %ok { conv1d(cast<float32[s0,128,s1]>(%x), WEIGHT, ...) } else { conv1d(%x, ...) }
 *
 * Constant weights say what an activation must be for the operator to run at all, but for unusual
 * ranks: state that a model carries from call to call, say, has no known type, and the few
 * operators that cost something behind it would all run on the dynamic path. The guarded path is
 * typed, so that it becomes kernels; the other one stays right for everything else.
 *
 * Not where a test around it has already said no (the last path of specialise_entries).
 * Covers convolutions, linear and recurrent cells. Needs: infer_types. Keeps: types (infer_types must
 * run again for the new path). Why just before expand_composites: nothing looks at the operators
 * between. Cost: one walk. */
#include "ir/kernel_form.h"
#include "passes/pass_internal.h"

enum { MAX_GUARDS = 256 };

typedef struct guard {
    ir_value *value;
    const ir_type *type;
} guard;

static bool is_constant_matrix(const ir_value *v, int min_rank) {
    return ir_is_const(v) && ir_type_is_known_tensor(v->type) && v->type->dtype == RT_float32 &&
           v->type->rank >= min_rank;
}

/* float32 of that rank; what is known of v stays, the rest is named anew. False: v cannot be it. */
static bool wanted_type(ir_module *m, const ir_value *v, int rank, int dim, rt_dim size,
                        const rt_dim *batch, const ir_type **out) {
    const ir_type *t = v->type;
    if (t->kind != IR_TENSOR || (t->dtype != RT_DTYPE_UNKNOWN && t->dtype != RT_float32) ||
        (t->rank >= 0 && t->rank != rank))
        return false;
    rt_dim *dims = TS_NEW_ARRAY(m->arena, rt_dim, (size_t)rank);
    for (int d = 0; d < rank; d++) {
        dims[d] = t->rank == rank ? t->dims[d] : RT_DIM_UNKNOWN;
        if (d == dim)
            dims[d] = size;
        else if (d == 0 && batch && *batch != RT_DIM_UNKNOWN)
            dims[d] = *batch;
        else if (dims[d] == RT_DIM_UNKNOWN)
            dims[d] = ir_dim_fresh(m);
    }
    *out = ir_type_tensor(m, RT_float32, rank, dims, IR_LAYOUT_ANY);
    return true;
}

/* The guards of op: 0 where it needs none or cannot have them. *out_list: the operand that is a list
 * of the last two. */
static size_t guards_of(ir_module *m, const ir_op *op, guard *out) {
    ts_str name = rt_op_name(op->core);
    bool conv = ts_str_is(name, "conv1d") || ts_str_is(name, "conv2d");
    const ir_type *t;
    size_t count = 0;
    if (conv || ts_str_is(name, "linear")) {
        ir_value *x = op->operands[0], *w = op->operands[1];
        int64_t groups = 1;
        if (ir_type_is_known_tensor(x->type) || !is_constant_matrix(w, 2))
            return 0;
        if (conv && (!ir_const_int(op->operands[6], &groups) || groups < 1))
            return 0;
        int rank = conv ? w->type->rank : x->type->rank >= 2 ? x->type->rank : 2;
        if (!wanted_type(m, x, rank, conv ? 1 : rank - 1, w->type->dims[1] * groups, NULL, &t))
            return 0;
        out[count++] = (guard){x, t};
        return count;
    }
    bool lstm = ts_str_is(name, "lstm_cell");
    if (!lstm && !ts_str_is(name, "gru_cell"))
        return 0;
    ir_value *x = op->operands[0], *w_ih = op->operands[2], *w_hh = op->operands[3];
    ir_value *states[2] = {op->operands[1], NULL};
    if (!is_constant_matrix(w_ih, 2) || !is_constant_matrix(w_hh, 2))
        return 0;
    if (lstm) {
        const ir_op *list = op->operands[1]->def;
        if (!list || list->opcode != IR_OP_LIST || list->operand_count != 2 ||
            !ir_list_is_stable(op->operands[1]))
            return 0;
        states[0] = list->operands[0];
        states[1] = list->operands[1];
    }
    if (ir_type_is_known_tensor(x->type) && ir_type_is_known_tensor(states[0]->type) &&
        (!lstm || ir_type_is_known_tensor(states[1]->type)))
        return 0;
    if (!wanted_type(m, x, 2, 1, w_ih->type->dims[1], NULL, &t))
        return 0;
    out[count++] = (guard){x, t};
    rt_dim batch = t->dims[0];
    for (int i = 0; i < (lstm ? 2 : 1); i++) {
        if (!wanted_type(m, states[i], 2, 1, w_hh->type->dims[1], &batch, &t))
            return 0;
        out[count++] = (guard){states[i], t};
    }
    return count;
}

/* Every tensor of type t is one of `wide`: the same, or a letter of its own, in each dim. */
static bool is_covered(const ir_type *t, const ir_type *wide) {
    if (t->dtype != wide->dtype || t->rank != wide->rank)
        return false;
    for (int d = 0; d < t->rank; d++) {
        bool is_free = rt_dim_is_symbolic(wide->dims[d]);
        for (int e = 0; e < wide->rank; e++)
            is_free = is_free && (e == d || wide->dims[e] != wide->dims[d]);
        if (!is_free && t->dims[d] != wide->dims[d])
            return false;
    }
    return true;
}

/* The operator stands where a test around it has found that the value is no such tensor. */
static bool is_refuted(const ir_op *op, const guard *g) {
    for (const ir_block *b = op->block; b && b->parent; b = b->parent->block) {
        const ir_op *choice = b->parent;
        if (choice->opcode != IR_OP_IF || choice->regions[1] != b)
            continue;
        const ir_op *test = choice->operands[0]->def;
        if (test && test->opcode == IR_OP_REFINE && test->operands[0] == g->value &&
            is_covered(g->type, test->type))
            return true;
    }
    return false;
}

static void guard_op(pass_context *ctx, ir_module *m, ir_op *op, const guard *guards, size_t count) {
    ir_builder b = pass_before(m, op);
    ir_value *usual = NULL;
    for (size_t i = 0; i < count; i++) {
        ir_value *one = pass_build_refine(&b, guards[i].value, guards[i].type);
        usual = usual ? pass_build_both(&b, usual, one) : one;
    }
    ir_op *choice = ir_build_if(&b, usual);
    for (int path = 0; path < 2; path++) {
        ir_builder in = {.module = m, .block = choice->regions[path], .place = op->place};
        ir_value_map *map = ir_value_map_make(ctx->scratch);
        for (size_t i = 0; path == 0 && i < count; i++) {
            ir_value *v = guards[i].value;
            ir_op *cast = ir_build_op(&in, IR_OP_CAST, &v, 1, &guards[i].type, 1);
            cast->type = guards[i].type;
            ir_value_map_set(map, v, cast->results[0]);
        }
        for (size_t i = 0; path == 0 && i < op->operand_count; i++)
            if (op->operands[i]->def && op->operands[i]->def->opcode == IR_OP_LIST)
                ir_clone_op(&in, op->operands[i]->def, map);
        ir_op *copy = ir_clone_op(&in, op, map);
        ir_build_yield(&in, copy->results, copy->result_count);
    }
    for (size_t i = 0; i < op->result_count; i++) {
        ir_value *r = ir_op_add_result(m, choice, op->results[i]->type, op->results[i]->name);
        ir_replace_uses(m, op->results[i], r);
    }
    ir_op_remove(op);
    pass_count(ctx, "guards", 1);
}

static void walk(pass_context *ctx, ir_module *m, ir_block *block, int *left, int depth) {
    ir_op *next;
    for (ir_op *op = block->first; op && depth < 500; op = next) {
        next = op->next;
        for (size_t i = 0; i < op->region_count; i++)
            walk(ctx, m, op->regions[i], left, depth + 1);
        guard guards[3];
        if (op->opcode != IR_OP_CORE || *left == 0)
            continue;
        size_t count = guards_of(m, op, guards);
        bool is_open = true;
        for (size_t i = 0; i < count; i++)
            is_open = is_open && !is_refuted(op, &guards[i]);
        if (count && is_open) {
            guard_op(ctx, m, op, guards, count);
            (*left)--;
        }
    }
}

ts_status pass_guard_operators(pass_context *ctx, ir_module *m) {
    int left = MAX_GUARDS;
    for (ir_function *f = m->functions; f; f = f->next)
        if (f->body)
            walk(ctx, m, f->body, &left, 0);
    return NULL;
}
