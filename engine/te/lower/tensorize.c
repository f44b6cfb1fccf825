/* tensorize.c: a stage whose loops from one inwards are an intrinsic.
 * Definition: TVM 0.14, src/te/operation/tensorize.cc.
 *
 * Called by provide.c. The region that the loops write and read is inferred;
 * the stage's expression over that region has to be the intrinsic's; then the
 * intrinsic's statements stand in the place of the loops, with its Buffers
 * bound to the regions. */

#include "te/te.h"

#include <stdio.h>

#define MOST_TEXT 400

typedef struct region {
  pln_term min, extent;
} region;

/* A tensor that the stage reads, and what the loops read of it. */
typedef struct read {
  uint32_t tensor, rank;
  pln_interval *dims;
  region *at;
  pln_term input; /* the intrinsic's Buffer for it */
} read;

typedef struct tensorizer {
  pln_te_state *s;
  uint32_t stage, at; /* the tensorized leaf */
  const pln_te_intrin *intrin;
  region *out, *reduced; /* by axis, by reduction axis */
  read *reads;
  uint32_t n_reads, n_inputs; /* n_inputs: of the intrinsic, as it reads them */
  pln_term *inputs;
  pln_te_list vars; /* the stage's axes, and */
  pln_interval *sets;
  pln_te_list from, to; /* from the stage's expression to the intrinsic's */
  pln_te_list axes;     /* the intrinsic's reduction axes: IterVars */
} tensorizer;

/* ----------------------------------------------------------------- messages */

static pln_status refuse(const tensorizer *z, const char *format, ...)
    PLN_PRINTF(2, 3);

static pln_status refuse(const tensorizer *z, const char *format, ...) {
  pln_te_state *s = z->s;
  char text[3 * MOST_TEXT];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return pln_diag_error(
      s->engine, PLN_ERR_ARGUMENT, NULL,
      "schedule: tensorize of stage '%s' at axis '%s' with "
      "'%s': %s",
      pln_te_stage_name(s, z->stage),
      pln_te_axis_name(s, s->stages[z->stage].leaves.items[z->at]),
      pln_symbol_text(s->engine, z->intrin->name).data, text);
}

/* A printer needs a sealed graph: the state's builder goes on. */
static pln_status seal_term(pln_te_state *s, pln_builder *b, pln_term t,
                            pln_graph **out) {
  pln_ref ref;
  PLN_TRY(pln_analyzer_export(s->a, b, t, &ref));
  return pln_builder_seal(b, ref, out);
}

static pln_status write_term(pln_te_state *s, pln_buffer *to, pln_term t) {
  pln_builder *b;
  pln_graph *graph = NULL;
  PLN_TRY(pln_builder_new(s->engine, &b));
  pln_status status = seal_term(s, b, t, &graph);
  if (status == PLN_OK)
    status = pln_print_node(graph, pln_graph_root(graph), NULL,
                            pln_buffer_write, to);
  pln_graph_release(graph);
  pln_builder_free(b);
  return status;
}

/* An expression as text, cut at MOST_TEXT characters. */
static void print_term(pln_te_state *s, pln_term t, char text[MOST_TEXT]) {
  pln_buffer b;
  pln_buffer_init(&b, s->engine);
  if (write_term(s, &b, t) != PLN_OK)
    b.size = 0;
  snprintf(text, MOST_TEXT, "%.*s%s", (int)(b.size < 380 ? b.size : 380),
           b.size ? (const char *)b.data : "?", b.size > 380 ? "..." : "");
  pln_buffer_free(&b);
}

/* ------------------------------------------------------------------ regions */

static pln_interval range_of(pln_te_state *s, const pln_te_axis *x) {
  if (pln_is_value(s->a, x->count, 1))
    return (pln_interval){x->low, x->low};
  return (pln_interval){
      x->low, pln_add_const(s->a, pln_add(s->a, x->low, x->count), -1)};
}

static bool has_thread(const pln_te_state *s, uint32_t axis) {
  return s->axes[axis].bind != PLN_NONE || s->axes[axis].tag;
}

/* Loops outside of the region are at a point, those inside run. */
static pln_status set_loop_values(tensorizer *z, uint32_t i) {
  pln_te_state *s = z->s;
  uint32_t axis = s->stages[z->stage].leaves.items[i];
  pln_te_axis *x = &s->axes[axis];
  if (!x->count)
    return PLN_OK;
  if (i >= z->at && has_thread(s, axis))
    return refuse(z, "do not allow thread in tensorize scope: '%s'",
                  pln_te_axis_name(s, axis));
  if (i > z->at && x->loop == PLN_ITER_TENSORIZED)
    return refuse(z, "do not allow two tensorized point: '%s' too",
                  pln_te_axis_name(s, axis));
  x->set = range_of(s, x);
  if (i < z->at && !pln_is_value(s->a, x->count, 1))
    x->set = (pln_interval){x->var, x->var};
  x->set_at = s->stamp;
  return PLN_OK;
}

