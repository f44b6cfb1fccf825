/* tensor_layout.c: the layouts of tensors, and how one follows from others.
 *
 * Called by the inference of layouts and by the layout passes. Each layout of a
 * run is stored once, so that comparing two is comparing numbers.
 *
 *     follow "C" when "NHWC" becomes "NCHW"      =>   "NCHW"
 *     follow "HW" when "NCHW" becomes "NCHW16c"  =>   "NCHW16c"
 *
 * Semantics: TVM's tir::Layout and TryTransformLike. */

#include "transform/layout/tensor_layout.h"

/* -------------------------------------------------------------- the table */

static pln_status append_layout(pln_layout_table *t, pln_symbol text,
                                const pln_data_layout *axes,
                                pln_tensor_layout *out) {
  PLN_TRY(pln_mem_grow(t->engine, (void **)&t->rows, &t->cap, (size_t)t->n + 1,
                       sizeof *t->rows));
  *out = t->n;
  t->rows[t->n++] = (pln_layout_row){.text = text, .axes = *axes};
  return text ? pln_idmap_set(t->by_text, text, *out) : PLN_OK;
}

pln_status pln_layout_table_new(pln_engine *engine, pln_layout_table *out) {
  const pln_data_layout none = {0};
  pln_tensor_layout layout;
  *out = (pln_layout_table){.engine = engine};
  PLN_TRY(pln_idmap_new(engine, &out->by_text));
  PLN_TRY(append_layout(out, 0, &none, &layout)); /* PLN_LAYOUT_UNDEFINED */
  return append_layout(out, 0, &none, &layout);   /* PLN_LAYOUT_SCALAR */
}

void pln_layout_table_free(pln_layout_table *t) {
  pln_idmap_free(t->by_text);
  pln_mem_free(t->engine, t->rows, t->cap * sizeof *t->rows);
}

static pln_status intern_layout(pln_layout_table *t, pln_slice text,
                                const pln_data_layout *axes,
                                pln_tensor_layout *out) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(t->engine, text, &symbol));
  *out = pln_idmap_get(t->by_text, symbol);
  return *out ? PLN_OK : append_layout(t, symbol, axes, out);
}

pln_status pln_tensor_layout_read(pln_layout_table *t, pln_slice text,
                                  pln_tensor_layout *out) {
  pln_data_layout axes;
  pln_slice named = text;
  *out = PLN_LAYOUT_UNDEFINED;
  while (named.size && named.data[named.size - 1] >= '0' &&
         named.data[named.size - 1] <= '9')
    named.size--;
  if (text.size == 0 || !pln_data_layout_read(named, &axes))
    return PLN_OK;
  return intern_layout(t, text, &axes, out);
}

pln_status pln_tensor_layout_of(pln_layout_table *t,
                                const pln_data_layout *axes,
                                pln_tensor_layout *out) {
  char text[PLN_LAYOUT_TEXT];
  if (axes->rank == 0) {
    *out = PLN_LAYOUT_SCALAR;
    return PLN_OK;
  }
  return intern_layout(t, pln_data_layout_write(axes, text), axes, out);
}

/* ----------------------------------------------------------------- queries */

pln_slice pln_tensor_layout_text(const pln_layout_table *t,
                                 pln_tensor_layout layout) {
  pln_symbol text = t->rows[layout].text;
  return text ? pln_symbol_text(t->engine, text) : pln_text("");
}

int32_t pln_tensor_layout_rank(const pln_layout_table *t,
                               pln_tensor_layout layout) {
  return t->rows[layout].axes.rank;
}

int32_t pln_tensor_layout_n_primal(const pln_layout_table *t,
                                   pln_tensor_layout layout) {
  const pln_data_layout *axes = &t->rows[layout].axes;
  int32_t n = 0;
  for (int32_t i = 0; i < axes->rank; i++)
    n += axes->factor[i] == 0;
  return n;
}

