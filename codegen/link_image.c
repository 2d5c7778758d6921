/* codegen/link_image.c - a static link of ELF objects into a flat, position-independent image.
 *
 * Code of a level refers only to itself: relocations are PC-relative and are resolved here, so that
 * loading is one mmap. What would need a real linker is refused by name. */
#include "codegen/compile_llvm.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef R_AARCH64_LDST128_ABS_LO12_NC
#define R_AARCH64_LDST128_ABS_LO12_NC 299
#endif

typedef struct object_file {
    const unsigned char *data;
    size_t length;
    const Elf64_Ehdr *header;
    const Elf64_Shdr *sections;
    const char *names;
    uint64_t *addresses; /* of sections in the image; 0 not in it */
} object_file;

static ts_status bad(const char *what) {
    return ts_error_make(TS_ERR_INTERNAL, "object file: %s", what);
}

static bool is_loaded(const Elf64_Shdr *s, const char *name) {
    return (s->sh_flags & SHF_ALLOC) && s->sh_size && s->sh_type == SHT_PROGBITS &&
           strncmp(name, ".eh_frame", 9) != 0;
}

/* Instructions of all objects first, constants behind them. */
static ts_status lay_out(object_file *objects, size_t count, bool is_text, ts_buffer *out) {
    for (object_file *o = objects; o < objects + count; o++)
        for (size_t i = 1; i < o->header->e_shnum; i++) {
            const Elf64_Shdr *s = &o->sections[i];
            const char *name = o->names + s->sh_name;
            if ((s->sh_flags & SHF_ALLOC) && (s->sh_flags & SHF_WRITE) && s->sh_size)
                return ts_error_make(TS_ERR_INTERNAL, "object file: writable section %s", name);
            if (!is_loaded(s, name) || is_text != ((s->sh_flags & SHF_EXECINSTR) != 0))
                continue;
            ts_buffer_align(out, s->sh_addralign < 16 ? 16 : (size_t)s->sh_addralign);
            o->addresses[i] = out->length;
            ts_buffer_append(out, o->data + s->sh_offset, (size_t)s->sh_size);
        }
    return ts_buffer_status(out);
}

/* ---- what objects define for others ---- */

typedef struct definition {
    const char *name;
    uint64_t address;
} definition;

typedef struct definition_list {
    definition *items;
    size_t count, capacity;
} definition_list;

static ts_status add_definitions(const object_file *o, const Elf64_Shdr *symbols,
                                 definition_list *out) {
    const char *names = (const char *)o->data + o->sections[symbols->sh_link].sh_offset;
    size_t count = (size_t)(symbols->sh_size / sizeof(Elf64_Sym));
    for (size_t i = 0; i < count; i++) {
        Elf64_Sym s;
        memcpy(&s, o->data + symbols->sh_offset + i * sizeof s, sizeof s);
        if (ELF64_ST_BIND(s.st_info) != STB_GLOBAL || s.st_shndx == SHN_UNDEF ||
            s.st_shndx >= o->header->e_shnum || !o->addresses[s.st_shndx])
            continue;
        if (out->count == out->capacity) {
            size_t wanted = out->capacity ? 2 * out->capacity : 64;
            definition *grown = realloc(out->items, wanted * sizeof *grown);
            if (!grown)
                return ts_no_memory();
            out->items = grown;
            out->capacity = wanted;
        }
        out->items[out->count++] =
            (definition){names + s.st_name, o->addresses[s.st_shndx] + s.st_value};
    }
    return NULL;
}

static int compare_definitions(const void *a, const void *b) {
    return strcmp(((const definition *)a)->name, ((const definition *)b)->name);
}

/* The address of a symbol in the image; 0 where nothing defines it. */
static uint64_t find_address(const definition_list *list, const char *name) {
    definition wanted = {name, 0};
    const definition *found = list->count ? bsearch(&wanted, list->items, list->count,
                                                    sizeof wanted, compare_definitions)
                                          : NULL;
    return found ? found->address : 0;
}

static void put32(unsigned char *p, uint32_t v) { memcpy(p, &v, 4); }

