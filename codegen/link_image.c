/* codegen/link_image.c - a static link of one ELF object into a flat, position-independent image.
 *
 * Code of a unit refers only to itself: relocations are PC-relative and are resolved here, so that
 * loading is one mmap. What would need a real linker is refused by name. */
#include "codegen/compile_llvm.h"

#include <elf.h>

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

static ts_status lay_out(object_file *o, ts_buffer *out) {
    /* Instructions first, constants behind them. */
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 1; i < o->header->e_shnum; i++) {
            const Elf64_Shdr *s = &o->sections[i];
            const char *name = o->names + s->sh_name;
            if ((s->sh_flags & SHF_ALLOC) && (s->sh_flags & SHF_WRITE) && s->sh_size)
                return ts_error_make(TS_ERR_INTERNAL, "object file: writable section %s", name);
            bool is_text = (s->sh_flags & SHF_EXECINSTR) != 0;
            if (!is_loaded(s, name) || is_text != (pass == 0))
                continue;
            ts_buffer_align(out, s->sh_addralign < 16 ? 16 : (size_t)s->sh_addralign);
            o->addresses[i] = out->length;
            ts_buffer_append(out, o->data + s->sh_offset, (size_t)s->sh_size);
        }
    return ts_buffer_status(out);
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

static ts_status relocate(object_file *o, const Elf64_Shdr *rela, ts_buffer *out) {
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
        if (s.st_shndx == SHN_UNDEF)
            return ts_error_make(TS_ERR_INTERNAL, "compiled code needs the external symbol %s",
                                 symbol_names + s.st_name);
        if (s.st_shndx >= o->header->e_shnum || !o->addresses[s.st_shndx])
            return bad("a relocation refers to a section that is not loaded");
        int64_t target = (int64_t)(o->addresses[s.st_shndx] + s.st_value) + r.r_addend;
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
static ts_status find_functions(object_file *o, const Elf64_Shdr *symbols, size_t function_count,
                                ts_buffer *out) {
    const char *names = (const char *)o->data + o->sections[symbols->sh_link].sh_offset;
    size_t count = (size_t)(symbols->sh_size / sizeof(Elf64_Sym)), found = 0;
    for (size_t i = 0; i < count; i++) {
        Elf64_Sym s;
        memcpy(&s, o->data + symbols->sh_offset + i * sizeof s, sizeof s);
        const char *name = names + s.st_name;
        if (s.st_shndx == SHN_UNDEF || s.st_shndx >= o->header->e_shnum ||
            strncmp(name, "tsf_", 4) != 0)
            continue;
        size_t index = 0;
        for (const char *c = name + 4; *c >= '0' && *c <= '9'; c++)
            index = index * 10 + (size_t)(*c - '0');
        if (index >= function_count)
            return bad("a function beyond the table");
        uint32_t offset = (uint32_t)(o->addresses[s.st_shndx] + s.st_value);
        memcpy(out->data + sizeof(tsm_code_header) + 4 * index, &offset, 4);
        found++;
    }
    return found == function_count ? NULL : bad("a function is missing");
}

ts_status cg_link_image(const void *object, size_t length, size_t function_count,
                        ts_buffer *out_image) {
    object_file o = {.data = object, .length = length, .header = object};
    if (length < sizeof(Elf64_Ehdr) || memcmp(o.header->e_ident, ELFMAG, SELFMAG) != 0 ||
        o.header->e_shoff + (uint64_t)o.header->e_shnum * sizeof(Elf64_Shdr) > length)
        return bad("not an ELF object");
    o.sections = (const Elf64_Shdr *)(const void *)(o.data + o.header->e_shoff);
    o.names = (const char *)o.data + o.sections[o.header->e_shstrndx].sh_offset;
    uint64_t addresses[512] = {0};
    if (o.header->e_shnum > 512)
        return bad("too many sections");
    o.addresses = addresses;
    tsm_code_header header = {(uint32_t)function_count, 0};
    size_t table = sizeof header + 4 * function_count;
    header.code_offset = (uint32_t)((table + 63) / 64 * 64);
    ts_buffer_append(out_image, &header, sizeof header);
    for (size_t i = 0; i < function_count; i++)
        tsm_put_u32(out_image, 0);
    ts_buffer_align(out_image, 64);
    TS_TRY(lay_out(&o, out_image));
    for (size_t i = 1; i < o.header->e_shnum; i++) {
        if (o.sections[i].sh_type == SHT_RELA)
            TS_TRY(relocate(&o, &o.sections[i], out_image));
        if (o.sections[i].sh_type == SHT_SYMTAB)
            TS_TRY(find_functions(&o, &o.sections[i], function_count, out_image));
    }
    return NULL;
}
