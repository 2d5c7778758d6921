/* codegen/host_tables.c - the tables of a program as the bytes of the PROGRAM section. The order
 * here is the order in runtime/program.c; docs/artifact.md lists the fields. */
#include "codegen/host_program.h"

#include "ir/live_memory.h"
#include "runtime/values/packed.h"

/* Symbolic sizes are numbered in the order in which types name them. */
typedef struct symbol_table {
    ts_str *names;
    size_t count, capacity;
} symbol_table;

static int64_t symbol_index(cg_program *p, symbol_table *t, ts_str name) {
    for (size_t i = 0; i < t->count; i++)
        if (ts_str_equal(t->names[i], name))
            return (int64_t)i;
    TS_APPEND(p->arena, t->names, t->count, t->capacity, name);
    return (int64_t)t->count - 1;
}

static int64_t dim_code(cg_program *p, symbol_table *symbols, rt_dim d) {
    if (d >= 0)
        return d;
    if (rt_dim_is_symbolic(d)) {
        ir_dim_node n = ir_dim_get(p->ir, d);
        if (n.kind == IR_DIM_SYMBOL)
            return TSM_DIM_SYMBOL - symbol_index(p, symbols, n.symbol);
        if (n.kind == IR_DIM_CONST && n.constant >= 0)
            return n.constant;
    }
    return TSM_DIM_UNKNOWN;
}

static tsm_type_kind type_kind(ir_kind k) {
    switch (k) {
    case IR_NONE: return TSM_TYPE_NONE;
    case IR_BOOL: return TSM_TYPE_BOOL;
    case IR_INT: return TSM_TYPE_INT;
    case IR_FLOAT: return TSM_TYPE_FLOAT;
    case IR_COMPLEX: return TSM_TYPE_COMPLEX;
    case IR_NUMBER: return TSM_TYPE_NUMBER;
    case IR_STR: return TSM_TYPE_STR;
    case IR_DEVICE: return TSM_TYPE_DEVICE;
    case IR_GENERATOR: return TSM_TYPE_GENERATOR;
    case IR_TENSOR: return TSM_TYPE_TENSOR;
    case IR_LIST: return TSM_TYPE_LIST;
    case IR_TUPLE: return TSM_TYPE_TUPLE;
    case IR_DICT: return TSM_TYPE_DICT;
    case IR_OPTIONAL: return TSM_TYPE_OPTIONAL;
    case IR_UNION: return TSM_TYPE_UNION;
    case IR_CLASS: return TSM_TYPE_CLASS;
    case IR_ENUM: return TSM_TYPE_ENUM;
    case IR_FUTURE: return TSM_TYPE_FUTURE;
    case IR_CAPSULE: return TSM_TYPE_CAPSULE;
    case IR_ANY:
    case IR_VAR: return TSM_TYPE_ANY;
    }
    return TSM_TYPE_ANY;
}

static void put_type(cg_program *p, symbol_table *symbols, const ir_type *t, ts_buffer *b) {
    bool is_tensor = t->kind == IR_TENSOR;
    int rank = is_tensor && t->rank >= 0 && t->rank <= RT_MAX_RANK ? t->rank : -1;
    tsm_put_u8(b, (uint8_t)type_kind(t->kind));
    tsm_put_u8(b, (uint8_t)(is_tensor ? t->dtype : RT_DTYPE_UNKNOWN));
    tsm_put_u8(b, (uint8_t)rank);
    tsm_put_u8(b, (uint8_t)(!is_tensor                          ? TSM_LAYOUT_ANY
                            : t->layout == IR_LAYOUT_CONTIGUOUS ? TSM_LAYOUT_CONTIGUOUS
                            : t->layout == IR_LAYOUT_CHANNELS_LAST
                                ? TSM_LAYOUT_CHANNELS_LAST
                                : TSM_LAYOUT_ANY));
    tsm_put_u32(b, t->class_ ? cg_program_class(p, t->class_) + 1 : 0);
    tsm_put_u32(b, (uint32_t)t->arg_count);
    for (size_t i = 0; i < t->arg_count; i++)
        tsm_put_u32(b, cg_program_type(p, t->args[i]));
    for (int i = 0; i < rank; i++)
        tsm_put_i64(b, dim_code(p, symbols, t->dims[i]));
    tsm_put_str(b, ir_type_text(p->ir, t));
}

