/* runtime/ops/pointwise.c - promotion, broadcasting, conversion and the walk over memory. */
#include "runtime/ops/pointwise.h"

enum { BLOCK = 512 };

typedef union block_memory {
    float f[BLOCK];
    double d[BLOCK];
    int64_t i[BLOCK];
    rt_complex128 c[BLOCK];
} block_memory;

void rt_pw_set_param(rt_pw_params *params, int at, rt_value number) {
    params->d[at] = rt_as_double(number);
    params->i[at] = rt_as_int(number);
    if (at < 2)
        params->c[at] = rt_as_complex(number);
}

/* The dtype whose memory is a block of that work type as it stands. */
static bool is_work_dtype(rt_work work, rt_dtype dtype) {
    switch (work) {
    case RT_WORK_FLOAT:
        return dtype == RT_float32;
    case RT_WORK_DOUBLE:
        return dtype == RT_float64;
    case RT_WORK_INT:
        return dtype == RT_int64;
    case RT_WORK_COMPLEX:
        return dtype == RT_complex128;
    }
    return false;
}

typedef struct operand {
    rt_dtype dtype;
    bool is_direct;   /* memory of the work type */
    bool is_constant; /* a number: block filled once */
    bool round_to;    /* other dtype than a 16-bit common one: rounds on load */
    bool is_filled;
    char *at;
    int64_t stride;
    block_memory *block;
} operand;

static void fill_block(rt_work work, block_memory *block, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        switch (work) {
        case RT_WORK_FLOAT:
            block->f[i] = block->f[0];
            break;
        case RT_WORK_DOUBLE:
            block->d[i] = block->d[0];
            break;
        case RT_WORK_INT:
            block->i[i] = block->i[0];
            break;
        case RT_WORK_COMPLEX:
            block->c[i] = block->c[0];
            break;
        }
}

/* PyTorch's kernels of 16-bit floats multiply and divide by a number as it is (their opmath); for
 * the others it becomes an element of the common dtype first. */
static bool reads_number_whole(const rt_pw_kernel *kernel, int at) {
    if (kernel == &rt_pw_lerp)
        return at == 2;
    return at == 1 && (kernel == &rt_pw_mul || kernel == &rt_pw_div ||
                       kernel == &rt_pw_div_floor || kernel == &rt_pw_div_trunc);
}

static void load_number(rt_work work, rt_dtype common, rt_value v, bool is_whole,
                        block_memory *block) {
    unsigned char element[16];
    switch (v.tag) {
    case RT_TAG_COMPLEX:
        rt_store_complex(common, element, rt_as_complex(v));
        break;
    case RT_TAG_FLOAT:
        rt_store_double(common, element, v.as.f);
        break;
    default:
        rt_store_int(common, element, rt_as_int(v));
        break;
    }
    if (is_whole && rt_dtype_is_short(common))
        block->f[0] = (float)rt_as_double(v);
    else
        rt_load_block(work, common, (const char *)element, 0, 1, block);
    fill_block(work, block, BLOCK);
}

static void round_block(rt_dtype common, block_memory *block, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        block->f[i] = rt_round_short(common, block->f[i]);
}

static const void *load_operand(rt_work work, rt_dtype common, operand *o, int64_t n) {
    if (o->is_constant || (o->stride == 0 && o->is_filled))
        return o->block;
    if (o->is_direct && o->stride == (int64_t)rt_work_size(work))
        return o->at;
    if (o->stride == 0) { /* broadcast along the inner loop */
        rt_load_block(work, o->dtype, o->at, 0, 1, o->block);
        if (o->round_to)
            round_block(common, o->block, 1);
        fill_block(work, o->block, n);
        o->is_filled = true;
        return o->block;
    }
    rt_load_block(work, o->dtype, o->at, o->stride, n, o->block);
    if (o->round_to)
        round_block(common, o->block, n);
    return o->block;
}

static void run_inner(rt_pw_call *call, rt_work work, rt_dtype common, rt_dtype result,
                      operand *operands, char *out, int64_t out_stride, int64_t n,
                      block_memory *out_block) {
    rt_pw_block function = call->kernel->blocks[work];
    const void *in[RT_PW_OPERANDS];
    bool is_direct = is_work_dtype(work, result) && out_stride == (int64_t)rt_work_size(work);
    for (int64_t done = 0; done < n; done += BLOCK) {
        int64_t m = n - done < BLOCK ? n - done : BLOCK;
        for (int p = 0; p < call->count; p++) {
            in[p] = load_operand(work, common, &operands[p], m);
            if (!operands[p].is_constant)
                operands[p].at += operands[p].stride * m;
        }
        if (is_direct) {
            function(out, in, m, &call->params);
        } else {
            function(out_block, in, m, &call->params);
            rt_store_block(work, result, out, out_stride, m, out_block);
        }
        out += out_stride * m;
    }
}