static pln_status set_leaves(tensorizer *z) {
  uint32_t n = z->s->stages[z->stage].leaves.n;
  pln_te_begin_walk(z->s);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(set_loop_values(z, i));
  return pln_te_pass_up_domain(z->s, z->stage);
}

static region region_of(pln_te_state *s, pln_interval set) {
  pln_term extent = pln_add_const(s->a, pln_sub(s->a, set.max, set.min), 1);
  return (region){pln_simplify_term(s->a, set.min, 2),
                  pln_simplify_term(s->a, extent, 2)};
}

static pln_status set_root(tensorizer *z, uint32_t axis, region *out) {
  pln_te_state *s = z->s;
  const pln_te_axis *x = &s->axes[axis];
  pln_interval set = x->set;
  if (x->set_at != s->stamp || pln_is_infinite(set.min) ||
      pln_is_infinite(set.max))
    set = (pln_interval){
        x->min, pln_add_const(s->a, pln_add(s->a, x->min, x->extent), -1)};
  z->sets[z->vars.n] = set;
  *out = region_of(s, set);
  return pln_te_push(s, &z->vars, x->var);
}

static pln_status infer_axes(tensorizer *z) {
  pln_te_state *s = z->s;
  pln_te_list axis = s->stages[z->stage].axis;
  pln_te_list reduce = s->stages[z->stage].reduce;
  size_t n = axis.n + reduce.n + 1u;
  z->sets = pln_arena_new(&s->arena, n * sizeof *z->sets);
  z->out = pln_arena_new(&s->arena, n * sizeof *z->out);
  if (!z->sets || !z->out)
    return pln_nomem(s->engine);
  z->reduced = z->out + axis.n;
  PLN_TRY(set_leaves(z));
  for (uint32_t i = 0; i < axis.n; i++)
    PLN_TRY(set_root(z, axis.items[i], &z->out[i]));
  for (uint32_t i = 0; i < reduce.n; i++)
    PLN_TRY(set_root(z, reduce.items[i], &z->reduced[i]));
  return s->a->status;
}

/* -------------------------------------------------------------------- reads */

static pln_status new_read(tensorizer *z, uint32_t tensor, read **out) {
  pln_te_state *s = z->s;
  read *r = *out = &z->reads[z->n_reads++];
  uint32_t rank = pln_te_rank(s, tensor);
  *r = (read){.tensor = tensor, .rank = rank};
  r->dims = pln_arena_new(&s->arena, (rank + 1) * sizeof *r->dims);
  r->at = pln_arena_new(&s->arena, (rank + 1) * sizeof *r->at);
  if (!r->dims || !r->at)
    return pln_nomem(s->engine);
  memset(r->dims, 0, (rank + 1) * sizeof *r->dims);
  return PLN_OK;
}

static pln_status note_read(tensorizer *z, uint32_t tensor, read **out) {
  for (uint32_t i = 0; i < z->n_reads; i++)
    if (z->reads[i].tensor == tensor) {
      *out = &z->reads[i];
      return PLN_OK;
    }
  if (z->n_reads == z->intrin->n_inputs)
    return refuse(z,
                  "input size mismatch: the intrinsic reads %u tensors, the "
                  "stage more",
                  z->intrin->n_inputs);
  return new_read(z, tensor, out);
}

static pln_status add_read(void *ud, pln_te_state *s, pln_term load) {
  tensorizer *z = ud;
  uint32_t tensor = pln_te_load_tensor(s, load);
  read *r = NULL;
  if (tensor == PLN_NONE)
    return PLN_OK;
  PLN_TRY(note_read(z, tensor, &r));
  for (uint32_t i = 0; i < r->rank; i++) {
    pln_interval set =
        pln_interval_of(s->a, pln_term_operand(s->a, load, 1 + i), z->vars.n,
                        z->vars.items, z->sets, false);
    set = pln_te_clamp(s, set, pln_te_dim(s, tensor, i));
    pln_te_unite(s, &r->dims[i], set);
  }
  return s->a->status;
}

