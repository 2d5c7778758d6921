/* codegen/emit_host.c - the host program of a module: one native function for each function that
 * an entry reaches. See emit_host.h for how values are held. */
#include "codegen/emit_host.h"

#include "codegen/compile_llvm.h"

#include "runtime/values/tensor.h"

/* ---- numbering and liveness ---- */

typedef struct scan {
    host_function *f;
    size_t op_capacity;
    const ir_op **ops; /* by number */
    bool in_stream;    /* inside of a kernel that is compiled whole: those in it have no rows */
} scan;

static void number_block(scan *s, const ir_block *block, int depth);

static void number_op(scan *s, ir_op *op, int depth) {
    host_function *f = s->f;
    op->number = (uint32_t)f->op_count;
    TS_APPEND(f->unit->arena, s->ops, f->op_count, s->op_capacity, op);
    size_t operands = op->operand_count;
    if (operands > f->scratch_arg_count)
        f->scratch_arg_count = operands;
    if (op->result_count > f->scratch_out_count)
        f->scratch_out_count = op->result_count;
    if (operands > f->scratch_out_count && op->opcode == IR_OP_YIELD)
        f->scratch_out_count = operands;
    bool is_row = op->opcode == IR_OP_KERNEL && !s->in_stream && f->hm->kernel_scan < f->hm->kernel_count;
    const cg_kernel *k = is_row ? f->hm->kernels[f->hm->kernel_scan++].kernel : NULL;
    if (is_row) {
        size_t words = 2 * (operands + op->result_count) + RT_MAX_RANK;
        if (k)
            words += k->param_count + 2 * k->constant_count;
        if (words > f->launch_words)
            f->launch_words = words;
    }
    for (size_t i = 0; i < op->result_count; i++)
        op->results[i]->number = (uint32_t)f->value_count++;
    s->in_stream = s->in_stream || k;
    for (size_t i = 0; i < op->region_count; i++)
        number_block(s, op->regions[i], depth + 1);
    s->in_stream = s->in_stream && !k;
}

static void number_block(scan *s, const ir_block *block, int depth) {
    if (depth > 1000) {
        host_fail(s->f, block->parent, "regions are nested too deeply");
        return;
    }
    for (size_t i = 0; i < block->parameter_count; i++)
        block->parameters[i]->number = (uint32_t)s->f->value_count++;
    for (ir_op *op = block->first; op; op = op->next)
        number_op(s, op, depth);
}

/* The operator of block `home` in which a use happens. */
static const ir_op *lift_use(const ir_op *op, const ir_block *home) {
    while (op && op->block != home)
        op = op->block ? op->block->parent : NULL;
    return op;
}

static void find_last_use(host_function *f, const ir_value *v) {
    const ir_block *home = v->def ? v->def->block : v->block;
    const ir_op *last = NULL;
    for (size_t i = 0; i < v->use_count; i++) {
        const ir_op *op = lift_use(v->uses[i].op, home);
        if (op && (!last || op->number > last->number))
            last = op;
    }
    if (!last)
        last = v->def; /* nobody wants it: dies where it is made */
    f->last_use[v->number] = last;
    if (!last)
        return;
    host_death *death = TS_NEW(f->unit->arena, host_death);
    *death = (host_death){v, f->deaths[last->number]};
    f->deaths[last->number] = death;
}

static void find_deaths(host_function *f, const ir_block *block) {
    for (size_t i = 0; i < block->parameter_count; i++)
        find_last_use(f, block->parameters[i]);
    for (const ir_op *op = block->first; op; op = op->next) {
        for (size_t i = 0; i < op->result_count; i++)
            find_last_use(f, op->results[i]);
        for (size_t i = 0; i < op->region_count; i++)
            find_deaths(f, op->regions[i]);
    }
}

static bool has_calls(const scan *s) {
    for (size_t i = 0; i < s->f->op_count; i++)
        if (s->ops[i]->opcode == IR_OP_CALL || s->ops[i]->opcode == IR_OP_TRY_CALL || s->ops[i]->opcode == IR_OP_CALL_METHOD)
            return true;
    return false;
}

