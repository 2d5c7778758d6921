/* codegen/lower_weights.c - the constant right operand of a product, in the format that the options
 * ask for (weight_formats.h). */
#include "codegen/lower.h"

kn_format lw_weight_format(const lowering *l, bool is_convolution, const kn_matrices *m) {
    const cg_options *o = l->unit->options;
    bool has_bf16 = l->unit->target->has_bf16;
    if (l->unit->dialect || m->k == 0 || m->n == 0 || m->count == 0)
        return KN_FLOAT32; /* kernels of a device read float32 */
    if (!is_convolution &&
        (o->weights_dtype == CG_WEIGHTS_INT8 || o->weights_dtype == CG_WEIGHTS_INT4) &&
        kn_weights_are_finite(m))
        return o->weights_dtype == CG_WEIGHTS_INT8 ? KN_INT8 : KN_INT4;
    if (o->computes_bf16)
        return has_bf16 ? KN_BFLOAT16_DOT : KN_BFLOAT16;
    return o->weights_dtype == CG_WEIGHTS_BF16 ? KN_BFLOAT16 : KN_FLOAT32;
}

int64_t lw_pack_weights(lowering *l, kn_format format, const kn_matrices *m) {
    kn_contraction *c = &l->k->contraction;
    size_t bytes;
    const void *packed = kn_weights_pack(l->unit->weights, format, m, &bytes);
    c->right_is_packed = true;
    c->right_has_parts = l->unit->target->has_amx && kn_weights_have_parts(m);
    c->format = format;
    c->right.element = RT_float32;
    c->right.buffer = kn_add_constant(l->k, packed, bytes);
    /* Rows that end within a step, and rows of bfloat16, are copied (and padded) first; lines are
     * copied anyway. */
    if (c->left_kind != KN_LEFT_LINES &&
        (format == KN_BFLOAT16_DOT || kn_format_padded_k(format, m->k) != m->k))
        c->left_kind = KN_LEFT_PACKED;
    return (m->n + KN_PANEL - 1) / KN_PANEL * kn_format_panel_bytes(format, m->k) / 4;
}
