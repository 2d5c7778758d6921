/* runtime/services.c - what native code calls for values, containers, objects and errors: the rows
 * of runtime/format/services.def but the tensors'. */
#include "runtime/services.h"

TS_WEAK ts_status rt_lift_call(rt_lift lift, bool in_place, rt_kernel kernel, rt_context *context,
                               const rt_value *args, size_t count, rt_value *outs);

/* ---- values ---- */

static void service_release(rt_value *slot) {
    rt_value v = *slot;
    *slot = rt_none();
    rt_release(v);
}

static void service_copy(rt_value *slot, const rt_value *from) { *slot = rt_retain(*from); }

static void service_frame_release(rt_value *slots, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        service_release(&slots[i]);
}

/* ---- operators ---- */

ts_place rt_place(const tsrt_model *model, uint32_t place) {
    return place < model->program.place_count ? model->program.places[place] : (ts_place){0};
}

static TS_NOINLINE ts_status placed(tsrt_session *s, ts_status status, uint32_t place) {
    return ts_status_set_place(status, rt_place(s->model, place));
}

ts_status rt_check_interrupt(tsrt_session *s) {
    if (atomic_load_explicit(&s->is_cancelled, memory_order_relaxed))
        return ts_error_make(TS_ERR_CANCELLED, "the run was cancelled");
    if (s->deadline_ns && rt_now_ns() >= s->deadline_ns)
        return ts_error_make(TS_ERR_CANCELLED, "the deadline passed");
    return NULL;
}

static ts_status service_op_call(rt_run *run, uint32_t op, const rt_value *args, rt_value *outs,
                                 uint32_t place) {
    tsrt_session *s = rt_session_of(run);
    if (TS_UNLIKELY(atomic_load_explicit(&run->interrupt, memory_order_relaxed)))
        TS_TRY(rt_check_interrupt(s));
    s->dynamic_calls++;
    if (TS_UNLIKELY(s->device != NULL))
        for (uint32_t i = 0; i < s->model->program.operator_args[op]; i++)
            TS_TRY(rt_device_to_host(s, args[i], true));
    uint64_t begin = TS_UNLIKELY(s->profile != NULL) ? rt_now_ns() : 0;
    const rt_program *p = &s->model->program;
    ts_status status;
    if (TS_UNLIKELY(p->operator_lifts != NULL) && p->operator_lifts[op].lift)
        status = rt_lift_call(p->operator_lifts[op].lift, p->operator_lifts[op].in_place,
                              s->model->kernels[op], &s->context, args, p->operator_args[op], outs);
    else
        status = s->model->kernels[op](&s->context, args, outs);
    if (TS_UNLIKELY(s->profile != NULL))
        rt_profile_add(s, RT_PROFILE_OPERATOR, op, place, begin, rt_now_ns());
    return TS_UNLIKELY(status != NULL) ? placed(s, status, place) : NULL;
}

/* ---- containers ---- */

static ts_status service_list_extend(rt_run *run, const rt_value *list, const rt_value *items,
                                     int64_t count) {
    (void)run;
    for (int64_t i = 0; i < count; i++)
        TS_TRY(rt_list_append(list->as.list, items[i]));
    return NULL;
}

static ts_status service_list_make(rt_run *run, const rt_value *items, int64_t count,
                                   rt_value *out) {
    TS_TRY(rt_list_make((size_t)count, out));
    return service_list_extend(run, out, items, count);
}

static void service_tuple_set(const rt_value *tuple, int64_t at, const rt_value *items,
                              int64_t count) {
    for (int64_t i = 0; i < count; i++)
        tuple->as.tuple->items[at + i] = rt_retain(items[i]);
}

static ts_status service_tuple_make(rt_run *run, const rt_value *items, int64_t count,
                                    uint32_t class_, rt_value *out) {
    TS_TRY(rt_tuple_make((size_t)count, out));
    if (class_)
        out->as.tuple->class_ = &rt_session_of(run)->model->program.classes[class_ - 1].base;
    if (items)
        service_tuple_set(out, 0, items, count);
    return NULL;
}

