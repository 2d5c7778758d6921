/* codegen/compile_parts.c - modules of LLVM to objects, in parallel and cached.
 *
 * A module goes to whoever compiles it as bitcode: a thread must not share LLVM's context with
 * another, and the bytes are what the cache is asked for. Every module takes this way, also on one
 * thread without a cache, so that what comes out depends on nothing else. */
#define _GNU_SOURCE
#include "codegen/compile_parts.h"

#include "runtime/base/file.h"
#include "runtime/base/hash.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm/Config/llvm-config.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

ts_status cg_parts_take(cg_unit *unit, cg_part **out, size_t *out_count) {
    *out = TS_NEW_ARRAY(unit->arena, cg_part, unit->full_count + 1);
    *out_count = 0;
    for (size_t i = 0; i <= unit->full_count; i++) {
        LLVMModuleRef m = i < unit->full_count ? unit->full[i] : unit->module;
        cg_part *p = &(*out)[(*out_count)++];
        *p = (cg_part){.target = unit->target, .cpu = unit->cpu, .features = unit->features,
                       .bitcode = LLVMWriteBitcodeToMemoryBuffer(m)};
        if (!p->bitcode)
            return ts_no_memory();
    }
    return NULL;
}

void cg_parts_release(cg_part *parts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (parts[i].bitcode)
            LLVMDisposeMemoryBuffer(parts[i].bitcode);
        free(parts[i].object);
        ts_status_release(parts[i].status);
        parts[i].bitcode = NULL;
        parts[i].object = NULL;
        parts[i].status = NULL;
    }
}

/* ---- the cache: one file for each object, named by what it was made of ---- */

typedef struct entry_header {
    char magic[8];
    uint64_t key[2], bytes, checksum;
} entry_header;

static const char entry_magic[8] = "tscobj1\n";

static void make_key(const cg_part *p, const cg_options *o, uint64_t key[2]) {
    ts_buffer text = {0};
    ts_buffer_format(&text, "LLVM %s;%s;%s;%s;O%d;", LLVM_VERSION_STRING, p->target->triple, p->cpu,
                     p->features, o->opt_level != 0);
    for (int i = 0; i < 2; i++) {
        uint64_t seed = ts_hash64(text.data, text.length, (uint64_t)i + 11);
        key[i] = ts_hash64(LLVMGetBufferStart(p->bitcode), LLVMGetBufferSize(p->bitcode), seed);
    }
    ts_buffer_deinit(&text);
}

static void entry_path(const cg_options *o, const uint64_t key[2], char *out, size_t size) {
    snprintf(out, size, "%.*s/%016llx%016llx.o", TS_STR_ARG(o->cache),
             (unsigned long long)key[0], (unsigned long long)key[1]);
}

/* A file that is not whole is no entry. */
static bool read_entry(cg_part *p, const cg_options *o, const uint64_t key[2]) {
    char path[4096];
    ts_mapped_file file;
    entry_path(o, key, path, sizeof path);
    ts_status status = ts_file_map(path, &file);
    if (status) {
        ts_status_release(status);
        return false;
    }
    entry_header h;
    bool good = file.length >= sizeof h;
    if (good) {
        memcpy(&h, file.data, sizeof h);
        const unsigned char *bytes = file.data + sizeof h;
        good = memcmp(h.magic, entry_magic, sizeof h.magic) == 0 && h.key[0] == key[0] &&
               h.key[1] == key[1] && h.bytes == file.length - sizeof h && h.bytes &&
               h.checksum == ts_hash64(bytes, (size_t)h.bytes, 0) &&
               (p->object = malloc((size_t)h.bytes)) != NULL;
        if (good) {
            memcpy(p->object, bytes, (size_t)h.bytes);
            p->object_bytes = (size_t)h.bytes;
        }
    }
    ts_file_unmap(&file);
    return good;
}

