/* tools/compile_tune.c - measures variants of kernels on this machine.
 *
 * The program is compiled once for each variant, all files are loaded, and runs of them take turns, so
 * that a slow spell of the machine falls on all. The fastest run of a kernel counts, in two halves of
 * the rounds: a variant wins where both halves say that it is clearly faster. In the end the program
 * of the winners runs against the one without: where that is not faster, nothing is chosen. */
#define _POSIX_C_SOURCE 200809L
#include "tools/compile_tune.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "codegen/spill.h"
#include "runtime/base/file.h"
#include "runtime/base/hash.h"
#include "runtime/tsrt.h"
#include "runtime/values/tensor.h"

enum { ROUNDS = 8, RUNS = 2, MAX_VARIANTS = 32, FINAL_ROUNDS = 9 };
static const double clear_gain = 0.95, file_gain = 0.995;

typedef struct candidate { /* the program, all kernels in one variant */
    char *path;
    tsrt_model *model;
    tsrt_session *session;
    tsrt_value **args;
    size_t arg_count;
    cg_kernel_list kernels;
    double *best[2]; /* microseconds by kernel of the first candidate, in even and odd rounds */
    bool is_same;    /* as the first: not measured */
} candidate;

typedef struct tuner {
    ir_module *m;
    ts_arena *arena;
    const cg_options *options;
    const tsc_example *example;
    const tsc_callbacks *callbacks;
    const cg_target_info *level; /* what this machine runs of the levels asked for */
    candidate candidates[MAX_VARIANTS];
    size_t count;
    cg_choice *known;
    size_t known_count, known_capacity;
} tuner;

static ts_status checked(tsrt_status *status) {
    if (!status)
        return NULL;
    ts_status out = ts_error_make((ts_code)tsrt_status_code(status), "%s", tsrt_status_message(status));
    tsrt_status_release(status);
    return out;
}

static void say(const tuner *t, const char *format, ...) TS_PRINTF(2, 3);

static void say(const tuner *t, const char *format, ...) {
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (t->callbacks->note)
        t->callbacks->note(t->callbacks->user, ts_str_of(text));
}

/* ---- the cache: "KEY VARIANT" in lines, keys with the processor in them ---- */

static uint64_t processor_hash(void) {
    char line[300];
    uint64_t h = 5;
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0) {
            h = ts_hash64(line, strlen(line), h);
            break;
        }
    if (f)
        fclose(f);
    return h;
}

typedef struct cache_row {
    uint64_t key;
    char variant[40];
} cache_row;

typedef struct cache_file {
    cache_row *rows;
    size_t count, capacity;
    uint64_t processor;
} cache_file;

static uint64_t cached_key(const cache_file *cache, uint64_t key) {
    uint64_t parts[2] = {key, cache->processor};
    return ts_hash64(parts, sizeof parts, 1);
}

static void read_cache(ts_arena *arena, const char *path, cache_file *out) {
    char line[200];
    FILE *f = path ? fopen(path, "r") : NULL;
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long key;
        cache_row row = {0};
        if (sscanf(line, "%16llx %39s", &key, row.variant) != 2)
            continue;
        row.key = key;
        TS_APPEND(arena, out->rows, out->count, out->capacity, row);
    }
    if (f)
        fclose(f);
}

static const cache_row *find_cached(const cache_file *cache, uint64_t key) {
    uint64_t wanted = cached_key(cache, key);
    for (size_t i = 0; i < cache->count; i++)
        if (cache->rows[i].key == wanted)
            return &cache->rows[i];
    return NULL;
}

