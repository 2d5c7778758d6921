/* codegen/dialect_cuda.c - CUDA C++ as NVRTC takes it, without any header. */
#include "codegen/dialect.h"

static const char *const spellings[KN_CODE_COUNT] = {
#define SCALAR(id, arity, opencl, cuda) [KN_##id] = cuda,
#include "codegen/scalar_ops.def"
};

static const char preamble[] =
    "typedef long long ts_long;\n"
    "typedef int ts_int;\n"
    "typedef short ts_short;\n"
    "typedef signed char ts_char;\n"
    "typedef unsigned char ts_uchar;\n"
    "#define ts_maximum(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))\n"
    "#define ts_minimum(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))\n"
    "#define ts_param_float(p) ((float)__longlong_as_double(p))\n"
    "#define ts_param_double(p) __longlong_as_double(p)\n"
    "#define ts_infinity __int_as_float(0x7f800000)\n";

const cg_dialect cg_dialect_cuda = {
    .name = "cuda",
    .preamble = preamble,
    .kernel = "extern \"C\" __global__ void",
    .global = "",
    .thread = "(ts_long)blockIdx.x * blockDim.x + threadIdx.x",
    .scalar = spellings,
};
