/* runtime/values/value.c - the end of boxed values, and the small ones: complex, str, opaque. */
#include "runtime/values/value.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/checked.h"
#include "runtime/values/tensor.h"

/* A value whose last reference went. They wait in a list threaded through their reference counts,
 * so that a chain of a million nested lists needs no stack. */
typedef struct doomed {
    rt_counted *first;
} doomed;

static void doom(doomed *queue, rt_counted *counted) {
    atomic_store_explicit(&counted->references, (int64_t)(intptr_t)queue->first,
                          memory_order_relaxed);
    queue->first = counted;
}

static void drop(doomed *queue, rt_value v) {
    if (rt_is_counted(v) &&
        atomic_fetch_sub_explicit(&v.as.counted->references, 1, memory_order_acq_rel) == 1)
        doom(queue, v.as.counted);
}

static void destroy_contents(doomed *queue, rt_counted *counted) {
    switch ((rt_tag)counted->tag) {
    case RT_TAG_TENSOR:
        rt_storage_release(((rt_tensor *)counted)->storage);
        if (TS_UNLIKELY(((rt_tensor *)counted)->scales != NULL)) {
            drop(queue, rt_from_tensor(((rt_tensor *)counted)->scales));
            drop(queue, rt_from_tensor(((rt_tensor *)counted)->zero_points));
        }
        break;
    case RT_TAG_LIST: {
        rt_list *list = (rt_list *)counted;
        for (size_t i = 0; i < list->count; i++)
            drop(queue, list->items[i]);
        free(list->items);
        break;
    }
    case RT_TAG_TUPLE: {
        rt_tuple *tuple = (rt_tuple *)counted;
        for (size_t i = 0; i < tuple->count; i++)
            drop(queue, tuple->items[i]);
        break;
    }
    case RT_TAG_DICT: {
        rt_dict *dict = (rt_dict *)counted;
        for (size_t i = 0; i < dict->entry_count; i++) {
            if (!dict->entries[i].is_live)
                continue;
            drop(queue, dict->entries[i].key);
            drop(queue, dict->entries[i].value);
        }
        free(dict->entries);
        free(dict->index);
        break;
    }
    case RT_TAG_OBJECT: {
        rt_object *object = (rt_object *)counted;
        for (size_t i = 0; i < object->field_count; i++)
            drop(queue, object->fields[i]);
        free(object->fields);
        break;
    }
    case RT_TAG_ENUM:
        drop(queue, ((rt_enum *)counted)->value);
        break;
    case RT_TAG_GENERATOR:
        break; /* one block */
    case RT_TAG_FUNCTION:
    case RT_TAG_CAPSULE: {
        rt_capsule *capsule = (rt_capsule *)counted;
        if (capsule->release)
            capsule->release(capsule->pointer);
        break;
    }
    case RT_TAG_COMPLEX:
    case RT_TAG_STR:
    case RT_TAG_NONE:
    case RT_TAG_BOOL:
    case RT_TAG_INT:
    case RT_TAG_FLOAT:
    case RT_TAG_DEVICE:
    case RT_TAG_UNINITIALIZED:
        break;
    }
}

void rt_value_destroy(rt_value v) {
    doomed queue = {NULL};
    doom(&queue, v.as.counted);
    while (queue.first) {
        rt_counted *counted = queue.first;
        queue.first = (rt_counted *)(intptr_t)atomic_load_explicit(&counted->references,
                                                                   memory_order_relaxed);
        destroy_contents(&queue, counted);
        free(counted);
    }
}

static void init_counted(rt_counted *base, rt_tag tag) {
    atomic_init(&base->references, 1);
    base->tag = tag;
    base->flags = 0;
}

ts_status rt_complex_make(double re, double im, rt_value *out) {
    *out = rt_none();
    rt_complex *c = malloc(sizeof *c);
    if (!c)
        return ts_no_memory();
    init_counted(&c->base, RT_TAG_COMPLEX);
    c->re = re;
    c->im = im;
    *out = (rt_value){.tag = RT_TAG_COMPLEX, .as.complex = c};
    return NULL;
}

static ts_status make_str(size_t length, rt_str **out) {
    size_t bytes;
    *out = NULL;
    if (!ts_add_size(length, sizeof(rt_str) + 1, &bytes))
        return ts_no_memory();
    rt_str *s = malloc(bytes);
    if (!s)
        return ts_no_memory();
    init_counted(&s->base, RT_TAG_STR);
    s->length = length;
    s->data[length] = 0;
    *out = s;
    return NULL;
}

static void count_code_points(rt_str *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->length; i++)
        count += ((unsigned char)s->data[i] & 0xc0u) != 0x80u;
    s->code_points = count;
}

ts_status rt_str_make(ts_str text, rt_value *out) {
    *out = rt_none();
    rt_str *s;
    TS_TRY(make_str(text.length, &s));
    if (text.length)
        memcpy(s->data, text.data, text.length);
    count_code_points(s);
    *out = (rt_value){.tag = RT_TAG_STR, .as.str = s};
    return NULL;
}

ts_status rt_str_format(rt_value *out, const char *format, ...) {
    *out = rt_none();
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return ts_error_make(TS_ERR_INTERNAL, "text cannot be formatted");
    rt_str *s;
    TS_TRY(make_str((size_t)length, &s));
    va_start(args, format);
    vsnprintf(s->data, (size_t)length + 1, format, args);
    va_end(args);
    count_code_points(s);
    *out = (rt_value){.tag = RT_TAG_STR, .as.str = s};
    return NULL;
}