/* The cache is a help: where it cannot be written the compilation goes on. */
static void write_entry(const cg_part *p, const cg_options *o, const uint64_t key[2]) {
    char path[4096];
    entry_path(o, key, path, sizeof path);
    entry_header h = {.key = {key[0], key[1]}, .bytes = p->object_bytes,
                      .checksum = ts_hash64(p->object, p->object_bytes, 0)};
    memcpy(h.magic, entry_magic, sizeof h.magic);
    ts_file_part parts[2] = {{.data = &h, .length = sizeof h},
                             {.data = p->object, .length = p->object_bytes}};
    ts_status_release(ts_file_write(path, parts, 2));
}

/* ---- one part ---- */

static ts_status parse_and_emit(cg_part *p, cg_unit *unit) {
    char *message = NULL;
    if (LLVMParseBitcodeInContext2(unit->context, p->bitcode, &unit->module))
        return ts_error_make(TS_ERR_INTERNAL, "LLVM does not read what it wrote");
    LLVMTargetRef target;
    if (LLVMGetTargetFromTriple(p->target->triple, &target, &message)) {
        LLVMDisposeMessage(message);
        return ts_error_make(TS_ERR_INTERNAL, "LLVM has no target %s", p->target->triple);
    }
    TS_TRY(cg_unit_make_machine(unit, target));
    TS_TRY(cg_unit_optimise(unit));
    LLVMMemoryBufferRef object = NULL;
    TS_TRY(cg_unit_emit(unit, LLVMObjectFile, &object));
    p->object_bytes = LLVMGetBufferSize(object);
    p->object = malloc(p->object_bytes + 1);
    if (p->object)
        memcpy(p->object, LLVMGetBufferStart(object), p->object_bytes);
    LLVMDisposeMemoryBuffer(object);
    return p->object ? NULL : ts_no_memory();
}

static void compile_part(cg_part *p, const cg_options *options) {
    uint64_t key[2] = {0, 0};
    if (options->cache.length) {
        make_key(p, options, key);
        if (read_entry(p, options, key))
            return;
    }
    cg_unit unit = {.target = p->target, .options = options, .cpu = p->cpu, .features = p->features};
    unit.context = LLVMContextCreate();
    p->status = parse_and_emit(p, &unit);
    cg_unit_deinit(&unit);
    LLVMDisposeMemoryBuffer(p->bitcode);
    p->bitcode = NULL;
    if (!p->status && options->cache.length)
        write_entry(p, options, key);
}

/* ---- all of them ---- */

typedef struct job {
    cg_part *parts;
    size_t count;
    const cg_options *options;
    _Atomic size_t next;
} job;

static void *work(void *user) {
    job *j = user;
    for (size_t i; (i = atomic_fetch_add(&j->next, 1)) < j->count;)
        compile_part(&j->parts[i], j->options);
    return NULL;
}

enum { MAX_THREADS = 64 };
static const size_t stack_bytes = (size_t)16 << 20; /* LLVM walks expressions recursively */

ts_status cg_parts_compile(cg_part *parts, size_t count, const cg_options *options) {
    job j = {.parts = parts, .count = count, .options = options};
    pthread_t threads[MAX_THREADS];
    size_t wanted = options->jobs < 1 ? 1 : (size_t)options->jobs, made = 0;
    wanted = wanted < count ? wanted : count;
    pthread_attr_t attributes;
    if (wanted > 1 && pthread_attr_init(&attributes) == 0) {
        pthread_attr_setstacksize(&attributes, stack_bytes);
        while (made < MAX_THREADS && made + 1 < wanted &&
               pthread_create(&threads[made], &attributes, work, &j) == 0)
            made++;
        pthread_attr_destroy(&attributes);
    }
    work(&j);
    for (size_t i = 0; i < made; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < count; i++)
        if (parts[i].status) {
            ts_status status = parts[i].status;
            parts[i].status = NULL;
            return status;
        }
    return NULL;
}