static ts_status service_dict_extend(rt_run *run, const rt_value *dict, const rt_value *items,
                                     int64_t count) {
    (void)run;
    for (int64_t i = 0; i + 1 < count; i += 2)
        TS_TRY(rt_dict_set(dict->as.dict, items[i], items[i + 1]));
    return NULL;
}

static ts_status service_dict_make(rt_run *run, const rt_value *items, int64_t count,
                                   rt_value *out) {
    TS_TRY(rt_dict_make(out));
    return service_dict_extend(run, out, items, count);
}

static ts_status service_list_unpack(rt_run *run, const rt_value *list, int64_t count,
                                     rt_value *outs, uint32_t place) {
    const rt_list *l = list->as.list;
    int64_t found = (int64_t)l->count;
    if (found != count) {
        ts_status status =
            found > count
                ? ts_raise("ValueError", "too many values to unpack (expected %lld)",
                           (long long)count)
                : ts_raise("ValueError", "not enough values to unpack (expected %lld, got %lld)",
                           (long long)count, (long long)found);
        return placed(rt_session_of(run), status, place);
    }
    for (int64_t i = 0; i < count; i++)
        outs[i] = rt_retain(l->items[i]);
    return NULL;
}

/* ---- objects ---- */

static ts_status service_object_make(rt_run *run, uint32_t class_, rt_value *out) {
    return rt_object_make(&rt_session_of(run)->model->program.classes[class_].base, out);
}

static rt_value *find_field(const rt_value *object, ts_str name) {
    if (object->tag == RT_TAG_OBJECT) {
        int64_t i = rt_class_field(object->as.object->class_, name);
        return i < 0 ? NULL : &object->as.object->fields[i];
    }
    if (object->tag == RT_TAG_TUPLE && object->as.tuple->class_) {
        int64_t i = rt_class_field(object->as.tuple->class_, name);
        return i < 0 ? NULL : &object->as.tuple->items[i];
    }
    if (object->tag == RT_TAG_ENUM && ts_str_is(name, "value"))
        return &object->as.enumeration->value;
    return NULL;
}

static ts_status no_attribute(tsrt_session *s, const rt_value *object, ts_str name,
                              uint32_t place) {
    ts_str class_ = ts_str_of(rt_tag_name(*object));
    if (object->tag == RT_TAG_OBJECT)
        class_ = object->as.object->class_->bare_name;
    return placed(s,
                  ts_raise("AttributeError", "'%.*s' object has no attribute '%.*s'",
                           TS_STR_ARG(class_), TS_STR_ARG(name)),
                  place);
}

static ts_status service_get_attr(rt_run *run, const rt_value *object, uint32_t name,
                                  rt_value *out, uint32_t place) {
    tsrt_session *s = rt_session_of(run);
    ts_str text = s->model->program.strings[name];
    const rt_value *field = find_field(object, text);
    if (field && field->tag != RT_TAG_UNINITIALIZED) {
        *out = rt_retain(*field);
        return NULL;
    }
    if (object->tag == RT_TAG_ENUM && ts_str_is(text, "name"))
        return rt_str_make(object->as.enumeration->name, out);
    return no_attribute(s, object, text, place);
}

static ts_status service_set_attr(rt_run *run, const rt_value *object, uint32_t name,
                                  const rt_value *value, uint32_t place) {
    tsrt_session *s = rt_session_of(run);
    ts_str text = s->model->program.strings[name];
    rt_value *field = object->tag == RT_TAG_OBJECT ? find_field(object, text) : NULL;
    if (!field)
        return no_attribute(s, object, text, place);
    rt_assign(field, rt_retain(*value));
    return NULL;
}

static uint32_t service_is_instance(rt_run *run, const rt_value *value, uint32_t type) {
    return rt_type_holds(rt_session_of(run)->model, type, *value, 0);
}

