/* tools/tsc_main.c - the compiler's command line: options in, one call, messages out. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "passes/passes.h"
#include "runtime/base/file.h"
#include "tools/compile.h"
#include "tools/options.h"
#include "tools/render.h"

#define TSC_VERSION "0.1.0"

static const option_row rows[] = {
    {"What to compile:", NULL, OPTION_HEADING, NULL, NULL, NULL},
    {"--model", NULL, OPTION_VALUE, "EXPR", "script: the module, as in 'Net(hidden=256)'; else the\n"
     "module level's `model`, or the only module class;\npackage of exported programs: the name of one", NULL},
    {"--entry", NULL, OPTION_LIST, "NAME,...", "methods or functions to compile [forward]", NULL},
    {"--input", NULL, OPTION_LIST, "NAME:TYPE", "type of an input: 'x:float32[N,3,224,224]',\n"
     "'n:int', ':float32[2]' in order, 'encode.x:...'; a\nletter is a size known at run time,\n"
     "'float32[N=1..64,3]' bounds it", NULL},
    {"--example", NULL, OPTION_VALUE, "FILE", "safetensors file of example inputs: declares the\n"
     "types that no --input names", NULL},
    {"--weights", NULL, OPTION_VALUE, "FILE", "state dict: .safetensors or .pth", NULL},
    {"--seed", NULL, OPTION_VALUE, "N", "seed of the initialisers, as torch.manual_seed(N)", NULL},
    {"--eval", NULL, OPTION_FLAG, NULL, "compile in evaluation mode (dropout off)", NULL},
    {"--train", NULL, OPTION_FLAG, NULL, "compile in training mode", NULL},
    {"--ignore-crc", NULL, OPTION_FLAG, NULL, "read archives whose checksums are wrong", NULL},
    {"For what:", NULL, OPTION_HEADING, NULL, NULL, NULL},
    {"--output", "-o", OPTION_VALUE, "FILE", "where to write, - for standard output [the input's name with .tsm]", NULL},
    {"--emit", NULL, OPTION_VALUE, "KIND", "tsm, obj, so, tsir, llvm, asm, cuda, ptx, opencl,\n"
     "ast [tsm, or by the name of the output]", NULL},
    {"--target", NULL, OPTION_VALUE, "NAME", "cpu, cuda or opencl [cpu]", NULL},
    {"--cpu", NULL, OPTION_LIST, "LEVEL,...", "x86-64-v2, -v3, -v4, -v4-vnni, -v4-bf16, -v4-amx,\nnative, aarch64; "
     "several go into one file, the processor chooses\n[x86-64-v3,x86-64-v4,x86-64-v4-amx; --dtype=bf16: -v4-bf16 for -v4-amx]", NULL},
    {"--cuda-arch", NULL, OPTION_VALUE, "LIST", "sm_80,sm_90", NULL},
    {"--nvrtc", NULL, OPTION_VALUE, "PATH", "the NVRTC library", NULL},
    {"How:", NULL, OPTION_HEADING, NULL, NULL, NULL},
    {"-O", NULL, OPTION_JOINED, "0..3", "-O0 unfused, -O2 the default, -O3 slower compile", NULL},
    {"--dtype", NULL, OPTION_VALUE, "TYPE", "bf16: products and convolutions with constant weights\n"
     "multiply in bfloat16 and sum in float32 [float32]", NULL},
    {"--weights-dtype", NULL, OPTION_VALUE, "TYPE", "int8 or int4: weights of linear layers, rounded, and\n"
     "tables of embeddings in int8; bf16: of convolutions\ntoo; arithmetic is float32 [float32]", NULL},
    {"--fast-math", NULL, OPTION_FLAG, NULL, "reorder sums, approximate functions",
     "kernels have one arithmetic"},
    {"--no-winograd", NULL, OPTION_FLAG, NULL, "3x3 convolutions as direct sums: slower, and a\n"
     "few ulp nearer to the exact result", NULL},
    {"--jobs", "-j", OPTION_VALUE, "N", "threads that generate code [the processors]; the\nfile is the same for any number", NULL},
    {"--cache", NULL, OPTION_VALUE, "DIR", "keep compiled code there and use it again; made where\nthere is none, may be emptied at any time", NULL},
    {"--tune", NULL, OPTION_FLAG, NULL, "measure variants of the kernels on this machine, with\nthe --example or made-up inputs of the declared sizes,\nand take what is clearly faster", NULL},
    {"--tune-cache", NULL, OPTION_VALUE, "FILE", "what was measured: not measured again [OUT.tune]", NULL},
    {"Looking inside:", NULL, OPTION_HEADING, NULL, NULL, NULL},
    {"--passes", NULL, OPTION_VALUE, "LIST", "run just these passes ('' for none)", NULL},
    {"--stop-after", NULL, OPTION_VALUE, "PASS", "stop there and print the IR; 'frontend' too", NULL},
    {"--dump", NULL, OPTION_VALUE, "PASS", "write the IR after that pass; 'changed', 'all'", NULL},
    {"--dump-dir", NULL, OPTION_VALUE, "DIR", "folder for dumps, made where there is none\n[standard error]", NULL},
    {"--verify-each", NULL, OPTION_FLAG, NULL, "run the verifier after every pass", NULL},
    {"--check-each", NULL, OPTION_FLAG, NULL, "run the --example through the reference kernels\n"
     "after every pass and name the first that is wrong", NULL},
    {"--report", NULL, OPTION_VALUE, "FILE.html", "a page: kernels with what was fused into them,\noperations, bytes and variant; what is dynamic, and\nwhy; memory; passes", NULL},
    {"--stats", NULL, OPTION_FLAG, NULL, "what was compiled, and what stays dynamic", NULL},
    {"--list-passes", NULL, OPTION_FLAG, NULL, "names of all passes, in their order", NULL},
    {"--list-ops", NULL, OPTION_VALUE, "FORMAT", "the operators: text, or md", NULL},
    {"--diagnostics", NULL, OPTION_VALUE, "FORMAT", "text or json, on standard error [text]", NULL},
    {"--verbose", "-v", OPTION_FLAG, NULL, "say more; with --version, the limits", NULL},
    {"--version", NULL, OPTION_FLAG, NULL, "print the version", NULL},
    {"--help", "-h", OPTION_FLAG, NULL, "print this", NULL},
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

static const char usage[] =
    "usage: tsc INPUT.py|INPUT.pt|INPUT.tsir [-o OUT.tsm] [options]\n"
    "\n"
    "Compiles a PyTorch model script or a TorchScript archive into a file that tsrun and\n"
    "libtsrt run without Python and without PyTorch.\n"
    "\n"
    "  tsc resnet.pt -o resnet.tsm --input 'x:float32[N,3,224,224]'\n"
    "  tsc net.py --model 'Net(hidden=256)' --weights net.safetensors -o net.tsm\n"
    "  tsc net.py --eval --emit=tsir --passes=inline,eliminate_dead\n"
    "  tsrun resnet.tsm --inputs image.safetensors --output result.safetensors\n";

static const char limits[] =
    "limits of what is read:\n"
    "  archive: 65535 members, names of 4096 bytes, 64 MiB of code, pickles of 256 MiB\n"
    "  pickle: nested 1000 deep, 4194304 values; tensors of rank 64\n"
    "  safetensors: header of 100 MB, nested 128 deep\n"
    "  script: nested 1000 deep; the compilation's own memory 1.5 GiB\n";

static const char *const emit_names[] = {"tsm",  "obj", "so",   "ast", "tsir",   "llvm",
                                         "asm",  "cuda", "ptx", "opencl", NULL};

typedef struct driver {
    options line;
    tsc_options compile;
    render_format format;
    const char *dump_dir;
    bool has_dump_dir; /* it was made, or tried to */
    char *output; /* owned: a name made from the input's */
    char *tune_cache;
    fe_input_type *inputs;
    ts_str *entries, *passes;
    const char **levels;
    char *level_text;
    bool failed_output; /* standard output is gone */
    ts_status dump_status;
} driver;

