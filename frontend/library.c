/* frontend/library.c - the embedded standard library: files are parsed when a name of theirs is
 * first asked for. A cheap scan of line starts says which file has which names. */
#include "frontend/emit_internal.h"

struct fe_library_file {
    const char *name;
    const unsigned char *data;
    unsigned long length;
};
extern const struct fe_library_file fe_library_files[];
extern const unsigned long fe_library_file_count;

typedef struct library_file {
    ts_str name;    /* "functional" */
    const char *path; /* namespace */
    ts_str text;
    fe_scope *scope;
    bool is_parsed;
} library_file;

struct fe_library {
    library_file *files;
    size_t count;
    fe_map names; /* "torch.nn.Linear" -> library_file* */
    fe_map operators; /* "std" -> name_list* of functions std, std__dim; functionals: by whole name */
};

typedef struct name_list {
    ts_str *items;
    size_t count, capacity;
} name_list;

static const char *namespace_of(const char *name) {
    static const struct { const char *start, *path; } table[] = {
        {"nn", "torch.nn"}, {"functional", "torch.nn.functional"},
        {"losses", "torch.nn.functional"}, {"init", "torch.nn.init"}, {"optim", "torch.optim"},
        {"lr_scheduler", "torch.optim.lr_scheduler"}, {"signal_windows", "torch.signal.windows"},
        {"utils", "torch.nn.utils"}, {"rnn_utils", "torch.nn.utils.rnn"},
        {"parametrizations", "torch.nn.utils.parametrizations"},
        {"derivatives", "derivatives"}, {"python_builtins", "python.builtins"},
        {"python_iterators", "python.iterators"}, {"python_itertools", "python.itertools"},
        {"python_functools", "python.functools"}, {"python_collections", "python.collections"},
        {"python_operator", "python.operator"}, {"python_heapq", "python.heapq"}, {"python_bisect", "python.bisect"},
        {"python_contextlib", "python.contextlib"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strncmp(name, table[i].start, strlen(table[i].start)) == 0)
            return table[i].path;
    return "torch";
}

static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void index_name(fe_context *fe, library_file *file, ts_str name) {
    struct fe_library *library = fe->library;
    ts_str whole = ts_arena_format(fe->arena, "%s.%.*s", file->path, (int)name.length, name.data);
    if (!fe_map_get(&library->names, whole))
        fe_map_set(fe->arena, &library->names, whole, file);
    bool is_operator = strcmp(file->path, "torch") == 0;
    if (!is_operator && strcmp(file->path, "torch.nn.functional") != 0)
        return;
    ts_str base = name;
    for (size_t i = 1; i + 1 < name.length; i++)
        if (name.data[i] == '_' && name.data[i + 1] == '_' && i + 2 < name.length &&
            name.data[i - 1] != '_') {
            base.length = i;
            break;
        }
    if (!is_operator)
        base = ts_arena_format(fe->arena, "%s.%.*s", file->path, (int)base.length, base.data);
    name_list *list = fe_map_get(&library->operators, base);
    if (!list) {
        list = TS_NEW(fe->arena, name_list);
        fe_map_set(fe->arena, &library->operators, base, list);
    }
    TS_APPEND(fe->arena, list->items, list->count, list->capacity, name);
}

/* Names at line starts: def NAME, class NAME, NAME = . */
static void index_file(fe_context *fe, library_file *file) {
    const char *at = file->text.data, *end = at + file->text.length;
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end)
            line_end = end;
        const char *p = at;
        bool is_definition = false;
        if (line_end - at > 4 && memcmp(at, "def ", 4) == 0) {
            p += 4;
            is_definition = true;
        } else if (line_end - at > 6 && memcmp(at, "class ", 6) == 0) {
            p += 6;
            is_definition = true;
        }
        const char *start = p;
        while (p < line_end && is_name_char(*p))
            p++;
        bool is_assignment = line_end - p > 3 && memcmp(p, " = ", 3) == 0;
        if (p > start && (is_definition || is_assignment))
            index_name(fe, file, (ts_str){start, (size_t)(p - start)});
        at = line_end + 1;
    }
}

static struct fe_library *library_of(fe_context *fe) {
    if (fe->library)
        return fe->library;
    struct fe_library *library = TS_NEW(fe->arena, struct fe_library);
    fe->library = library;
    library->files = TS_NEW_ARRAY(fe->arena, library_file, fe_library_file_count + 1);
    for (unsigned long i = 0; i < fe_library_file_count; i++) {
        library_file *file = &library->files[library->count++];
        file->name = ts_str_of(fe_library_files[i].name);
        file->path = namespace_of(fe_library_files[i].name);
        file->text = (ts_str){(const char *)fe_library_files[i].data, fe_library_files[i].length};
        index_file(fe, file);
    }
    return library;
}

static void run_import(fe_context *fe, fe_scope *scope, const ast_node *node) {
    for (size_t i = 0; i < node->list.count; i++) {
        const ast_node *alias = node->list.items[i];
        ts_str as = alias->other.length ? alias->other : alias->text;
        if (node->kind == AST_IMPORT) {
            ts_str path = alias->text;
            if (!alias->other.length) { /* import torch.nn binds torch */
                size_t n = 0;
                while (n < path.length && path.data[n] != '.')
                    n++;
                as.length = path.length = n;
            }
            fe_scope_set(fe->arena, scope, as, (fe_binding){.kind = FE_NAMESPACE, .path = path});
            continue;
        }
        fe_binding b = fe_namespace_get(fe, node->text, alias->text);
        if (b.kind != FE_UNBOUND)
            fe_scope_set(fe->arena, scope, as, b);
    }
}

