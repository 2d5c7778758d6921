/* frontend/archive/pickle.c - pickle protocols 2 to 5, the part that PyTorch writes.
 *
 * Every length is compared with the bytes left before anything is allocated; the memo grows with
 * the file and never with an index; nesting is counted after the fact by one walk with an explicit
 * stack, which also finds cycles. Source of the opcodes: Python's Lib/pickletools.py. */
#include "frontend/archive/pickle.h"

#include "frontend/archive/cursor.h"
#include "frontend/archive/text.h"

enum {
    OP_PROTO = 0x80, OP_NEWOBJ = 0x81, OP_TUPLE1 = 0x85, OP_TUPLE2 = 0x86, OP_TUPLE3 = 0x87,
    OP_NEWTRUE = 0x88, OP_NEWFALSE = 0x89, OP_LONG1 = 0x8a, OP_LONG4 = 0x8b,
    OP_SHORT_BINUNICODE = 0x8c, OP_BINUNICODE8 = 0x8d, OP_STACK_GLOBAL = 0x93, OP_MEMOIZE = 0x94,
    OP_FRAME = 0x95, OP_BINBYTES8 = 0x8e, OP_EMPTY_SET = 0x8f, OP_ADDITEMS = 0x90
};

typedef fe_pickle_node node;

typedef struct machine {
    ts_arena *arena;
    fe_cursor in;
    unsigned allowed;
    size_t at; /* offset of the running opcode */
    size_t node_count;
    node **stack;
    size_t count, capacity;
    size_t *marks;
    size_t mark_count, mark_capacity;
    node **memo;
    size_t memo_count; /* slots in memo */
    size_t memoize_next;
} machine;

static ts_status bad(const machine *m, const char *text) {
    return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: %s", m->at, text);
}

static ts_status make(machine *m, fe_pickle_kind kind, node **out) {
    if (m->node_count++ >= FE_PICKLE_MAX_NODES)
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: more than %d values", m->at,
                             FE_PICKLE_MAX_NODES);
    node *n = TS_NEW(m->arena, node);
    n->kind = (uint8_t)kind;
    n->offset = m->at;
    *out = n;
    return NULL;
}

static void push(machine *m, node *n) {
    TS_APPEND(m->arena, m->stack, m->count, m->capacity, n);
}

/* How deep the stack may be popped: not below the last mark. */
static size_t floor_of(const machine *m) { return m->mark_count ? m->marks[m->mark_count - 1] : 0; }

static ts_status pop(machine *m, node **out) {
    if (m->count <= floor_of(m))
        return bad(m, "the stack is empty");
    *out = m->stack[--m->count];
    return NULL;
}

static ts_status top(machine *m, node **out) {
    if (m->count <= floor_of(m))
        return bad(m, "the stack is empty");
    *out = m->stack[m->count - 1];
    return NULL;
}

/* Takes what lies above the last mark: items[count], valid until the next push. */
static ts_status pop_mark(machine *m, node ***out_items, size_t *out_count) {
    if (m->mark_count == 0)
        return bad(m, "no mark on the stack");
    size_t from = m->marks[--m->mark_count];
    *out_items = m->stack + from;
    *out_count = m->count - from;
    m->count = from;
    return NULL;
}

static ts_status push_number(machine *m, fe_pickle_kind kind, int64_t integer) {
    node *n = NULL;
    TS_TRY(make(m, kind, &n));
    n->as.integer = integer;
    push(m, n);
    return NULL;
}

static ts_status push_tuple(machine *m, node *const *items, size_t count) {
    node *n = NULL;
    TS_TRY(make(m, FE_PICKLE_TUPLE, &n));
    if (count) {
        n->as.list.items = TS_NEW_ARRAY(m->arena, node *, count);
        memcpy(n->as.list.items, items, count * sizeof *items);
        n->as.list.count = n->as.list.capacity = count;
    }
    push(m, n);
    return NULL;
}