static void write_cache(const tuner *t, const char *path, cache_file *cache) {
    ts_buffer text = {0};
    ts_buffer_text(&text, "# variants of kernels that tsc --tune measured: key, variant\n");
    for (size_t i = 0; i < t->known_count; i++)
        if (!find_cached(cache, t->known[i].key)) {
            cache_row row = {.key = cached_key(cache, t->known[i].key)};
            snprintf(row.variant, sizeof row.variant, "%s", cg_variant_get(t->known[i].variant)->name);
            TS_APPEND(t->arena, cache->rows, cache->count, cache->capacity, row);
        }
    for (size_t i = 0; i < cache->count; i++)
        ts_buffer_format(&text, "%016llx %s\n", (unsigned long long)cache->rows[i].key,
                         cache->rows[i].variant);
    ts_file_part part = {.data = text.data, .length = text.length};
    ts_status status = path && !text.failed ? ts_file_write(path, &part, 1) : NULL;
    if (status) /* the tuning itself is done */
        say(t, "tune: what was measured is not kept: %.200s\n", ts_status_message(status));
    ts_status_release(status);
    ts_buffer_deinit(&text);
}

/* ---- files of candidates ---- */

/* Apart, so that no local of the caller lives across the jump. */
static ts_status compile_protected(ir_module *m, ts_arena *arena, const cg_options *options) {
    jmp_buf *outer = ts_arena_handler(arena), handler;
    if (setjmp(handler)) {
        ts_arena_set_handler(arena, outer);
        return ts_no_memory();
    }
    ts_arena_set_handler(arena, &handler);
    ts_status status = cg_compile(m, arena, options);
    ts_arena_set_handler(arena, outer);
    return status;
}

static ts_status compile_to(tuner *t, const cg_tuning *tuning, candidate *c) {
    cg_options options = *t->options;
    options.levels = &t->level;
    options.level_count = 1;
    options.emit = CG_EMIT_TSM;
    options.tuning = tuning;
    options.report = NULL;
    options.kernels = &c->kernels;
    const char *path = ts_arena_format(t->arena, "%.*s.tmp.%ld.tune%zu",
                                       TS_STR_ARG(t->options->output_path), (long)getpid(),
                                       (size_t)(c - t->candidates)).data;
    c->path = strdup(path);
    if (!c->path)
        return ts_no_memory();
    options.output_path = ts_str_of(c->path);
    options.spill = cg_spill_make(c->path);
    ts_status status = compile_protected(t->m, t->arena, &options);
    cg_spill_release(options.spill);
    return status;
}

static bool same_bytes(const char *a, const char *b) {
    ts_mapped_file x = {0}, y = {0};
    ts_status status = ts_file_map(a, &x);
    if (!status)
        status = ts_file_map(b, &y);
    bool same = !status && x.length == y.length && memcmp(x.data, y.data, x.length) == 0;
    ts_status_release(status);
    ts_file_unmap(&x);
    ts_file_unmap(&y);
    return same;
}

/* ---- arguments ---- */

static void fill(tsrt_tensor_view *view, size_t count) {
    uint64_t state = 88172645463325252u; /* xorshift: the same numbers each time */
    for (size_t i = 0; view->dtype == TSRT_FLOAT32 && i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((float *)view->data)[i] = (float)(int32_t)(state >> 32) * 0x1p-31f;
    }
    if (view->dtype != TSRT_FLOAT32) /* indices: zero is in every table */
        memset(view->data, 0, count * tsrt_dtype_bytes(view->dtype));
}

static ts_status make_tensor(tsrt_dtype dtype, const int64_t *sizes, int rank, const rt_tensor *from,
                             tsrt_value **out) {
    TS_TRY(checked(tsrt_value_make_tensor(dtype, sizes, rank, out)));
    tsrt_tensor_view view = {.size = sizeof view};
    TS_TRY(checked(tsrt_value_view_tensor(*out, &view)));
    size_t count = 1, bytes = tsrt_dtype_bytes(dtype);
    for (int d = 0; d < rank; d++)
        count *= (size_t)sizes[d];
    if (!from) {
        fill(&view, count);
        return NULL;
    }
    char *to = view.data;
    rt_cursor c;
    for (rt_cursor_start(&c, from); c.left; rt_cursor_next(&c), to += bytes)
        memcpy(to, c.data, bytes);
    return NULL;
}