/* ---- one function ---- */

static LLVMValueRef scratch_alloca(host_function *f, size_t count) {
    if (count == 0)
        return NULL;
    LLVMTypeRef array = LLVMArrayType2(f->unit->i64, 2 * count);
    LLVMValueRef a = LLVMBuildAlloca(f->b, array, "");
    LLVMSetAlignment(a, 16);
    return a;
}

enum { SCRATCH_MAX = 256 }; /* longer lists are built in parts: 4 KiB of stack at most */

static void begin_function(host_function *f) {
    cg_unit *u = f->unit;
    f->run = LLVMGetParam(f->function, 0);
    f->args = LLVMGetParam(f->function, 1);
    f->out = LLVMGetParam(f->function, 2);
    f->entry = host_block(f, "entry");
    f->error = host_block(f, "error");
    LLVMPositionBuilderAtEnd(f->b, f->error);
    f->error_status = LLVMBuildPhi(f->b, u->pointer, "status");
    LLVMPositionBuilderAtEnd(f->b, f->entry);
    if (f->scratch_arg_count > SCRATCH_MAX)
        f->scratch_arg_count = SCRATCH_MAX;
    /* Launches take pointers, sizes and parameters from the same area. */
    f->scratch_args = scratch_alloca(f, f->scratch_arg_count + 8);
    f->scratch_outs = scratch_alloca(f, f->scratch_out_count + RT_MAX_RANK / 2);
    f->launch_area = scratch_alloca(f, (f->launch_words + 1) / 2);
    host_load_tables(f);
    f->frame = host_load(f, u->pointer, f->run, offsetof(rt_run, frame_top));
}

static void bind_parameters(host_function *f) {
    const ir_block *body = f->ir->body;
    for (size_t i = 0; i < body->parameter_count; i++) {
        const ir_value *v = body->parameters[i];
        LLVMValueRef at = host_offset(f, f->args, (int64_t)(i * sizeof(rt_value)));
        if (host_is_native(v->type)) {
            host_set_native(f, v, host_unbox(f, at, v->type));
        } else if (v->type->kind == IR_NONE) {
            *host_of(f, v) = (host_value){.kind = HOST_NONE};
        } else {
            *host_of(f, v) = (host_value){.kind = HOST_ARGUMENT, .slot = i};
            host_bind_symbols(f, v);
        }
    }
}

/* Prologue after the body is known, and the error exit. */
static void finish_function(host_function *f, LLVMBasicBlockRef start, bool calls) {
    cg_unit *u = f->unit;
    LLVMPositionBuilderAtEnd(f->b, f->entry);
    int64_t frame_bytes = (int64_t)(f->slot_count * sizeof(rt_value));
    LLVMValueRef too_deep = NULL;
    LLVMValueRef depth = NULL, top = NULL;
    if (frame_bytes) {
        top = host_offset(f, f->frame, frame_bytes);
        LLVMValueRef end = host_load(f, u->pointer, f->run, offsetof(rt_run, frame_end));
        too_deep = LLVMBuildICmp(f->b, LLVMIntUGT, top, end, "");
    }
    if (calls) {
        depth = host_load(f, u->i64, f->run, offsetof(rt_run, depth_left));
        LLVMValueRef none = LLVMBuildICmp(f->b, LLVMIntSLE, depth, host_int(f, 0), "");
        unsigned id = LLVMLookupIntrinsicID("llvm.frameaddress", 17);
        LLVMTypeRef overload = u->pointer;
        LLVMValueRef address = LLVMGetIntrinsicDeclaration(u->module, id, &overload, 1);
        LLVMValueRef zero = host_word(f, 0);
        LLVMTypeRef type = LLVMIntrinsicGetType(u->context, id, &overload, 1);
        LLVMValueRef here = LLVMBuildCall2(f->b, type, address, &zero, 1, "");
        here = LLVMBuildPtrToInt(f->b, here, u->i64, "");
        LLVMValueRef limit = host_load(f, u->i64, f->run, offsetof(rt_run, stack_limit));
        LLVMValueRef low = LLVMBuildICmp(f->b, LLVMIntULT, here, limit, "");
        none = LLVMBuildOr(f->b, none, low, "");
        too_deep = too_deep ? LLVMBuildOr(f->b, too_deep, none, "") : none;
    }
    if (too_deep) {
        LLVMBasicBlockRef deep = host_block(f, "too_deep"), go = host_block(f, "go");
        LLVMBuildCondBr(f->b, too_deep, deep, go);
        LLVMPositionBuilderAtEnd(f->b, deep);
        LLVMBuildRet(f->b, host_call(f, SERVICE_too_deep, &f->run, 1));
        LLVMPositionBuilderAtEnd(f->b, go);
    }
    if (depth)
        host_store(f, LLVMBuildSub(f->b, depth, host_int(f, 1), ""), f->run,
                   offsetof(rt_run, depth_left));
    if (top)
        host_store(f, top, f->run, offsetof(rt_run, frame_top));
    LLVMBuildBr(f->b, start);
    LLVMPositionBuilderAtEnd(f->b, f->error);
    if (LLVMCountIncoming(f->error_status) == 0) {
        LLVMReplaceAllUsesWith(f->error_status, LLVMConstNull(u->pointer));
        LLVMInstructionEraseFromParent(f->error_status);
        LLVMBuildUnreachable(f->b);
        return;
    }
    if (frame_bytes) {
        LLVMValueRef args[] = {f->frame, host_int(f, (int64_t)f->slot_count)};
        host_call(f, SERVICE_frame_release, args, 2);
        host_store(f, f->frame, f->run, offsetof(rt_run, frame_top));
    }
    if (depth)
        host_store(f, depth, f->run, offsetof(rt_run, depth_left));
    LLVMBuildRet(f->b, f->error_status);
}