static ts_status push_tuple_of(machine *m, size_t count) {
    if (m->count - floor_of(m) < count)
        return bad(m, "the stack is empty");
    m->count -= count;
    node *items[3];
    memcpy(items, m->stack + m->count, count * sizeof *items);
    return push_tuple(m, items, count);
}

static ts_status read_text(machine *m, uint64_t length, const char *what, ts_str *out) {
    if (m->in.failed || length > m->in.length - m->in.at)
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: %s of %llu bytes, %zu are left",
                             m->at, what, (unsigned long long)length, m->in.length - m->in.at);
    *out = (ts_str){(const char *)fe_cursor_bytes(&m->in, (size_t)length), (size_t)length};
    return NULL;
}

static ts_status push_str(machine *m, uint64_t length) {
    ts_str text = {0};
    TS_TRY(read_text(m, length, "a string", &text));
    if (!fe_text_is_utf8(text))
        return bad(m, "a string that is not UTF-8");
    node *n = NULL;
    TS_TRY(make(m, FE_PICKLE_STR, &n));
    n->as.text = text;
    push(m, n);
    return NULL;
}

static ts_status push_bytes(machine *m, uint64_t length) {
    ts_str text = {0};
    TS_TRY(read_text(m, length, "bytes", &text));
    node *n = NULL;
    TS_TRY(make(m, FE_PICKLE_BYTES, &n));
    n->as.text = text;
    push(m, n);
    return NULL;
}

static ts_status push_long(machine *m, uint64_t length) {
    ts_str text = {0};
    TS_TRY(read_text(m, length, "a number", &text));
    if (length > 8 && length <= 255) {
        node *n = NULL;
        TS_TRY(make(m, FE_PICKLE_BIG, &n));
        n->as.text = text;
        push(m, n);
        return NULL;
    }
    if (length > 8)
        return bad(m, "a number of more than 255 bytes");
    uint64_t bits = length && (text.data[length - 1] & 0x80) ? UINT64_MAX : 0;
    for (size_t i = (size_t)length; i--;)
        bits = bits << 8 | (unsigned char)text.data[i];
    return push_number(m, FE_PICKLE_INT, (int64_t)bits);
}

/* The list of what may be named. */
static bool find_global(ts_str name, unsigned allowed, node *n) {
    enum { SCRIPT = FE_PICKLE_SCRIPT, STATE = FE_PICKLE_STATE };
    if ((allowed & SCRIPT) && ts_str_starts_with(name, "__torch__.")) {
        n->global = FE_GLOBAL_CLASS;
        return true;
    }
    static const struct {
        const char *text;
        uint8_t global;
        uint8_t where;
    } globals[] = {
#define GLOBAL(id, text, where) {text, FE_GLOBAL_##id, where},
#include "frontend/archive/pickle_globals.def"
    };
    static const char *const opaque[] = {
#define OPAQUE(text) text,
#include "frontend/archive/pickle_globals.def"
    };
    for (size_t i = 0; (allowed & STATE) && i < sizeof opaque / sizeof *opaque; i++)
        if (ts_str_is(name, opaque[i])) {
            n->global = FE_GLOBAL_OPAQUE;
            return true;
        }
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if ((globals[i].where & allowed) && ts_str_is(name, globals[i].text)) {
            n->global = globals[i].global;
            return true;
        }
    static const struct {
        const char *text;
        int dtype;
    } storages[] = {
#define STORAGE(text, dtype) {text, RT_##dtype},
#include "frontend/archive/pickle_globals.def"
    };
    for (size_t i = 0; allowed && i < sizeof storages / sizeof *storages; i++)
        if (ts_str_is(name, storages[i].text)) {
            n->global = FE_GLOBAL_STORAGE;
            n->dtype = (int8_t)storages[i].dtype;
            n->has_nibbles = ts_str_is(name, "torch.QUInt4x2Storage");
            return true;
        }
    return false;
}

