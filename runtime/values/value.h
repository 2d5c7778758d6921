/* runtime/values/value.h - boxed values with Python's meaning.
 *
 * One representation serves the archive reader, the evaluator of module level and __init__, the
 * IR's constants, the reference kernels and the running program. A value is 16 bytes: a tag and a
 * payload. Everything from RT_TAG_COMPLEX up is a counted object on the heap.
 *
 * Ownership: functions borrow their arguments and return new references ("owned") unless a name
 * says otherwise (_take_ consumes, _borrow_ / plain getters lend). Counting is atomic: a model's
 * constants are shared by threads; contents of lists, dicts and objects are not synchronised. */
#ifndef RUNTIME_VALUES_VALUE_H
#define RUNTIME_VALUES_VALUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/status.h"
#include "runtime/values/dtype.h"

typedef enum rt_tag {
    RT_TAG_NONE = 0,
    RT_TAG_BOOL = 1,   /* i is 0 or 1 */
    RT_TAG_INT = 2,    /* i; dtypes, layouts and memory formats are ints, as in TorchScript; aux: their rt_meaning, where
                          the compiler knows it: for their texts alone */
    RT_TAG_FLOAT = 3,  /* f */
    RT_TAG_DEVICE = 4, /* i: index, -1 for none; aux: 0 cpu, 1 cuda, 2 opencl, 3 meta */
    RT_TAG_UNINITIALIZED = 5, /* torch's uninitialized(T): never read on a path that is taken */
    RT_TAG_COMPLEX = 8, /* first counted tag */
    RT_TAG_STR = 9,
    RT_TAG_TENSOR = 10,
    RT_TAG_LIST = 11,
    RT_TAG_TUPLE = 12, /* also NamedTuple: rt_tuple.class_ is set */
    RT_TAG_DICT = 13,
    RT_TAG_OBJECT = 14, /* instance of a user's class, module or not */
    RT_TAG_ENUM = 15,   /* member of an Enum class */
    RT_TAG_GENERATOR = 16,
    RT_TAG_FUNCTION = 17, /* compile time only: a function, class, bound method, module namespace */
    RT_TAG_CAPSULE = 18   /* opaque to the language: packed parameters and the like */
} rt_tag;

typedef struct rt_counted {
    _Atomic int64_t references; /* RT_IMMORTAL: constants in static memory */
    uint32_t tag;
    uint32_t flags;
} rt_counted;

typedef struct rt_str rt_str;
typedef struct rt_tensor rt_tensor;
typedef struct rt_list rt_list;
typedef struct rt_tuple rt_tuple;
typedef struct rt_dict rt_dict;
typedef struct rt_object rt_object;
typedef struct rt_enum rt_enum;
typedef struct rt_complex rt_complex;
typedef struct rt_generator rt_generator;
typedef struct rt_class rt_class;

/* The layout of rt_value is part of the contract with compiled code (docs/artifact.md). */
typedef struct rt_value {
    uint32_t tag;
    uint32_t aux;
    union {
        int64_t i;
        double f;
        rt_counted *counted;
        rt_str *str;
        rt_tensor *tensor;
        rt_list *list;
        rt_tuple *tuple;
        rt_dict *dict;
        rt_object *object;
        rt_enum *enumeration;
        rt_complex *complex;
        rt_generator *generator;
        void *pointer;
    } as;
} rt_value;

static inline rt_value rt_none(void) { return (rt_value){.tag = RT_TAG_NONE}; }
static inline rt_value rt_bool(bool b) { return (rt_value){.tag = RT_TAG_BOOL, .as.i = b}; }
static inline rt_value rt_int(int64_t i) { return (rt_value){.tag = RT_TAG_INT, .as.i = i}; }
static inline rt_value rt_float(double f) { return (rt_value){.tag = RT_TAG_FLOAT, .as.f = f}; }
/* What an int stands for in Python: torch.float32, torch.strided, torch.channels_last, torch.per_tensor_affine. */
typedef enum rt_meaning {
    RT_MEANING_NUMBER,
    RT_MEANING_DTYPE,
    RT_MEANING_LAYOUT,
    RT_MEANING_MEMORY_FORMAT,
    RT_MEANING_QSCHEME,
    RT_MEANING_COUNT
} rt_meaning;
static inline rt_value rt_int_meaning(int64_t i, rt_meaning meaning) {
    return (rt_value){.tag = RT_TAG_INT, .aux = (uint32_t)meaning, .as.i = i};
}
/* "torch.float32"; NULL for a number, and for what no member has. */
const char *rt_meaning_text(rt_meaning meaning, int64_t i);
static inline bool rt_is_counted(rt_value v) { return v.tag >= RT_TAG_COMPLEX; }
static inline bool rt_is_none(rt_value v) { return v.tag == RT_TAG_NONE; }

