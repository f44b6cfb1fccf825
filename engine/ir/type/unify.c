/* type/unify.c: first-order unification of types: union-find with path halving.
 *
 * Called by inference. Each hole is a row of a union-find forest; a root holds
 * the type term of its class, or nothing yet. Pairs of composite types are
 * unified once. Invariants: no term is a hole; `parts` holds the results of the
 * finished pairs of open frames. Nothing recurses. There is no occurs check
 * during unification: a type that contains itself is detected when it is
 * resolved. */

#include "ir/type/unify.h"
#include "ir/type/type.h"

/* Marks a pair whose frame is still open. */
#define BEGUN UINT32_MAX

static pln_status resolve_image(void *ud, pln_type type, pln_type *out,
                                bool *again);
static void resolve_leave(void *ud, pln_type type, pln_type image);

void pln_unifier_init(pln_unifier *u, pln_engine *engine) {
  *u = (pln_unifier){.engine = engine};
  u->resolving = (pln_type_substitution){.engine = engine,
                                         .flags = PLN_TYPE_HAS_HOLE,
                                         .image = resolve_image,
                                         .leave = resolve_leave,
                                         .ud = u};
}

void pln_unifier_free(pln_unifier *u) {
  pln_engine *e = u->engine;
  pln_mem_free(e, u->holes, u->cap_holes * sizeof *u->holes);
  pln_idmap_free(u->rows);
  pln_idmap_free(u->pairs);
  pln_mem_free(e, u->frames, u->cap_frames * sizeof *u->frames);
  pln_mem_free(e, u->parts, u->cap_parts * sizeof *u->parts);
  pln_mem_free(e, u->next, u->cap_next * sizeof *u->next);
  pln_type_substitution_free(&u->resolving);
  *u = (pln_unifier){.engine = e};
}

/* ------------------------------------------------------------------- holes */

static pln_status add_hole(pln_unifier *u, pln_type type, uint32_t *row) {
  PLN_TRY(pln_mem_grow(u->engine, (void **)&u->holes, &u->cap_holes,
                       (size_t)u->n_holes + 1, sizeof *u->holes));
  u->holes[u->n_holes] = (pln_hole_row){.link = u->n_holes, .type = type};
  *row = u->n_holes++;
  return PLN_OK;
}

pln_status pln_unifier_hole(pln_unifier *u, pln_type *out) {
  uint32_t row;
  PLN_TRY(pln_type_own_hole(u->engine, u->n_holes, out));
  return add_hole(u, *out, &row);
}

/* The row of a hole: its number for the unifier's own holes; users' holes are
 * looked up. PLN_NONE: never seen. */
static uint32_t hole_row_of(const pln_unifier *u, pln_type hole) {
  uint32_t own = pln_type_own_number(u->engine, hole);
  if (own < u->n_holes && u->holes[own].type == hole)
    return own;
  return u->rows ? pln_idmap_get(u->rows, hole) - 1 : PLN_NONE;
}

static pln_status add_users_hole(pln_unifier *u, pln_type type, uint32_t *row) {
  if (!u->rows)
    PLN_TRY(pln_idmap_new(u->engine, &u->rows));
  PLN_TRY(pln_idmap_set(u->rows, type, u->n_holes + 1));
  return add_hole(u, type, row);
}

static uint32_t root_of(pln_unifier *u, uint32_t row) {
  pln_hole_row *h = u->holes;
  while (h[row].link != row) {
    h[row].link = h[h[row].link].link;
    row = h[row].link;
  }
  return row;
}

static bool is_hole(const pln_unifier *u, pln_type type) {
  return pln_type_get_kind(u->engine, type) == PLN_TYPE_HOLE;
}

/* The root of a hole; a user's hole gets a row at its first occurrence. */
static pln_status find_root(pln_unifier *u, pln_type hole, uint32_t *root) {
  uint32_t row = hole_row_of(u, hole);
  if (row == PLN_NONE)
    return add_users_hole(u, hole, root);
  *root = root_of(u, row);
  return PLN_OK;
}

