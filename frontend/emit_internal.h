/* frontend/emit_internal.h - the emitter's own: syntax trees to structured SSA.
 *
 * An expression gives an `em`: an IR value, or something that exists at compile time only (a
 * function, class, namespace, bound method, range). Variables live in numbered slots; an
 * environment is the array of slots at a place in the program. Where control flow joins, the
 * environments of both sides are compared and what differs becomes results of the IF or LOOP.
 * return, break and continue are slots as well (flags), so they join like variables do. */
#ifndef FRONTEND_EMIT_INTERNAL_H
#define FRONTEND_EMIT_INTERNAL_H

#include "frontend/frontend_internal.h"
#include "frontend/init_eval.h"


typedef enum em_kind {
    EM_ERROR,     /* reported already */
    EM_VALUE,     /* value */
    EM_BINDING,   /* binding */
    EM_METHOD,    /* value: receiver; name; function and class_ for a user's class */
    EM_TUPLE,     /* items: a tuple of ems that is no IR value yet */
    EM_RANGE,     /* items: start, stop, step */
    EM_ENUMERATE, /* items[0]; value: start or NULL */
    EM_ZIP,       /* items */
    EM_REVERSED,  /* items[0] */
    EM_ITEMS,     /* dict.items() keys() values(): value: the dict; name */
    EM_CHILDREN,  /* children() named_children() parameters() ... of the module `value`; name */
    EM_GENERATOR, /* node: a generator expression */
    EM_CLOSURE,   /* node: LAMBDA or nested FUNCTION */
    EM_SUPER,     /* class_: of self; function: the method that calls super() */
    EM_EXCEPTION, /* class binding + message value; keys[0]: its class's name, where caught */
    EM_DTYPE_INFO, /* torch.finfo(value), torch.iinfo(value) */
    EM_CHOICE     /* one of items, told at run time: value: an index, or a key of keys */
} em_kind;

typedef struct em {
    em_kind kind;
    ir_value *value;
    const fe_binding *binding;
    ts_str name;
    fe_function *function;
    ir_class *class_;
    struct em *items;
    ir_value **keys; /* of a CHOICE by key; NULL: by position */
    size_t count;
    const ast_node *node;
    bool is_size;    /* VALUE: a list that is a torch.Size, for its text */
    bool is_tuple;   /* VALUE: a list that stands for a tuple of a length known at run time */
    bool is_list;    /* VALUE: surely a list in Python, too: a display, a comprehension, list(), sorted() */
    bool is_mapped;  /* VALUE: a list that stands for the iterator that map() or filter() gives */
    bool has_repeats; /* CHILDREN: the items of a container, where one may stand twice */
    fe_class *after; /* METHOD of super(): the class whose ancestors are asked */
} em;

typedef struct em_slot {
    bool is_set;
    em v;
    ir_value *defined;       /* NULL: surely assigned; else a bool that says so */
    ir_value *origin;        /* where v is a refined view of it */
    const ir_type *declared; /* by an annotation */
} em_slot;

enum { EM_SLOT_EXITED, EM_SLOT_BREAK, EM_SLOT_RETURNED, EM_SLOT_RESULT,
       EM_SLOT_VALUE, /* of a conditional expression at the end of its arms */
       EM_SLOT_FIRST };

typedef enum em_state {
    EM_LIVE,
    EM_EXITED,     /* a return, break or continue was met on every path: code after it is skipped */
    EM_UNREACHABLE /* an exception was raised on every path */
} em_state;

typedef struct em_env {
    em_slot *slots;
    em_state state;
} em_env;

typedef struct em_local { /* names of comprehensions and lambda parameters: a stack */
    ts_str name;
    em v;
} em_local;

typedef struct em_fact { /* what a condition says of a variable */
    size_t slot;
    const ir_type *type;
} em_fact;

typedef struct em_facts {
    em_fact items[16];
    size_t count;
} em_facts;

typedef struct em_condition {
    ir_value *value; /* bool; NULL after an error */
    int known;       /* -1 not, 0 false, 1 true */
    em_facts if_true, if_false;
} em_condition;

typedef struct em_attempt em_attempt; /* a try body under way (emit_try.c) */
typedef struct em_handling {           /* the exception of the except clause under way, or NULL */
    ir_value *exception, *message;
    ir_value *object; /* Any: beside them, where the program has such; or NULL */
} em_handling;

