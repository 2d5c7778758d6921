/* passes/fuse.c - carves kernels out of pure operators of known dtype and rank.
 *
 *   %a = linear(%x, %w, %b)               %c = kernel(%x, %r) {
 *   %b = gelu(%a)                  =>       ... linear, gelu, add ...
 *   %c = add(%b, %r)                        yield
 *                                         }
 *
 * A block is walked from its end. An operator that kernels can hold and that is in none yet becomes
 * the root of one; the operators before it join while all their users are inside, so that a kernel
 * has one operator's results and stands where its last operator stood. Kinds of kernels:
 *   rows     pointwise operators over one shape, with reductions over the same dims of it
 *   product  one contraction, convolution or pooling, and pointwise operators of its shape after it
 *   attention  two products with a softmax between them (ir/attention_form.h)
 * Views of inputs are cloned into each kernel that reads them (they cost nothing there); a view that
 * copies (reshape of transposed memory) becomes the way in which its producer's result is stored.
 * Numbers, weights and lists of constants are cloned too; weights are packed by codegen.
 *
 * Needs: infer_types, functionalise. Keeps: types. Why last: everything that looks at operators by
 * name must have run. Cost: a group visits what its members read, nearest first, so a block costs
 * about as much as it has operands. */
#include "ir/attention_form.h"
#include "ir/resize_form.h"
#include "passes/alias.h"

#include <string.h>

enum { MAX_MEMBERS = 64, MAX_INPUTS = 64, MAX_OUTPUTS = 4, MAX_USES = 256 };

typedef struct op_list {
    ir_op **items;
    size_t count, capacity;
} op_list;

typedef struct fusion {
    pass_context *ctx;
    ir_module *m;
    ir_value_map *written; /* views that may copy, over memory that is written: they have to stay what they are */
    bool has_sizes;      /* an entry: symbols are bound, sizes can be compared */
    op_list marked;      /* whose number is not MARK_NONE */
    op_list queue;       /* a heap, latest first: what marked operators read */
    const ir_op *writer; /* the last operator before the root that writes, or NULL */
    bool knows_writer;
} fusion;

typedef struct group {
    fusion *f;
    ir_op *root;
    ir_op *members[MAX_MEMBERS]; /* root first, then backward */
    size_t count;
    ir_op *outputs[MAX_OUTPUTS]; /* members whose result others read too, after the root */
    size_t output_count;
    bool has_anchor;
    bool has_resize; /* no product then: its tiles have no such places */
    bool has_reduction;
    bool stands_alone; /* nothing else may join */
    uint32_t reduced;
    const ir_type *space;         /* shape of full values */
    const ir_type *reduced_shape; /* of what reductions give; NULL where they keep the shape */
    const ir_value *core_value;   /* root's result, or what it is a stored view of */
} group;


/* ---- membership: op->number is the group's mark while one is grown ---- */

enum { MARK_NONE = 0, MARK_MEMBER = 1, MARK_VIEW = 2, MARK_ANCHOR_VIEW = 3 };

static bool same_dims(ir_module *m, const ir_type *a, const ir_type *b) {
    if (a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (!ir_dim_same(m, a->dims[d], b->dims[d]))
            return false;
    return true;
}

static bool is_anchor_form(ir_kernel_form f) {
    return f == IR_FORM_CONTRACTION || f == IR_FORM_WINDOW;
}

/* ---- how a user reads a value ---- */

typedef struct readers {
    bool any;         /* a member, or a view that members read, uses it */
    bool all;         /* nobody else does */
    bool through_view; /* some read it through a view */
    bool by_anchor;   /* the contraction, or what reads at places of its own, reads it */
} readers;

static void look_at_users(ir_module *m, const group *g, const ir_op *op, const ir_block *block,
                          readers *out, int depth) {
    ir_resize resize;
    for (size_t r = 0; r < op->result_count; r++) {
        const ir_value *v = op->results[r];
        for (size_t i = 0; i < v->use_count; i++) {
            const ir_op *user = v->uses[i].op;
            if (user->block != block || user->number == MARK_NONE || depth > 16) {
                out->all = false;
                continue;
            }
            out->any = true;
            if (user->number == MARK_MEMBER) {
                if (ir_anchor_of(user) != IR_A_NONE || ir_resize_of(m, user, &resize))
                    out->by_anchor = true;
                continue;
            }
            out->through_view = true;
            look_at_users(m, g, user, block, out, depth + 1);
        }
    }
}

/* ---- growing ---- */

/* Operators of the block wait in a heap by position, latest first: then all readers of one were seen
 * before it. One that several read lies there several times. */
static void queue_push(fusion *f, ir_op *op) {
    TS_APPEND(f->ctx->scratch, f->queue.items, f->queue.count, f->queue.capacity, op);
    ir_op **heap = f->queue.items;
    size_t at = f->queue.count - 1;
    for (; at && heap[(at - 1) / 2]->position < op->position; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = op;
}

static ir_op *queue_pop(fusion *f) {
    if (!f->queue.count)
        return NULL;
    ir_op **heap = f->queue.items, *first = heap[0], *last = heap[--f->queue.count];
    size_t at = 0, n = f->queue.count;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1]->position > heap[child]->position)
            child++;
        if (heap[child]->position <= last->position)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return first;
}

