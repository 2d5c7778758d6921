/* runtime/info.c - questions about a model. Texts point into the file, where each is terminated. */
#include "runtime/runtime_internal.h"

/* Copies as much of a struct as the caller's version of it holds. */
static tsrt_status *give(void *out, const void *in, size_t in_size) {
    size_t size;
    memcpy(&size, out, sizeof size);
    if (size < sizeof size || size > 4096)
        return rt_out(ts_error_make(TS_ERR_INVALID_INPUT,
                                    "the struct's size member must be set to its sizeof"));
    if (size > in_size)
        memset((char *)out + in_size, 0, size - in_size);
    memcpy(out, in, size < in_size ? size : in_size);
    memcpy(out, &size, sizeof size);
    return NULL;
}

static const char *meta(const tsrt_model *m, const char *key) {
    for (size_t i = 0; i < m->program.meta_count; i++)
        if (ts_str_is(m->program.meta_keys[i], key))
            return m->program.meta_values[i].data;
    return "";
}

tsrt_status *tsrt_model_get_info(const tsrt_model *model, tsrt_model_info *out_info) {
    tsrt_model_info info = {
        .compiler = meta(model, "compiler"),
        .source = meta(model, "source"),
        .levels = meta(model, "levels"),
        .level = model->level ? model->level : "",
        .target = meta(model, "target"),
        .options = meta(model, "options"),
        .file_bytes = model->length,
        .weight_bytes = model->weight_bytes,
        .code_bytes = model->code_length,
        .load_ns = model->load_ns,
        .entry_count = model->program.entry_count,
        .section_count = model->section_count,
    };
    return give(out_info, &info, sizeof info);
}

static tsrt_status *beyond(const char *what, size_t index, size_t count) {
    return rt_out(ts_error_make(TS_ERR_INVALID_INPUT, "%s %zu: there are %zu", what, index,
                                count));
}

tsrt_status *tsrt_model_get_section(const tsrt_model *model, size_t index,
                                    tsrt_section_info *out_info) {
    if (index >= model->section_count)
        return beyond("section", index, model->section_count);
    const tsm_section *s = &model->sections[index];
    tsrt_section_info info = {.name = tsm_section_name(s->kind),
                              .offset = s->offset,
                              .bytes = s->bytes,
                              .checksum = s->checksum};
    return give(out_info, &info, sizeof info);
}

int64_t tsrt_model_find_entry(const tsrt_model *model, const char *name) {
    if (!name)
        return 0;
    for (size_t i = 0; i < model->program.entry_count; i++)
        if (ts_str_is(model->program.entries[i].name, name))
            return (int64_t)i;
    return -1;
}

static const rt_model_type *result_type(const tsrt_model *m, const rt_entry *e) {
    return &m->program.types[e->result_type];
}

static size_t output_count(const tsrt_model *m, const rt_entry *e) {
    const rt_model_type *t = result_type(m, e);
    if (t->kind == TSM_TYPE_TUPLE)
        return t->arg_count;
    return t->kind == TSM_TYPE_NONE ? 0 : 1;
}

tsrt_status *tsrt_model_get_entry(const tsrt_model *model, size_t entry,
                                  tsrt_entry_info *out_info) {
    if (entry >= model->program.entry_count)
        return beyond("entry", entry, model->program.entry_count);
    const rt_entry *e = &model->program.entries[entry];
    tsrt_entry_info info = {
        .name = e->name.data,
        .input_count = e->port_count,
        .output_count = output_count(model, e),
        .output_type = result_type(model, e)->text.data,
        .kernel_count = e->kernel_count,
        .compiled_count = e->compiled_count,
        .dynamic_count = e->dynamic_count,
        .arena_bytes = model->program.arena_bytes,
    };
    return give(out_info, &info, sizeof info);
}

tsrt_status *tsrt_model_get_input(const tsrt_model *model, size_t entry, size_t index,
                                  tsrt_port_info *out_info) {
    if (entry >= model->program.entry_count)
        return beyond("entry", entry, model->program.entry_count);
    const rt_entry *e = &model->program.entries[entry];
    if (index >= e->port_count)
        return beyond("input", index, e->port_count);
    tsrt_port_info info = {.name = e->ports[index].name.data,
                           .type = model->program.types[e->ports[index].type].text.data,
                           .has_default = e->ports[index].default_constant != 0};
    return give(out_info, &info, sizeof info);
}

tsrt_status *tsrt_model_get_output(const tsrt_model *model, size_t entry, size_t index,
                                   tsrt_port_info *out_info) {
    static const char *const names[] = {"out0", "out1", "out2", "out3", "out4", "out5", "out6",
                                        "out7"};
    if (entry >= model->program.entry_count)
        return beyond("entry", entry, model->program.entry_count);
    const rt_entry *e = &model->program.entries[entry];
    size_t count = output_count(model, e);
    if (index >= count)
        return beyond("output", index, count);
    const rt_model_type *t = result_type(model, e);
    if (t->kind == TSM_TYPE_TUPLE)
        t = &model->program.types[t->args[index]];
    tsrt_port_info info = {.name = index < 8 ? names[index] : "out", .type = t->text.data};
    return give(out_info, &info, sizeof info);
}

const char *tsrt_model_dynamic_operators(const tsrt_model *model, size_t entry) {
    if (entry >= model->program.entry_count)
        return "";
    return model->program.entries[entry].dynamic_text.data;
}

const char *tsrt_model_requirements(const tsrt_model *model, size_t entry) {
    return entry < model->program.entry_count ? model->program.entries[entry].need_text.data : "";
}

const char *tsrt_model_own_checks(const tsrt_model *model, size_t entry) {
    return entry < model->program.entry_count ? model->program.entries[entry].own_text.data : "";
}

const char *tsrt_model_fast_paths(const tsrt_model *model, size_t entry) {
    return entry < model->program.entry_count ? model->program.entries[entry].fast_text.data : "";
}

const char *tsrt_model_memory(const tsrt_model *model, size_t entry) {
    const rt_program *p = &model->program;
    for (size_t i = 0; entry < p->entry_count && i < p->meta_count; i++)
        if (ts_str_starts_with(p->meta_keys[i], "memory.") &&
            ts_str_is((ts_str){p->meta_keys[i].data + 7, p->meta_keys[i].length - 7},
                      p->entries[entry].name.data))
            return p->meta_values[i].data;
    return "";
}

/* ---- errors ---- */

static ts_status in(const tsrt_status *status) { return (ts_status)(uintptr_t)status; }

tsrt_code tsrt_status_code(const tsrt_status *status) {
    return (tsrt_code)ts_status_code(in(status));
}
const char *tsrt_status_message(const tsrt_status *status) {
    return ts_status_message(in(status));
}
const char *tsrt_status_exception(const tsrt_status *status) {
    return ts_status_exception(in(status));
}
const char *tsrt_status_trail(const tsrt_status *status) { return ts_status_trail(in(status)); }
void tsrt_status_release(tsrt_status *status) { ts_status_release(in(status)); }

const char *tsrt_status_place(const tsrt_status *status, size_t *out_length, int *out_line,
                              int *out_column) {
    ts_place place = ts_status_place(in(status));
    if (out_length)
        *out_length = place.file.length;
    if (out_line)
        *out_line = place.line;
    if (out_column)
        *out_column = place.column;
    return place.file.data ? place.file.data : "";
}
