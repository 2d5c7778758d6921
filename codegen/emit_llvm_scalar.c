/* codegen/emit_llvm_scalar.c - scalar operations as LLVM vectors of any width.
 *
 * float32 transcendental functions are polynomials of our own, the same on every machine. Bounds
 * (largest error in units of the last place over all inputs, tested in kernel_math_test.c):
 *   exp 1.1 (0 below 2^-125.5), log 1.2, tanh 2, erf 1.2, sigmoid 3, sin and cos 1.6,
 *   expm1 and log1p 4; normcdf 8e-8 absolute.
 * Sources: exp, log, tanh, sin, cos from the Cephes library (expf.c, logf.c, tanhf.c, sinf.c); erf
 * in two ranges after N. Juffa's published single-precision minimax polynomials. */
#include "codegen/emit_llvm_kernel.h"

#include <math.h>
#include <string.h>

LLVMTypeRef kn_vector_of(LLVMTypeRef scalar, int width) {
    return width == 1 ? scalar : LLVMVectorType(scalar, (unsigned)width);
}

static LLVMTypeRef scalar_type(kn_emitter *e, rt_dtype type) {
    switch (type) {
    case RT_float32: return e->unit->f32;
    case RT_float64: return e->unit->f64;
    case RT_int64: return e->unit->i64;
    case RT_int32: return e->unit->i32;
    case RT_int16: return e->unit->i16;
    case RT_int8: case RT_uint8: return e->unit->i8;
    default: return e->unit->i1;
    }
}

LLVMTypeRef kn_llvm_type(kn_emitter *e, rt_dtype type, int width) {
    return kn_vector_of(scalar_type(e, type), width);
}

LLVMValueRef kn_splat(kn_emitter *e, LLVMValueRef scalar, int width) {
    if (width == 1)
        return scalar;
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), (unsigned)width);
    LLVMValueRef undef = LLVMGetUndef(type);
    LLVMValueRef one = LLVMBuildInsertElement(e->b, undef, scalar,
                                              LLVMConstInt(e->unit->i32, 0, 0), "");
    return LLVMBuildShuffleVector(e->b, one, undef,
                                  LLVMConstNull(LLVMVectorType(e->unit->i32, (unsigned)width)), "");
}

static LLVMValueRef repeat(LLVMValueRef v, int width) {
    if (width == 1)
        return v;
    LLVMValueRef lanes[64];
    for (int i = 0; i < width; i++)
        lanes[i] = v;
    return LLVMConstVector(lanes, (unsigned)width);
}

LLVMValueRef kn_float_constant(kn_emitter *e, rt_dtype type, int width, double value) {
    return repeat(LLVMConstReal(scalar_type(e, type), value), width);
}
LLVMValueRef kn_int_constant(kn_emitter *e, rt_dtype type, int width, int64_t value) {
    return repeat(LLVMConstInt(scalar_type(e, type), (unsigned long long)value, 1), width);
}

LLVMValueRef kn_intrinsic(kn_emitter *e, const char *name, LLVMTypeRef *types, unsigned type_count,
                          LLVMValueRef *args, unsigned arg_count) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(e->unit->module, id, types, type_count);
    LLVMTypeRef type = LLVMIntrinsicGetType(e->unit->context, id, types, type_count);
    return LLVMBuildCall2(e->b, type, f, args, arg_count, "");
}

void kn_prefetch(kn_emitter *e, LLVMValueRef address) {
    LLVMTypeRef pointer = e->unit->pointer;
    LLVMValueRef read = LLVMConstInt(e->unit->i32, 0, 0), second = LLVMConstInt(e->unit->i32, 2, 0);
    LLVMValueRef data = LLVMConstInt(e->unit->i32, 1, 0), args[4] = {address, read, second, data};
    kn_intrinsic(e, "llvm.prefetch", &pointer, 1, args, 4);
}

static LLVMValueRef unary(kn_emitter *e, const char *name, LLVMValueRef a) {
    LLVMTypeRef type = LLVMTypeOf(a);
    return kn_intrinsic(e, name, &type, 1, &a, 1);
}

LLVMValueRef kn_fma(kn_emitter *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
    if (!e->unit->target->has_fma)
        return LLVMBuildFAdd(e->b, LLVMBuildFMul(e->b, a, b, ""), c, "");
    LLVMTypeRef type = LLVMTypeOf(a);
    LLVMValueRef args[3] = {a, b, c};
    return kn_intrinsic(e, "llvm.fma", &type, 1, args, 3);
}

