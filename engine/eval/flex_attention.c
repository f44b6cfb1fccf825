/* flex_attention.c: see flex_attention.h. The evaluator calls it between two
 * calls of functions.
 *
 *     scores -> score_mod -> softmax -> prob_mod -> product
 *
 * Invariant: `given` is the value that the next stage, or the function before
 * it, takes; no stage keeps what an earlier one made. A function gets the only
 * reference to its argument. */

#include "eval/flex_attention.h"

#include "eval/call.h"
#include "op/kernel/attention/flex_attention.h"

enum { OPERANDS = 3 }; /* query, key, value */

/* The stages, each but the first behind a function. */
typedef enum stage { SCORES, WEIGHTS, PRODUCT, ENDED } stage;

struct pln_flex_attention {
  pln_engine *engine;
  pln_attrs attrs;
  pln_ref_cell *args;
  pln_tensor *operands[OPERANDS]; /* as kernels take them */
  stage next;                     /* that is computed next */
  bool called;                    /* the function before it was called */
  pln_tensor *like; /* the argument of that function, without elements */
  pln_runtime_value given;
};

static const char *const functions[] = {
    [WEIGHTS] = "score_mod", [PRODUCT] = "prob_mod"};

static pln_kernel_call flex_kernel_call(const pln_flex_attention *f) {
  return (pln_kernel_call){.engine = f->engine,
                           .op = PLN_OP_FLEX_ATTENTION,
                           .attrs = f->attrs,
                           .n_args = OPERANDS,
                           .args = (const pln_tensor *const *)f->operands,
                           .n_results = 1};
}

bool pln_flex_attention_calls(const pln_node *call) {
  return call->data == PLN_OP_FLEX_ATTENTION && call->count > OPERANDS;
}

/* -------------------------------------------------------------------- start */

/* The operand that attribute `name` says; NULL: it is not set. */
static pln_status find_operand(const pln_flex_attention *f, const char *name,
                               const pln_runtime_value **out) {
  const pln_attr *a = pln_attrs_find(f->engine, f->attrs, name);
  pln_kernel_call call = flex_kernel_call(f);
  *out = NULL;
  if (!a)
    return PLN_OK;
  if (a->kind != PLN_ATTR_GRAPH || a->v.i < OPERANDS ||
      a->v.i >= f->args->count)
    return pln_kernel_refuse(
        &call, "%s is none of the operands behind the value", name);
  *out = &f->args->items[a->v.i];
  return PLN_OK;
}

/* Each operand behind the value must be named, or absent. */
static pln_status check_named(const pln_flex_attention *f) {
  const pln_runtime_value *score, *prob;
  pln_kernel_call call = flex_kernel_call(f);
  PLN_TRY(find_operand(f, functions[WEIGHTS], &score));
  PLN_TRY(find_operand(f, functions[PRODUCT], &prob));
  for (uint32_t i = OPERANDS; i < f->args->count; i++) {
    const pln_runtime_value *item = &f->args->items[i];
    if (item != score && item != prob && item->kind != PLN_RUNTIME_ABSENT)
      return pln_kernel_refuse(
          &call, "operand %u is neither score_mod nor prob_mod", i);
  }
  return PLN_OK;
}

static pln_status open_operands(pln_flex_attention *f) {
  pln_kernel_call call = flex_kernel_call(f);
  for (uint32_t i = 0; i < OPERANDS; i++) {
    const pln_runtime_value *item = &f->args->items[i];
    if (item->kind != PLN_RUNTIME_TENSOR)
      return pln_kernel_refuse(&call, "operand %u is not a tensor", i);
    PLN_TRY(pln_call_operand(item->of.tensor, &f->operands[i]));
  }
  return check_named(f);
}