static void put_class(cg_program *p, const ir_class *c, ts_buffer *b) {
    tsm_put_str(b, c->base.name);
    tsm_put_str(b, c->base.bare_name);
    tsm_put_u32(b, (uint32_t)c->base.kind);
    size_t known = 0;
    for (size_t i = 0; i < c->base.base_count; i++)
        known += c->base.bases[i]->info != NULL;
    tsm_put_u32(b, (uint32_t)known);
    for (size_t i = 0; i < c->base.base_count; i++)
        if (c->base.bases[i]->info)
            tsm_put_u32(b, cg_program_class(p, c->base.bases[i]->info));
    tsm_put_u32(b, (uint32_t)c->base.field_count);
    for (size_t i = 0; i < c->base.field_count; i++)
        tsm_put_str(b, c->base.fields[i]);
}

static void put_ref(cg_program *p, rt_value v, ts_buffer *b) {
    tsm_put_u8(b, (uint8_t)v.tag);
    tsm_put_u32(b, v.aux);
    tsm_put_i64(b, rt_is_counted(v) ? (int64_t)cg_program_node_index(p, v) : v.as.i);
}

static void put_refs(cg_program *p, const rt_value *items, size_t count, ts_buffer *b) {
    tsm_put_u32(b, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        put_ref(p, items[i], b);
}

static uint32_t class_number(cg_program *p, const rt_class *c) {
    return c && c->info ? cg_program_class(p, c->info) + 1 : 0;
}

static void put_tensor(cg_program *p, const rt_tensor *t, ts_buffer *b) {
    tsm_put_u8(b, (uint8_t)t->dtype);
    tsm_put_u8(b, t->requires_grad);
    tsm_put_u8(b, t->is_conjugated);
    tsm_put_u32(b, t->storage ? cg_program_storage_index(p, t->storage) + 1 : 0);
    tsm_put_i64(b, t->storage ? rt_tensor_offset(t) : 0);
    tsm_put_u8(b, (uint8_t)t->rank);
    for (int i = 0; i < t->rank; i++)
        tsm_put_i64(b, t->sizes[i]);
    for (int i = 0; i < t->rank; i++)
        tsm_put_i64(b, t->strides[i]);
    tsm_put_f64(b, t->scale);
    tsm_put_i64(b, t->zero_point);
    rt_value channels[2] = {rt_from_tensor(t->scales), rt_from_tensor(t->zero_points)};
    put_refs(p, channels, t->scales ? 2 : 0, b);
    if (t->scales)
        tsm_put_i64(b, t->axis);
}

static void put_node(cg_program *p, rt_value v, ts_buffer *b) {
    tsm_put_u8(b, (uint8_t)v.tag);
    switch (v.tag) {
    case RT_TAG_STR: tsm_put_str(b, rt_str_text(v.as.str)); break;
    case RT_TAG_COMPLEX:
        tsm_put_f64(b, v.as.complex->re);
        tsm_put_f64(b, v.as.complex->im);
        break;
    case RT_TAG_TENSOR: put_tensor(p, v.as.tensor, b); break;
    case RT_TAG_LIST: put_refs(p, v.as.list->items, v.as.list->count, b); break;
    case RT_TAG_TUPLE:
        tsm_put_u32(b, class_number(p, v.as.tuple->class_));
        put_refs(p, v.as.tuple->items, v.as.tuple->count, b);
        break;
    case RT_TAG_CAPSULE: {
        const rt_tuple *packed = rt_packed_tuple(v);
        put_refs(p, packed->items, packed->count, b);
        break;
    }
    case RT_TAG_DICT: {
        tsm_put_u32(b, (uint32_t)v.as.dict->live_count);
        size_t at = 0;
        for (rt_dict_entry *e; (e = rt_dict_next(v.as.dict, &at));) {
            put_ref(p, e->key, b);
            put_ref(p, e->value, b);
        }
        break;
    }
    case RT_TAG_OBJECT:
        tsm_put_u32(b, class_number(p, v.as.object->class_));
        put_refs(p, v.as.object->fields, v.as.object->field_count, b);
        break;
    case RT_TAG_ENUM:
        tsm_put_u32(b, class_number(p, v.as.enumeration->class_));
        tsm_put_str(b, v.as.enumeration->name);
        put_ref(p, v.as.enumeration->value, b);
        break;
    default: break; /* refused when it was interned */
    }
}

/* ---- entries ---- */

static const ir_type *parameter_type(const cg_entry_row *e, size_t i) {
    return e->function->body->parameters[i]->type;
}

static bool has_default(const ir_function *f, size_t i) {
    return f->defaults && f->defaults[i].tag != RT_TAG_UNINITIALIZED;
}

void cg_program_intern_entries(cg_program *p) {
    for (size_t e = 0; e < p->entry_count; e++) {
        const cg_entry_row *row = &p->entries[e];
        const ir_function *f = row->function;
        if (row->self_count)
            cg_program_constant(p, p->ir->root);
        for (size_t i = row->self_count; i < f->body->parameter_count; i++) {
            cg_program_type(p, parameter_type(row, i));
            if (has_default(f, i))
                cg_program_constant(p, f->defaults[i]);
        }
        if (f->return_type)
            cg_program_type(p, f->return_type);
    }
}

static void put_text(ts_buffer *text, ts_buffer *b) {
    tsm_put_str(b, (ts_str){text->data, text->length});
    b->failed |= text->failed;
    ts_buffer_deinit(text);
}

/* What is checked where the entry is called, as rows and as text with a line for each; as text what
 * the program itself raises for, and what fast paths take for granted. */
static void put_needs(const cg_entry_row *row, ts_buffer *b) {
    const ir_function *f = row->function;
    uint32_t count = 0;
    ts_buffer checked = {0}, own = {0}, fast = {0};
    for (size_t i = 0; i < f->need_count; i++) {
        ts_buffer *text = f->needs[i].is_own ? &own : &checked;
        ir_need_print(f, &f->needs[i], text);
        ts_buffer_char(text, '\n');
        count += !f->needs[i].is_own;
    }
    ir_print_assumptions(f, &fast);
    tsm_put_u32(b, count);
    for (size_t i = 0; i < f->need_count; i++) {
        const ir_need *need = &f->needs[i];
        if (need->is_own)
            continue;
        bool has_other = need->kind == IR_NEED_SAME;
        tsm_put_u8(b, (uint8_t)need->kind);
        tsm_put_u32(b, (uint32_t)(need->input - row->self_count));
        tsm_put_u32(b, has_other ? (uint32_t)(need->other - row->self_count) : 0);
        tsm_put_u32(b, (uint32_t)need->dim);
        tsm_put_u32(b, (uint32_t)need->other_dim);
        tsm_put_i64(b, need->value);
    }
    put_text(&checked, b);
    put_text(&own, b);
    put_text(&fast, b);
}

static void put_entry(cg_program *p, const cg_entry_row *row, ts_buffer *b) {
    const ir_function *f = row->function;
    tsm_put_str(b, f->name);
    tsm_put_u32(b, cg_program_function(p, row->function));
    tsm_put_u32(b, row->self_count ? cg_program_constant(p, p->ir->root) + 1 : 0);
    size_t count = f->body->parameter_count;
    tsm_put_u32(b, (uint32_t)(count - row->self_count));
    for (size_t i = row->self_count; i < count; i++) {
        ts_str name = f->parameter_names ? f->parameter_names[i] : f->body->parameters[i]->name;
        tsm_put_str(b, name);
        tsm_put_u32(b, cg_program_type(p, parameter_type(row, i)));
        tsm_put_u32(b, has_default(f, i) ? cg_program_constant(p, f->defaults[i]) + 1 : 0);
    }
    const ir_type *result = f->return_type ? f->return_type : ir_type_simple(p->ir, IR_ANY);
    tsm_put_u32(b, cg_program_type(p, result));
    tsm_put_u32(b, row->kernel_count);
    tsm_put_u32(b, row->compiled_count);
    tsm_put_u32(b, row->dynamic_count);
    tsm_put_str(b, row->dynamic_text);
    put_needs(row, b);
}

/* ---- the section ---- */

/* memory.ENTRY: what a run of it needs. */
static void put_memory(cg_program *p, ts_buffer *b) {
    for (size_t i = 0; i < p->entry_count; i++) {
        ir_function *f = p->entries[i].function;
        ir_live_memory need = ir_live_memory_of(p->ir, f);
        tsm_put_str(b, ts_arena_format(p->arena, "memory.%.*s", TS_STR_ARG(f->name)));
        tsm_put_str(b, ir_live_memory_text(p->ir, &need));
    }
}

static void put_meta(cg_program *p, const cg_options *options, ts_buffer *b) {
    ts_buffer levels = {0};
    for (size_t i = 0; i < options->level_count; i++)
        ts_buffer_format(&levels, "%s%s", i ? "," : "", options->levels[i]->name);
    ts_buffer text = {0};
    static const char *const weights[] = {[CG_WEIGHTS_FLOAT32] = "",
                                          [CG_WEIGHTS_BF16] = " --weights-dtype=bf16",
                                          [CG_WEIGHTS_INT8] = " --weights-dtype=int8",
                                          [CG_WEIGHTS_INT4] = " --weights-dtype=int4"};
    ts_buffer_format(&text, "-O%d%s%s%s%s", options->opt_level,
                     options->fast_math ? " --fast-math" : "", weights[options->weights_dtype],
                     options->computes_bf16 ? " --dtype=bf16" : "",
                     options->no_winograd ? " --no-winograd" : "");
    tsm_put_u32(b, 5 + (uint32_t)p->entry_count);
    tsm_put_str(b, TS_STR("compiler"));
    tsm_put_str(b, TS_STR("tsc " TSC_VERSION));
    tsm_put_str(b, TS_STR("source"));
    tsm_put_str(b, options->source_name);
    tsm_put_str(b, TS_STR("levels"));
    tsm_put_str(b, (ts_str){levels.data, levels.length});
    tsm_put_str(b, TS_STR("target"));
    tsm_put_str(b, ts_str_of(options->device == CG_DEVICE_OPENCL ? "opencl"
                             : options->device == CG_DEVICE_CUDA ? "cuda"
                                                                 : "cpu"));
    tsm_put_str(b, TS_STR("options"));
    tsm_put_str(b, (ts_str){text.data, text.length});
    put_memory(p, b);
    ts_buffer_deinit(&levels);
    ts_buffer_deinit(&text);
}

/* Types and classes may be interned by what is written, so they are written to a buffer of their
 * own until nothing new comes. */
static void put_types(cg_program *p, symbol_table *symbols, ts_buffer *b) {
    ts_buffer rows = {0};
    for (size_t i = 0; i < p->type_count; i++)
        put_type(p, symbols, p->types[i], &rows);
    tsm_put_u32(b, (uint32_t)p->type_count);
    ts_buffer_append(b, rows.data, rows.length);
    b->failed |= rows.failed;
    ts_buffer_deinit(&rows);
    tsm_put_u32(b, (uint32_t)symbols->count);
    for (size_t i = 0; i < symbols->count; i++)
        tsm_put_str(b, symbols->names[i]);
}

ts_status cg_program_write(cg_program *p, const cg_options *options, ts_buffer *b) {
    if (p->error) {
        ts_status status = p->error;
        p->error = NULL;
        return status;
    }
    symbol_table symbols = {0};
    put_meta(p, options, b);
    tsm_put_u32(b, (uint32_t)p->string_count);
    for (size_t i = 0; i < p->string_count; i++)
        tsm_put_str(b, p->strings[i]);
    tsm_put_u32(b, (uint32_t)p->place_count);
    for (size_t i = 0; i < p->place_count; i++) {
        const ts_place *place = &p->places[i];
        tsm_put_str(b, place->file);
        tsm_put_u32(b, (uint32_t)place->line);
        tsm_put_u32(b, (uint32_t)place->column);
        tsm_put_u32(b, (uint32_t)place->length);
    }
    tsm_put_u32(b, (uint32_t)p->class_count);
    for (size_t i = 0; i < p->class_count; i++)
        put_class(p, p->classes[i], b);
    put_types(p, &symbols, b);
    tsm_put_u32(b, (uint32_t)p->storage_count);
    for (size_t i = 0; i < p->storage_count; i++) {
        tsm_put_u64(b, p->storages[i].offset);
        tsm_put_u64(b, p->storages[i].bytes);
        tsm_put_u8(b, p->storages[i].is_mutable);
    }
    tsm_put_u32(b, (uint32_t)p->node_count);
    for (size_t i = 0; i < p->node_count; i++)
        put_node(p, p->nodes[i], b);
    put_refs(p, p->constants, p->constant_count, b);
    tsm_put_u32(b, (uint32_t)p->operator_count);
    for (size_t i = 0; i < p->operator_count; i++)
        tsm_put_str(b, rt_op_name(p->operators[i]));
    for (size_t i = 0; i < p->operator_count; i++)
        tsm_put_u32(b, (uint32_t)ir_schema_of(p->ir, p->operators[i])->arg_count);
    tsm_put_u32(b, (uint32_t)p->function_count);
    for (size_t i = 0; i < p->function_count; i++)
        tsm_put_str(b, p->functions[i]->name);
    tsm_put_u32(b, (uint32_t)p->method_count);
    for (size_t i = 0; i < p->method_count; i++) {
        tsm_put_u32(b, p->methods[i].class_);
        tsm_put_u32(b, p->methods[i].name);
        tsm_put_u32(b, cg_program_function(p, p->methods[i].function));
    }
    tsm_put_u32(b, (uint32_t)p->kernel_count);
    for (size_t i = 0; i < p->kernel_count; i++) {
        tsm_put_str(b, p->kernels[i].name);
        tsm_put_u32(b, p->kernels[i].place);
        tsm_put_f64(b, p->kernels[i].flops);
        tsm_put_f64(b, p->kernels[i].bytes);
    }
    tsm_put_u32(b, (uint32_t)p->header_count);
    tsm_put_i64(b, p->arena_bytes);
    tsm_put_u32(b, (uint32_t)p->entry_count);
    for (size_t i = 0; i < p->entry_count; i++)
        put_entry(p, &p->entries[i], b);
    return ts_buffer_status(b);
}