/* ---- float32 functions; F(x) is a constant of the width at hand ---- */
#define F(x) kn_float_constant(e, RT_float32, w, (x))
#define I(x) kn_int_constant(e, RT_int32, w, (x))
#define ADD(u_, v_) LLVMBuildFAdd(e->b, (u_), (v_), "")
#define SUB(u_, v_) LLVMBuildFSub(e->b, (u_), (v_), "")
#define MUL(u_, v_) LLVMBuildFMul(e->b, (u_), (v_), "")
#define DIV(u_, v_) LLVMBuildFDiv(e->b, (u_), (v_), "")
#define SELECT(c_, u_, v_) LLVMBuildSelect(e->b, (c_), (u_), (v_), "")
#define BELOW(u_, v_) LLVMBuildFCmp(e->b, LLVMRealOLT, (u_), (v_), "")
#define ABOVE(u_, v_) LLVMBuildFCmp(e->b, LLVMRealOGT, (u_), (v_), "")
#define BITS(u_) LLVMBuildBitCast(e->b, (u_), kn_llvm_type(e, RT_int32, w), "")
#define FLOATS(u_) LLVMBuildBitCast(e->b, (u_), kn_llvm_type(e, RT_float32, w), "")

static LLVMValueRef horner(kn_emitter *e, int w, LLVMValueRef x, const double *c, int count) {
    LLVMValueRef p = F(c[0]);
    for (int i = 1; i < count; i++)
        p = kn_fma(e, p, x, F(c[i]));
    return p;
}

static LLVMValueRef lanes_from(kn_emitter *e, LLVMValueRef a, LLVMValueRef b, int first, int count) {
    LLVMValueRef lanes[64];
    for (int i = 0; i < count; i++)
        lanes[i] = LLVMConstInt(e->unit->i32, (unsigned)(first + i), 0);
    return LLVMBuildShuffleVector(e->b, a, b, LLVMConstVector(lanes, (unsigned)count), "");
}

/* 2^r for |r| <= 0.5, after Cephes' exp2f; with the roundings of Horner's form within 8e-8. */
static const double power_of_two[] = {1.53533517732e-4, 1.33988978224e-3, 9.61843784899e-3, 5.5503323674e-2,
                                      2.40226477385e-1, 6.93147182465e-1, 1.0};

static bool has_scaling(const kn_emitter *e, int w) {
    return w % 16 == 0 && e->unit->target->vector_bytes == 64;
}

/* y * 2^n by the instruction that AVX-512 has for it, which takes 16 lanes; 0 where n is below -126: numbers
 * below the normal ones cost an Intel core some 150 cycles (attention with a fifth of its keys masked ran at
 * 40 % of its speed). */
static LLVMValueRef emit_scale(kn_emitter *e, int w, LLVMValueRef y, LLVMValueRef n) {
    if (w > 16) {
        LLVMValueRef low = emit_scale(e, w / 2, lanes_from(e, y, y, 0, w / 2),
                                      lanes_from(e, n, n, 0, w / 2));
        LLVMValueRef high = emit_scale(e, w / 2, lanes_from(e, y, y, w / 2, w / 2),
                                       lanes_from(e, n, n, w / 2, w / 2));
        return lanes_from(e, low, high, 0, w);
    }
    LLVMValueRef is_normal = LLVMBuildFCmp(e->b, LLVMRealUGE, n, F(-126.0), ""); /* a NaN stays one */
    LLVMValueRef args[5] = {y, n, LLVMConstNull(LLVMTypeOf(y)),
                            LLVMBuildBitCast(e->b, is_normal, e->unit->i16, ""),
                            LLVMConstInt(e->unit->i32, 4, 0)};
    return kn_intrinsic(e, "llvm.x86.avx512.mask.scalef.ps.512", NULL, 0, args, 5);
}

static LLVMValueRef emit_exp(kn_emitter *e, int w, LLVMValueRef x) {
    static const double c[] = {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3,
                               4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1};
    /* Beyond these the result is infinite or zero; a NaN passes both tests by. */
    x = SELECT(ABOVE(x, F(89.0)), F(89.0), x);
    bool scales = has_scaling(e, w);
    if (!scales)
        x = SELECT(BELOW(x, F(-87.5)), F(-87.5), x);
    /* Adding 1.5 * 2^23 leaves the rounded integer in the low bits of the sum. */
    LLVMValueRef magic = F(12582912.0);
    LLVMValueRef shifted = kn_fma(e, x, F(1.44269504088896341), magic);
    LLVMValueRef n = SUB(shifted, magic);
    LLVMValueRef r = kn_fma(e, n, F(-0.693359375), x);
    r = kn_fma(e, n, F(2.12194440e-4), r);
    LLVMValueRef y = horner(e, w, r, c, 6);
    y = kn_fma(e, MUL(r, r), y, r);
    y = ADD(y, F(1.0));
    if (scales)
        return emit_scale(e, w, y, n);
    /* 2y * 2^(n-1), as n reaches 128; at n = -126 the scale is 0: what is below 2^-125.5 is 0. */
    LLVMValueRef exponent = LLVMBuildAdd(e->b, BITS(shifted), I(126 - 0x4b400000), "");
    LLVMValueRef scale = FLOATS(LLVMBuildShl(e->b, exponent, I(23), ""));
    return MUL(ADD(y, y), scale);
}