static const ir_type *input_type(const tuner *t, const char *name) {
    for (const ir_function *f = t->m->functions; f; f = f->next)
        for (size_t i = 0; f->is_entry && i < f->body->parameter_count; i++)
            if (f->parameter_names && ts_str_is(f->parameter_names[i], name))
                return f->body->parameters[i]->type;
    return NULL;
}

static ts_status make_argument(const tuner *t, size_t index, tsrt_model *model, tsrt_value **out) {
    tsrt_port_info port = {.size = sizeof port};
    TS_TRY(checked(tsrt_model_get_input(model, 0, index, &port)));
    const rt_tensor *e = tsc_example_find(t->example, port.name, index);
    if (e)
        return make_tensor((tsrt_dtype)e->dtype, e->sizes, e->rank, e, out);
    const ir_type *type = input_type(t, port.name);
    bool is_known = type && type->kind == IR_TENSOR && type->dtype != RT_DTYPE_UNKNOWN && type->rank >= 0;
    for (int d = 0; is_known && d < type->rank; d++)
        is_known = rt_dim_is_constant(type->dims[d]);
    if (is_known)
        return make_tensor((tsrt_dtype)type->dtype, type->dims, type->rank, NULL, out);
    if (port.has_default)
        return NULL;
    return ts_error_make(TS_ERR_INVALID_INPUT, "--tune: %s has no constant size: give --example",
                         port.name);
}

static ts_status open_candidate(const tuner *t, candidate *c) {
    tsrt_session_options options = {.size = sizeof options, .threads = 1, .has_seed = 1};
    TS_TRY(checked(tsrt_model_load(c->path, NULL, &c->model)));
    TS_TRY(checked(tsrt_session_create(c->model, &options, &c->session)));
    tsrt_entry_info entry = {.size = sizeof entry};
    TS_TRY(checked(tsrt_model_get_entry(c->model, 0, &entry)));
    c->arg_count = entry.input_count;
    c->args = calloc(c->arg_count + 1, sizeof *c->args);
    if (!c->args)
        return ts_no_memory();
    for (size_t i = 0; i < c->arg_count; i++)
        TS_TRY(make_argument(t, i, c->model, &c->args[i]));
    return NULL;
}

static void close_candidate(candidate *c) {
    for (size_t i = 0; c->args && i < c->arg_count; i++)
        tsrt_value_release(c->args[i]);
    free(c->args);
    tsrt_session_release(c->session);
    tsrt_model_release(c->model);
    if (c->path)
        unlink(c->path);
    free(c->path);
    *c = (candidate){0};
}

static ts_status run(candidate *c) {
    tsrt_value *result = NULL;
    TS_TRY(checked(tsrt_run(c->session, 0, c->args, c->arg_count, NULL, &result)));
    tsrt_value_release(result);
    return NULL;
}

/* ---- measuring ---- */

/* Row of the first candidate's kernel of that key; SIZE_MAX none. */
static size_t row_of(const tuner *t, uint64_t key) {
    const cg_kernel_list *list = &t->candidates[0].kernels;
    for (size_t i = 0; i < list->count; i++)
        if (list->rows[i].key == key)
            return i;
    return SIZE_MAX;
}

/* The profile is lines of JSON: "name":"SYMBOL" ... "dur":MICROSECONDS. */
static void take_times(const tuner *t, candidate *c, const char *json, int half) {
    for (const char *p = json; (p = strstr(p, "\"cat\":\"kernel\",\"name\":\"")) != NULL;) {
        p += 23;
        size_t length = strcspn(p, "\"");
        const char *duration = strstr(p, "\"dur\":");
        double us = duration ? strtod(duration + 6, NULL) : 0;
        for (size_t i = 0; i < c->kernels.count; i++) {
            if (!ts_str_equal(c->kernels.rows[i].symbol, (ts_str){p, length}))
                continue;
            size_t row = row_of(t, c->kernels.rows[i].key);
            if (row != SIZE_MAX && us > 0 && us < c->best[half][row])
                c->best[half][row] = us;
        }
        p += length;
    }
}

