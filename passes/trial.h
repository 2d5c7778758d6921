/* passes/trial.h - what would become of a function's values if its parameters were this or that: an
 * abstract run over facts that changes nothing. */
#ifndef PASSES_TRIAL_H
#define PASSES_TRIAL_H

#include "passes/pass_internal.h"

typedef enum pass_trial_end {
    PASS_TRIAL_RETURNS, /* or went as far as it could */
    PASS_TRIAL_RAISES,  /* a raise of the program's own, or an operator behind something open */
    PASS_TRIAL_FAILS    /* an operator that every run reaches raises */
} pass_trial_end;

/* What the rules and the program's own tests say of sizes. Certain: every run gets there, and nothing
 * was raised, written, drawn or printed before. */
typedef void pass_trial_match(void *user, rt_dim a, rt_dim b, rt_match how, bool is_certain);

typedef struct pass_trial pass_trial;

/* Sizes are symbols of a module of the trial's own; ir_dim_fresh makes them there. */
pass_trial *pass_trial_make(pass_context *ctx, ir_module *m, const ir_function *f);
ir_module *pass_trial_sizes(const pass_trial *t);

/* Runs until the end, or until `limit` operators were seen. Where an arm of an `if` raises and the
 * condition is not known, the other one is taken. */
pass_trial_end pass_trial_run(pass_trial *t, const rt_fact *parameters, size_t limit,
                              pass_trial_match *match, void *user);

#endif
