/* tsrt.h - the runtime of compiled TorchScript models (libtsrt): the whole public interface.
 *
 * A model (tsrt_model) is what a .tsm file holds: immutable, counted, shared by threads. A session
 * (tsrt_session) holds the state, memory and thread budget of one user and is used by one thread
 * at a time. Values (tsrt_value) are what goes in and comes out: numbers, strings, tensors, lists,
 * tuples, dicts, objects.
 *
 * Functions that can fail return tsrt_status *: NULL is success; anything else is an error that
 * the caller owns and releases with tsrt_status_release. On an error the outputs are NULL or
 * zeroed. Structs that may grow begin with their size: set it to sizeof of the struct.
 *
 * C99 and C++ clean. Since version 1.0 unless said otherwise. */
#ifndef TSRT_H
#define TSRT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define TSRT_API __attribute__((visibility("default")))
#else
#define TSRT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TSRT_VERSION_MAJOR 0
#define TSRT_VERSION_MINOR 1
#define TSRT_VERSION_PATCH 0

/* The library's version: major * 10000 + minor * 100 + patch. Thread-safe. */
TSRT_API uint32_t tsrt_version(void);
/* "0.1.0": static text. Thread-safe. */
TSRT_API const char *tsrt_version_text(void);

/* ================= errors ================= */

typedef struct tsrt_status tsrt_status;

typedef enum tsrt_code {
    TSRT_OK = 0,
    TSRT_ERR_NO_MEMORY = 1,     /* an allocation failed or a memory limit was met */
    TSRT_ERR_INVALID_FILE = 2,  /* the artifact is damaged, truncated, foreign */
    TSRT_ERR_INVALID_INPUT = 3, /* an argument of the caller is wrong (dtype, rank, size, name) */
    TSRT_ERR_SYNTAX = 4,        /* not returned by the runtime */
    TSRT_ERR_TYPE = 5,          /* not returned by the runtime */
    TSRT_ERR_UNSUPPORTED = 6,   /* right, and not supported here: the message says what */
    TSRT_ERR_RAISED = 7,        /* the model raised a Python exception: tsrt_status_exception */
    TSRT_ERR_IO = 8,            /* the system refused: the message holds its text */
    TSRT_ERR_CANCELLED = 9,     /* cancelled, or the deadline passed */
    TSRT_ERR_INTERNAL = 10      /* a fault of the library: report it */
} tsrt_code;

/* All of these take NULL (no error) and lend text that lives as long as the status. Thread-safe. */
TSRT_API tsrt_code tsrt_status_code(const tsrt_status *status);
TSRT_API const char *tsrt_status_message(const tsrt_status *status);
/* The Python class of a raised exception ("ValueError"), or "". */
TSRT_API const char *tsrt_status_exception(const tsrt_status *status);
/* Where in the model's source: file (not terminated; length in *out_length), line and column from
 * 1; 0 where unknown. Any of the outputs may be NULL. */
TSRT_API const char *tsrt_status_place(const tsrt_status *status, size_t *out_length,
                                       int *out_line, int *out_column);
/* "while a\nwhile b": what was being done, innermost first, or "". */
TSRT_API const char *tsrt_status_trail(const tsrt_status *status);
TSRT_API void tsrt_status_release(tsrt_status *status);

/* ================= models ================= */

typedef struct tsrt_model tsrt_model;
typedef struct tsrt_session tsrt_session;
typedef struct tsrt_value tsrt_value;

typedef void (*tsrt_text_function)(void *user, const char *text, size_t length);

typedef struct tsrt_load_options {
    size_t size;             /* sizeof(tsrt_load_options) */
    int verify_weights;      /* also check the checksum of the weights (touches all of them) */
    const char *cpu_level;   /* "x86-64-v3": take this level of the file; NULL: the best that the
                                processor has */
    tsrt_text_function log;  /* notes ("cuda: no driver, running on the cpu"); may be NULL */
    void *log_user;
} tsrt_load_options;

/* Maps a file and checks it; nothing of it runs before the checks are done. The file must not be
 * changed in place while it is loaded (replacing it by rename is fine).
 * options may be NULL. Errors: INVALID_FILE, IO, UNSUPPORTED (this processor lacks what the code
 * needs), NO_MEMORY. Thread-safe. */
