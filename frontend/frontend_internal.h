/* frontend/frontend_internal.h - what the parts of the front end hand to each other.
 *
 * Three producers (the script evaluator, the archive reader, the library) fill the same registries:
 * scopes with names, classes and functions as syntax trees. One emitter turns functions and methods
 * into IR on demand. All memory is the compilation's arena; boxed values kept here are retained by
 * the module (ir_module_retain), so nobody counts references of a binding. */
#ifndef FRONTEND_FRONTEND_INTERNAL_H
#define FRONTEND_FRONTEND_INTERNAL_H

#include "frontend/ast.h"
#include "frontend/frontend.h"

typedef struct fe_scope fe_scope;
typedef struct fe_class fe_class;
typedef struct fe_function fe_function;

typedef ts_map fe_map;
static inline void *fe_map_get(const fe_map *map, ts_str key) { return ts_map_get(map, key); }
static inline void fe_map_set(ts_arena *arena, fe_map *map, ts_str key, void *value) {
    ts_map_set(arena, map, key, value);
}

/* ---- what a name means ---- */
typedef enum fe_binding_kind {
    FE_UNBOUND,
    FE_VALUE,     /* value: a number, list, tensor, object, enum member, dtype (int) ... */
    FE_FUNCTION,  /* function: of the user or of the library */
    FE_CLASS,     /* class_ */
    FE_NAMESPACE, /* path: "torch", "torch.nn.functional", "math", "typing", or any import */
    FE_NAME,      /* path of something in a namespace that is neither function nor class of ours:
                     "typing.List", "torch.jit.export", "torch.add", "math.sqrt", "builtins.len" */
    FE_METHOD     /* value: self; function (init_eval only) */
} fe_binding_kind;

typedef struct fe_binding {
    fe_binding_kind kind;
    rt_value value;
    fe_function *function;
    fe_class *class_;
    ts_str path;
    const ast_node *place; /* "declared here", or NULL */
} fe_binding;

/* The module level of one file (or a function that holds nested definitions). init_eval assigns
 * names here as it runs; the emitter reads them, so a method sees the values after the module level
 * ran, as in Python. */
struct fe_scope {
    fe_scope *parent;        /* the enclosing scope, or NULL: builtins come after */
    const fe_source *source; /* may be NULL */
    ts_str path;             /* "__main__", "torch.nn.functional": the namespace it is */
    fe_map names;            /* -> fe_binding* */
};
fe_scope *fe_scope_make(ts_arena *arena, fe_scope *parent, const fe_source *source, ts_str path);
void fe_scope_set(ts_arena *arena, fe_scope *scope, ts_str name, fe_binding binding);
/* In the scope, its parents, then Python's builtins ("builtins.len" as FE_NAME, exception classes
 * as FE_CLASS). Within an archive's scope also the dialect's own names ("annotate", "uninitialized",
 * "ops", "CONSTANTS"). UNBOUND where there is none. */
struct fe_context;
fe_binding fe_scope_lookup(struct fe_context *fe, const fe_scope *scope, ts_str name);
/* `import path`, `path.name`, `from path import name`: library functions and classes, dtypes and
 * math constants as values, known namespaces, the rest FE_NAME (path.name). UNBOUND where a known
 * namespace certainly has no such name or the import is unknown (numpy, json). */
fe_binding fe_namespace_get(struct fe_context *fe, ts_str path, ts_str name);
bool fe_namespace_exists(struct fe_context *fe, ts_str path);
/* A dotted expression (torch.nn.Linear, List) as a binding; UNBOUND when it is none. */
fe_binding fe_resolve_dotted(struct fe_context *fe, const fe_scope *scope, const ast_node *node);
/* A binding inside an rt_value (RT_TAG_FUNCTION capsule) and back; FE_VALUE gives its value. */
ts_status fe_binding_to_value(struct fe_context *fe, fe_binding binding, rt_value *out)
    TS_WARN_UNUSED;
fe_binding fe_binding_of_value(rt_value v);