typedef struct emitter {
    struct fe_context *fe;
    ir_module *m;
    ts_arena *arena;
    ir_builder b;
    ir_function *f;
    fe_function *function;
    fe_scope *scope;
    ir_class *self_class;
    fe_map variables; /* name -> slot + 1 */
    fe_map global_names; /* of `global` statements */
    size_t slot_count;
    fe_map failed_names; /* targets whose value had an error: reading them is not told again */
    ts_str *slot_names;
    uint32_t *last_read; /* offset of the last place that reads the slot's name */
    em_env env;
    em_slot **spare; /* slots of environments that are over: a copy at each loop and branch would be
                        loops times variables */
    size_t spare_count, spare_capacity;
    em_local *locals;
    size_t local_count, local_capacity;
    const ir_type *declared_return;
    bool in_loop;
    uint32_t loop_begin; /* offset of the outermost loop around */
    bool is_global_write_told;
    size_t *read_undefined; /* slots read while surely unset in a loop body: the loop is redone */
    size_t read_undefined_count, read_undefined_capacity;
    int loop_depth;
    em_attempt *attempt;
    em_handling handling;
    size_t loop_redos;
    int depth; /* of recursion over the tree */
    const ast_node *encoded; /* the call x.encode() in x.encode().decode() */
    const ast_node **active; /* nested functions whose calls are being made in place */
    size_t active_count, active_capacity;
    fe_class *cell_class;  /* of $cell, or NULL */
    fe_map empty_displays; /* ir_op* of [] or {} -> its node */
    bool restart;          /* the type of one was found out: the function is emitted anew */
    bool failed;
} emitter;

#define EM_ERR(E, node, ...) em_report((E), TS_ERR_TYPE, (node), __VA_ARGS__)
#define EM_UNSUPPORTED(E, node, ...) em_report((E), TS_ERR_UNSUPPORTED, (node), __VA_ARGS__)
void em_report(emitter *E, ts_code code, const ast_node *node, const char *format, ...)
    TS_PRINTF(4, 5);

static inline em em_value(ir_value *v) {
    return v ? (em){.kind = EM_VALUE, .value = v} : (em){.kind = EM_ERROR};
}
static inline em em_error(void) { return (em){.kind = EM_ERROR}; }
static inline const ir_type *em_simple(emitter *E, ir_kind kind) {
    return ir_type_simple(E->m, kind);
}
/* Of the user's own source: what archives and the library write has TorchScript's meaning already. */
static inline bool em_is_script(const ast_node *node) {
    return node && node->source && !node->source->is_archive && !node->source->is_library;
}
static inline bool em_is_number(const ir_type *t) {
    return t->kind == IR_INT || t->kind == IR_FLOAT || t->kind == IR_BOOL || t->kind == IR_COMPLEX ||
           t->kind == IR_NUMBER;
}
em em_binding(emitter *E, fe_binding b);
em em_of_value(emitter *E, rt_value v); /* a compile-time value as em */
const char *em_type_text(emitter *E, const ir_type *t);
void em_place(emitter *E, const ast_node *node);

/* ---- emit_function.c ---- */
typedef struct em_parameter {
    ts_str name;
    const ir_type *type;
    const ast_node *place;
    bool has_default, is_keyword_only, is_positional_only, is_star, is_double_star;
    rt_value default_value;
    int64_t fixed_length;
} em_parameter;
typedef struct em_signature {
    fe_function *function;
    em_parameter *parameters;
    size_t count;
    const ir_type *returns; /* NULL: found from the body */
    bool failed;
} em_signature;
/* self_class: the type of the first parameter of a method, or NULL. Cached for functions without. */
em_signature *em_signature_of(struct fe_context *fe, fe_function *f, ir_class *self_class);
ir_function *em_emit_function(struct fe_context *fe, fe_function *function, ir_class *self_class,
                              em_signature *s, ts_str name, ir_function **early_out);
/* What super() behind `after` finds, and in which class; NULL. */
fe_function *em_super_method(const emitter *E, const fe_class *after, ts_str name, fe_class **out_owner);
void em_begin(emitter *E, struct fe_context *fe, ir_function *f, fe_scope *scope);
void em_finish_slots(emitter *E);
/* IR of `method` for objects of c, kept with the class under `name`. */
ir_function *em_method_as(struct fe_context *fe, ir_class *c, ts_str name, fe_function *method);
size_t em_add_slot(emitter *E, ts_str name);
/* Names that statements assign (not those of nested functions), as slots. */
void em_collect(emitter *E, const ast_list *statements);
void em_collect_expression(emitter *E, const ast_node *node);

