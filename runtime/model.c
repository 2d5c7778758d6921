/* runtime/model.c - loading: map, check, choose a CPU level, map its code. Nothing of a file runs
 * before all checks but the weights' checksum are done. */
#define _GNU_SOURCE
#include "runtime/runtime_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__aarch64__)
enum { THIS_MACHINE = TSM_MACHINE_AARCH64 };
#else
enum { THIS_MACHINE = TSM_MACHINE_X86_64 };
#endif

/* ---- code ---- */

static int feature_count(uint64_t f) {
    int n = 0;
    for (; f; f &= f - 1)
        n++;
    return n;
}

static ts_status choose_level(tsrt_model *m, const char *wanted) {
    uint64_t ours = tsm_cpu_features();
    const tsm_section *best = NULL, *nearest = NULL;
    for (size_t i = 0; i < m->section_count; i++) {
        const tsm_section *s = &m->sections[i];
        if (s->kind != TSM_SECTION_CODE || s->machine != THIS_MACHINE)
            continue;
        if (wanted && strcmp(wanted, s->level) != 0)
            continue;
        if (!tsm_cpu_acquire(s->features & ours)) /* the system keeps it to itself */
            ours &= ~(uint64_t)TSM_CPU_AMX_BF16;
        if (s->features & ~ours) {
            if (!nearest || feature_count(s->features) < feature_count(nearest->features))
                nearest = s;
        } else if (!best || feature_count(s->features) > feature_count(best->features)) {
            best = s;
        }
    }
    m->code_section = best;
    if (best) {
        m->level = best->level;
        return NULL;
    }
    if (nearest) {
        char missing[160], have[160];
        tsm_cpu_names(nearest->features & ~ours, missing, sizeof missing);
        tsm_cpu_names(ours, have, sizeof have);
        return ts_error_make(TS_ERR_UNSUPPORTED,
                             "the model needs %s (level %s), which this processor lacks; it has "
                             "%s: compile with a lower --cpu",
                             missing, nearest->level, have);
    }
    if (wanted)
        return ts_error_make(TS_ERR_INVALID_INPUT, "the file holds no code of level %.40s",
                             wanted);
    return ts_error_make(TS_ERR_UNSUPPORTED, "the file holds no code for this kind of processor");
}

/* Code follows the tables of the program and the places of weights without asking, so it takes only
 * those that it was compiled with. */
static ts_status check_companions(const tsrt_model *m) {
    const tsm_section *s = m->code_section;
    tsm_code_header h;
    if (s->bytes < sizeof h)
        return ts_error_make(TS_ERR_INVALID_FILE, "section code: too short");
    memcpy(&h, m->data + s->offset, sizeof h);
    if (h.weight_bytes != m->weight_bytes)
        return ts_error_make(TS_ERR_INVALID_FILE,
                             "section weights: the code needs %llu bytes, found %llu",
                             (unsigned long long)h.weight_bytes,
                             (unsigned long long)m->weight_bytes);
    if (h.companions != tsm_companions(m->sections, m->section_count, s))
        return ts_error_make(TS_ERR_INVALID_FILE,
                             "section code: was compiled with other sections than this file's");
    return NULL;
}

/* File-backed where that is allowed, so that processes share the pages; a noexec mount or bytes in
 * memory take a private copy, which is never writable and executable at once. */
static ts_status map_code(tsrt_model *m, int fd) {
    const tsm_section *s = m->code_section;
    size_t length = (size_t)s->bytes;
    void *p = MAP_FAILED;
    if (fd >= 0)
        p = mmap(NULL, length, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)s->offset);
    if (p == MAP_FAILED) {
        p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return ts_no_memory();
        memcpy(p, m->data + s->offset, length);
        if (mprotect(p, length, PROT_READ | PROT_EXEC) != 0) {
            int error = errno;
            munmap(p, length);
            return ts_error_make(TS_ERR_IO, "mapping code: %s", strerror(error));
        }
    }
    m->code = p;
    m->code_length = length;
    return NULL;
}

static ts_status bind_functions(tsrt_model *m) {
    tsm_code_header h;
    memcpy(&h, m->code, sizeof h);
    size_t count = m->program.function_count;
    if (h.function_count != count || h.code_offset > m->code_length ||
        sizeof h + 4 * count > h.code_offset)
        return ts_error_make(TS_ERR_INVALID_FILE, "section code: function table is out of range");
    rt_compiled *functions = calloc(count + 1, sizeof *functions);
    if (!functions)
        return ts_no_memory();
    m->functions = m->function_memory = functions;
    for (size_t i = 0; i < count; i++) {
        uint32_t offset;
        memcpy(&offset, m->code + sizeof h + 4 * i, 4);
        if (offset < h.code_offset || offset >= m->code_length)
            return ts_error_make(TS_ERR_INVALID_FILE, "section code: function outside of it");
        unsigned char *at = m->code + offset;
        memcpy(&functions[i], &at, sizeof at); /* data to function pointer */
    }
    return NULL;
}

