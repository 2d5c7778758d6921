/* tools/tsrun_main.c - runs compiled models from the command line. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "tools/tsrun.h"

static const option_row rows[] = {
    {"What goes in and out:", NULL, OPTION_HEADING, NULL, NULL, NULL},
    {"--entry", NULL, OPTION_VALUE, "NAME", "what is called [the file's first entry]", NULL},
    {"--inputs", NULL, OPTION_VALUE, "FILE", "safetensors file; tensors are named as the\n"
     "parameters are, or in0, in1, ...", NULL},
    {"--args", NULL, OPTION_VALUE, "FILE", "JSON: a list of argument trees, or {\"calls\": [...]}\n"
     "for several calls on one session", NULL},
    {"--output", NULL, OPTION_VALUE, "FILE", "safetensors file of the results: out0, out1, ...",
     NULL},
    {"--output-args", NULL, OPTION_VALUE, "FILE", "JSON: the result as a tree", NULL},
    {"How:", NULL, OPTION_HEADING, NULL, NULL, NULL},
    {"--threads", NULL, OPTION_VALUE, "N", "at most so many threads [what the process may use]",
     NULL},
    {"--memory-limit", NULL, OPTION_VALUE, "BYTES", "of tensors that a run may hold at once [no limit]", NULL},
    {"--device", NULL, OPTION_VALUE, "NAME", "cpu, cuda[:N], opencl[:N], auto", NULL},
    {"--fallback", NULL, OPTION_VALUE, "cpu", "run there where the device is missing", NULL},
    {"--seed", NULL, OPTION_VALUE, "N", "seed of the session's random numbers", NULL},
    {"--repeat", NULL, OPTION_VALUE, "N", "make the calls N times, keep the last results", NULL},
    {"--profile", NULL, OPTION_VALUE, "FILE", "trace for Perfetto or chrome://tracing", NULL},
    {"Of tsrun bench:", NULL, OPTION_HEADING, NULL, NULL, NULL},
    {"--warmup", NULL, OPTION_VALUE, "N", "runs that are not counted [10]", NULL},
    {"--runs", NULL, OPTION_VALUE, "N", "runs that are [about a second of them]", NULL},
    {"--json", NULL, OPTION_VALUE, "FILE", "where the times go [-: standard output]", NULL},
    {"Of tsrun info:", NULL, OPTION_HEADING, NULL, NULL, NULL},
    {"--verify", NULL, OPTION_FLAG, NULL, "check every checksum, the weights' included", NULL},
    {"Otherwise:", NULL, OPTION_HEADING, NULL, NULL, NULL},
    {"--version", NULL, OPTION_FLAG, NULL, "print the version", NULL},
    {"--help", "-h", OPTION_FLAG, NULL, "print this", NULL},
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

static const char usage[] =
    "usage: tsrun MODEL.tsm [options]\n"
    "       tsrun bench MODEL.tsm [options]\n"
    "       tsrun info MODEL.tsm [--verify]\n"
    "\n"
    "Runs what tsc compiled. An artifact holds machine code: run only what you trust.\n"
    "\n"
    "  tsrun resnet.tsm --inputs image.safetensors --output result.safetensors\n"
    "  echo '[3, \"abc\", {\"list\": [1.5]}]' > a.json && tsrun f.tsm --args a.json\n"
    "  tsrun bench resnet.tsm --inputs image.safetensors --threads 1 --json -\n";

/* The session that a signal cancels, and which signal did. */
static _Atomic(tsrt_session *) running;
static volatile sig_atomic_t caught;

static void on_signal(int number) {
    tsrt_session *session = running;
    if (caught || !session)
        _exit(128 + number);
    caught = number;
    tsrt_session_cancel(session);
}

static void flush(tsrun_model *m) {
    if (m->printed.length && !ts_write_all(1, m->printed.data, m->printed.length))
        m->failed_output = true;
    m->printed.length = 0;
}

static void on_print(void *user, const char *text, size_t length) {
    tsrun_model *m = user;
    if (m->keep_quiet || m->failed_output)
        return;
    ts_buffer_append(&m->printed, text, length);
    if (m->printed.length > 1 << 16)
        flush(m);
}

static void on_log(void *user, const char *text, size_t length) {
    (void)user;
    (void)(ts_write_all(2, "tsrun: note: ", 13) && ts_write_all(2, text, length) &&
           ts_write_all(2, "\n", 1));
}