fe_class *em_slice_class(struct fe_context *fe); /* what the name slice is (emit_slice.c) */
/* v, marked as what is a list in Python, too. */
static inline em em_sure_list(em v) {
    v.is_list = v.kind == EM_VALUE && v.value;
    return v;
}
/* What map() and filter() give: made at once, walked once. */
static inline em em_mapped(em v) {
    v.is_mapped = v.kind == EM_VALUE && v.value;
    return v;
}
/* is_tuple for Tuple[T, ...], is_size for torch.Size, whose IR type is a list (annotation.c). */
em em_open_tuple(struct fe_context *fe, fe_scope *scope, const ast_node *annotation);

/* ---- emit_env.c ---- */
em_env em_env_copy(emitter *E);
/* Nobody looks at it any more: its memory is for the next copy. */
void em_env_release(emitter *E, em_env *env);
bool em_needed_after(const emitter *E, size_t slot, uint32_t offset);
typedef struct em_branch {
    ir_block *block;
    em_env env;
} em_branch;
/* What em_merge was given, once nobody looks at it. */
void em_branches_release(emitter *E, em_env *before, em_branch *a, em_branch *b);
/* Runs at the end of an IF whose regions hold the branches: yields, results, E->env. */
void em_merge(emitter *E, ir_op *op, const em_env *before, em_branch *a, em_branch *b,
              uint32_t end_offset);
void em_apply_facts(emitter *E, const em_facts *facts);
ir_block *em_enter(emitter *E, ir_block *block); /* returns the block before */
void em_leave(emitter *E, ir_block *block);
ir_value *em_uninitialized(emitter *E, const ir_type *type);

/* ---- emit_stmt.c, emit_loop.c, emit_assign.c ---- */
void em_statements(emitter *E, const ast_list *list, size_t from);
bool em_is_endless(const ast_node *loop);
bool em_always_leaves(const ast_list *list, bool *out_exits);
void em_keep(emitter *E, em v, const ast_node *node);
void em_while(emitter *E, const ast_node *node);
void em_for(emitter *E, const ast_node *node);
void em_give_result(emitter *E, ir_value *v); /* of a return: sets the flags */
void em_return_value(emitter *E, const ast_node *value, const ast_node *node);
void em_reset_flags(emitter *E);
bool em_flag_is_dynamic(emitter *E, size_t flag);
void em_set_flag(emitter *E, size_t flag, bool value);
void em_with(emitter *E, const ast_node *node);
void em_unpack(emitter *E, const ast_list *targets, em v, const ast_node *node);
void em_store_attribute(emitter *E, em object, ts_str name, em v, const ir_type *declared,
                        const ast_node *node);
const ir_type *em_hint_of_target(emitter *E, const ast_node *target);
void em_augmented_subscript(emitter *E, const ast_node *node);
void em_delete_subscript(emitter *E, const ast_node *target);
void em_raise(emitter *E, const ast_node *node);
void em_raise_named(emitter *E, ts_str exception, ir_value *message);
void em_note_failed(emitter *E, const ast_node *target); /* its names are not told again */
void em_assign(emitter *E, const ast_node *target, em v, const ast_node *node);
void em_set_variable(emitter *E, size_t slot, em v, const ast_node *node);
void em_augmented(emitter *E, const ast_node *node);
void em_annotated(emitter *E, const ast_node *node);
void em_delete(emitter *E, const ast_node *node);

/* ---- emit_empty.c ---- */
const ir_type *em_empty_type(emitter *E, const ast_node *node, const ir_type *otherwise);
const ir_type *em_open_dict(emitter *E, const ir_value *dict, const ir_type *key, const ast_node *node);
void em_note_empty(emitter *E, const ir_value *v, const ast_node *node);
/* True: v was made empty and is to be of this type; the emission under way is thrown away. */
bool em_retype_empty(emitter *E, const ir_value *v, const ir_type *want);
bool em_retype_list(emitter *E, const ir_value *list, const ir_value *item);
bool em_retype_dict(emitter *E, const ir_value *dict, const ir_value *key, const ir_value *value);