static ts_status push_global(machine *m, ts_str module, ts_str name) {
    ts_str full = ts_arena_format(m->arena, "%.*s.%.*s", (int)module.length, module.data,
                                  (int)name.length, name.data);
    if (!fe_text_is_utf8(full) || fe_text_has_control(full))
        return bad(m, "the name of a global holds bytes that no name has");
    node *n = NULL;
    TS_TRY(make(m, FE_PICKLE_GLOBAL, &n));
    n->as.text = full;
    bool is_python2 = ts_str_is(module, "__builtin__"); /* the name of builtins up to protocol 2 */
    ts_str known = is_python2 ? ts_arena_format(m->arena, "builtins.%.*s", TS_STR_ARG(name)) : full;
    if (!find_global(known, m->allowed, n))
        return ts_error_make(TS_ERR_INVALID_FILE,
                             "offset %zu: forbidden global %.*s: it is not one that such a file "
                             "needs, and nothing is ever executed", m->at, TS_STR_ARG(full));
    push(m, n);
    return NULL;
}

static ts_status read_line(machine *m, ts_str *out) {
    size_t left = m->in.length - m->in.at;
    const unsigned char *start = m->in.base + m->in.at;
    const unsigned char *end = left ? memchr(start, '\n', left > 4096 ? 4096 : left) : NULL;
    if (!end)
        return bad(m, "the name of a global has no end");
    *out = (ts_str){(const char *)start, (size_t)(end - start)};
    m->in.at += out->length + 1;
    return NULL;
}

static ts_status op_global(machine *m) {
    ts_str module = {0}, name = {0};
    TS_TRY(read_line(m, &module));
    TS_TRY(read_line(m, &name));
    return push_global(m, module, name);
}

static ts_status op_stack_global(machine *m) {
    node *name = NULL, *module = NULL;
    TS_TRY(pop(m, &name));
    TS_TRY(pop(m, &module));
    if (name->kind != FE_PICKLE_STR || module->kind != FE_PICKLE_STR ||
        name->as.text.length > 4096 || module->as.text.length > 4096)
        return bad(m, "STACK_GLOBAL needs two names");
    return push_global(m, module->as.text, name->as.text);
}

static ts_status op_put(machine *m, uint64_t index) {
    node *n = NULL;
    TS_TRY(top(m, &n));
    /* Writers number the memo from 0, so an index never exceeds the bytes read. */
    if (index >= m->in.length)
        return bad(m, "memo index beyond what the file can hold");
    if (index >= m->memo_count) {
        size_t slots = m->memo_count ? m->memo_count : 64;
        while (slots <= index)
            slots *= 2;
        node **memo = TS_NEW_ARRAY(m->arena, node *, slots);
        if (m->memo_count)
            memcpy(memo, m->memo, m->memo_count * sizeof *memo);
        m->memo = memo;
        m->memo_count = slots;
    }
    m->memo[index] = n;
    return NULL;
}

static ts_status op_get(machine *m, uint64_t index) {
    if (m->in.failed || index >= m->memo_count || !m->memo[index])
        return bad(m, "memo entry that was never written");
    push(m, m->memo[index]);
    return NULL;
}

static void append(machine *m, node *list, node *item) {
    TS_APPEND(m->arena, list->as.list.items, list->as.list.count, list->as.list.capacity, item);
}

static ts_status append_all(machine *m, node *const *items, size_t count) {
    node *list = NULL;
    TS_TRY(top(m, &list));
    if (list->kind != FE_PICKLE_LIST)
        return bad(m, "APPEND needs a list");
    for (size_t i = 0; i < count; i++)
        append(m, list, items[i]);
    return NULL;
}

/* A call whose result gets entries or a state later. */
static bool has_parts(const node *n) {
    return n->kind == FE_PICKLE_CALL &&
           (n->callee->global == FE_GLOBAL_ORDERED_DICT || n->callee->global == FE_GLOBAL_OPAQUE);
}