void rt_value_destroy(rt_value v); /* last reference went: called by rt_release */

static inline rt_value rt_retain(rt_value v) {
    if (rt_is_counted(v))
        atomic_fetch_add_explicit(&v.as.counted->references, 1, memory_order_relaxed);
    return v;
}

static inline void rt_release(rt_value v) {
    if (rt_is_counted(v) &&
        atomic_fetch_sub_explicit(&v.as.counted->references, 1, memory_order_acq_rel) == 1)
        rt_value_destroy(v);
}

/* Releases what *slot held and moves v (owned) in. */
static inline void rt_assign(rt_value *slot, rt_value v) {
    rt_value old = *slot;
    *slot = v;
    rt_release(old);
}

/* ---- complex ---- */
struct rt_complex {
    rt_counted base;
    double re, im;
};
ts_status rt_complex_make(double re, double im, rt_value *out) TS_WARN_UNUSED;

/* ---- str: UTF-8; Python counts code points ---- */
struct rt_str {
    rt_counted base;
    size_t length;      /* bytes */
    size_t code_points; /* == length for ASCII */
    char data[];        /* 0-terminated */
};
ts_status rt_str_make(ts_str text, rt_value *out) TS_WARN_UNUSED;
ts_status rt_str_format(rt_value *out, const char *format, ...) TS_WARN_UNUSED TS_PRINTF(2, 3);
static inline ts_str rt_str_text(const rt_str *s) { return (ts_str){s->data, s->length}; }

/* What Python has a class for and a program holds as a list or a dict: bits of rt_counted.flags. Such values print
 * and leave the program as Python's own; new ones are made without. */
enum {
    RT_MARK_TUPLE = 1u << 8,   /* list: a tuple of a length known only at run time */
    RT_MARK_SIZE = 1u << 9,    /* list: a torch.Size */
    RT_MARK_ORDERED = 1u << 10, /* dict: an OrderedDict */
    RT_MARKS = RT_MARK_TUPLE | RT_MARK_SIZE | RT_MARK_ORDERED
};
static inline uint32_t rt_marks(const rt_counted *value) { return value->flags & RT_MARKS; }

/* ---- list ---- */
struct rt_list {
    rt_counted base;
    size_t count, capacity;
    rt_value *items;
};
ts_status rt_list_make(size_t capacity, rt_value *out) TS_WARN_UNUSED;
ts_status rt_list_append(rt_list *list, rt_value item) TS_WARN_UNUSED; /* retains item */
ts_status rt_list_insert(rt_list *list, size_t index, rt_value item) TS_WARN_UNUSED;
rt_value rt_list_take_at(rt_list *list, size_t index); /* removes and returns (owned) */
void rt_list_clear(rt_list *list);
ts_status rt_int_list_make(const int64_t *items, size_t count, rt_value *out) TS_WARN_UNUSED;

/* ---- tuple ---- */
struct rt_tuple {
    rt_counted base;
    const rt_class *class_; /* NULL, or the NamedTuple class */
    size_t count;
    rt_value items[];
};
/* All items NONE; the caller fills them with owned values. */
ts_status rt_tuple_make(size_t count, rt_value *out) TS_WARN_UNUSED;

/* ---- dict: keeps insertion order; tensor keys go by identity ---- */
typedef struct rt_dict_entry {
    rt_value key, value;
    uint64_t hash;
    bool is_live;
} rt_dict_entry;
struct rt_dict {
    rt_counted base;
    size_t live_count;
    size_t entry_count, entry_capacity; /* entries in order of insertion, some dead */
    rt_dict_entry *entries;
    uint32_t *index; /* open addressing over entries: 0 empty, else position + 1 */
    size_t index_capacity;
    uint64_t version; /* changes with each insertion or removal of a key */
};
ts_status rt_dict_make(rt_value *out) TS_WARN_UNUSED;
/* The entry of a key, or NULL. TypeError for a key that cannot be hashed. */
ts_status rt_dict_find(const rt_dict *dict, rt_value key, rt_dict_entry **out) TS_WARN_UNUSED;
ts_status rt_dict_set(rt_dict *dict, rt_value key, rt_value value) TS_WARN_UNUSED; /* retains */
ts_status rt_dict_remove(rt_dict *dict, rt_value key, bool *out_removed) TS_WARN_UNUSED;
void rt_dict_clear(rt_dict *dict);
/* for (size_t at = 0; (e = rt_dict_next(d, &at));) */
rt_dict_entry *rt_dict_next(const rt_dict *dict, size_t *at);