LLVMValueRef kn_emit_softmax_exp(kn_emitter *e, int w, LLVMValueRef x) {
    bool scales = has_scaling(e, w);
    if (!scales) /* 2^-127 is 0 below */
        x = SELECT(BELOW(x, F(-88.0296919)), F(-88.0296919), x);
    LLVMValueRef magic = F(12582912.0), log2_e = F(1.44269504088896341);
    LLVMValueRef shifted = kn_fma(e, x, log2_e, magic), n = SUB(shifted, magic);
    LLVMValueRef r = kn_fma(e, x, log2_e, LLVMBuildFNeg(e->b, n, ""));
    LLVMValueRef y = horner(e, w, r, power_of_two, 7);
    if (scales)
        return emit_scale(e, w, y, n);
    LLVMValueRef exponent = LLVMBuildAdd(e->b, BITS(shifted), I(127 - 0x4b400000), "");
    return MUL(y, FLOATS(LLVMBuildShl(e->b, exponent, I(23), "")));
}

static LLVMValueRef emit_log(kn_emitter *e, int w, LLVMValueRef x) {
    static const double c[] = {7.0376836292e-2,  -1.1514610310e-1, 1.1676998740e-1,
                               -1.2420140846e-1, 1.4249322787e-1,  -1.6668057665e-1,
                               2.0000714765e-1,  -2.4999993993e-1, 3.3333331174e-1};
    LLVMValueRef tiny = BELOW(x, F(1.17549435e-38));
    LLVMValueRef y = SELECT(tiny, MUL(x, F(8388608.0)), x);
    LLVMValueRef bits = BITS(y);
    LLVMValueRef exponent = LLVMBuildSub(e->b, LLVMBuildLShr(e->b, bits, I(23), ""), I(126), "");
    exponent = LLVMBuildSub(e->b, exponent, SELECT(tiny, I(23), I(0)), "");
    LLVMValueRef m = FLOATS(LLVMBuildOr(
        e->b, LLVMBuildAnd(e->b, bits, I(0x007fffff), ""), I(0x3f000000), "")); /* [0.5, 1) */
    LLVMValueRef small = BELOW(m, F(0.707106781186547524));
    LLVMValueRef n = LLVMBuildSIToFP(e->b, exponent, kn_llvm_type(e, RT_float32, w), "");
    n = SUB(n, SELECT(small, F(1.0), F(0.0)));
    m = SUB(SELECT(small, ADD(m, m), m), F(1.0));
    LLVMValueRef z = MUL(m, m);
    LLVMValueRef p = MUL(MUL(horner(e, w, m, c, 9), m), z);
    p = kn_fma(e, n, F(-2.12194440e-4), p);
    p = kn_fma(e, z, F(-0.5), p);
    LLVMValueRef r = kn_fma(e, n, F(0.693359375), ADD(m, p));
    r = SELECT(ABOVE(x, F(3.40282347e38)), F(HUGE_VAL), r);
    r = SELECT(LLVMBuildFCmp(e->b, LLVMRealOEQ, x, F(0.0), ""), F(-HUGE_VAL), r);
    /* Negative or NaN. */
    return SELECT(LLVMBuildFCmp(e->b, LLVMRealULT, x, F(0.0), ""), F((double)NAN), r);
}

static LLVMValueRef copy_sign(kn_emitter *e, LLVMValueRef magnitude, LLVMValueRef sign) {
    LLVMTypeRef type = LLVMTypeOf(sign);
    LLVMValueRef args[2] = {magnitude, sign};
    return kn_intrinsic(e, "llvm.copysign", &type, 1, args, 2);
}

/* 1 / d for d in [1, 2]: AVX-512's approximation within 2^-14 and one step of Newton, which take a third of
 * the time of its division. */
static LLVMValueRef emit_inverse(kn_emitter *e, int w, LLVMValueRef d) {
    if (w > 16)
        return lanes_from(e, emit_inverse(e, w / 2, lanes_from(e, d, d, 0, w / 2)),
                          emit_inverse(e, w / 2, lanes_from(e, d, d, w / 2, w / 2)), 0, w);
    LLVMValueRef args[3] = {d, LLVMConstNull(LLVMTypeOf(d)), LLVMConstAllOnes(e->unit->i16)};
    LLVMValueRef y = kn_intrinsic(e, "llvm.x86.avx512.rcp14.ps.512", NULL, 0, args, 3);
    LLVMValueRef rest = kn_fma(e, LLVMBuildFNeg(e->b, d, ""), y, F(1.0));
    return kn_fma(e, y, rest, y);
}

/* exp(-times * a) for a >= 0, which cannot overflow; `times` is a power of two. */
static LLVMValueRef emit_falling_exp(kn_emitter *e, int w, LLVMValueRef a, double times) {
    LLVMValueRef magic = F(12582912.0), rate = F(-1.44269504 * times); /* log2(e) rounded; its rest below */
    LLVMValueRef shifted = kn_fma(e, a, rate, magic), n = SUB(shifted, magic);
    LLVMValueRef r = kn_fma(e, a, rate, LLVMBuildFNeg(e->b, n, ""));
    r = kn_fma(e, a, F(-1.92596299e-8 * times), r);
    return emit_scale(e, w, horner(e, w, r, power_of_two, 7), n);
}