/* The tensors that the intrinsic reads, in the order of its expression. */
static pln_status add_input(void *ud, pln_te_state *s, pln_term load) {
  tensorizer *z = ud;
  pln_term buffer = pln_term_operand(s->a, load, 0);
  for (uint32_t i = 0; i < z->n_inputs; i++)
    if (z->inputs[i] == buffer)
      return PLN_OK;
  if (z->n_inputs < z->intrin->n_inputs)
    z->inputs[z->n_inputs++] = buffer;
  return PLN_OK;
}

static void print_regions(pln_te_state *s, uint32_t n, const region *at,
                          char text[MOST_TEXT]) {
  char one[MOST_TEXT];
  size_t size = 0;
  text[0] = 0;
  for (uint32_t i = 0; i < n && size + 4 < MOST_TEXT; i++) {
    print_term(s, at[i].extent, one);
    int k = snprintf(text + size, MOST_TEXT - size, "%s%s", i ? ", " : "", one);
    size += k > 0 ? (size_t)k : 0;
  }
}

static pln_status refuse_region(const tensorizer *z, const read *r) {
  pln_te_state *s = z->s;
  char shape[MOST_TEXT], given[MOST_TEXT];
  uint32_t rank = pln_at(s->a, r->input)->count;
  region *dims = pln_arena_new(&s->arena, (rank + 1) * sizeof *dims);
  if (!dims)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < rank; i++)
    dims[i].extent = pln_term_operand(s->a, r->input, 1 + i);
  print_regions(s, rank, dims, shape);
  print_regions(s, r->rank, r->at, given);
  return refuse(z,
                "input dimension mismatch with tensor intrin: of '%s' expected "
                "shape=(%s), given region=(%s)",
                pln_te_stage_name(s, s->tensors[r->tensor].stage), shape,
                given);
}

/* Whether an extent is that of the intrinsic, or a variable of it. */
static bool same_extent(const tensorizer *z, pln_term given, pln_term wanted) {
  pln_te_state *s = z->s;
  if (!pln_is_const(s->a, wanted))
    return true;
  return pln_proves_equal(s->a, given, wanted);
}

/* [1, n, m] is read where the intrinsic reads [n, m]. */
static pln_status check_read(const tensorizer *z, const read *r) {
  pln_te_state *s = z->s;
  uint32_t rank = pln_at(s->a, r->input)->count;
  if (r->rank < rank)
    return refuse_region(z, r);
  uint32_t start = r->rank - rank;
  for (uint32_t i = 0; i < r->rank; i++) {
    bool same =
        i < start
            ? pln_is_value(s->a, r->at[i].extent, 1)
            : same_extent(z, r->at[i].extent,
                          pln_term_operand(s->a, r->input, 1 + i - start));
    if (!same)
      return refuse_region(z, r);
  }
  return PLN_OK;
}

static pln_status finish_read(tensorizer *z, uint32_t i) {
  pln_te_state *s = z->s;
  read *r = &z->reads[i];
  for (uint32_t k = 0; k < r->rank; k++) {
    if (pln_is_infinite(r->dims[k].min) || pln_is_infinite(r->dims[k].max))
      return refuse(z,
                    "cannot deduce region of tensorized scope for input '%s'",
                    pln_te_stage_name(s, s->tensors[r->tensor].stage));
    r->at[k] = region_of(s, r->dims[k]);
  }
  PLN_TRY(s->a->status);
  r->input = z->inputs[i];
  return check_read(z, r);
}

/* Whatever the expression reads, the intrinsic gets the parts that its call
 * names. */
static pln_status infer_call(tensorizer *z) {
  pln_te_state *s = z->s;
  const pln_te_list *regions = &s->stages[z->stage].regions;
  z->n_inputs = z->intrin->n_inputs;
  for (uint32_t i = 0; i < z->n_inputs; i++) {
    pln_term first = regions->items[2 * i], last = regions->items[2 * i + 1];
    read *r;
    z->inputs[i] = z->intrin->inputs[i];
    PLN_TRY(new_read(z, pln_te_load_tensor(s, first), &r));
    for (uint32_t k = 0; k < r->rank; k++)
      r->dims[k] = pln_te_region_dim(s, first, last, k, &z->vars, z->sets);
    PLN_TRY(finish_read(z, i));
  }
  return PLN_OK;
}