/* The success exit restores what the prologue changed. RETURN stands last in the body, so one
 * place does; depth_left is read back by adding one, as callees leave it as they found it. */
static void emit_return(host_function *f, bool calls) {
    if (f->slot_count)
        host_store(f, f->frame, f->run, offsetof(rt_run, frame_top));
    if (calls) {
        LLVMValueRef d = host_load(f, f->unit->i64, f->run, offsetof(rt_run, depth_left));
        host_store(f, LLVMBuildAdd(f->b, d, host_int(f, 1), ""), f->run,
                   offsetof(rt_run, depth_left));
    }
    LLVMBuildRet(f->b, LLVMConstNull(f->unit->pointer));
}

static ts_status emit_function(host_module *hm, size_t index) {
    cg_unit *u = hm->unit;
    host_function *f = TS_NEW(u->arena, host_function);
    f->hm = hm;
    f->unit = u;
    f->ir = hm->program->functions[index];
    f->function = hm->functions[index];
    f->counts = hm->counts ? &hm->counts[index] : NULL;
    scan s = {.f = f};
    number_block(&s, f->ir->body, 0);
    if (f->status)
        return f->status;
    f->values = TS_NEW_ARRAY(u->arena, host_value, f->value_count + 1);
    f->last_use = TS_NEW_ARRAY(u->arena, const ir_op *, f->value_count + 1);
    f->deaths = TS_NEW_ARRAY(u->arena, host_death *, f->op_count + 1);
    find_deaths(f, f->ir->body);
    bool calls = has_calls(&s);
    f->b = LLVMCreateBuilderInContext(u->context);
    begin_function(f);
    LLVMBasicBlockRef start = host_block(f, "start");
    LLVMPositionBuilderAtEnd(f->b, start);
    bind_parameters(f);
    host_emit_block(f, f->ir->body);
    emit_return(f, calls);
    finish_function(f, start, calls);
    LLVMDisposeBuilder(f->b);
    return f->status;
}

/* ---- the module ---- */

static LLVMTypeRef letter_type(cg_unit *u, char c) {
    switch (c) {
    case 'p': return u->pointer;
    case 'w': return u->i32;
    case 'l': return u->i64;
    default: return u->void_type;
    }
}

