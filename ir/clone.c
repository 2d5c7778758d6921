/* ir/clone.c - copies of operators with their regions, for inlining and unrolling. */
#include "ir/ir_internal.h"

struct ir_value_map {
    ts_arena *arena;
    const ir_value **keys; /* open addressing */
    ir_value **values;
    size_t count, capacity;
};

static size_t hash_pointer(const void *p) {
    uint64_t h = (uint64_t)(uintptr_t)p >> 4;
    return (size_t)((h * 0x9E3779B97F4A7C15u) >> 20);
}

ir_value_map *ir_value_map_make(ts_arena *arena) {
    ir_value_map *map = TS_NEW(arena, ir_value_map);
    map->arena = arena;
    map->capacity = 16;
    map->keys = TS_NEW_ARRAY(arena, const ir_value *, map->capacity);
    map->values = TS_NEW_ARRAY(arena, ir_value *, map->capacity);
    return map;
}

static size_t slot_of(const ir_value_map *map, const ir_value *key) {
    size_t at = hash_pointer(key) & (map->capacity - 1);
    while (map->keys[at] && map->keys[at] != key)
        at = (at + 1) & (map->capacity - 1);
    return at;
}

void ir_value_map_set(ir_value_map *map, const ir_value *from, ir_value *to) {
    if (2 * (map->count + 1) > map->capacity) {
        ir_value_map old = *map;
        map->capacity *= 2;
        map->keys = TS_NEW_ARRAY(map->arena, const ir_value *, map->capacity);
        map->values = TS_NEW_ARRAY(map->arena, ir_value *, map->capacity);
        for (size_t i = 0; i < old.capacity; i++)
            if (old.keys[i]) {
                size_t at = slot_of(map, old.keys[i]);
                map->keys[at] = old.keys[i];
                map->values[at] = old.values[i];
            }
    }
    size_t at = slot_of(map, from);
    if (!map->keys[at]) {
        map->keys[at] = from;
        map->count++;
    }
    map->values[at] = to;
}

ir_value *ir_value_map_get(const ir_value_map *map, const ir_value *from) {
    size_t at = slot_of(map, from);
    return map->keys[at] ? map->values[at] : NULL;
}

/* A value that the map does not know is defined outside what is copied and stays itself. */
static ir_value *mapped(const ir_value_map *map, ir_value *v) {
    ir_value *to = ir_value_map_get(map, v);
    return to ? to : v;
}

static void clone_block(ir_module *m, const ir_block *from, ir_block *to, ir_value_map *map) {
    for (size_t i = 0; i < from->parameter_count; i++) {
        ir_value *p = from->parameters[i];
        ir_value *copy = ir_block_add_parameter(m, to, p->type, p->name);
        ir_value_map_set(map, p, copy);
    }
    ir_builder b = {.module = m, .block = to};
    for (const ir_op *op = from->first; op; op = op->next)
        ir_clone_op(&b, op, map);
}

ir_op *ir_clone_op(ir_builder *b, const ir_op *op, ir_value_map *map) {
    ir_module *m = b->module;
    ts_place place = b->place;
    b->place = op->place;
    ir_op *copy = ir_build_op(b, op->opcode, NULL, 0, NULL, 0);
    b->place = place;
    for (size_t i = 0; i < op->operand_count; i++)
        ir_op_add_operand(m, copy, mapped(map, op->operands[i]));
    copy->core = op->core;
    copy->value = op->value; /* retained by the module already */
    copy->weight_name = op->weight_name;
    copy->name = op->name;
    copy->function = op->function;
    copy->type = op->type;
    copy->types = op->types;
    copy->type_count = op->type_count;
    copy->integer = op->integer;
    copy->kernel_kind = op->kernel_kind;
    if (op->region_count)
        copy->regions = TS_NEW_ARRAY(m->arena, ir_block *, op->region_count);
    copy->region_count = op->region_count;
    for (size_t i = 0; i < op->region_count; i++) {
        copy->regions[i] = ir_block_make(m, copy, b->block->function);
        clone_block(m, op->regions[i], copy->regions[i], map);
    }
    for (size_t i = 0; i < op->result_count; i++) {
        ir_value *r = ir_op_add_result(m, copy, op->results[i]->type, op->results[i]->name);
        ir_value_map_set(map, op->results[i], r);
    }
    return copy;
}

void ir_clone_block_body(ir_builder *b, const ir_block *block, ir_value_map *map,
                         ir_value **out_values) {
    for (const ir_op *op = block->first; op != block->last; op = op->next)
        ir_clone_op(b, op, map);
    const ir_op *end = block->last;
    for (size_t i = 0; i < end->operand_count; i++)
        out_values[i] = mapped(map, end->operands[i]);
}