/* ---- classes and their instances ---- */
typedef enum rt_class_kind {
    RT_CLASS_PLAIN,
    RT_CLASS_MODULE,
    RT_CLASS_NAMED_TUPLE,
    RT_CLASS_ENUM,
    RT_CLASS_INTERFACE,
    RT_CLASS_EXCEPTION
} rt_class_kind;

/* What the running program must know of a class. Owned by the compilation's arena, or by the
 * model; never counted; compared by pointer. */
struct rt_class {
    ts_str name;      /* qualified: "__torch__.Point" */
    ts_str bare_name; /* "Point" */
    rt_class_kind kind;
    const rt_class *const *bases; /* all ancestors, nearest first: isinstance looks here */
    size_t base_count;
    const ts_str *fields; /* attribute names of instances, or of the NamedTuple */
    size_t field_count;
    const void *info; /* for the owner's use: ir_class at compile time, rt_model_class at run time */
};

struct rt_object {
    rt_counted base;
    const rt_class *class_;
    size_t field_count;
    rt_value *fields; /* in the order of class_->fields; may hold UNINITIALIZED */
};
ts_status rt_object_make(const rt_class *class_, rt_value *out) TS_WARN_UNUSED; /* UNINITIALIZED */
/* Position of a field, or -1. */
int64_t rt_class_field(const rt_class *class_, ts_str name);
bool rt_class_is_a(const rt_class *class_, const rt_class *ancestor);

struct rt_enum {
    rt_counted base;
    const rt_class *class_;
    ts_str name; /* borrowed from the class's owner */
    rt_value value;
};
ts_status rt_enum_make(const rt_class *class_, ts_str name, rt_value value, rt_value *out)
    TS_WARN_UNUSED;

/* ---- opaque ---- */
typedef struct rt_capsule {
    rt_counted base;
    const char *kind; /* static text that says what is inside */
    void *pointer;
    void (*release)(void *pointer); /* may be NULL */
} rt_capsule;
ts_status rt_capsule_make(rt_tag tag, const char *kind, void *pointer, void (*release)(void *),
                          rt_value *out) TS_WARN_UNUSED;
/* A capsule of a copy of the bytes, which release gives back. */
ts_status rt_capsule_copy(const char *kind, const void *data, size_t size, void (*release)(void *),
                          rt_value *out) TS_WARN_UNUSED;
/* What lies inside where v is a capsule of that very kind; NULL otherwise. */
void *rt_capsule_of(rt_value v, const char *kind);

/* ---- meaning (operators of the language over boxed values; values/python.c) ---- */
const char *rt_tag_name(rt_value v); /* Python's type name: "int", "Tensor", "list", ... */
/* Python's truth. RuntimeError for a tensor of several elements. */
ts_status rt_truth(rt_value v, bool *out) TS_WARN_UNUSED;
/* Python's ==: structural for containers; a comparison that meets a tensor compares identity,
 * as list.__contains__ of a list of tensors must not be used on values (callers handle tensors). */
ts_status rt_equal(rt_value a, rt_value b, bool *out) TS_WARN_UNUSED;
/* <0, 0, >0 for numbers, strings, tuples, lists; TypeError otherwise. */
ts_status rt_compare(rt_value a, rt_value b, int *out) TS_WARN_UNUSED;
ts_status rt_hash(rt_value v, uint64_t *out) TS_WARN_UNUSED;
bool rt_is(rt_value a, rt_value b); /* Python's `is` */
ts_status rt_to_str(rt_value v, rt_value *out) TS_WARN_UNUSED;  /* str(v), as eager Python */
ts_status rt_to_repr(rt_value v, rt_value *out) TS_WARN_UNUSED; /* repr(v) */
/* Shortest text that reads back as the same double, as Python's repr: "0.1", "1e-07", "inf". */
size_t rt_format_double(double f, char out[32]);
/* Deep copy of a constant tree (a session's own state): tensors are copied when copy_tensors. */
ts_status rt_deep_copy(rt_value v, bool copy_tensors, rt_value *out) TS_WARN_UNUSED;

#endif