/* ---- emit_learn.c: types found by use; true: all is emitted anew ---- */
void fe_relearn(struct fe_context *fe);
const ir_type *em_joined_empty(emitter *E, const ir_type *old, const ir_type *now);
bool em_learn_field(emitter *E, ir_class *c, ts_str name, const ir_type *found);
bool em_learn_empty_field(emitter *E, ir_class *c, ts_str name, const ir_type *want);
const ir_type *em_type_of_constant(emitter *E, rt_value v);
bool em_learn_constant(emitter *E, rt_value v, const ir_type *want);
ir_value *em_global_object(emitter *E, ts_str name); /* NULL: no name that `global` writes */
bool em_make_global(emitter *E, ts_str name, const ast_node *node);
ir_value *em_class_state(emitter *E, const fe_class *c, ts_str name);
bool em_make_class_state(emitter *E, const fe_class *c, ts_str name, rt_value v);
ir_value *em_changed_constant(emitter *E, rt_value v);
bool em_make_state(emitter *E, ts_str key, ts_str name, const ir_type *type); /* begins as None */
ir_value *em_state_of(emitter *E, ts_str key);
void em_note_changed_constants(emitter *E, const ir_block *b);
bool em_learn_parameter(emitter *E, size_t index, const ir_type *want);
const ir_type *em_wanted_parameter(emitter *E, const fe_function *f, size_t index);
bool em_note_missing(emitter *E, em object, ts_str name, const ast_node *node);
void em_find_missing(emitter *E);
bool em_learn_result(emitter *E, fe_function *f, const ir_type *found);
void fe_note_emitted(struct fe_context *fe, fe_function *f);
void fe_forget_functions(struct fe_context *fe);
static inline bool em_is_guessing(const emitter *E) { return E->fe->relearn || E->fe->guessing; }

/* ---- emit_set.c: sets are dicts from items to None, frozensets dicts from items to () ---- */
bool em_is_set_type(const ir_type *t); /* a frozenset, too */
bool em_is_frozen_type(const ir_type *t);
const ir_type *em_value_type(emitter *E, const ir_type *value);
bool em_is_set(em v);
ir_value *em_set_from(emitter *E, em v, const ast_node *node, const ir_type *hint);
em em_set_display(emitter *E, const ast_node *node, const ir_type *hint);
ir_value *em_set_items(emitter *E, ir_value *set, const ast_node *node);
/* Whether the runtime alone would not write a value of the type as Python does; repr() of any value;
 * a value, or its str() where the runtime would write another (emit_repr.c). */
bool em_has_own_text(const ir_type *t);
/* emit_tolist.c: what `target = value` and `for target in iterable` want of x.tolist(); NULL: nothing. */
const ir_type *em_hint_of_tolist(emitter *E, const ast_node *target, const ast_node *value);
const ir_type *em_hint_of_walk(emitter *E, const ast_node *iterable, const ast_node *target, const ast_node *scope);
ir_value *em_known_numbers(emitter *E, ir_value *v, const ir_value *tensor, const ir_type *hint);
ir_value *em_repr(emitter *E, ir_value *x, const ast_node *node);
ir_value *em_as_python(emitter *E, em v, const ast_node *node); /* such a list as the tuple it stands for: Any */
ir_value *em_shown(emitter *E, em v, const ast_node *node);
/* What goes into a container: a list that stands for a tuple or a torch.Size is marked as such, as its variable is
 * known no more where it is read. */
em em_kept(emitter *E, em v, const ast_node *node, const ir_type *hint);
ir_value *em_view_text(emitter *E, em v, const ast_node *node);
ir_value *em_set_compare(emitter *E, ast_operator op, ir_value *a, ir_value *b, const ast_node *node);
em em_set_binary(emitter *E, ast_operator op, ir_value *a, ir_value *b, bool in_place,
                 const ast_node *node);

/* ---- emit_key.c ---- */
em em_key(emitter *E, em v, const ast_node *node);
ir_value *em_hash(emitter *E, ir_value *v, const ast_node *node);
ir_value *em_same_key(emitter *E, ir_value *dict, ir_value *key, const ast_node *node);
bool em_update_by_keys(emitter *E, ir_value *dict, ir_value *other, const ast_node *node);

/* ---- emit_try.c ---- */
struct em_attempt {
    struct em_attempt *outer;
    ir_function *function;
    ir_block *block; /* where the statement stands */
    em_env before;
    ir_class *class_; /* of state */
    ir_value *state;
    size_t *slots; /* that BODY assigns and somebody reads later */
    const ir_type **types; /* of all that was assigned so far; NULL: nothing yet */
    size_t count;
    uint32_t end; /* offset after BODY */
    ir_value *grad_mode; /* before: an exception may leave a with block */
    ir_value *ok;
    em_handling raised; /* what try_call tells */
};
void em_try(emitter *E, const ast_node *node);
/* The statements between begin and end become a function that is called so that an exception in
 * them is known; end gives the IF over how it went, its first region entered; failed enters the
 * second. `end` is the offset behind the statements. */