TSRT_API tsrt_status *tsrt_model_load(const char *path, const tsrt_load_options *options,
                                      tsrt_model **out_model);
/* The same from memory; the bytes are borrowed and must outlive the model and every value that
 * came from it. data should be aligned to 64 bytes, else the weights are copied. */
TSRT_API tsrt_status *tsrt_model_load_bytes(const void *data, size_t length,
                                            const tsrt_load_options *options,
                                            tsrt_model **out_model);
/* A model that was compiled with `tsc --emit=obj` and linked into the program, or with --emit=so:
 * its header declares the object to pass here. The same errors as loading a file. */
typedef struct tsrt_linked_model tsrt_linked_model;
TSRT_API tsrt_status *tsrt_model_open_linked(const tsrt_linked_model *linked,
                                             tsrt_model **out_model);
TSRT_API tsrt_model *tsrt_model_retain(tsrt_model *model);
TSRT_API void tsrt_model_release(tsrt_model *model); /* NULL is fine */
/* Checks every checksum of the file, the weights' included. INVALID_FILE names the section. */
TSRT_API tsrt_status *tsrt_model_verify(const tsrt_model *model);

typedef struct tsrt_model_info {
    size_t size;
    const char *compiler;     /* "tsc 0.1.0" */
    const char *source;       /* name of the compiled file */
    const char *levels;       /* CPU levels in the file: "x86-64-v3,x86-64-v4" */
    const char *level;        /* the one that was chosen */
    const char *target;       /* "cpu", "cuda", "opencl": what it was compiled for */
    const char *options;      /* build options, as text */
    uint64_t file_bytes, weight_bytes, code_bytes; /* code of the chosen level */
    uint64_t load_ns;         /* time that loading took */
    size_t entry_count, section_count;
} tsrt_model_info;

/* Texts are lent for the model's life. Thread-safe. */
TSRT_API tsrt_status *tsrt_model_get_info(const tsrt_model *model, tsrt_model_info *out_info);

typedef struct tsrt_section_info {
    size_t size;
    const char *name; /* "code", "weights", ... */
    uint64_t offset, bytes, checksum;
} tsrt_section_info;

TSRT_API tsrt_status *tsrt_model_get_section(const tsrt_model *model, size_t index,
                                             tsrt_section_info *out_info);

typedef struct tsrt_entry_info {
    size_t size;
    const char *name; /* "forward" */
    size_t input_count, output_count;
    const char *output_type; /* text of the whole result: "Tuple[Tensor, int]" */
    size_t kernel_count;     /* compiled kernels */
    size_t compiled_count;   /* operators that run as compiled code */
    size_t dynamic_count;    /* operators that take the dynamic path (reference kernels) */
    int64_t arena_bytes;     /* planned memory of a run; -1 not known before the run */
} tsrt_entry_info;

typedef struct tsrt_port_info {
    size_t size;
    const char *name;
    const char *type;    /* "float32[N,3,224,224]", "List[int]", ... */
    int has_default;     /* inputs: may be left out */
} tsrt_port_info;

/* Index of an entry, or -1. name NULL: the first entry. */
TSRT_API int64_t tsrt_model_find_entry(const tsrt_model *model, const char *name);
TSRT_API tsrt_status *tsrt_model_get_entry(const tsrt_model *model, size_t entry,
                                           tsrt_entry_info *out_info);
TSRT_API tsrt_status *tsrt_model_get_input(const tsrt_model *model, size_t entry, size_t index,
                                           tsrt_port_info *out_info);
/* Outputs: the members of a result that is a tuple, else the result itself. */
TSRT_API tsrt_status *tsrt_model_get_output(const tsrt_model *model, size_t entry, size_t index,
                                            tsrt_port_info *out_info);
/* The operators that take the dynamic path, one a line: "name xCOUNT file:line". Lent. */
TSRT_API const char *tsrt_model_dynamic_operators(const tsrt_model *model, size_t entry);
/* What the inputs of an entry must satisfy, beside their types: a line for each, as in
 * "x.size(-1) == 784". tsrt_run checks it first and returns INVALID_INPUT with that line and what it
 * found. Lent; "" where there is nothing. Since 0.1. */