pln_type pln_unifier_find(pln_unifier *u, pln_type type) {
  uint32_t row = is_hole(u, type) ? hole_row_of(u, type) : PLN_NONE;
  if (row == PLN_NONE)
    return type;
  const pln_hole_row *root = &u->holes[root_of(u, row)];
  return root->term ? root->term : root->type;
}

/* ----------------------------------------------------------------- waiting */

/* Appends a list to another. */
static void move_waiting(pln_unifier *u, pln_hole_row *from, uint32_t *to_first,
                         uint32_t *to_last) {
  if (!from->first_waiting)
    return;
  if (*to_last)
    u->next[*to_last - 1] = from->first_waiting;
  else
    *to_first = from->first_waiting;
  *to_last = from->last_waiting;
  from->first_waiting = from->last_waiting = 0;
}

pln_status pln_unifier_wait(pln_unifier *u, pln_type hole, uint32_t id) {
  uint32_t root;
  PLN_TRY(find_root(u, hole, &root));
  uint32_t had = u->cap_next;
  PLN_TRY(pln_mem_grow(u->engine, (void **)&u->next, &u->cap_next,
                       (size_t)id + 1, sizeof *u->next));
  if (u->cap_next > had)
    memset(u->next + had, 0, (u->cap_next - had) * sizeof *u->next);
  pln_hole_row *h = &u->holes[root],
               alone = {.first_waiting = id + 1, .last_waiting = id + 1};
  u->next[id] = 0;
  if (h->term)
    move_waiting(u, &alone, &u->first_ready, &u->last_ready);
  else
    move_waiting(u, &alone, &h->first_waiting, &h->last_waiting);
  return PLN_OK;
}

bool pln_unifier_next_ready(pln_unifier *u, uint32_t *id) {
  if (!u->first_ready)
    return false;
  *id = u->first_ready - 1;
  u->first_ready = u->next[*id];
  if (!u->first_ready)
    u->last_ready = 0;
  return true;
}

static void set_term(pln_unifier *u, uint32_t root, pln_type term) {
  u->holes[root].term = term;
  move_waiting(u, &u->holes[root], &u->first_ready, &u->last_ready);
}

/* ----------------------------------------------------------------- leaves */

/* Two dims that may be equal give a dim that is consistent with both. */
static bool unify_dim(pln_engine *e, pln_dim a, pln_dim b, pln_dim *out) {
  (void)e;
  *out = a == b ? a : PLN_DIM_UNKNOWN;
  return a == b || !PLN_DIM_IS_CONST(a) || !PLN_DIM_IS_CONST(b);
}

static pln_status unify_ranked(pln_unifier *u, pln_dtype dtype, pln_type a,
                               pln_type b, pln_type *out) {
  pln_engine *e = u->engine;
  int32_t rank = pln_type_rank(e, a);
  pln_dim few[8], *dims = few;
  size_t size = (size_t)rank * sizeof *dims;
  if (size > sizeof few && !(dims = pln_mem_new(e, size)))
    return pln_nomem(e);
  const pln_dim *x = pln_type_dims(e, a), *y = pln_type_dims(e, b);
  for (int32_t i = 0; i < rank; i++)
    u->conflict |= !unify_dim(e, x[i], y[i], &dims[i]);
  pln_status status = pln_type_tensor(e, dtype, rank, dims, out);
  if (dims != few)
    pln_mem_free(e, dims, size);
  return status;
}