static ts_status set_all(machine *m, node *const *items, size_t count) {
    if (count % 2)
        return bad(m, "SETITEMS needs pairs");
    node *dict = NULL;
    TS_TRY(top(m, &dict));
    if (has_parts(dict)) {
        if (!dict->entries) {
            TS_TRY(make(m, FE_PICKLE_DICT, &dict->entries));
        }
        dict = dict->entries;
    }
    if (dict->kind != FE_PICKLE_DICT)
        return bad(m, "SETITEM needs a dict");
    for (size_t i = 0; i < count; i++)
        append(m, dict, items[i]);
    return NULL;
}

static ts_status op_call(machine *m, fe_pickle_kind kind) {
    node *args = NULL, *callee = NULL, *n = NULL;
    TS_TRY(pop(m, &args));
    TS_TRY(pop(m, &callee));
    if (callee->kind != FE_PICKLE_GLOBAL)
        return bad(m, "a call of something that is no global");
    if (kind == FE_PICKLE_CALL && callee->global == FE_GLOBAL_CLASS &&
        args->kind != FE_PICKLE_TUPLE) {
        /* PyTorch writes a member of an Enum as its class "called" with the bare value. */
        TS_TRY(push_tuple(m, &args, 1));
        TS_TRY(pop(m, &args));
    }
    if (args->kind != FE_PICKLE_TUPLE)
        return bad(m, "a call without a tuple of arguments");
    if (kind == FE_PICKLE_NEW && callee->global != FE_GLOBAL_CLASS && callee->global != FE_GLOBAL_OPAQUE)
        return bad(m, "NEWOBJ of something that is no class of the archive");
    TS_TRY(make(m, kind, &n));
    n->callee = callee;
    append(m, n, args);
    push(m, n);
    return NULL;
}

static ts_status op_build(machine *m) {
    node *state = NULL, *object = NULL;
    TS_TRY(pop(m, &state));
    TS_TRY(top(m, &object));
    if (object->kind != FE_PICKLE_NEW && !has_parts(object))
        return bad(m, "BUILD needs an object");
    if (object->state)
        return bad(m, "BUILD twice for one object");
    object->state = state;
    return NULL;
}

static ts_status op_persistent(machine *m) {
    node *id = NULL, *n = NULL;
    TS_TRY(pop(m, &id));
    TS_TRY(make(m, FE_PICKLE_PERSISTENT, &n));
    append(m, n, id);
    push(m, n);
    return NULL;
}

static ts_status op_float(machine *m) {
    const unsigned char *p = fe_cursor_bytes(&m->in, 8);
    if (!p)
        return bad(m, "the pickle ends in the middle");
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | p[i];
    node *n = NULL;
    TS_TRY(make(m, FE_PICKLE_FLOAT, &n));
    memcpy(&n->as.number, &bits, 8);
    push(m, n);
    return NULL;
}

static ts_status push_empty(machine *m, fe_pickle_kind kind) {
    node *n = NULL;
    TS_TRY(make(m, kind, &n));
    push(m, n);
    return NULL;
}

static ts_status op_mark(machine *m) {
    if (m->mark_count >= FE_PICKLE_MAX_DEPTH)
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: more than %d open marks", m->at,
                             FE_PICKLE_MAX_DEPTH);
    TS_APPEND(m->arena, m->marks, m->mark_count, m->mark_capacity, m->count);
    return NULL;
}

/* Opcodes of what stands beside the weights of a checkpoint, and in no script archive. */
static bool is_beside_weights(unsigned op) {
    return op == 'C' || op == 'B' || op == OP_BINBYTES8 || op == OP_EMPTY_SET || op == OP_ADDITEMS;
}

