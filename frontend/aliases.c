/* frontend/aliases.c - other names of operators, as PyTorch's normalize_ops pass knows them: one
 * meaning, one row, so that passes and codegen meet each operator under a single name. */
#include "frontend/emit_internal.h"

static const struct {
    const char *alias, *name;
} alias_table[] = {{"absolute", "abs"},
                   {"arccos", "acos"},
                   {"arccosh", "acosh"},
                   {"arcsin", "asin"},
                   {"arcsinh", "asinh"},
                   {"arctan", "atan"},
                   {"arctan2", "atan2"},
                   {"arctanh", "atanh"},
                   {"clip", "clamp"},
                   {"concat", "cat"},
                   {"concatenate", "cat"},
                   {"det", "linalg_det"},
                   {"divide", "div"},
                   {"fix", "trunc"},
                   {"ger", "outer"},
                   {"greater", "gt"},
                   {"greater_equal", "ge"},
                   {"inverse", "linalg_inv"},
                   {"less", "lt"},
                   {"less_equal", "le"},
                   {"linalg_matmul", "matmul"},
                   {"matrix_exp", "linalg_matrix_exp"},
                   {"moveaxis", "movedim"},
                   {"multiply", "mul"},
                   {"negative", "neg"},
                   {"nelement", "numel"},
                   {"not_equal", "ne"},
                   {"row_stack", "vstack"},
                   {"special_digamma", "digamma"},
                   {"special_erf", "erf"},
                   {"special_erfc", "erfc"},
                   {"special_erfinv", "erfinv"},
                   {"special_exp2", "exp2"},
                   {"special_expit", "sigmoid"},
                   {"special_expm1", "expm1"},
                   {"special_gammainc", "igamma"},
                   {"special_gammaincc", "igammac"},
                   {"special_gammaln", "lgamma"},
                   {"special_i0", "i0"},
                   {"special_log1p", "log1p"},
                   {"special_log_softmax", "log_softmax"},
                   {"special_logit", "logit"},
                   {"special_logsumexp", "logsumexp"},
                   {"special_multigammaln", "mvlgamma"},
                   {"special_polygamma", "polygamma"},
                   {"special_psi", "digamma"},
                   {"special_round", "round"},
                   {"special_sinc", "sinc"},
                   {"special_softmax", "softmax"},
                   {"special_xlogy", "xlogy"},
                   {"subtract", "sub"},
                   {"swapaxes", "transpose"},
                   {"swapdims", "transpose"},
                   {"true_divide", "div"}};

ts_str fe_canonical_operator(ts_arena *arena, ts_str name) {
    bool is_in_place = name.length > 1 && name.data[name.length - 1] == '_';
    ts_str bare = {name.data, name.length - (is_in_place ? 1 : 0)};
    for (size_t i = 0; i < sizeof alias_table / sizeof alias_table[0]; i++)
        if (ts_str_is(bare, alias_table[i].alias))
            return is_in_place ? ts_arena_format(arena, "%s_", alias_table[i].name)
                               : ts_str_of(alias_table[i].name);
    return name;
}
