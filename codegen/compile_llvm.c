/* codegen/compile_llvm.c - LLVM through its C API. The passes are few because kernels are emitted
 * as vectors already and host code is straight: a full pipeline costs more than it gains. */
#include "codegen/compile_llvm.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <setjmp.h>
#include <stdio.h>

/* LLVM reports what it cannot compile (an instruction it cannot select) to a handler that must not
 * return, without user data. The handler jumps back to the call that was in progress on this
 * thread; what LLVM held is lost, and the unit is not touched again. */
typedef struct fatal_guard {
    jmp_buf back;
    char message[256];
} fatal_guard;

static _Thread_local fatal_guard *active_guard;

static void on_fatal_error(const char *reason) {
    fatal_guard *guard = active_guard;
    if (!guard)
        return; /* LLVM prints the reason and ends the process */
    snprintf(guard->message, sizeof guard->message, "%s", reason);
    active_guard = NULL;
    longjmp(guard->back, 1);
}

static ts_status fatal_error(cg_unit *unit, fatal_guard *guard) {
    ts_status status = ts_error_make(TS_ERR_INTERNAL, "LLVM cannot compile for %s: %s",
                                     unit->target->name, guard->message);
    *unit = (cg_unit){0}; /* its memory may be half changed: leave it */
    return status;
}

static void init_targets(void) {
    /* Idempotent registration in LLVM's own tables. */
    LLVMResetFatalErrorHandler();
    LLVMInstallFatalErrorHandler(on_fatal_error);
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
}

static ts_status llvm_error(const char *what, char *message) {
    ts_status status = ts_error_make(TS_ERR_INTERNAL, "%s: %s", what, message ? message : "?");
    LLVMDisposeMessage(message);
    return status;
}

ts_status cg_unit_make_machine(cg_unit *unit, LLVMTargetRef target) {
    unit->machine = LLVMCreateTargetMachine(
        target, unit->target->triple, unit->cpu, unit->features,
        unit->options->opt_level == 0 ? LLVMCodeGenLevelLess : LLVMCodeGenLevelDefault,
        LLVMRelocPIC, LLVMCodeModelSmall);
    if (!unit->machine)
        return ts_error_make(TS_ERR_INTERNAL, "LLVM has no machine for %s", unit->target->name);
    return NULL;
}

static LLVMModuleRef make_module(cg_unit *unit) {
    LLVMModuleRef m = LLVMModuleCreateWithNameInContext("tsc", unit->context);
    LLVMSetTarget(m, unit->target->triple);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(unit->machine);
    LLVMSetModuleDataLayout(m, layout);
    LLVMDisposeTargetData(layout);
    return m;
}

/* ---- several modules ---- */

/* A tenth of a second of code generation; a module costs a millisecond of its own. */
enum { FULL_MODULE = 5000 };

