/* codegen/emit_host_ops.c - structural operators, and which file emits the others. */
#include "codegen/emit_host.h"

#include "runtime/values/tensor.h"

/* ---- constants ---- */

static void emit_const(host_function *f, const ir_op *op) {
    const ir_value *v = op->results[0];
    if (v->type->kind == IR_NONE) {
        *host_of(f, v) = (host_value){.kind = HOST_NONE};
    } else if (host_is_native(v->type)) {
        LLVMValueRef native;
        if (v->type->kind == IR_FLOAT) {
            double d = op->value.tag == RT_TAG_FLOAT ? op->value.as.f : (double)op->value.as.i;
            /* Through the bits: a NaN keeps its payload. */
            uint64_t bits;
            memcpy(&bits, &d, sizeof bits);
            native = LLVMConstBitCast(LLVMConstInt(f->unit->i64, bits, false), f->unit->f64);
        } else {
            native = LLVMConstInt(host_native_type(f, v->type),
                                  (unsigned long long)op->value.as.i, true);
        }
        host_set_native(f, v, native);
    } else {
        uint32_t index = cg_program_constant(f->hm->program, op->value);
        *host_of(f, v) = (host_value){.kind = HOST_CONST, .slot = index};
        host_bind_symbols(f, v);
    }
}

static void emit_uninitialized(host_function *f, const ir_value *v) {
    if (v->type->kind == IR_NONE)
        *host_of(f, v) = (host_value){.kind = HOST_NONE};
    else if (host_is_native(v->type))
        host_set_native(f, v, LLVMConstNull(host_native_type(f, v->type)));
    else
        *host_of(f, v) = (host_value){
            .kind = HOST_CONST,
            .slot = cg_program_constant(f->hm->program, (rt_value){.tag = RT_TAG_UNINITIALIZED})};
}

/* ---- containers ---- */

static size_t put_part(host_function *f, const ir_op *op, size_t from) {
    size_t n = op->operand_count - from < HOST_PART ? op->operand_count - from : HOST_PART;
    for (size_t i = 0; i < n; i++)
        host_put_arg(f, op->operands[from + i], i);
    return n;
}

static void emit_list_or_dict(host_function *f, const ir_op *op, int make, int extend) {
    LLVMValueRef out = host_result_target(f, op->results[0]);
    size_t n = put_part(f, op, 0);
    LLVMValueRef args[] = {f->run, f->scratch_args, host_int(f, (int64_t)n), out};
    host_check(f, host_call(f, make, args, 4));
    for (size_t at = n; at < op->operand_count; at += n) {
        n = put_part(f, op, at);
        LLVMValueRef more[] = {f->run, out, f->scratch_args, host_int(f, (int64_t)n)};
        host_check(f, host_call(f, extend, more, 4));
    }
}

static void emit_tuple(host_function *f, const ir_op *op) {
    const ir_type *t = op->results[0]->type;
    uint32_t class_ = t->class_ ? cg_program_class(f->hm->program, t->class_) + 1 : 0;
    LLVMValueRef out = host_result_target(f, op->results[0]);
    bool small = op->operand_count <= HOST_PART;
    if (small)
        put_part(f, op, 0);
    LLVMValueRef args[] = {f->run, small ? f->scratch_args : LLVMConstNull(f->unit->pointer),
                           host_int(f, (int64_t)op->operand_count), host_word(f, class_), out};
    host_check(f, host_call(f, SERVICE_tuple_make, args, 5));
    for (size_t at = 0, n; !small && at < op->operand_count; at += n) {
        n = put_part(f, op, at);
        LLVMValueRef more[] = {out, host_int(f, (int64_t)at), f->scratch_args,
                               host_int(f, (int64_t)n)};
        host_call(f, SERVICE_tuple_set, more, 4);
    }
}