void em_attempt_begin(emitter *E, em_attempt **out, const ast_list *body, uint32_t end);
ir_op *em_attempt_end(emitter *E, em_attempt *t, const ast_node *node);
void em_attempt_failed(emitter *E, em_attempt *t, ir_op *op);
/* Whether a caught exception is of a class, or of one of a tuple of them; NULL after an error. */
ir_value *em_exception_test(emitter *E, em exception, const ast_node *types);
void em_note_assigned(emitter *E, size_t slot); /* of em_set_variable */
/* Bare names of the class and of all known classes that derive from it (emit_class.c). */
size_t em_exception_names(struct fe_context *fe, fe_class *wanted, ts_str **out);

/* Iteration: an unrolled list of ems, or a count and an item by index. */
typedef struct em_iteration {
    bool is_unrolled;
    em *items;
    size_t count;
    ir_value *trip;   /* counted */
    em source;        /* counted: what em_iteration_item asks */
    em extra;
    ir_value *start, *step;
    struct em_iteration *parts;
    size_t part_count;
    ir_value *dict_check; /* the dict whose size must stay */
    ir_value *dict_size;
    ir_value *iterator; /* an object with advance(): no count */
    ir_value *growing; /* a list that the loop's body changes: its length is asked each time */
    int how;
} em_iteration;
bool em_iterate(emitter *E, em source, const ast_node *node, em_iteration *out);
ir_value *em_iteration_advance(emitter *E, const em_iteration *it, const ast_node *node);
em em_iteration_item(emitter *E, const em_iteration *it, ir_value *index, const ast_node *node);
/* Calls each for all items, inside a LOOP where they are counted. */
bool em_for_each(emitter *E, em source, const ast_node *node,
                 void (*each)(emitter *E, em item, void *user), void *user);

/* ---- emit_expr.c and its neighbours ---- */
em em_expression(emitter *E, const ast_node *node, const ir_type *hint);
ir_value *em_ir(emitter *E, em v, const ast_node *node, const ir_type *hint); /* NULL on error */
ir_value *em_list_by_loop(emitter *E, em v, const ast_node *node); /* a new list of the items */
em em_tuple_literal(emitter *E, const ast_node *node, const ir_type *hint);
ir_value *em_expression_ir(emitter *E, const ast_node *node, const ir_type *hint);
em_condition em_condition_of(emitter *E, const ast_node *node);
/* An IF over two ways to a value: begin, first value, other, second value, end. */
typedef struct em_choice {
    ir_op *op;
    em_env before;
    em_branch a;
    ir_block *here;
    em_slot saved;
} em_choice;
void em_choose(emitter *E, em_choice *c, ir_value *condition);
void em_choose_other(emitter *E, em_choice *c, ir_value *first);
ir_value *em_choose_end(emitter *E, em_choice *c, ir_value *second, const ast_node *node);
em_condition em_none_test(emitter *E, em v, const ast_node *variable, bool negated,
                          const ast_node *node);
void em_negate(emitter *E, em_condition *c);
ir_value *em_condition_ir(emitter *E, const em_condition *c);
ir_value *em_truth(emitter *E, em v, const ast_node *node);
/* v as `want`, with Python's and TorchScript's implicit conversions; reports and gives NULL. */
ir_value *em_coerce(emitter *E, ir_value *v, const ir_type *want, int64_t fixed_length,
                    const ast_node *node, const char *what);
ir_value *em_index_of(emitter *E, ir_value *v, const ast_node *node);
ir_value *em_cast(emitter *E, ir_value *v, const ir_type *type);       /* known to hold */
ir_value *em_check_cast(emitter *E, ir_value *v, const ir_type *type); /* checked */
ir_value *em_list_of(emitter *E, ir_value **items, size_t count, const ir_type *element);
ir_value *em_tuple_of(emitter *E, ir_value **items, size_t count);
ir_value *em_dict_of(emitter *E, ir_value **items, size_t count, const ir_type *type);
bool em_is_list_literal(const ir_value *v, ir_value ***out_items, size_t *out_count);

em em_attribute(emitter *E, const ast_node *node);
em em_attribute_of(emitter *E, em object, ts_str name, const ast_node *node, bool quiet);
bool em_has_attribute(emitter *E, em object, ts_str name);
em em_subscript(emitter *E, const ast_node *node);
void em_store_subscript(emitter *E, const ast_node *target, ir_value *object, em v,
                        const ast_node *node);
ir_value *em_index_tensor(emitter *E, ir_value *x, const ast_node *index, bool for_write,
                          ir_value **out_rest);