pln_layout_axis pln_tensor_layout_axis(const pln_layout_table *t,
                                       pln_tensor_layout layout, int32_t i) {
  const pln_data_layout *axes = &t->rows[layout].axes;
  return (pln_layout_axis){axes->letter[i], axes->factor[i]};
}

static int32_t find_axis(const pln_data_layout *axes, char letter, bool inner) {
  for (int32_t i = 0; i < axes->rank; i++)
    if (axes->letter[i] == letter && (axes->factor[i] != 0) == inner)
      return i;
  return -1;
}

int32_t pln_tensor_layout_find(const pln_layout_table *t,
                               pln_tensor_layout layout, char letter,
                               bool inner) {
  return find_axis(&t->rows[layout].axes, letter, inner);
}

int32_t pln_tensor_layout_map(const pln_layout_table *t, pln_tensor_layout from,
                              int64_t i, pln_tensor_layout to) {
  if (i < 0 || i >= pln_tensor_layout_rank(t, from))
    return -1;
  pln_layout_axis axis = pln_tensor_layout_axis(t, from, (int32_t)i);
  return pln_tensor_layout_find(t, to, axis.letter, axis.factor != 0);
}

int64_t pln_tensor_layout_factor(const pln_layout_table *t,
                                 pln_tensor_layout layout, char letter) {
  int32_t i = pln_tensor_layout_find(t, layout, letter, true);
  return i < 0 ? 0 : t->rows[layout].axes.factor[i];
}

/* -------------------------------------------------------- layouts of layouts
 */

static bool push_axis(pln_data_layout *axes, char letter, int64_t factor) {
  if (axes->rank == PLN_LAYOUT_AXES)
    return false;
  axes->letter[axes->rank] = letter;
  axes->factor[axes->rank++] = factor;
  return true;
}

static pln_data_layout slice_axes(const pln_data_layout *axes, int32_t begin,
                                  int32_t count) {
  pln_data_layout out = {0};
  for (int32_t i = begin; i < begin + count && i < axes->rank; i++)
    (void)push_axis(&out, axes->letter[i], axes->factor[i]);
  return out;
}

pln_status pln_tensor_layout_slice(pln_layout_table *t,
                                   pln_tensor_layout layout, int32_t begin,
                                   int32_t count, pln_tensor_layout *out) {
  *out = PLN_LAYOUT_UNDEFINED;
  if (layout == PLN_LAYOUT_UNDEFINED || begin < 0 ||
      begin > pln_tensor_layout_rank(t, layout))
    return PLN_OK;
  pln_data_layout axes = slice_axes(&t->rows[layout].axes, begin, count);
  return pln_tensor_layout_of(t, &axes, out);
}

pln_status pln_tensor_layout_expand(pln_layout_table *t,
                                    pln_tensor_layout layout,
                                    pln_tensor_layout like,
                                    pln_tensor_layout *out) {
  const pln_data_layout *have = &t->rows[layout].axes;
  const pln_data_layout *want = &t->rows[like].axes;
  pln_data_layout axes = {0};
  bool fits = true;
  for (int32_t i = 0; i < want->rank; i++)
    if (!want->factor[i] && find_axis(have, want->letter[i], false) < 0)
      fits = fits && push_axis(&axes, want->letter[i], 0);
  for (int32_t i = 0; i < have->rank; i++)
    fits = fits && push_axis(&axes, have->letter[i], have->factor[i]);
  *out = PLN_LAYOUT_UNDEFINED;
  return fits ? pln_tensor_layout_of(t, &axes, out) : PLN_OK;
}

/* ------------------------------------------------------------ correspondence
 */

enum { LETTERS = 26 };

/* What the letters of one layout are called in the other. */
typedef struct letter_map {
  char name[LETTERS]; /* 0: none yet */
  bool used[LETTERS];
} letter_map;

static bool map_letter(letter_map *m, char letter, char name) {
  char *known = &m->name[letter - 'A'];
  if (*known)
    return *known == name;
  if (m->used[name - 'A'])
    return false;
  *known = name;
  m->used[name - 'A'] = true;
  return true;
}