static pln_status infer_reads(tensorizer *z) {
  pln_te_state *s = z->s;
  const pln_te_intrin *in = z->intrin;
  z->reads = pln_arena_new(&s->arena, (in->n_inputs + 1) * sizeof *z->reads);
  z->inputs = pln_arena_new(&s->arena, (in->n_inputs + 1) * sizeof *z->inputs);
  if (!z->reads || !z->inputs)
    return pln_nomem(s->engine);
  if (s->stages[z->stage].call)
    return infer_call(z);
  for (uint32_t i = 0; i < s->stages[z->stage].body.n; i++)
    PLN_TRY(
        pln_te_each_load(s, s->stages[z->stage].body.items[i], add_read, z));
  for (uint32_t i = 0; i < in->n_outputs; i++)
    PLN_TRY(pln_te_each_load(s, in->bodies[i], add_input, z));
  if (z->n_reads != in->n_inputs || z->n_inputs != in->n_inputs)
    return refuse(z,
                  "input size mismatch: the intrinsic reads %u tensors, the "
                  "stage %u",
                  in->n_inputs, z->n_reads);
  for (uint32_t i = 0; i < z->n_reads; i++)
    PLN_TRY(finish_read(z, i));
  return PLN_OK;
}

/* ------------------------------------------------------------------ matching
 */

static pln_status map_to(tensorizer *z, pln_term from, pln_term to) {
  if (!to)
    return z->s->a->status;
  PLN_TRY(pln_te_push(z->s, &z->from, from));
  return pln_te_push(z->s, &z->to, to);
}

/* Axes correspond from the last one on; those before them have one round. */
static pln_status map_axes(tensorizer *z, const pln_te_list *axes,
                           const region *at, uint32_t n, const pln_term *wanted,
                           const char *what) {
  pln_te_state *s = z->s;
  uint32_t start = axes->n - n;
  for (uint32_t i = 0; i < axes->n; i++) {
    pln_term var = s->axes[axes->items[i]].var, target = at[i].min;
    pln_term extent = pln_const_like(s->a, at[i].extent, 1);
    if (i >= start) {
      pln_term iter = wanted[i - start];
      pln_term range = pln_term_operand(s->a, iter, 1);
      extent = pln_term_operand(s->a, range, 1);
      target = pln_add(s->a, pln_term_operand(s->a, iter, 0), at[i].min);
      PLN_TRY(pln_analyzer_bind_range(s->a, pln_term_operand(s->a, iter, 0),
                                      pln_term_operand(s->a, range, 0), extent,
                                      true));
    }
    if (!same_extent(z, at[i].extent, extent))
      return refuse(z,
                    "%s mismatch with tensor intrin: axis '%s' has another "
                    "extent in the region; intrin-dim=%u, tensorize-dim=%u",
                    what, pln_te_axis_name(s, axes->items[i]), n, axes->n);
    PLN_TRY(map_to(z, var, target));
  }
  return PLN_OK;
}

static pln_status map_outputs(tensorizer *z) {
  pln_te_list axis = z->s->stages[z->stage].axis;
  if (axis.n < z->intrin->n_axis)
    return refuse(z,
                  "output mismatch with tensor intrin: intrin-dim=%u, "
                  "tensorize-dim=%u",
                  z->intrin->n_axis, axis.n);
  return map_axes(z, &axis, z->out, z->intrin->n_axis, z->intrin->axis,
                  "output");
}

static bool is_reduction(const pln_te_state *s, pln_term t) {
  return pln_term_kind(s->a, t) == PLN_REDUCE;
}

static pln_status map_reduction(tensorizer *z) {
  pln_te_state *s = z->s;
  pln_te_list reduce = s->stages[z->stage].reduce;
  pln_term first = z->intrin->bodies[0];
  uint32_t n = 0;
  if (is_reduction(s, first)) {
    pln_te_reduce r = pln_te_reduce_of(s, first);
    for (n = 0; n < r.n_axes; n++)
      PLN_TRY(
          pln_te_push(s, &z->axes, pln_term_operand(s->a, first, r.axis + n)));
  }
  if (reduce.n < n)
    return refuse(z,
                  "reduction dimension mismatch with tensor intrin: "
                  "intrin-dim=%u, tensorize-dim=%u",
                  n, reduce.n);
  return map_axes(z, &reduce, z->reduced, n, z->axes.items, "reduction");
}

static read *read_of(tensorizer *z, uint32_t tensor) {
  for (uint32_t i = 0; i < z->n_reads; i++)
    if (z->reads[i].tensor == tensor)
      return &z->reads[i];
  return NULL;
}

/* A load of the stage as one of the intrinsic's input, relative to the region.
 * Loads in its indices come before it. */