static void set_mark(const group *g, ir_op *op, uint32_t mark) {
    fusion *f = g->f;
    op->number = mark;
    TS_APPEND(f->ctx->scratch, f->marked.items, f->marked.count, f->marked.capacity, op);
    for (size_t i = 0; i < op->operand_count; i++) {
        ir_op *def = op->operands[i]->def;
        if (def && def->block == op->block && def->opcode == IR_OP_CORE)
            queue_push(f, def);
    }
}

static void add_member(group *g, ir_op *op) {
    g->members[g->count++] = op;
    set_mark(g, op, MARK_MEMBER);
}

static void set_reduction(ir_module *m, group *g, const ir_op *op, bool keeps_shape) {
    g->has_reduction = true;
    g->reduced = ir_reduced_dims(m, op);
    g->space = op->operands[0]->type;
    g->reduced_shape = keeps_shape ? NULL : op->results[0]->type;
}

/* The reduced shape, with or without the dims of one. */
static bool is_reduced_shape(ir_module *m, const group *g, const ir_type *t) {
    if (!g->has_reduction)
        return false;
    bool keeps = t->rank == g->space->rank;
    int j = 0;
    for (int d = 0; d < g->space->rank; d++) {
        bool is_reduced = (g->reduced >> d) & 1;
        if (is_reduced && !keeps)
            continue;
        if (j >= t->rank)
            return false;
        if (is_reduced ? t->dims[j] != 1 : !ir_dim_same(m, t->dims[j], g->space->dims[d]))
            return false;
        j++;
    }
    return j == t->rank;
}

static bool all_results_used_plainly(const ir_op *op) { return op->result_count == 1; }

/* Whether op, all of whose users are in the group, may join. */
static bool may_join(ir_module *m, group *g, ir_op *op, ir_kernel_form form, const readers *r) {
    ir_attention attention;
    const ir_type *t = op->results[0]->type;
    if (r->by_anchor || g->count == MAX_MEMBERS)
        return false;
    switch (form) {
    case IR_FORM_POINTWISE:
        if (r->through_view) /* computed again for each view: cheap ones only, in plain nests */
            return !g->has_anchor && !g->has_reduction && !ir_is_heavy_pointwise(op);
        if (same_dims(m, t, g->space))
            return true;
        return is_reduced_shape(m, g, t);
    case IR_FORM_CONTRACTION: case IR_FORM_WINDOW:
        if (g->has_anchor || g->has_reduction || g->has_resize || r->through_view ||
            !same_dims(m, t, g->space) || ir_attention_of(m, op, &attention))
            return false;
        /* Every member so far becomes epilogue: all must have the product's shape. */
        for (size_t i = 0; i < g->count; i++)
            if (ir_view_kind_of(g->members[i]) == IR_VIEW_NONE &&
                !same_dims(m, g->members[i]->results[0]->type, t))
                return false;
        return true;
    case IR_FORM_RESIZE:
        return !g->has_anchor && !g->has_reduction && !r->through_view && same_dims(m, t, g->space);
    case IR_FORM_ROWS: case IR_FORM_REDUCTION: {
        const ir_type *x = op->operands[0]->type;
        uint32_t reduced = ir_reduced_dims(m, op);
        bool keeps = form == IR_FORM_ROWS;
        if (g->has_anchor || r->through_view || !all_results_used_plainly(op))
            return false;
        if (g->has_reduction)
            return reduced == g->reduced && same_dims(m, x, g->space);
        for (size_t i = 0; i < g->count; i++)
            if (ir_view_kind_of(g->members[i]) == IR_VIEW_NONE &&
                !same_dims(m, g->members[i]->results[0]->type, g->space))
                return false;
        if (same_dims(m, x, g->space))
            return true;
        return !keeps && same_dims(m, t, g->space);
    }
    case IR_FORM_NONE: case IR_FORM_VIEW: case IR_FORM_CONCAT: break;
    }
    return false;
}

