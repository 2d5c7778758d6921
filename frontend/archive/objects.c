/* frontend/archive/objects.c - from the tree of a pickle to values: tensors, containers, and
 * objects of classes whose text lies in the archive.
 *
 * A node is converted once and its value kept in it, so what was one object in the pickle is one
 * object here. Depth is bounded by the pickle reader. */
#include "frontend/archive/packed.h"
#include "frontend/archive/archive_internal.h"

typedef fe_pickle_node node;

typedef struct builder {
    fe_archive *archive;
    const fe_torchscript_classes *classes;
    fe_records *records;
    ts_str member;
} builder;

static ts_status convert(builder *b, node *n, rt_value *out);

static ts_status bad(const node *n, const char *text) {
    return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: %s", n->offset, text);
}

/* Gives a fresh value to the archive; it stays borrowed everywhere else. */
static void own(builder *b, rt_value v) {
    fe_archive *a = b->archive;
    if (rt_is_counted(v))
        TS_APPEND(a->arena, a->owned, a->owned_count, a->owned_capacity, v);
}

static ts_status sequence(builder *b, const node *n, bool is_tuple, rt_value *out) {
    size_t count = n->as.list.count;
    TS_TRY(is_tuple ? rt_tuple_make(count, out) : rt_list_make(count, out));
    own(b, *out);
    for (size_t i = 0; i < count; i++) {
        rt_value item = rt_none();
        TS_TRY(convert(b, n->as.list.items[i], &item));
        if (is_tuple)
            out->as.tuple->items[i] = rt_retain(item);
        else
            TS_TRY(rt_list_append(out->as.list, item));
    }
    return NULL;
}

static ts_status dict(builder *b, const node *n, rt_value *out) {
    TS_TRY(rt_dict_make(out));
    own(b, *out);
    for (size_t i = 0; n && i + 1 < n->as.list.count; i += 2) {
        rt_value key = rt_none(), value = rt_none();
        TS_TRY(convert(b, n->as.list.items[i], &key));
        TS_TRY(convert(b, n->as.list.items[i + 1], &value));
        ts_status status = rt_dict_set(out->as.dict, key, value);
        if (status) {
            ts_status_release(status);
            return bad(n->as.list.items[i], "the key of a dict cannot be hashed");
        }
    }
    return NULL;
}

static ts_str class_name(const node *n) { return n->callee->as.text; }

static ts_status find_class(builder *b, const node *n, const ir_class **out) {
    ts_str name = class_name(n);
    if (ts_str_starts_with(name, "__torch__.torch.classes."))
        return ts_error_make(TS_ERR_UNSUPPORTED, "offset %zu: custom class %.*s (packed quantized "
                             "parameters and the like) is not supported yet", n->offset,
                             TS_STR_ARG(name));
    TS_TRY(b->classes->find(b->classes->user, name, out));
    if (!*out)
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: class %.*s is not defined in code/",
                             n->offset, TS_STR_ARG(name));
    return NULL;
}

static const ir_field *find_field(const ir_class *c, ts_str name) {
    for (size_t i = 0; i < c->field_count; i++)
        if (ts_str_equal(c->fields[i].name, name))
            return &c->fields[i];
    return NULL;
}

static ts_status check_type(builder *b, const node *n, ts_str owner, ts_str field,
                            const ir_type *type, rt_value v) {
    (void)b;
    size_t budget = FE_ARCHIVE_MAX_VISITS;
    if (!type || fe_archive_value_fits(type, v, &budget))
        return NULL;
    if (budget == 0)
        return bad(n, "an attribute of more than 2**26 values");
    return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: attribute %.*s of class %.*s holds %s, "
                         "which is not of the declared type", n->offset, TS_STR_ARG(field),
                         TS_STR_ARG(owner), rt_tag_name(v));
}

