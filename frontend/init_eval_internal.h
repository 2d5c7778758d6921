/* frontend/init_eval_internal.h - shared by the parts of the script evaluator (init_eval*.c).
 *
 * Functions named ev_* return owned values in their last argument, set to None on an error.
 * Python's exceptions are TS_ERR_RAISED; every other error ends the load. */
#ifndef FRONTEND_INIT_EVAL_INTERNAL_H
#define FRONTEND_INIT_EVAL_INTERNAL_H

#include "frontend/init_eval.h"

enum {
    EV_MAX_DEPTH = 3000,          /* nested expressions, statements and calls: RecursionError */
    EV_MAX_ITEMS = 16 * 1024 * 1024 /* of one list, string or range that is made whole */
};
#define EV_MAX_STEPS INT64_C(30000000) /* statements and expressions of one script: a second */
#define EV_MAX_ITEMS INT64_C(5000000)  /* in attributes, shared ones each time they are held */

/* Flags of counted values that only the evaluator knows. */
enum {
    EV_FLAG_PARAMETER = 1u << 30, /* tensor: nn.Parameter */
    EV_FLAG_BUFFER = 1u << 29,    /* tensor: nn.Buffer */
    EV_FLAG_SET = 1u << 28,       /* dict: it is a set; values are None */
    EV_FLAG_SIZE = 1u << 27       /* tuple: a torch.Size */
};

typedef enum ev_field_kind { EV_PLAIN, EV_PARAMETER, EV_BUFFER, EV_MODULE } ev_field_kind;

typedef struct ev_field {
    ev_field_kind kind;
    bool is_persistent;         /* buffers */
    const ast_node *annotation; /* self.x: T = ..., or NULL */
    fe_scope *scope;            /* of the annotation */
} ev_field;

typedef struct ev_hook {
    bool is_pre;
    rt_value function; /* owned by the module (ir_module_retain) */
} ev_hook;

/* The class of one instance while the script runs: its fields are those set so far. */
typedef struct ev_instance {
    ir_class ir; /* first: base.info points here */
    ts_str *names;
    ev_field *fields;
    size_t count, capacity; /* ir.base.field_count == count */
    ev_hook *hooks;
    size_t hook_count, hook_capacity;
    fe_class *class_;
    bool is_finished;
} ev_instance;

typedef struct ev_function_info { /* of one FUNCTION or LAMBDA node */
    bool is_captured; /* holds a nested function: its locals live in an fe_scope */
    bool is_generator;
    ts_str *globals, *nonlocals;
    size_t global_count, global_capacity, nonlocal_count, nonlocal_capacity;
} ev_function_info;

typedef struct ev_frame {
    struct ev_frame *outer; /* of a comprehension: the frame that it stands in */
    fe_scope *scope;        /* locals live here (module level, captured functions); else NULL */
    fe_scope *globals;      /* where free names are looked up */
    fe_scope *module;       /* the file's module level: `global` */
    fe_function *function;
    const ev_function_info *info;
    rt_value self;          /* borrowed: the first argument, for super() */
    ts_str *names;
    rt_value *values;
    size_t count, capacity;
    rt_value result; /* of return */
    rt_value yields; /* list that yield appends to, or None */
} ev_frame;

typedef enum ev_flow { EV_NEXT, EV_BREAK, EV_CONTINUE, EV_RETURN } ev_flow;

typedef struct ev_arguments { /* positional ones first; values owned */
    fe_value_argument *items;
    size_t count, capacity;
} ev_arguments;

struct fe_script { /* fe->script */
    struct fe_context *fe;
    ts_arena *arena;
    int64_t steps_left, items_left;
    int depth;
    rt_value raised;       /* the exception object of the error under way, or None; owned */
    rt_value handling;     /* of the except clause under way: bare `raise`; owned */
    fe_map infos;          /* node -> ev_function_info* */
    fe_map defaults;       /* fe_function* -> rt_value[]: UNINITIALIZED where not computed */
    fe_map static_fields;  /* ir_class* -> fe_map* of rt_value* */
    fe_map hooks;          /* ir_class* -> ev_instance* */
    fe_map walking;        /* rt_object* under way: a module that holds itself */
    fe_map shared_classes; /* class and field types -> ir_class* */
    rt_value enum_last;    /* enum.auto() */
    int64_t class_counter;
    const ast_node *tree; /* the script's */
    fe_map assigned;      /* attributes that methods assign, by name; and classes looked at */
    const fe_map *names; /* all identifiers of the script, for import * */
    fe_map rows; /* operator name -> its rows in the core table */
    fe_scope **scopes; /* whose values are ours */
    size_t scope_count, scope_capacity;
};
typedef struct fe_script evaluator;

