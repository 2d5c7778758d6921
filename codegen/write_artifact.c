/* codegen/write_artifact.c - the .tsm file: header, section table, sections (runtime/format/tsm.h).
 * The same program gives the same bytes. */
#include "codegen/compile_llvm.h"
#include "runtime/base/file.h"

#include <stdlib.h>

static const char zeroes[TSM_ALIGN];

typedef struct file_parts {
    ts_arena *arena;
    ts_file_part *parts;
    size_t count, capacity;
    uint64_t at;
} file_parts;

static void add_part(file_parts *f, const void *data, size_t length) {
    if (!length)
        return;
    ts_file_part part = {.data = data, .length = length};
    TS_APPEND(f->arena, f->parts, f->count, f->capacity, part);
    f->at += length;
}

static void align_part(file_parts *f, size_t align) {
    add_part(f, zeroes, (size_t)(-f->at & (align - 1)));
}

/* Streams the weights' blocks through the checksum as the file will hold them. */
static uint64_t weights_checksum(const cg_program *p, char *block) {
    uint64_t state = 0;
    size_t fill = 0;
    for (size_t i = 0; i < p->part_count; i++) {
        const char *data = p->parts[i].data;
        size_t left = p->parts[i].bytes;
        cg_spill_forget(p->spill, i ? p->parts[i - 1].data : NULL);
        size_t pad = (size_t)(-left & (TSM_WEIGHT_ALIGN - 1));
        while (left || pad) {
            size_t room = TSM_CHECKSUM_BLOCK - fill;
            size_t n = left ? left : pad;
            n = n < room ? n : room;
            if (left) {
                memcpy(block + fill, data, n);
                data += n;
                left -= n;
            } else {
                memset(block + fill, 0, n);
                pad -= n;
            }
            fill += n;
            if (fill == TSM_CHECKSUM_BLOCK) {
                state = tsm_checksum_update(state, block, fill);
                fill = 0;
            }
        }
    }
    return fill ? tsm_checksum_update(state, block, fill) : state;
}

/* Each code image says which sections it belongs to, once all are known. */
static void seal_code(const cg_program *program, cg_image *images, tsm_section *sections,
                      size_t count) {
    size_t next = 0;
    for (size_t i = 0; i < count; i++) {
        if (sections[i].kind != TSM_SECTION_CODE)
            continue;
        ts_buffer *image = &images[next++].bytes;
        tsm_code_header header;
        memcpy(&header, image->data, sizeof header);
        header.weight_bytes = program->weight_bytes;
        header.companions = tsm_companions(sections, count, &sections[i]);
        memcpy(image->data, &header, sizeof header);
        sections[i].checksum = tsm_checksum(image->data, image->length);
    }
}

ts_status cg_write_artifact(cg_program *program, const cg_options *options,
                            cg_image *images, size_t count,
                            const cg_device_code *device, size_t device_count) {
    ts_arena *arena = program->arena;
    ts_buffer tables = {0};
    ts_status status = cg_program_write(program, options, &tables);
    if (status) {
        ts_buffer_deinit(&tables);
        return status;
    }
    size_t section_count = count + device_count + 1 + (program->weight_bytes != 0);
    tsm_section *sections = TS_NEW_ARRAY(arena, tsm_section, section_count);
    tsm_header *header = TS_NEW(arena, tsm_header);
    file_parts f = {.arena = arena};
    add_part(&f, header, sizeof *header);
    add_part(&f, sections, section_count * sizeof *sections);
    size_t s = 0;
    align_part(&f, TSM_ALIGN);
    sections[s++] = (tsm_section){.kind = TSM_SECTION_PROGRAM, .offset = f.at,
                                  .bytes = tables.length,
                                  .checksum = tsm_checksum(tables.data, tables.length)};
    add_part(&f, tables.data, tables.length);
    for (size_t i = 0; i < count; i++) {
        const cg_target_info *t = images[i].target;
        const ts_buffer *b = &images[i].bytes;
        align_part(&f, TSM_ALIGN);
        tsm_section row = {.kind = TSM_SECTION_CODE, .offset = f.at, .bytes = b->length,
                           .features = cg_target_features(t)};
        row.machine = strncmp(t->triple, "x86_64", 6) == 0 ? TSM_MACHINE_X86_64
                                                            : TSM_MACHINE_AARCH64;
        memcpy(row.level, t->name, strlen(t->name) + 1);
        sections[s++] = row;
        add_part(&f, b->data, b->length);
    }
    for (size_t i = 0; i < device_count; i++) {
        const ts_buffer *b = &device[i].bytes;
        align_part(&f, TSM_ALIGN);
        tsm_section row = {.kind = TSM_SECTION_DEVICE, .offset = f.at, .bytes = b->length,
                           .checksum = tsm_checksum(b->data, b->length)};
        memcpy(row.level, device[i].level, strlen(device[i].level) + 1);
        sections[s++] = row;
        add_part(&f, b->data, b->length);
    }
    align_part(&f, TSM_ALIGN);
    if (program->weight_bytes) {
        char *block = malloc(TSM_CHECKSUM_BLOCK);
        if (!block) {
            ts_buffer_deinit(&tables);
            return ts_no_memory();
        }
        sections[s++] = (tsm_section){.kind = TSM_SECTION_WEIGHTS, .offset = f.at,
                                      .bytes = program->weight_bytes,
                                      .checksum = weights_checksum(program, block)};
        free(block);
        for (size_t i = 0; i < program->part_count; i++) {
            add_part(&f, program->parts[i].data, program->parts[i].bytes);
            if (program->parts[i].bytes)
                f.parts[f.count - 1].is_mapped =
                    cg_spill_has(program->spill, program->parts[i].data);
            align_part(&f, TSM_WEIGHT_ALIGN);
        }
        align_part(&f, TSM_ALIGN);
    }
    seal_code(program, images, sections, s);
    memcpy(header->magic, TSM_MAGIC, 8);
    header->format = TSM_FORMAT;
    header->endian = TSM_ENDIAN;
    header->abi = TSM_ABI;
    header->pointer_bytes = sizeof(void *);
    header->file_bytes = f.at;
    header->section_count = (uint32_t)s;
    header->table_checksum = tsm_checksum(sections, s * sizeof *sections);
    header->header_checksum = tsm_checksum(header, offsetof(tsm_header, header_checksum));
    const char *path = ts_arena_str(arena, options->output_path).data;
    status = ts_file_write(path, f.parts, f.count);
    ts_buffer_deinit(&tables);
    return status;
}