static void join(ir_module *m, group *g, ir_op *op, ir_kernel_form form) {
    if (is_anchor_form(form))
        g->has_anchor = true;
    if (form == IR_FORM_RESIZE)
        g->has_resize = true;
    if ((form == IR_FORM_ROWS || form == IR_FORM_REDUCTION) && !g->has_reduction)
        set_reduction(m, g, op, form == IR_FORM_ROWS);
    add_member(g, op);
}

/* A view of something may be cloned into the kernel where its chain down to some value in memory is
 * one of strides; that is found when the body is built. Here it only gets its mark. */
static void mark_view(const group *g, ir_op *op, const readers *r) {
    set_mark(g, op, r->by_anchor ? MARK_ANCHOR_VIEW : MARK_VIEW);
}

/* A slice whose start depends on a size cannot be taken of a value inside of a kernel. */
static bool has_settled_bounds(ir_module *m, const ir_op *op) {
    int dim;
    int64_t start, step;
    ir_view_kind kind = ir_view_kind_of(op);
    return (kind != IR_VIEW_SLICE && kind != IR_VIEW_SELECT) ||
           ir_view_slice(m, op, &dim, &start, &step);
}

static bool stops_fusion(const ir_op *op) {
    return (ir_effects(op) & IR_EFFECT_WRITES) != 0;
}

/* Whether everybody outside of the group who reads op's result comes after the root: then the
 * kernel may give it as a further result. */
static bool is_read_after(const group *g, const ir_op *op) {
    const ir_value *v = op->results[0];
    for (size_t i = 0; i < v->use_count; i++) {
        const ir_op *user = v->uses[i].op;
        while (user && user->block != op->block)
            user = user->block->parent;
        if (!user)
            return false;
        if (user->number != MARK_NONE && user == v->uses[i].op)
            continue;
        if (user->position <= g->root->position)
            return false;
    }
    return true;
}

/* A member may be a further result where it is a full value that no view inside reads. */
static bool may_be_output(ir_module *m, const group *g, const ir_op *op, ir_kernel_form form,
                          const readers *r) {
    return form == IR_FORM_POINTWISE && g->output_count < MAX_OUTPUTS && !r->through_view &&
           same_dims(m, op->results[0]->type, g->space) && is_read_after(g, op);
}

/* The reduction of the group's space that `op`, pointwise and of a smaller shape, is made of. */
static const ir_op *reduction_below(ir_module *m, const group *g, const ir_op *op, int depth) {
    for (size_t i = 0; depth < 12 && i < op->operand_count; i++) {
        const ir_op *def = op->operands[i]->def;
        if (!def || def->block != op->block || def->result_count != 1)
            continue;
        ir_kernel_form form = ir_kernel_form_of(m, def);
        if (form == IR_FORM_REDUCTION && same_dims(m, def->results[0]->type, op->results[0]->type))
            return same_dims(m, def->operands[0]->type, g->space) ? def : NULL;
        const ir_op *found = form == IR_FORM_POINTWISE &&
                                     same_dims(m, def->results[0]->type, op->results[0]->type)
                                 ? reduction_below(m, g, def, depth + 1)
                                 : NULL;
        if (found)
            return found;
    }
    return NULL;
}

/* Full values that read a function of sums over the space (a norm written by hand): the kernel of
 * the values becomes one of rows, so that sums and what is before them can join. */
static void expect_reduction(fusion *f, group *g, const ir_op *op) {
    if (g->has_anchor || g->has_reduction || g->has_resize ||
        same_dims(f->m, op->results[0]->type, g->space))
        return;
    for (size_t i = 0; i < g->count; i++)
        if (ir_view_kind_of(g->members[i]) != IR_VIEW_NONE ||
            !same_dims(f->m, g->members[i]->results[0]->type, g->space))
            return;
    const ir_op *reduction = reduction_below(f->m, g, op, 0);
    if (reduction)
        set_reduction(f->m, g, reduction, false);
}