static rt_dtype result_dtype(const rt_pw_kernel *kernel, rt_dtype common) {
    switch (kernel->result) {
    case RT_PW_SAME:
    case RT_PW_FLOAT:
        return common;
    case RT_PW_BOOL:
        return RT_bool;
    case RT_PW_REAL:
    case RT_PW_FLOAT_REAL:
        return rt_dtype_real(common);
    }
    return common;
}

static rt_dtype common_dtype(const rt_pw_call *call) {
    if (call->compute != RT_DTYPE_UNKNOWN)
        return call->compute;
    rt_promotion promotion = RT_PROMOTION_START;
    for (int p = call->has_condition; p < call->count; p++)
        rt_promotion_add(&promotion, call->operands[p]);
    rt_dtype common = rt_promotion_result(&promotion);
    if ((call->kernel->result == RT_PW_FLOAT || call->kernel->result == RT_PW_FLOAT_REAL) &&
        (rt_dtype_is_integral(common) || common == RT_bool))
        common = RT_float32;
    return common;
}

ts_status rt_pw_run(rt_pw_call *call, rt_value *out) {
    int64_t sizes[RT_MAX_RANK];
    int rank = 0;
    for (int p = 0; p < call->count; p++) {
        if (call->operands[p].tag != RT_TAG_TENSOR)
            continue;
        const rt_tensor *t = call->operands[p].as.tensor;
        TS_TRY(rt_broadcast(sizes, rank, t->sizes, t->rank, sizes, &rank));
    }
    rt_dtype common = common_dtype(call);
    if (common == RT_DTYPE_UNKNOWN)
        return ts_raise("TypeError", "%s expects tensors and numbers", call->kernel->name);
    rt_work work = rt_work_of(common);
    if (!call->kernel->blocks[work])
        return rt_not_implemented(call->kernel->name, common);
    rt_dtype result =
        call->result != RT_DTYPE_UNKNOWN ? call->result : result_dtype(call->kernel, common);
    call->params.dtype = common;
    call->params.raise = NULL;
    rt_tensor *target = call->into;
    if (!target)
        TS_TRY(rt_tensor_make(result, sizes, rank, &target));

    block_memory blocks[RT_PW_OPERANDS + 1];
    operand operands[RT_PW_OPERANDS];
    int slot[RT_PW_OPERANDS];
    rt_loop loop;
    rt_loop_init(&loop, target->sizes, target->rank);
    rt_loop_add(&loop, target);
    for (int p = 0; p < call->count; p++) {
        rt_value v = call->operands[p];
        operands[p] = (operand){.block = &blocks[p]};
        if (v.tag == RT_TAG_TENSOR) {
            operands[p].dtype = rt_dtype_of(v.as.tensor);
            operands[p].is_direct = is_work_dtype(work, operands[p].dtype);
            bool is_number = v.as.tensor->rank == 0 && reads_number_whole(call->kernel, p);
            operands[p].round_to = rt_dtype_is_short(common) && operands[p].dtype != common &&
                                   operands[p].dtype != RT_bool && !is_number;
            slot[p] = loop.operand_count;
            rt_loop_add(&loop, v.as.tensor);
        } else {
            operands[p].is_constant = true;
            load_number(work, common, v, reads_number_whole(call->kernel, p), &blocks[p]);
            slot[p] = 0;
        }
    }
    for (rt_loop_start(&loop); loop.is_running; rt_loop_next(&loop)) {
        for (int p = 0; p < call->count; p++) {
            operands[p].at = loop.data[slot[p]];
            operands[p].stride = loop.inner_strides[slot[p]];
            operands[p].is_filled = false;
        }
        run_inner(call, work, common, result, operands, loop.data[0], loop.inner_strides[0],
                  loop.inner_count, &blocks[RT_PW_OPERANDS]);
    }
    if (call->params.raise) {
        if (!call->into)
            rt_tensor_release(target);
        return ts_raise("RuntimeError", "%s", call->params.raise);
    }
    *out = call->into ? rt_retain(rt_from_tensor(target)) : rt_from_tensor(target);
    return NULL;
}

ts_status rt_pw_simple(const rt_pw_kernel *kernel, const rt_value *operands, int count,
                       rt_value *out) {
    rt_pw_call call = {
        .kernel = kernel, .count = count, .compute = RT_DTYPE_UNKNOWN, .result = RT_DTYPE_UNKNOWN};
    for (int p = 0; p < count; p++)
        call.operands[p] = operands[p];
    return rt_pw_run(&call, out);
}
