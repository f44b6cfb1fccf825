/* intrinsic_rules.c: what mathematical builtins become on the targets llvm and
 * c (lower_intrin.h).
 *
 * Called by tir.LowerIntrin. A row names the builtin and how it is called:
 * LLVM's intrinsics by their number (as recorded with LLVM 14), functions of C
 * by their name with the suffix of the dtype. Builtins without a row for the
 * target stay; those of LLVM whose number is not recorded are among them. */

#include <stdio.h>

#include "lower/host/lower_intrin.h"

typedef enum rule_form {
  INTRINSIC, /* of LLVM */
  EXTERN,    /* a function of C */
  SIGMOID,   /* 1 / (1 + exp(-x)) */
  RSQRT,     /* 1 / sqrt(x) */
  TANH,      /* by exp(2x), away from overflow */
  COSH,      /* (exp(x) + exp(-x)) / 2 */
  SINH       /* (exp(x) - exp(-x)) / 2 */
} rule_form;

typedef enum rule_target { ON_LLVM = 1, ON_C = 2, ON_ANY = 3 } rule_target;

static const struct {
  const char *builtin;
  rule_target target;
  rule_form form;
  uint32_t number; /* of the intrinsic */
  uint32_t args;   /* how many of them choose the variant of the intrinsic */
} rules[] = {
    {"exp", ON_LLVM, INTRINSIC, 75, 1},
    {"fabs", ON_LLVM, INTRINSIC, 137, 1},
    {"floor", ON_LLVM, INTRINSIC, 138, 1},
    {"ceil", ON_LLVM, INTRINSIC, 14, 1},
    {"trunc", ON_LLVM, INTRINSIC, 290, 1},
    {"nearbyint", ON_LLVM, INTRINSIC, 200, 1},
    {"log", ON_LLVM, INTRINSIC, 172, 1},
    {"log2", ON_LLVM, INTRINSIC, 174, 1},
    {"sqrt", ON_LLVM, INTRINSIC, 274, 1},
    {"pow", ON_LLVM, INTRINSIC, 234, 2},
    {"fma", ON_LLVM, INTRINSIC, 141, 3},
    {"popcount", ON_LLVM, INTRINSIC, 53, 1},
    {"tanh", ON_LLVM, TANH, 0, 0},
    {"cosh", ON_LLVM, COSH, 0, 0},
    {"sinh", ON_LLVM, SINH, 0, 0},
    {"sigmoid", ON_ANY, SIGMOID, 0, 0},
    {"rsqrt", ON_ANY, RSQRT, 0, 0},
    {"exp", ON_C, EXTERN, 0, 0},
    {"erf", ON_ANY, EXTERN, 0, 0},
    {"log", ON_C, EXTERN, 0, 0},
    {"log2", ON_C, EXTERN, 0, 0},
    {"log10", ON_C, EXTERN, 0, 0},
    {"log1p", ON_ANY, EXTERN, 0, 0},
    {"tan", ON_C, EXTERN, 0, 0},
    {"atan", ON_ANY, EXTERN, 0, 0},
    {"atanh", ON_ANY, EXTERN, 0, 0},
    {"atan2", ON_ANY, EXTERN, 0, 0},
    {"cos", ON_C, EXTERN, 0, 0},
    {"acos", ON_ANY, EXTERN, 0, 0},
    {"cosh", ON_C, EXTERN, 0, 0},
    {"acosh", ON_ANY, EXTERN, 0, 0},
    {"sin", ON_C, EXTERN, 0, 0},
    {"asin", ON_ANY, EXTERN, 0, 0},
    {"sinh", ON_C, EXTERN, 0, 0},
    {"asinh", ON_ANY, EXTERN, 0, 0},
    {"tanh", ON_C, EXTERN, 0, 0},
    {"sqrt", ON_C, EXTERN, 0, 0},
    {"floor", ON_C, EXTERN, 0, 0},
    {"ceil", ON_C, EXTERN, 0, 0},
    {"round", ON_C, EXTERN, 0, 0},
    {"trunc", ON_C, EXTERN, 0, 0},
    {"fabs", ON_C, EXTERN, 0, 0},
    {"pow", ON_C, EXTERN, 0, 0},
    {"hypot", ON_ANY, EXTERN, 0, 0},
    {"nextafter", ON_ANY, EXTERN, 0, 0},
    {"copysign", ON_ANY, EXTERN, 0, 0},
    {"ldexp", ON_ANY, EXTERN, 0, 0},
    {"fmod", ON_ANY, EXTERN, 0, 0},
};

typedef struct intrinsic_call {
  pln_emit *e;
  pln_type type;
  bool llvm;
  pln_ref x;
} intrinsic_call;

static pln_ref call_intrinsic(pln_emit *e, size_t row, pln_type type,
                              uint32_t n, const pln_ref *args) {
  pln_ref all[5] = {pln_emit_int(e, PLN_UINT32, rules[row].number),
                    pln_emit_int(e, PLN_UINT32, rules[row].args)};
  for (uint32_t i = 0; i < n; i++)
    all[2 + i] = args[i];
  return pln_emit_call(e, "call_llvm_pure_intrin", type, n + 2, all);
}