static size_t use_count(const ir_op *op) {
    size_t n = 0;
    for (size_t i = 0; i < op->result_count; i++)
        n += op->results[i]->use_count;
    return n;
}

static void grow(fusion *f, group *g) {
    ir_block *block = g->root->block;
    ir_op *seen = NULL;
    for (ir_op *op; (op = queue_pop(f)) != NULL;) {
        if (f->writer && op->position <= f->writer->position)
            return;
        /* Marked already: a part of the stored view. What very many read is read from memory. */
        if (op == seen || op->number != MARK_NONE || use_count(op) > MAX_USES)
            continue;
        seen = op;
        readers r = {.all = true};
        look_at_users(f->m, g, op, block, &r, 0);
        if (!r.any)
            continue;
        ir_kernel_form form = ir_kernel_form_of(f->m, op);
        if (form == IR_FORM_POINTWISE && r.all && !r.through_view && !r.by_anchor)
            expect_reduction(f, g, op);
        if (form == IR_FORM_VIEW && !has_settled_bounds(f->m, op))
            continue;
        if (form == IR_FORM_VIEW)
            mark_view(g, op, &r);
        else if (form == IR_FORM_NONE || !may_join(f->m, g, op, form, &r))
            continue;
        else if (r.all)
            join(f->m, g, op, form);
        else if (may_be_output(f->m, g, op, form, &r)) {
            join(f->m, g, op, form);
            g->outputs[g->output_count++] = op;
        }
    }
}

/* ---- chains of views ---- */

/* The deepest value below v through views whose strides are known to follow from a dense one. */
static ir_value *base_below(fusion *f, ir_value *v, ir_strided *out, int depth) {
    ir_module *m = f->m;
    ir_strided in;
    ir_view_kind kind = v->def ? ir_view_kind_of(v->def) : IR_VIEW_NONE;
    if (depth < 32 && kind != IR_VIEW_NONE && !ir_value_map_get(f->written, v) &&
        ir_kernel_form_of(m, v->def) == IR_FORM_VIEW) {
        ir_value *base = base_below(f, v->def->operands[0], &in, depth + 1);
        if (base && ir_strided_apply(m, v->def, &in, out))
            return base;
    }
    return ir_strided_dense(m, v->type, IR_LAYOUT_CONTIGUOUS, out) ? v : NULL;
}

/* ---- building the kernel ---- */

typedef struct body {
    fusion *f;
    group *g;
    ir_value *inputs[MAX_INPUTS];
    size_t input_count;
    ir_value_map *map;
    bool failed;
} body;

static bool is_member_value(const ir_value *v, const ir_block *block) {
    return v->def && v->def->block == block && v->def->number == MARK_MEMBER;
}

static bool is_clonable_constant(const ir_value *v) {
    return v->def && v->def->opcode == IR_OP_CONST;
}

static void add_input(body *b, ir_value *v) {
    for (size_t i = 0; i < b->input_count; i++)
        if (b->inputs[i] == v)
            return;
    if (b->input_count == MAX_INPUTS) {
        b->failed = true;
        return;
    }
    b->inputs[b->input_count++] = v;
}

/* Below a view inside of the kernel: members continue it, else the base is an input. */
static bool view_reaches_member(const body *b, const ir_value *v, int depth) {
    if (is_member_value(v, b->g->root->block))
        return true;
    return depth < 32 && v->def && v->def->block == b->g->root->block &&
           v->def->number >= MARK_VIEW &&
           view_reaches_member(b, v->def->operands[0], depth + 1);
}