static ts_status step(machine *m, unsigned op) {
    node **items = NULL, *one[2];
    size_t count = 0;
    switch (is_beside_weights(op) && !(m->allowed & FE_PICKLE_STATE) ? 0 : op) {
    case OP_PROTO: {
        unsigned version = fe_cursor_u8(&m->in);
        if (m->at != 0 || version < 2 || version > 5)
            return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: pickle protocol %u, expected 2 "
                                 "to 5 at the start", m->at, version);
        return NULL;
    }
    case OP_FRAME:
        if (fe_cursor_u64(&m->in) > m->in.length - m->in.at)
            return bad(m, "a frame larger than the file");
        return NULL;
    case '(':
        return op_mark(m);
    case ')':
        return push_tuple(m, NULL, 0);
    case 't':
        TS_TRY(pop_mark(m, &items, &count));
        return push_tuple(m, items, count);
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3:
        return push_tuple_of(m, op - OP_TUPLE1 + 1);
    case ']':
        return push_empty(m, FE_PICKLE_LIST);
    case 'a':
        TS_TRY(pop(m, one));
        return append_all(m, one, 1);
    case 'e':
        TS_TRY(pop_mark(m, &items, &count));
        return append_all(m, items, count);
    case '}':
        return push_empty(m, FE_PICKLE_DICT);
    case 's':
        TS_TRY(pop(m, one + 1));
        TS_TRY(pop(m, one));
        return set_all(m, one, 2);
    case 'u':
        TS_TRY(pop_mark(m, &items, &count));
        return set_all(m, items, count);
    case 'N':
        return push_empty(m, FE_PICKLE_NONE);
    case OP_NEWTRUE:
    case OP_NEWFALSE:
        return push_number(m, FE_PICKLE_BOOL, op == OP_NEWTRUE);
    case 'J':
        return push_number(m, FE_PICKLE_INT, (int32_t)fe_cursor_u32(&m->in));
    case 'K':
        return push_number(m, FE_PICKLE_INT, fe_cursor_u8(&m->in));
    case 'M':
        return push_number(m, FE_PICKLE_INT, fe_cursor_u16(&m->in));
    case OP_LONG1:
        return push_long(m, fe_cursor_u8(&m->in));
    case OP_LONG4:
        return push_long(m, fe_cursor_u32(&m->in));
    case 'G':
        return op_float(m);
    case 'X':
        return push_str(m, fe_cursor_u32(&m->in));
    case OP_SHORT_BINUNICODE:
        return push_str(m, fe_cursor_u8(&m->in));
    case OP_BINUNICODE8:
        return push_str(m, fe_cursor_u64(&m->in));
    case 'C':
        return push_bytes(m, fe_cursor_u8(&m->in));
    case 'B':
        return push_bytes(m, fe_cursor_u32(&m->in));
    case OP_BINBYTES8:
        return push_bytes(m, fe_cursor_u64(&m->in));
    case OP_EMPTY_SET: /* a set beside the weights is a list here */
        return push_empty(m, FE_PICKLE_LIST);
    case OP_ADDITEMS:
        TS_TRY(pop_mark(m, &items, &count));
        return append_all(m, items, count);
    case 'q':
        return op_put(m, fe_cursor_u8(&m->in));
    case 'r':
        return op_put(m, fe_cursor_u32(&m->in));
    case OP_MEMOIZE:
        return op_put(m, m->memoize_next++);
    case 'h':
        return op_get(m, fe_cursor_u8(&m->in));
    case 'j':
        return op_get(m, fe_cursor_u32(&m->in));
    case 'c':
        return op_global(m);
    case OP_STACK_GLOBAL:
        return op_stack_global(m);
    case 'R':
        return op_call(m, FE_PICKLE_CALL);
    case OP_NEWOBJ:
        return op_call(m, FE_PICKLE_NEW);
    case 'b':
        return op_build(m);
    case 'Q':
        return op_persistent(m);
    }
    return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: pickle opcode 0x%02x is not one that "
                         "such a file needs", m->at, op);
}

/* The i-th node below n, or NULL after the last. */
static node *child(const node *n, size_t i) {
    bool has_items = n->kind == FE_PICKLE_TUPLE || n->kind == FE_PICKLE_LIST ||
                     n->kind == FE_PICKLE_DICT || n->kind >= FE_PICKLE_NEW;
    if (has_items) {
        if (i < n->as.list.count)
            return n->as.list.items[i];
        i -= n->as.list.count;
    }
    node *rest[2];
    size_t count = 0;
    if (n->state)
        rest[count++] = n->state;
    if (n->entries)
        rest[count++] = n->entries;
    return i < count ? rest[i] : NULL;
}

