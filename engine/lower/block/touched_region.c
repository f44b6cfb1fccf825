/* touched_region.c: finds the part of each allocated Buffer that is touched
 * (touched_region.h).
 *
 * Called by compact_buffer_allocation.c. The indices of each access are
 * evaluated as intervals while the loops between the allocation and the access
 * run over their ranges; conditions on one of these variables narrow its range.
 * The union over all accesses is one interval in each dimension.
 *
 * Semantics: BufferAccessRegionCollector of TVM's compact_buffer_region.cc, by
 * intervals. Accesses by pointer count as accesses of the whole Buffer. */

#include "lower/block/touched_region.h"

typedef struct region_finder {
  pln_touched_regions *r;
  const pln_graph *g;
  pln_analyzer *a;
  pln_scope *scope_of; /* by node */
  /* The variables of the loops around the present access, outermost first. */
  pln_term *vars;
  pln_interval *sets;
  uint32_t n, cap_vars, cap_sets;
  pln_scope *chain; /* the scopes around it, innermost first */
  uint32_t n_chain, cap_chain;
} region_finder;

/* ------------------------------------------------------------------ buffers
 */

static pln_status add_buffer(region_finder *x, pln_ref buffer, pln_ref stmt,
                             pln_scope scope) {
  pln_touched_regions *r = x->r;
  pln_ref data = pln_operand(x->g, buffer, 0);
  uint32_t rank = x->g->nodes[buffer].results;
  pln_interval *region =
      pln_mem_zeroed(x->g->engine, (rank + 1) * sizeof *region);
  if (!region)
    return pln_nomem(x->g->engine);
  pln_status status = pln_mem_grow(x->g->engine, (void **)&r->buffers, &r->cap,
                                   (size_t)r->n + 1, sizeof *r->buffers);
  if (status != PLN_OK) {
    pln_mem_free(x->g->engine, region, (rank + 1) * sizeof *region);
    return status;
  }
  r->buffers[r->n++] = (pln_touched_buffer){
      .buffer = buffer, .stmt = stmt, .scope = scope, .region = region};
  r->of_buffer[buffer] = r->of_data[data] = r->n;
  return PLN_OK;
}

/* Whether the memory of an Allocate is that of the Buffer. */
static bool is_allocated_for(const pln_graph *g, pln_ref allocate,
                             pln_ref buffer) {
  pln_buffer_fields f = pln_buffer_fields_of(g, buffer);
  if (g->nodes[allocate].count != f.rank + 1 || f.n_strides > 0)
    return false;
  for (uint32_t i = 0; i < f.rank; i++)
    if (!pln_same_expr(g, f.shape[i], pln_operand(g, allocate, 1 + i)))
      return false;
  return true;
}

static pln_status find_buffers(region_finder *x) {
  const pln_graph *g = x->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    pln_ref buffer = n->kind == PLN_ALLOC_BUFFER || n->kind == PLN_DECL_BUFFER
                         ? pln_operand(g, ref, 0)
                         : PLN_NONE;
    if (buffer == PLN_NONE)
      continue;
    pln_scope scope = x->scope_of[ref];
    pln_ref stmt = n->kind == PLN_ALLOC_BUFFER ? ref : g->scopes[scope].owner;
    if (pln_buffer_fields_of(g, buffer).n_strides > 0 || stmt == PLN_NONE)
      continue;
    if (n->kind == PLN_DECL_BUFFER &&
        (g->nodes[stmt].kind != PLN_ALLOCATE ||
         g->scopes[scope].begin != pln_operand(g, buffer, 0) ||
         !is_allocated_for(g, stmt, buffer)))
      continue;
    PLN_TRY(add_buffer(x, buffer, stmt, scope));
  }
  return PLN_OK;
}

/* Pointers that are used otherwise, and memory that several Buffers show. */
static void find_exposed(region_finder *x) {
  const pln_graph *g = x->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    for (uint32_t i = 0; (pln_is_prim(n) || pln_is_stmt(n)) && i < n->count;
         i++) {
      pln_ref operand = pln_operand(g, ref, i);
      uint32_t k = x->r->of_data[operand];
      if (k && (n->kind != PLN_BUFFER || x->r->buffers[k - 1].buffer != ref))
        x->r->buffers[k - 1].exposed = true;
    }
  }
}

/* ------------------------------------------------------------------- scopes
 */

static bool matters(const pln_graph *g, pln_scope scope) {
  pln_ref owner = g->scopes[scope].owner;
  if (owner == PLN_NONE)
    return false;
  const pln_node *n = &g->nodes[owner];
  return n->kind == PLN_FOR || n->kind == PLN_IF_THEN_ELSE ||
         n->kind == PLN_BLOCK_REALIZE ||
         (n->kind == PLN_ATTR_STMT && pln_binds_thread(g, n));
}