static void find_inputs(body *b, ir_value *v, int depth) {
    if (is_member_value(v, b->g->root->block) || is_clonable_constant(v) || depth > 32)
        return;
    if (v->type->kind == IR_TENSOR) {
        if (v->def && ir_view_kind_of(v->def) != IR_VIEW_NONE &&
            view_reaches_member(b, v, 0)) {
            for (size_t i = 0; i < v->def->operand_count; i++)
                find_inputs(b, v->def->operands[i], depth + 1);
            return;
        }
        ir_strided strided;
        ir_value *base = base_below(b->f, v, &strided, 0);
        if (!base) {
            b->failed = true;
            return;
        }
        for (const ir_value *at = v; at != base; at = at->def->operands[0])
            for (size_t i = 1; i < at->def->operand_count; i++)
                find_inputs(b, at->def->operands[i], depth + 1);
        if (!is_clonable_constant(base))
            add_input(b, base);
        return;
    }
    if (v->def && v->def->opcode == IR_OP_LIST) {
        for (size_t i = 0; i < v->def->operand_count; i++)
            find_inputs(b, v->def->operands[i], depth + 1);
        return;
    }
    if (v->type->kind == IR_INT || v->type->kind == IR_FLOAT || v->type->kind == IR_BOOL)
        add_input(b, v);
    else
        b->failed = true;
}

static void clone_needed(body *b, ir_builder *builder, ir_value *v, int depth);

static void clone_op(body *b, ir_builder *builder, ir_op *op, int depth) {
    for (size_t i = 0; i < op->operand_count; i++)
        clone_needed(b, builder, op->operands[i], depth + 1);
    if (!b->failed)
        ir_clone_op(builder, op, b->map);
}

static void clone_needed(body *b, ir_builder *builder, ir_value *v, int depth) {
    if (ir_value_map_get(b->map, v) || b->failed)
        return;
    if (depth > 200 || !v->def) {
        b->failed = true;
        return;
    }
    clone_op(b, builder, v->def, depth);
}

/* Views between members stood outside of the kernel and read what goes now; the kernel has copies,
 * and nobody else read them, or the member would have been its root. */
static void remove_dead_users(ir_op *op, int depth) {
    for (size_t i = 0; i < op->result_count && depth < 64; i++)
        while (op->results[i]->use_count) {
            ir_op *user = op->results[i]->uses[op->results[i]->use_count - 1].op;
            remove_dead_users(user, depth + 1);
            ir_op_remove(user);
        }
}

static ir_op *build(body *b) {
    ir_module *m = b->f->m;
    group *g = b->g;
    for (size_t i = g->count; i-- > 0 && !b->failed;)
        for (size_t j = 0; j < g->members[i]->operand_count; j++)
            find_inputs(b, g->members[i]->operands[j], 0);
    if (b->failed)
        return NULL;
    ir_op *root = g->root;
    ir_kernel_kind kind = g->has_anchor ? IR_KERNEL_CONTRACTION : IR_KERNEL_POINTWISE;
    ir_builder at = pass_before(m, root);
    ir_op *kernel = ir_build_kernel(&at, kind, b->inputs, b->input_count);
    b->map = ir_value_map_make(b->f->ctx->scratch);
    ir_block *region = kernel->regions[0];
    for (size_t i = 0; i < b->input_count; i++)
        ir_value_map_set(b->map, b->inputs[i], region->parameters[i]);
    ir_builder inside = {.module = m, .block = region, .place = root->place};
    for (size_t i = g->count; i-- > 0;)
        clone_op(b, &inside, g->members[i], 0);
    ir_value *old[8 + MAX_OUTPUTS], *yields[8 + MAX_OUTPUTS];
    size_t count = 0;
    if (root->result_count > 8 || b->failed) {
        /* The half-made kernel goes again; nothing uses it. */
        ir_op_remove(kernel);
        return NULL;
    }
    for (size_t i = 0; i < root->result_count; i++)
        old[count++] = root->results[i];
    for (size_t i = 0; i < g->output_count; i++)
        old[count++] = g->outputs[i]->results[0];
    for (size_t i = 0; i < count; i++)
        yields[i] = ir_value_map_get(b->map, old[i]);
    inside.before = NULL;
    ir_build_yield(&inside, yields, count);
    if (ir_is_concat(root) && pass_concat_is_open(m, root))
        pass_check_concat(b->f->ctx, m, root, kernel);
    for (size_t i = 0; i < g->count; i++)
        pass_check_window(b->f->ctx, m, g->members[i], kernel);
    for (size_t i = 0; i < count; i++) {
        ir_value *r = ir_op_add_result(m, kernel, old[i]->type, old[i]->name);
        ir_replace_uses(m, old[i], r);
    }
    for (size_t i = 0; i < g->count; i++) {
        remove_dead_users(g->members[i], 0);
        ir_op_remove(g->members[i]);
    }
    return kernel;
}

