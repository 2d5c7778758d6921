/* codegen/dialect_opencl.c - OpenCL C 1.2 with doubles where the model has them. */
#include "codegen/dialect.h"

static const char *const spellings[KN_CODE_COUNT] = {
#define SCALAR(id, arity, opencl, cuda) [KN_##id] = opencl,
#include "codegen/scalar_ops.def"
};

static const char preamble[] =
    "#ifdef cl_khr_fp64\n"
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
    "#endif\n"
    "#pragma OPENCL FP_CONTRACT OFF\n"
    "typedef long ts_long;\n"
    "typedef int ts_int;\n"
    "typedef short ts_short;\n"
    "typedef char ts_char;\n"
    "typedef uchar ts_uchar;\n"
    "#define ts_maximum(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))\n"
    "#define ts_minimum(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))\n"
    "#define ts_param_float(p) ((float)as_double(p))\n"
    "#define ts_param_double(p) as_double(p)\n"
    "#define ts_infinity ((float)INFINITY)\n";

const cg_dialect cg_dialect_opencl = {
    .name = "opencl",
    .preamble = preamble,
    .kernel = "__kernel void",
    .global = "__global ",
    .thread = "(ts_long)get_global_id(0)",
    .scalar = spellings,
};
