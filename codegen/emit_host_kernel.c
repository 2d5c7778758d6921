/* codegen/emit_host_kernel.c - launches: operands made dense, results allocated, parameters
 * computed, the kernel called through the runtime (which splits the work among threads).
 *
 * A kernel that codegen has no lowering for, or whose sizes are not known here, runs as the row of
 * its operators with the reference kernels instead. */
#include "codegen/emit_host.h"

#include "codegen/compile_llvm.h"

#include "runtime/base/hash.h"
#include "runtime/values/tensor.h"

/* ---- lowering, before emission ---- */

/* Of what a kernel does, whatever its name and its weights. */
static host_body body_of(cg_unit *u, ts_str symbol) {
    LLVMValueRef f = cg_unit_kernel(u, symbol);
    char *text = f ? LLVMPrintValueToString(f) : NULL, *rest = text ? strchr(text, '@') : NULL;
    host_body body = {{0, 0}};
    for (int i = 0; rest && i < 2; i++)
        body.hash[i] = ts_hash64(rest + 1 + symbol.length, strlen(rest) - 1 - symbol.length, (uint64_t)i);
    LLVMDisposeMessage(text);
    return body;
}

/* Weights are a kernel's buffers: repeated layers, which differ in them, have the same code, and it is
 * compiled once. */
static void take_body(host_module *hm, host_kernel *row) {
    cg_unit *u = hm->unit;
    if (u->dialect || !row->body.hash[0])
        return;
    for (size_t i = hm->kernel_count; i-- > 0;) {
        const host_kernel *old = &hm->kernels[i];
        if (old->body.hash[0] != row->body.hash[0] || old->body.hash[1] != row->body.hash[1])
            continue;
        cg_unit_drop_kernel(u, row->kernel->symbol);
        row->kernel->symbol = old->kernel->symbol;
        return;
    }
}

static ts_status lower_block(host_module *hm, const ir_block *block, int depth);

static ts_status lower_kernel(host_module *hm, const ir_op *op) {
    cg_unit *u = hm->unit;
    host_kernel row = {.op = op, .hash = host_kernel_hash(op)};
    for (size_t i = hm->kernel_count; i-- > 0;) {
        const host_kernel *old = &hm->kernels[i];
        if (old->hash != row.hash || !host_same_kernel(old->op, op))
            continue;
        row.kernel = old->kernel;
        TS_APPEND(u->arena, hm->kernels, hm->kernel_count, hm->kernel_capacity, row);
        return NULL;
    }
    cg_kernel *kernel = TS_NEW(u->arena, cg_kernel);
    cg_unit_next_module(u);
    uint64_t key = host_kernel_key(u->ir, op, u->target->name);
    size_t variant = cg_tuning_variant(u->options->tuning, key);
    u->variant = cg_variant_get(variant);
    ts_status status = cg_lower_kernel(u, op, kernel);
    if (u->options->trim)
        u->options->trim(u->options->trim_user);
    if (status && ts_status_code(status) != TS_ERR_UNSUPPORTED)
        return status;
    if (!status)
        row.kernel = kernel;
    cg_kernel_list *list = u->options->kernels;
    if (row.kernel) {
        row.body = body_of(u, kernel->symbol);
        take_body(hm, &row);
    }
    if (row.kernel && list) {
        cg_kernel_info info = {op, kernel->symbol, u->target->name, key,
                               row.body.hash[0], (uint8_t)variant, kernel->flops};
        TS_APPEND(u->arena, list->rows, list->count, list->capacity, info);
    }
    ts_status_release(status);
    TS_APPEND(u->arena, hm->kernels, hm->kernel_count, hm->kernel_capacity, row);
    if (!row.kernel && op->kernel_kind == IR_KERNEL_STREAM) /* then its kernels run one after the other */
        return lower_block(hm, op->regions[0], 0);
    return NULL;
}

static ts_status lower_block(host_module *hm, const ir_block *block, int depth) {
    if (depth > 1000)
        return NULL; /* reported when the function is numbered */
    for (const ir_op *op = block->first; op; op = op->next) {
        if (op->opcode == IR_OP_KERNEL) {
            TS_TRY(lower_kernel(hm, op));
            continue;
        }
        for (size_t i = 0; i < op->region_count; i++)
            TS_TRY(lower_block(hm, op->regions[i], depth + 1));
    }
    return NULL;
}

ts_status host_lower_kernels(host_module *hm) {
    for (size_t i = 0; i < hm->program->function_count; i++)
        TS_TRY(lower_block(hm, hm->program->functions[i]->body, 0));
    return NULL;
}

/* ---- the body instead of a kernel ---- */