/* Renames the last axes of `from` to `axes`. False if they do not correspond
 * one to one, or if an axis before them has a part among them. */
static bool map_last_axes(const pln_data_layout *from,
                          const pln_data_layout *axes, letter_map *m) {
  int32_t before = from->rank - axes->rank;
  if (before < 0)
    return false;
  for (int32_t j = 0; j < axes->rank; j++)
    if (from->factor[before + j] != axes->factor[j] ||
        !map_letter(m, from->letter[before + j], axes->letter[j]))
      return false;
  for (int32_t i = 0; i < before; i++)
    if (m->name[from->letter[i] - 'A'])
      return false;
  return true;
}

/* Gives the remaining letters of `from` their own name, or a free one. */
static bool map_other_letters(const pln_data_layout *from, letter_map *m) {
  for (int32_t i = from->rank - 1; i >= 0; i--) {
    int letter = from->letter[i] - 'A', name = letter;
    if (m->name[letter])
      continue;
    for (int k = 0; m->used[name] && k < LETTERS; k++)
      name = k;
    if (m->used[name])
      return false;
    m->name[letter] = (char)('A' + name);
    m->used[name] = true;
  }
  return true;
}

static bool rename_axes(const letter_map *m, const pln_data_layout *to,
                        pln_data_layout *out) {
  *out = *to;
  for (int32_t i = 0; i < to->rank; i++) {
    out->letter[i] = m->name[to->letter[i] - 'A'];
    if (!out->letter[i])
      return false;
  }
  return true;
}

pln_status pln_tensor_layout_follow(pln_layout_table *t,
                                    pln_tensor_layout layout,
                                    pln_tensor_layout from,
                                    pln_tensor_layout to,
                                    pln_tensor_layout *out) {
  const pln_data_layout *axes = &t->rows[layout].axes;
  const pln_data_layout *old = &t->rows[from].axes;
  pln_data_layout renamed;
  letter_map m = {0};
  *out = PLN_LAYOUT_UNDEFINED;
  if (!layout || !from || !to || !map_last_axes(old, axes, &m))
    return PLN_OK;
  if (axes->rank == 0)
    *out = layout;
  if (axes->rank == 0 || !map_other_letters(old, &m) ||
      !rename_axes(&m, &t->rows[to].axes, &renamed))
    return PLN_OK;
  return pln_tensor_layout_of(t, &renamed, out);
}

/* -------------------------------------------------------------- conversion */

static bool same_primal_axes(const pln_data_layout *a,
                             const pln_data_layout *b) {
  for (int32_t i = 0; i < a->rank; i++)
    if (find_axis(b, a->letter[i], false) < 0)
      return false;
  return true;
}

/* True if the extent of an axis is a multiple of its inner part in `to`. */
static bool divides(const pln_data_layout *from, const pln_dim *dims,
                    const pln_data_layout *to) {
  for (int32_t i = 0; i < to->rank; i++) {
    if (!to->factor[i])
      continue;
    int32_t outer = find_axis(from, to->letter[i], false);
    int32_t inner = find_axis(from, to->letter[i], true);
    int64_t part = inner < 0 ? 1 : from->factor[inner];
    if (part % to->factor[i] == 0)
      continue;
    if (!PLN_DIM_IS_CONST(dims[outer]) ||
        dims[outer] * part % to->factor[i] != 0)
      return false;
  }
  return true;
}

bool pln_tensor_layout_converts(const pln_layout_table *t,
                                const pln_shape *shape, pln_tensor_layout from,
                                pln_tensor_layout to) {
  const pln_data_layout *a = &t->rows[from].axes, *b = &t->rows[to].axes;
  return from && to && a->rank > 0 && shape->rank == a->rank &&
         same_primal_axes(a, b) && same_primal_axes(b, a) &&
         divides(a, shape->dims, b);
}