static ts_status measure_round(const tuner *t, candidate *c, int half) {
    for (int r = 0; r < RUNS; r++) {
        tsrt_value *json = NULL;
        TS_TRY(checked(tsrt_profile_begin(c->session)));
        ts_status status = run(c);
        ts_status ended = checked(tsrt_profile_end(c->session, &json));
        if (status)
            ts_status_release(ended);
        else
            status = ended;
        if (!status) {
            size_t length = 0;
            const char *text = tsrt_value_str(json, &length);
            take_times(t, c, text ? text : "", half);
        }
        tsrt_value_release(json);
        TS_TRY(status);
    }
    return NULL;
}

static bool is_measured(const tuner *t, uint64_t key) {
    for (size_t i = 0; i < t->known_count; i++)
        if (t->known[i].key == key)
            return true;
    return false;
}

/* Whether the variant compiled that kernel to other code than the schedule's choice. */
static bool is_changed(const candidate *base, const candidate *c, size_t row) {
    for (size_t i = 0; i < c->kernels.count; i++)
        if (c->kernels.rows[i].key == base->kernels.rows[row].key)
            return c->kernels.rows[i].body != base->kernels.rows[row].body;
    return false;
}

static void choose(tuner *t) {
    const cg_kernel_list *list = &t->candidates[0].kernels;
    for (size_t row = 0; row < list->count; row++) {
        const cg_kernel_info *k = &list->rows[row];
        if (is_measured(t, k->key))
            continue;
        const candidate *base = &t->candidates[0];
        double least = INFINITY, own = base->best[0][row] + base->best[1][row];
        uint8_t winner = 0;
        for (size_t v = 1; v < t->count; v++) {
            const candidate *c = &t->candidates[v];
            if (c->is_same || !is_changed(base, c, row) || !(c->best[0][row] < base->best[0][row] * clear_gain) ||
                !(c->best[1][row] < base->best[1][row] * clear_gain))
                continue;
            double sum = c->best[0][row] + c->best[1][row];
            if (sum < least) {
                least = sum;
                winner = (uint8_t)v;
            }
        }
        if (winner)
            say(t, "tune: %.*s at %.*s:%d takes %s: %.1f us -> %.1f us\n", TS_STR_ARG(k->symbol),
                TS_STR_ARG(k->op->place.file), k->op->place.line, cg_variant_get(winner)->name, own / 2,
                least / 2);
        cg_choice choice = {k->key, winner};
        TS_APPEND(t->arena, t->known, t->known_count, t->known_capacity, choice);
    }
}

static ts_status measure(tuner *t) {
    size_t rows = t->candidates[0].kernels.count;
    t->count = cg_variant_count() < MAX_VARIANTS ? cg_variant_count() : MAX_VARIANTS;
    for (size_t v = 0; v < t->count; v++) {
        candidate *c = &t->candidates[v];
        cg_tuning all = {.otherwise = (uint8_t)v};
        if (v) {
            TS_TRY(compile_to(t, &all, c));
            c->is_same = same_bytes(c->path, t->candidates[0].path);
        }
        for (int half = 0; half < 2; half++) {
            c->best[half] = TS_NEW_ARRAY(t->arena, double, rows + 1);
            for (size_t i = 0; i < rows; i++)
                c->best[half][i] = INFINITY;
        }
        if (!c->is_same)
            TS_TRY(open_candidate(t, c));
        say(t, "tune: variant %zu of %zu, %s: %s\n", v + 1, t->count, cg_variant_get(v)->name,
            c->is_same ? "changes nothing" : "compiled");
    }
    for (int round = 0; round <= ROUNDS; round++) {
        for (size_t v = 0; v < t->count; v++)
            if (!t->candidates[v].is_same) { /* the first round warms up */
                ts_status status = round ? measure_round(t, &t->candidates[v], round % 2)
                                         : run(&t->candidates[v]);
                TS_TRY(status);
            }
        say(t, "tune: round %d of %d\n", round, ROUNDS);
    }
    return NULL;
}

