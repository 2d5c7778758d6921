/* codegen/lower_attention.c - a body that is an attention as a kernel graph: what stands between the
 * first product and softmax becomes the graph of a score, the operands become accesses. */
#include <string.h>

#include "codegen/lower.h"

#define K l->k

static ts_status unsupported(const lowering *l, const char *why) {
    if (l->status)
        return l->status;
    return ts_error_at(TS_ERR_UNSUPPORTED, l->op->place, "attention: %s", why);
}

/* Batch dims of an operand; where it has one step and the scores have more, it is repeated. */
static void batch_strides(lowering *l, const ir_strided *s, int batch_count, kn_access *a) {
    int lead = batch_count - (s->rank - 2);
    for (int d = 0; d < s->rank - 2; d++)
        if (s->sizes[d] != 1)
            a->strides[d + lead] = s->strides[d];
    a->offset = s->offset;
    a->element = RT_float32;
    (void)l;
}

static ts_status set_operand(lowering *l, ir_value *v, bool is_flipped, kn_access *a, rt_dim *row,
                             rt_dim *step) {
    ir_strided s;
    if (!lw_source(l, v, &a->buffer, &s))
        return unsupported(l, "an operand is no view of an input");
    batch_strides(l, &s, K->attention.batch_count, a);
    *row = s.strides[is_flipped ? s.rank - 1 : s.rank - 2];
    *step = s.strides[is_flipped ? s.rank - 2 : s.rank - 1];
    return NULL;
}

/* A score that begins with TILE * constant begins with TILE alone: the queries are scaled. */
static void take_scale(kn_kernel *k, int tile) {
    int user = -1;
    for (int i = 0; i < k->node_count; i++)
        for (int a = 0; a < 3; a++)
            if (k->nodes[i].args[a] == tile) {
                if (user >= 0)
                    return;
                user = i;
            }
    if (user < 0 || (k->nodes[user].code != KN_mul && k->nodes[user].code != KN_div))
        return;
    kn_node *n = &k->nodes[user];
    bool is_first = n->args[0] == tile;
    const kn_node *other = &k->nodes[n->args[is_first ? 1 : 0]];
    if (other->code != KN_CONSTANT || (n->code == KN_div && (!is_first || other->number == 0)))
        return;
    k->attention.scale = n->code == KN_mul ? other->number : 1 / other->number;
    *n = k->nodes[tile];
}

/* ---- masks that are constants ---- */

typedef struct mask {
    kn_node *load;
    bool adds;       /* float, added to the score; else bool */
    bool hides_true; /* bool: true hides */
    int64_t queries, keys;
    int64_t query_stride, key_stride;
} mask;

static bool is_far_below(const kn_kernel *k, int node) {
    const kn_node *n = &k->nodes[node];
    return n->code == KN_CONSTANT && n->number <= -3e38;
}

/* A score that ends in select(mask, x, -inf), select(mask, -inf, x) or x + mask. */
static bool find_mask(lowering *l, mask *out) {
    kn_kernel *k = K;
    kn_attention *t = &k->attention;
    int keys = t->batch_count, queries = keys + 1;
    const kn_node *n = &k->nodes[t->score];
    int load = -1;
    memset(out, 0, sizeof *out);
    if (n->code == KN_select && (is_far_below(k, n->args[2]) || is_far_below(k, n->args[1]))) {
        load = n->args[0];
        out->hides_true = is_far_below(k, n->args[1]);
    } else if (n->code == KN_add) {
        for (int a = 0; a < 2 && load < 0; a++)
            if (k->nodes[n->args[a]].code == KN_LOAD)
                load = n->args[a];
        out->adds = true;
    }
    if (load < 0 || k->nodes[load].code != KN_LOAD || k->nodes[load].args[0] >= 0)
        return false;
    out->load = &k->nodes[load];
    const kn_access *x = &out->load->access;
    if (x->buffer < k->buffer_count || x->element != (out->adds ? RT_float32 : RT_bool) ||
        !rt_dim_is_constant(k->dims[keys].size) || !rt_dim_is_constant(k->dims[queries].size))
        return false;
    for (int d = 0; d < k->dim_count; d++)
        if (d < keys ? x->strides[d] != 0 : x->strides[d] <= 0 || !rt_dim_is_constant(x->strides[d]))
            return false;
    out->queries = k->dims[queries].size;
    out->keys = k->dims[keys].size;
    out->query_stride = x->strides[queries];
    out->key_stride = x->strides[keys];
    return true;
}