static pln_status map_load(void *ud, pln_te_state *s, pln_term load) {
  tensorizer *z = ud;
  uint32_t tensor = pln_te_load_tensor(s, load);
  read *r = tensor == PLN_NONE ? NULL : read_of(z, tensor);
  if (!r)
    return PLN_OK;
  uint32_t rank = pln_at(s->a, r->input)->count, start = r->rank - rank;
  pln_term *indices = pln_arena_new(&s->arena, (rank + 1) * sizeof *indices);
  if (!indices)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < rank; i++) {
    pln_term index =
        pln_te_substitute(s, pln_term_operand(s->a, load, 1 + start + i),
                          z->from.n, z->from.items, z->to.items, false);
    indices[i] = pln_sub(s->a, index, r->at[start + i].min);
  }
  return map_to(z, load, pln_te_load_buffer(s, r->input, indices));
}

static pln_term canonical(tensorizer *z, pln_term t) {
  return pln_simplify_term(z->s->a, t, 2);
}

static pln_term mapped(tensorizer *z, pln_term t) {
  return canonical(z, pln_te_substitute(z->s, t, z->from.n, z->from.items,
                                        z->to.items, false));
}

/* Combiners are equal but for the names of their arguments. */
static bool same_combiner(tensorizer *z, pln_term x, pln_term y) {
  pln_te_state *s = z->s;
  uint32_t n = pln_at(s->a, x)->n / 4;
  if (x == y || pln_at(s->a, y)->n / 4 != n)
    return x == y;
  pln_term *from = pln_arena_new(&s->arena, 4 * (n + 1) * sizeof *from);
  if (!from)
    return false;
  pln_term *to = from + 2 * n;
  for (uint32_t i = 0; i < 2 * n; i++) {
    from[i] = pln_term_operand(s->a, x, i);
    to[i] = pln_term_operand(s->a, y, i);
  }
  for (uint32_t i = 2 * n; i < 4 * n; i++) {
    pln_term image = pln_te_substitute(s, pln_term_operand(s->a, x, i), 2 * n,
                                       from, to, false);
    if (canonical(z, image) != canonical(z, pln_term_operand(s->a, y, i)))
      return false;
  }
  return true;
}

static bool same_reduction(tensorizer *z, pln_term x, pln_term y) {
  pln_te_state *s = z->s;
  pln_te_reduce p = pln_te_reduce_of(s, x), q = pln_te_reduce_of(s, y);
  if (p.n_sources != q.n_sources || p.n_inits != q.n_inits ||
      p.index != q.index || !same_combiner(z, p.combiner, q.combiner) ||
      mapped(z, p.condition) != canonical(z, q.condition))
    return false;
  for (uint32_t i = 0; i < p.n_sources + p.n_inits; i++)
    if (mapped(z, pln_term_operand(s->a, x, p.source + i)) !=
        canonical(z, pln_term_operand(s->a, y, q.source + i)))
      return false;
  return true;
}

static bool same_value(tensorizer *z, pln_term x, pln_term y) {
  if (is_reduction(z->s, x) != is_reduction(z->s, y))
    return false;
  return is_reduction(z->s, x) ? same_reduction(z, x, y)
                               : mapped(z, x) == canonical(z, y);
}

static pln_status refuse_body(tensorizer *z, pln_term x, pln_term y) {
  char provided[MOST_TEXT], declared[MOST_TEXT];
  print_term(z->s, is_reduction(z->s, x) ? x : mapped(z, x), provided);
  print_term(z->s, y, declared);
  PLN_TRY(z->s->a->status);
  return refuse(z,
                "failed to match the compute with TensorIntrin's declaration "
                "provided= %s, intrin= %s",
                provided, declared);
}

static pln_status match_body(tensorizer *z, uint32_t i) {
  pln_te_state *s = z->s;
  pln_term x = s->stages[z->stage].body.items[i], y = z->intrin->bodies[i];
  if (pln_te_dtype(s, x) != pln_te_dtype(s, y))
    return refuse(z,
                  "failed to match the data type with TensorIntrin's "
                  "declaration provided=%s, intrin=%s",
                  pln_dtype_name(pln_te_dtype(s, x)),
                  pln_dtype_name(pln_te_dtype(s, y)));
  PLN_TRY(pln_te_each_load(s, x, map_load, z));
  bool same = same_value(z, x, y);
  PLN_TRY(s->a->status);
  return same ? PLN_OK : refuse_body(z, x, y);
}

static pln_status match(tensorizer *z) {
  if (z->s->stages[z->stage].body.n != z->intrin->n_outputs)
    return refuse(z,
                  "body size mismatch: the intrinsic has %u outputs, the "
                  "stage %u",
                  z->intrin->n_outputs, z->s->stages[z->stage].body.n);
  PLN_TRY(map_outputs(z));
  PLN_TRY(map_reduction(z));
  if (z->s->stages[z->stage].call)
    return PLN_OK; /* its expression is the intrinsic's */
  for (uint32_t i = 0; i < z->intrin->n_outputs; i++)
    PLN_TRY(match_body(z, i));
  return PLN_OK;
}