static ts_status set_fields(builder *b, const ir_class *c, const node *state, rt_object *object) {
    if (state->kind != FE_PICKLE_DICT)
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: state of class %.*s: expected a "
                             "dict, found %s", state->offset, TS_STR_ARG(c->base.name),
                             fe_pickle_kind_text(state));
    for (size_t i = 0; i + 1 < state->as.list.count; i += 2) {
        node *key = state->as.list.items[i], *value = state->as.list.items[i + 1];
        if (key->kind != FE_PICKLE_STR)
            return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: attribute name of class %.*s: "
                                 "expected a string, found %s", key->offset,
                                 TS_STR_ARG(c->base.name), fe_pickle_kind_text(key));
        ts_str name = key->as.text;
        int64_t at = rt_class_field(&c->base, name);
        const ir_field *field = find_field(c, name);
        if (at < 0 || (size_t)at >= object->field_count)
            return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: class %.*s declares no "
                                 "attribute %.*s", key->offset, TS_STR_ARG(c->base.name),
                                 TS_STR_ARG(name));
        if (object->fields[at].tag != RT_TAG_UNINITIALIZED)
            return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: attribute %.*s of class %.*s is "
                                 "given twice", key->offset, TS_STR_ARG(name),
                                 TS_STR_ARG(c->base.name));
        rt_value v = rt_none();
        TS_TRY(convert(b, value, &v));
        TS_TRY(check_type(b, value, c->base.name, name, field ? field->type : NULL, v));
        rt_assign(&object->fields[at], rt_retain(v));
    }
    for (size_t i = 0; i < object->field_count; i++) {
        const ir_field *field = find_field(c, c->base.fields[i]);
        if (object->fields[i].tag != RT_TAG_UNINITIALIZED)
            continue;
        if (field && field->is_constant)
            rt_assign(&object->fields[i], rt_retain(field->constant));
        else
            return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: attribute %.*s of class %.*s is "
                                 "missing", state->offset, TS_STR_ARG(c->base.fields[i]),
                                 TS_STR_ARG(c->base.name));
    }
    return NULL;
}

static ts_status named_tuple(builder *b, const node *n, const ir_class *c, rt_value *out) {
    node *args = n->as.list.items[0];
    /* Written as the fields themselves, or as one tuple of them. */
    if (args->as.list.count == 1 && c->base.field_count != 1 &&
        args->as.list.items[0]->kind == FE_PICKLE_TUPLE)
        args = args->as.list.items[0];
    if (args->as.list.count != c->base.field_count)
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: %.*s has %zu fields, found %zu",
                             n->offset, TS_STR_ARG(c->base.name), c->base.field_count,
                             args->as.list.count);
    TS_TRY(rt_tuple_make(c->base.field_count, out));
    own(b, *out);
    out->as.tuple->class_ = &c->base;
    for (size_t i = 0; i < c->base.field_count; i++) {
        rt_value item = rt_none();
        TS_TRY(convert(b, args->as.list.items[i], &item));
        const ir_field *field = find_field(c, c->base.fields[i]);
        TS_TRY(check_type(b, n, c->base.name, c->base.fields[i], field ? field->type : NULL, item));
        out->as.tuple->items[i] = rt_retain(item);
    }
    return NULL;
}

static ts_status enum_member(builder *b, const node *n, const ir_class *c, rt_value *out) {
    const node *args = n->as.list.items[0];
    if (args->as.list.count != 1)
        return bad(n, "a member of an Enum is given by its value");
    rt_value value = rt_none();
    TS_TRY(convert(b, args->as.list.items[0], &value));
    for (size_t i = 0; i < c->enum_member_count; i++) {
        bool is_equal = false;
        rt_value member = c->enum_members[i];
        if (member.tag == RT_TAG_ENUM && member.as.enumeration->value.tag == value.tag)
            TS_TRY(rt_equal(member.as.enumeration->value, value, &is_equal));
        if (is_equal) {
            *out = rt_retain(member);
            own(b, *out);
            return NULL;
        }
    }
    return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: %.*s has no member of that value",
                         n->offset, TS_STR_ARG(c->base.name));
}

