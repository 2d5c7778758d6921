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

/* What the rules and the program's own tests say of sizes. Certain: every run gets there, and
 * nothing was raised, written, drawn or printed before. */
typedef void pass_trial_match(void *user, rt_dim a, rt_dim b, rt_match how, bool is_certain);

typedef struct pass_trial pass_trial;

/* Sizes are symbols of a module of the trial's own; ir_dim_fresh makes them there. */
/* What a guess counts: tensor operators, those whose results stay without dtype or rank, or with a
 * size of which nothing is known, and how far the ranks are from those that operators usually meet.
 */
typedef struct pass_trial_count {
    size_t operators, untyped, unsized, misfits;
    rt_dim rows[8]; /* of products with weights, where that is not a constant */
    size_t row_count;
    rt_dim heads[4]; /* columns of what attention compares */
    size_t head_count;
    rt_dim images[2]; /* how many: of what depthwise convolutions and gates of channels read */
    size_t image_count;
} pass_trial_count;

pass_trial *pass_trial_make(pass_context *ctx, ir_module *m, const ir_function *f);
/* Makes the module of sizes, in what is scratch now; before the first run, and where scratch that
 * was used since is given back. */
void pass_trial_begin(pass_trial *t);
ir_module *pass_trial_sizes(const pass_trial *t);

/* Runs until the end, or until `limit` operators were seen. Where an arm of an `if` raises and the
 * condition is not known, the other one is taken. */
pass_trial_end pass_trial_run(pass_trial *t, const rt_fact *parameters, size_t limit,
                              pass_trial_match *match, void *user);

/* The same as a guess: nothing has to be certain, so loops are gone through once, and both arms of
 * any other `if`. */
pass_trial_end pass_trial_guess(pass_trial *t, const rt_fact *parameters, size_t limit,
                                pass_trial_match *match, void *user, pass_trial_count *count);

/* A match as what one symbol must be: *out_b is a constant or another symbol; a divisor where
 * *out_how is MULTIPLE. False where it says no such thing. */
bool pass_trial_simplify(const ir_module *sizes, rt_dim a, rt_dim b, rt_match how, rt_dim *out_a,
                         rt_dim *out_b, rt_match *out_how);

#endif