/* ---- roots ---- */

static void clear_marks(fusion *f) {
    for (size_t i = 0; i < f->marked.count; i++)
        f->marked.items[i]->number = MARK_NONE;
    f->marked.count = f->queue.count = 0;
}

/* Positions grow along the block; a kernel takes that of its root. */
static void number_block(ir_block *block) {
    uint32_t position = 0;
    for (ir_op *op = block->first; op; op = op->next) {
        op->number = MARK_NONE;
        op->position = position++;
    }
}

static void find_writer(fusion *f, const ir_op *root) {
    if (f->knows_writer && (!f->writer || f->writer->position < root->position))
        return;
    const ir_op *op = root->previous;
    while (op && !stops_fusion(op))
        op = op->previous;
    f->writer = op;
    f->knows_writer = true;
}

/* A view that has to copy: the members are the chain of views down to what made the value, which is
 * stored in the order that the views ask for. */
static bool start_with_view(fusion *f, group *g, ir_op *root) {
    ir_module *m = f->m;
    ir_strided strided, inner;
    ir_op *view = root;
    const ir_type *t = root->results[0]->type;
    if (!ir_strided_dense(m, t, IR_LAYOUT_CONTIGUOUS, &strided))
        return false;
    for (int depth = 0; depth < 16; depth++) {
        if (ir_kernel_form_of(m, view) != IR_FORM_VIEW ||
            !ir_strided_invert(m, view, &strided, &inner))
            return false;
        strided = inner;
        add_member(g, view);
        ir_value *below = view->operands[0];
        g->core_value = below;
        g->space = below->type;
        ir_op *def = below->def;
        bool is_next = def && def->block == root->block && below->use_count == 1 &&
                       ir_kernel_form_of(m, def) == IR_FORM_VIEW;
        if (!is_next)
            break;
        if (f->writer && f->writer->position > def->position)
            return true;
        view = def;
    }
    return true;
}

static bool view_must_copy(fusion *f, ir_op *op) {
    ir_strided strided;
    ir_value *v = op->results[0];
    /* Writes through a view are seen below it; the operator itself knows whether it is one. */
    if (ir_view_kind_of(op) != IR_VIEW_RESHAPE || ir_value_map_get(f->written, v))
        return false;
    return base_below(f, v, &strided, 0) == v;
}

/* The group's product, if it is one, with the softmax and the product before it. */
static bool take_attention(fusion *f, group *g) {
    ir_op *product = g->core_value ? g->core_value->def : NULL;
    ir_attention a;
    if (!product || product->block != g->root->block ||
        (product != g->root && product->results[0]->use_count != 1) ||
        !ir_attention_of(f->m, product, &a) || g->count + a.op_count > MAX_MEMBERS)
        return false;
    if (f->writer && f->writer->position > product->position)
        return false;
    for (size_t i = 0; i < a.op_count; i++)
        if (a.ops[i]->number != MARK_MEMBER)
            add_member(g, a.ops[i]);
    return g->has_anchor = g->stands_alone = true;
}

/* A part of a concatenation that was only upsampled for it is written where it belongs. */
static void take_resized_parts(fusion *f, group *g) {
    const ir_op *list = g->root->operands[0]->def;
    ir_resize resize;
    op_list parts = {0};
    f->queue.count = 0;
    for (size_t i = 0; i < list->operand_count; i++) {
        ir_op *def = list->operands[i]->def;
        if (def && def->block == g->root->block && def->opcode == IR_OP_CORE)
            queue_push(f, def);
    }
    for (ir_op *op; (op = queue_pop(f)) && !(f->writer && op->position <= f->writer->position);)
        TS_APPEND(f->ctx->scratch, parts.items, parts.count, parts.capacity, op);
    for (size_t i = 0; i < parts.count && g->count < MAX_MEMBERS; i++)
        if (parts.items[i]->results[0]->use_count == 1 && ir_resize_of(f->m, parts.items[i], &resize))
            add_member(g, parts.items[i]);
}