static LLVMValueRef emit_tanh(kn_emitter *e, int w, LLVMValueRef x) {
    static const double c[] = {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                               1.33314422036e-1, -3.33332819422e-1};
    LLVMValueRef a = unary(e, "llvm.fabs", x);
    LLVMValueRef z = MUL(x, x);
    LLVMValueRef small = kn_fma(e, MUL(horner(e, w, z, c, 5), z), x, x);
    LLVMValueRef large;
    if (has_scaling(e, w)) { /* 1 - 2 t / (1 + t) for t = exp(-2 |x|) */
        LLVMValueRef t = emit_falling_exp(e, w, a, 2);
        large = kn_fma(e, MUL(emit_inverse(e, w, ADD(F(1.0), t)), t), F(-2.0), F(1.0));
    } else {
        large = SUB(F(1.0), DIV(F(2.0), ADD(emit_exp(e, w, ADD(a, a)), F(1.0))));
    }
    large = copy_sign(e, large, x);
    return SELECT(BELOW(a, F(0.625)), small, large);
}

static LLVMValueRef emit_sigmoid(kn_emitter *e, int w, LLVMValueRef x) {
    if (has_scaling(e, w)) {
        LLVMValueRef falling = emit_falling_exp(e, w, unary(e, "llvm.fabs", x), 1);
        LLVMValueRef y = emit_inverse(e, w, ADD(F(1.0), falling));
        return SELECT(BELOW(x, F(0.0)), MUL(y, falling), y);
    }
    LLVMValueRef t = emit_exp(e, w, LLVMBuildFNeg(e->b, x, ""));
    return DIV(F(1.0), ADD(F(1.0), t));
}

static LLVMValueRef emit_erf(kn_emitter *e, int w, LLVMValueRef x) {
    LLVMValueRef t = unary(e, "llvm.fabs", x);
    LLVMValueRef s = MUL(x, x);
    LLVMValueRef r = kn_fma(e, F(-1.72853470e-5), t, F(3.83197126e-4));
    LLVMValueRef u = kn_fma(e, F(-3.88396438e-3), t, F(2.42546219e-2));
    r = kn_fma(e, r, s, u);
    r = kn_fma(e, r, t, F(-1.06777877e-1));
    r = kn_fma(e, r, t, F(-6.34846687e-1));
    r = kn_fma(e, r, t, F(-1.28717512e-1));
    r = kn_fma(e, r, t, LLVMBuildFNeg(e->b, t, ""));
    LLVMValueRef large = SUB(F(1.0), emit_exp(e, w, r));
    /* exp's argument overflows to -inf * ... far out: the value is 1 from 4 on. */
    large = SELECT(ABOVE(t, F(4.0)), F(1.0), large);
    large = copy_sign(e, large, x);
    static const double c[] = {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1,
                               -3.76125336e-1, 1.28379166e-1};
    LLVMValueRef small = kn_fma(e, horner(e, w, s, c, 6), x, x);
    LLVMValueRef y = SELECT(ABOVE(t, F(0.927734375)), large, small);
    return SELECT(LLVMBuildFCmp(e->b, LLVMRealUNO, x, x, ""), x, y);
}

/* The normal distribution function, for gelu: E = 2^q(|x|) is its value at -|x|, 1 - E that at |x|. q
 * is a polynomial fitted to log2 of it on [0, 7] so that E is off by less than 1e-8; beyond, its
 * leading term takes E to zero. */
static LLVMValueRef emit_normcdf(kn_emitter *e, int w, LLVMValueRef x) {
    static const double q_terms[] = {-2.7720491289073834e-6, 3.8620746636297554e-5,
                                     -1.8254760652780533e-4, -1.4587014447897673e-4,
                                     7.075471803545952e-3,   -5.250502750277519e-2,
                                     -4.5920491218566895e-1, -1.1511057615280151, -1.0};
    LLVMValueRef a = unary(e, "llvm.fabs", x);
    LLVMValueRef q = horner(e, w, a, q_terms, 9);
    bool scales = has_scaling(e, w);
    if (!scales) /* -127 gives 0 below */
        q = SELECT(BELOW(q, F(-127.0)), F(-127.0), q);
    LLVMValueRef magic = F(12582912.0), shifted = ADD(q, magic), n = SUB(shifted, magic);
    LLVMValueRef y = horner(e, w, SUB(q, n), power_of_two, 7);
    if (scales)
        y = emit_scale(e, w, y, n);
    else
        y = MUL(y, FLOATS(LLVMBuildShl(e->b, LLVMBuildAdd(e->b, BITS(shifted), I(127 - 0x4b400000), ""),
                                       I(23), "")));
    return SELECT(ABOVE(x, F(0.0)), SUB(F(1.0), y), y);
}