TSRT_API const char *tsrt_model_requirements(const tsrt_model *model, size_t entry);
/* The same of what the program itself tests, or comes to only after it did something that shows: not
 * checked before it runs, it raises its own exception. Lent. Since 0.1. */
TSRT_API const char *tsrt_model_own_checks(const tsrt_model *model, size_t entry);
/* What the fast paths of an entry take for granted, a line for each path, in the order in which they
 * are tried; other inputs give the same results, slower. Lent; "" where all inputs take one path.
 * Since 0.1. */
TSRT_API const char *tsrt_model_fast_paths(const tsrt_model *model, size_t entry);
/* What a run needs for the results of compiled kernels: the arena, how much of it is alive at once at
 * most, and a formula of the sizes' letters for that and all other results. Lent; "" where the file
 * does not say. Since 0.1. */
TSRT_API const char *tsrt_model_memory(const tsrt_model *model, size_t entry);

/* ================= sessions ================= */

typedef struct tsrt_session_options {
    size_t size;
    int threads;              /* at most this many running threads; 0: what affinity and cgroup
                                 allow */
    tsrt_text_function print; /* receives what the model prints; NULL: nowhere */
    void *print_user;
    int has_seed;             /* seed the default generator, as torch.manual_seed(seed) */
    uint64_t seed;
    uint64_t memory_limit;    /* bytes of tensors that a run may hold; 0: no limit */
    int depth_limit;          /* of nested calls; 0: the default */
    const char *device;       /* "cpu", "cuda:0", "opencl", "auto"; NULL: what the model says */
    int fallback_to_cpu;      /* where that device is missing: run on the cpu and log a note */
} tsrt_session_options;

/* A session retains its model. options may be NULL. Thread-safe. */
TSRT_API tsrt_status *tsrt_session_create(tsrt_model *model, const tsrt_session_options *options,
                                          tsrt_session **out_session);
TSRT_API void tsrt_session_release(tsrt_session *session); /* NULL is fine; results live on */
TSRT_API tsrt_status *tsrt_session_set_threads(tsrt_session *session, int threads);
TSRT_API tsrt_status *tsrt_session_seed(tsrt_session *session, uint64_t seed);
/* Stops the run in progress, or the next one, with CANCELLED: within about 10 ms. The only
 * function that another thread or a signal handler may call while a run goes on. */
TSRT_API void tsrt_session_cancel(tsrt_session *session);

typedef struct tsrt_run_options {
    size_t size;
    uint64_t deadline_ns; /* of CLOCK_MONOTONIC; 0: none */
} tsrt_run_options;

/* Calls an entry (index from tsrt_model_find_entry).
 *
 * args   one value for each input in order, borrowed for the call; NULL, or fewer than there are:
 *        the default. A tensor that the model changes in place is changed in the caller's memory.
 * out_result  the result, owned by the caller; it outlives session and model.
 *
 * After an error, a raised exception included, the session stays usable. Errors: INVALID_INPUT,
 * RAISED, CANCELLED, NO_MEMORY, UNSUPPORTED, INTERNAL. Thread-compatible. */
TSRT_API tsrt_status *tsrt_run(tsrt_session *session, size_t entry, tsrt_value *const *args,
                               size_t arg_count, const tsrt_run_options *options,
                               tsrt_value **out_result);

typedef struct tsrt_statistics {
    size_t size;
    uint64_t run_count;
    uint64_t last_run_ns;
    uint64_t peak_bytes;      /* tensors and arena of the session, at most */
    uint64_t held_bytes;      /* now */
    uint64_t allocation_count; /* of tensor memory from the system since the session began */
    uint64_t dynamic_call_count; /* operators run by reference kernels since the session began */
} tsrt_statistics;

TSRT_API tsrt_status *tsrt_session_get_statistics(const tsrt_session *session,
                                                  tsrt_statistics *out_statistics);

/* Records every kernel and operator from now on. */
TSRT_API tsrt_status *tsrt_profile_begin(tsrt_session *session);
/* Stops, and gives the trace as JSON text for Perfetto or chrome://tracing (a str value). */
TSRT_API tsrt_status *tsrt_profile_end(tsrt_session *session, tsrt_value **out_json);