/* An owner comes after all that is inside of its scopes. The scope of the graph
 * has none. */
static void link_scopes(const pln_graph *g, pln_scope *outer) {
  outer[0] = PLN_NONE;
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    const pln_node *n = &g->nodes[ref];
    for (pln_scope s = pln_owns(n) ? n->data : PLN_NONE; s != PLN_NONE;
         s = g->scopes[s].next) {
      pln_scope parent = g->scopes[s].parent;
      outer[s] =
          parent == PLN_NONE || matters(g, parent) ? parent : outer[parent];
    }
  }
}

pln_scope pln_touched_scope(const pln_touched_regions *r, pln_scope scope) {
  return scope == PLN_NONE || matters(r->g, scope) ? scope : r->outer[scope];
}

/* ------------------------------------------------------------------- ranges
 */

static pln_status push_scope(region_finder *x, pln_scope scope) {
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->chain, &x->cap_chain,
                       (size_t)x->n_chain + 1, sizeof *x->chain));
  x->chain[x->n_chain++] = scope;
  return PLN_OK;
}

static pln_interval evaluate(region_finder *x, pln_term t) {
  return pln_interval_of(x->a, t, x->n, x->vars, x->sets, false);
}

static pln_status push_var(region_finder *x, pln_term var, pln_interval set) {
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->vars, &x->cap_vars,
                       (size_t)x->n + 1, sizeof *x->vars));
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->sets, &x->cap_sets,
                       (size_t)x->n + 1, sizeof *x->sets));
  x->vars[x->n] = var;
  x->sets[x->n++] = set;
  return PLN_OK;
}

/* var runs over [min, min + extent). */
static pln_status relax(region_finder *x, pln_ref var, pln_ref min,
                        pln_ref extent) {
  pln_term v, from, length;
  PLN_TRY(pln_analyzer_import(x->a, x->g, var, &v));
  PLN_TRY(pln_analyzer_import(x->a, x->g, extent, &length));
  from = pln_const_like(x->a, length, 0);
  if (min != PLN_NONE)
    PLN_TRY(pln_analyzer_import(x->a, x->g, min, &from));
  pln_interval low = evaluate(x, from);
  pln_interval high =
      evaluate(x, pln_add_const(x->a, pln_add(x->a, from, length), -1));
  PLN_TRY(x->a->status);
  return push_var(x, v, (pln_interval){low.min, high.max});
}

static bool begins_with(pln_slice text, const char *prefix) {
  size_t size = strlen(prefix);
  return text.size >= size && memcmp(text.data, prefix, size) == 0;
}

/* Whether several threads of an axis around the allocation share the memory. */
static bool is_shared(const region_finder *x, const pln_touched_buffer *b,
                      pln_ref thread) {
  pln_type type = x->g->nodes[pln_operand(x->g, b->buffer, 0)].type;
  pln_slice scope =
      pln_symbol_text(x->g->engine, pln_type_symbol(x->g->engine, type));
  pln_slice tag = pln_attrs_string(x->g->engine, x->g->nodes[thread].attrs,
                                   "thread_tag", "");
  if (scope.size == 0 || begins_with(scope, "global"))
    return true;
  if (begins_with(scope, "shared"))
    return begins_with(tag, "threadIdx") || begins_with(tag, "vthread");
  return begins_with(scope, "warp") && pln_slice_is(tag, "threadIdx.x");
}

/* The variable of a loop or thread axis that owns the scope. */
static pln_status relax_owner(region_finder *x, const pln_touched_buffer *b,
                              pln_scope scope, bool inside) {
  const pln_graph *g = x->g;
  pln_ref owner = g->scopes[scope].owner;
  const pln_node *n = owner == PLN_NONE ? NULL : &g->nodes[owner];
  if (!n)
    return PLN_OK;
  if (n->kind == PLN_FOR &&
      (inside || (pln_for_kind_of(g, owner) == PLN_FOR_THREAD_BINDING &&
                  is_shared(x, b, pln_operand(g, owner, 2)))))
    return relax(x, g->scopes[scope].begin, pln_operand(g, owner, 0),
                 pln_operand(g, owner, 1));
  if (n->kind == PLN_ATTR_STMT && pln_binds_thread(g, n) &&
      (inside || is_shared(x, b, pln_operand(g, owner, 0))))
    return relax(x, pln_operand(g, pln_operand(g, owner, 0), 0), PLN_NONE,
                 pln_operand(g, owner, 1));
  return PLN_OK;
}