static LLVMValueRef emit_log1p(kn_emitter *e, int w, LLVMValueRef x) {
    /* log(u) - ((u - 1) - x) / u for u = 1 + x (Kahan); x itself where u is 1. */
    LLVMValueRef u = ADD(F(1.0), x);
    LLVMValueRef lost = SUB(SUB(u, F(1.0)), x);
    LLVMValueRef r = SUB(emit_log(e, w, u), DIV(lost, u));
    r = SELECT(LLVMBuildFCmp(e->b, LLVMRealOEQ, u, F(1.0), ""), x, r);
    r = SELECT(ABOVE(x, F(3.40282347e38)), x, r);
    return SELECT(LLVMBuildFCmp(e->b, LLVMRealOEQ, u, F(0.0), ""), F(-HUGE_VAL), r);
}

static LLVMValueRef emit_expm1(kn_emitter *e, int w, LLVMValueRef x) {
    /* Taylor to degree 8 below 0.5 (remainder below 1e-8 of the result), exp - 1 outside. */
    static const double c[] = {2.48015873e-5,  1.98412698e-4,  1.38888889e-3, 8.33333333e-3,
                               4.166666667e-2, 1.666666667e-1, 0.5};
    LLVMValueRef small = kn_fma(e, MUL(horner(e, w, x, c, 7), x), x, x);
    LLVMValueRef large = SUB(emit_exp(e, w, x), F(1.0));
    return SELECT(BELOW(unary(e, "llvm.fabs", x), F(0.5)), small, large);
}

/* sin and cos: the argument is reduced in double by multiples of pi/2, exact enough to 2^40. */
static LLVMValueRef emit_sine(kn_emitter *e, int w, LLVMValueRef x, bool is_cosine) {
    LLVMTypeRef wide = kn_llvm_type(e, RT_float64, w);
    LLVMValueRef xd = LLVMBuildFPExt(e->b, x, wide, "");
    LLVMValueRef magic = kn_float_constant(e, RT_float64, w, 6755399441055744.0);
    LLVMValueRef shifted = ADD(
        MUL(xd, kn_float_constant(e, RT_float64, w, 0.63661977236758134308)), magic);
    LLVMValueRef n = SUB(shifted, magic);
    LLVMValueRef r = kn_fma(e, n, kn_float_constant(e, RT_float64, w, -1.57079632679489655800), xd);
    r = kn_fma(e, n, kn_float_constant(e, RT_float64, w, -6.12323399573676603587e-17), r);
    LLVMValueRef y = LLVMBuildFPTrunc(e->b, r, kn_llvm_type(e, RT_float32, w), "");
    LLVMValueRef q = LLVMBuildTrunc(
        e->b, LLVMBuildBitCast(e->b, shifted, kn_llvm_type(e, RT_int64, w), ""),
        kn_llvm_type(e, RT_int32, w), "");
    if (is_cosine)
        q = LLVMBuildAdd(e->b, q, I(1), "");
    static const double s[] = {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1};
    static const double c[] = {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2};
    LLVMValueRef z = MUL(y, y);
    LLVMValueRef sine = kn_fma(e, MUL(horner(e, w, z, s, 3), z), y, y);
    LLVMValueRef cosine = kn_fma(e, z, F(-0.5), F(1.0));
    cosine = kn_fma(e, MUL(z, z), horner(e, w, z, c, 3), cosine);
    LLVMValueRef odd = LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildAnd(e->b, q, I(1), ""), I(0), "");
    LLVMValueRef v = SELECT(odd, cosine, sine);
    LLVMValueRef sign = LLVMBuildShl(e->b, LLVMBuildAnd(e->b, q, I(2), ""), I(30), "");
    return FLOATS(LLVMBuildXor(e->b, BITS(v), sign, ""));
}

bool kn_scalar_is_heavy(kn_code code) {
    switch (code) {
    case KN_exp: case KN_expm1: case KN_log: case KN_log1p: case KN_sin: case KN_cos:
    case KN_tanh: case KN_erf: case KN_sigmoid: case KN_normcdf:
        return true;
    default:
        return false;
    }
}

bool kn_scalar_has_type(kn_code code, rt_dtype type) {
    if (kn_scalar_is_heavy(code))
        return type == RT_float32;
    switch (code) {
    case KN_sqrt: case KN_rsqrt: case KN_reciprocal: case KN_floor: case KN_ceil: case KN_trunc:
    case KN_round: case KN_div: case KN_isnan: case KN_fma:
        return rt_dtype_is_float(type);
    case KN_and: case KN_or: case KN_xor: case KN_invert:
        return !rt_dtype_is_float(type);
    case KN_not:
        return type == RT_bool;
    case KN_neg: case KN_abs: case KN_sign: case KN_sub:
        return type != RT_bool;
    default:
        return true;
    }
}