static void say(const char *text, size_t length) {
    (void)ts_write_all(2, text, length); /* nobody is left to tell */
}

static void say_text(void *user, ts_str text) {
    (void)user;
    say(text.data, text.length);
}

static void print_text(void *user, ts_str text) {
    driver *d = user;
    d->failed_output |= !ts_write_all(1, text.data, text.length);
}

static ts_status make_folder(const char *option, const char *path) {
    struct stat info;
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return ts_error_make(TS_ERR_IO, "%s: cannot make %s: %s", option, path, strerror(errno));
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return ts_error_make(TS_ERR_IO, "%s: %s is no folder", option, path);
    return NULL;
}

static int processor_count(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < 1 ? 1 : count < 64 ? count : 64;
}

static void write_dump(void *user, ts_str name, ts_str text) {
    driver *d = user;
    if (d->dump_dir && !d->has_dump_dir && !d->dump_status)
        d->dump_status = make_folder("--dump-dir", d->dump_dir);
    d->has_dump_dir = true;
    if (!d->dump_dir && ts_str_is(name, "repro.tsir"))
        return; /* a whole module is no message: it is written where a folder was given */
    if (!d->dump_dir) {
        ts_buffer heading = {0};
        ts_buffer_format(&heading, "# %.*s\n", TS_STR_ARG(name));
        say(heading.data, heading.length);
        ts_buffer_deinit(&heading);
        say(text.data, text.length);
        return;
    }
    ts_buffer path = {0};
    ts_buffer_format(&path, "%s/%.*s", d->dump_dir, TS_STR_ARG(name));
    ts_buffer_char(&path, 0);
    ts_file_part part = {.data = text.data, .length = text.length};
    ts_status status = path.failed ? ts_no_memory() : ts_file_write(path.data, &part, 1);
    if (status && !d->dump_status)
        d->dump_status = status;
    else
        ts_status_release(status);
    ts_buffer_deinit(&path);
}

