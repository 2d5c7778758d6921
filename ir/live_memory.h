/* ir/live_memory.h - how long the results of kernels live, and what they need together. */
#ifndef IR_LIVE_MEMORY_H
#define IR_LIVE_MEMORY_H

#include "ir/ir.h"

enum { IR_BUFFER_ALIGN = 64, IR_USUAL_SIZE = 224 };

/* Numbers operators in the order of the text (op->number), those of kernels' bodies not. */
uint32_t ir_number_ops(ir_block *block);
/* The number of the last operator that reads v, a result of a kernel; what is read inside of a branch
 * or loop lives to its end. False where others than kernels read it: it may then live on. */
bool ir_last_reader(const ir_value *v, uint32_t *out_end);
/* Of a tensor of constant size, rounded up to IR_BUFFER_ALIGN; -1 of others. */
int64_t ir_buffer_bytes(const ir_type *t);
/* The same as a guess: each symbol is IR_USUAL_SIZE, a side of images that networks are trained on. */
int64_t ir_usual_bytes(const ir_module *m, const ir_type *t);

typedef struct ir_live_memory {
    int64_t planned; /* bytes of the arena that plan_memory laid out */
    int64_t live;    /* of what lies there, the most that is alive at once */
    ts_str formula;  /* "8028160", "8028160 + 786432*N": that and all other results of kernels */
    bool is_partial; /* sizes that nobody knows before the run are left out */
} ir_live_memory;

/* Numbers the operators anew. Text in the module's arena. */
ir_live_memory ir_live_memory_of(ir_module *m, ir_function *f);
/* "8028160 bytes planned, 8028160 alive at most; with other results: 8028160 + 786432*N". */
ts_str ir_live_memory_text(ir_module *m, const ir_live_memory *need);

#endif