static void emit_tuple_get(host_function *f, const ir_op *op) {
    LLVMValueRef at = host_boxed(f, op->operands[0], 0);
    LLVMValueRef tuple = host_load(f, f->unit->pointer, at, offsetof(rt_value, as));
    for (size_t i = 0; i < op->result_count; i++) {
        int64_t index = op->opcode == IR_OP_TUPLE_GET ? op->integer : (int64_t)i;
        if (index < 0)
            index += (int64_t)op->operands[0]->type->arg_count;
        int64_t bytes = (int64_t)offsetof(rt_tuple, items) + index * (int64_t)sizeof(rt_value);
        host_result_from(f, op->results[i], host_offset(f, tuple, bytes), false);
    }
}

static void emit_list_unpack(host_function *f, const ir_op *op) {
    LLVMValueRef args[] = {f->run, host_boxed(f, op->operands[0], 0),
                           host_int(f, (int64_t)op->result_count), host_out(f, 0),
                           host_word(f, host_place(f, op))};
    host_check(f, host_call(f, SERVICE_list_unpack, args, 5));
    for (size_t i = 0; i < op->result_count; i++)
        host_result_from(f, op->results[i], host_out(f, i), true);
}

/* ---- objects ---- */

/* Pointer to the field of an object whose class is known; NULL: ask by name at run time. */
static LLVMValueRef field_pointer(host_function *f, const ir_op *op) {
    const ir_type *t = op->operands[0]->type;
    if (t->kind != IR_CLASS || !t->class_ || t->class_->base.kind == RT_CLASS_INTERFACE)
        return NULL;
    int64_t index = rt_class_field(&t->class_->base, op->name);
    if (index < 0)
        return NULL;
    LLVMValueRef at = host_boxed(f, op->operands[0], 0);
    LLVMValueRef object = host_load(f, f->unit->pointer, at, offsetof(rt_value, as));
    LLVMValueRef fields = host_load(f, f->unit->pointer, object, offsetof(rt_object, fields));
    return host_offset(f, fields, index * (int64_t)sizeof(rt_value));
}

static LLVMValueRef get_attr_by_name(host_function *f, const ir_op *op, LLVMValueRef out) {
    LLVMValueRef args[] = {f->run, host_boxed(f, op->operands[0], 0),
                           host_word(f, cg_program_string(f->hm->program, op->name)), out,
                           host_word(f, host_place(f, op))};
    return host_call(f, SERVICE_get_attr, args, 5);
}

static void emit_get_attr(host_function *f, const ir_op *op) {
    const ir_value *v = op->results[0];
    LLVMValueRef field = field_pointer(f, op);
    if (!field) {
        LLVMValueRef out = host_result_target(f, v);
        host_check(f, get_attr_by_name(f, op, out));
        host_result_written(f, v);
        return;
    }
    LLVMValueRef tag = host_load(f, f->unit->i32, field, 0);
    LLVMValueRef unset =
        LLVMBuildICmp(f->b, LLVMIntEQ, tag, host_word(f, RT_TAG_UNINITIALIZED), "");
    LLVMBasicBlockRef missing = host_block(f, "unset"), go = host_block(f, "");
    LLVMBuildCondBr(f->b, unset, missing, go);
    LLVMPositionBuilderAtEnd(f->b, missing);
    host_check(f, get_attr_by_name(f, op, host_out(f, 0))); /* AttributeError */
    LLVMBuildBr(f->b, go);
    LLVMPositionBuilderAtEnd(f->b, go);
    host_result_from(f, v, field, false);
}

static void emit_set_attr(host_function *f, const ir_op *op) {
    const ir_value *v = op->operands[1];
    LLVMValueRef field = field_pointer(f, op);
    if (!field) {
        LLVMValueRef args[] = {f->run, host_boxed(f, op->operands[0], 0),
                               host_word(f, cg_program_string(f->hm->program, op->name)),
                               host_boxed(f, v, 1), host_word(f, host_place(f, op))};
        host_check(f, host_call(f, SERVICE_set_attr, args, 5));
        return;
    }
    LLVMValueRef kept = host_out(f, 0);
    if (host_of(f, v)->kind == HOST_NATIVE || host_of(f, v)->kind == HOST_NONE) {
        host_put_boxed(f, v, kept);
    } else {
        LLVMValueRef args[] = {kept, host_boxed(f, v, 1)};
        host_call(f, SERVICE_copy, args, 2);
    }
    host_call(f, SERVICE_release, &field, 1);
    host_store(f, host_load(f, f->unit->i64, kept, 0), field, 0);
    host_store(f, host_load(f, f->unit->i64, kept, 8), field, 8);
}