/* ---- the winners together ---- */

static double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static ts_status compare_files(tuner *t, const cg_tuning *chosen, bool *out_is_faster) {
    candidate *both[2] = {&t->candidates[0], &t->candidates[MAX_VARIANTS - 1]};
    double best[2] = {INFINITY, INFINITY};
    TS_TRY(compile_to(t, chosen, both[1]));
    TS_TRY(open_candidate(t, both[1]));
    for (int round = 0; round < FINAL_ROUNDS; round++)
        for (int i = 0; i < 2; i++) {
            double begin = now_us();
            TS_TRY(run(both[i]));
            double time = now_us() - begin;
            best[i] = round && time < best[i] ? time : best[i];
        }
    *out_is_faster = best[1] < best[0] * file_gain;
    say(t, "tune: a run takes %.1f us, before %.1f us%s\n", best[1], best[0],
        *out_is_faster ? "" : ": the schedule's choices stay");
    return NULL;
}

static ts_status tune(tuner *t, const char *cache_path, cg_tuning *out) {
    cache_file cache = {.processor = processor_hash()};
    size_t unknown = 0, changed = 0;
    read_cache(t->arena, cache_path, &cache);
    TS_TRY(compile_to(t, NULL, &t->candidates[0]));
    const cg_kernel_list *list = &t->candidates[0].kernels;
    for (size_t i = 0; i < list->count; i++) {
        const cache_row *row = find_cached(&cache, list->rows[i].key);
        unknown += row == NULL;
        if (!row)
            continue;
        cg_choice choice = {list->rows[i].key, (uint8_t)cg_variant_find(ts_str_of(row->variant))};
        TS_APPEND(t->arena, t->known, t->known_count, t->known_capacity, choice);
    }
    if (unknown) {
        say(t, "tune: %zu of %zu kernels to be measured\n", unknown, list->count);
        TS_TRY(measure(t));
        choose(t);
    } else {
        say(t, "tune: all %zu kernels are in the cache\n", list->count);
    }
    *out = (cg_tuning){.choices = t->known, .count = t->known_count};
    for (size_t i = 0; i < t->known_count; i++)
        changed += t->known[i].variant != 0;
    bool is_faster = true;
    if (unknown && changed)
        TS_TRY(compare_files(t, out, &is_faster));
    for (size_t i = 0; !is_faster && i < t->known_count; i++)
        t->known[i].variant = 0;
    if (unknown)
        write_cache(t, cache_path, &cache);
    return NULL;
}

/* The best of the levels that this machine runs. */
static const cg_target_info *own_level(const cg_options *options) {
    const cg_target_info *best = NULL;
    for (size_t i = 0; i < options->level_count; i++) {
        const cg_target_info *level = options->levels[i];
        if (cg_target_runs_here(level) && (!best || level->vector_bytes >= best->vector_bytes))
            best = level;
    }
    return best;
}

ts_status tsc_tune(ir_module *m, ts_arena *arena, const cg_options *options, const char *cache,
                   const tsc_example *example, const tsc_callbacks *callbacks, cg_tuning *out) {
    *out = (cg_tuning){0};
    tuner *t = TS_NEW(arena, tuner);
    *t = (tuner){.m = m, .arena = arena, .options = options, .example = example,
                 .callbacks = callbacks, .level = own_level(options)};
    if (!t->level || options->device != CG_DEVICE_CPU)
        return ts_error_make(TS_ERR_INVALID_INPUT, "--tune: none of the levels of --cpu runs on this "
                             "machine");
    ts_status status = tune(t, cache, out);
    for (size_t i = 0; i < MAX_VARIANTS; i++)
        close_candidate(&t->candidates[i]);
    return status;
}