bool em_is_mixed_enum(em v);
em em_enum_value(emitter *E, em v, const ast_node *node);
em em_binary(emitter *E, ast_operator op, em a, em b, bool in_place, const ast_node *node);
em em_unary(emitter *E, const ast_node *node);
em em_compare(emitter *E, const ast_node *node);
em em_boolop(emitter *E, const ast_node *node, const ir_type *hint);
ir_value *em_compare_two(emitter *E, ast_operator op, em a, em b, const ast_node *node);
em em_comprehension(emitter *E, const ast_node *node, const ir_type *hint);
/* any(...) and all(...) of a generator whose items may raise or write: none is asked after the one that decides. */
bool em_asks_in_turn(const ast_node *generator);
em em_any_of(emitter *E, const ast_node *generator, bool is_any);
/* emit_comp_cell.c: the comprehension with its variables that lambdas share in a cell, which is pushed as a local;
 * itself, and an error, where there are none. em_comp_share stores what was bound since into the cell. */
const ast_node *em_whole_generator(emitter *E, const ast_node *generator); /* as a list comprehension */
const ast_node *em_comp_with_cell(emitter *E, const ast_node *node, em *out_cell);
void em_comp_share(emitter *E, em cell, const ast_node *node, size_t first_local);
ir_value *em_format_value(emitter *E, em v, ir_value *spec, const ast_node *node);
ir_value *em_format_default(emitter *E, em v, const ast_node *node);
ir_value *em_fstring(emitter *E, const ast_node *node);
ir_value *em_to_str(emitter *E, em v, const ast_node *node);
const ir_type *em_annotation(emitter *E, const ast_node *node);
em_condition em_is_instance(emitter *E, const ast_node *node, const ast_node *subject,
                            const ast_node *types);

/* ---- calls ---- */
typedef struct em_argument {
    ts_str name; /* "" for positional */
    em v;
    const ast_node *node;
} em_argument;
typedef struct em_arguments {
    em_argument *items;
    size_t count, capacity;
} em_arguments;
/* ---- emit_exception.c ---- */
void em_exception_fields(struct fe_context *fe, ir_class *c);
bool em_is_exception(const ir_type *t);
static inline bool em_is_any_exception(em v) {
    return v.kind == EM_EXCEPTION || (v.kind == EM_VALUE && em_is_exception(v.value->type));
}
bool em_is_object_exception(const fe_class *c); /* with an __init__, methods or attributes of the user's */
bool em_exception_init(emitter *E, ir_value *object, const em_arguments *args, const ast_node *node);
void em_exception_begin(emitter *E, ir_value *object, const fe_class *c, const em_arguments *args);
ir_value *em_exception_message(emitter *E, const fe_class *c, const em_arguments *args, const ast_node *node);
ir_value *em_exception_name(emitter *E, em v); /* of an EM_EXCEPTION or of such an object */
ir_value *em_exception_text(emitter *E, em v, const ast_node *node);
ir_value *em_exception_repr(emitter *E, em v, const ast_node *node);
em em_exception_arguments(emitter *E, em v, const ast_node *node); /* e.args */
void em_note_arguments(emitter *E, ir_value *message, const em *items, size_t count, const ast_node *node);
em em_caught(emitter *E, em_handling raised);
em em_plain_exception(emitter *E, em v, const ast_node *node);
ir_value *em_exception_object(emitter *E, em v);
void em_raise_object(emitter *E, ir_value *object, const ast_node *node);
void em_raise_again(emitter *E, em_handling e);
ir_value *em_raised_object(emitter *E);
em em_caught_object(emitter *E, ir_value *object, const ast_node *type);

/* ---- emit_cause.c ---- */
ir_value *em_cause(emitter *E, const ast_node *node);
void em_note_cause(emitter *E, ir_value *name, ir_value *text, ir_value *cause);
em em_cause_of(emitter *E, em e, const ast_node *node);

em em_call(emitter *E, const ast_node *node, const ir_type *hint);
em em_frozen_set(emitter *E, em_arguments *args, const ast_node *node, const ir_type *hint);
bool em_dunder(emitter *E, ir_value *self, ts_str name, const em_arguments *args, const ast_node *node, em *out);
bool em_format_call(emitter *E, ir_value *format, const em_arguments *args, const ast_node *node, ir_value **out);
em em_set_method(emitter *E, ir_value *set, ts_str name, em_arguments *args, const ast_node *node);