static void emit_body(host_function *f, ir_op *op) {
    ir_block *body = op->regions[0];
    for (size_t i = 0; i < body->parameter_count && i < op->operand_count; i++) {
        host_value h = *host_of(f, op->operands[i]);
        if (h.kind == HOST_SLOT)
            h = (host_value){.kind = HOST_BORROWED, .llvm = host_slot(f, h.slot)};
        *host_of(f, body->parameters[i]) = h;
    }
    for (size_t i = 0; i < op->result_count; i++)
        if (!host_is_native(op->results[i]->type))
            host_set_slot(f, op->results[i]);
    size_t symbols = f->symbol_count;
    bool was_whole = f->is_whole;
    f->is_whole = true; /* what the body borrows are pointers of this function of LLVM */
    host_emit_block(f, body);
    f->is_whole = was_whole;
    const ir_op *yield = body->last;
    if (f->status || !yield || yield->operand_count != op->result_count) {
        host_fail(f, op, "a kernel's body does not yield its results");
        return;
    }
    for (size_t i = 0; i < op->result_count; i++) {
        const ir_value *v = op->results[i];
        if (host_is_native(v->type))
            host_set_native(f, v, host_native(f, yield->operands[i], v->type));
        else
            host_move_or_copy(f, yield->operands[i], yield, i,
                              host_slot(f, host_of(f, v)->slot));
    }
    host_release_dead(f, yield);
    f->symbol_count = symbols;
    for (size_t i = 0; i < op->result_count; i++) {
        const host_value *h = host_of(f, op->results[i]);
        if (h->kind == HOST_SLOT) {
            LLVMValueRef args[] = {f->run, host_slot(f, h->slot)};
            host_check(f, host_call(f, SERVICE_tensor_fresh, args, 2));
        }
        host_bind_symbols(f, op->results[i]);
    }
}

/* ---- sizes ---- */

/* All sizes that the launch needs; false where one is not known here. */
typedef struct launch {
    LLVMValueRef **sizes; /* [result][dim] */
    LLVMValueRef *params;
    LLVMValueRef work_items;
} launch;

static bool compute_sizes(host_function *f, const ir_op *op, const cg_kernel *k, launch *out) {
    ts_arena *arena = f->unit->arena;
    out->sizes = TS_NEW_ARRAY(arena, LLVMValueRef *, op->result_count + 1);
    for (size_t i = 0; i < op->result_count; i++) {
        const ir_type *t = op->results[i]->type;
        if (t->kind != IR_TENSOR || t->rank < 0 || t->dtype == RT_DTYPE_UNKNOWN)
            return false;
        out->sizes[i] = TS_NEW_ARRAY(arena, LLVMValueRef, (size_t)t->rank + 1);
        for (int d = 0; d < t->rank; d++)
            if (!(out->sizes[i][d] = host_dim(f, t->dims[d])))
                return false;
    }
    out->params = TS_NEW_ARRAY(arena, LLVMValueRef, k->param_count + 1);
    for (size_t i = 0; i < k->param_count; i++) {
        const cg_param *p = &k->params[i];
        if (p->kind == CG_PARAM_DIM) {
            if (!(out->params[i] = host_dim(f, p->dim)))
                return false;
            continue;
        }
        const ir_value *v = op->operands[p->operand];
        if (!host_is_native(v->type))
            return false;
        LLVMValueRef x = host_native(f, v, v->type);
        out->params[i] = v->type->kind == IR_BOOL
                             ? LLVMBuildZExt(f->b, x, f->unit->i64, "")
                             : LLVMBuildBitCast(f->b, x, f->unit->i64, "");
    }
    out->work_items = host_dim(f, k->work_items);
    return out->work_items != NULL;
}

/* Extent of a planned buffer; -1 where its size is not constant. */
static int64_t planned_end(const ir_value *v) {
    int64_t n = (int64_t)rt_dtype_size(v->type->dtype);
    for (int d = 0; d < v->type->rank; d++) {
        int64_t size = v->type->dims[d];
        if (size < 0 || __builtin_mul_overflow(n, size, &n))
            return -1;
    }
    return v->buffer_offset + n;
}