static void report(void *user, const fe_diagnostics *diagnostics, ts_status status) {
    driver *d = user;
    ts_buffer text = {0};
    if (status || (diagnostics && diagnostics->count))
        render_all(d->format, diagnostics, status, &text);
    if (text.failed)
        say("tsc: error: out of memory\n", 26);
    else
        say(text.data, text.length);
    ts_buffer_deinit(&text);
}

/* "a,b" of all values of an option, one array of pieces. */
static ts_str *split_list(const option_values *values, size_t *out_count) {
    size_t most = values->count;
    for (size_t i = 0; i < values->count; i++)
        for (const char *p = values->texts[i]; *p; p++)
            most += *p == ',';
    ts_str *out = calloc(most + 1, sizeof *out);
    size_t count = 0;
    for (size_t i = 0; out && i < values->count; i++)
        for (const char *p = values->texts[i]; *p;) {
            size_t length = strcspn(p, ",");
            if (length)
                out[count++] = (ts_str){p, length};
            p += length + (p[length] == ',');
        }
    *out_count = count;
    return out;
}

/* `--entry ,` names nothing: the default would be a surprise. */
static ts_status need_names(const driver *d, const char *option, size_t found) {
    if (options_has(&d->line, option) && found == 0)
        return ts_error_make(TS_ERR_INVALID_INPUT, "%s: expected names, found '%.80s'", option,
                             options_get(&d->line, option));
    return NULL;
}