/* --------------------------------------------------------------- conditions
 */

/* The only relaxed variable of a condition; n: none or several. */
static uint32_t only_var(region_finder *x, pln_term condition) {
  uint32_t found = x->n;
  for (uint32_t i = 0; i < x->n; i++) {
    if (!pln_term_uses(x->a, condition, x->vars[i]))
      continue;
    if (found < x->n)
      return x->n;
    found = i;
  }
  return found;
}

static pln_status narrow_by(region_finder *x, pln_term condition) {
  pln_term min, max;
  if (pln_term_kind(x->a, condition) == PLN_PRIM_AND) {
    PLN_TRY(narrow_by(x, pln_at(x->a, condition)->a));
    return narrow_by(x, pln_at(x->a, condition)->b);
  }
  uint32_t i = only_var(x, condition);
  if (i == x->n)
    return x->a->status;
  PLN_TRY(pln_analyzer_deduce_bound(x->a, x->vars[i], condition, 0, NULL, 0,
                                    NULL, &min, &max));
  pln_interval set = {min, max};
  if (pln_is_empty(set))
    return PLN_OK;
  if (!pln_is_infinite(min) && !pln_is_infinite(x->sets[i].min))
    x->sets[i].min = pln_simplify_term(
        x->a, pln_fold(x->a, PLN_PRIM_MAX, x->sets[i].min, min), 2);
  if (!pln_is_infinite(max) && !pln_is_infinite(x->sets[i].max))
    x->sets[i].max = pln_simplify_term(
        x->a, pln_fold(x->a, PLN_PRIM_MIN, x->sets[i].max, max), 2);
  return x->a->status;
}

/* The condition is known of the indices of the present access, if it reads no
 * memory. */
static pln_status hold(region_finder *x, pln_ref owner, pln_term condition) {
  const pln_node *n = &x->g->nodes[pln_operand(x->g, owner, 0)];
  uint32_t mark;
  pln_term simple = pln_simplify_term(x->a, condition, 2);
  PLN_TRY(x->a->status);
  if (pln_flags_effect(n->flags) != PLN_EFFECT_NONE ||
      !pln_is_bool(x->a, simple))
    return PLN_OK;
  return pln_analyzer_enter(x->a, simple, &mark);
}

/* What the owner of a scope says of it. */
static pln_status narrow_by_owner(region_finder *x, pln_scope scope) {
  const pln_graph *g = x->g;
  pln_ref owner = g->scopes[scope].owner;
  pln_term term;
  if (owner == PLN_NONE || (g->nodes[owner].kind != PLN_IF_THEN_ELSE &&
                            g->nodes[owner].kind != PLN_BLOCK_REALIZE))
    return PLN_OK;
  PLN_TRY(pln_analyzer_import(
      x->a, g, pln_likely_condition(g, pln_operand(g, owner, 0)), &term));
  if (g->nodes[owner].kind == PLN_IF_THEN_ELSE && g->nodes[owner].data != scope)
    PLN_TRY(
        pln_analyzer_rewrite_simplify(x->a, pln_fold_not(x->a, term), &term));
  PLN_TRY(narrow_by(x, term));
  return hold(x, owner, term);
}

/* ----------------------------------------------------------------- accesses
 */

static pln_term extreme(region_finder *x, pln_kind kind, pln_term a,
                        pln_term b) {
  if (pln_is_infinite(a) || pln_is_infinite(b))
    return kind == PLN_PRIM_MIN ? PLN_TERM_NEG_INF : PLN_TERM_POS_INF;
  return pln_simplify_term(x->a, pln_fold(x->a, kind, a, b), 2);
}

static void unite(region_finder *x, pln_touched_buffer *b, uint32_t i,
                  pln_interval set) {
  if (!b->touched) {
    b->region[i] = set;
    return;
  }
  b->region[i].min = extreme(x, PLN_PRIM_MIN, b->region[i].min, set.min);
  b->region[i].max = extreme(x, PLN_PRIM_MAX, b->region[i].max, set.max);
}

