/* codegen/spill.h - packed weights in a file without a name, so that a compilation of a large model
 * does not hold them in memory as well. */
#ifndef CODEGEN_SPILL_H
#define CODEGEN_SPILL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cg_spill cg_spill;

/* In the folder of the output, where there will be room for as much. NULL where that cannot be. */
cg_spill *cg_spill_make(const char *output);
void cg_spill_release(cg_spill *spill); /* NULL is allowed */
/* Zeroed bytes, aligned to a page; NULL for few bytes, where spill is NULL or the disk is full. */
void *cg_spill_alloc(cg_spill *spill, size_t bytes);
/* The bytes may leave memory until somebody reads them again. Others than the spill's are no
 * concern of it. */
bool cg_spill_has(const cg_spill *spill, const void *data);
void cg_spill_forget(const cg_spill *spill, const void *data);
void cg_spill_forget_all(const cg_spill *spill);

#endif