/* An unknown dtype behaves like a hole; an unknown rank behaves like `?`. */
static pln_status unify_tensors(pln_unifier *u, pln_type a, pln_type b,
                                pln_type *out) {
  pln_engine *e = u->engine;
  pln_dtype x = pln_type_dtype(e, a), y = pln_type_dtype(e, b);
  int32_t p = pln_type_rank(e, a), q = pln_type_rank(e, b);
  *out = a;
  uint32_t lanes = pln_type_number(e, a);
  u->conflict = (x && y && x != y) || (p >= 0 && q >= 0 && p != q) ||
                lanes != pln_type_number(e, b);
  if (u->conflict)
    return PLN_OK;
  if (p == q && p >= 0)
    PLN_TRY(unify_ranked(u, x ? x : y, a, b, out));
  else
    PLN_TRY(pln_type_tensor(e, x ? x : y, -1, NULL, out));
  return lanes ? pln_type_with_lanes(e, *out, lanes, out) : PLN_OK;
}

/* ------------------------------------------------------------------- pairs */

static pln_status push_unified_part(pln_unifier *u, pln_type type) {
  PLN_TRY(pln_mem_grow(u->engine, (void **)&u->parts, &u->cap_parts,
                       (size_t)u->n_parts + 1, sizeof *u->parts));
  u->parts[u->n_parts++] = type;
  return PLN_OK;
}

static pln_status push_unify_frame(pln_unifier *u, pln_type a, pln_type b,
                                   uint32_t hole) {
  PLN_TRY(pln_mem_grow(u->engine, (void **)&u->frames, &u->cap_frames,
                       (size_t)u->n_frames + 1, sizeof *u->frames));
  u->frames[u->n_frames++] = (pln_unify_frame){.a = a,
                                               .b = b,
                                               .as = a,
                                               .first = u->n_parts,
                                               .hole = hole,
                                               .from = PLN_NONE};
  return PLN_OK;
}

static pln_status refuse_unification(pln_unifier *u, pln_type a, pln_type b) {
  u->conflict = true;
  u->conflict_a = a;
  u->conflict_b = b;
  return PLN_OK;
}

/* Links two unknown holes, or an unknown hole and a known one. If both are
 * known, opens a frame for their terms. */
static pln_status unify_holes(pln_unifier *u, uint32_t a, uint32_t b) {
  if (a == b)
    return push_unified_part(u, u->holes[a].type);
  /* Users' holes stay visible in resolved types. */
  bool keep_a = !pln_type_is_own_hole(u->engine, u->holes[a].type);
  uint32_t from = keep_a ? b : a, to = keep_a ? a : b;
  pln_type p = u->holes[from].term, q = u->holes[to].term;
  u->holes[from].link = to;
  move_waiting(u, &u->holes[from], &u->holes[to].first_waiting,
               &u->holes[to].last_waiting);
  if (p && q) {
    PLN_TRY(push_unify_frame(u, p, q, to));
    u->frames[u->n_frames - 1].from = from;
    return PLN_OK;
  }
  if (p || q)
    set_term(u, to, p ? p : q);
  return push_unified_part(u, u->holes[to].type);
}

static pln_status unify_hole(pln_unifier *u, pln_type hole, pln_type type) {
  uint32_t root;
  PLN_TRY(find_root(u, hole, &root));
  if (!type)
    return push_unified_part(u, u->holes[root].type);
  if (is_hole(u, type)) {
    uint32_t other;
    PLN_TRY(find_root(u, type, &other));
    return unify_holes(u, root, other);
  }
  if (u->holes[root].term)
    return push_unify_frame(u, u->holes[root].term, type, root);
  set_term(u, root, type);
  return push_unified_part(u, u->holes[root].type);
}

static uint64_t pair_key(pln_type a, pln_type b) {
  return (uint64_t)a << 32 | b;
}

/* `a` with its type parameters renamed to b's. If it has more of them, they
 * become holes, and unification determines their correspondence. */