static LLVMValueRef make_result(host_function *f, const ir_value *v, LLVMValueRef *sizes,
                                LLVMValueRef area, LLVMValueRef *out_tensor) {
    cg_program *p = f->hm->program;
    const ir_type *t = v->type;
    for (int d = 0; d < t->rank; d++)
        host_store(f, sizes[d], area, 8 * (int64_t)d);
    LLVMValueRef out = host_set_slot(f, v);
    host_of(f, v)->is_dense = true;
    int64_t header = (int64_t)f->hm->header_cursor++;
    if (f->hm->header_cursor > p->header_count)
        p->header_count = f->hm->header_cursor;
    int64_t end = v->buffer_offset >= 0 && f->ir->is_entry ? planned_end(v) : -1;
    uint32_t layout = t->layout == IR_LAYOUT_CHANNELS_LAST;
    LLVMValueRef status;
    if (end >= 0) {
        if (end > p->arena_bytes)
            p->arena_bytes = end;
        LLVMValueRef args[] = {f->run, host_word(f, (uint32_t)t->dtype),
                               host_word(f, (uint32_t)t->rank), area, host_word(f, layout),
                               host_int(f, header), host_int(f, v->buffer_offset), out};
        status = host_call(f, SERVICE_tensor_planned, args, 8);
    } else {
        LLVMValueRef args[] = {f->run, host_word(f, (uint32_t)t->dtype),
                               host_word(f, (uint32_t)t->rank), area, host_word(f, layout),
                               host_int(f, header), out};
        status = host_call(f, SERVICE_tensor_make, args, 7);
    }
    host_check(f, status);
    host_bind_symbols(f, v);
    *out_tensor = host_load(f, f->unit->pointer, out, offsetof(rt_value, as));
    return host_load(f, f->unit->pointer, *out_tensor, offsetof(rt_tensor, data));
}

/* ---- operands ---- */

/* What a kernel made has the layout of its type; everything else is asked at run time. */
static bool layout_is_sure(host_function *f, const ir_value *v) {
    return v->type->layout != IR_LAYOUT_ANY && host_of(f, v)->is_dense;
}

/* The data of an operand, made dense; *out_tensor is the tensor that has it. */
static LLVMValueRef operand_data(host_function *f, const ir_op *op, const ir_value *v,
                                 size_t *out_slot, LLVMValueRef *out_tensor) {
    LLVMValueRef at = host_boxed(f, v, 0);
    *out_slot = SIZE_MAX;
    if (!layout_is_sure(f, v)) {
        *out_slot = host_slot_take(f);
        LLVMValueRef dense = host_slot(f, *out_slot);
        uint32_t layout = v->type->layout == IR_LAYOUT_CHANNELS_LAST;
        LLVMValueRef args[] = {f->run, at, host_word(f, (uint32_t)v->type->dtype),
                               host_word(f, (uint32_t)v->type->rank), host_word(f, layout), dense,
                               host_word(f, host_place(f, op))};
        host_check(f, host_call(f, SERVICE_tensor_dense, args, 7));
        at = dense;
    }
    *out_tensor = host_load(f, f->unit->pointer, at, offsetof(rt_value, as));
    return host_load(f, f->unit->pointer, *out_tensor, offsetof(rt_tensor, data));
}

/* The launch record: constant, or where scratch depends on sizes a copy of it on the stack. */
static LLVMValueRef launch_record(host_function *f, const ir_op *op, const cg_kernel *k,
                                  size_t operands, LLVMValueRef scratch) {
    cg_unit *u = f->unit;
    cg_kernel_row row = {k->symbol, host_place(f, op), k->flops, k->bytes};
    LLVMValueRef parts[] = {host_int(f, k->grain), scratch,
                            host_word(f, cg_program_kernel(f->hm->program, row)),
                            host_word(f, row.place),
                            host_word(f, (uint32_t)operands),
                            host_word(f, (uint32_t)op->result_count),
                            host_word(f, (uint32_t)k->constant_count),
                            host_word(f, (uint32_t)k->param_count),
                            host_word(f, k->device_symbol.length != 0),
                            host_word(f, k->alternates && host_is_in_loop(op))};
    enum { PARTS = sizeof parts / sizeof parts[0] };
    if (!LLVMIsConstant(scratch)) {
        LLVMTypeRef types[PARTS];
        for (size_t i = 0; i < PARTS; i++)
            types[i] = LLVMTypeOf(parts[i]);
        LLVMTypeRef record = LLVMStructTypeInContext(u->context, types, PARTS, false);
        LLVMBuilderRef entry = LLVMCreateBuilderInContext(u->context);
        LLVMValueRef first = LLVMGetFirstInstruction(f->entry);
        if (first)
            LLVMPositionBuilderBefore(entry, first);
        else
            LLVMPositionBuilderAtEnd(entry, f->entry);
        LLVMValueRef at = LLVMBuildAlloca(entry, record, "launch");
        LLVMDisposeBuilder(entry);
        for (unsigned i = 0; i < PARTS; i++)
            LLVMBuildStore(f->b, parts[i], LLVMBuildStructGEP2(f->b, record, at, i, ""));
        return at;
    }
    LLVMValueRef value = LLVMConstStructInContext(u->context, parts, PARTS, false);
    LLVMValueRef g = LLVMAddGlobal(u->module, LLVMTypeOf(value), "launch");
    LLVMSetInitializer(g, value);
    LLVMSetGlobalConstant(g, true);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    LLVMSetUnnamedAddress(g, LLVMGlobalUnnamedAddr);
    return g;
}