static void complain(ts_status status) {
    ts_buffer text = {0};
    ts_place place = ts_status_place(status);
    const char *exception = ts_status_exception(status), *message = ts_status_message(status);
    if (exception[0]) {
        /* As Python's last line; the place follows, so that scripts may read the first. */
        ts_buffer_format(&text, "%s%s%s\n", exception, message[0] ? ": " : "", message);
        if (place.line)
            ts_buffer_format(&text, "  raised at %.*s:%d:%d\n", TS_STR_ARG(place.file), place.line,
                             place.column);
    } else {
        ts_buffer_text(&text, "tsrun: error: ");
        if (place.file.length)
            ts_buffer_format(&text, place.line ? "%.*s:%d: " : "%.*s: ", TS_STR_ARG(place.file),
                             place.line);
        ts_buffer_format(&text, "%s\n", message[0] ? message : "out of memory");
    }
    const char *trail = ts_status_trail(status);
    if (trail[0] && !exception[0])
        ts_buffer_format(&text, "  %s\n", trail);
    if (text.failed)
        (void)ts_write_all(2, "tsrun: error: out of memory\n", 28);
    else
        (void)ts_write_all(2, text.data, text.length);
    ts_buffer_deinit(&text);
}

ts_status tsrun_find_entry(const tsrun_model *m, const char *name, size_t *out) {
    int64_t index = tsrt_model_find_entry(m->model, name);
    if (index >= 0) {
        *out = (size_t)index;
        return NULL;
    }
    tsrt_model_info info = {.size = sizeof info};
    TS_TRY(tsrun_status(tsrt_model_get_info(m->model, &info)));
    const char **names = calloc(info.entry_count + 1, sizeof *names);
    ts_status status = names ? NULL : ts_no_memory();
    for (size_t i = 0; i < info.entry_count && !status; i++) {
        tsrt_entry_info entry = {.size = sizeof entry};
        status = tsrun_status(tsrt_model_get_entry(m->model, i, &entry));
        names[i] = entry.name;
    }
    if (!status)
        status = options_unknown_word("entry", name ? name : "", names);
    free(names);
    return status;
}

/* An input that the file lacks takes its default, or is missing. */
static ts_status bind_one(const tsrun_model *m, size_t entry, size_t index, tsrun_inputs *inputs,
                          tsrt_value **out, bool *out_given) {
    tsrt_port_info port = {.size = sizeof port};
    TS_TRY(tsrun_status(tsrt_model_get_input(m->model, entry, index, &port)));
    char numbered[32];
    snprintf(numbered, sizeof numbered, "in%zu", index);
    ts_str name = ts_str_of(port.name);
    if (!tsrun_inputs_find(inputs, name))
        name = ts_str_of(numbered);
    *out_given = tsrun_inputs_find(inputs, name) != NULL;
    if (*out_given)
        return tsrun_inputs_get(inputs, name, out);
    if (port.has_default)
        return NULL;
    return ts_error_make(TS_ERR_INVALID_INPUT, "input %s: %s is missing: the file of --inputs has "
                         "neither %s nor %s (give what is no tensor with --args)", port.name,
                         port.type, port.name, numbered);
}

ts_status tsrun_bind_inputs(const tsrun_model *m, size_t entry, tsrun_inputs *inputs,
                            tsrun_arguments *out) {
    tsrt_entry_info info = {.size = sizeof info};
    TS_TRY(tsrun_status(tsrt_model_get_entry(m->model, entry, &info)));
    out->items = calloc(info.input_count + 1, sizeof *out->items);
    if (!out->items)
        return ts_no_memory();
    for (size_t i = 0; i < info.input_count; i++) {
        bool given = false;
        TS_TRY(bind_one(m, entry, i, inputs, &out->items[i], &given));
        out->count = i + 1; /* NULL items before a given one mean the default */
    }
    while (out->count && !out->items[out->count - 1])
        out->count--;
    for (size_t i = 0; i < inputs->tensors.count; i++)
        if (!inputs->used[i])
            return ts_error_make(TS_ERR_INVALID_INPUT, "tensor '%.*s' of --inputs is no input of "
                                 "entry %s", TS_STR_ARG(inputs->tensors.entries[i].name),
                                 info.name);
    return NULL;
}

/* One call: its entry and arguments. */
typedef struct call {
    size_t entry;
    tsrun_arguments arguments;
} call;

typedef struct run {
    const options *line;
    tsrun_model m;
    tsrun_inputs inputs;
    json_t *args;
    call *calls;
    size_t call_count;
    bool is_many; /* {"calls": [...]} */
    tsrun_outputs outputs;
    json_t *results;
} run;

