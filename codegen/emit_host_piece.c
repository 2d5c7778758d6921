/* codegen/emit_host_piece.c - a long function of the program as several functions of LLVM.
 *
 * Several passes of LLVM take time that grows with the square of a function. A program of thousands
 * of operators is therefore cut: a row of operators becomes a function of its own, a piece, which
 * the function around it calls. Pieces share the frame, so boxed values stay where they are; a
 * number that crosses a border is boxed into a slot of the frame, a symbolic size likewise. */
#include "codegen/emit_host.h"

/* Measured on rows of additions, dynamic and of ints: 0.23 ms for each operator up to about 500
 * operators, 0.36 at 2000, 1 at 8000. Straight code of a giant function, which runs once, is made
 * without LLVM's optimisation: 0.08 ms. */
enum { PIECE_OPS = 128, LONG_FUNCTION = 512, GIANT_FUNCTION = 4096 };

static size_t block_weight(const ir_block *block) {
    return block->last ? block->last->number + 1 - block->first->number : 0;
}

bool host_needs_pieces(const host_function *f, const ir_block *block) {
    return !f->is_whole && f->op_count > LONG_FUNCTION && block_weight(block) > PIECE_OPS;
}

/* What the emission of one function of LLVM keeps. */
typedef struct outer {
    LLVMValueRef function, run, args, out, services, constants, weights, frame;
    LLVMValueRef scratch_args, scratch_outs, launch_area, error_status;
    LLVMBasicBlockRef entry, error, at;
    size_t piece;
} outer;

static outer save(const host_function *f) {
    return (outer){f->function,     f->run,          f->args,        f->out,
                   f->services,     f->constants,    f->weights,     f->frame,
                   f->scratch_args, f->scratch_outs, f->launch_area, f->error_status,
                   f->entry,        f->error,        LLVMGetInsertBlock(f->b),
                   f->piece};
}

static void restore(host_function *f, const outer *o) {
    f->function = o->function;
    f->run = o->run;
    f->args = o->args;
    f->out = o->out;
    f->services = o->services;
    f->constants = o->constants;
    f->weights = o->weights;
    f->frame = o->frame;
    f->scratch_args = o->scratch_args;
    f->scratch_outs = o->scratch_outs;
    f->launch_area = o->launch_area;
    f->error_status = o->error_status;
    f->entry = o->entry;
    f->error = o->error;
    f->piece = o->piece;
    LLVMPositionBuilderAtEnd(f->b, o->at);
}

/* ---- what crosses the border ---- */

typedef struct crossing { /* a number of the outer function that the piece reads from a slot */
    const ir_value *value;
    host_value before;
    struct crossing *next;
} crossing;

static bool is_in_register(const host_value *h) {
    return h->kind == HOST_NATIVE && !LLVMIsConstant(h->llvm);
}

static void box_into_slot(host_function *f, const ir_value *v) {
    host_value before = *host_of(f, v);
    host_box_native(f, before.llvm, v->type, host_set_slot(f, v));
}

static void cross_operands(host_function *f, const ir_op *op, crossing **list) {
    for (size_t i = 0; i < op->operand_count; i++) {
        const ir_value *v = op->operands[i];
        if (!is_in_register(host_of(f, v)))
            continue;
        crossing *c = TS_NEW(f->unit->arena, crossing);
        *c = (crossing){v, *host_of(f, v), *list};
        *list = c;
        box_into_slot(f, v);
    }
    for (size_t r = 0; op->opcode != IR_OP_KERNEL && r < op->region_count; r++)
        for (const ir_op *inner = op->regions[r]->first; inner; inner = inner->next)
            cross_operands(f, inner, list);
}

static void cross_back(host_function *f, const crossing *list) {
    for (; list; list = list->next) {
        host_value *h = host_of(f, list->value);
        if (h->kind == HOST_SLOT)
            f->slot_used[h->slot] = false;
        if (h->kind != HOST_UNSET) /* it died in the piece */
            *h = list->before;
    }
}

static void store_symbols(host_function *f, size_t from) {
    for (size_t i = from; i < f->symbol_count; i++) {
        host_symbol *s = &f->symbols[i];
        if (s->slot != SIZE_MAX || LLVMIsConstant(s->value))
            continue;
        s->slot = host_slot_take(f);
        host_box_native(f, s->value, ir_type_simple(f->unit->ir, IR_INT), host_slot(f, s->slot));
    }
}

LLVMValueRef host_symbol_value(host_function *f, host_symbol *s) {
    if (s->piece == f->piece || LLVMIsConstant(s->value))
        return s->value;
    /* In the entry block, so that one load serves the whole piece. */
    LLVMBasicBlockRef at = LLVMGetInsertBlock(f->b);
    LLVMPositionBuilderAtEnd(f->b, f->entry);
    s->value = host_unbox(f, host_slot(f, s->slot), ir_type_simple(f->unit->ir, IR_INT));
    s->piece = f->piece;
    LLVMPositionBuilderAtEnd(f->b, at);
    return s->value;
}

/* ---- one piece ---- */

void host_load_tables(host_function *f) {
    LLVMTypeRef pointer = f->unit->pointer;
    f->services = host_load(f, pointer, f->run, offsetof(rt_run, services));
    f->constants = host_load(f, pointer, f->run, offsetof(rt_run, constants));
    f->weights = host_load(f, pointer, f->run, offsetof(rt_run, weights));
}