static void make_service_types(host_module *hm) {
    static const char *const signatures[SERVICE_COUNT] = {
#define SERVICE(name, signature, result, parameters) signature,
#include "runtime/format/services.def"
    };
    for (int i = 0; i < SERVICE_COUNT; i++) {
        LLVMTypeRef params[12];
        unsigned count = 0;
        for (const char *c = signatures[i] + 1; *c; c++)
            params[count++] = letter_type(hm->unit, *c);
        hm->service_types[i] =
            LLVMFunctionType(letter_type(hm->unit, signatures[i][0]), params, count, false);
    }
}

static int compare_ops(const ir_op *a, const ir_op *b) {
    ts_str x = a->opcode == IR_OP_CORE ? rt_op_name(a->core) : TS_STR("?");
    ts_str y = b->opcode == IR_OP_CORE ? rt_op_name(b->core) : TS_STR("?");
    return ts_str_compare(x, y);
}

/* "name xCOUNT file:line" for each dynamic operator, most frequent order of appearance. */
static ts_str dynamic_text(cg_unit *u, const host_counts *c) {
    ts_str text = TS_STR("");
    bool *seen = TS_NEW_ARRAY(u->arena, bool, c->dynamic_count + 1);
    for (size_t i = 0; i < c->dynamic_count; i++) {
        if (seen[i])
            continue;
        size_t n = 0;
        for (size_t k = i; k < c->dynamic_count; k++)
            if (!seen[k] && compare_ops(c->dynamic_ops[i], c->dynamic_ops[k]) == 0) {
                seen[k] = true;
                n++;
            }
        const ir_op *op = c->dynamic_ops[i];
        ts_str name = op->opcode == IR_OP_CORE ? rt_op_name(op->core) : TS_STR("?");
        text = ts_arena_format(u->arena, "%s%.*s x%zu %.*s:%d\n", text.length ? text.data : "",
                               TS_STR_ARG(name), n, TS_STR_ARG(op->place.file), op->place.line);
    }
    return text;
}

/* Sums the counters of all that an entry calls into the entry's row. Functions shared by entries
 * count for each. */
static void fill_entries(host_module *hm) {
    cg_program *p = hm->program;
    for (size_t e = 0; e < p->entry_count; e++) {
        cg_entry_row *row = &p->entries[e];
        for (size_t i = 0; i < p->function_count; i++) {
            bool own = p->functions[i] == row->function;
            if (!own && p->functions[i]->is_entry)
                continue;
            const host_counts *c = &hm->counts[i];
            row->kernel_count += c->kernels;
            row->compiled_count += c->compiled;
            row->dynamic_count += c->dynamic;
            ts_str text = dynamic_text(hm->unit, c);
            if (text.length)
                row->dynamic_text = ts_arena_format(
                    hm->unit->arena, "%s%s",
                    row->dynamic_text.length ? row->dynamic_text.data : "", text.data);
        }
    }
}

ts_status host_emit_module(cg_unit *unit, cg_program *program, bool counts) {
    host_module *hm = TS_NEW(unit->arena, host_module);
    hm->unit = unit;
    hm->program = program;
    make_service_types(hm);
    LLVMTypeRef params[] = {unit->pointer, unit->pointer, unit->pointer};
    hm->function_type = LLVMFunctionType(unit->pointer, params, 3, false);
    hm->functions = TS_NEW_ARRAY(unit->arena, LLVMValueRef, program->function_count + 1);
    if (counts)
        hm->counts = TS_NEW_ARRAY(unit->arena, host_counts, program->function_count + 1);
    TS_TRY(host_lower_kernels(hm));
    cg_unit_next_module(unit);
    for (size_t i = 0; i < program->function_count; i++) {
        ts_str name = ts_arena_format(unit->arena, "tsf_%zu", i);
        hm->functions[i] = cg_function_make(unit, name.data, hm->function_type);
        /* Kept and named, so that the linker finds them. */
        LLVMSetLinkage(hm->functions[i], LLVMExternalLinkage);
        LLVMSetVisibility(hm->functions[i], LLVMHiddenVisibility);
    }
    for (size_t i = 0; i < program->function_count; i++)
        TS_TRY(emit_function(hm, i));
    if (counts)
        fill_entries(hm);
    return NULL;
}
