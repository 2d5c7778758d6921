/* codegen/codegen_internal.h - what the files of codegen share: one LLVM module per CPU level into
 * which the host program and the kernels are emitted.
 *
 * Rules for whoever emits into a unit:
 *  - functions have internal linkage and the attributes that cg_function_make gives them (nounwind,
 *    target-cpu, target-features): without them LLVM would emit for the baseline processor;
 *  - no external symbols at all: no libm, no memcpy, no intrinsic that lowers to a call (llvm.exp,
 *    llvm.pow, llvm.sin, llvm.memcpy of unknown length, frem, i128 division ...). llvm.sqrt, fabs, floor, ceil, trunc,
 *    rint, roundeven, fma, copysign, minnum/maxnum on float and double are fine from x86-64-v2 on
 *    (v2 has no FMA: llvm.fma becomes a call there; see target->has_fma);
 *  - no writable globals; constant globals (tables) are private and unnamed_addr;
 *  - no alloca beyond 4 KiB in a kernel: ask for scratch. */
#ifndef CODEGEN_CODEGEN_INTERNAL_H
#define CODEGEN_CODEGEN_INTERNAL_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "codegen/codegen.h"
#include "codegen/kernel.h"

typedef struct cg_unit {
    LLVMContextRef context;
    LLVMModuleRef module; /* what is emitted goes here */
    LLVMModuleRef *full;  /* modules that are closed: see cg_unit_next_module */
    size_t full_count, full_capacity;
    bool is_whole;        /* one module only */
    LLVMTargetMachineRef machine;
    const cg_target_info *target;
    const char *cpu, *features; /* LLVM's */
    const char *tuned_for;      /* whose instruction times count, for --cpu=native; or NULL */
    const cg_options *options;
    ir_module *ir;
    ts_arena *arena; /* the compilation's: kernels' tables, packed weights */
    LLVMTypeRef void_type, i1, i8, i16, i32, i64, f32, f64, pointer;
    LLVMTypeRef kernel_type; /* void(ptr, ptr, i64, i64, ptr): see kernel.h */
    struct kn_weight_store *weights; /* what levels share: see weight_formats.h */
    const cg_variant *variant; /* of the kernel that is lowered now; NULL: the schedule's choice */
    size_t kernel_counter;   /* for unique names */
    const struct cg_dialect *dialect; /* of the device, or NULL: kernels for the CPU alone */
    ts_buffer *device_source;         /* receives kernels in that dialect */
} cg_unit;

/* A function with internal linkage and the unit's attributes. */
/* How often a conditional branch takes its first way for so many times the second. */
void cg_unit_weigh_branch(cg_unit *unit, LLVMValueRef branch, unsigned first, unsigned second);
LLVMValueRef cg_function_make(cg_unit *unit, const char *name, LLVMTypeRef type);
/* The same for a kernel: type kernel_type, its pointers noalias where that holds (not set here). */
LLVMValueRef cg_kernel_function(cg_unit *unit, const char *name);

/* Emits the kernel of an IR_OP_KERNEL into unit->module and fills *out (memory of unit->arena).
 * out->symbol names the function in the module. TS_ERR_UNSUPPORTED: no kernel for this body (or
 * this level): the host program then runs the body's operators one by one with the reference
 * kernels; nothing of the attempt may be left in the module in that case. */
ts_status cg_lower_kernel(cg_unit *unit, const ir_op *op, cg_kernel *out) TS_WARN_UNUSED;

#endif