/* ---- functions ---- */
struct fe_function {
    ts_str name;           /* qualified: "__torch__.f", "Net.forward", "torch.nn.functional.pad" */
    ts_str bare_name;
    size_t number;         /* among those declared: lambdas and what a function returns share their names */
    const ast_node *node;  /* FUNCTION, or LAMBDA */
    fe_scope *scope;       /* where its free names are looked up */
    fe_class *owner;       /* the class it is a method of, or NULL */
    bool is_static, is_class_method, is_property, is_setter;
    bool is_exported;      /* @torch.jit.export */
    bool is_ignored;       /* @torch.jit.ignore, unused: reaching it is an error when it runs */
    bool is_abstract;      /* @abstractmethod */
    bool is_overload_stub; /* @torch.jit._overload, abstract: never emitted */
    bool is_library;
    /* A variant for calls with arguments of other types than Tensor where nothing is annotated: types
     * by parameter (NULL: as declared), and the variants made so far by those types. */
    const ir_type *const *given_types;
    const signed char *known_flags; /* by parameter, of a variant for bools that are known: 0, 1, or -1; or NULL */
    fe_map variants;
    ir_function *ir;       /* free and static functions, methods of non-modules: emitted once */
    bool is_emitting;
    struct em_signature *signature; /* the emitter's own */
    bool is_asked;                  /* called while its own result is not known */
    const ir_type *learned_return;  /* of one that calls itself without an annotation */
    bool gives_list, gives_tuple, gives_size; /* what its returns gave, where the type is a list */
};

/* ---- classes ---- */
typedef struct fe_class_variable { /* a name assigned or annotated in the class body, in order */
    ts_str name;
    const ast_node *node;       /* the statement */
    const ast_node *annotation; /* or NULL */
    const ast_node *initial;    /* expression, or NULL */
    bool is_evaluated;          /* value holds the initial's value (init_eval, or fe_class_variable_value) */
    rt_value value;
} fe_class_variable;

/* A class statement. Modules of scripts: each distinct object has an ir_class of its own (its
 * attribute types and constants come from the object), whose `frontend` points here; its methods are
 * emitted for each ir_class. All other classes, and all classes of archives, have one: `ir`. */
struct fe_class {
    ts_str name, bare_name; /* "__torch__.Net", "Net"; library: "torch.nn.Linear", "Linear" */
    rt_class_kind kind;
    const ast_node *node;   /* NULL for builtin ones: torch.nn.Module, ValueError ... */
    fe_scope *scope;        /* names of its bodies */
    fe_class **ancestors;   /* Python's method resolution order without the class itself */
    size_t ancestor_count;
    fe_class_variable *variables;
    size_t variable_count, variable_capacity;
    fe_map methods;          /* name -> fe_function*; property "x": its getter; setter "x.setter" */
    bool is_dataclass, is_frozen;
    bool is_open_tuple;      /* namedtuple(): each tuple has the types of its own items */
    bool is_library, is_archive;
    bool is_number_enum;     /* IntEnum, StrEnum, IntFlag: its members are their values */
    bool is_mixed_enum;      /* (str, Enum), (int, Enum): such, but they print as members */
    bool is_flag;            /* IntFlag: auto() gives powers of two */
    bool is_made;            /* for the types of one call (emit_callable.c) */
    const void *callable;    /* em*: the function that its objects stand for, or NULL */
    bool has_objects;        /* made at module level or in __init__: the order of its fields stays */
    bool has_subclasses;     /* calls through it go by the object's own class */
    ir_class *ir;
    int ir_state;            /* fe_class_ir: 0 not begun, 1 under way, 2 done */
};

/* From a class statement whose base names are bound in `scope`: collects methods and variables,
 * finds kind, ancestors, dataclass. Evaluates nothing. Reports what is wrong; never fails. */
fe_class *fe_class_declare(struct fe_context *fe, fe_scope *scope, const ast_node *node,
                           ts_str qualified_name);
fe_function *fe_function_declare(struct fe_context *fe, fe_scope *scope, const ast_node *node,
                                 ts_str qualified_name, fe_class *owner);
fe_function *fe_class_method(const fe_class *class_, ts_str name); /* also inherited; NULL */
bool fe_class_is_optimizer(const fe_class *class_); /* of torch.optim: a module here, for others none */
fe_class_variable *fe_class_find_variable(const fe_class *class_, ts_str name); /* also inherited */
bool fe_class_is_a(const fe_class *class_, const fe_class *ancestor);
fe_class *fe_builtin_class(struct fe_context *fe, ts_str path); /* "torch.nn.Module",
                                               "builtins.ValueError"; NULL where there is none */
