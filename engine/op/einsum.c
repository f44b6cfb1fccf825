/* einsum.c: the type of a sum of products, from its equation. Called through
 * ops.def.
 *
 * What holds: a letter has one extent, which all operands that name it meet;
 * "..." stands for axes that broadcast. */

#include "op/infer.h"

typedef struct einsum {
  pln_infer *call;
  pln_dim letters[128]; /* extent of a letter */
  uint32_t uses[128];   /* how often it is named on the left */
  pln_shape dots;       /* what "..." stands for */
  bool dotted;          /* there is a "..." on the left */
  bool unknown;         /* an operand's rank is not known */
} einsum;

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Letters of a term; *dots tells of "...". An error for anything else. */
static pln_status count_letters(const einsum *e, pln_slice term, int32_t *n,
                                bool *dots) {
  *n = 0;
  *dots = false;
  for (size_t i = 0; i < term.size; i++) {
    if (is_letter(term.data[i]))
      ++*n;
    else if (term.size - i >= 3 && !memcmp(term.data + i, "...", 3) && !*dots)
      *dots = true, i += 2;
    else if (term.data[i] != ' ')
      return pln_call_error(e->call, "equation has a stray '%c'", term.data[i]);
  }
  return PLN_OK;
}

static pln_status meet_dots(einsum *e, uint32_t arg, const pln_dim *dims,
                            int32_t n) {
  pln_shape here;
  pln_shape_ranked(&here, n);
  for (int32_t i = 0; i < n; i++)
    here.dims[i] = dims[i];
  return pln_infer_broadcast_shape(e->call, arg, &e->dots, &here);
}

static pln_status meet_letter(einsum *e, uint32_t arg, char c, pln_dim dim) {
  unsigned char at = (unsigned char)c;
  pln_dim *known = &e->letters[at];
  if (e->uses[at]++ == 0)
    *known = dim;
  else if (*known == 1 || dim == 1) /* repeated with extent 1: broadcasts */
    *known = *known == 1 ? dim : *known;
  else
    return pln_infer_same_dim(e->call, arg, known, dim);
  return PLN_OK;
}

static pln_status meet_term(einsum *e, uint32_t arg, pln_slice term) {
  pln_shape x;
  int32_t n, at = 0;
  bool dots;
  PLN_TRY(count_letters(e, term, &n, &dots));
  pln_arg_shape(e->call, arg, &x);
  if (x.rank < 0)
    e->unknown = e->unknown || dots;
  if (x.rank >= 0 && (dots ? x.rank < n : x.rank != n))
    return pln_arg_error(e->call, arg, "rank %d does not fit the equation",
                         x.rank);
  e->dotted = e->dotted || dots;
  for (size_t i = 0; i < term.size; i++) {
    if (term.data[i] == '.') {
      if (x.rank >= 0)
        PLN_TRY(meet_dots(e, arg, x.dims + at, x.rank - n));
      at += x.rank - n;
      i += 2;
    } else if (is_letter(term.data[i])) {
      pln_dim dim = x.rank < 0 ? (pln_dim)PLN_DIM_UNKNOWN : x.dims[at];
      PLN_TRY(meet_letter(e, arg, term.data[i], dim));
      at++;
    }
  }
  return PLN_OK;
}

/* "ij,jk" -> its terms, one an operand. */
static pln_status meet_terms(einsum *e, pln_slice left) {
  uint32_t arg = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= left.size; i++) {
    if (i < left.size && left.data[i] != ',')
      continue;
    if (arg >= e->call->n_args)
      return pln_call_error(e->call, "equation has more terms than operands");
    pln_slice term = {left.data + begin, i - begin};
    PLN_TRY(meet_term(e, arg++, term));
    begin = i + 1;
  }
  if (arg < e->call->n_args)
    return pln_call_error(e->call, "equation has fewer terms than operands");
  return PLN_OK;
}

static void put_dots(const einsum *e, pln_shape *out) {
  for (int32_t i = 0; i < e->dots.rank && out->rank < PLN_MAX_RANK; i++)
    out->dims[out->rank++] = e->dots.dims[i];
}

static pln_status put_right(const einsum *e, pln_slice right, pln_shape *out) {
  int32_t n;
  bool dots;
  PLN_TRY(count_letters(e, right, &n, &dots));
  for (size_t i = 0; i < right.size && out->rank < PLN_MAX_RANK; i++) {
    char c = right.data[i];
    if (c == '.') {
      put_dots(e, out);
      i += 2;
    } else if (is_letter(c)) {
      if (!e->uses[(unsigned char)c])
        return pln_call_error(e->call, "'%c' is in the result only", c);
      out->dims[out->rank++] = e->letters[(unsigned char)c];
    }
  }
  return PLN_OK;
}

/* Without "->": "...", then the letters named once, in order. */
static void put_implied(const einsum *e, pln_shape *out) {
  put_dots(e, out);
  for (int c = 0; c < 128; c++)
    if (e->uses[c] == 1 && out->rank < PLN_MAX_RANK)
      out->dims[out->rank++] = e->letters[c];
}

static size_t find_arrow(pln_slice s) {
  for (size_t i = 0; i + 1 < s.size; i++)
    if (s.data[i] == '-' && s.data[i + 1] == '>')
      return i;
  return s.size;
}

pln_status pln_infer_einsum(pln_infer *call) {
  einsum e = {.call = call};
  pln_dtype dtype;
  pln_shape out = {.rank = 0};
  pln_slice equation =
      pln_attrs_string(call->engine, call->attrs, "equation", "");
  size_t arrow = find_arrow(equation);
  pln_slice left = {equation.data, arrow};
  PLN_TRY(pln_args_one_dtype(call, 0, call->n_args, &dtype));
  PLN_TRY(meet_terms(&e, left));
  if (arrow < equation.size) {
    pln_slice right = {equation.data + arrow + 2, equation.size - arrow - 2};
    PLN_TRY(put_right(&e, right, &out));
  } else {
    put_implied(&e, &out);
  }
  if (e.unknown)
    pln_shape_unknown(&out);
  return pln_result_tensor(call, 0, dtype, &out);
}