static bool hides(const mask *m, const void *data, int64_t at) {
    if (m->adds) {
        float v = ((const float *)data)[at];
        return v <= -3e38f;
    }
    return (((const uint8_t *)data)[at] != 0) == m->hides_true;
}

/* The mask's constant turned so that queries are adjacent, as the lanes want them; and how many keys
 * each query sees, where it sees one at all. */
static void use_mask(lowering *l) {
    mask m;
    if (!find_mask(l, &m))
        return;
    kn_access *x = &m.load->access;
    ts_arena *arena = l->unit->arena;
    const char *data = K->constants[x->buffer - K->buffer_count].data;
    size_t bytes = rt_dtype_size(x->element), count = (size_t)(m.queries * m.keys);
    char *turned = ts_arena_array(arena, count + 1, bytes);
    int64_t *ends = ts_arena_array(arena, (size_t)m.queries + 1, sizeof *ends);
    bool shortens = false, sees = true;
    for (int64_t q = 0; q < m.queries; q++) {
        ends[q] = 0;
        for (int64_t j = 0; j < m.keys; j++) {
            int64_t at = x->offset + q * m.query_stride + j * m.key_stride;
            memcpy(turned + (size_t)(j * m.queries + q) * bytes, data + (size_t)at * bytes, bytes);
            if (!hides(&m, data, at))
                ends[q] = j + 1;
        }
        shortens = shortens || ends[q] < m.keys;
        sees = sees && ends[q] > 0; /* a row of large negative numbers is a row of equal weights */
    }
    bool is_shared = false;
    for (int i = 0; i < K->node_count; i++)
        is_shared = is_shared || (&K->nodes[i] != m.load && K->nodes[i].code == KN_LOAD &&
                                  K->nodes[i].access.buffer == x->buffer);
    if (is_shared)
        x->buffer = kn_add_constant(K, turned, count * bytes);
    else
        K->constants[x->buffer - K->buffer_count] = (cg_constant){turned, count * bytes};
    x->offset = 0;
    x->strides[K->attention.batch_count] = m.queries;
    x->strides[K->attention.batch_count + 1] = 1;
    if (shortens && sees)
        K->attention.ends = kn_add_constant(K, ends, (size_t)m.queries * sizeof *ends);
}

ts_status lw_attention(lowering *l, const ir_attention *a) {
    kn_attention *t = &K->attention;
    const ir_type *scores = a->scores->results[0]->type;
    int rank = scores->rank;
    t->is_on = true;
    t->scale = 1;
    t->ends = -1;
    t->batch_count = rank - 2;
    t->zeroes_empty = a->zeroes_empty;
    t->depth = a->query->type->dims[a->query->type->rank - 1];
    t->width = a->value->type->dims[a->value->type->rank - 1];
    l->anchor = a->scores;
    l->space_rank = l->space_map.rank = K->dim_count = rank;
    for (int d = 0; d < rank; d++) {
        int place = d < rank - 2 ? d : d == rank - 2 ? rank - 1 : rank - 2;
        l->space[d] = scores->dims[d];
        K->dims[place] = (kn_dim){.size = scores->dims[d], .role = d < rank - 2    ? KN_OUTER
                                                                   : d == rank - 2 ? KN_VECTOR
                                                                                   : KN_SERIAL};
        l->space_map.dims[d].factors[place] = 1;
    }
    TS_TRY(set_operand(l, a->query, false, &t->query, &t->query_row, &t->query_step));
    TS_TRY(set_operand(l, a->key, true, &t->key, &t->key_row, &t->key_step));
    TS_TRY(set_operand(l, a->value, false, &t->value, &t->value_row, &t->value_step));
    kn_node tile;
    memset(&tile, 0, sizeof tile);
    tile.code = KN_TILE;
    tile.type = RT_float32;
    tile.args[0] = tile.args[1] = tile.args[2] = -1;
    l->anchor_node = kn_add_node(K, tile);
    t->score = lw_value(l, a->softened, &l->space_map);
    if (t->score < 0)
        return l->status;
    t->score = kn_cast(K, t->score, RT_float32);
    take_scale(K, l->anchor_node);
    use_mask(l);
    ir_value *stored;
    ir_strided to;
    TS_TRY(lw_output(l, 0, &stored, &to));
    if (stored != a->product->results[0] || to.rank != rank || l->op->result_count != 1)
        return unsupported(l, "an odd result");
    for (size_t i = 0; i < l->op->operand_count; i++)
        t->result.buffer += l->op->operands[i]->type->kind == IR_TENSOR;
    batch_strides(l, &to, rank - 2, &t->result);
    t->result_row = to.strides[rank - 2];
    t->result_step = to.strides[rank - 1];
    return NULL;
}