/* ================= values ================= */

typedef enum tsrt_kind {
    TSRT_NONE = 0,
    TSRT_BOOL = 1,
    TSRT_INT = 2,
    TSRT_FLOAT = 3,
    TSRT_COMPLEX = 4,
    TSRT_STR = 5,
    TSRT_TENSOR = 6,
    TSRT_LIST = 7,
    TSRT_TUPLE = 8,  /* also a NamedTuple */
    TSRT_DICT = 9,
    TSRT_OBJECT = 10,
    TSRT_ENUM = 11,
    TSRT_DEVICE = 12,
    TSRT_OTHER = 13
} tsrt_kind;

/* Element types, numbered as PyTorch numbers them. */
typedef enum tsrt_dtype {
    TSRT_UINT8 = 0, TSRT_INT8 = 1, TSRT_INT16 = 2, TSRT_INT32 = 3, TSRT_INT64 = 4,
    TSRT_FLOAT16 = 5, TSRT_FLOAT32 = 6, TSRT_FLOAT64 = 7, TSRT_COMPLEX32 = 8,
    TSRT_COMPLEX64 = 9, TSRT_COMPLEX128 = 10, TSRT_BOOL8 = 11, TSRT_QINT8 = 12,
    TSRT_QUINT8 = 13, TSRT_QINT32 = 14, TSRT_BFLOAT16 = 15
} tsrt_dtype;

/* A value is a counted handle: each that a function hands out is released once. */
TSRT_API tsrt_value *tsrt_value_retain(tsrt_value *value);
TSRT_API void tsrt_value_release(tsrt_value *value); /* NULL is fine */

/* ---- making ---- */
TSRT_API tsrt_status *tsrt_value_make_none(tsrt_value **out_value);
TSRT_API tsrt_status *tsrt_value_make_bool(int b, tsrt_value **out_value);
TSRT_API tsrt_status *tsrt_value_make_int(int64_t i, tsrt_value **out_value);
TSRT_API tsrt_status *tsrt_value_make_float(double f, tsrt_value **out_value);
TSRT_API tsrt_status *tsrt_value_make_complex(double re, double im, tsrt_value **out_value);
/* UTF-8. */
TSRT_API tsrt_status *tsrt_value_make_str(const char *text, size_t length, tsrt_value **out_value);
/* Containers keep the items' contents; the handles given stay the caller's. */
TSRT_API tsrt_status *tsrt_value_make_list(tsrt_value *const *items, size_t count,
                                           tsrt_value **out_value);
TSRT_API tsrt_status *tsrt_value_make_tuple(tsrt_value *const *items, size_t count,
                                            tsrt_value **out_value);
TSRT_API tsrt_status *tsrt_value_make_dict(tsrt_value *const *keys, tsrt_value *const *values,
                                           size_t count, tsrt_value **out_value);
/* "cpu", "cuda:0", ... */
TSRT_API tsrt_status *tsrt_value_make_device(const char *text, tsrt_value **out_value);
/* A new contiguous tensor with undefined contents. */
TSRT_API tsrt_status *tsrt_value_make_tensor(tsrt_dtype dtype, const int64_t *sizes, int rank,
                                             tsrt_value **out_value);
/* A tensor over the caller's memory. strides count elements, are not negative, and may be NULL
 * (contiguous). The memory is read, and written where the model writes to the tensor, until every
 * reference is gone; release (may be NULL) is then called with user. data may have any address
 * that suits the element type. */
TSRT_API tsrt_status *tsrt_value_wrap_tensor(tsrt_dtype dtype, const int64_t *sizes,
                                             const int64_t *strides, int rank, void *data,
                                             void (*release)(void *user), void *user,
                                             tsrt_value **out_value);
/* A quantized tensor (dtype QINT8, QUINT8 or QINT32, per tensor): contiguous copies of ints. */
TSRT_API tsrt_status *tsrt_value_make_quantized(tsrt_dtype dtype, const int64_t *sizes, int rank,
                                                const void *ints, double scale, int64_t zero_point,
                                                tsrt_value **out_value);