/* PLN_NONE for a dtype that C's library does not have. */
static pln_ref call_extern(pln_emit *e, const char *name, pln_type type,
                           uint32_t n, const pln_ref *args) {
  char text[32];
  pln_ref all[4];
  pln_dtype dtype = pln_type_dtype(e->b->engine, type);
  if (dtype != PLN_FLOAT32 && dtype != PLN_FLOAT64)
    return PLN_NONE;
  snprintf(text, sizeof text, "%s%s", name, dtype == PLN_FLOAT32 ? "f" : "");
  all[0] = pln_emit_string(e, pln_text(text));
  for (uint32_t i = 0; i < n; i++)
    all[1 + i] = args[i];
  return pln_emit_call(e, "call_pure_extern", type, n + 1, all);
}

static pln_ref simple_call(const intrinsic_call *c, const char *builtin,
                           pln_ref x) {
  rule_target target = c->llvm ? ON_LLVM : ON_C;
  for (size_t i = 0; i < PLN_COUNT(rules); i++) {
    if (strcmp(rules[i].builtin, builtin) != 0 || !(rules[i].target & target))
      continue;
    return rules[i].form == INTRINSIC
               ? call_intrinsic(c->e, i, c->type, 1, &x)
               : call_extern(c->e, builtin, c->type, 1, &x);
  }
  return PLN_NONE;
}

static pln_ref real(const intrinsic_call *c, double value) {
  pln_ref out = PLN_NONE;
  pln_engine *engine = c->e->b->engine;
  pln_type scalar = pln_emit_type(c->e, pln_type_dtype(engine, c->type));
  if (c->e->status == PLN_OK)
    c->e->status = pln_build_float_imm(c->e->b, scalar, value, &out);
  uint32_t lanes = pln_type_number(engine, c->type);
  if (lanes == 1)
    return out;
  return pln_emit_prim(c->e, &(pln_prim){.kind = PLN_BROADCAST,
                                         .data = lanes,
                                         .n = 1,
                                         .operands = &out});
}

static pln_ref binary(const intrinsic_call *c, pln_kind kind, pln_ref x,
                      pln_ref y) {
  return pln_emit_binary(c->e, kind, x, y);
}

static pln_ref exp_of(const intrinsic_call *c, pln_ref x) {
  return simple_call(c, "exp", x);
}

static pln_ref sigmoid(const intrinsic_call *c) {
  pln_ref negated = binary(c, PLN_PRIM_SUB, real(c, 0), c->x);
  pln_ref sum = binary(c, PLN_PRIM_ADD, real(c, 1), exp_of(c, negated));
  return binary(c, PLN_PRIM_DIV, real(c, 1), sum);
}

/* x >= 0: (1 - exp(-2x)) / (1 + exp(-2x)), else (exp(2x) - 1) / (exp(2x) + 1).
 */
static pln_ref tanh_of(const intrinsic_call *c) {
  pln_ref one = real(c, 1);
  pln_ref down = exp_of(c, binary(c, PLN_PRIM_MUL, real(c, -2), c->x));
  pln_ref up = exp_of(c, binary(c, PLN_PRIM_MUL, real(c, 2), c->x));
  pln_ref positive = binary(c, PLN_PRIM_DIV, binary(c, PLN_PRIM_SUB, one, down),
                            binary(c, PLN_PRIM_ADD, one, down));
  pln_ref negative = binary(c, PLN_PRIM_DIV, binary(c, PLN_PRIM_SUB, up, one),
                            binary(c, PLN_PRIM_ADD, up, one));
  return pln_emit_select(c->e, binary(c, PLN_PRIM_GE, c->x, real(c, 0)),
                         positive, negative);
}

static pln_ref hyperbolic(const intrinsic_call *c, pln_kind kind) {
  pln_ref negated = binary(c, PLN_PRIM_MUL, real(c, -1), c->x);
  pln_ref both = binary(c, kind, exp_of(c, c->x), exp_of(c, negated));
  return binary(c, PLN_PRIM_DIV, both, real(c, 2));
}

static pln_ref apply(size_t row, const intrinsic_call *c, uint32_t n,
                     const pln_ref *args) {
  switch (rules[row].form) {
  case INTRINSIC: return call_intrinsic(c->e, row, c->type, n, args);
  case EXTERN: return call_extern(c->e, rules[row].builtin, c->type, n, args);
  case SIGMOID: return sigmoid(c);
  case RSQRT:
    return binary(c, PLN_PRIM_DIV, real(c, 1), simple_call(c, "sqrt", c->x));
  case TANH: return tanh_of(c);
  case COSH: return hyperbolic(c, PLN_PRIM_ADD);
  default: return hyperbolic(c, PLN_PRIM_SUB);
  }
}

/* Rules are for floating-point numbers; those of C for two widths. */
static bool takes(size_t row, pln_dtype dtype) {
  if (rules[row].form == INTRINSIC)
    return true;
  return dtype == PLN_FLOAT32 || dtype == PLN_FLOAT64;
}

pln_status pln_intrin_lower_call(const pln_intrin_lowering *x, pln_emit *e,
                                 const char *builtin, pln_type type, uint32_t n,
                                 const pln_ref *args, pln_ref *node) {
  rule_target target = x->llvm ? ON_LLVM : ON_C;
  intrinsic_call c = {.e = e, .type = type, .llvm = x->llvm, .x = args[0]};
  for (size_t i = 0; i < PLN_COUNT(rules); i++) {
    if (!(rules[i].target & target) || strcmp(rules[i].builtin, builtin) != 0 ||
        !takes(i, pln_type_dtype(x->g->engine, type)))
      continue;
    *node = apply(i, &c, n, args);
    return e->status;
  }
  return PLN_OK;
}