bool em_condition_call(emitter *E, const ast_node *node, em_condition *out);
/* Calls whose arguments are no plain expressions: annotate(T, x), isinstance, hasattr ... */
em em_call_special(emitter *E, const ast_node *node, const ir_type *hint, bool *out_done);
em em_call_value(emitter *E, em callee, em_arguments *args, const ast_node *node,
                 const ir_type *hint);
em em_call_builtin(emitter *E, ts_str path, em_arguments *args, const ast_node *node,
                   const ir_type *hint, bool *out_known);
const ast_node *em_encoded_before(const ast_node *node);
em em_call_builtin_type_method(emitter *E, em method, em_arguments *args, const ast_node *node,
                               const ir_type *hint);
/* torch.unique and others whose results depend on flags; *out_known says whether it is one. */
em em_call_by_flags(emitter *E, ts_str name, em_arguments *args, const ast_node *node, bool *out_known);
/* Among the overloads of a functional (conv2d, conv2d__padding) the one that takes the arguments. */
fe_function *em_choose_function(emitter *E, fe_function *f, const em_arguments *args, const ast_node *node);
em em_call_function(emitter *E, fe_function *f, em_arguments *args, const ast_node *node);
/* One of several callees, told apart at run time (emit_choice.c). */
em em_call_choice(emitter *E, em callee, em_arguments *args, const ast_node *node, const ir_type *hint);
/* ---- emit_type_variant.c ---- */
/* The same function, not emitted yet: for another variant of it. */
fe_function *em_copy_function(emitter *E, const fe_function *f);
/* f, or a variant of it that is typed for the arguments where f has no annotations; skipped: self. */
fe_function *em_variant_of(emitter *E, fe_function *f, size_t skipped, em_arguments *args);
/* ---- emit_flag_variant.c ---- */
/* f, or a variant of it whose result has one type, as flags among the arguments are known. */
fe_function *em_flag_variant(emitter *E, fe_function *f, const ir_type *returns, size_t skipped, const em_arguments *args);
/* f, or the function that also gives indices, where return_indices is True; NULL after an error. */
fe_function *em_with_indices(emitter *E, fe_function *f, const em_arguments *args, const ast_node *node);
/* ---- emit_arguments.c ---- */
bool em_evaluate_arguments(emitter *E, const ast_node *node, em callee, em_arguments *out);
/* A call of f, whose parameters s has; self: the first of them, or NULL. */
em em_call_ir(emitter *E, ir_function *f, em_signature *s, ir_value *self, em_arguments *args,
              const ast_node *node);
/* ---- emit_call.c, emit_call_function.c ---- */
em em_call_closure(emitter *E, const ast_node *closure, em *args, size_t count,
                   em_arguments *named, const ast_node *node);
/* After a callee that could not be made: tells so unless its own error was told. */
em em_failed_callee(emitter *E, ts_str name, const ast_node *node, size_t errors);
ir_value *em_new_object(emitter *E, ir_class *c);
/* Class[name] of an enum, from its variable `at` on. */
em em_enum_member_named(emitter *E, const fe_class *c, ir_value *name, size_t at, const ast_node *node);
em em_construct(emitter *E, fe_class *c, em_arguments *args, const ast_node *node);
/* Just this method, whatever the object's own class has by that name: super(), Class.method(object). */
em em_call_method_of(emitter *E, ir_value *object, const fe_class *owner, fe_function *f, em_arguments *args,
                     const ast_node *node);
em em_call_method(emitter *E, ir_value *object, ts_str name, em_arguments *args,
                  const ast_node *node);
/* A module called as a function: its hooks and forward (emit_hooks.c). */
em em_call_module(emitter *E, ir_value *module, em_arguments *args, const ast_node *node);
em em_call_method0(emitter *E, ir_value *object, const char *name, em *args, size_t count,
                   const ast_node *node);
bool em_class_has_method(const ir_type *t, const char *name);
/* The dict of an object of a class over one (Counter, defaultdict); other values as they are. */
em em_dict_behind(emitter *E, em v, const ast_node *node);
void em_add_field(struct fe_context *fe, ir_class *c, ts_str name, const ir_type *type);
const ir_field *em_find_field(const ir_class *c, ts_str name);

/* ---- emit_callable.c: functions as values, generators, iterators ---- */
bool em_is_open_class(const fe_class *c);
em em_construct_open(emitter *E, fe_class *c, em_arguments *args, const ast_node *node);
const ast_node *em_with_cells(emitter *E, const fe_function *f);
em em_new_cell(emitter *E, const ast_node *node);
bool em_share_variable(emitter *E, ts_str name);
em em_made_object(emitter *E, const ast_node *class_node, ts_str name, ts_str identity, em_arguments *args,
                  const ast_node *node);