/* A call as an object without arguments names its entry, and nothing else. */
static ts_status name_alone(const json_t *tree) {
    size_t known = json_object_get(tree, "entry") != NULL;
    return json_object_size(tree) == known
               ? NULL
               : ts_error_make(TS_ERR_INVALID_INPUT, "--args: expected a list of arguments, "
                               "{\"args\": [...]} or {\"calls\": [...]}");
}

static ts_status read_call(run *r, const json_t *tree, const char *entry, call *out) {
    const json_t *list = tree;
    if (json_is_object(tree)) {
        const json_t *name = json_object_get(tree, "entry");
        list = json_object_get(tree, "args");
        if (name && !json_is_string(name))
            return ts_error_make(TS_ERR_INVALID_INPUT, "--args: entry of a call: expected a name");
        if (name)
            entry = json_string_value(name);
    }
    TS_TRY(tsrun_find_entry(&r->m, entry, &out->entry));
    if (!list)
        return name_alone(tree);
    return tsrun_arguments_read(list, &r->inputs, &out->arguments);
}

static ts_status read_calls(run *r) {
    const char *path = options_get(r->line, "--args"), *entry = options_get(r->line, "--entry");
    const json_t *list = NULL;
    if (path) {
        TS_TRY(tsrun_json_load(path, &r->args));
        list = json_object_get(r->args, "calls");
        r->is_many = list != NULL;
        if (r->is_many && !json_is_array(list))
            return ts_error_make(TS_ERR_INVALID_INPUT, "--args: calls: expected a list");
    }
    /* A call of several that names no entry means forward. */
    if (r->is_many && !entry && tsrt_model_find_entry(r->m.model, "forward") >= 0)
        entry = "forward";
    r->call_count = r->is_many ? json_array_size(list) : 1;
    r->calls = calloc(r->call_count + 1, sizeof *r->calls);
    if (!r->calls)
        return ts_no_memory();
    for (size_t i = 0; i < r->call_count; i++) {
        call *c = &r->calls[i];
        if (path) {
            TS_TRY(read_call(r, r->is_many ? json_array_get(list, i) : r->args, entry, c));
        } else {
            TS_TRY(tsrun_find_entry(&r->m, entry, &c->entry));
            TS_TRY(tsrun_bind_inputs(&r->m, c->entry, &r->inputs, &c->arguments));
        }
    }
    return NULL;
}

static ts_status open_session(run *r, const char *path) {
    tsrt_load_options load = {.size = sizeof load, .log = on_log};
    TS_TRY(tsrun_status(tsrt_model_load(path, &load, &r->m.model)));
    tsrt_model_info info = {.size = sizeof info};
    TS_TRY(tsrun_status(tsrt_model_get_info(r->m.model, &info)));
    r->m.load_ns = info.load_ns;
    tsrt_session_options o = {.size = sizeof o, .print = on_print, .print_user = &r->m};
    int64_t threads = 0, seed = 0;
    TS_TRY(options_number(r->line, "--threads", 1, 1024, &threads));
    TS_TRY(options_number(r->line, "--seed", INT64_MIN, INT64_MAX, &seed));
    o.threads = (int)threads;
    int64_t limit = 0;
    TS_TRY(options_number(r->line, "--memory-limit", 1, INT64_MAX, &limit));
    o.memory_limit = (uint64_t)limit;
    o.has_seed = options_has(r->line, "--seed");
    o.seed = (uint64_t)seed;
    o.device = options_get(r->line, "--device");
    o.fallback_to_cpu = options_has(r->line, "--fallback");
    TS_TRY(tsrun_status(tsrt_session_create(r->m.model, &o, &r->m.session)));
    running = r->m.session;
    return NULL;
}

/* A result as a tree of its own: with names beside --output, with its tensors inside otherwise. */
static ts_status keep_result(run *r, size_t index, const tsrt_value *value) {
    const char *tensors = options_get(r->line, "--output");
    const char *trees = options_get(r->line, "--output-args");
    char prefix[48] = "out";
    if (r->is_many)
        snprintf(prefix, sizeof prefix, "c%zu.out", index);
    size_t next = 0;
    if (tensors && !trees)
        return tsrun_flatten(value, &r->outputs, prefix, &next);
    json_t *tree = NULL;
    TS_TRY(tsrun_tree_write(value, tensors ? &r->outputs : NULL, prefix, &next, &tree));
    json_array_append_new(r->results, r->is_many ? json_pack("{s:o}", "result", tree) : tree);
    return NULL;
}