static void emit_new_object(host_function *f, const ir_op *op) {
    const ir_type *t = op->type ? op->type : op->results[0]->type;
    if (!t->class_) {
        host_fail(f, op, "new_object without a class");
        return;
    }
    LLVMValueRef out = host_result_target(f, op->results[0]);
    LLVMValueRef args[] = {f->run, host_word(f, cg_program_class(f->hm->program, t->class_)), out};
    host_check(f, host_call(f, SERVICE_object_make, args, 3));
}

/* ---- types ---- */

static void emit_is_instance(host_function *f, const ir_op *op) {
    LLVMValueRef any = LLVMConstNull(f->unit->i1);
    LLVMValueRef at = host_boxed(f, op->operands[0], 0);
    for (size_t i = 0; i < op->type_count; i++) {
        LLVMValueRef args[] = {f->run, at,
                               host_word(f, cg_program_type(f->hm->program, op->types[i]))};
        LLVMValueRef is = host_call(f, SERVICE_is_instance, args, 3);
        is = LLVMBuildICmp(f->b, LLVMIntNE, is, host_word(f, 0), "");
        any = LLVMBuildOr(f->b, any, is, "");
    }
    host_set_native(f, op->results[0], any);
}

static void emit_cast(host_function *f, const ir_op *op) {
    const ir_value *from = op->operands[0], *to = op->results[0];
    if (op->opcode == IR_OP_CHECK_CAST) {
        LLVMValueRef args[] = {f->run, host_boxed(f, from, 0),
                               host_word(f, cg_program_type(f->hm->program, to->type)),
                               host_word(f, host_place(f, op))};
        host_check(f, host_call(f, SERVICE_check_cast, args, 4));
    }
    host_value *h = host_of(f, from);
    if (host_is_native(to->type)) {
        host_set_native(f, to, host_native(f, from, to->type));
    } else if (to->type->kind == IR_NONE) {
        *host_of(f, to) = (host_value){.kind = HOST_NONE};
    } else if (h->kind == HOST_BORROWED || h->kind == HOST_ARGUMENT || h->kind == HOST_CONST) {
        *host_of(f, to) = *h;
        host_bind_symbols(f, to);
    } else if (host_dies_at(f, from, op) && !from->block) {
        /* The slot changes hands. */
        *host_of(f, to) = *h;
        h->kind = HOST_UNSET;
        host_bind_symbols(f, to);
    } else {
        LLVMValueRef at = host_boxed(f, from, 0);
        host_result_from(f, to, at, false);
    }
}

static void emit_refine(host_function *f, const ir_op *op) {
    const ir_type *t = op->type;
    LLVMValueRef at = host_boxed(f, op->operands[0], 0);
    int rank = t->rank < 0 ? -1 : t->rank;
    LLVMValueRef sizes = f->scratch_outs;
    for (int i = 0; i < rank; i++) {
        rt_dim d = t->dims[i];
        LLVMValueRef expected = host_int(f, -1);
        if (rt_dim_is_constant(d))
            expected = host_int(f, d);
        for (size_t k = 0; k < f->symbol_count && rt_dim_is_symbolic(d); k++)
            if (f->symbols[k].dim == d)
                expected = host_symbol_value(f, &f->symbols[k]);
        host_store(f, expected, sizes, 8 * (int64_t)i);
    }
    LLVMValueRef args[] = {at, host_word(f, (uint32_t)t->dtype), host_word(f, (uint32_t)rank),
                           sizes};
    LLVMValueRef ok = host_call(f, SERVICE_matches, args, 4);
    ok = LLVMBuildICmp(f->b, LLVMIntNE, ok, host_word(f, 0), "");
    /* A letter that first stands here means this number from now on: in a later refine, and where it
     * stands again in this one. */
    size_t before = f->symbol_count;
    for (int i = 0; i < rank; i++) {
        rt_dim d = t->dims[i];
        if (!rt_dim_is_symbolic(d))
            continue;
        bool is_letter = ir_dim_get(f->unit->ir, d).kind == IR_DIM_SYMBOL;
        size_t k = 0;
        while (k < f->symbol_count && f->symbols[k].dim != d)
            k++;
        if (k < before) /* compared by the service */
            continue;
        LLVMValueRef ask[] = {at, host_int(f, i)};
        LLVMValueRef size = host_call(f, SERVICE_tensor_size, ask, 2);
        if (k == f->symbol_count && is_letter) {
            host_add_symbol(f, d, size, true);
            continue;
        }
        LLVMValueRef expected = host_dim(f, d);
        if (expected)
            ok = LLVMBuildAnd(f->b, ok, LLVMBuildICmp(f->b, LLVMIntEQ, size, expected, ""), "");
    }
    host_set_native(f, op->results[0], ok);
}

