/* einsum.c: type inference of einsum from its equation. Called through ops.def.
 *
 * Invariant: a letter has one extent, which all operands with that letter agree
 * on; "..." stands for broadcast axes. */

#include "op/infer/einsum_equation.h"

typedef struct einsum {
  pln_infer *call;
  pln_dim letters[PLN_DOTS]; /* by letter: its extent */
  uint32_t uses[PLN_DOTS];   /* by letter: occurrences on the left side */
  pln_shape dots;            /* the axes of "..." */
  bool unknown;              /* the result's rank is unknown */
} einsum;

static pln_status read_term(const einsum *e, pln_slice text,
                            pln_einsum_term *out) {
  char stray;
  if (pln_term_read(text, out, &stray))
    return PLN_OK;
  if (!stray)
    return pln_call_error(
        e->call, "equation has a term of more than %d letters", PLN_MAX_RANK);
  return pln_call_error(e->call, "equation has an unexpected '%c'", stray);
}

static pln_status meet_dots(einsum *e, uint32_t arg, const pln_dim *dims,
                            int32_t n) {
  pln_shape here;
  pln_shape_ranked(&here, n);
  for (int32_t i = 0; i < n; i++)
    here.dims[i] = dims[i];
  return pln_infer_broadcast_shape(e->call, arg, &e->dots, &here);
}

static pln_status meet_letter(einsum *e, uint32_t arg, unsigned char c,
                              pln_dim dim) {
  pln_dim *known = &e->letters[c];
  if (e->uses[c]++ == 0)
    *known = dim;
  else if (*known == 1 || dim == 1) /* repeated with extent 1: broadcasts */
    *known = *known == 1 ? dim : *known;
  else
    return pln_infer_same_dim(e->call, arg, known, dim);
  return PLN_OK;
}

static pln_status meet_term(einsum *e, uint32_t arg,
                            const pln_einsum_term *term) {
  pln_shape x;
  pln_arg_shape(e->call, arg, &x);
  int32_t n = (int32_t)term->n, dots = (int32_t)term->dots;
  if (x.rank < 0) {
    e->unknown = e->unknown || term->dotted;
    for (int32_t i = 0; i < n; i++)
      PLN_TRY(meet_letter(e, arg, term->letters[i], PLN_DIM_UNKNOWN));
    return PLN_OK;
  }
  if (term->dotted ? x.rank < n : x.rank != n)
    return pln_arg_error(e->call, arg, "rank %d does not match the equation",
                         x.rank);
  for (int32_t i = 0; i < n; i++) {
    int32_t at = term->dotted && i >= dots ? i + x.rank - n : i;
    PLN_TRY(meet_letter(e, arg, term->letters[i], x.dims[at]));
  }
  return meet_dots(e, arg, x.dims + dots, x.rank - n);
}

/* There is one term per operand. */
static pln_status meet_terms(einsum *e, pln_slice left) {
  pln_slice text;
  pln_einsum_term term;
  uint32_t arg = 0;
  while (pln_equation_next(&left, &text)) {
    if (arg >= e->call->n_args)
      return pln_call_error(e->call, "equation has more terms than operands");
    PLN_TRY(read_term(e, text, &term));
    PLN_TRY(meet_term(e, arg++, &term));
  }
  if (arg < e->call->n_args)
    return pln_call_error(e->call, "equation has fewer terms than operands");
  return PLN_OK;
}

static void append_einsum_dim(einsum *e, pln_dim dim, pln_shape *out) {
  if (out->rank < PLN_MAX_RANK)
    out->dims[out->rank++] = dim;
  else
    e->unknown = true;
}

static void put_dots(einsum *e, pln_shape *out) {
  for (int32_t i = 0; i < e->dots.rank; i++)
    append_einsum_dim(e, e->dots.dims[i], out);
}

static pln_status put_letter(einsum *e, unsigned char c, pln_shape *out) {
  if (!e->uses[c])
    return pln_call_error(e->call, "'%c' is in the result only", c);
  if (e->uses[c] == UINT32_MAX)
    return pln_call_error(e->call, "'%c' is in the result twice", c);
  e->uses[c] = UINT32_MAX;
  append_einsum_dim(e, e->letters[c], out);
  return PLN_OK;
}

static pln_status put_right(einsum *e, pln_slice right, pln_shape *out) {
  pln_einsum_term term;
  PLN_TRY(read_term(e, right, &term));
  for (uint32_t i = 0; i <= term.n; i++) {
    if (term.dotted && i == term.dots)
      put_dots(e, out);
    if (i < term.n)
      PLN_TRY(put_letter(e, term.letters[i], out));
  }
  return PLN_OK;
}

/* Without "->" the result is "..." and then the letters that occur once,
 * sorted. */
static void put_implied(einsum *e, pln_shape *out) {
  put_dots(e, out);
  for (int c = 0; c < PLN_DOTS; c++)
    if (e->uses[c] == 1)
      append_einsum_dim(e, e->letters[c], out);
}

static pln_status infer_operands(pln_infer *call) {
  einsum e = {.call = call};
  pln_dtype dtype;
  pln_shape out = {.rank = 0};
  pln_equation equation;
  pln_equation_split(
      pln_attrs_string(call->engine, call->attrs, "equation", ""), &equation);
  PLN_TRY(pln_args_one_dtype(call, 0, call->n_args, &dtype));
  PLN_TRY(meet_terms(&e, equation.left));
  if (equation.arrow)
    PLN_TRY(put_right(&e, equation.right, &out));
  else
    put_implied(&e, &out);
  if (e.unknown)
    pln_shape_unknown(&out);
  return pln_result_tensor(call, 0, dtype, &out);
}

pln_status pln_infer_einsum(pln_infer *call) {
  return pln_infer_spread(call, infer_operands);
}