/* ---- loading ---- */

static const tsm_section *find_sections(tsrt_model *m) {
    const tsm_section *program = NULL; /* there is one: tsm_validate */
    for (size_t i = 0; i < m->section_count; i++) {
        const tsm_section *s = &m->sections[i];
        if (s->kind == TSM_SECTION_PROGRAM)
            program = s;
        if (s->kind == TSM_SECTION_WEIGHTS) {
            m->weights = (const char *)m->data + s->offset;
            m->weight_bytes = s->bytes;
        }
    }
    return program;
}

static ts_status load(tsrt_model *m, int fd, const tsrt_load_options *options) {
    TS_TRY(tsm_validate(m->data, m->length, &m->sections, &m->section_count));
    TS_TRY(choose_level(m, options ? options->cpu_level : NULL));
    if (options && options->verify_weights)
        for (size_t i = 0; i < m->section_count; i++)
            if (m->sections[i].kind == TSM_SECTION_WEIGHTS)
                TS_TRY(tsm_validate_section(m->data, &m->sections[i]));
    const tsm_section *program = find_sections(m);
    TS_TRY(check_companions(m));
    TS_TRY(rt_model_read_program(m, m->data + program->offset, (size_t)program->bytes));
    TS_TRY(rt_model_bind_operators(m));
    TS_TRY(map_code(m, fd));
    return bind_functions(m);
}

static ts_status map_file(tsrt_model *m, const char *path, int *out_fd) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *out_fd = fd;
    if (fd < 0)
        return ts_error_make(TS_ERR_IO, "%s: %s", path, strerror(errno));
    struct stat s;
    if (fstat(fd, &s) != 0)
        return ts_error_make(TS_ERR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode))
        return ts_error_make(TS_ERR_INVALID_FILE, "%s: expected a regular file", path);
    m->length = (size_t)s.st_size;
    if (m->length == 0)
        return NULL;
    void *p = mmap(NULL, m->length, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return ts_error_make(TS_ERR_IO, "%s: %s", path, strerror(errno));
    madvise(p, m->length, MADV_HUGEPAGE); /* read ahead in large pages, where the file system has them */
    m->data = p;
    m->is_mapped = true;
    return NULL;
}

tsrt_status *tsrt_model_load(const char *path, const tsrt_load_options *options,
                             tsrt_model **out_model) {
    uint64_t begin = rt_now_ns();
    *out_model = NULL;
    tsrt_model *m = NULL;
    int fd = -1;
    ts_status status = path ? rt_model_make(&m)
                            : ts_error_make(TS_ERR_INVALID_INPUT, "expected a path, found NULL");
    if (!status)
        status = map_file(m, path, &fd);
    if (!status) {
        status = load(m, fd, options);
        if (status)
            status = ts_status_context(status, "loading %s", path);
    }
    if (fd >= 0)
        close(fd);
    if (status) {
        tsrt_model_release(m);
        return rt_out(status);
    }
    m->load_ns = rt_now_ns() - begin;
    *out_model = m;
    return NULL;
}

tsrt_status *tsrt_model_load_bytes(const void *data, size_t length,
                                   const tsrt_load_options *options, tsrt_model **out_model) {
    uint64_t begin = rt_now_ns();
    *out_model = NULL;
    if (!data && length)
        return rt_out(ts_error_make(TS_ERR_INVALID_INPUT, "expected bytes, found NULL"));
    tsrt_model *m = NULL;
    ts_status status = rt_model_make(&m);
    if (!status && (uintptr_t)data % 64 != 0 && length) {
        void *copy = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                          0);
        if (copy == MAP_FAILED) {
            status = ts_no_memory();
        } else {
            memcpy(copy, data, length);
            data = copy;
            m->is_mapped = true;
        }
    }
    if (!status) {
        m->data = data;
        m->length = length;
        status = load(m, -1, options);
    }
    if (status) {
        tsrt_model_release(m);
        return rt_out(status);
    }
    m->load_ns = rt_now_ns() - begin;
    *out_model = m;
    return NULL;
}

tsrt_status *tsrt_model_verify(const tsrt_model *model) {
    for (size_t i = 0; i < model->section_count; i++) {
        ts_status status = tsm_validate_section(model->data, &model->sections[i]);
        if (status)
            return rt_out(status);
    }
    return NULL;
}