static pln_status rename_vars(pln_unifier *u, pln_type b, pln_type *a) {
  pln_engine *e = u->engine;
  uint32_t n = pln_type_n_vars(e, *a), m = pln_type_n_vars(e, b);
  if (n == 0)
    return PLN_OK;
  size_t size = 2 * (size_t)n * sizeof(pln_type);
  pln_type *vars = pln_mem_new(e, size);
  if (!vars)
    return pln_nomem(e);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < n && status == PLN_OK; i++) {
    vars[i] = pln_type_var_at(e, *a, i);
    if (n == m)
      vars[n + i] = pln_type_var_at(e, b, i);
    else
      status = pln_unifier_hole(u, &vars[n + i]);
  }
  if (status == PLN_OK)
    status = pln_type_generic(e, *a, 0, a);
  if (status == PLN_OK)
    status = pln_type_substitute(e, *a, n, vars, vars + n, a);
  pln_mem_free(e, vars, size);
  return status;
}

static bool types_unify_trivially(const pln_engine *e, pln_type a, pln_type b) {
  pln_type_kind kind = pln_type_get_kind(e, a);
  if (kind != pln_type_get_kind(e, b) ||
      pln_type_n_parts(e, a) != pln_type_n_parts(e, b) ||
      pln_type_symbol(e, a) != pln_type_symbol(e, b) ||
      pln_type_n_constraints(e, a) != pln_type_n_constraints(e, b))
    return false;
  switch (kind) {
  case PLN_TYPE_VAR:
  case PLN_TYPE_OPAQUE:
  case PLN_TYPE_GLOBAL_VAR:
  case PLN_TYPE_PRIM: return false; /* equal types have equal ids */
  case PLN_TYPE_RELATION:
    return pln_type_attrs(e, a) == pln_type_attrs(e, b) &&
           pln_type_number(e, a) == pln_type_number(e, b);
  case PLN_TYPE_INCOMPLETE:
  case PLN_TYPE_TENSOR:
  case PLN_TYPE_TUPLE:
  case PLN_TYPE_FUNC:
  case PLN_TYPE_REF:
  case PLN_TYPE_CALL:
  case PLN_TYPE_SEQUENCE:
  case PLN_TYPE_OPTIONAL:
  case PLN_TYPE_MAP:
  case PLN_TYPE_SPARSE:
  case PLN_TYPE_HOLE:
  case PLN_TYPE_POINTER:
  case PLN_N_TYPE_KINDS: break;
  }
  return true;
}

/* Opens a frame for two composite types, or finds the result in the table. */
static pln_status unify_composite(pln_unifier *u, pln_type a, pln_type b) {
  if (!types_unify_trivially(u->engine, a, b))
    return refuse_unification(u, a, b);
  if (pln_type_n_vars(u->engine, a) < pln_type_n_vars(u->engine, b)) {
    pln_type swap = a;
    a = b;
    b = swap;
  }
  if (!u->pairs)
    PLN_TRY(pln_idmap_new(u->engine, &u->pairs));
  uint32_t known = pln_idmap_get(u->pairs, pair_key(a, b));
  if (known)
    return push_unified_part(u, known == BEGUN ? a : known - 1);
  PLN_TRY(pln_idmap_set(u->pairs, pair_key(a, b), BEGUN));
  PLN_TRY(push_unify_frame(u, a, b, PLN_NONE));
  return rename_vars(u, b, &u->frames[u->n_frames - 1].as);
}

static pln_status unify_pair(pln_unifier *u, pln_type a, pln_type b) {
  pln_engine *e = u->engine;
  if (a == b || !b)
    return push_unified_part(u, a);
  if (!a)
    return push_unified_part(u, b);
  if (is_hole(u, a))
    return unify_hole(u, a, b);
  if (is_hole(u, b))
    return unify_hole(u, b, a);
  if (pln_type_get_kind(e, a) != PLN_TYPE_TENSOR ||
      pln_type_get_kind(e, b) != PLN_TYPE_TENSOR)
    return unify_composite(u, a, b);
  pln_type both;
  PLN_TRY(unify_tensors(u, a, b, &both));
  return u->conflict ? refuse_unification(u, a, b) : push_unified_part(u, both);
}