static ts_status read_inputs(driver *d) {
    const option_values *v = options_all(&d->line, "--input");
    d->inputs = calloc(v->count + 1, sizeof *d->inputs);
    if (!d->inputs)
        return ts_no_memory();
    for (size_t i = 0; i < v->count; i++) {
        const char *text = v->texts[i], *colon = strchr(text, ':');
        if (!colon || !colon[1])
            return ts_error_make(TS_ERR_INVALID_INPUT, "--input: expected NAME:TYPE, found '%.80s'",
                                 text);
        ts_str name = {text, (size_t)(colon - text)}, entry = {0};
        for (size_t k = name.length; k-- > 0;)
            if (name.data[k] == '.') {
                entry = (ts_str){name.data, k};
                name = (ts_str){name.data + k + 1, name.length - k - 1};
                break;
            }
        for (colon++; *colon == ' '; colon++) {
        }
        d->inputs[i] = (fe_input_type){.entry = entry, .name = name, .type_text = ts_str_of(colon)};
        for (size_t k = 0; k < i; k++)
            if (name.length && ts_str_equal(d->inputs[k].name, name) && ts_str_equal(d->inputs[k].entry, entry))
                return ts_error_make(TS_ERR_INVALID_INPUT, "--input gives '%.*s' twice", TS_STR_ARG(name));
    }
    d->compile.frontend.inputs = d->inputs;
    d->compile.frontend.input_count = v->count;
    return NULL;
}

/* --dtype and --weights-dtype. */
static ts_status read_precision(driver *d) {
    static const char *const dtypes[] = {"float32", "bf16", NULL};
    static const char *const weights[] = {"float32", "bf16", "int8", "int4", NULL};
    const char *dtype = options_get(&d->line, "--dtype");
    const char *kept = options_get(&d->line, "--weights-dtype");
    if (dtype && strcmp(dtype, "float32") != 0 && strcmp(dtype, "bf16") != 0)
        return options_unknown_word("--dtype", dtype, dtypes);
    d->compile.computes_bf16 = dtype && strcmp(dtype, "bf16") == 0;
    size_t i = 0;
    while (kept && weights[i] && strcmp(weights[i], kept) != 0)
        i++;
    if (!weights[i])
        return options_unknown_word("--weights-dtype", kept, weights);
    d->compile.weights_dtype = kept && i ? ts_str_of(kept) : (ts_str){0};
    bool is_rounded = d->compile.computes_bf16 || d->compile.weights_dtype.length;
    if (is_rounded && d->compile.opt_level == 0)
        return ts_error_make(TS_ERR_INVALID_INPUT, "%s needs -O1 or higher: without kernels nothing "
                             "is rounded", d->compile.computes_bf16 ? "--dtype" : "--weights-dtype");
    if (is_rounded && d->compile.device.length)
        return ts_error_make(TS_ERR_INVALID_INPUT, "%s is for --target=cpu: kernels of a device are "
                             "float32", d->compile.computes_bf16 ? "--dtype" : "--weights-dtype");
    return NULL;
}

static ts_status read_levels(driver *d) {
    size_t count = 0;
    ts_str *list = split_list(options_all(&d->line, "--cpu"), &count);
    d->levels = calloc(count + 3, sizeof *d->levels);
    size_t bytes = 1;
    for (size_t i = 0; i < count; i++)
        bytes += list[i].length + 1;
    char *at = d->level_text = malloc(bytes);
    ts_status status = !list || !d->levels || !at ? ts_no_memory() : NULL;
    for (size_t i = 0; i < count && !status; i++) {
        memcpy(at, list[i].data, list[i].length);
        at[list[i].length] = 0;
        d->levels[i] = at;
        at += list[i].length + 1;
    }
    free(list);
    if (!status)
        status = need_names(d, "--cpu", count);
    if (status)
        return status;
    if (count == 0) {
        /* Those with AVX-512 cost time (of resnet18's 2.1 s 0.6 for the third) and some kilobytes of code, as weights
         * are packed once for all, and double the speed of products; the third adds 1.3 to 1.7 times. Files of one
         * level get v3. */
        d->levels[count++] = "x86-64-v3";
        d->levels[count++] = "x86-64-v4";
        d->levels[count++] = d->compile.computes_bf16 ? "x86-64-v4-bf16" : "x86-64-v4-amx";
    }
    d->compile.levels = d->levels;
    d->compile.level_count = count;
    return NULL;
}