static ts_status instance(builder *b, node *n, rt_value *out) {
    const ir_class *c = NULL;
    if (ts_str_starts_with(class_name(n), "__torch__.torch.classes.") && n->state) {
        rt_value state = rt_none();
        TS_TRY(convert(b, n->state, &state));
        TS_TRY(ts_status_context(fe_packed_from_state(class_name(n), state, out), "at offset %zu",
                                 n->offset));
        own(b, *out);
        return NULL;
    }
    TS_TRY(find_class(b, n, &c));
    switch (c->base.kind) {
    case RT_CLASS_NAMED_TUPLE:
        return named_tuple(b, n, c, out);
    case RT_CLASS_ENUM:
        return enum_member(b, n, c, out);
    case RT_CLASS_PLAIN:
    case RT_CLASS_MODULE:
        break;
    case RT_CLASS_INTERFACE:
    case RT_CLASS_EXCEPTION:
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: an object of %.*s, which has none",
                             n->offset, TS_STR_ARG(c->base.name));
    }
    if (n->kind != FE_PICKLE_NEW || n->as.list.items[0]->as.list.count != 0)
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: an object of %.*s made with "
                             "arguments", n->offset, TS_STR_ARG(c->base.name));
    if (!n->state)
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: an object of %.*s without state",
                             n->offset, TS_STR_ARG(c->base.name));
    TS_TRY(rt_object_make(&c->base, out));
    own(b, *out);
    if (!b->classes->has_method(b->classes->user, c, TS_STR("__setstate__")))
        return set_fields(b, c, n->state, out->as.object);
    rt_value state = rt_none();
    TS_TRY(convert(b, n->state, &state));
    fe_archive *a = b->archive;
    TS_APPEND(a->arena, a->pending, a->pending_count, a->pending_capacity,
              ((fe_pending_state){*out, state}));
    return NULL;
}

/* torch.device('cuda:0'): whatever an archive was made on, it runs on the cpu here. */
static ts_status device(builder *b, const node *n, ts_str s, rt_value *out) {
    static const char *const kinds[] = {"cpu", "cuda", "hip", "xpu", "mps", "privateuseone", "meta"};
    const char *colon = memchr(s.data, ':', s.length);
    ts_str kind = {s.data, colon ? (size_t)(colon - s.data) : s.length};
    ts_str digits = {colon ? colon + 1 : s.data, colon ? s.length - kind.length - 1 : 0};
    if (colon && (digits.length == 0 || digits.length > 3))
        return bad(n, "index of a device: expected up to 3 digits");
    for (size_t i = 0; i < digits.length; i++)
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return bad(n, "index of a device: expected up to 3 digits");
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ts_str_is(kind, kinds[i])) {
            b->records->has_foreign_device |= i != 0;
            *out = (rt_value){.tag = RT_TAG_DEVICE, .aux = 0, .as.i = -1};
            return NULL;
        }
    return ts_error_make(TS_ERR_UNSUPPORTED, "offset %zu: device %.*s is not supported", n->offset,
                         TS_STR_ARG(s));
}

static ts_status number_of(const node *n, double *out) {
    if (n->kind == FE_PICKLE_FLOAT)
        *out = n->as.number;
    else if (n->kind == FE_PICKLE_INT)
        *out = (double)n->as.integer;
    else
        return bad(n, "expected a number");
    return NULL;
}

/* build_intlist and its like: the one list, all of whose items are of one kind. */
static ts_status typed_list(builder *b, const node *n, rt_tag tag, rt_value *out) {
    const node *args = n->as.list.items[0];
    if (args->as.list.count != 1 || args->as.list.items[0]->kind != FE_PICKLE_LIST)
        return bad(n, "a list of one type: expected one list");
    TS_TRY(convert(b, args->as.list.items[0], out));
    for (size_t i = 0; i < out->as.list->count; i++)
        if (out->as.list->items[i].tag != (uint32_t)tag)
            return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: a list of one type holds %s",
                                 n->offset, rt_tag_name(out->as.list->items[i]));
    return NULL;
}

/* (layout, sizes, requires_grad, indices, values, hooks), coordinates only: made dense here, so that
 * everything behind the reader sees one kind of tensor. Places that are given twice add up. */