/* The ir_class of a plain class, NamedTuple, Enum, exception, interface or of any archive class;
 * finds fields (annotations; for a plain script class by emitting __init__), enum members. For a
 * script's module class NULL: take it from the object. */
ir_class *fe_class_ir(struct fe_context *fe, fe_class *class_);
/* A fresh ir_class for one script module object; the caller sets fields (fe_ir_class_set_fields)
 * and puts it into the object's class_. Objects of one class with equal field types and constants may
 * share one. */
ir_class *fe_module_ir_class(struct fe_context *fe, fe_class *class_);
void fe_ir_class_set_fields(struct fe_context *fe, ir_class *c, const ir_field *fields,
                            size_t count); /* copies; keeps base.fields in step */
fe_class *fe_class_of(const ir_class *c); /* c->frontend */

/* ---- annotations (annotation.c) ---- */
/* The type an annotation means in a scope; strings are parsed. NULL after reporting an error. */
const ir_type *fe_annotation_type(struct fe_context *fe, fe_scope *scope, const ast_node *node);
/* `Final[int]`: true, *out_inner is the int node or NULL for bare Final. */
bool fe_annotation_is_final(struct fe_context *fe, fe_scope *scope, const ast_node *node,
                            const ast_node **out_inner);

/* ---- operators over values: init_eval's way to everything that is no syntax ---- */
typedef struct fe_value_argument {
    ts_str name; /* "" for positional */
    rt_value value; /* borrowed */
} fe_value_argument;
/* torch.NAME(...) / tensor.NAME(...) / str and list methods: overloads of the core table and the
 * library, resolved by the values' types. *out is owned. TypeError when none fits. */
ts_status fe_call_operator(struct fe_context *fe, ts_str name, const fe_value_argument *args,
                           size_t count, rt_value *out) TS_WARN_UNUSED;
bool fe_operator_exists(struct fe_context *fe, ts_str name);
/* Runs a function of the user or the library with values (emits it, then ir_evaluate). */
ts_status fe_call_function(struct fe_context *fe, fe_function *function, const rt_value *args,
                           size_t count, rt_value *out) TS_WARN_UNUSED;

/* ---- the context ---- */
struct fe_context {
    ts_arena *arena;
    ir_module *module;
    const fe_options *options;
    fe_diagnostics *diagnostics;
    size_t function_count;      /* declared so far */
    uintptr_t stack_limit;      /* of the thread that compiles: calls nest as deep as their bodies */
    rt_context runtime;         /* for kernels run at compile time; generator seeded by --seed */
    fe_map namespaces;          /* path -> fe_scope* of a loaded library file set or user file */
    fe_map builtin_classes;     /* path -> fe_class* */
    fe_map archive_names;       /* qualified name -> fe_binding* already declared */
    struct fe_archive *archive; /* the archive reader's own, or NULL */
    struct fe_script *script;   /* the script evaluator's own, or NULL */
    struct fe_library *library; /* library.c's own */
    struct fe_overload_table *overloads; /* overload.c's own */
    fe_map builtin_functions;   /* made for a class: key -> fe_binding* */
    fe_map empty_types;         /* [] and {} without annotation, by node -> ir_type* (emit_empty.c) */
    fe_map dynamic_methods;     /* names of methods called by the object's own class */
    fe_map value_types;         /* empty lists and dicts of the module level -> ir_type* (emit_learn.c) */
    fe_map wanted_parameters;   /* types of what is put into a parameter -> ir_type* */
    fe_map globals;             /* names that `global` writes -> rt_value* of the object that holds them */
    fe_map emitted;             /* fe_function* with IR */
    fe_map made_classes;        /* of closures, generators, open library classes: by node and types (emit_callable.c) */
    fe_map spread_functions;    /* those with *args for what one call gives (emit_spread.c) */
    fe_map closure_nodes;       /* their syntax trees */
    fe_map closure_captures;    /* what they capture: fe_map* */
    fe_map object_closures;     /* nested functions that call themselves: objects, by node */
    fe_map cells;               /* function -> fe_map* of variables that a nested function shares with it */
    bool relearn;               /* a type was found out: everything is emitted anew, errors do not count */
    int emit_depth;             /* functions under way */
    const ir_class *missing_class; /* a field that was read before anything set it (emit_learn.c) */
    ts_str missing_name;
    const ast_node *missing_node;
    fe_function *asked;         /* the last of them */
    bool guessing;              /* a function calls itself and its result is not known yet: as relearn, later */
    fe_scope *scope;            /* the script's module level, or the archive's */
    fe_class *module_class;     /* torch.nn.Module */
    void (*cleanup[8])(struct fe_context *); /* run by fe_context_deinit, last first */
    size_t cleanup_count;
};