void ev_scope_track(evaluator *ev, fe_scope *scope);
fe_scope *ev_scope_make(evaluator *ev, fe_scope *parent, const fe_source *source);
evaluator *ev_of(struct fe_context *fe); /* made at first use */

/* ---- init_eval.c: statements, names ---- */
ts_status ev_block(evaluator *ev, ev_frame *frame, const ast_list *body, ev_flow *out);
ts_status ev_load_name(evaluator *ev, ev_frame *frame, const ast_node *node, fe_binding *out,
                       rt_value *hold);
/* Takes a reference of its own. */
ts_status ev_store_name(evaluator *ev, ev_frame *frame, ts_str name, rt_value value);
ts_status ev_assign(evaluator *ev, ev_frame *frame, const ast_node *target, rt_value value);
void ev_scope_assign(evaluator *ev, fe_scope *scope, ts_str name, rt_value value);
void ev_frame_deinit(ev_frame *frame);
ts_status ev_step(evaluator *ev, const ast_node *node); /* counts a step; errors at the limit */
ts_str ev_pointer_key(evaluator *ev, const void *pointer, char buffer[sizeof(void *)]);
const ev_function_info *ev_info(evaluator *ev, const ast_node *node);
ts_status ev_function_value(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out);
ts_status ev_decorate(evaluator *ev, ev_frame *frame, const ast_list *decorators, rt_value *value);

/* ---- init_eval_try.c, init_eval_import.c ---- */
ts_status ev_raise_statement(evaluator *ev, ev_frame *frame, const ast_node *node);
ts_status ev_try_statement(evaluator *ev, ev_frame *frame, const ast_node *node, ev_flow *out);
ts_status ev_with_statement(evaluator *ev, ev_frame *frame, const ast_node *node, size_t item,
                            ev_flow *out);
ts_status ev_import(evaluator *ev, ev_frame *frame, const ast_node *node);
ts_status ev_import_from(evaluator *ev, ev_frame *frame, const ast_node *node);

/* ---- init_eval_expression.c ---- */
ts_status ev_expression(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out);
/* A value that is called or has an attribute taken: *hold is to be released; *out borrows it. */
ts_status ev_binding(evaluator *ev, ev_frame *frame, const ast_node *node, fe_binding *out,
                     rt_value *hold);
ts_status ev_condition(evaluator *ev, ev_frame *frame, const ast_node *node, bool *out);

/* ---- init_eval_operator.c ---- */
ts_status ev_binary(evaluator *ev, ast_operator op, rt_value a, rt_value b, rt_value *out);
ts_status ev_augmented(evaluator *ev, ast_operator op, rt_value a, rt_value b, rt_value *out);
ts_status ev_unary(evaluator *ev, ast_operator op, rt_value a, rt_value *out);
ts_status ev_compare(evaluator *ev, ast_operator op, rt_value a, rt_value b, rt_value *out);
ts_status ev_equal(evaluator *ev, rt_value a, rt_value b, bool *out);
ts_status ev_less(evaluator *ev, rt_value a, rt_value b, bool *out);
ts_status ev_truth(evaluator *ev, rt_value v, bool *out);

/* ---- init_eval_item.c: indexing, iteration ---- */
ts_status ev_get_item(evaluator *ev, rt_value container, rt_value index, rt_value *out);
ts_status ev_set_item(evaluator *ev, rt_value container, rt_value index, rt_value value);
ts_status ev_delete_item(evaluator *ev, rt_value container, rt_value index);
ts_status ev_contains(evaluator *ev, rt_value container, rt_value item, bool *out);
ts_status ev_length(evaluator *ev, rt_value v, int64_t *out);
/* Everything that can be iterated as a new list, or a list itself. */
ts_status ev_to_list(evaluator *ev, rt_value v, rt_value *out);
ts_status ev_slice_make(rt_value start, rt_value stop, rt_value step, rt_value *out);
bool ev_slice_parts(rt_value v, rt_value out[3]); /* borrowed start, stop, step */
ts_status ev_range_make(int64_t start, int64_t stop, int64_t step, rt_value *out);
typedef struct ev_range {
    int64_t start, stop, step, count;
} ev_range;
const ev_range *ev_as_range(rt_value v); /* NULL: it is none */
typedef struct ev_iterator {
    rt_value list;
    size_t position;
} ev_iterator;
ev_iterator *ev_as_iterator(rt_value v);
ts_status ev_iterator_make(rt_value list, rt_value *out); /* takes a reference */

/* ---- init_eval_attribute.c ---- */
ts_status ev_get_attribute(evaluator *ev, rt_value v, ts_str name, rt_value *out);
/* *out_found false instead of AttributeError. */
ts_status ev_find_attribute(evaluator *ev, rt_value v, ts_str name, bool *out_found,
                            rt_value *out);