static ts_status sparse(builder *b, const node *n, rt_value *out) {
    enum { MOST_ELEMENTS = 1 << 26 };
    node *const *args = n->as.list.items[0]->as.list.items;
    int64_t sizes[RT_MAX_RANK], total = 0;
    rt_value indices = rt_none(), values = rt_none();
    if (n->as.list.items[0]->as.list.count < 5 || args[0]->kind != FE_PICKLE_INT ||
        args[0]->as.integer != 1 || args[1]->kind != FE_PICKLE_TUPLE ||
        args[1]->as.list.count > RT_MAX_RANK)
        return ts_error_make(TS_ERR_UNSUPPORTED, "offset %zu: sparse tensors of this layout are not "
                             "supported", n->offset);
    size_t rank = args[1]->as.list.count;
    for (size_t d = 0; d < rank; d++) {
        const node *size = args[1]->as.list.items[d];
        if (size->kind != FE_PICKLE_INT || size->as.integer < 0)
            return bad(size, "sizes of a sparse tensor: expected ints of 0 or more");
        sizes[d] = size->as.integer;
    }
    if (!rt_element_count(sizes, (int)rank, &total) || total > MOST_ELEMENTS)
        return ts_error_make(TS_ERR_UNSUPPORTED, "offset %zu: a sparse tensor of more than %d "
                             "elements", n->offset, MOST_ELEMENTS);
    TS_TRY(convert(b, args[3], &indices));
    TS_TRY(convert(b, args[4], &values));
    const rt_tensor *at = indices.as.tensor, *from = values.as.tensor;
    if (indices.tag != RT_TAG_TENSOR || values.tag != RT_TAG_TENSOR || at->dtype != RT_int64 ||
        at->rank != 2 || (size_t)at->sizes[0] != rank || from->rank != 1 ||
        from->sizes[0] != at->sizes[1])
        return ts_error_make(TS_ERR_UNSUPPORTED, "offset %zu: a sparse tensor whose values have "
                             "dimensions of their own is not supported", n->offset);
    rt_tensor *dense = NULL;
    rt_dtype dtype = (rt_dtype)from->dtype;
    TS_TRY(rt_tensor_make_zeroed(dtype, sizes, (int)rank, &dense));
    *out = rt_from_tensor(dense);
    own(b, *out);
    for (int64_t i = 0; i < from->sizes[0]; i++) {
        int64_t place = 0;
        for (size_t d = 0; d < rank; d++) {
            int64_t k = ((const int64_t *)at->data)[(int64_t)d * at->strides[0] + i * at->strides[1]];
            if (k < 0 || k >= sizes[d])
                return bad(n, "an index of a sparse tensor lies outside");
            place = place * sizes[d] + k;
        }
        size_t width = rt_dtype_size(dtype);
        const char *value = (const char *)from->data + (size_t)(i * from->strides[0]) * width;
        char *to = (char *)dense->data + (size_t)place * width;
        if (rt_dtype_is_complex(dtype)) {
            rt_complex128 x = rt_load_complex(dtype, value), y = rt_load_complex(dtype, to);
            rt_store_complex(dtype, to, (rt_complex128){x.re + y.re, x.im + y.im});
        } else if (rt_dtype_category(dtype) == 'f') {
            rt_store_double(dtype, to, rt_load_double(dtype, value) + rt_load_double(dtype, to));
        } else {
            rt_store_int(dtype, to, (int64_t)((uint64_t)rt_load_int(dtype, value) +
                                              (uint64_t)rt_load_int(dtype, to)));
        }
    }
    return NULL;
}