/* -------------------------------------------------------------------- guards
 */

static pln_status check_guards(tensorizer *z, const pln_te_nest *nest) {
  pln_te_state *s = z->s;
  char text[MOST_TEXT];
  for (uint32_t i = 0; i < nest->guards.n; i++)
    for (uint32_t k = z->at; k < nest->vars.n; k++) {
      if (!nest->vars.items[k] ||
          !pln_term_uses(s->a, nest->guards.items[i], nest->vars.items[k]))
        continue;
      print_term(s, nest->guards.items[i], text);
      return refuse(z,
                    "tensorize failed, split condition %s relies on var "
                    "defined inside tensorize scope",
                    text);
    }
  return s->a->status;
}

static pln_status check_users(tensorizer *z) {
  pln_te_state *s = z->s;
  const pln_te_stage *g = &s->stages[z->stage];
  for (uint32_t i = 0; i < g->users.n; i++) {
    const pln_te_stage *spec =
        &s->stages[pln_te_attach_spec(s, g->users.items[i])];
    if (pln_te_index(&g->leaves, spec->attach_axis) >= z->at)
      return refuse(z,
                    "did not find the attachment point of stage '%s', which "
                    "is inside of the intrinsic",
                    pln_te_stage_name(s, g->users.items[i]));
  }
  return PLN_OK;
}

/* ---------------------------------------------------------------- statements
 */

static pln_status bind(tensorizer *z, const pln_te_nest *nest, pln_term buffer,
                       uint32_t tensor, uint32_t n, const region *at,
                       pln_ref *stmt) {
  pln_te_state *s = z->s;
  pln_term *bounds = pln_arena_new(&s->arena, (2 * n + 1) * sizeof *bounds);
  pln_term both[2] = {buffer, pln_te_buffer(s, tensor)};
  if (!bounds)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < n; i++) {
    bounds[2 * i] = pln_te_in_program(s, nest, at[i].min);
    bounds[2 * i + 1] = pln_te_in_program(s, nest, at[i].extent);
  }
  return pln_te_build_attr(s, pln_te_array(s, 2, both), "buffer_bind_scope",
                           pln_te_call(s, "tvm_tuple", 2 * n, bounds), *stmt,
                           stmt);
}

static pln_status bind_outputs(tensorizer *z, const pln_te_nest *nest,
                               pln_ref *stmt) {
  const pln_te_intrin *in = z->intrin;
  uint32_t first = z->s->stages[z->stage].first_tensor;
  uint32_t rank = z->s->stages[z->stage].axis.n;
  for (uint32_t i = in->n_outputs; i-- > 0;)
    PLN_TRY(bind(z, nest, in->buffers[in->n_inputs + i], first + i, rank,
                 z->out, stmt));
  return PLN_OK;
}

/* The intrinsic's inputs are listed in the order of its declaration. */
static pln_status bind_inputs(tensorizer *z, const pln_te_nest *nest,
                              pln_ref *stmt) {
  const pln_te_intrin *in = z->intrin;
  for (uint32_t i = in->n_inputs; i-- > 0;)
    for (uint32_t k = 0; k < z->n_reads; k++)
      if (z->reads[k].input == in->inputs[i])
        PLN_TRY(bind(z, nest, in->buffers[i], z->reads[k].tensor,
                     z->reads[k].rank, z->reads[k].at, stmt));
  return PLN_OK;
}

/* A variable of the intrinsic with its value. */
static pln_status let_param(tensorizer *z, const pln_te_nest *nest,
                            pln_term param, pln_term value, pln_ref *stmt) {
  pln_te_state *s = z->s;
  value = pln_te_in_program(s, nest, value);
  if (value == param)
    return s->a->status;
  value = pln_fold_cast(s->a, pln_te_dtype(s, param), value);
  pln_te_stmt let = {.kind = PLN_LET_STMT,
                     .n = 1,
                     .terms = &value,
                     .param = param,
                     .body = *stmt};
  return pln_te_build(s, &let, stmt);
}

/* A variable that is the extent of a reduction axis of the intrinsic. */
static pln_status bind_extents(tensorizer *z, const pln_te_nest *nest,
                               pln_ref *stmt) {
  pln_te_state *s = z->s;
  uint32_t start = s->stages[z->stage].reduce.n - z->axes.n;
  for (uint32_t i = z->axes.n; i-- > 0;) {
    pln_term range = pln_term_operand(s->a, z->axes.items[i], 1);
    pln_term extent = pln_term_operand(s->a, range, 1);
    if (pln_term_kind(s->a, extent) == PLN_VAR)
      PLN_TRY(let_param(z, nest, extent, z->reduced[start + i].extent, stmt));
  }
  return PLN_OK;
}