static LLVMValueRef emit_compare(kn_emitter *e, kn_code code, rt_dtype type, LLVMValueRef a,
                                 LLVMValueRef b) {
    if (rt_dtype_is_float(type)) {
        LLVMRealPredicate p = code == KN_eq   ? LLVMRealOEQ
                              : code == KN_ne ? LLVMRealUNE
                              : code == KN_lt ? LLVMRealOLT
                              : code == KN_le ? LLVMRealOLE
                              : code == KN_gt ? LLVMRealOGT
                                              : LLVMRealOGE;
        return LLVMBuildFCmp(e->b, p, a, b, "");
    }
    bool is_unsigned = type == RT_uint8 || type == RT_bool;
    LLVMIntPredicate p = code == KN_eq   ? LLVMIntEQ
                         : code == KN_ne ? LLVMIntNE
                         : code == KN_lt ? (is_unsigned ? LLVMIntULT : LLVMIntSLT)
                         : code == KN_le ? (is_unsigned ? LLVMIntULE : LLVMIntSLE)
                         : code == KN_gt ? (is_unsigned ? LLVMIntUGT : LLVMIntSGT)
                                         : (is_unsigned ? LLVMIntUGE : LLVMIntSGE);
    return LLVMBuildICmp(e->b, p, a, b, "");
}

/* The greater (smaller) of two; NaN where either is: the comparison keeps b where it is unordered,
 * so only a NaN in a needs a second look. */
static LLVMValueRef emit_extreme(kn_emitter *e, rt_dtype type, bool is_max, LLVMValueRef a,
                                 LLVMValueRef b) {
    LLVMValueRef takes_a = emit_compare(e, is_max ? KN_gt : KN_lt, type, a, b);
    LLVMValueRef v = SELECT(takes_a, a, b);
    if (!rt_dtype_is_float(type) || LLVMIsConstant(a))
        return v;
    return SELECT(LLVMBuildFCmp(e->b, LLVMRealUNO, a, a, ""), a, v);
}

static const unsigned char arities[] = {
#define SCALAR(id, arity, opencl, cuda) [KN_##id] = arity,
#include "codegen/scalar_ops.def"
};

LLVMValueRef kn_emit_scalar(kn_emitter *e, kn_code code, rt_dtype type, int w,
                            LLVMValueRef *args) {
    LLVMValueRef a = args[0], b = arities[code] > 1 ? args[1] : NULL;
    bool is_float = rt_dtype_is_float(type);
    switch (code) {
    case KN_neg:
        return is_float ? LLVMBuildFNeg(e->b, a, "") : LLVMBuildNeg(e->b, a, "");
    case KN_abs:
        if (is_float)
            return unary(e, "llvm.fabs", a);
        if (type == RT_uint8)
            return a;
        return SELECT(LLVMBuildICmp(e->b, LLVMIntSLT, a, LLVMConstNull(LLVMTypeOf(a)), ""),
                      LLVMBuildNeg(e->b, a, ""), a);
    case KN_sqrt: return unary(e, "llvm.sqrt", a);
    case KN_rsqrt:
        return DIV(kn_float_constant(e, type, w, 1.0), unary(e, "llvm.sqrt", a));
    case KN_reciprocal: return DIV(kn_float_constant(e, type, w, 1.0), a);
    case KN_exp: return emit_exp(e, w, a);
    case KN_expm1: return emit_expm1(e, w, a);
    case KN_log: return emit_log(e, w, a);
    case KN_log1p: return emit_log1p(e, w, a);
    case KN_sin: return emit_sine(e, w, a, false);
    case KN_cos: return emit_sine(e, w, a, true);
    case KN_tanh: return emit_tanh(e, w, a);
    case KN_erf: return emit_erf(e, w, a);
    case KN_normcdf: return emit_normcdf(e, w, a);
    case KN_sigmoid: return emit_sigmoid(e, w, a);
    case KN_floor: return unary(e, "llvm.floor", a);
    case KN_ceil: return unary(e, "llvm.ceil", a);
    case KN_trunc: return unary(e, "llvm.trunc", a);
    case KN_round: return unary(e, "llvm.roundeven", a);
    case KN_sign: {
        LLVMTypeRef t = LLVMTypeOf(a);
        LLVMValueRef zero = LLVMConstNull(t);
        LLVMValueRef one = is_float ? kn_float_constant(e, type, w, 1.0)
                                    : kn_int_constant(e, type, w, 1);
        LLVMValueRef minus = is_float ? kn_float_constant(e, type, w, -1.0)
                                      : kn_int_constant(e, type, w, -1);
        LLVMValueRef low = SELECT(emit_compare(e, KN_lt, type, a, zero), minus, zero);
        return SELECT(emit_compare(e, KN_gt, type, a, zero), one, low);
    }
    case KN_isnan: return LLVMBuildFCmp(e->b, LLVMRealUNO, a, a, "");
    case KN_not: case KN_invert: return LLVMBuildNot(e->b, a, "");
    case KN_add:
        if (type == RT_bool)
            return LLVMBuildOr(e->b, a, b, "");
        return is_float ? ADD(a, b) : LLVMBuildAdd(e->b, a, b, "");
    case KN_sub: return is_float ? SUB(a, b) : LLVMBuildSub(e->b, a, b, "");
    case KN_mul:
        if (type == RT_bool)
            return LLVMBuildAnd(e->b, a, b, "");
        return is_float ? MUL(a, b) : LLVMBuildMul(e->b, a, b, "");
    case KN_div: return DIV(a, b);
    case KN_maximum: return emit_extreme(e, type, true, a, b);
    case KN_minimum: return emit_extreme(e, type, false, a, b);
    case KN_eq: case KN_ne: case KN_lt: case KN_le: case KN_gt: case KN_ge:
        return emit_compare(e, code, type, a, b);
    case KN_and: return LLVMBuildAnd(e->b, a, b, "");
    case KN_or: return LLVMBuildOr(e->b, a, b, "");
    case KN_xor: return LLVMBuildXor(e->b, a, b, "");
    case KN_fma: return kn_fma(e, a, b, args[2]);
    case KN_select: return SELECT(a, b, args[2]);
    default: return a;
    }
}