static ts_status call(builder *b, node *n, rt_value *out) {
    node *const *args = n->as.list.items[0]->as.list.items;
    size_t count = n->as.list.items[0]->as.list.count;
    switch ((fe_global)n->callee->global) {
    case FE_GLOBAL_CLASS:
        return instance(b, n, out);
    case FE_GLOBAL_REBUILD_TENSOR:
    case FE_GLOBAL_REBUILD_TENSOR_V1:
    case FE_GLOBAL_REBUILD_QTENSOR:
    case FE_GLOBAL_REBUILD_PARAMETER:
    case FE_GLOBAL_REBUILD_PARAMETER_WITH_STATE:
    case FE_GLOBAL_REBUILD_FROM_TYPE: {
        rt_tensor *t = NULL;
        TS_TRY(fe_records_tensor(b->records, n, &t));
        *out = rt_from_tensor(t);
        own(b, *out);
        return NULL;
    }
    case FE_GLOBAL_INT_LIST:
        return typed_list(b, n, RT_TAG_INT, out);
    case FE_GLOBAL_DOUBLE_LIST:
        return typed_list(b, n, RT_TAG_FLOAT, out);
    case FE_GLOBAL_BOOL_LIST:
        return typed_list(b, n, RT_TAG_BOOL, out);
    case FE_GLOBAL_TENSOR_LIST:
        return typed_list(b, n, RT_TAG_TENSOR, out);
    case FE_GLOBAL_TENSOR_FROM_ID: {
        const rt_tuple *table = b->archive->legacy_tensors;
        if (!table || count != 1 || args[0]->kind != FE_PICKLE_INT || args[0]->as.integer < 0 ||
            (uint64_t)args[0]->as.integer >= table->count)
            return bad(n, "build_tensor_from_id: expected the number of a tensor of model.json");
        *out = table->items[args[0]->as.integer];
        return NULL;
    }
    case FE_GLOBAL_RESTORE_TYPE_TAG:
        if (count != 2 || args[1]->kind != FE_PICKLE_STR)
            return bad(n, "restore_type_tag: expected a value and a type");
        return convert(b, args[0], out);
    case FE_GLOBAL_COMPLEX: {
        double re = 0, im = 0;
        if (count != 2)
            return bad(n, "complex: expected two numbers");
        TS_TRY(number_of(args[0], &re));
        TS_TRY(number_of(args[1], &im));
        TS_TRY(rt_complex_make(re, im, out));
        own(b, *out);
        return NULL;
    }
    case FE_GLOBAL_DEVICE:
        if (count != 1 || args[0]->kind != FE_PICKLE_STR)
            return bad(n, "torch.device: expected a string");
        return device(b, n, args[0]->as.text, out);
    case FE_GLOBAL_ORDERED_DICT:
        if (count != 0)
            return bad(n, "OrderedDict: expected no arguments");
        return dict(b, n->entries, out);
    case FE_GLOBAL_PER_TENSOR_AFFINE:
    case FE_GLOBAL_PER_CHANNEL_AFFINE:
    case FE_GLOBAL_PER_CHANNEL_AFFINE_FLOAT:
        return ts_error_make(TS_ERR_UNSUPPORTED, "offset %zu: quantized tensors are not supported "
                             "yet", n->offset);
    case FE_GLOBAL_REBUILD_SPARSE:
        return sparse(b, n, out);
    case FE_GLOBAL_SIZE:
    case FE_GLOBAL_STORAGE:
    case FE_GLOBAL_OPAQUE:
        break;
    }
    return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: a call of %.*s has no meaning here",
                         n->offset, TS_STR_ARG(n->callee->as.text));
}

static ts_status convert_new(builder *b, node *n, rt_value *out) {
    switch ((fe_pickle_kind)n->kind) {
    case FE_PICKLE_NONE:
        *out = rt_none();
        return NULL;
    case FE_PICKLE_BOOL:
        *out = rt_bool(n->as.integer != 0);
        return NULL;
    case FE_PICKLE_INT:
        *out = rt_int(n->as.integer);
        return NULL;
    case FE_PICKLE_FLOAT:
        *out = rt_float(n->as.number);
        return NULL;
    case FE_PICKLE_STR:
        TS_TRY(rt_str_make(n->as.text, out));
        own(b, *out);
        return NULL;
    case FE_PICKLE_TUPLE:
        return sequence(b, n, true, out);
    case FE_PICKLE_LIST:
        return sequence(b, n, false, out);
    case FE_PICKLE_DICT:
        return dict(b, n, out);
    case FE_PICKLE_NEW:
        return instance(b, n, out);
    case FE_PICKLE_CALL:
        return call(b, n, out);
    case FE_PICKLE_BIG:
    case FE_PICKLE_BYTES:
    case FE_PICKLE_GLOBAL:
    case FE_PICKLE_PERSISTENT:
        break;
    }
    return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: %s is no value of a model", n->offset,
                         fe_pickle_kind_text(n));
}