static size_t instruction_count(LLVMModuleRef m) {
    size_t n = 0;
    for (LLVMValueRef f = LLVMGetFirstFunction(m); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
                n++;
    return n;
}

void cg_unit_next_module(cg_unit *unit) {
    if (unit->is_whole || instruction_count(unit->module) < FULL_MODULE)
        return;
    TS_APPEND(unit->arena, unit->full, unit->full_count, unit->full_capacity, unit->module);
    unit->module = make_module(unit);
}

static void make_visible(LLVMValueRef f) {
    LLVMSetLinkage(f, LLVMExternalLinkage);
    LLVMSetVisibility(f, LLVMHiddenVisibility);
}

LLVMValueRef cg_unit_kernel(cg_unit *unit, ts_str symbol) {
    const char *name = ts_arena_str(unit->arena, symbol).data;
    LLVMValueRef f = LLVMGetNamedFunction(unit->module, name);
    for (size_t i = 0; !f && i < unit->full_count; i++) {
        LLVMValueRef there = LLVMGetNamedFunction(unit->full[i], name);
        if (!there)
            continue;
        make_visible(there);
        f = LLVMAddFunction(unit->module, name, unit->kernel_type);
        make_visible(f);
    }
    return f;
}

void cg_unit_drop_kernel(cg_unit *unit, ts_str symbol) {
    LLVMValueRef kernel = LLVMGetNamedFunction(unit->module, ts_arena_str(unit->arena, symbol).data);
    if (!kernel)
        return;
    LLVMValueRef before = LLVMGetPreviousFunction(kernel);
    LLVMDeleteFunction(kernel);
    for (bool again = true; again;) { /* what is called by what is not */
        again = false;
        for (LLVMValueRef f = LLVMGetLastFunction(unit->module), next; f && f != before; f = next) {
            next = LLVMGetPreviousFunction(f);
            if (LLVMIsDeclaration(f) || LLVMGetFirstUse(f))
                continue;
            LLVMDeleteFunction(f);
            again = true;
        }
    }
}

ts_status cg_unit_init(cg_unit *unit, const cg_target_info *target, const cg_options *options,
                       ir_module *ir, ts_arena *arena) {
    *unit = (cg_unit){.target = target, .options = options, .ir = ir, .arena = arena,
                      .is_whole = options->emit != CG_EMIT_TSM};
    init_targets();
    char *message = NULL;
    LLVMTargetRef llvm_target;
    if (LLVMGetTargetFromTriple(target->triple, &llvm_target, &message))
        return llvm_error("LLVM target", message);
    char *cpu = NULL, *features = NULL;
    if (target->level == CG_NATIVE)
        cpu = LLVMGetHostCPUName();
    if (target->level == CG_NATIVE && !target->cpu)
        features = LLVMGetHostCPUFeatures();
    ts_str named = features ? ts_str_of(features) : cg_target_feature_names(target, arena);
    unit->cpu = ts_arena_str(arena, ts_str_of(target->cpu ? target->cpu : cpu)).data;
    unit->tuned_for = cpu && target->cpu ? ts_arena_str(arena, ts_str_of(cpu)).data : NULL;
    unit->features = ts_arena_str(arena, named).data;
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    TS_TRY(cg_unit_make_machine(unit, llvm_target));
    LLVMContextRef c = unit->context = LLVMContextCreate();
    unit->module = make_module(unit);
    unit->void_type = LLVMVoidTypeInContext(c);
    unit->i1 = LLVMInt1TypeInContext(c);
    unit->i8 = LLVMInt8TypeInContext(c);
    unit->i16 = LLVMInt16TypeInContext(c);
    unit->i32 = LLVMInt32TypeInContext(c);
    unit->i64 = LLVMInt64TypeInContext(c);
    unit->f32 = LLVMFloatTypeInContext(c);
    unit->f64 = LLVMDoubleTypeInContext(c);
    unit->pointer = LLVMPointerTypeInContext(c, 0);
    LLVMTypeRef params[] = {unit->pointer, unit->pointer, unit->i64, unit->i64, unit->pointer};
    unit->kernel_type = LLVMFunctionType(unit->void_type, params, 5, false);
    return NULL;
}

void cg_unit_deinit(cg_unit *unit) {
    for (size_t i = 0; i < unit->full_count; i++)
        LLVMDisposeModule(unit->full[i]);
    if (unit->module)
        LLVMDisposeModule(unit->module);
    if (unit->context)
        LLVMContextDispose(unit->context);
    if (unit->machine)
        LLVMDisposeTargetMachine(unit->machine);
    *unit = (cg_unit){0};
}

static void add_text_attribute(cg_unit *unit, LLVMValueRef f, const char *key, const char *value) {
    LLVMAttributeRef a =
        LLVMCreateStringAttribute(unit->context, key, (unsigned)strlen(key), value,
                                  (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, a);
}

LLVMValueRef cg_function_make(cg_unit *unit, const char *name, LLVMTypeRef type) {
    LLVMValueRef f = LLVMAddFunction(unit->module, name, type);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    unsigned kind = LLVMGetEnumAttributeKindForName("nounwind", 8);
    LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(unit->context, kind, 0));
    add_text_attribute(unit, f, "target-cpu", unit->cpu);
    if (unit->features[0])
        add_text_attribute(unit, f, "target-features", unit->features);
    if (unit->tuned_for)
        add_text_attribute(unit, f, "tune-cpu", unit->tuned_for);
    /* No calls to memcpy, memset or libm may appear: there is nothing to link with. */
    add_text_attribute(unit, f, "no-builtins", "");
    return f;
}

void cg_unit_weigh_branch(cg_unit *unit, LLVMValueRef branch, unsigned first, unsigned second) {
    LLVMContextRef c = unit->context;
    LLVMMetadataRef parts[3] = {
        LLVMMDStringInContext2(c, "branch_weights", 14),
        LLVMValueAsMetadata(LLVMConstInt(unit->i32, first, 0)),
        LLVMValueAsMetadata(LLVMConstInt(unit->i32, second, 0)),
    };
    unsigned kind = LLVMGetMDKindIDInContext(c, "prof", 4);
    LLVMSetMetadata(branch, kind, LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, parts, 3)));
}

LLVMValueRef cg_kernel_function(cg_unit *unit, const char *name) {
    return cg_function_make(unit, name, unit->kernel_type);
}

static ts_status run_passes(cg_unit *unit) {
    char *message = NULL;
    if (LLVMVerifyModule(unit->module, LLVMReturnStatusAction, &message))
        return llvm_error("LLVM module", message);
    LLVMDisposeMessage(message);
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMPassBuilderOptionsSetLoopVectorization(options, false);
    LLVMPassBuilderOptionsSetSLPVectorization(options, false);
    LLVMPassBuilderOptionsSetLoopUnrolling(options, false);
    LLVMErrorRef error = LLVMRunPasses(
        unit->module, "function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg)",
        unit->machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (!error)
        return NULL;
    char *text = LLVMGetErrorMessage(error);
    ts_status status = ts_error_make(TS_ERR_INTERNAL, "LLVM passes: %s", text);
    LLVMDisposeErrorMessage(text);
    return status;
}

ts_status cg_unit_optimise(cg_unit *unit) {
    fatal_guard guard;
    if (setjmp(guard.back))
        return fatal_error(unit, &guard);
    active_guard = &guard;
    ts_status status = run_passes(unit);
    active_guard = NULL;
    return status;
}

static ts_status emit_to_memory(cg_unit *unit, LLVMCodeGenFileType type,
                                LLVMMemoryBufferRef *out) {
    char *message = NULL;
    *out = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(unit->machine, unit->module, type, &message, out))
        return llvm_error("LLVM code generation", message);
    return NULL;
}

ts_status cg_unit_emit(cg_unit *unit, LLVMCodeGenFileType type, LLVMMemoryBufferRef *out) {
    fatal_guard guard;
    *out = NULL;
    if (setjmp(guard.back))
        return fatal_error(unit, &guard);
    active_guard = &guard;
    ts_status status = emit_to_memory(unit, type, out);
    active_guard = NULL;
    return status;
}