/* The values of scalar parameters, at the point of the loops outside. */
static pln_status bind_scalars(tensorizer *z, const pln_te_nest *nest,
                               pln_ref *stmt) {
  pln_te_state *s = z->s;
  pln_te_list scalars = s->stages[z->stage].scalars;
  pln_term *at = pln_arena_new(&s->arena, (z->vars.n + 1) * sizeof *at);
  if (!at)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < z->vars.n; i++)
    at[i] = z->sets[i].min;
  for (uint32_t i = scalars.n; i > 0; i -= 2) {
    pln_term param = scalars.items[i - 2];
    pln_term value = pln_te_substitute(s, scalars.items[i - 1], z->vars.n,
                                       z->vars.items, at, false);
    PLN_TRY(let_param(z, nest, param, value, stmt));
  }
  return PLN_OK;
}

static pln_status statement(tensorizer *z, const pln_graph *graph,
                            const char *what, pln_ref *out) {
  if (!graph)
    return refuse(z, "%s is not defined", what);
  return pln_build_import(z->s->b, graph, pln_graph_root(graph), out);
}

static pln_status bind_all(tensorizer *z, const pln_te_nest *nest,
                           pln_ref *stmt) {
  PLN_TRY(bind_outputs(z, nest, stmt));
  PLN_TRY(bind_inputs(z, nest, stmt));
  PLN_TRY(bind_extents(z, nest, stmt));
  return bind_scalars(z, nest, stmt);
}

/* The loops outside of the region, around what stands for it. */
static pln_status wrap_outer(tensorizer *z, const pln_te_nest *nest,
                             uint32_t init_at, pln_ref init, pln_ref *stmt) {
  pln_te_state *s = z->s;
  pln_te_list leaves = s->stages[z->stage].leaves;
  for (uint32_t i = z->at; i-- > 0;) {
    if (i + 1 == init_at)
      PLN_TRY(pln_te_build_seq(s, init, *stmt, stmt));
    PLN_TRY(pln_te_attach_users(s, z->stage, leaves.items[i], stmt));
    PLN_TRY(pln_te_nest_wrap(s, nest, i, stmt));
  }
  if (init_at == 0)
    PLN_TRY(pln_te_build_seq(s, init, *stmt, stmt));
  s->stages[z->stage].stmt = *stmt;
  return PLN_OK;
}

/* The reduction, if there is one, is inside. */
static pln_status provide_whole(tensorizer *z, const pln_te_nest *nest) {
  pln_ref stmt;
  PLN_TRY(statement(z, z->intrin->body, "the normal store op", &stmt));
  PLN_TRY(bind_all(z, nest, &stmt));
  PLN_TRY(pln_te_nest_guard(z->s, nest, &stmt));
  return wrap_outer(z, nest, PLN_NONE, PLN_NONE, &stmt);
}

/* --------------------------------------------------------- split reductions */

static pln_status provide_reset(tensorizer *z, const pln_te_nest *main,
                                uint32_t first, const pln_te_list *skip,
                                pln_ref *out) {
  pln_te_nest nest = {.first = first, .skip = skip};
  PLN_TRY(pln_te_init_nest(z->s, main, &nest));
  PLN_TRY(check_guards(z, &nest));
  PLN_TRY(statement(z, z->intrin->reset, "the reduction init op", out));
  PLN_TRY(bind_outputs(z, &nest, out));
  PLN_TRY(pln_te_nest_guard(z->s, &nest, out));
  for (uint32_t i = z->at; i-- > first;)
    PLN_TRY(pln_te_nest_wrap(z->s, &nest, i, out));
  return PLN_OK;
}

static pln_status check_reset(tensorizer *z, const pln_te_nest *nest,
                              pln_term var) {
  pln_te_state *s = z->s;
  char text[MOST_TEXT];
  for (uint32_t k = 0; k < nest->guards.n; k++) {
    if (!pln_term_uses(s->a, nest->guards.items[k], var))
      continue;
    print_term(s, nest->guards.items[k], text);
    return refuse(z,
                  "tensorize update transform failed, the condition %s has a "
                  "conflict with the reset condition",
                  text);
  }
  return s->a->status;
}

static void both(pln_te_state *s, pln_term *condition, pln_term x, pln_term y) {
  pln_term equal = pln_te_likely(s, pln_fold(s->a, PLN_PRIM_EQ, x, y));
  *condition = pln_fold(s->a, PLN_PRIM_AND, *condition, equal);
}