ts_status rt_enum_make(const rt_class *class_, ts_str name, rt_value value, rt_value *out) {
    *out = rt_none();
    rt_enum *e = malloc(sizeof *e);
    if (!e)
        return ts_no_memory();
    init_counted(&e->base, RT_TAG_ENUM);
    e->class_ = class_;
    e->name = name;
    e->value = rt_retain(value);
    *out = (rt_value){.tag = RT_TAG_ENUM, .as.enumeration = e};
    return NULL;
}

ts_status rt_capsule_make(rt_tag tag, const char *kind, void *pointer, void (*release)(void *),
                          rt_value *out) {
    *out = rt_none();
    rt_capsule *c = malloc(sizeof *c);
    if (!c)
        return ts_no_memory();
    init_counted(&c->base, tag);
    c->kind = kind;
    c->pointer = pointer;
    c->release = release;
    *out = (rt_value){.tag = tag, .as.counted = &c->base};
    return NULL;
}

ts_status rt_capsule_copy(const char *kind, const void *data, size_t size, void (*release)(void *),
                          rt_value *out) {
    void *copy = malloc(size);
    if (!copy)
        return ts_no_memory();
    memcpy(copy, data, size);
    ts_status status = rt_capsule_make(RT_TAG_CAPSULE, kind, copy, release, out);
    if (status)
        free(copy);
    return status;
}

void *rt_capsule_of(rt_value v, const char *kind) {
    const rt_capsule *c = v.tag == RT_TAG_CAPSULE ? v.as.pointer : NULL;
    return c && c->kind == kind ? c->pointer : NULL;
}

ts_status rt_object_make(const rt_class *class_, rt_value *out) {
    *out = rt_none();
    rt_object *o = malloc(sizeof *o);
    if (!o)
        return ts_no_memory();
    size_t count = class_->field_count;
    init_counted(&o->base, RT_TAG_OBJECT);
    o->class_ = class_;
    o->field_count = count;
    o->fields = calloc(count ? count : 1, sizeof *o->fields);
    if (!o->fields) {
        free(o);
        return ts_no_memory();
    }
    for (size_t i = 0; i < count; i++)
        o->fields[i].tag = RT_TAG_UNINITIALIZED;
    *out = (rt_value){.tag = RT_TAG_OBJECT, .as.object = o};
    return NULL;
}

int64_t rt_class_field(const rt_class *class_, ts_str name) {
    for (size_t i = 0; i < class_->field_count; i++)
        if (ts_str_equal(class_->fields[i], name))
            return (int64_t)i;
    return -1;
}

bool rt_class_is_a(const rt_class *class_, const rt_class *ancestor) {
    if (class_ == ancestor)
        return true;
    for (size_t i = 0; i < class_->base_count; i++)
        if (class_->bases[i] == ancestor)
            return true;
    return false;
}

ts_status rt_tuple_make(size_t count, rt_value *out) {
    *out = rt_none();
    size_t bytes;
    if (!ts_mul_size(count, sizeof(rt_value), &bytes) ||
        !ts_add_size(bytes, sizeof(rt_tuple), &bytes))
        return ts_no_memory();
    rt_tuple *t = malloc(bytes);
    if (!t)
        return ts_no_memory();
    init_counted(&t->base, RT_TAG_TUPLE);
    t->class_ = NULL;
    t->count = count;
    for (size_t i = 0; i < count; i++)
        t->items[i] = rt_none();
    *out = (rt_value){.tag = RT_TAG_TUPLE, .as.tuple = t};
    return NULL;
}

ts_status rt_list_make(size_t capacity, rt_value *out) {
    *out = rt_none();
    rt_list *list = malloc(sizeof *list);
    if (!list)
        return ts_no_memory();
    init_counted(&list->base, RT_TAG_LIST);
    list->count = 0;
    list->capacity = 0;
    list->items = NULL;
    if (capacity) {
        size_t bytes;
        if (ts_mul_size(capacity, sizeof *list->items, &bytes))
            list->items = malloc(bytes);
        if (!list->items) {
            free(list);
            return ts_no_memory();
        }
        list->capacity = capacity;
    }
    *out = (rt_value){.tag = RT_TAG_LIST, .as.list = list};
    return NULL;
}

ts_status rt_list_insert(rt_list *list, size_t index, rt_value item) {
    if (list->count == list->capacity) {
        size_t capacity, bytes;
        if (!ts_mul_size(list->capacity ? list->capacity : 4, 2, &capacity) ||
            !ts_mul_size(capacity, sizeof *list->items, &bytes))
            return ts_no_memory();
        rt_value *items = realloc(list->items, bytes);
        if (!items)
            return ts_no_memory();
        list->items = items;
        list->capacity = capacity;
    }
    if (index > list->count)
        index = list->count;
    if (index < list->count)
        memmove(list->items + index + 1, list->items + index,
                (list->count - index) * sizeof *list->items);
    list->items[index] = rt_retain(item);
    list->count++;
    return NULL;
}

ts_status rt_list_append(rt_list *list, rt_value item) {
    return rt_list_insert(list, list->count, item);
}

rt_value rt_list_take_at(rt_list *list, size_t index) {
    rt_value item = list->items[index];
    list->count--;
    if (index < list->count)
        memmove(list->items + index, list->items + index + 1,
                (list->count - index) * sizeof *list->items);
    return item;
}

void rt_list_clear(rt_list *list) {
    while (list->count > 0)
        rt_release(list->items[--list->count]);
}

ts_status rt_int_list_make(const int64_t *items, size_t count, rt_value *out) {
    TS_TRY(rt_list_make(count, out));
    for (size_t i = 0; i < count; i++)
        out->as.list->items[i] = rt_int(items[i]);
    out->as.list->count = count;
    return NULL;
}