enum { PIECE_PARAMETERS = 7 };

bool host_is_in_loop(const ir_op *op) {
    for (; op; op = op->block->parent)
        if (op->opcode == IR_OP_LOOP)
            return true;
    return false;
}

static void compile_quickly(cg_unit *u, LLVMValueRef function) {
    static const char *const names[] = {"optnone", "noinline"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unsigned kind = LLVMGetEnumAttributeKindForName(names[i], strlen(names[i]));
        LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                LLVMCreateEnumAttribute(u->context, kind, 0));
    }
}

static void enter(host_function *f, LLVMValueRef piece) {
    f->function = piece;
    f->piece = ++f->piece_count;
    f->run = LLVMGetParam(piece, 0);
    f->args = LLVMGetParam(piece, 1);
    f->out = LLVMGetParam(piece, 2);
    f->frame = LLVMGetParam(piece, 3);
    f->scratch_args = LLVMGetParam(piece, 4);
    f->scratch_outs = LLVMGetParam(piece, 5);
    f->launch_area = LLVMGetParam(piece, 6);
    f->entry = host_block(f, "entry");
    f->error = host_block(f, "error");
    LLVMPositionBuilderAtEnd(f->b, f->error);
    f->error_status = LLVMBuildPhi(f->b, f->unit->pointer, "status");
    LLVMPositionBuilderAtEnd(f->b, f->entry);
    host_load_tables(f);
}

static void leave(host_function *f, LLVMBasicBlockRef start) {
    LLVMBuildRet(f->b, LLVMConstNull(f->unit->pointer));
    LLVMPositionBuilderAtEnd(f->b, f->entry);
    LLVMBuildBr(f->b, start);
    LLVMPositionBuilderAtEnd(f->b, f->error);
    if (LLVMCountIncoming(f->error_status) != 0) {
        LLVMBuildRet(f->b, f->error_status);
        return;
    }
    LLVMInstructionEraseFromParent(f->error_status);
    LLVMBuildUnreachable(f->b);
}

static void emit_piece(host_function *f, ir_op *first, const ir_op *end) {
    cg_unit *u = f->unit;
    crossing *crossings = NULL;
    for (const ir_op *op = first; op != end; op = op->next)
        cross_operands(f, op, &crossings);
    store_symbols(f, 0);
    size_t symbol_count = f->symbol_count;
    host_symbol *symbols = TS_NEW_ARRAY(u->arena, host_symbol, symbol_count + 1);
    if (symbol_count)
        memcpy(symbols, f->symbols, symbol_count * sizeof *symbols);
    LLVMTypeRef types[PIECE_PARAMETERS];
    LLVMValueRef null = LLVMConstNull(u->pointer);
    LLVMValueRef given[PIECE_PARAMETERS] = {f->run, f->args, f->out, f->frame,
                                            f->scratch_args ? f->scratch_args : null,
                                            f->scratch_outs ? f->scratch_outs : null,
                                            f->launch_area ? f->launch_area : null};
    for (int i = 0; i < PIECE_PARAMETERS; i++)
        types[i] = u->pointer;
    LLVMTypeRef type = LLVMFunctionType(u->pointer, types, PIECE_PARAMETERS, false);
    LLVMValueRef piece = cg_function_make(u, "piece", type);
    if (f->op_count > GIANT_FUNCTION && !host_is_in_loop(first))
        compile_quickly(u, piece);
    LLVMValueRef status = LLVMBuildCall2(f->b, type, piece, given, PIECE_PARAMETERS, "");
    host_check(f, status);
    outer o = save(f);
    enter(f, piece);
    LLVMBasicBlockRef start = host_block(f, "start");
    LLVMPositionBuilderAtEnd(f->b, start);
    for (ir_op *op = first; op != end && !f->status; op = op->next)
        host_emit_op(f, op);
    for (const ir_op *op = first; op != end; op = op->next)
        for (size_t i = 0; i < op->result_count; i++)
            if (is_in_register(host_of(f, op->results[i])) &&
                f->last_use[op->results[i]->number]->number >= end->number)
                box_into_slot(f, op->results[i]);
    store_symbols(f, symbol_count);
    leave(f, start);
    restore(f, &o);
    cross_back(f, crossings);
    if (symbol_count)
        memcpy(f->symbols, symbols, symbol_count * sizeof *symbols);
    for (size_t i = symbol_count; i < f->symbol_count; i++) {
        host_symbol *s = &f->symbols[i];
        if (s->slot == SIZE_MAX)
            continue;
        s->value = host_unbox(f, host_slot(f, s->slot), ir_type_simple(u->ir, IR_INT));
        s->piece = f->piece;
    }
}

void host_emit_pieces(host_function *f, ir_block *block) {
    ir_op *first = block->first;
    for (ir_op *op = first; op != block->last && !f->status; op = op->next) {
        const ir_op *next = op->next;
        bool is_full = next->number - first->number >= PIECE_OPS;
        /* What is long by itself is cut further, in a piece of its own. */
        bool next_is_long = next != block->last && next->next->number - next->number > PIECE_OPS;
        if (!is_full && !next_is_long && next != block->last)
            continue;
        emit_piece(f, first, next);
        first = op->next;
    }
    if (!f->status)
        host_emit_op(f, block->last);
}
