/* tools/tsrun_info.c - `tsrun info`: what a compiled model holds, and whether it is intact. */
#include "runtime/base/file.h"
#include "tools/tsrun.h"

/* Each line of a text behind a word. */
static void put_lines(const char *word, const char *text, ts_buffer *out) {
    for (const char *p = text; p && *p;) {
        size_t n = strcspn(p, "\n");
        ts_buffer_format(out, "%s%.*s\n", word, (int)n, p);
        p += n + (p[n] == '\n');
    }
}

static ts_status put_entry(const tsrt_model *model, size_t index, ts_buffer *out) {
    tsrt_entry_info entry = {.size = sizeof entry};
    TS_TRY(tsrun_status(tsrt_model_get_entry(model, index, &entry)));
    ts_buffer_format(out, "entry %s -> %s\n", entry.name,
                     entry.output_type ? entry.output_type : "?");
    for (size_t i = 0; i < entry.input_count; i++) {
        tsrt_port_info port = {.size = sizeof port};
        TS_TRY(tsrun_status(tsrt_model_get_input(model, index, i, &port)));
        ts_buffer_format(out, "  input  %s: %s%s\n", port.name, port.type,
                         port.has_default ? " (has a default)" : "");
    }
    put_lines("  requires (checked on entry): ", tsrt_model_requirements(model, index), out);
    put_lines("  requires (the program raises): ", tsrt_model_own_checks(model, index), out);
    put_lines("  fast path: ", tsrt_model_fast_paths(model, index), out);
    for (size_t i = 0; i < entry.output_count; i++) {
        tsrt_port_info port = {.size = sizeof port};
        TS_TRY(tsrun_status(tsrt_model_get_output(model, index, i, &port)));
        ts_buffer_format(out, "  output %s: %s\n", port.name, port.type);
    }
    ts_buffer_format(out, "  compiled: %zu operators in %zu kernels; dynamic: %zu operators\n",
                     entry.compiled_count, entry.kernel_count, entry.dynamic_count);
    const char *memory = tsrt_model_memory(model, index);
    if (memory[0])
        ts_buffer_format(out, "  memory of a run: %s\n", memory);
    else if (entry.arena_bytes >= 0)
        ts_buffer_format(out, "  memory of a run: %lld bytes\n", (long long)entry.arena_bytes);
    put_lines("    dynamic: ", tsrt_model_dynamic_operators(model, index), out);
    return NULL;
}

static ts_status put_model(const tsrt_model *model, ts_buffer *out) {
    tsrt_model_info info = {.size = sizeof info};
    TS_TRY(tsrun_status(tsrt_model_get_info(model, &info)));
    ts_buffer_format(out, "compiled by %s from %s\n", info.compiler, info.source);
    ts_buffer_format(out, "target: %s; levels: %s; here: %s\n", info.target, info.levels,
                     info.level);
    if (info.options && info.options[0])
        ts_buffer_format(out, "options: %s\n", info.options);
    ts_buffer_format(out, "file: %llu bytes, weights: %llu, code: %llu\n",
                     (unsigned long long)info.file_bytes, (unsigned long long)info.weight_bytes,
                     (unsigned long long)info.code_bytes);
    for (size_t i = 0; i < info.entry_count; i++)
        TS_TRY(put_entry(model, i, out));
    for (size_t i = 0; i < info.section_count; i++) {
        tsrt_section_info s = {.size = sizeof s};
        TS_TRY(tsrun_status(tsrt_model_get_section(model, i, &s)));
        ts_buffer_format(out, "section %-12s offset %10llu  %10llu bytes  checksum %016llx\n",
                         s.name, (unsigned long long)s.offset, (unsigned long long)s.bytes,
                         (unsigned long long)s.checksum);
    }
    return NULL;
}

ts_status tsrun_info(const char *path, const options *line, bool *out_failed_output) {
    tsrt_model *model = NULL;
    ts_buffer text = {0};
    TS_TRY(tsrun_status(tsrt_model_load(path, NULL, &model)));
    ts_status status = put_model(model, &text);
    if (!status && options_has(line, "--verify")) {
        status = tsrun_status(tsrt_model_verify(model));
        if (!status)
            ts_buffer_text(&text, "verified: every section matches its checksum\n");
    }
    if (!status)
        status = ts_buffer_status(&text);
    if (!status)
        *out_failed_output = !ts_write_all(1, text.data, text.length);
    ts_buffer_deinit(&text);
    tsrt_model_release(model);
    return status;
}
