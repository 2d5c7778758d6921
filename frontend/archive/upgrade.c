/* frontend/archive/upgrade.c - operators that meant something else when an old archive was written.
 *
 * An archive's version is the highest that any of its operators asked for, so an operator whose
 * meaning changed at version n is the old one in archives below n. The old meanings are functions of
 * frontend/library/tensor_upgraders.py. gelu took no `approximate` below version 10: its default is
 * what gelu was. (torch/csrc/jit/operator_upgraders of PyTorch.) */
#include "frontend/frontend_internal.h"

const char *fe_archive_reason(ts_str name) {
    static const char *const optimized[] = {"to_mkldnn", "prim_ConstantMKLDNNTensor",
                                            "prim_mkldnn_convolution", "mkldnn_convolution"};
    for (size_t i = 0; i < sizeof optimized / sizeof *optimized; i++)
        if (ts_str_is(name, optimized[i]))
            return "the archive was saved after torch.jit.optimize_for_inference, which leaves weights "
                   "out of it: save the module before that";
    if (ts_str_starts_with(name, "mkldnn_prepacked_"))
        return "parameters packed for oneDNN are not supported: save the module before it is optimized";
    return NULL;
}

ts_str fe_archive_operator(fe_context *fe, ts_str name, bool has_tensor) {
    static const struct {
        const char *name;
        int below; /* archives of a lower version mean the old one */
        const char *function;
        bool needs_tensor; /* the overloads for numbers never changed */
    } upgraded[] = {
        {"div", 4, "upgraded_div_0_3", true},
        {"div_", 4, "upgraded_div_inplace_0_3", true},
        {"full", 5, "upgraded_full_0_4", false},
        {"linspace", 8, "upgraded_linspace_0_7", false},
        {"logspace", 9, "upgraded_logspace_0_8", false},
    };
    int version = fe->archive ? fe_archive_version(fe) : INT32_MAX;
    for (size_t i = 0; i < sizeof upgraded / sizeof *upgraded; i++)
        if (version < upgraded[i].below && (has_tensor || !upgraded[i].needs_tensor) &&
            ts_str_is(name, upgraded[i].name))
            return ts_str_of(upgraded[i].function);
    return name;
}
