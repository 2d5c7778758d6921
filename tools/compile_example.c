/* tools/compile_example.c - example inputs: what they declare. */
#include "tools/compile.h"

#include <stdio.h>

#include "frontend/archive/archive.h"

ts_status tsc_example_load(ts_arena *arena, const char *path, tsc_example *out) {
    fe_weights file;
    TS_TRY(fe_weights_load(arena, ts_str_of(path), false, &file));
    out->tensors = TS_NEW_ARRAY(arena, rt_tensor *, file.count + 1);
    out->names = TS_NEW_ARRAY(arena, ts_str, file.count + 1);
    out->count = file.count; /* the tensors are taken over */
    for (size_t i = 0; i < file.count; i++) {
        out->tensors[i] = file.items[i].tensor;
        out->names[i] = file.items[i].name;
    }
    return NULL;
}

void tsc_example_release(tsc_example *example) {
    for (size_t i = 0; i < example->count; i++)
        rt_tensor_release(example->tensors[i]);
    *example = (tsc_example){0};
}

static const rt_tensor *find(const tsc_example *example, ts_str name) {
    for (size_t i = 0; i < example->count; i++)
        if (ts_str_equal(example->names[i], name))
            return example->tensors[i];
    return NULL;
}

static ts_str type_text(ts_arena *arena, const rt_tensor *t) {
    ts_str text = ts_arena_format(arena, "%s[", rt_dtype_name((rt_dtype)t->dtype));
    for (int i = 0; i < t->rank; i++)
        text = ts_arena_format(arena, "%.*s%s%lld", (int)text.length, text.data, i ? "," : "",
                               (long long)t->sizes[i]);
    return ts_arena_format(arena, "%.*s]", (int)text.length, text.data);
}

const rt_tensor *tsc_example_find(const tsc_example *example, const char *name, size_t index) {
    char numbered[32];
    snprintf(numbered, sizeof numbered, "in%zu", index);
    for (size_t i = 0; i < example->count; i++)
        if (ts_str_is(example->names[i], name) || ts_str_is(example->names[i], numbered))
            return example->tensors[i];
    return NULL;
}

void tsc_example_declare(ts_arena *arena, const tsc_example *example, fe_options *options) {
    size_t given = options->input_count;
    fe_input_type *rows = TS_NEW_ARRAY(arena, fe_input_type, given + 2 * example->count + 1);
    if (given)
        memcpy(rows, options->inputs, given * sizeof *rows);
    size_t count = given;
    bool has_positional = false;
    for (size_t i = 0; i < given; i++)
        has_positional |= options->inputs[i].name.length == 0;
    /* in0, in1, ... are positional; they are declared only where no given row is. */
    for (size_t i = 0; !has_positional; i++) {
        const rt_tensor *t = find(example, ts_arena_format(arena, "in%zu", i));
        if (!t)
            break;
        rows[count++] = (fe_input_type){.type_text = type_text(arena, t), .is_example = true};
    }
    for (size_t i = 0; i < example->count; i++) {
        ts_str name = example->names[i];
        bool is_positional = name.length > 2 && name.data[0] == 'i' && name.data[1] == 'n' &&
                             name.data[2] >= '0' && name.data[2] <= '9';
        bool is_named = false;
        for (size_t k = 0; k < given; k++)
            is_named |= ts_str_equal(options->inputs[k].name, name);
        if (!is_positional && !is_named)
            rows[count++] = (fe_input_type){.name = name,
                                            .type_text = type_text(arena, example->tensors[i]),
                                            .is_example = true};
    }
    options->inputs = rows;
    options->input_count = count;
}