ts_status ev_binding_attribute(evaluator *ev, fe_binding b, ts_str name, bool *out_found,
                               fe_binding *out, rt_value *hold);
ts_status ev_set_attribute(evaluator *ev, rt_value v, ts_str name, rt_value value);
ts_status ev_delete_attribute(evaluator *ev, rt_value v, ts_str name);
ts_str ev_type_name(rt_value v);

/* ---- init_eval_call.c ---- */
void ev_arguments_add(evaluator *ev, ev_arguments *a, ts_str name, rt_value take);
void ev_arguments_release(ev_arguments *a);
ts_status ev_call(evaluator *ev, fe_binding callee, ev_arguments *args, rt_value *out);
ts_status ev_call_value(evaluator *ev, rt_value callee, ev_arguments *args, rt_value *out);
/* With up to three positional arguments, borrowed. */
ts_status ev_call_with(evaluator *ev, rt_value callee, const rt_value *args, size_t count,
                       rt_value *out);
ts_status ev_call_function(evaluator *ev, fe_function *function, const rt_value *self,
                           ev_arguments *args, rt_value *out);
/* obj.name(args) without making a bound method. */
ts_status ev_call_method(evaluator *ev, rt_value self, ts_str name, ev_arguments *args,
                         rt_value *out);
ts_status ev_call_method0(evaluator *ev, rt_value self, ts_str name, rt_value *out);
/* Arguments of a built-in: takes those named in `names` ("a,b,c") into slots; absent ones stay
 * UNINITIALIZED. Slots borrow. TypeError on others or too many. */
ts_status ev_take(const ev_arguments *args, const char *function, const char *names,
                  rt_value *slots);
ts_status ev_bound_make(rt_value self, ts_str name, rt_value *out);
ts_status ev_partial_make(rt_value callee, const ev_arguments *args, rt_value *out);
typedef struct ev_super {
    rt_value self;      /* owned; or None in a class method */
    fe_class *class_;   /* of self */
    fe_class *after;    /* methods are looked up behind this one */
} ev_super;
const ev_super *ev_as_super(rt_value v);
ts_status ev_super_make(rt_value self, fe_class *after, rt_value *out);
fe_function *ev_find_method_after(fe_class *class_, fe_class *after, ts_str name,
                                  fe_class **out_class);
ts_status ev_exception_make(evaluator *ev, fe_class *class_, rt_value args_tuple, rt_value *out);
ts_status ev_raise_object(evaluator *ev, rt_value exception);

/* ---- init_eval_class.c: objects ---- */
ts_status ev_class_statement(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out);
ts_status ev_instance_make(evaluator *ev, fe_class *class_, rt_value *out);
ts_status ev_construct(evaluator *ev, fe_class *class_, ev_arguments *args, rt_value *out);
ev_instance *ev_instance_of(rt_value v); /* NULL: no object of the evaluator */
fe_class *ev_class_of(rt_value v);       /* of an object, named tuple or enum member; or NULL */
int64_t ev_field_find(const ev_instance *i, ts_str name);
ts_status ev_field_set(evaluator *ev, rt_value object, ts_str name, rt_value value,
                       ev_field_kind kind); /* takes a reference of its own; adds the field */
void ev_field_remove(rt_value object, int64_t index);
bool ev_is_data_field(const fe_class *c, ts_str name); /* of a dataclass */
bool ev_isinstance(evaluator *ev, rt_value v, fe_binding type);
fe_class *ev_builtin_class(evaluator *ev, const char *path);

/* ---- init_eval_builtin.c, init_eval_method.c, init_eval_format.c, init_eval_torch.c ---- */
ts_status ev_builtin(evaluator *ev, ts_str path, ev_arguments *args, rt_value *out);
ts_status ev_value_method(evaluator *ev, rt_value self, ts_str name, ev_arguments *args,
                          bool *out_found, rt_value *out);
bool ev_value_has_method(evaluator *ev, rt_value self, ts_str name);
ts_status ev_format_value(evaluator *ev, rt_value v, ts_str spec, ts_buffer *out);
ts_status ev_percent_format(evaluator *ev, ts_str format, rt_value args, rt_value *out);
ts_status ev_str_format(evaluator *ev, ts_str format, const ev_arguments *args, rt_value *out);
ts_status ev_to_text(evaluator *ev, rt_value v, bool is_repr, ts_buffer *out);
ts_status ev_math(evaluator *ev, ts_str name, ev_arguments *args, rt_value *out);
ts_status ev_torch(evaluator *ev, ts_str path, ev_arguments *args, rt_value *out);
ts_status ev_tensor_attribute(evaluator *ev, rt_value t, ts_str name, bool *out_found,
                              rt_value *out);