static bool emit_launch(host_function *f, ir_op *op, const cg_kernel *k) {
    launch l = {0};
    LLVMValueRef function = cg_unit_kernel(f->unit, k->symbol);
    if (!function || !compute_sizes(f, op, k, &l))
        return false;
    LLVMValueRef scratch = host_dim(f, k->scratch_bytes);
    if (!scratch)
        return false;
    bool for_device = f->unit->dialect != NULL;
    LLVMValueRef threads = NULL;
    if (for_device) {
        threads = k->device_symbol.length ? host_dim(f, k->device_threads) : host_int(f, 0);
        if (!threads)
            return false;
    }
    LLVMValueRef area = f->launch_area;
    size_t buffer_count = 0;
    size_t *slots = TS_NEW_ARRAY(f->unit->arena, size_t, op->operand_count + 1);
    LLVMValueRef *tensors =
        TS_NEW_ARRAY(f->unit->arena, LLVMValueRef, op->operand_count + op->result_count + 1);
    int64_t at = 0;
    for (size_t i = 0; i < op->operand_count; i++) {
        slots[i] = SIZE_MAX;
        if (op->operands[i]->type->kind != IR_TENSOR)
            continue;
        LLVMValueRef data =
            operand_data(f, op, op->operands[i], &slots[i], &tensors[buffer_count]);
        host_store(f, data, area, at);
        at += 8;
        buffer_count++;
    }
    /* Sizes of one result at a time lie behind the buffers and parameters. */
    size_t constants = k->constant_count;
    int64_t params_at = (int64_t)(8 * (buffer_count + op->result_count + constants));
    int64_t bytes_at = params_at + (int64_t)(8 * k->param_count);
    int64_t tensors_at = bytes_at + (int64_t)(8 * constants);
    size_t tensor_count = buffer_count + op->result_count;
    int64_t sizes_at = for_device ? tensors_at + (int64_t)(8 * tensor_count) : bytes_at;
    for (size_t i = 0; i < op->result_count; i++) {
        LLVMValueRef data =
            make_result(f, op->results[i], l.sizes[i], host_offset(f, area, sizes_at),
                        &tensors[buffer_count + i]);
        host_store(f, data, area, at);
        at += 8;
    }
    for (size_t i = 0; i < constants; i++) {
        uint64_t offset = cg_program_weight(f->hm->program, k->constants[i].data,
                                            k->constants[i].bytes);
        host_store(f, host_offset(f, f->weights, (int64_t)offset), area, at);
        at += 8;
        if (for_device)
            host_store(f, host_int(f, (int64_t)k->constants[i].bytes), area,
                       bytes_at + (int64_t)(8 * i));
    }
    for (size_t i = 0; i < k->param_count; i++)
        host_store(f, l.params[i], area, params_at + (int64_t)(8 * i));
    for (size_t i = 0; for_device && i < tensor_count; i++)
        host_store(f, tensors[i], area, tensors_at + (int64_t)(8 * i));
    LLVMValueRef args[] = {f->run, launch_record(f, op, k, buffer_count, scratch), function, area,
                           host_offset(f, area, params_at), l.work_items, threads};
    int service = for_device ? SERVICE_device_launch : SERVICE_launch;
    host_check(f, host_call(f, service, args, for_device ? 7 : 6));
    for (size_t i = 0; i < op->operand_count; i++) {
        if (slots[i] == SIZE_MAX)
            continue;
        LLVMValueRef slot = host_slot(f, slots[i]);
        host_call(f, SERVICE_release, &slot, 1);
        f->slot_used[slots[i]] = false;
    }
    return true;
}

void host_emit_kernel(host_function *f, ir_op *op) {
    host_module *hm = f->hm;
    const cg_kernel *k = NULL;
    if (hm->kernel_cursor < hm->kernel_count && hm->kernels[hm->kernel_cursor].op == op)
        k = hm->kernels[hm->kernel_cursor++].kernel;
    else
        host_fail(f, op, "kernels are out of order");
    if (k && emit_launch(f, op, k)) {
        if (f->counts) {
            f->counts->kernels++;
            for (const ir_op *inner = op->regions[0]->first; inner; inner = inner->next)
                f->counts->compiled += inner->opcode == IR_OP_CORE;
        }
        return;
    }
    emit_body(f, op);
}