/* ---- reading: all thread-safe; what is lent lives as long as the value ---- */
TSRT_API tsrt_kind tsrt_value_kind(const tsrt_value *value); /* NULL: NONE */
TSRT_API int tsrt_value_bool(const tsrt_value *value);       /* 0 where it is no bool */
TSRT_API int64_t tsrt_value_int(const tsrt_value *value);    /* of an INT or a BOOL; else 0 */
TSRT_API double tsrt_value_float(const tsrt_value *value);   /* of a FLOAT, INT or BOOL; else 0 */
TSRT_API void tsrt_value_complex(const tsrt_value *value, double *out_re, double *out_im);
/* UTF-8, terminated; "" where it is no string. out_length may be NULL. */
TSRT_API const char *tsrt_value_str(const tsrt_value *value, size_t *out_length);
/* Members of a LIST, TUPLE or DICT, fields of an OBJECT; else 0. */
TSRT_API size_t tsrt_value_count(const tsrt_value *value);
/* Member i (of a dict: its value in order of insertion), a new handle. INVALID_INPUT beyond. */
TSRT_API tsrt_status *tsrt_value_item(const tsrt_value *value, size_t index,
                                      tsrt_value **out_item);
TSRT_API tsrt_status *tsrt_value_key(const tsrt_value *dict, size_t index, tsrt_value **out_key);
/* Name of a field of an OBJECT or NamedTuple, of an ENUM's member (index 0); NULL where none. */
TSRT_API const char *tsrt_value_field_name(const tsrt_value *value, size_t index,
                                           size_t *out_length);
/* Name of the class of an OBJECT, ENUM or NamedTuple; NULL for everything else. */
TSRT_API const char *tsrt_value_class_name(const tsrt_value *value, size_t *out_length);
/* str(value) or repr(value) as Python prints it: a STR value. */
TSRT_API tsrt_status *tsrt_value_to_str(const tsrt_value *value, int is_repr,
                                        tsrt_value **out_text);

typedef struct tsrt_tensor_view {
    size_t size;
    tsrt_dtype dtype;
    int rank;
    const int64_t *sizes, *strides; /* [rank]; strides in elements */
    void *data;                     /* first element */
    int64_t element_count;
    int is_contiguous;
} tsrt_tensor_view;

/* Looks into a TENSOR without copying; INVALID_INPUT where it is none. */
TSRT_API tsrt_status *tsrt_value_view_tensor(const tsrt_value *value, tsrt_tensor_view *out_view);
/* The same tensor as contiguous memory: itself, or a copy. */
TSRT_API tsrt_status *tsrt_value_contiguous(const tsrt_value *value, tsrt_value **out_value);
/* Parameters of a quantized tensor (per tensor); INVALID_INPUT where it is none. */
TSRT_API tsrt_status *tsrt_value_quantization(const tsrt_value *value, double *out_scale,
                                              int64_t *out_zero_point);
TSRT_API const char *tsrt_dtype_name(tsrt_dtype dtype);  /* "float32"; "?" for none */
TSRT_API size_t tsrt_dtype_bytes(tsrt_dtype dtype);      /* 0 for none */
TSRT_API int tsrt_dtype_parse(const char *name);         /* "float32" -> TSRT_FLOAT32; -1 */

/* ---- DLPack: include dlpack.h for the structs; they are only named here ---- */
struct DLManagedTensor;
struct DLManagedTensorVersioned;
/* Takes the capsule's tensor: its deleter runs when the last reference goes. On an error the
 * caller keeps it. CPU memory. UNSUPPORTED for another device or type. */
TSRT_API tsrt_status *tsrt_value_from_dlpack(struct DLManagedTensor *tensor,
                                             tsrt_value **out_value);
TSRT_API tsrt_status *tsrt_value_from_dlpack_versioned(struct DLManagedTensorVersioned *tensor,
                                                       tsrt_value **out_value);
/* A DLPack tensor that shares the value's memory; the receiver calls its deleter. */
TSRT_API tsrt_status *tsrt_value_to_dlpack(const tsrt_value *value,
                                           struct DLManagedTensor **out_tensor);
TSRT_API tsrt_status *tsrt_value_to_dlpack_versioned(const tsrt_value *value,
                                                     struct DLManagedTensorVersioned **out_tensor);

#ifdef __cplusplus
}
#endif

#endif