ts_status ev_tensor_set_attribute(evaluator *ev, rt_value t, ts_str name, rt_value value);
ts_status ev_tensor_get_item(evaluator *ev, rt_value t, rt_value index, rt_value *out);
ts_status ev_tensor_set_item(evaluator *ev, rt_value t, rt_value index, rt_value value);
/* An operator of the core table or the library by name, positional arguments (borrowed). */
ts_status ev_op(evaluator *ev, const char *name, const rt_value *args, size_t count,
                rt_value *out);
ts_status ev_dispatch(evaluator *ev, ts_str name, ev_arguments *args, rt_value *out);
/* One row by its full name; arguments as its schema has them, all of them. */
ts_status ev_row(evaluator *ev, const char *full_name, const rt_value *args, rt_value *out);
ts_status ev_parameter_make(evaluator *ev, rt_value tensor, bool requires_grad, uint32_t flag,
                            rt_value *out);
ts_status ev_deep_copy(evaluator *ev, rt_value v, bool is_deep, rt_value *out);

/* ---- init_eval_module.c: torch.nn.Module and its containers ---- */
bool ev_is_module(rt_value v);
ts_status ev_module_init(evaluator *ev, rt_value self);
ts_status ev_module_set_attribute(evaluator *ev, rt_value self, ts_str name, rt_value value);
ts_status ev_module_method(evaluator *ev, rt_value self, ts_str name, ev_arguments *args,
                           bool *out_found, rt_value *out);
bool ev_module_has_method(rt_value self, ts_str name);
typedef enum ev_container {
    EV_NO_CONTAINER, EV_SEQUENTIAL, EV_MODULE_LIST, EV_MODULE_DICT, EV_PARAMETER_LIST,
    EV_PARAMETER_DICT
} ev_container;
ev_container ev_container_kind(evaluator *ev, rt_value v);
ts_status ev_container_init(evaluator *ev, rt_value self, ev_container kind, ev_arguments *args);
ts_status ev_container_method(evaluator *ev, rt_value self, ev_container kind, ts_str name,
                              ev_arguments *args, bool *out_found, rt_value *out);
ts_status ev_container_items(evaluator *ev, rt_value self, rt_value *out); /* list of values */
ts_status ev_container_keys(evaluator *ev, rt_value self, rt_value *out);
ts_status ev_container_get(evaluator *ev, rt_value self, ev_container kind, rt_value index,
                           rt_value *out);
ts_status ev_container_set(evaluator *ev, rt_value self, ev_container kind, rt_value index,
                           rt_value value);
ts_status ev_module_train(evaluator *ev, rt_value module, bool mode);
ts_status ev_load_state(evaluator *ev, rt_value module, rt_value state, bool is_strict,
                        rt_value *out);

/* ---- init_eval_finish.c ---- */
/* Gives every object of the tree its typed class. */
ts_status ev_finish(evaluator *ev, rt_value *value);

/* ---- small helpers ---- */
static inline ts_str ev_text(rt_value v) { return rt_str_text(v.as.str); }
static inline bool ev_is_str(rt_value v) { return v.tag == RT_TAG_STR; }
static inline bool ev_is_int(rt_value v) { return v.tag == RT_TAG_INT || v.tag == RT_TAG_BOOL; }
static inline bool ev_is_number(rt_value v) { return ev_is_int(v) || v.tag == RT_TAG_FLOAT; }
static inline bool ev_is_set(rt_value v) {
    return v.tag == RT_TAG_DICT && (v.as.counted->flags & EV_FLAG_SET);
}
static inline bool ev_is_given(rt_value v) { return v.tag != RT_TAG_UNINITIALIZED; }
static inline double ev_double(rt_value v) {
    return v.tag == RT_TAG_FLOAT ? v.as.f : (double)v.as.i;
}
/* Items of a list or tuple. */
static inline rt_value *ev_items(rt_value v, size_t *count) {
    if (v.tag == RT_TAG_LIST) {
        *count = v.as.list->count;
        return v.as.list->items;
    }
    *count = v.as.tuple->count;
    return v.as.tuple->items;
}
static inline bool ev_is_sequence(rt_value v) {
    return v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE;
}
ts_status ev_str(evaluator *ev, ts_str text, rt_value *out);
ts_status ev_tuple(const rt_value *items, size_t count, rt_value *out); /* borrows */
/* Of a node of the user's; none for the library's, so that an error is told where it was called. */
ts_place ev_place(const ast_node *node);
ts_status ev_namedtuple(evaluator *ev, ev_arguments *args, rt_value *out) TS_WARN_UNUSED; /* init_eval_namedtuple.c */
/* An error of the evaluator's own at a node. */
ts_status ev_unsupported(const ast_node *node, const char *format, ...) TS_PRINTF(2, 3);

#endif