/* Number of parts to unify: all but the type parameters. */
static uint32_t n_pairs(const pln_engine *e, pln_type type) {
  return pln_type_n_parts(e, type) + pln_type_n_constraints(e, type);
}

static pln_type pair_part(const pln_engine *e, pln_type type, uint32_t i) {
  uint32_t n = pln_type_n_parts(e, type);
  return i < n ? pln_type_part_at(e, type, i)
               : pln_type_constraint_at(e, type, i - n);
}

static pln_status make_both(pln_unifier *u, const pln_unify_frame *frame,
                            pln_type *out) {
  pln_engine *e = u->engine;
  const pln_type *parts = u->parts + frame->first;
  if (pln_type_get_kind(e, frame->a) != PLN_TYPE_FUNC)
    return pln_type_rebuild(e, frame->a, parts, out);
  uint32_t n = pln_type_n_parts(e, frame->b), n_all;
  const pln_type *all = pln_type_all_parts(e, frame->b, &n_all);
  return pln_type_func(e, n - 1, parts, parts[n - 1],
                       pln_type_n_vars(e, frame->b), all + n,
                       pln_type_n_constraints(e, frame->b), parts + n, out);
}

static pln_status close_frame(pln_unifier *u) {
  pln_unify_frame frame = u->frames[--u->n_frames];
  pln_type both = u->parts[frame.first];
  if (frame.hole != PLN_NONE) {
    uint32_t root = root_of(u, frame.hole);
    u->n_parts = frame.first;
    set_term(u, root, both);
    return push_unified_part(u, u->holes[root].type);
  }
  PLN_TRY(make_both(u, &frame, &both));
  u->n_parts = frame.first;
  PLN_TRY(pln_idmap_set(u->pairs, pair_key(frame.a, frame.b), both + 1));
  return push_unified_part(u, both);
}

static pln_status unify_next_frame(pln_unifier *u) {
  const pln_engine *e = u->engine;
  pln_unify_frame *top = &u->frames[u->n_frames - 1];
  bool of_hole = top->hole != PLN_NONE;
  uint32_t n = of_hole ? 1 : n_pairs(e, top->as), i = top->done;
  if (i == n)
    return close_frame(u);
  top->done++;
  if (of_hole)
    return unify_pair(u, top->a, top->b);
  return unify_pair(u, pair_part(e, top->as, i), pair_part(e, top->b, i));
}

/* After a conflict, closes the open pairs and separates holes whose terms
 * contradict each other. */
static pln_status give_up(pln_unifier *u) {
  for (uint32_t i = u->n_frames; i-- > 0;) {
    const pln_unify_frame *f = &u->frames[i];
    if (f->from != PLN_NONE)
      u->holes[f->from].link = f->from;
    if (f->hole == PLN_NONE)
      PLN_TRY(pln_idmap_set(u->pairs, pair_key(f->a, f->b), 0));
  }
  return PLN_OK;
}

pln_status pln_unify(pln_unifier *u, pln_type a, pln_type b, bool *fits) {
  u->n_frames = u->n_parts = 0;
  u->conflict = false;
  PLN_TRY(unify_pair(u, a, b));
  while (u->n_frames > 0 && !u->conflict)
    PLN_TRY(unify_next_frame(u));
  *fits = !u->conflict;
  return give_up(u);
}

pln_type pln_unifier_common_type(const pln_unifier *u) {
  return u->parts[0];
}

/* --------------------------------------------------------------- resolving */

static pln_status resolve_image(void *ud, pln_type type, pln_type *out,
                                bool *again) {
  pln_unifier *u = ud;
  if (!is_hole(u, type))
    return PLN_OK;
  *out = pln_unifier_find(u, type);
  *again = !is_hole(u, *out);
  if (*again)
    return PLN_OK;
  if (!u->unknown)
    u->unknown = *out;
  if (pln_type_is_own_hole(u->engine, *out))
    *out = 0;
  return PLN_OK;
}

