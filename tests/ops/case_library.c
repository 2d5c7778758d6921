/* tests/ops/case_library.c - functions of the embedded library, typed and evaluated. */
#include "tests/ops/case_library.h"

#include <stdio.h>
#include <stdlib.h>

#include "frontend/frontend_internal.h"

struct fe_library_file {
    const char *name;
    const unsigned char *data;
    unsigned long length;
};
extern const struct fe_library_file fe_library_files[];
extern const unsigned long fe_library_file_count;

struct case_library {
    ts_arena *arena;
    ir_module *module;
    fe_context *fe;
    fe_options options;
    fe_diagnostics diagnostics;
};

static const char functional[] = "torch.nn.functional", init[] = "torch.nn.init";

case_library *library_make(void) {
    case_library *l = calloc(1, sizeof *l);
    if (!l)
        exit(2);
    l->arena = ts_arena_create(0);
    l->options.training = -1;
    l->diagnostics.arena = l->arena;
    l->module = ir_module_make(l->arena);
    l->fe = fe_context_make(l->module, &l->options, &l->diagnostics);
    return l;
}

void library_release(case_library *l) {
    fe_context_deinit(l->fe);
    ir_module_deinit(l->module);
    ts_arena_release(l->arena);
    free(l);
}

static bool starts_with(ts_str text, const char *start) {
    size_t n = strlen(start);
    return text.length > n && memcmp(text.data, start, n) == 0 && text.data[n] == '.';
}

/* name.overload is the function name__overload. */
static ts_str function_name(ts_arena *arena, ts_str name) {
    for (size_t i = 0; i < name.length; i++)
        if (name.data[i] == '.')
            return ts_arena_format(arena, "%.*s__%.*s", (int)i, name.data,
                                   (int)(name.length - i - 1), name.data + i + 1);
    return name;
}

bool library_run(case_library *l, rt_context *context, ts_str name, const rt_value *args, size_t count,
                 rt_value *out, ts_status *out_status) {
    const char *path = starts_with(name, functional) ? functional
                       : starts_with(name, init)     ? init
                                                     : "torch";
    ts_str bare = name;
    if (strcmp(path, "torch") != 0) {
        bare.data += strlen(path) + 1;
        bare.length -= strlen(path) + 1;
    } else {
        bare = function_name(l->arena, name);
    }
    fe_binding b = fe_library_find(l->fe, ts_str_of(path), bare);
    ir_function *f = b.kind == FE_FUNCTION ? fe_function_ir(l->fe, b.function) : NULL;
    if (!f || count > f->body->parameter_count)
        return false;
    rt_value all[64];
    for (size_t i = 0; i < f->body->parameter_count && i < 64; i++)
        all[i] = i < count ? args[i] : f->defaults[i];
    ir_evaluator_options options = {.context = context};
    *out_status = ir_evaluate(l->module, f, all, f->body->parameter_count, &options, out);
    return true;
}

/* A name that begins with an underscore and is called by itself in its file, not as torch._name. */
static bool is_helper(const struct fe_library_file *file, const char *name, size_t length) {
    if (*name != '_')
        return false;
    const char *at = (const char *)file->data, *end = at + file->length - length;
    for (at++; at < end; at++)
        if (memcmp(at, name, length) == 0 && at[length] == '(' &&
            (at[-1] == ' ' || at[-1] == '(' || at[-1] == '[') && (at - (const char *)file->data < 4 ||
             memcmp(at - 4, "def ", 4) != 0))
            return true;
    return false;
}

void library_each(void (*visit)(void *user, ts_str name), void *user) {
    for (unsigned long i = 0; i < fe_library_file_count; i++) {
        const char *file = fe_library_files[i].name;
        const char *path = strncmp(file, "tensor", 6) == 0       ? ""
                           : strncmp(file, "functional", 10) == 0 ? functional
                           : strncmp(file, "init", 4) == 0        ? init
                                                                  : NULL;
        const char *at = (const char *)fe_library_files[i].data, *end = at + fe_library_files[i].length;
        for (; path && at < end; at++) {
            size_t n = (size_t)(end - at) > 4 && memcmp(at, "def ", 4) == 0 ? strcspn(at + 4, "(") : 0;
            char text[256];
            if (n && is_helper(&fe_library_files[i], at + 4, n))
                n = 0;
            int length = n ? snprintf(text, sizeof text, "%s%s%.*s", path, *path ? "." : "", (int)n,
                                      at + 4)
                           : 0;
            char *overload = length && !*path ? strstr(text + 1, "__") : NULL;
            if (overload && overload[2]) {
                *overload = '.';
                memmove(overload + 1, overload + 2, strlen(overload + 2) + 1);
            }
            if (length)
                visit(user, ts_str_of(text));
            const char *stop = memchr(at, '\n', (size_t)(end - at));
            at = stop ? stop : end;
        }
    }
}