LLVMValueRef kn_emit_cast(kn_emitter *e, LLVMValueRef v, rt_dtype from, rt_dtype to, int w) {
    if (from == to)
        return v;
    LLVMTypeRef type = kn_llvm_type(e, to, w);
    bool from_float = rt_dtype_is_float(from), to_float = rt_dtype_is_float(to);
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(v));
    if (to == RT_bool)
        return from_float ? LLVMBuildFCmp(e->b, LLVMRealUNE, v, zero, "")
                          : LLVMBuildICmp(e->b, LLVMIntNE, v, zero, "");
    if (from_float && to_float)
        return to == RT_float64 ? LLVMBuildFPExt(e->b, v, type, "")
                                : LLVMBuildFPTrunc(e->b, v, type, "");
    bool is_unsigned = from == RT_bool || from == RT_uint8;
    if (to_float)
        return is_unsigned ? LLVMBuildUIToFP(e->b, v, type, "") : LLVMBuildSIToFP(e->b, v, type, "");
    if (from_float) {
        /* What does not fit: the smallest int32 or int64, as the processor gives it and PyTorch
         * passes it on; narrower types take int64's low bits. */
        if (to == RT_int32)
            return LLVMBuildFPToSI(e->b, v, type, "");
        LLVMValueRef wide = LLVMBuildFPToSI(e->b, v, kn_llvm_type(e, RT_int64, w), "");
        return to == RT_int64 ? wide : LLVMBuildTrunc(e->b, wide, type, "");
    }
    size_t from_bytes = from == RT_bool ? 0 : rt_dtype_size(from), to_bytes = rt_dtype_size(to);
    if (to_bytes < from_bytes)
        return LLVMBuildTrunc(e->b, v, type, "");
    if (to_bytes == from_bytes)
        return v; /* int8 and uint8 */
    return is_unsigned ? LLVMBuildZExt(e->b, v, type, "") : LLVMBuildSExt(e->b, v, type, "");
}

/* ---- memory ---- */

static LLVMTypeRef memory_type(kn_emitter *e, rt_dtype element) {
    if (element == RT_bool)
        return e->unit->i8;
    if (element == RT_float16 || element == RT_bfloat16)
        return e->unit->i16;
    return scalar_type(e, element);
}

static LLVMValueRef lane_addresses(kn_emitter *e, LLVMValueRef address, LLVMValueRef stride,
                                   int64_t bytes, int width) {
    LLVMValueRef lanes[64];
    for (int i = 0; i < width; i++)
        lanes[i] = kn_i64(e, i * bytes);
    LLVMValueRef offsets = LLVMBuildMul(e->b, LLVMConstVector(lanes, (unsigned)width),
                                        kn_splat(e, stride, width), "");
    return LLVMBuildGEP2(e->b, e->unit->i8, address, &offsets, 1, "");
}