static void emit_dim(host_function *f, const ir_op *op) {
    LLVMValueRef v = host_dim(f, op->integer);
    if (!v) {
        host_fail(f, op, "a symbolic size is asked for where it is not known");
        return;
    }
    host_set_native(f, op->results[0], v);
}

/* What may hold itself from here on is named to the session. */
static void note_cycle(host_function *f, const ir_op *op) {
    const ir_value *container = f->status ? NULL : ir_op_closes_cycle(op);
    if (!container)
        return;
    LLVMValueRef args[] = {f->run, host_boxed(f, container, 0)};
    host_call(f, SERVICE_note_cycle, args, 2);
}

/* ---- dispatch ---- */

void host_emit_op(host_function *f, ir_op *op) {
    switch (op->opcode) {
    case IR_OP_CORE:
        host_emit_core(f, op);
        note_cycle(f, op);
        break;
    case IR_OP_CONST: emit_const(f, op); break;
    case IR_OP_IF: host_emit_if(f, op); break;
    case IR_OP_LOOP: host_emit_loop(f, op); break;
    case IR_OP_RAISE: host_emit_raise(f, op); break;
    case IR_OP_TRY_CALL: host_emit_try_call(f, op); break;
    case IR_OP_CALL:
    case IR_OP_CALL_METHOD: host_emit_call(f, op); break;
    case IR_OP_TUPLE: emit_tuple(f, op); break;
    case IR_OP_TUPLE_GET:
    case IR_OP_TUPLE_UNPACK: emit_tuple_get(f, op); break;
    case IR_OP_LIST: emit_list_or_dict(f, op, SERVICE_list_make, SERVICE_list_extend); break;
    case IR_OP_DICT: emit_list_or_dict(f, op, SERVICE_dict_make, SERVICE_dict_extend); break;
    case IR_OP_LIST_UNPACK: emit_list_unpack(f, op); break;
    case IR_OP_GET_ATTR: emit_get_attr(f, op); break;
    case IR_OP_SET_ATTR:
        emit_set_attr(f, op);
        note_cycle(f, op);
        break;
    case IR_OP_NEW_OBJECT: emit_new_object(f, op); break;
    case IR_OP_IS_INSTANCE: emit_is_instance(f, op); break;
    case IR_OP_CAST:
    case IR_OP_CHECK_CAST: emit_cast(f, op); break;
    case IR_OP_UNINITIALIZED: emit_uninitialized(f, op->results[0]); break;
    case IR_OP_REFINE: emit_refine(f, op); break;
    case IR_OP_DIM: emit_dim(f, op); break;
    case IR_OP_KERNEL: host_emit_kernel(f, op); break;
    case IR_OP_RETURN: host_emit_return(f, op); return;
    case IR_OP_YIELD: return; /* by the operator whose region it ends */
    case IR_OPCODE_COUNT: host_fail(f, op, "an unknown operator"); return;
    }
    host_release_dead(f, op);
}

void host_emit_block(host_function *f, ir_block *block) {
    if (host_needs_pieces(f, block)) {
        host_emit_pieces(f, block);
        return;
    }
    for (ir_op *op = block->first; op && !f->status; op = op->next)
        host_emit_op(f, op);
}