static ts_status read_emit(driver *d) {
    static const tsc_emit emits[] = {TSC_EMIT_TSM,  TSC_EMIT_OBJ, TSC_EMIT_SO,  TSC_EMIT_AST,
                                     TSC_EMIT_TSIR, TSC_EMIT_LLVM, TSC_EMIT_ASM, TSC_EMIT_CUDA,
                                     TSC_EMIT_PTX,  TSC_EMIT_OPENCL};
    static const struct {
        const char *suffix;
        tsc_emit emit;
    } suffixes[] = {{".o", TSC_EMIT_OBJ},   {".so", TSC_EMIT_SO}, {".tsir", TSC_EMIT_TSIR},
                    {".ll", TSC_EMIT_LLVM}, {".s", TSC_EMIT_ASM}};
    const char *name = options_get(&d->line, "--emit");
    d->compile.emit = TSC_EMIT_TSM;
    for (size_t i = 0; !name && d->compile.output && i < sizeof suffixes / sizeof *suffixes; i++)
        if (ts_str_ends_with(ts_str_of(d->compile.output), suffixes[i].suffix))
            d->compile.emit = suffixes[i].emit;
    if (!name && d->compile.stop_after.length)
        d->compile.emit = TSC_EMIT_TSIR;
    if (!name)
        return NULL;
    for (size_t i = 0; emit_names[i]; i++)
        if (strcmp(emit_names[i], name) == 0) {
            d->compile.emit = emits[i];
            return NULL;
        }
    return options_unknown_word("--emit", name, emit_names);
}

static ts_status check_pass(const char *option, ts_str name) {
    size_t count = 0;
    const pass_info *table = pass_table(&count);
    for (size_t i = 0; i < count; i++)
        if (ts_str_is(name, table[i].name))
            return NULL;
    const char **words = calloc(count + 1, sizeof *words);
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)(name.length < 63 ? name.length : 63), name.data);
    for (size_t i = 0; words && i < count; i++)
        words[i] = table[i].name;
    ts_buffer what = {0};
    ts_buffer_format(&what, "%s: pass", option);
    ts_buffer_char(&what, 0);
    ts_status status = words && !what.failed ? options_unknown_word(what.data, text, words)
                                             : ts_no_memory();
    free(words);
    ts_buffer_deinit(&what);
    return status;
}

static ts_status read_passes(driver *d) {
    if (options_has(&d->line, "--passes")) {
        const char *text = options_get(&d->line, "--passes");
        d->passes = split_list(&(option_values){&text, 1}, &d->compile.pass_count);
        if (!d->passes)
            return ts_no_memory();
        d->compile.passes = d->passes;
        for (size_t i = 0; i < d->compile.pass_count; i++)
            TS_TRY(check_pass("--passes", d->passes[i]));
    }
    d->compile.stop_after = ts_str_of(options_get(&d->line, "--stop-after"));
    if (d->compile.stop_after.length && !ts_str_is(d->compile.stop_after, "frontend"))
        TS_TRY(check_pass("--stop-after", d->compile.stop_after));
    const char *dump = options_get(&d->line, "--dump");
    if (!dump)
        return NULL;
    d->compile.dump_all = strcmp(dump, "all") == 0;
    d->compile.dump_changed = strcmp(dump, "changed") == 0;
    if (d->compile.dump_all || d->compile.dump_changed)
        return NULL;
    d->compile.dump_one = ts_str_of(dump);
    return check_pass("--dump", d->compile.dump_one);
}

/* INPUT.tsm beside where we are, for artifacts; texts go to standard output. */
static ts_status read_output(driver *d, const char *input) {
    static const char *const suffixes[] = {[TSC_EMIT_TSM] = ".tsm", [TSC_EMIT_OBJ] = ".o",
                                           [TSC_EMIT_SO] = ".so",   [TSC_EMIT_LLVM] = ".ll",
                                           [TSC_EMIT_ASM] = ".s",   [TSC_EMIT_CUDA] = ".cu",
                                           [TSC_EMIT_PTX] = ".ptx", [TSC_EMIT_OPENCL] = ".cl"};
    tsc_emit emit = d->compile.emit;
    bool is_text = emit == TSC_EMIT_TSIR || emit == TSC_EMIT_AST || emit == TSC_EMIT_NOTHING;
    if (d->compile.output || is_text)
        return NULL;
    const char *slash = strrchr(input, '/'), *name = slash ? slash + 1 : input;
    const char *dot = strrchr(name, '.');
    size_t stem = dot && dot != name ? (size_t)(dot - name) : strlen(name);
    size_t size = stem + strlen(suffixes[emit]) + 1;
    d->output = malloc(size);
    if (!d->output)
        return ts_no_memory();
    snprintf(d->output, size, "%.*s%s", (int)stem, name, suffixes[emit]);
    d->compile.output = d->output;
    return NULL;
}

