/* ir/facts.c - between types and the facts that the inference rules of operators work on. */
#include "ir/ir_internal.h"
#include "runtime/values/packed.h"

enum { FACT_DEPTH = 6, FACT_ITEMS = 4096 };

static rt_dim clip(int64_t i) { return i >= RT_DIM_HANDLES ? i : RT_DIM_UNKNOWN; }

static rt_fact fact_of_type(ts_arena *scratch, const ir_type *t, int depth) {
    rt_fact f = {.kind = RT_FACT_UNKNOWN, .dim = RT_DIM_UNKNOWN, .dtype = RT_DTYPE_UNKNOWN,
                 .rank = -1};
    rt_fact *items;
    switch (t->kind) {
    case IR_NONE:
        f.kind = RT_FACT_NONE;
        break;
    case IR_BOOL:
        f.kind = RT_FACT_BOOL;
        break;
    case IR_INT:
        f.kind = RT_FACT_INT;
        break;
    case IR_FLOAT:
        f.kind = RT_FACT_FLOAT;
        break;
    case IR_COMPLEX:
        f.kind = RT_FACT_COMPLEX;
        break;
    case IR_STR:
        f.kind = RT_FACT_STR;
        break;
    case IR_DEVICE:
        f.kind = RT_FACT_DEVICE;
        break;
    case IR_TENSOR:
        f.kind = RT_FACT_TENSOR;
        f.dtype = t->dtype;
        f.rank = t->rank;
        f.dims = t->dims;
        break;
    case IR_LIST:
        f.kind = RT_FACT_LIST;
        if (depth < FACT_DEPTH) {
            items = TS_NEW(scratch, rt_fact);
            *items = fact_of_type(scratch, t->args[0], depth + 1);
            f.items = items;
        }
        break;
    case IR_TUPLE:
        f.kind = RT_FACT_LIST;
        if (depth < FACT_DEPTH) {
            items = TS_NEW_ARRAY(scratch, rt_fact, t->arg_count);
            for (size_t i = 0; i < t->arg_count; i++)
                items[i] = fact_of_type(scratch, t->args[i], depth + 1);
            f.items = items;
            f.count_known = true;
            f.count = t->arg_count;
        }
        break;
    case IR_NUMBER:
    case IR_OPTIONAL:
    case IR_UNION:
    case IR_ANY:
    case IR_VAR:
        break;
    case IR_GENERATOR:
    case IR_DICT:
    case IR_CLASS:
    case IR_ENUM:
    case IR_FUTURE:
    case IR_CAPSULE:
        f.kind = RT_FACT_OTHER;
        break;
    }
    return f;
}

static rt_fact fact_of_constant(ir_module *m, ts_arena *scratch, rt_value v, int depth) {
    rt_fact f = fact_of_type(scratch, ir_type_of_value(m, v), depth);
    const rt_value *values = NULL;
    size_t count = 0;
    switch ((rt_tag)v.tag) {
    case RT_TAG_BOOL:
    case RT_TAG_INT:
        f.dim = clip(v.as.i);
        f.is_known = f.dim != RT_DIM_UNKNOWN;
        break;
    case RT_TAG_FLOAT:
        f.is_known = true;
        f.f = v.as.f;
        break;
    case RT_TAG_STR:
        f.is_known = true;
        f.s = rt_str_text(v.as.str);
        break;
    case RT_TAG_TENSOR:
        if (v.as.tensor->rank == 0 && v.as.tensor->element_count == 1 &&
            rt_dtype_is_integral((rt_dtype)v.as.tensor->dtype)) {
            f.dim = clip(rt_load_int((rt_dtype)v.as.tensor->dtype, v.as.tensor->data));
            f.is_known = f.dim != RT_DIM_UNKNOWN;
        }
        break;
    case RT_TAG_LIST:
        values = v.as.list->items;
        count = v.as.list->count;
        break;
    case RT_TAG_TUPLE:
        values = v.as.tuple->items;
        count = v.as.tuple->count;
        break;
    case RT_TAG_CAPSULE: { /* packed parameters count as what they hold */
        const rt_tuple *packed = rt_packed_tuple(v);
        values = packed ? packed->items : NULL;
        count = packed ? packed->count : 0;
        break;
    }
    default:
        break;
    }
    bool is_list = v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE || values;
    if (is_list && depth < FACT_DEPTH && count <= FACT_ITEMS) {
        rt_fact *items = TS_NEW_ARRAY(scratch, rt_fact, count);
        for (size_t i = 0; i < count; i++)
            items[i] = fact_of_constant(m, scratch, values[i], depth + 1);
        f.items = items;
        f.count_known = true;
        f.count = count;
    }
    return f;
}

