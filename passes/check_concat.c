/* passes/check_concat.c - sizes of a concatenation's parts that only a run can tell to be equal.
 *
 *   %c = cat([%up, %skip], 1)       %up : float32[N,8,2*(H//2),W], %skip : float32[N,8,H,W]
 *     =>  if eq(2*(H//2), H) {} else { raise RuntimeError("Sizes of tensors must match ...") }
 *         %c = cat([%up, %skip], 1)
 *
 * A kernel writes each part to its place by the part's own sizes, so behind the check it needs no
 * proof. The sizes are numbers of the host program: where they are equal, the check costs a
 * comparison. */
#include "ir/kernel_form.h"
#include "passes/pass_internal.h"

typedef struct open_size {
    size_t part; /* its size in `dim` is not known to be the first part's */
    int dim;
} open_size;

/* The open sizes from number `*at` on; false: none. */
static bool next_open_size(ir_module *m, const ir_op *concat, size_t *at, open_size *out) {
    const ir_op *list = concat->operands[0]->def;
    const ir_type *first = list->operands[0]->type;
    int64_t along;
    if (!ir_const_int(concat->operands[1], &along))
        return false;
    along = along < 0 ? along + first->rank : along;
    for (size_t all = list->operand_count * (size_t)first->rank; *at < all;) {
        out->part = *at / (size_t)first->rank;
        out->dim = (int)(*at % (size_t)first->rank);
        ++*at;
        const ir_type *t = list->operands[out->part]->type;
        if (out->dim != along && !ir_dim_same(m, first->dims[out->dim], t->dims[out->dim]))
            return true;
    }
    return false;
}

bool pass_concat_is_open(ir_module *m, const ir_op *concat) {
    size_t at = 0;
    open_size size;
    return !ir_is_stack(concat) && next_open_size(m, concat, &at, &size);
}

static void build_check(ir_builder *b, const ir_op *concat, open_size size) {
    const ir_op *list = concat->operands[0]->def;
    ir_value *sizes[2] = {ir_build_size(b, list->operands[0]->type->dims[size.dim]),
                          ir_build_size(b, list->operands[size.part]->type->dims[size.dim])};
    ir_value *same = pass_build_core(b, "eq.int", sizes, 2)->results[0];
    int64_t dim = 0;
    ir_const_int(concat->operands[1], &dim);
    dim = dim < 0 ? dim + list->operands[0]->type->rank : dim;
    rt_dim shown[4] = {dim, list->operands[0]->type->dims[size.dim],
                       list->operands[size.part]->type->dims[size.dim], (int64_t)size.part};
    pass_build_check(b, same,
                     TS_STR("Sizes of tensors must match except in dimension {}. Expected "
                            "size {} but got size {} for tensor number {} in the list."),
                     shown, 4);
}

void pass_check_concat(pass_context *ctx, ir_module *m, const ir_op *concat, ir_op *place) {
    ir_builder b = pass_before(m, place);
    open_size size;
    for (size_t at = 0; next_open_size(m, concat, &at, &size);) {
        build_check(&b, concat, size);
        pass_count(ctx, "checks of sizes", 1);
    }
}
