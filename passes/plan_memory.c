/* passes/plan_memory.c - places in one arena for the results of kernels.
 *
 * A result of constant size that nothing but kernels reads lives from its kernel to its last
 * reader; results whose lives do not overlap share memory. Everything that may outlive the call, or
 * that an operator may alias (returned, in a list, carried by a loop), keeps an allocation of its
 * own. Lives are intervals of the operators' numbers in the order of the text; what is read inside
 * of a branch or loop lives to its end.
 *
 * Needs: fuse, assign_layout. Keeps: all but ir_value.buffer_offset. Cost: results times
 * those placed, for a few hundred orders where there are few. */
#include "ir/live_memory.h"
#include "passes/pass_internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct life {
    ir_value *value;
    uint32_t begin, end;
    int64_t bytes, offset;
    size_t index;
} life;

typedef struct planner {
    pass_context *ctx;
    ir_module *m;
    life *lives;
    size_t count, capacity;
} planner;

static void collect(planner *p, ir_block *block, int depth) {
    for (ir_op *op = block->first; op && depth < 500; op = op->next) {
        if (op->opcode != IR_OP_KERNEL) {
            for (size_t i = 0; i < op->region_count; i++)
                collect(p, op->regions[i], depth + 1);
            continue;
        }
        for (size_t r = 0; r < op->result_count; r++) {
            life l = {.value = op->results[r], .begin = op->number};
            l.bytes = ir_buffer_bytes(l.value->type);
            l.value->buffer_offset = -1;
            if (l.bytes >= 0 && ir_last_reader(l.value, &l.end))
                TS_APPEND(p->ctx->scratch, p->lives, p->count, p->capacity, l);
        }
    }
}

/* ---- packing ----
 *
 * One life after the other goes to the lowest gap among those placed that overlap it. How good that
 * is depends on the order: several are tried, and then again and again the life that reaches highest
 * is placed earlier, until the arena is hardly larger than what is alive at once. */

enum { CLIMBS = 300, CLIMB_LIVES = 2000, MAX_LIVES = 20000 };

typedef int (*life_order)(const void *a, const void *b);

#define BY(name, key)                                                                              \
    static int name(const void *pa, const void *pb) {                                              \
        const life *a = *(const life *const *)pa, *b = *(const life *const *)pb;                   \
        int64_t x = key(a), y = key(b);                                                            \
        return x != y ? (x > y ? -1 : 1) : a->index < b->index ? -1 : a->index > b->index;         \
    }
#define SIZE_KEY(l) (l)->bytes
#define AREA_KEY(l) ((l)->bytes / 64 * ((int64_t)(l)->end - (int64_t)(l)->begin + 1))
#define BEGIN_KEY(l) (-(int64_t)(l)->begin)
#define LENGTH_KEY(l) ((int64_t)(l)->end - (int64_t)(l)->begin)
BY(by_begin, BEGIN_KEY)
BY(by_size, SIZE_KEY)
BY(by_area, AREA_KEY)
BY(by_length, LENGTH_KEY)

/* placed[] is in the order of offsets, with room for one more. */
static void place(life *l, life **placed, size_t count) {
    int64_t offset = 0;
    size_t at = 0;
    for (; at < count; at++) {
        const life *other = placed[at];
        if (other->end < l->begin || l->end < other->begin)
            continue;
        if (other->offset >= offset + l->bytes)
            break;
        if (other->offset + other->bytes > offset)
            offset = other->offset + other->bytes;
    }
    l->offset = offset;
    for (at = count; at > 0 && placed[at - 1]->offset > offset; at--)
        placed[at] = placed[at - 1];
    placed[at] = l;
}

static int64_t pack(life **order, life **placed, size_t count) {
    int64_t peak = 0;
    for (size_t i = 0; i < count; i++) {
        place(order[i], placed, i);
        if (order[i]->offset + order[i]->bytes > peak)
            peak = order[i]->offset + order[i]->bytes;
    }
    return peak;
}

static void keep(planner *p, int64_t peak, int64_t *best) {
    if (peak >= *best)
        return;
    *best = peak;
    for (size_t i = 0; i < p->count; i++)
        p->lives[i].value->buffer_offset = p->lives[i].offset;
}

static void climb(planner *p, life **order, life **placed, int64_t peak, int64_t goal,
                  int64_t *best) {
    for (int round = 0; round < CLIMBS && *best > goal; round++) {
        size_t at = 0;
        while (at < p->count && order[at]->offset + order[at]->bytes != peak)
            at++;
        if (at == 0 || at == p->count)
            return;
        life *moved = order[at];
        size_t to = round % 2 ? 0 : at / 2;
        memmove(order + to + 1, order + to, (at - to) * sizeof *order);
        order[to] = moved;
        peak = pack(order, placed, p->count);
        keep(p, peak, best);
    }
}

/* What is alive at once at most: no plan needs less. */
static int64_t largest_sum(const planner *p, uint32_t op_count) {
    int64_t *change = TS_NEW_ARRAY(p->ctx->scratch, int64_t, (size_t)op_count + 2);
    int64_t sum = 0, most = 0;
    for (size_t i = 0; i < p->count; i++) {
        change[p->lives[i].begin] += p->lives[i].bytes;
        change[p->lives[i].end + 1] -= p->lives[i].bytes;
    }
    for (uint32_t n = 0; n <= op_count; n++) {
        sum += change[n];
        most = sum > most ? sum : most;
    }
    return most;
}

static int64_t plan(planner *p, int64_t least) {
    static const life_order orders[] = {by_begin, by_size, by_area, by_length};
    life **order = TS_NEW_ARRAY(p->ctx->scratch, life *, p->count);
    life **placed = TS_NEW_ARRAY(p->ctx->scratch, life *, p->count + 1);
    int64_t best = INT64_MAX, goal = least + least / 64;
    for (size_t i = 0; i < p->count; i++)
        order[i] = &p->lives[i];
    for (size_t o = 0; o < sizeof orders / sizeof orders[0] && best > goal; o++) {
        if (o && p->count > CLIMB_LIVES)
            break;
        qsort(order, p->count, sizeof *order, orders[o]);
        int64_t peak = pack(order, placed, p->count);
        keep(p, peak, &best);
        if (p->count <= CLIMB_LIVES)
            climb(p, order, placed, peak, goal, &best);
    }
    return best;
}

ts_status pass_plan_memory(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next) {
        if (!f->body)
            continue;
        planner p = {.ctx = ctx, .m = m};
        uint32_t op_count = ir_number_ops(f->body);
        collect(&p, f->body, 0);
        if (p.count == 0 || p.count > MAX_LIVES)
            continue;
        for (size_t i = 0; i < p.count; i++)
            p.lives[i].index = i;
        int64_t least = largest_sum(&p, op_count);
        ctx->changed = true;
        pass_count(ctx, "planned", (int64_t)p.count);
        pass_count(ctx, "bytes", plan(&p, least));
        pass_count(ctx, "live_bytes", least);
    }
    return NULL;
}