/* Where a loop is made of dimensions and reduction axes: the region begins
 * where the reduction does. */
static void begins_reduction(tensorizer *z, const pln_te_nest *nest,
                             pln_term *out) {
  pln_te_state *s = z->s;
  const pln_te_list *reduce = &s->stages[z->stage].reduce;
  *out = pln_term_bool(s->a, true);
  for (uint32_t i = 0; i < reduce->n; i++)
    both(s, out, pln_te_in_program(s, nest, z->reduced[i].min),
         s->axes[reduce->items[i]].min);
}

/* True in the first round of all reduction loops around the region. */
static pln_status first_round(tensorizer *z, const pln_te_nest *nest,
                              pln_term *out) {
  pln_te_state *s = z->s;
  bool mixed = false;
  *out = pln_term_bool(s->a, true);
  pln_te_mark_origins(z->s, z->stage);
  for (uint32_t i = 0; i < z->at; i++) {
    uint8_t mask = pln_te_mask_of(s, s->stages[z->stage].leaves.items[i]);
    pln_term var = nest->vars.items[i];
    if (!(mask & PLN_TE_OF_REDUCTION) || !var)
      continue;
    PLN_TRY(check_reset(z, nest, var));
    mixed |= mask != PLN_TE_OF_REDUCTION;
    both(s, out, var, pln_const_like(s->a, var, 0));
  }
  if (mixed)
    begins_reduction(z, nest, out);
  return s->a->status;
}

/* Without a reset, the first round is the body. */
static pln_status body_or_update(tensorizer *z, const pln_te_nest *nest,
                                 pln_ref *out) {
  pln_te_state *s = z->s;
  pln_term condition;
  pln_ref first, later, test;
  PLN_TRY(first_round(z, nest, &condition));
  PLN_TRY(statement(z, z->intrin->body, "the normal body op", &first));
  PLN_TRY(statement(z, z->intrin->update, "the reduction update op", &later));
  PLN_TRY(pln_analyzer_export(s->a, s->b, condition, &test));
  pln_prim spec = {.kind = PLN_IF_THEN_ELSE, .n = 1, .operands = &test};
  pln_body bodies[2] = {{.stmt = first}, {.stmt = later}};
  return pln_build_floating_stmt(s->b, &spec, 2, bodies, out);
}

static pln_status provide_split(tensorizer *z, const pln_te_nest *nest,
                                uint32_t first, const pln_te_list *skip) {
  pln_ref stmt, reset = PLN_NONE;
  bool has_reset = z->intrin->reset != NULL;
  if (has_reset) {
    PLN_TRY(provide_reset(z, nest, first, skip, &reset));
    PLN_TRY(statement(z, z->intrin->update, "the reduction update op", &stmt));
  } else {
    PLN_TRY(body_or_update(z, nest, &stmt));
  }
  PLN_TRY(bind_all(z, nest, &stmt));
  PLN_TRY(pln_te_nest_guard(z->s, nest, &stmt));
  return wrap_outer(z, nest, has_reset ? first : PLN_NONE, reset, &stmt);
}

/* ---------------------------------------------------------------- entry point
 */

uint32_t pln_te_tensorized_loop(const pln_te_state *s, uint32_t stage) {
  const pln_te_list *leaves = &s->stages[stage].leaves;
  if (s->stages[stage].call)
    return pln_te_index(leaves, s->stages[stage].call - 1);
  for (uint32_t i = 0; i < leaves->n; i++)
    if (s->axes[leaves->items[i]].loop == PLN_ITER_TENSORIZED)
      return i;
  return PLN_NONE;
}

pln_status pln_te_provide_tensorized(pln_te_state *s, uint32_t at,
                                     pln_te_nest *nest) {
  tensorizer z = {.s = s, .stage = nest->stage, .at = at};
  pln_te_list skip = {0};
  uint32_t first = s->stages[z.stage].leaves.n;
  z.intrin = s->axes[s->stages[z.stage].leaves.items[at]].intrin;
  PLN_TRY(infer_axes(&z));
  PLN_TRY(infer_reads(&z));
  PLN_TRY(match(&z));
  PLN_TRY(check_users(&z));
  if (is_reduction(s, s->stages[z.stage].body.items[0]))
    PLN_TRY(pln_te_find_init(s, z.stage, &first, &skip));
  PLN_TRY(pln_te_main_nest(s, nest));
  PLN_TRY(check_guards(&z, nest));
  return at <= first ? provide_whole(&z, nest)
                     : provide_split(&z, nest, first, &skip);
}
