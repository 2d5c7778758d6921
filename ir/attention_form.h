/* ir/attention_form.h - attention as operators: softmax of a product, times a matrix.
 *
 *   scores  = matmul(query, key)             key: [..., depth, keys], most often a transposed view
 *   soft    = softmax(f(scores), -1)         f: pointwise operators of the scores' shape
 *   emptied = where(amax(f(scores), -1) == -inf, 0, soft)      optional
 *   product = matmul(soft or emptied, value)
 *
 * Fusion makes one kernel of it, in which no scores lie in memory; lowering reads the body back
 * with the same function. */
#ifndef IR_ATTENTION_FORM_H
#define IR_ATTENTION_FORM_H

#include "ir/kernel_form.h"

enum { IR_ATTENTION_MAX_OPS = 40 };

typedef struct ir_attention {
    ir_op *product, *softmax, *scores;
    bool zeroes_empty; /* `emptied` is there: rows without a key give zeros, not NaN */
    ir_value *query, *key, *value;
    ir_value *softened; /* what softmax is taken of */
    ir_op *ops[IR_ATTENTION_MAX_OPS]; /* all of them, product first, each before what it reads */
    size_t op_count;
} ir_attention;

/* Whether `product` is the last operator of an attention that one kernel can hold: types and sizes
 * fit, and nobody else reads what lies between. */
bool ir_attention_of(ir_module *m, ir_op *product, ir_attention *out);

#endif