/* With several calls an exception is a result; alone it ends the program. */
static ts_status keep_exception(run *r, ts_status status) {
    if (!r->is_many || ts_status_code(status) != TS_ERR_RAISED)
        return status;
    json_t *message = json_string(ts_status_message(status));
    json_array_append_new(r->results,
                          json_pack("{s:{s:s,s:o}}", "raises", "type", ts_status_exception(status),
                                    "message", message ? message : json_string("")));
    ts_status_release(status);
    return NULL;
}

static ts_status make_calls(run *r) {
    for (size_t i = 0; i < r->call_count; i++) {
        const call *c = &r->calls[i];
        tsrt_value *result = NULL;
        ts_status status = tsrun_status(tsrt_run(r->m.session, c->entry, c->arguments.items,
                                                 c->arguments.count, NULL, &result));
        status = status ? keep_exception(r, status) : keep_result(r, i, result);
        tsrt_value_release(result);
        TS_TRY(status);
    }
    return NULL;
}

static void drop_results(run *r) {
    tsrun_outputs_deinit(&r->outputs);
    json_array_clear(r->results);
}

static ts_status write_profile(run *r) {
    const char *path = options_get(r->line, "--profile");
    if (!path)
        return NULL;
    tsrt_value *json = NULL;
    TS_TRY(tsrun_status(tsrt_profile_end(r->m.session, &json)));
    size_t length = 0;
    const char *text = tsrt_value_str(json, &length);
    ts_file_part part = {.data = text, .length = length};
    ts_status status = ts_file_write(path, &part, 1);
    tsrt_value_release(json);
    return status;
}

static ts_status write_results(run *r) {
    const char *tensors = options_get(r->line, "--output");
    const char *trees = options_get(r->line, "--output-args");
    TS_TRY(write_profile(r));
    if (tensors)
        TS_TRY(safetensors_write(tensors, r->outputs.entries, r->outputs.count));
    if (tensors && !trees)
        return NULL;
    if (!r->is_many)
        return tsrun_json_write(trees ? trees : "-", json_array_get(r->results, 0), 17);
    json_t *whole = json_pack("{s:O}", "results", r->results);
    ts_status status = whole ? tsrun_json_write(trees ? trees : "-", whole, 17) : ts_no_memory();
    json_decref(whole);
    return status;
}

static ts_status run_model(run *r) {
    int64_t repeat = 1;
    TS_TRY(options_number(r->line, "--repeat", 1, 1000000000, &repeat));
    if (options_has(r->line, "--profile"))
        TS_TRY(tsrun_status(tsrt_profile_begin(r->m.session)));
    for (int64_t i = 0; i < repeat; i++) {
        drop_results(r);
        TS_TRY(make_calls(r));
    }
    flush(&r->m);
    return write_results(r);
}

/* No output may replace the model or what it is run on. */
static ts_status keep_inputs(const run *r, const char *path, bool is_bench) {
    static const char *const run_outputs[] = {"--output", "--output-args", "--profile"};
    const char *const inputs[] = {path, options_get(r->line, "--inputs"),
                                  options_get(r->line, "--args")};
    if (is_bench)
        return options_keep_inputs(options_get(r->line, "--json"), inputs, 3);
    for (int i = 0; i < 3; i++)
        TS_TRY(options_keep_inputs(options_get(r->line, run_outputs[i]), inputs, 3));
    return NULL;
}

static ts_status run_or_bench(run *r, const char *path, bool is_bench) {
    r->results = json_array();
    if (!r->results)
        return ts_no_memory();
    TS_TRY(keep_inputs(r, path, is_bench));
    if (options_has(r->line, "--inputs"))
        TS_TRY(tsrun_inputs_open(options_get(r->line, "--inputs"), &r->inputs));
    TS_TRY(open_session(r, path));
    TS_TRY(read_calls(r));
    if (!is_bench)
        return run_model(r);
    if (r->call_count != 1)
        return ts_error_make(TS_ERR_INVALID_INPUT, "bench times one call, --args holds %zu",
                             r->call_count);
    return tsrun_bench(&r->m, r->calls[0].entry, &r->calls[0].arguments, r->line);
}