/* Index `i` of an access: an expression, or a Range of a region. */
static pln_status touch_index(region_finder *x, pln_touched_buffer *b,
                              uint32_t i, pln_ref index) {
  bool range = x->g->nodes[index].kind == PLN_RANGE;
  pln_term first, last;
  PLN_TRY(pln_analyzer_import(
      x->a, x->g, range ? pln_operand(x->g, index, 0) : index, &first));
  last = first;
  if (range) {
    PLN_TRY(
        pln_analyzer_import(x->a, x->g, pln_operand(x->g, index, 1), &last));
    last = pln_add_const(x->a, pln_add(x->a, first, last), -1);
  }
  if (pln_at(x->a, first)->lanes == 1) {
    first = pln_simplify_term(x->a, first, 2);
    last = range ? pln_simplify_term(x->a, last, 2) : first;
    PLN_TRY(x->a->status);
  }
  pln_interval low = evaluate(x, first), high = evaluate(x, last);
  if (pln_at(x->a, first)->lanes > 1)
    low.min = PLN_TERM_NEG_INF, high.max = PLN_TERM_POS_INF;
  unite(x, b, i, (pln_interval){low.min, high.max});
  return x->a->status;
}

/* The scopes that matter around the access and inside of the allocation's. */
static pln_status list_scopes(region_finder *x, pln_ref access,
                              pln_scope until) {
  pln_ref end = x->g->scopes[until].end;
  x->n_chain = 0;
  for (pln_scope at = pln_touched_scope(x->r, x->scope_of[access]);
       at != PLN_NONE && x->g->scopes[at].end < end; at = x->r->outer[at])
    PLN_TRY(push_scope(x, at));
  return PLN_OK;
}

static pln_status set_ranges(region_finder *x, const pln_touched_buffer *b,
                             pln_ref access) {
  x->n = 0;
  for (pln_scope at = pln_touched_scope(x->r, b->scope); at != PLN_NONE;
       at = x->r->outer[at])
    PLN_TRY(relax_owner(x, b, at, false));
  PLN_TRY(list_scopes(x, access, b->scope));
  for (uint32_t i = x->n_chain; i-- > 0;)
    PLN_TRY(relax_owner(x, b, x->chain[i], true));
  for (uint32_t i = x->n_chain; i-- > 0;)
    PLN_TRY(narrow_by_owner(x, x->chain[i]));
  return PLN_OK;
}

static pln_status touch(region_finder *x, pln_ref access, uint32_t first) {
  const pln_node *n = &x->g->nodes[access];
  uint32_t k = x->r->of_buffer[pln_operand(x->g, access, 0)];
  if (!k || x->r->buffers[k - 1].exposed)
    return PLN_OK;
  pln_touched_buffer *b = &x->r->buffers[k - 1];
  uint32_t mark = x->a->n_scopes;
  PLN_TRY(set_ranges(x, b, access));
  for (uint32_t i = first; i < n->count; i++)
    PLN_TRY(touch_index(x, b, i - first, pln_operand(x->g, access, i)));
  pln_analyzer_leave(x->a, mark);
  b->touched = true;
  return PLN_OK;
}

static pln_status touch_all(region_finder *x) {
  const pln_graph *g = x->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    switch (g->nodes[ref].kind) {
    case PLN_BUFFER_LOAD: PLN_TRY(touch(x, ref, 1)); break;
    case PLN_BUFFER_STORE: PLN_TRY(touch(x, ref, 2)); break;
    case PLN_MATCH_BUFFER: PLN_TRY(touch(x, pln_operand(g, ref, 1), 1)); break;
    default: break;
    }
  return PLN_OK;
}

/* ------------------------------------------------------------------- making
 */

/* The variable of a thread axis is in [0, extent). */
static pln_status bind_axis(region_finder *x, pln_ref attr) {
  pln_ref var = pln_operand(x->g, pln_operand(x->g, attr, 0), 0);
  pln_term term, extent;
  PLN_TRY(pln_idmap_set(x->r->scope_of_var, x->g->nodes[var].data,
                        x->g->nodes[attr].data + 1));
  PLN_TRY(pln_analyzer_import(x->a, x->g, var, &term));
  PLN_TRY(pln_analyzer_import(x->a, x->g, pln_operand(x->g, attr, 1), &extent));
  return pln_analyzer_bind_range(x->a, term, pln_const_like(x->a, extent, 0),
                                 extent, true);
}

static pln_status list_params(region_finder *x) {
  for (pln_scope i = 0; i < x->g->n_scopes; i++)
    for (uint32_t k = 0; k < x->g->scopes[i].n_params; k++) {
      pln_ref param = x->g->scopes[i].begin + k;
      PLN_TRY(
          pln_idmap_set(x->r->scope_of_var, x->g->nodes[param].data, i + 1));
    }
  return PLN_OK;
}