rt_fact ir_fact_of_type(ts_arena *scratch, const ir_type *t) { return fact_of_type(scratch, t, 0); }

rt_fact ir_fact_of_value(ir_module *m, ts_arena *scratch, const ir_value *v) {
    if (ir_is_const(v))
        return fact_of_constant(m, scratch, v->def->value, 0);
    rt_fact f = fact_of_type(scratch, v->type, 0);
    const ir_op *def = v->def;
    if (def && def->opcode == IR_OP_DIM) {
        f.dim = def->integer;
        f.is_known = f.dim != RT_DIM_UNKNOWN;
    }
    bool is_list = def && ((def->opcode == IR_OP_LIST && ir_list_is_stable(v)) ||
                           def->opcode == IR_OP_TUPLE);
    if (is_list && def->operand_count <= FACT_ITEMS) {
        rt_fact *items = TS_NEW_ARRAY(scratch, rt_fact, def->operand_count);
        for (size_t i = 0; i < def->operand_count; i++) {
            const ir_value *item = def->operands[i];
            bool nested = item->def && !ir_is_const(item) &&
                          (item->def->opcode == IR_OP_LIST || item->def->opcode == IR_OP_TUPLE);
            items[i] = nested ? fact_of_type(scratch, item->type, 1)
                              : ir_fact_of_value(m, scratch, item);
        }
        f.items = items;
        f.count_known = true;
        f.count = def->operand_count;
    }
    return f;
}

static const ir_type *tensor_of_fact(ir_module *m, const rt_fact *f) {
    if (f->kind != RT_FACT_TENSOR)
        return ir_type_any_tensor(m);
    bool has_rank = f->rank >= 0 && f->rank <= RT_MAX_RANK && (f->rank == 0 || f->dims);
    rt_dim dims[RT_MAX_RANK];
    for (int i = 0; has_rank && i < f->rank; i++)
        /* A negative size is an error that run time will report. */
        dims[i] = rt_dim_is_constant(f->dims[i]) && f->dims[i] < 0 ? RT_DIM_UNKNOWN : f->dims[i];
    return ir_type_tensor(m, f->dtype, has_rank ? f->rank : -1, dims, IR_LAYOUT_ANY);
}

const ir_type *ir_type_from_fact(ir_module *m, const rt_fact *fact, const ir_type *declared) {
    switch (declared->kind) {
    case IR_TENSOR:
        return tensor_of_fact(m, fact);
    case IR_OPTIONAL:
        return declared->args[0]->kind == IR_TENSOR && fact->kind == RT_FACT_TENSOR
                   ? ir_type_optional(m, tensor_of_fact(m, fact))
                   : declared;
    case IR_NUMBER:
        if (fact->kind == RT_FACT_INT)
            return ir_type_simple(m, IR_INT);
        if (fact->kind == RT_FACT_FLOAT)
            return ir_type_simple(m, IR_FLOAT);
        if (fact->kind == RT_FACT_BOOL)
            return ir_type_simple(m, IR_BOOL);
        return declared;
    case IR_LIST: {
        const ir_type *inner = ir_type_without_none(m, declared->args[0]);
        if (fact->kind != RT_FACT_LIST || !fact->items || inner->kind != IR_TENSOR)
            return declared;
        const ir_type *element = NULL;
        size_t count = fact->count_known ? fact->count : 1;
        for (size_t i = 0; i < count; i++) {
            const ir_type *t = ir_type_from_fact(m, &fact->items[i], declared->args[0]);
            element = element ? ir_type_join(m, element, t) : t;
        }
        return element ? ir_type_list(m, element) : declared;
    }
    case IR_TUPLE: {
        if (fact->kind != RT_FACT_LIST || !fact->items || !fact->count_known ||
            fact->count != declared->arg_count)
            return declared;
        const ir_type **args = TS_NEW_ARRAY(m->arena, const ir_type *, declared->arg_count);
        for (size_t i = 0; i < declared->arg_count; i++)
            args[i] = ir_type_from_fact(m, &fact->items[i], declared->args[i]);
        return ir_type_tuple(m, args, declared->arg_count, declared->class_);
    }
    default:
        return declared;
    }
}
