/* runtime/format/tsm.h - the bytes of a .tsm: written by codegen, read by the runtime.
 *
 *   header | section table | sections, each at a multiple of TSM_ALIGN
 *
 * All numbers are little-endian. docs/artifact.md describes the content of each section; the
 * functions here check what can be checked without understanding the content. */
#ifndef RUNTIME_FORMAT_TSM_H
#define RUNTIME_FORMAT_TSM_H

#include "runtime/base/buffer.h"
#include "runtime/base/status.h"

#define TSM_MAGIC "\x89TSM\r\n\x1a\n" /* a text-mode transfer or a 7-bit channel damages it */

enum {
    TSM_FORMAT = 3,              /* raised when older readers must refuse */
    TSM_ABI = 2,                 /* raised when services.def or host_abi.h change meaning */
    TSM_ALIGN = 4096,            /* of sections: code and weights are mapped */
    TSM_WEIGHT_ALIGN = 64,
    TSM_MAX_SECTIONS = 64,
    TSM_CHECKSUM_BLOCK = 1 << 20,
    TSM_ENDIAN = 0x01020304,
    TSM_MACHINE_X86_64 = 1,
    TSM_MACHINE_AARCH64 = 2
};

typedef enum tsm_section_kind {
    TSM_SECTION_PROGRAM = 1, /* tables: entries, types, classes, constants, places (program.c) */
    TSM_SECTION_CODE = 2,    /* one a level: code image, mapped read-only and executable */
    TSM_SECTION_WEIGHTS = 3, /* mapped read-only, shared */
    TSM_SECTION_DEVICE = 4,  /* kernels of another device: source or binary */
    TSM_SECTION_SOURCE = 5   /* the IR, for profiles; optional */
} tsm_section_kind;

typedef struct tsm_header {
    char magic[8];
    uint32_t format, endian;
    uint32_t abi, pointer_bytes;
    uint64_t file_bytes;
    uint32_t section_count, flags;
    uint64_t table_checksum; /* of the section table */
    uint64_t reserved;
    uint64_t header_checksum; /* of the bytes before it */
} tsm_header;

typedef struct tsm_section {
    uint32_t kind;
    uint32_t machine;  /* CODE: TSM_MACHINE_ */
    uint64_t offset, bytes;
    uint64_t checksum; /* tsm_checksum of the content */
    uint64_t features; /* CODE: cpu features needed, TSM_CPU_ bits */
    char level[24];    /* CODE: "x86-64-v3"; terminated */
} tsm_section;

/* What code of a level may use; the loader compares with the processor. */
enum {
    TSM_CPU_SSE42 = 1, TSM_CPU_AVX = 2, TSM_CPU_AVX2 = 4, TSM_CPU_FMA = 8, TSM_CPU_BMI2 = 16,
    TSM_CPU_F16C = 32, TSM_CPU_AVX512 = 64, /* F, BW, CD, DQ, VL */
    TSM_CPU_POPCNT = 128, TSM_CPU_AVX512_VNNI = 256, TSM_CPU_AVX512_BF16 = 512,
    TSM_CPU_NEON = 1024, TSM_CPU_OTHER = 2048, /* of --cpu=native on other machines than x86-64: not checked */
    /* bits 12 to 17: cpu_features.def */
    TSM_CPU_AMX_BF16 = 1 << 18 /* matrix tiles, and a kernel that lets a process have them */
};
#define TSM_CPU_V2 (TSM_CPU_SSE42 | TSM_CPU_POPCNT)
#define TSM_CPU_V3                                                                                 \
    (TSM_CPU_V2 | TSM_CPU_AVX | TSM_CPU_AVX2 | TSM_CPU_FMA | TSM_CPU_BMI2 | TSM_CPU_F16C)
/* What this processor has. */
uint64_t tsm_cpu_features(void);
/* Asks the kernel for what of `features` has to be asked for (AMX's registers, for the whole process, once); false:
 * it refuses. */
bool tsm_cpu_acquire(uint64_t features);
/* "AVX2, FMA"; returns the length. */
size_t tsm_cpu_names(uint64_t features, char *out, size_t capacity);