static pln_status bind_loops(region_finder *x) {
  PLN_TRY(list_params(x));
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    pln_term var, min, extent;
    if (x->g->nodes[ref].kind == PLN_ATTR_STMT &&
        pln_binds_thread(x->g, &x->g->nodes[ref]))
      PLN_TRY(bind_axis(x, ref));
    if (x->g->nodes[ref].kind != PLN_FOR)
      continue;
    PLN_TRY(pln_analyzer_import(
        x->a, x->g, x->g->scopes[x->g->nodes[ref].data].begin, &var));
    PLN_TRY(pln_analyzer_import(x->a, x->g, pln_operand(x->g, ref, 0), &min));
    PLN_TRY(
        pln_analyzer_import(x->a, x->g, pln_operand(x->g, ref, 1), &extent));
    PLN_TRY(pln_analyzer_bind_range(x->a, var, min, extent, true));
  }
  return PLN_OK;
}

static pln_status fill_regions(region_finder *x) {
  pln_scope_cursor at = {.graph = x->g};
  if (!x->r->of_buffer || !x->r->of_data || !x->r->outer || !x->scope_of)
    return pln_nomem(x->g->engine);
  link_scopes(x->g, x->r->outer);
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    x->scope_of[ref] = pln_scope_cursor_at(&at, ref);
  PLN_TRY(find_buffers(x));
  if (x->r->n == 0)
    return PLN_OK;
  find_exposed(x);
  PLN_TRY(bind_loops(x));
  return touch_all(x);
}

pln_status pln_touched_regions_make(const pln_graph *g,
                                    pln_touched_regions *out) {
  pln_engine *e = g->engine;
  region_finder x = {.r = out, .g = g};
  *out = (pln_touched_regions){.g = g};
  PLN_TRY(pln_idmap_new(e, &out->scope_of_var));
  pln_status made = pln_analyzer_new(e, &out->a);
  if (made != PLN_OK) {
    pln_idmap_free(out->scope_of_var);
    return made;
  }
  x.a = out->a;
  out->of_buffer = pln_mem_zeroed(e, g->n_nodes * sizeof *out->of_buffer);
  out->of_data = pln_mem_zeroed(e, g->n_nodes * sizeof *out->of_data);
  out->outer = pln_mem_new(e, g->n_scopes * sizeof *out->outer);
  x.scope_of = pln_mem_new(e, g->n_nodes * sizeof *x.scope_of);
  pln_status status = fill_regions(&x);
  pln_mem_free(e, x.scope_of, g->n_nodes * sizeof *x.scope_of);
  pln_mem_free(e, x.vars, x.cap_vars * sizeof *x.vars);
  pln_mem_free(e, x.sets, x.cap_sets * sizeof *x.sets);
  pln_mem_free(e, x.chain, x.cap_chain * sizeof *x.chain);
  if (status != PLN_OK)
    pln_touched_regions_free(out);
  return status;
}

static bool is_bound_outside(const pln_touched_regions *r,
                             const pln_touched_buffer *b, uint32_t identity) {
  uint32_t scope = pln_idmap_get(r->scope_of_var, identity);
  const pln_scope_row *inner = &r->g->scopes[b->scope];
  if (!scope)
    return true;
  const pln_scope_row *outer = &r->g->scopes[scope - 1];
  return outer->begin <= inner->begin && inner->end <= outer->end;
}

pln_status pln_touched_is_outside(const pln_touched_regions *r,
                                  const pln_touched_buffer *b, pln_term term,
                                  bool *out) {
  pln_term_list order;
  *out = true;
  if (!pln_term_order(r->a, term, NULL, &order))
    return r->a->status;
  for (uint32_t i = 0; i < order.n && *out; i++) {
    const pln_term_node *n = pln_at(r->a, order.items[i]);
    bool reads = n->kind == PLN_BUFFER_LOAD || n->kind == PLN_PRIM_CALL ||
                 n->kind == PLN_PRIM_LET;
    *out = !reads &&
           (n->kind != PLN_VAR || is_bound_outside(r, b, (uint32_t)n->u.value));
  }
  pln_term_list_free(r->a, &order);
  return PLN_OK;
}

void pln_touched_regions_free(pln_touched_regions *r) {
  pln_engine *e = r->g->engine;
  for (uint32_t i = 0; i < r->n; i++)
    pln_mem_free(e, r->buffers[i].region,
                 ((size_t)r->g->nodes[r->buffers[i].buffer].results + 1) *
                     sizeof(pln_interval));
  pln_mem_free(e, r->buffers, r->cap * sizeof *r->buffers);
  pln_mem_free(e, r->of_buffer, r->g->n_nodes * sizeof *r->of_buffer);
  pln_mem_free(e, r->of_data, r->g->n_nodes * sizeof *r->of_data);
  pln_mem_free(e, r->outer, r->g->n_scopes * sizeof *r->outer);
  pln_idmap_free(r->scope_of_var);
  pln_analyzer_free(r->a);
}