/* ---- the script evaluator's side (script.c, init_eval*.c) ----
 * Parses, runs the module level into fe->scope, picks and builds the root (--model, `model`, the only
 * module class), applies --weights, --eval, --train, and sets fe->module->root to an rt_object whose
 * class_->info is its ir_class with all fields typed (root stays NONE for a script of functions).
 * Nested objects alike. */
ts_status fe_script_load(struct fe_context *fe, const fe_source *source) TS_WARN_UNUSED;
/* The value of a global read by the emitter is fe->scope's binding; a class variable's initial
 * expression or a parameter's default is evaluated with this (constant expressions, names of the
 * scope, enum members). *out owned. Reports; false on error. Used for archives and the library too. */
bool fe_evaluate_expression(struct fe_context *fe, fe_scope *scope, const ast_node *node,
                            rt_value *out);

/* ---- the archive reader's side (archive/) ----
 * Maps and reads the archive, makes fe->module->root an rt_object whose class_->info is the ir_class
 * from fe_archive_class; state tensors, constants tuple. */
ts_status fe_archive_load(struct fe_context *fe, ts_str path) TS_WARN_UNUSED;
/* The CLASS or FUNCTION statement of a qualified name ("__torch__.a.___torch_mangle_0.Linear"), from
 * code/__torch__/..., parsed at first use; NULL (no report) where there is none. A function's text
 * may lie in the file of the class it once belonged to. */
const ast_node *fe_archive_find_node(struct fe_context *fe, ts_str qualified_name);
rt_value fe_archive_constant(struct fe_context *fe, size_t index, bool *out_found); /* CONSTANTS.cN */
/* The operator that `torch.NAME` of the archive's code means: itself, or the library function with
 * its meaning of then. */
ts_str fe_archive_operator(struct fe_context *fe, ts_str name, bool has_tensor);
/* Why an archive holds an operator that nobody else has; NULL where nothing is known. */
const char *fe_archive_reason(ts_str name);
/* The type that an exported program gives an input of an entry; empty where it says nothing. */
ts_str fe_archive_input(struct fe_context *fe, ts_str entry, ts_str name);
int fe_archive_version(struct fe_context *fe); /* operator-set version: which upgraders apply */
/* The emitter's side for archives (emit_class.c): class or function of a qualified name, declared at
 * first use. The pickle machine calls fe_archive_class for GLOBAL and takes ->ir from fe_class_ir:
 * fields in order of declaration, types set; Final ones are constants and no fields of objects. */
fe_binding fe_archive_lookup(struct fe_context *fe, ts_str qualified_name);
fe_class *fe_archive_class(struct fe_context *fe, ts_str qualified_name); /* NULL: unknown */

/* ---- the library (library.c) ---- */
/* Files of frontend/library belong to a namespace by the start of their name: nn*.py torch.nn,
 * functional*.py and losses*.py torch.nn.functional, init*.py torch.nn.init, optim*.py torch.optim,
 * all others "torch" (operators: def NAME or NAME__OVERLOAD). */
fe_binding fe_library_find(struct fe_context *fe, ts_str path, ts_str name);
/* Operator functions NAME and NAME__*; returns how many (out may be NULL to count). */
size_t fe_library_overloads(struct fe_context *fe, ts_str name, fe_function **out, size_t max);

/* ---- the emitter (emit_*.c) ---- */
/* IR of a free or static function; NULL after a reported error. Recursion safe: the ir_function
 * exists, with its signature, while the body is being made. */
ir_function *fe_function_ir(struct fe_context *fe, fe_function *function);
/* IR of a method for objects of one ir_class (parameter 0 is self). NULL: no such method, or error. */
ir_function *fe_method_ir(struct fe_context *fe, ir_class *c, ts_str name);

#endif