static LLVMValueRef from_memory(kn_emitter *e, LLVMValueRef v, rt_dtype element, int width) {
    if (element == RT_bool)
        return LLVMBuildICmp(e->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
    if (element == RT_float16) {
        LLVMTypeRef half = kn_vector_of(LLVMHalfTypeInContext(e->unit->context), width);
        return LLVMBuildFPExt(e->b, LLVMBuildBitCast(e->b, v, half, ""),
                              kn_llvm_type(e, RT_float32, width), "");
    }
    if (element == RT_bfloat16) {
        LLVMValueRef wide = LLVMBuildZExt(e->b, v, kn_llvm_type(e, RT_int32, width), "");
        wide = LLVMBuildShl(e->b, wide, kn_int_constant(e, RT_int32, width, 16), "");
        return LLVMBuildBitCast(e->b, wide, kn_llvm_type(e, RT_float32, width), "");
    }
    return v;
}

LLVMValueRef kn_emit_load(kn_emitter *e, LLVMValueRef address, LLVMValueRef stride,
                          rt_dtype element, int width, LLVMValueRef mask) {
    LLVMTypeRef scalar = memory_type(e, element), type = kn_vector_of(scalar, width);
    unsigned align = (unsigned)rt_dtype_size(element);
    LLVMValueRef v;
    if (width > 1 && stride) {
        LLVMValueRef all = LLVMConstAllOnes(LLVMVectorType(e->unit->i1, (unsigned)width));
        LLVMValueRef addresses = lane_addresses(e, address, stride, align, width);
        LLVMTypeRef types[2] = {type, LLVMTypeOf(addresses)};
        LLVMValueRef args[4] = {addresses, LLVMConstInt(e->unit->i32, align, 0), mask ? mask : all,
                                LLVMConstNull(type)};
        v = kn_intrinsic(e, "llvm.masked.gather", types, 2, args, 4);
    } else if (width > 1 && mask) {
        LLVMTypeRef types[2] = {type, e->unit->pointer};
        LLVMValueRef args[4] = {address, LLVMConstInt(e->unit->i32, align, 0), mask,
                                LLVMConstNull(type)};
        v = kn_intrinsic(e, "llvm.masked.load", types, 2, args, 4);
    } else {
        v = LLVMBuildLoad2(e->b, type, address, "");
        LLVMSetAlignment(v, align);
    }
    return from_memory(e, v, element, width);
}

LLVMValueRef kn_emit_gather(kn_emitter *e, LLVMValueRef address, LLVMValueRef offsets,
                            rt_dtype element, int width, LLVMValueRef mask) {
    LLVMTypeRef type = kn_vector_of(memory_type(e, element), width);
    int64_t bytes = (int64_t)rt_dtype_size(element);
    if (width == 1)
        return kn_emit_load(e, kn_element(e, address, offsets, bytes), NULL, element, 1, mask);
    offsets = LLVMBuildMul(e->b, offsets, kn_int_constant(e, RT_int64, width, bytes), "");
    LLVMValueRef addresses = LLVMBuildGEP2(e->b, e->unit->i8, address, &offsets, 1, "");
    LLVMValueRef all = LLVMConstAllOnes(LLVMVectorType(e->unit->i1, (unsigned)width));
    LLVMTypeRef types[2] = {type, LLVMTypeOf(addresses)};
    LLVMValueRef args[4] = {addresses, LLVMConstInt(e->unit->i32, (unsigned)bytes, 0),
                            mask ? mask : all, LLVMConstNull(type)};
    return from_memory(e, kn_intrinsic(e, "llvm.masked.gather", types, 2, args, 4), element, width);
}

void kn_emit_store(kn_emitter *e, LLVMValueRef value, LLVMValueRef address, LLVMValueRef stride,
                   rt_dtype element, int width, LLVMValueRef mask) {
    LLVMTypeRef scalar = memory_type(e, element), type = kn_vector_of(scalar, width);
    unsigned align = (unsigned)rt_dtype_size(element);
    if (element == RT_bool)
        value = LLVMBuildZExt(e->b, value, type, "");
    if (element == RT_float16) {
        LLVMTypeRef half = kn_vector_of(LLVMHalfTypeInContext(e->unit->context), width);
        value = LLVMBuildBitCast(e->b, LLVMBuildFPTrunc(e->b, value, half, ""), type, "");
    }
    if (element == RT_bfloat16) { /* to nearest even; a NaN keeps a set mantissa bit */
        int w = width;
        LLVMValueRef bits = BITS(value);
        LLVMValueRef odd = LLVMBuildAnd(e->b, LLVMBuildLShr(e->b, bits, I(16), ""), I(1), "");
        LLVMValueRef rounded =
            LLVMBuildAdd(e->b, bits, LLVMBuildAdd(e->b, odd, I(0x7fff), ""), "");
        rounded = SELECT(LLVMBuildFCmp(e->b, LLVMRealUNO, value, value, ""), I(0x7fc00000), rounded);
        value = LLVMBuildTrunc(e->b, LLVMBuildLShr(e->b, rounded, I(16), ""), type, "");
    }
    if (width > 1 && stride) {
        LLVMValueRef all = LLVMConstAllOnes(LLVMVectorType(e->unit->i1, (unsigned)width));
        LLVMValueRef addresses = lane_addresses(e, address, stride, align, width);
        LLVMTypeRef types[2] = {type, LLVMTypeOf(addresses)};
        LLVMValueRef args[4] = {value, addresses, LLVMConstInt(e->unit->i32, align, 0),
                                mask ? mask : all};
        kn_intrinsic(e, "llvm.masked.scatter", types, 2, args, 4);
    } else if (width > 1 && mask) {
        LLVMTypeRef types[2] = {type, e->unit->pointer};
        LLVMValueRef args[4] = {value, address, LLVMConstInt(e->unit->i32, align, 0), mask};
        kn_intrinsic(e, "llvm.masked.store", types, 2, args, 4);
    } else {
        LLVMValueRef s = LLVMBuildStore(e->b, value, address);
        LLVMSetAlignment(s, align);
    }
}