static void run_deinit(run *r) {
    flush(&r->m);
    running = NULL;
    for (size_t i = 0; r->calls && i < r->call_count; i++)
        tsrun_arguments_deinit(&r->calls[i].arguments);
    free(r->calls);
    tsrun_outputs_deinit(&r->outputs);
    json_decref(r->results);
    json_decref(r->args);
    tsrun_inputs_close(&r->inputs);
    tsrt_session_release(r->m.session);
    tsrt_model_release(r->m.model);
    ts_buffer_deinit(&r->m.printed);
}

static bool answer(const options *line, bool *out_failed) {
    ts_buffer text = {0};
    if (options_has(line, "--help")) {
        ts_buffer_text(&text, usage);
        options_help(rows, ROW_COUNT, &text);
    } else if (options_has(line, "--version")) {
        ts_buffer_format(&text, "tsrun %s\n", tsrt_version_text());
    } else {
        return false;
    }
    *out_failed = !ts_write_all(1, text.data, text.length);
    ts_buffer_deinit(&text);
    return true;
}

/* What the command would not look at is a mistake of whoever typed it. */
static ts_status check_place(const options *line, const char *command, const char *const *names) {
    for (; *names; names++)
        if (options_has(line, *names))
            return ts_error_make(TS_ERR_INVALID_INPUT, "%s is no option of %s", *names, command);
    return NULL;
}

static ts_status check_places(const options *line, bool is_bench, bool is_info) {
    static const char *const of_runs[] = {"--output", "--output-args", "--repeat", "--profile", NULL};
    static const char *const of_bench[] = {"--warmup", "--runs", "--json", NULL};
    static const char *const of_both[] = {"--entry", "--inputs", "--args", "--threads",
                                          "--memory-limit", "--device", "--fallback", "--seed", NULL};
    static const char *const of_info[] = {"--verify", NULL};
    const char *command = is_bench ? "tsrun bench" : is_info ? "tsrun info" : "tsrun MODEL.tsm";
    if (is_bench || is_info)
        TS_TRY(check_place(line, command, of_runs));
    if (!is_bench)
        TS_TRY(check_place(line, command, of_bench));
    return check_place(line, command, is_info ? of_both : of_info);
}

/* Numbers are checked before anything is opened: a wrong one is a wrong command line. */
static ts_status check_line(const options *line) {
    int64_t n = 0;
    TS_TRY(options_number(line, "--threads", 1, 1024, &n));
    TS_TRY(options_number(line, "--seed", INT64_MIN, INT64_MAX, &n));
    TS_TRY(options_number(line, "--memory-limit", 1, INT64_MAX, &n));
    TS_TRY(options_number(line, "--repeat", 1, 1000000000, &n));
    TS_TRY(options_number(line, "--warmup", 0, 1000000, &n));
    TS_TRY(options_number(line, "--runs", 1, 10000000, &n));
    const char *fallback = options_get(line, "--fallback");
    if (fallback && strcmp(fallback, "cpu") != 0)
        return ts_error_make(TS_ERR_INVALID_INPUT, "--fallback: only cpu can be fallen back to");
    if (line->operand_count != 1)
        return ts_error_make(TS_ERR_INVALID_INPUT, "expected one MODEL.tsm, found %zu%s",
                             line->operand_count, line->operand_count ? "" : "; --help explains");
    return NULL;
}

int main(int argc, char **argv) {
    streams_init();
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    bool is_bench = argc > 1 && strcmp(argv[1], "bench") == 0;
    bool is_info = argc > 1 && strcmp(argv[1], "info") == 0;
    int shift = is_bench || is_info;
    options line;
    bool failed_output = false, is_usage = true;
    ts_status status = options_parse(rows, ROW_COUNT, argc - shift, argv + shift, &line);
    if (!status && !answer(&line, &failed_output)) {
        status = check_line(&line);
        if (!status)
            status = check_places(&line, is_bench, is_info);
        if (status) {
            is_usage = true;
        } else if (is_info) {
            is_usage = false;
            status = tsrun_info(line.operands[0], &line, &failed_output);
        } else {
            run r = {.line = &line};
            is_usage = false;
            status = run_or_bench(&r, line.operands[0], is_bench);
            run_deinit(&r);
            failed_output = r.m.failed_output;
        }
    }
    int code = failed_output ? 1 : 0;
    if (status) {
        complain(status);
        code = is_usage && ts_status_code(status) == TS_ERR_INVALID_INPUT ? 2 : 1;
    }
    if (caught)
        code = 128 + (int)caught;
    ts_status_release(status);
    options_deinit(&line);
    return code;
}