enum { UNSEEN, OPEN, DONE };

typedef struct path_entry {
    node *n;
    size_t next;
} path_entry;

/* One walk over everything below root: depth, cycles. */
static ts_status measure(machine *m, node *root) {
    path_entry *path = TS_NEW_ARRAY(m->arena, path_entry, FE_PICKLE_MAX_DEPTH);
    size_t length = 1;
    path[0].n = root;
    root->mark = OPEN;
    root->depth = 1;
    while (length) {
        node *n = path[length - 1].n, *below = child(n, path[length - 1].next++);
        if (!below) {
            n->mark = DONE;
            if (--length && path[length - 1].n->depth < n->depth + 1)
                path[length - 1].n->depth = n->depth + 1;
        } else if (below->mark == OPEN) {
            m->at = below->offset;
            return bad(m, "a value that contains itself");
        } else if (below->mark == DONE) {
            if (n->depth < below->depth + 1)
                n->depth = below->depth + 1;
        } else if (length == FE_PICKLE_MAX_DEPTH) {
            m->at = below->offset;
            return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: nested more than %d deep",
                                 m->at, FE_PICKLE_MAX_DEPTH);
        } else {
            below->mark = OPEN;
            below->depth = 1;
            path[length].n = below;
            path[length++].next = 0;
        }
        if (n->depth > FE_PICKLE_MAX_DEPTH) {
            m->at = n->offset;
            return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: nested more than %d deep",
                                 m->at, FE_PICKLE_MAX_DEPTH);
        }
    }
    return NULL;
}

ts_status fe_pickle_read(ts_arena *arena, ts_str bytes, unsigned allowed, size_t *used,
                         fe_pickle_node **out) {
    *out = NULL;
    machine m = {.arena = arena, .allowed = allowed, .capacity = 64};
    m.stack = TS_NEW_ARRAY(arena, node *, m.capacity);
    m.in = fe_cursor_at((const unsigned char *)bytes.data, bytes.length, 0);
    for (;;) {
        m.at = m.in.at;
        unsigned op = fe_cursor_u8(&m.in);
        if (m.in.failed)
            return bad(&m, "the pickle ends without STOP");
        if (m.at == 0 && op != OP_PROTO)
            return bad(&m, "not a pickle of protocol 2 to 5");
        if (op == '.')
            break;
        TS_TRY(step(&m, op));
        if (m.in.failed)
            return bad(&m, "the pickle ends in the middle");
    }
    if (m.count != 1 || m.mark_count)
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: %zu values are left at the end, "
                             "expected 1", m.at, m.count);
    if (used)
        *used = m.in.at;
    else if (m.in.at != m.in.length)
        return bad(&m, "bytes after the end of the pickle");
    TS_TRY(measure(&m, m.stack[0]));
    *out = m.stack[0];
    return NULL;
}

const char *fe_pickle_kind_text(const fe_pickle_node *n) {
    switch ((fe_pickle_kind)n->kind) {
    case FE_PICKLE_NONE: return "None";
    case FE_PICKLE_BOOL: return "a bool";
    case FE_PICKLE_INT: return "an int";
    case FE_PICKLE_BIG: return "an int of more than 64 bits";
    case FE_PICKLE_FLOAT: return "a float";
    case FE_PICKLE_STR: return "a string";
    case FE_PICKLE_TUPLE: return "a tuple";
    case FE_PICKLE_LIST: return "a list";
    case FE_PICKLE_DICT: return "a dict";
    case FE_PICKLE_GLOBAL: return "a global";
    case FE_PICKLE_NEW: return "an object";
    case FE_PICKLE_CALL: return "a call";
    case FE_PICKLE_PERSISTENT: return "a storage";
    case FE_PICKLE_BYTES: return "bytes";
    }
    return "?";
}