/* Remembers the resolved term once nothing more can be learnt. */
static void resolve_leave(void *ud, pln_type type, pln_type image) {
  pln_unifier *u = ud;
  uint32_t row = is_hole(u, type) ? hole_row_of(u, type) : PLN_NONE;
  if (row != PLN_NONE &&
      !(pln_type_flags(u->engine, image) & PLN_TYPE_HAS_HOLE))
    u->holes[root_of(u, row)].term = image;
}

void pln_unifier_freeze(pln_unifier *u) {
  pln_type_substitution_reset(
      &u->resolving); /* images from before are outdated */
  u->settled = true;
}

static pln_status resolve_parts(pln_unifier *u, pln_type type, pln_type *out) {
  if (!u->settled)
    pln_type_substitution_reset(&u->resolving);
  return pln_type_substitution_apply(&u->resolving, type, out);
}

pln_status pln_unifier_resolve(pln_unifier *u, pln_type type, pln_type *out,
                               pln_type *unknown) {
  type = pln_unifier_find(u, type);
  u->unknown = 0;
  pln_status status = PLN_OK;
  *out = type;
  if (is_hole(u, type)) {
    u->unknown = type;
    *out = pln_type_is_own_hole(u->engine, type) ? 0 : type;
  } else if (pln_type_flags(u->engine, type) & PLN_TYPE_HAS_HOLE) {
    status = resolve_parts(u, type, out);
  }
  if (unknown)
    *unknown = u->unknown;
  return status;
}

/* ----------------------------------------------------------------- opening */

/* At most this many incomplete parts of one type get holes; the others stay
 * incomplete. */
enum { MAX_OPENED = 4096 };

typedef struct hole_opening {
  pln_unifier *u;
  pln_type_substitution map;
  uint32_t count;
  bool loosen;
} hole_opening;

static pln_status open_image(void *ud, pln_type type, pln_type *out,
                             bool *again) {
  hole_opening *o = ud;
  pln_engine *e = o->u->engine;
  (void)again;
  if (++o->count > MAX_OPENED)
    o->map.flags = 0;
  bool loose = o->loosen && pln_type_get_kind(e, type) == PLN_TYPE_TENSOR &&
               pln_type_flags(e, type) & PLN_TYPE_HAS_OPEN_TENSOR;
  return type && !loose ? PLN_OK : pln_unifier_hole(o->u, out);
}

static pln_status open_parts(pln_unifier *u, pln_type type, bool loosen,
                             pln_type *out) {
  uint8_t flags = PLN_TYPE_HAS_HOLE;
  if (loosen)
    flags |= PLN_TYPE_HAS_OPEN_TENSOR;
  hole_opening o = {.u = u, .loosen = loosen};
  o.map = (pln_type_substitution){.engine = u->engine,
                                  .flags = flags,
                                  .image = open_image,
                                  .ud = &o,
                                  .afresh = true};
  *out = type;
  if (!type)
    return pln_unifier_hole(u, out);
  if (!(pln_type_flags(u->engine, type) & flags))
    return PLN_OK;
  pln_status status = pln_type_substitution_apply(&o.map, type, out);
  pln_type_substitution_free(&o.map);
  return status;
}

pln_status pln_unifier_open(pln_unifier *u, pln_type type, pln_type *out) {
  return open_parts(u, type, false, out);
}

pln_status pln_unifier_resolve_relaxed(pln_unifier *u, pln_type type,
                                       pln_type *out) {
  return open_parts(u, type, true, out);
}

pln_status pln_unifier_instantiate(pln_unifier *u, pln_type function,
                                   pln_type *out) {
  pln_type plain;
  PLN_TRY(pln_type_generic(u->engine, function, 0, &plain));
  *out = function;
  return plain == function ? PLN_OK : rename_vars(u, plain, out);
}
