/* runtime/instantiate.c - a session's own objects from the program's constants: first all objects,
 * then their members, so that shared and cyclic structure comes out as it was. Tensors map the
 * weights; those that the program may write get memory of their own. */
#include "runtime/runtime_internal.h"
#include "runtime/ops/quantized.h"
#include "runtime/values/packed.h"

#include <stdlib.h>

static void let_go_of_model(rt_storage *storage) { tsrt_model_release(storage->owner); }

static ts_status make_storages(tsrt_session *s) {
    const rt_program *p = &s->model->program;
    s->storages = calloc(p->storage_count + 1, sizeof *s->storages);
    if (!s->storages)
        return ts_no_memory();
    for (size_t i = 0; i < p->storage_count; i++) {
        const rt_storage_row *row = &p->storages[i];
        const char *data = s->model->weights ? s->model->weights + row->offset : NULL;
        if (row->is_mutable) {
            TS_TRY(rt_storage_make((size_t)row->bytes, &s->storages[i]));
            if (row->bytes)
                memcpy(s->storages[i]->data, data, (size_t)row->bytes);
            continue;
        }
        TS_TRY(rt_storage_wrap((void *)(uintptr_t)data, (size_t)row->bytes, let_go_of_model,
                               tsrt_model_retain(s->model), &s->storages[i]));
        s->storages[i]->is_read_only = true;
    }
    return NULL;
}

static ts_status make_tensor(tsrt_session *s, const rt_node *n, rt_value *out) {
    rt_tensor *t = NULL;
    if (n->storage)
        TS_TRY(rt_tensor_view(s->storages[n->storage - 1], n->dtype, n->offset, n->sizes,
                              n->strides, n->rank, &t));
    else
        TS_TRY(rt_tensor_make(n->dtype, n->sizes, n->rank, &t));
    t->requires_grad = n->requires_grad;
    t->is_conjugated = n->is_conjugated;
    t->scale = n->re;
    t->zero_point = n->zero_point;
    *out = rt_from_tensor(t);
    return NULL;
}

static ts_status make_node(tsrt_session *s, const rt_node *n, rt_value *out) {
    switch (n->tag) {
    case RT_TAG_STR: return rt_str_make(n->text, out);
    case RT_TAG_COMPLEX: return rt_complex_make(n->re, n->im, out);
    case RT_TAG_TENSOR: return make_tensor(s, n, out);
    case RT_TAG_LIST: return rt_list_make(n->ref_count, out);
    case RT_TAG_TUPLE:
        TS_TRY(rt_tuple_make(n->ref_count, out));
        out->as.tuple->class_ = n->class_;
        return NULL;
    case RT_TAG_CAPSULE: { /* packed parameters: the tuple is filled through the capsule */
        rt_value tuple;
        TS_TRY(rt_tuple_make(n->ref_count, &tuple));
        return rt_packed_make(tuple, out);
    }
    case RT_TAG_DICT: return rt_dict_make(out);
    case RT_TAG_OBJECT: return rt_object_make(n->class_, out);
    case RT_TAG_ENUM: return rt_enum_make(n->class_, n->text, rt_none(), out);
    default: return ts_error_make(TS_ERR_INTERNAL, "constant of tag %u", n->tag);
    }
}

static rt_value resolve(const rt_value *nodes, rt_value ref) {
    return rt_is_counted(ref) ? nodes[ref.as.i] : ref;
}

static ts_status fill_node(const rt_node *n, const rt_value *nodes, rt_value v) {
    switch (n->tag) {
    case RT_TAG_TENSOR:
        if (n->ref_count == 2) {
            const rt_tensor *t = v.as.tensor;
            const rt_value scales = nodes[n->refs[0].as.i], zeros = nodes[n->refs[1].as.i];
            if (scales.tag != RT_TAG_TENSOR || zeros.tag != RT_TAG_TENSOR ||
                !rt_is_quantized(t) || scales.as.tensor->dtype != RT_float64 ||
                rt_is_quantized(zeros.as.tensor) ||
                scales.as.tensor->element_count != t->sizes[n->axis] ||
                zeros.as.tensor->element_count != t->sizes[n->axis])
                return ts_error_make(TS_ERR_INVALID_FILE, "channels of a quantized tensor");
            rt_tensor_set_channels(v.as.tensor, rt_retain(scales).as.tensor,
                                   rt_retain(zeros).as.tensor, (int32_t)n->axis);
        }
        return NULL;
    case RT_TAG_LIST:
        for (size_t i = 0; i < n->ref_count; i++)
            TS_TRY(rt_list_append(v.as.list, resolve(nodes, n->refs[i])));
        return NULL;
    case RT_TAG_TUPLE:
        for (size_t i = 0; i < n->ref_count; i++)
            v.as.tuple->items[i] = rt_retain(resolve(nodes, n->refs[i]));
        return NULL;
    case RT_TAG_DICT:
        for (size_t i = 0; i + 1 < n->ref_count; i += 2)
            TS_TRY(rt_dict_set(v.as.dict, resolve(nodes, n->refs[i]),
                               resolve(nodes, n->refs[i + 1])));
        return NULL;
    case RT_TAG_CAPSULE: {
        rt_tuple *packed = (rt_tuple *)(uintptr_t)rt_packed_tuple(v);
        for (size_t i = 0; i < n->ref_count; i++)
            packed->items[i] = rt_retain(resolve(nodes, n->refs[i]));
        return NULL;
    }
    case RT_TAG_OBJECT:
        for (size_t i = 0; i < n->ref_count; i++)
            v.as.object->fields[i] = rt_retain(resolve(nodes, n->refs[i]));
        return NULL;
    case RT_TAG_ENUM:
        rt_assign(&v.as.enumeration->value, rt_retain(resolve(nodes, n->refs[0])));
        return NULL;
    default: return NULL;
    }
}

/* Dict keys that are tuples or enums must be whole before they are hashed, so dicts go last. */
static ts_status fill_all(const rt_program *p, const rt_value *nodes) {
    for (int dicts = 0; dicts < 2; dicts++)
        for (size_t i = 0; i < p->node_count; i++)
            if ((p->nodes[i].tag == RT_TAG_DICT) == (dicts != 0))
                TS_TRY(fill_node(&p->nodes[i], nodes, nodes[i]));
    return NULL;
}

ts_status rt_instantiate(tsrt_session *s) {
    const rt_program *p = &s->model->program;
    TS_TRY(make_storages(s));
    rt_value *nodes = calloc(p->node_count + 1, sizeof *nodes);
    s->constants = calloc(p->constant_count + 1, sizeof *s->constants);
    ts_status status = nodes && s->constants ? NULL : ts_no_memory();
    for (size_t i = 0; i < p->node_count && !status; i++)
        status = make_node(s, &p->nodes[i], &nodes[i]);
    if (!status)
        status = fill_all(p, nodes);
    for (size_t i = 0; i < p->constant_count && !status; i++)
        s->constants[i] = rt_retain(resolve(nodes, p->constants[i]));
    for (size_t i = 0; nodes && i < p->node_count; i++) {
        uint32_t tag = nodes[i].tag;
        if (tag == RT_TAG_LIST || tag == RT_TAG_TUPLE || tag == RT_TAG_DICT || tag == RT_TAG_OBJECT)
            continue; /* kept: see cycles.c */
        rt_release(nodes[i]);
        nodes[i] = rt_none();
    }
    s->nodes = nodes;
    return status;
}