/* ---- emit_union.c ---- */
typedef em (*em_part_action)(emitter *E, ir_value *part, const void *context, const ast_node *node);
/* What action gives for the class that the object has at run time: its own or one that derives from it. */
em em_by_class(emitter *E, ir_value *object, em_part_action action, const void *context, const ast_node *node);
bool em_is_overridden(emitter *E, const fe_class *c, ts_str name);
/* A union of numbers and Tensor, and an operator over it: each part is added as what it is. */
bool em_is_number_or_tensor(em v);
em em_tensor_part(emitter *E, em v); /* such a value as the Tensor that it must be; others as they are */
em em_unary_of(emitter *E, ir_value *v, const ast_node *node);
em em_unary_by_part(emitter *E, ir_value *v, bool is_abs, const ast_node *node); /* abs(v), or node's operator */
ir_value *em_compare_by_part(emitter *E, ast_operator op, em a, em b, const ast_node *node);
em em_binary_by_part(emitter *E, ast_operator op, em a, em b, bool in_place, const ast_node *node);
/* name empty: the value itself is called */
em em_call_union(emitter *E, ir_value *v, ts_str name, em_arguments *args, const ast_node *node, const ir_type *hint);
bool em_union_attribute(emitter *E, ir_value *v, ts_str name, const ast_node *node, em *out);
/* ---- emit_dataclass.c ---- */
bool em_dataclass_option(emitter *E, const fe_class *c, const char *name, bool otherwise);
bool em_is_ordered_dataclass(emitter *E, const fe_class *c); /* order=True, its own or a base's */
bool em_field_option(emitter *E, const fe_class *c, ts_str field, const char *name, bool otherwise);
ir_value *em_equal_dataclass(emitter *E, ir_value *a, ir_value *b, const ast_node *node);
bool em_has_own_equality(const ir_type *t, int depth);
ir_value *em_equal_deep(emitter *E, ir_value *a, ir_value *b, const ast_node *node, bool *out_known);
em em_named_tuple_method(emitter *E, ir_value *tuple, ts_str name, const em_arguments *args, const ast_node *node);
em em_named_tuple_make(emitter *E, fe_class *class_, em_arguments *args, const ast_node *node);
em em_field_names(emitter *E, fe_class *class_); /* _fields */
bool em_call_dataclasses(emitter *E, ts_str path, em_arguments *args, const ast_node *node, em *out);
fe_function *em_class_method_of(emitter *E, fe_class *c, fe_function *f); /* emit_spread.c */
bool em_is_function(em v);
ir_value *em_function_object(emitter *E, em v, const ast_node *node);
bool em_callable_of(emitter *E, ir_value *object, em *out);
bool em_is_generator(const ast_node *function);
em em_call_generator(emitter *E, fe_function *f, ir_value *self, em_arguments *args, const ast_node *node);
em em_call_nested_generator(emitter *E, const ast_node *function, em *args, size_t count, const ast_node *node);
bool em_is_iterator(const ir_type *t);
bool em_is_lazy(emitter *E, em v);
bool em_is_walked_once(em v); /* a name would hold it as an iterator: what map(), zip(), reversed() ... give */
ir_value *em_iterator(emitter *E, em v, const ast_node *node);
bool em_is_object_closure(emitter *E, const ast_node *closure);
void em_make_object_closure(emitter *E, const ast_node *closure);

/* ---- operators (emit_operator_call.c, overload.c) ---- */
/* The one name of an operator that has several (aliases.c). */
ts_str fe_canonical_operator(ts_arena *arena, ts_str name);
em em_missing_operator(emitter *E, ts_str name, const ast_node *node);
em em_operator(emitter *E, ts_str name, em_arguments *args, const ast_node *node);
/* Positional IR values, a name that surely exists; NULL after an error. */
ir_value *em_op(emitter *E, const char *name, const ast_node *node, size_t count, ...);
/* A row by its full name ("prim_truth", "append.t"): operands as they are. */
ir_value *em_row(emitter *E, const char *full_name, const ast_node *node, size_t count, ...);
/* Raises where the number is beyond the dtype of like, a tensor or a dtype. */
void em_check_fits(emitter *E, ir_value *like, ir_value *number, bool with_halves, const ast_node *node);
int em_conversion_cost(emitter *E, ir_value *v, const ir_type *want, int64_t fixed_length);

#endif