static void run_library_module(fe_context *fe, library_file *file, const ast_node *module) {
    fe_scope *scope = file->scope;
    for (size_t i = 0; i < module->body.count; i++) {
        const ast_node *node = module->body.items[i];
        ts_str name = ts_arena_format(fe->arena, "%s.%.*s", file->path, (int)node->text.length,
                                      node->text.data);
        rt_value value;
        switch (node->kind) {
        case AST_IMPORT:
        case AST_IMPORT_FROM:
            run_import(fe, scope, node);
            break;
        case AST_FUNCTION:
            fe_scope_set(fe->arena, scope, node->text,
                         (fe_binding){.kind = FE_FUNCTION, .place = node,
                                      .function = fe_function_declare(fe, scope, node, name, NULL)});
            break;
        case AST_CLASS:
            fe_scope_set(fe->arena, scope, node->text,
                         (fe_binding){.kind = FE_CLASS, .place = node,
                                      .class_ = fe_class_declare(fe, scope, node, name)});
            break;
        case AST_ASSIGN:
            if (node->list.items[0]->kind != AST_NAME)
                break;
            {
                fe_binding alias = fe_resolve_dotted(fe, scope, node->right);
                if (alias.kind == FE_FUNCTION || alias.kind == FE_CLASS || alias.kind == FE_NAME) {
                    fe_scope_set(fe->arena, scope, node->list.items[0]->text, alias);
                } else if (fe_evaluate_expression(fe, scope, node->right, &value)) {
                    ir_module_retain(fe->module, value);
                    rt_release(value);
                    fe_scope_set(fe->arena, scope, node->list.items[0]->text,
                                 (fe_binding){.kind = FE_VALUE, .value = value, .place = node});
                }
            }
            break;
        default:
            break;
        }
    }
}

static void parse_file(fe_context *fe, library_file *file) {
    file->is_parsed = true;
    ts_str name = ts_arena_format(fe->arena, "library/%.*s.py", (int)file->name.length,
                                  file->name.data);
    fe_source *source;
    ts_status status = fe_source_make(fe->arena, name, file->text, &source);
    file->scope = fe_scope_make(fe->arena, NULL, NULL, ts_str_of(file->path));
    if (status) {
        fe_report_place(fe->diagnostics, FE_ERROR, TS_ERR_INTERNAL, (ts_place){.file = name},
                        (ts_str){0}, "%s", ts_status_message(status));
        ts_status_release(status);
        return;
    }
    source->is_library = true;
    file->scope->source = source;
    ast_node *module = fe_parse(fe->arena, source, fe->diagnostics);
    if (module)
        run_library_module(fe, file, module);
}

fe_binding fe_library_find(fe_context *fe, ts_str path, ts_str name) {
    struct fe_library *library = library_of(fe);
    ts_str whole = ts_arena_format(fe->arena, "%.*s.%.*s", (int)path.length, path.data,
                                   (int)name.length, name.data);
    library_file *file = fe_map_get(&library->names, whole);
    if (!file)
        return (fe_binding){.kind = FE_UNBOUND};
    if (!file->is_parsed)
        parse_file(fe, file);
    fe_binding *found = fe_map_get(&file->scope->names, name);
    return found ? *found : (fe_binding){.kind = FE_UNBOUND};
}

size_t fe_library_overloads(fe_context *fe, ts_str name, fe_function **out, size_t max) {
    struct fe_library *library = library_of(fe);
    name_list *list = fe_map_get(&library->operators, name);
    bool is_functional = ts_str_starts_with(name, "torch.nn.functional.");
    if (!list)
        return 0;
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (!out) {
            count++;
            continue;
        }
        fe_binding b = fe_library_find(fe, is_functional ? TS_STR("torch.nn.functional") : TS_STR("torch"),
                                       list->items[i]);
        if (b.kind == FE_FUNCTION && count < max)
            out[count++] = b.function;
    }
    return count;
}

ts_status fe_library_function(fe_context *fe, ts_str name, ir_function **out) {
    *out = NULL;
    char text[256];
    size_t n = 0;
    for (size_t i = 0; i < name.length && n + 2 < sizeof text; i++) {
        if (name.data[i] == '.') {
            text[n++] = '_';
            text[n++] = '_';
        } else {
            text[n++] = name.data[i];
        }
    }
    fe_binding b = fe_library_find(fe, TS_STR("torch"), (ts_str){text, n});
    if (b.kind == FE_UNBOUND)
        b = fe_library_find(fe, TS_STR("derivatives"), (ts_str){text, n});
    if (b.kind != FE_FUNCTION)
        return NULL;
    *out = fe_function_ir(fe, b.function);
    return *out ? NULL : fe_diagnostics_status(fe->diagnostics);
}

void fe_library_list(bool is_markdown, ts_buffer *out) {
    for (unsigned long i = 0; i < fe_library_file_count; i++) {
        if (strcmp(namespace_of(fe_library_files[i].name), "torch") != 0)
            continue;
        const char *text = (const char *)fe_library_files[i].data;
        for (unsigned long at = 0; at + 4 < fe_library_files[i].length; at++) {
            if ((at && text[at - 1] != '\n') || strncmp(text + at, "def ", 4) != 0 ||
                text[at + 4] == '_')
                continue;
            size_t length = 0;
            while (is_name_char(text[at + 4 + length]))
                length++;
            ts_buffer_format(out, is_markdown ? "- `%.*s`\n" : "%.*s\n", (int)length, text + at + 4);
        }
    }
}