static bool start(fusion *f, group *g, ir_op *op) {
    memset(g, 0, sizeof *g);
    g->f = f;
    g->root = op;
    ir_kernel_form form = ir_kernel_form_of(f->m, op);
    if (form == IR_FORM_NONE)
        return false;
    g->space = op->results[0]->type;
    g->core_value = op->results[0];
    switch (form) {
    case IR_FORM_NONE: return false;
    case IR_FORM_VIEW: return view_must_copy(f, op) && start_with_view(f, g, op);
    case IR_FORM_POINTWISE: case IR_FORM_CONTRACTION: case IR_FORM_WINDOW: case IR_FORM_ROWS:
    case IR_FORM_REDUCTION: case IR_FORM_CONCAT: case IR_FORM_RESIZE:
        g->stands_alone = form == IR_FORM_CONCAT;
        if (g->stands_alone && !f->has_sizes && pass_concat_is_open(f->m, op))
            return false;
        join(f->m, g, op, form);
        if (form == IR_FORM_CONCAT)
            take_resized_parts(f, g);
        return true;
    }
    return false;
}

static bool is_settled_view(ir_module *m, const ir_op *op) {
    ir_view_kind kind = ir_view_kind_of(op);
    int dim;
    int64_t start_index, step;
    if (kind == IR_VIEW_NONE || ir_kernel_form_of(m, op) != IR_FORM_VIEW)
        return false;
    return (kind != IR_VIEW_SELECT && kind != IR_VIEW_SLICE) ||
           ir_view_slice(m, op, &dim, &start_index, &step);
}

static void fuse_block(fusion *f, ir_block *block, int depth) {
    if (depth > 200)
        return;
    for (ir_op *op = block->first; op; op = op->next)
        for (size_t i = 0; op->opcode != IR_OP_KERNEL && i < op->region_count; i++)
            fuse_block(f, op->regions[i], depth + 1);
    number_block(block);
    clear_marks(f);
    f->knows_writer = false;
    ir_op *previous;
    for (ir_op *op = block->last; op; op = previous) {
        previous = op->previous;
        /* A view whose result type is known cannot raise any more. */
        bool is_dead = op->opcode == IR_OP_CONST ||
                       (op->opcode == IR_OP_CORE &&
                        (ir_is_removable(op) || is_settled_view(f->m, op)));
        for (size_t i = 0; i < op->result_count; i++)
            is_dead = is_dead && op->results[i]->use_count == 0;
        if (is_dead) { /* a view that was cloned into all its readers, an unused list */
            ir_op_remove(op);
            continue;
        }
        find_writer(f, op);
        group g;
        if (!start(f, &g, op)) {
            clear_marks(f);
            continue;
        }
        if (!g.stands_alone && !take_attention(f, &g))
            grow(f, &g);
        body b = {.f = f, .g = &g};
        ir_op *kernel = build(&b);
        if (kernel) {
            f->ctx->changed = true;
            pass_count(f->ctx, "kernels", 1);
            kernel->position = op->position;
            previous = kernel->previous; /* it stands where the root was */
        }
        clear_marks(f);
    }
}

static bool may_copy(const ir_op *op) {
    ir_view_kind kind = op->opcode == IR_OP_CORE ? ir_view_kind_of(op) : IR_VIEW_NONE;
    return kind == IR_VIEW_IDENTITY || kind == IR_VIEW_RESHAPE;
}

static ir_value_map *find_written_views(pass_context *ctx, ir_module *m, const ir_function *fn) {
    ir_value_map *written = ir_value_map_make(ctx->scratch);
    pass_op_list ops = pass_collect(ctx, fn);
    pass_alias *alias = NULL;
    for (size_t i = 0; i < ops.count; i++) {
        if (!may_copy(ops.items[i]))
            continue;
        alias = alias ? alias : pass_alias_make(ctx, m, fn);
        ir_value *v = ops.items[i]->results[0], *x = ops.items[i]->operands[0];
        if (pass_is_written(alias, v) || pass_is_written(alias, x) || pass_is_reshaped(alias, v) ||
            pass_is_reshaped(alias, x))
            ir_value_map_set(written, v, v);
    }
    return written;
}

ts_status pass_fuse(pass_context *ctx, ir_module *m) {
    for (ir_function *fn = m->functions; fn; fn = fn->next) {
        if (!fn->body)
            continue;
        fusion f = {.ctx = ctx, .m = m, .has_sizes = fn->is_entry,
                    .written = find_written_views(ctx, m, fn)};
        fuse_block(&f, fn->body, 0);
    }
    return NULL;
}