pln_status pln_flex_attention_new(pln_engine *engine, pln_attrs attrs,
                                  pln_ref_cell *args,
                                  pln_flex_attention **out) {
  pln_flex_attention *f = pln_mem_zeroed(engine, sizeof *f);
  if (!f) {
    pln_ref_cell_release(engine, args);
    return pln_nomem(engine);
  }
  *f = (pln_flex_attention){.engine = engine, .attrs = attrs, .args = args};
  pln_status status = open_operands(f);
  if (status != PLN_OK)
    pln_flex_attention_free(f);
  else
    *out = f;
  return status;
}

/* ------------------------------------------------------------------- stages */

/* Replaces what is given to the next stage. */
static void give(pln_flex_attention *f, pln_tensor *tensor) {
  pln_runtime_value_release(f->engine, &f->given);
  f->given = pln_runtime_value_of_tensor(tensor);
}

static pln_status compute_stage(pln_flex_attention *f) {
  pln_kernel_call call = flex_kernel_call(f);
  const pln_tensor *given = f->given.of.tensor;
  pln_tensor *made = NULL;
  pln_status status =
      f->next == SCORES    ? pln_flex_attention_scores(&call, &made)
      : f->next == WEIGHTS ? pln_flex_attention_weights(&call, given, &made)
                           : pln_flex_attention_product(&call, given, &made);
  if (status != PLN_OK)
    return status;
  give(f, made);
  f->next++;
  f->called = false;
  return PLN_OK;
}

/* Moves what is given into the argument of the function; a tensor of the same
 * type without elements of its own stays. */
static pln_status enter_function(pln_flex_attention *f, pln_ref_cell **args) {
  static const char zeros[8];
  const pln_tensor *t = f->given.of.tensor;
  pln_tensor_release(f->like);
  f->like = NULL;
  PLN_TRY(pln_tensor_splat(f->engine, (pln_dtype)t->dtype, t->rank, t->dims,
                           zeros, &f->like));
  PLN_TRY(pln_ref_cell_new(f->engine, 1, args));
  (*args)->items[0] = f->given;
  f->given.kind = PLN_RUNTIME_NONE;
  f->called = true;
  return PLN_OK;
}

static pln_status leave_function(pln_flex_attention *f) {
  pln_kernel_call call = flex_kernel_call(f);
  const char *name = functions[f->next];
  pln_tensor *dense;
  if (f->given.kind != PLN_RUNTIME_TENSOR)
    return pln_kernel_refuse(&call, "%s does not return a tensor", name);
  PLN_TRY(pln_flex_attention_check(&call, name, f->like, f->given.of.tensor));
  PLN_TRY(pln_call_operand(f->given.of.tensor, &dense));
  give(f, dense);
  return PLN_OK;
}

pln_status pln_flex_attention_next(pln_flex_attention *f,
                                   const pln_runtime_value **callee,
                                   pln_ref_cell **args) {
  *args = NULL;
  if (f->called)
    PLN_TRY(leave_function(f));
  for (; f->next != ENDED;) {
    *callee = NULL;
    if (f->next != SCORES && !f->called)
      PLN_TRY(find_operand(f, functions[f->next], callee));
    if (*callee && (*callee)->kind != PLN_RUNTIME_ABSENT)
      return enter_function(f, args);
    PLN_TRY(compute_stage(f));
  }
  return PLN_OK;
}

pln_runtime_value *pln_flex_attention_result(pln_flex_attention *f) {
  return &f->given;
}

pln_runtime_value pln_flex_attention_finish(pln_flex_attention *f) {
  pln_runtime_value out = f->given;
  f->given.kind = PLN_RUNTIME_NONE;
  return out;
}

void pln_flex_attention_free(pln_flex_attention *f) {
  for (uint32_t i = 0; i < OPERANDS; i++)
    pln_tensor_release(f->operands[i]);
  pln_tensor_release(f->like);
  pln_runtime_value_release(f->engine, &f->given);
  pln_ref_cell_release(f->engine, f->args);
  pln_mem_free(f->engine, f, sizeof *f);
}