/* *out is borrowed: the archive owns it. */
static ts_status convert(builder *b, node *n, rt_value *out) {
    if (!n->has_value) {
        TS_TRY(convert_new(b, n, &n->value));
        n->has_value = true;
    }
    *out = n->value;
    return NULL;
}

ts_status fe_archive_build(fe_archive *archive, const fe_torchscript_classes *classes,
                           fe_records *records, ts_str member, fe_pickle_node *root,
                           rt_value *out) {
    builder b = {archive, classes, records, member};
    return ts_status_context(convert(&b, root, out), "reading %.*s", TS_STR_ARG(member));
}

static bool all_fit(const ir_type *type, const rt_value *items, size_t count, size_t *budget) {
    for (size_t i = 0; i < count; i++)
        if (!fe_archive_value_fits(type, items[i], budget))
            return false;
    return true;
}

static bool is_of_class(const ir_class *c, const rt_class *found) {
    return !c || found == &c->base || c->base.kind == RT_CLASS_INTERFACE ||
           rt_class_is_a(found, &c->base);
}

bool fe_archive_value_fits(const ir_type *type, rt_value v, size_t *budget) {
    if (*budget == 0)
        return false;
    --*budget;
    switch (type->kind) {
    case IR_NONE: return v.tag == RT_TAG_NONE;
    case IR_BOOL: return v.tag == RT_TAG_BOOL;
    case IR_INT: return v.tag == RT_TAG_INT;
    case IR_FLOAT: return v.tag == RT_TAG_FLOAT;
    case IR_COMPLEX: return v.tag == RT_TAG_COMPLEX;
    case IR_NUMBER: return v.tag == RT_TAG_BOOL || v.tag == RT_TAG_INT || v.tag == RT_TAG_FLOAT ||
                           v.tag == RT_TAG_COMPLEX;
    case IR_STR: return v.tag == RT_TAG_STR;
    case IR_DEVICE: return v.tag == RT_TAG_DEVICE;
    case IR_GENERATOR: return v.tag == RT_TAG_GENERATOR;
    case IR_TENSOR: return v.tag == RT_TAG_TENSOR;
    case IR_LIST:
        return v.tag == RT_TAG_LIST &&
               all_fit(type->args[0], v.as.list->items, v.as.list->count, budget);
    case IR_TUPLE:
        if (v.tag != RT_TAG_TUPLE || v.as.tuple->count != type->arg_count)
            return false;
        /* Pickles write a named tuple as a plain one: the attribute's type says what it is. */
        if (type->class_ && !v.as.tuple->class_)
            v.as.tuple->class_ = &type->class_->base;
        if (type->class_ && v.as.tuple->class_ != &type->class_->base)
            return false;
        for (size_t i = 0; i < type->arg_count; i++)
            if (!fe_archive_value_fits(type->args[i], v.as.tuple->items[i], budget))
                return false;
        return true;
    case IR_DICT: {
        if (v.tag != RT_TAG_DICT)
            return false;
        rt_dict_entry *e = NULL;
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at));)
            if (!fe_archive_value_fits(type->args[0], e->key, budget) ||
                !fe_archive_value_fits(type->args[1], e->value, budget))
                return false;
        return true;
    }
    case IR_OPTIONAL:
        return v.tag == RT_TAG_NONE || fe_archive_value_fits(type->args[0], v, budget);
    case IR_UNION:
        for (size_t i = 0; i < type->arg_count; i++)
            if (fe_archive_value_fits(type->args[i], v, budget))
                return true;
        return false;
    case IR_CLASS:
        return v.tag == RT_TAG_OBJECT && is_of_class(type->class_, v.as.object->class_);
    case IR_ENUM:
        return v.tag == RT_TAG_ENUM && is_of_class(type->class_, v.as.enumeration->class_);
    case IR_CAPSULE: return v.tag == RT_TAG_CAPSULE;
    case IR_FUTURE:
    case IR_VAR: return false;
    case IR_ANY: return true;
    }
    return true;
}