static ts_status service_check_cast(rt_run *run, const rt_value *value, uint32_t type,
                                    uint32_t place) {
    tsrt_session *s = rt_session_of(run);
    if (rt_type_holds(s->model, type, *value, 0))
        return NULL;
    /* What eager Python says when an Optional is used without a value. */
    return placed(s,
                  ts_raise("TypeError", "expected a value of type %.*s, found %s",
                           TS_STR_ARG(s->model->program.types[type].text), rt_tag_name(*value)),
                  place);
}

static void service_note_cycle(rt_run *run, const rt_value *container) {
    rt_cycles_note(rt_session_of(run), *container);
}

/* ---- calls and errors ---- */

static ts_status service_call_method(rt_run *run, const rt_value *object, uint32_t name,
                                     const rt_value *args, rt_value *out, uint32_t place) {
    tsrt_session *s = rt_session_of(run);
    const tsrt_model *m = s->model;
    if (object->tag == RT_TAG_OBJECT) {
        const rt_model_class *class_ = object->as.object->class_->info;
        for (size_t i = 0; i < m->program.method_count; i++) {
            const rt_method *method = &m->program.methods[i];
            if (method->name == name && method->class_ == class_->number) {
                ts_status status = m->functions[method->function](run, args, out);
                return status ? placed(s, status, place) : NULL;
            }
        }
    }
    return no_attribute(s, object, m->program.strings[name], place);
}

static ts_status service_raise(rt_run *run, uint32_t type, const rt_value *message,
                               uint32_t place) {
    tsrt_session *s = rt_session_of(run);
    rt_value text = rt_none();
    if (message)
        TS_TRY(rt_to_str(*message, &text));
    ts_str bare = s->model->program.strings[type];
    /* "torch.some.Error" is known by its last part. */
    for (size_t i = bare.length; i-- > 0;)
        if (bare.data[i] == '.') {
            bare = (ts_str){bare.data + i + 1, bare.length - i - 1};
            break;
        }
    ts_status status =
        ts_raise_str(bare, text.tag == RT_TAG_STR ? rt_str_text(text.as.str) : TS_STR(""));
    rt_release(text);
    return placed(s, status, place);
}

static ts_status service_raise_as(rt_run *run, const rt_value *exception, const rt_value *message,
                                  uint32_t place) {
    ts_status status = ts_raise_str(rt_str_text(exception->as.str), rt_str_text(message->as.str));
    return placed(rt_session_of(run), status, place);
}

static ts_status service_catch(rt_run *run, ts_status status, rt_value *exception,
                               rt_value *message) {
    (void)run;
    if (ts_status_code(status) != TS_ERR_RAISED)
        return status;
    ts_status made = rt_str_make(ts_str_of(ts_status_exception(status)), exception);
    if (!made)
        made = rt_str_make(ts_str_of(ts_status_message(status)), message);
    ts_status_release(status);
    return made;
}

static ts_status service_called_from(rt_run *run, ts_status status, uint32_t function,
                                     uint32_t place) {
    tsrt_session *s = rt_session_of(run);
    ts_place at = rt_place(s->model, place);
    /* A deep recursion would write thousands of lines. */
    if (strlen(ts_status_trail(status)) > 2000)
        return status;
    ts_str name = s->model->program.functions[function];
    if (at.line)
        return ts_status_context(status, "calling %.*s at %.*s:%d", TS_STR_ARG(name),
                                 TS_STR_ARG(at.file), at.line);
    return ts_status_context(status, "calling %.*s", TS_STR_ARG(name));
}

static ts_status service_too_deep(rt_run *run) {
    (void)run;
    return ts_raise("RecursionError", "maximum recursion depth exceeded");
}

static ts_status service_poll(rt_run *run) { return rt_check_interrupt(rt_session_of(run)); }

const rt_services rt_service_table = {
#define SERVICE(name, signature, result, parameters) .name = service_##name,
#include "runtime/format/services.def"
};