/* Found before the time is spent, not after. */
static ts_status check_tune_cache(const char *path) {
    struct stat info;
    if (path && stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return ts_error_make(TS_ERR_IO, "--tune-cache: %s: expected a regular file", path);
    return NULL;
}

/* No file that is written may be one that is read, or another one that is written. */
static ts_status check_outputs(const driver *d, const char *input) {
    const char *const files[] = {input, options_get(&d->line, "--weights"),
                                 options_get(&d->line, "--example"), d->compile.output,
                                 d->compile.report, d->compile.tune_cache};
    enum { INPUTS = 3, FILES = sizeof files / sizeof *files };
    for (size_t i = INPUTS; i < FILES; i++)
        TS_TRY(options_keep_inputs(files[i], files, INPUTS));
    for (size_t i = INPUTS; i < FILES; i++)
        for (size_t k = INPUTS; k < i; k++)
            if (files[i] && files[k] && strcmp(files[i], files[k]) == 0)
                return ts_error_make(TS_ERR_INVALID_INPUT, "two outputs would be written to %s",
                                     files[i]);
    return NULL;
}

static ts_status read_target(driver *d) {
    static const char *const targets[] = {"cpu", "cuda", "opencl", NULL};
    const char *target = options_get(&d->line, "--target");
    d->compile.cuda_arch = ts_str_of(options_get(&d->line, "--cuda-arch"));
    d->compile.nvrtc_path = ts_str_of(options_get(&d->line, "--nvrtc"));
    bool is_cuda = d->compile.emit == TSC_EMIT_CUDA || d->compile.emit == TSC_EMIT_PTX ||
                   (target && strcmp(target, "cuda") == 0);
    if (!is_cuda && (options_has(&d->line, "--cuda-arch") || options_has(&d->line, "--nvrtc")))
        return ts_error_make(TS_ERR_INVALID_INPUT, "%s is for --target=cuda",
                             options_has(&d->line, "--nvrtc") ? "--nvrtc" : "--cuda-arch");
    if (!target || strcmp(target, "cpu") == 0)
        return NULL;
    if (strcmp(target, "cuda") != 0 && strcmp(target, "opencl") != 0)
        return options_unknown_word("--target", target, targets);
    d->compile.device = ts_str_of(target);
    return NULL;
}

static ts_status read_tuning(driver *d) {
    const char *cache = options_get(&d->line, "--tune-cache");
    d->compile.tune = options_has(&d->line, "--tune");
    if (!d->compile.tune && cache)
        return ts_error_make(TS_ERR_INVALID_INPUT, "--tune-cache is for --tune");
    if (d->compile.tune && (d->compile.emit != TSC_EMIT_TSM || d->compile.device.length))
        return ts_error_make(TS_ERR_INVALID_INPUT, "--tune is for a .tsm for the cpu");
    if (!d->compile.tune || cache) {
        d->compile.tune_cache = cache;
        return NULL;
    }
    if (strcmp(d->compile.output, "/dev/stdout") == 0)
        return ts_error_make(TS_ERR_INVALID_INPUT, "--tune beside -o - needs --tune-cache FILE");
    size_t size = strlen(d->compile.output) + sizeof ".tune";
    d->tune_cache = malloc(size);
    if (!d->tune_cache)
        return ts_no_memory();
    snprintf(d->tune_cache, size, "%s.tune", d->compile.output);
    d->compile.tune_cache = d->tune_cache;
    return NULL;
}

static ts_status read_options(driver *d) {
    const options *line = &d->line;
    fe_options *f = &d->compile.frontend;
    const char *format = options_get(line, "--diagnostics");
    if (format && strcmp(format, "json") != 0 && strcmp(format, "text") != 0)
        return options_unknown_word("--diagnostics", format,
                                    (const char *const[]){"text", "json", NULL});
    d->format = format && format[0] == 'j' ? RENDER_JSON : RENDER_TEXT;
    if (line->operand_count != 1)
        return ts_error_make(TS_ERR_INVALID_INPUT, "expected one input, found %zu%s",
                             line->operand_count, line->operand_count ? "" : "; --help explains");
    const char *input = line->operands[0];
    f->path = ts_str_of(input);
    f->model_expression = ts_str_of(options_get(line, "--model"));
    f->weights_path = ts_str_of(options_get(line, "--weights"));
    f->ignore_crc = options_has(line, "--ignore-crc");
    f->has_seed = options_has(line, "--seed");
    int64_t seed = 0;
    TS_TRY(options_number(line, "--seed", INT64_MIN, INT64_MAX, &seed));
    f->seed = (uint64_t)seed;
    bool eval = options_has(line, "--eval"), train = options_has(line, "--train");
    if (eval && train)
        return ts_error_make(TS_ERR_INVALID_INPUT, "--eval and --train exclude each other");
    f->training = eval ? 0 : train ? 1 : -1;
    d->entries = split_list(options_all(line, "--entry"), &f->entry_count);
    if (!d->entries)
        return ts_no_memory();
    f->entries = d->entries;
    for (size_t i = 1; i < f->entry_count; i++)
        for (size_t k = 0; k < i; k++)
            if (ts_str_equal(d->entries[i], d->entries[k]))
                return ts_error_make(TS_ERR_INVALID_INPUT, "--entry names '%.*s' twice",
                                     TS_STR_ARG(d->entries[i]));
    TS_TRY(need_names(d, "--entry", f->entry_count));
    int64_t level = 2;
    TS_TRY(options_number(line, "-O", 0, 3, &level));
    d->compile.opt_level = (int)level;
    d->compile.fast_math = options_has(line, "--fast-math");
    d->compile.no_winograd = options_has(line, "--no-winograd");
    d->compile.output = options_get(line, "--output");
    if (d->compile.output && strcmp(d->compile.output, "-") == 0)
        d->compile.output = "/dev/stdout";
    d->compile.example = options_get(line, "--example");
    d->compile.verify_each = options_has(line, "--verify-each");
    d->compile.check_each = options_has(line, "--check-each");
    d->compile.want_stats = options_has(line, "--stats") || options_has(line, "--verbose");
    d->dump_dir = options_get(line, "--dump-dir");
    d->compile.report = options_get(line, "--report");
    int64_t jobs = processor_count();
    TS_TRY(options_number(line, "--jobs", 1, 64, &jobs));
    d->compile.jobs = (int)jobs;
    d->compile.cache = options_get(line, "--cache");
    if (d->compile.cache)
        TS_TRY(make_folder("--cache", d->compile.cache));
    TS_TRY(read_passes(d));
    TS_TRY(read_emit(d));
    TS_TRY(read_target(d));
    TS_TRY(read_inputs(d));
    TS_TRY(read_precision(d));
    TS_TRY(read_levels(d));
    TS_TRY(read_output(d, input));
    TS_TRY(read_tuning(d));
    TS_TRY(check_tune_cache(d->compile.tune_cache));
    return check_outputs(d, input);
}

/* build/docs/ops.md is this text. */
static void list_operators(bool is_markdown, ts_buffer *out) {
#define X(name) #name,
    static const char *const families[] = {RT_LOWERINGS(X)};
#undef X
    static const char *const derivatives[] = {"none", "script", "zero", "via_pure"};
    if (is_markdown)
        ts_buffer_text(out, "# Operators\n\nPrinted by `tsc --list-ops=md`.\n\n## Core operators\n\nRows of "
                            "`runtime/ops/core_ops*.def`. Family: the lowering that compiles it (none: always "
                            "the reference kernel). Effects beside those of the schema: random, raises, "
                            "state, prints.\n\n| schema | family | derivative | effects |\n| --- | --- | --- | "
                            "--- |\n");
    for (int i = 0; i < OP_COUNT; i++) {
        const rt_op_info *op = rt_op_get((rt_op)i);
        if (!is_markdown) {
            ts_buffer_format(out, "%s\n", op->schema);
            continue;
        }
        ts_buffer_format(out, "| `%s` | %s | %s |%s%s%s%s |\n", op->schema, families[op->lower],
                         derivatives[op->grad], op->effects & EFFECT_RANDOM ? " random" : "",
                         op->effects & EFFECT_RAISES ? " raises" : "",
                         op->effects & EFFECT_STATE ? " state" : "",
                         op->effects & EFFECT_PRINTS ? " prints" : "");
    }
    if (is_markdown)
        ts_buffer_text(out, "\n## Library operators\n\nFunctions of `frontend/library/tensor*.py`; "
                            "`name__overload` is name.overload.\n\n");
    fe_library_list(is_markdown, out);
}

/* --help and the like: true where one was given and printed. */
static ts_status answer(driver *d, bool *out_asked) {
    static const char *const formats[] = {"text", "md", NULL};
    ts_buffer text = {0};
    const options *line = &d->line;
    const char *format = options_get(line, "--list-ops");
    bool is_asked = true;
    if (format && strcmp(format, "md") != 0 && strcmp(format, "text") != 0)
        return options_unknown_word("--list-ops", format, formats);
    if (options_has(line, "--help")) {
        ts_buffer_text(&text, usage);
        options_help(rows, ROW_COUNT, &text);
    } else if (options_has(line, "--version")) {
        ts_buffer_text(&text, "tsc " TSC_VERSION "\n");
        if (options_has(line, "--verbose"))
            ts_buffer_text(&text, limits);
    } else if (options_has(line, "--list-passes")) {
        size_t count = 0;
        const pass_info *table = pass_table(&count);
        for (size_t i = 0; i < count; i++)
            ts_buffer_format(&text, "%-22s -O%d  %s\n", table[i].name, table[i].level,
                             table[i].summary);
    } else if (options_has(line, "--list-ops")) {
        list_operators(ts_str_is(ts_str_of(format), "md"), &text);
    } else {
        is_asked = false;
    }
    if (is_asked)
        print_text(d, (ts_str){text.data, text.length});
    ts_buffer_deinit(&text);
    *out_asked = is_asked;
    return NULL;
}

/* What the user typed, what the system or the model is to blame for, and success. */
static int exit_status(const driver *d, ts_status status, bool is_usage) {
    if (status)
        return is_usage && ts_status_code(status) == TS_ERR_INVALID_INPUT ? 2 : 1;
    return d->failed_output ? 1 : 0;
}

int main(int argc, char **argv) {
    streams_init();
    interrupts_init();
    driver d = {0};
    bool is_usage = true, is_asked = false;
    ts_status status = options_parse(rows, ROW_COUNT, argc, argv, &d.line);
    if (!status)
        status = answer(&d, &is_asked);
    if (!status && !is_asked)
        status = read_options(&d);
    if (status) {
        report(&d, NULL, status);
    } else if (!is_asked) {
        if (d.compile.output)
            interrupts_protect(d.compile.output);
        tsc_callbacks callbacks = {&d, print_text, write_dump, say_text, report};
        is_usage = false;
        status = tsc_compile(&d.compile, &callbacks);
        if (!status && d.dump_status) {
            status = d.dump_status;
            d.dump_status = NULL;
            report(&d, NULL, status);
        }
    }
    int result = exit_status(&d, status, is_usage);
    ts_status_release(status);
    ts_status_release(d.dump_status);
    free(d.output);
    free(d.tune_cache);
    free(d.inputs);
    free(d.entries);
    free(d.passes);
    free(d.levels);
    free(d.level_text);
    options_deinit(&d.line);
    return result;
}