static uint32_t get32(const unsigned char *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static bool relocate_aarch64(unsigned char *at, uint32_t type, int64_t target, int64_t place) {
    uint32_t code = get32(at);
    int64_t distance = target - place;
    uint32_t low = (uint32_t)target & 0xfff;
    switch (type) {
    case R_AARCH64_PREL32: put32(at, (uint32_t)distance); return true;
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26: put32(at, code | ((uint32_t)(distance >> 2) & 0x3ffffff)); return true;
    case R_AARCH64_ADR_PREL_PG_HI21: {
        uint32_t pages = (uint32_t)((target >> 12) - (place >> 12));
        put32(at, code | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5);
        return true;
    }
    case R_AARCH64_ADD_ABS_LO12_NC: put32(at, code | low << 10); return true;
    case R_AARCH64_LDST8_ABS_LO12_NC: put32(at, code | low << 10); return true;
    case R_AARCH64_LDST16_ABS_LO12_NC: put32(at, code | low >> 1 << 10); return true;
    case R_AARCH64_LDST32_ABS_LO12_NC: put32(at, code | low >> 2 << 10); return true;
    case R_AARCH64_LDST64_ABS_LO12_NC: put32(at, code | low >> 3 << 10); return true;
    case R_AARCH64_LDST128_ABS_LO12_NC: put32(at, code | low >> 4 << 10); return true;
    default: return false;
    }
}

static ts_status relocate(object_file *o, const Elf64_Shdr *rela, const definition_list *defined,
                          ts_buffer *out) {
    uint64_t base = o->addresses[rela->sh_info];
    if (!base)
        return NULL;
    const Elf64_Shdr *symbols = &o->sections[rela->sh_link];
    const char *symbol_names = (const char *)o->data + o->sections[symbols->sh_link].sh_offset;
    size_t count = (size_t)(rela->sh_size / sizeof(Elf64_Rela));
    for (size_t i = 0; i < count; i++) {
        Elf64_Rela r;
        memcpy(&r, o->data + rela->sh_offset + i * sizeof r, sizeof r);
        Elf64_Sym s;
        memcpy(&s, o->data + symbols->sh_offset + ELF64_R_SYM(r.r_info) * sizeof s, sizeof s);
        uint64_t at_symbol = 0;
        if (s.st_shndx == SHN_UNDEF) {
            at_symbol = find_address(defined, symbol_names + s.st_name);
            if (!at_symbol)
                return ts_error_make(TS_ERR_INTERNAL, "compiled code needs the external symbol %s",
                                     symbol_names + s.st_name);
        } else if (s.st_shndx < o->header->e_shnum && o->addresses[s.st_shndx]) {
            at_symbol = o->addresses[s.st_shndx] + s.st_value;
        } else {
            return bad("a relocation refers to a section that is not loaded");
        }
        int64_t target = (int64_t)at_symbol + r.r_addend;
        int64_t place = (int64_t)(base + r.r_offset);
        unsigned char *at = (unsigned char *)out->data + place;
        uint32_t type = (uint32_t)ELF64_R_TYPE(r.r_info);
        bool known;
        if (o->header->e_machine == EM_AARCH64) {
            known = relocate_aarch64(at, type, target, place);
        } else {
            known = type == R_X86_64_PC32 || type == R_X86_64_PLT32;
            if (known)
                put32(at, (uint32_t)(target - place));
        }
        if (!known)
            return ts_error_make(TS_ERR_INTERNAL, "object file: relocation of type %u", type);
    }
    return NULL;
}

/* tsf_N: where function N lies. */
static ts_status find_functions(const definition_list *defined, size_t function_count,
                                ts_buffer *out) {
    for (size_t i = 0; i < function_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "tsf_%zu", i);
        uint32_t offset = (uint32_t)find_address(defined, name);
        if (!offset)
            return bad("a function is missing");
        memcpy(out->data + sizeof(tsm_code_header) + 4 * i, &offset, 4);
    }
    return NULL;
}

static ts_status open_object(const cg_object *given, object_file *out) {
    *out = (object_file){.data = given->data, .length = given->length, .header = given->data};
    if (given->length < sizeof(Elf64_Ehdr) ||
        memcmp(out->header->e_ident, ELFMAG, SELFMAG) != 0 ||
        out->header->e_shoff + (uint64_t)out->header->e_shnum * sizeof(Elf64_Shdr) > given->length)
        return bad("not an ELF object");
    out->sections = (const Elf64_Shdr *)(const void *)(out->data + out->header->e_shoff);
    out->names = (const char *)out->data + out->sections[out->header->e_shstrndx].sh_offset;
    out->addresses = calloc(out->header->e_shnum + (size_t)1, sizeof *out->addresses);
    return out->addresses ? NULL : ts_no_memory();
}

static ts_status link_objects(object_file *objects, size_t count, size_t function_count,
                              definition_list *defined, ts_buffer *out) {
    TS_TRY(lay_out(objects, count, true, out));
    TS_TRY(lay_out(objects, count, false, out));
    for (object_file *o = objects; o < objects + count; o++)
        for (size_t i = 1; i < o->header->e_shnum; i++)
            if (o->sections[i].sh_type == SHT_SYMTAB)
                TS_TRY(add_definitions(o, &o->sections[i], defined));
    if (defined->count)
        qsort(defined->items, defined->count, sizeof *defined->items, compare_definitions);
    for (object_file *o = objects; o < objects + count; o++)
        for (size_t i = 1; i < o->header->e_shnum; i++)
            if (o->sections[i].sh_type == SHT_RELA)
                TS_TRY(relocate(o, &o->sections[i], defined, out));
    return find_functions(defined, function_count, out);
}

ts_status cg_link_image(const cg_object *given, size_t count, size_t function_count,
                        ts_buffer *out_image) {
    tsm_code_header header = {.function_count = (uint32_t)function_count};
    size_t table = sizeof header + 4 * function_count;
    header.code_offset = (uint32_t)((table + 63) / 64 * 64);
    ts_buffer_append(out_image, &header, sizeof header);
    for (size_t i = 0; i < function_count; i++)
        tsm_put_u32(out_image, 0);
    ts_buffer_align(out_image, 64);
    object_file *objects = calloc(count + 1, sizeof *objects);
    definition_list defined = {0};
    ts_status status = objects ? NULL : ts_no_memory();
    for (size_t i = 0; i < count && !status; i++)
        status = open_object(&given[i], &objects[i]);
    if (!status)
        status = link_objects(objects, count, function_count, &defined, out_image);
    for (size_t i = 0; objects && i < count; i++)
        free(objects[i].addresses);
    free(objects);
    free(defined.items);
    return status;
}