/* A code image: this, then offsets[function_count] (from the image's start), then code. */
typedef struct tsm_code_header {
    uint32_t function_count;
    uint32_t code_offset;  /* where instructions and constants begin */
    uint64_t weight_bytes; /* of the weights section; 0: there is none */
    uint64_t companions;   /* tsm_companions of the file that the code was written into */
} tsm_code_header;

/* Kinds of types in the PROGRAM section. */
typedef enum tsm_type_kind {
    TSM_TYPE_NONE, TSM_TYPE_BOOL, TSM_TYPE_INT, TSM_TYPE_FLOAT, TSM_TYPE_COMPLEX, TSM_TYPE_NUMBER,
    TSM_TYPE_STR, TSM_TYPE_DEVICE, TSM_TYPE_GENERATOR, TSM_TYPE_TENSOR, TSM_TYPE_LIST,
    TSM_TYPE_TUPLE, TSM_TYPE_DICT, TSM_TYPE_OPTIONAL, TSM_TYPE_UNION, TSM_TYPE_CLASS,
    TSM_TYPE_ENUM, TSM_TYPE_FUTURE, TSM_TYPE_CAPSULE, TSM_TYPE_ANY, TSM_TYPE_COUNT
} tsm_type_kind;

/* Kinds of needs of an entry in the PROGRAM section: ir_need_kind. */
typedef enum tsm_need_kind {
    TSM_NEED_DTYPE, TSM_NEED_RANK, TSM_NEED_SIZE, TSM_NEED_MULTIPLE, TSM_NEED_SAME, TSM_NEED_COUNT
} tsm_need_kind;
enum {
    TSM_NEED_RANKS = 9,      /* a rank that is not below is not asked */
    TSM_NEED_SIZED_RANKS = 6 /* sizes of tensors of this rank and more are not asked */
};

enum {
    TSM_DIM_UNKNOWN = -1,
    TSM_DIM_SYMBOL = -2, /* and below: symbol number TSM_DIM_SYMBOL - dim */
    TSM_LAYOUT_ANY = 0, TSM_LAYOUT_CONTIGUOUS = 1, TSM_LAYOUT_CHANNELS_LAST = 2
};

/* XXH64 over blocks of TSM_CHECKSUM_BLOCK bytes, each seeded with the one before: a writer can
 * stream. tsm_checksum_update takes whole blocks but for the last one. */
uint64_t tsm_checksum(const void *data, size_t length);
uint64_t tsm_checksum_update(uint64_t state, const void *block, size_t length);

/* Checks header and section table against the file's size; checksums of all sections but WEIGHTS.
 * *out_sections points into data. INVALID_FILE says what is wrong. */
ts_status tsm_validate(const void *data, size_t length, const tsm_section **out_sections,
                       size_t *out_count) TS_WARN_UNUSED;
ts_status tsm_validate_section(const void *data, const tsm_section *section) TS_WARN_UNUSED;
const char *tsm_section_name(uint32_t kind); /* "program"; "unknown" */
/* A checksum of what a code section relies on: its own row, and what all sections but code hold.
 * Code follows the program's tables and the weights' places without asking. */
uint64_t tsm_companions(const tsm_section *sections, size_t count, const tsm_section *code);

/* ---- a reader that cannot pass the end ---- */
typedef struct tsm_reader {
    const unsigned char *data;
    size_t length, at;
    bool failed; /* set by a read beyond the end; reads then give 0 */
} tsm_reader;

uint8_t tsm_read_u8(tsm_reader *r);
uint32_t tsm_read_u32(tsm_reader *r);
uint64_t tsm_read_u64(tsm_reader *r);
int64_t tsm_read_i64(tsm_reader *r);
double tsm_read_f64(tsm_reader *r);
ts_str tsm_read_str(tsm_reader *r); /* points into the data; followed there by a 0 byte */
/* A count of records of at least `bytes` each: fails where they cannot fit into what is left. */
uint32_t tsm_read_count(tsm_reader *r, size_t bytes);

/* ---- and its writer ---- */
void tsm_put_u8(ts_buffer *b, uint8_t v);
void tsm_put_u32(ts_buffer *b, uint32_t v);
void tsm_put_u64(ts_buffer *b, uint64_t v);
void tsm_put_i64(ts_buffer *b, int64_t v);
void tsm_put_f64(ts_buffer *b, double v);
void tsm_put_str(ts_buffer *b, ts_str s);

#endif
