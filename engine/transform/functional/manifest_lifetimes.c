/* manifest_lifetimes.c: ManifestLifetimes: says where the last use of a
 * variable is, by a call of memory.kill behind it.
 *
 * Run by the executor, once per function. Requires a verified graph; lets in
 * A-normal form give the most. First, variables that are other names of a
 * variable are replaced: let %y = %x, a copy to the same device, and the
 * pattern %y of a Match of %x. Then each let whose value uses a variable that
 * nothing evaluated after it uses is followed by a let of memory.kill.
 * Variables that a nested function uses are left alone, and so are nested
 * functions, but for the function inside of one with the attribute Closure.
 *
 *     let %a = exp(%x); let %b = add(%a, %a); %b   =>
 *     let %a = exp(%x); let %v = memory.kill(%x);
 *     let %b = add(%a, %a); let %w = memory.kill(%a); %b
 *
 * Semantics: TVM ManifestLifetimes. A value that was killed already is not
 * killed again. */

#include "ir/graph/layout/scope_tree.h"
#include "transform/functional/let.h"
#include "transform/transform.h"

/* ------------------------------------------------------------------ aliases */

typedef struct alias_removal {
  const pln_graph *old;
  pln_op copy, on_device;
  pln_ref *next; /* by node: the first Let from there on that stays */
} alias_removal;

static pln_op op_named(pln_engine *e, const char *name) {
  return pln_op_find(e, pln_text(name));
}

static bool same_device(const pln_graph *g, const pln_node *copy) {
  pln_engine *e = g->engine;
  const pln_attr *from = pln_attrs_find(e, copy->attrs, "src_virtual_device");
  const pln_attr *to = pln_attrs_find(e, copy->attrs, "dst_virtual_device");
  if (!from || !to || from->kind != to->kind || from->count != to->count)
    return false;
  return !memcmp(&from->v, &to->v, sizeof from->v);
}

/* The variable that a value is another name of, or PLN_NONE. */
static pln_ref aliased(const alias_removal *a, pln_ref value) {
  const pln_graph *g = a->old;
  const pln_node *n = &g->nodes[value];
  if (n->kind == PLN_CALL && n->data == a->on_device && n->data) {
    value = pln_operand(g, value, 0);
    n = &g->nodes[value];
  }
  if (n->kind == PLN_CALL && n->data == a->copy && n->data &&
      same_device(g, n)) {
    value = pln_operand(g, value, 0);
    n = &g->nodes[value];
  }
  return n->kind == PLN_VAR ? value : PLN_NONE;
}

/* The pattern %y of an arm: from here on %y is the data, if that is a
 * variable. */
static void pass_clause(const alias_removal *a, pln_rewrite *rw, pln_ref old) {
  const pln_graph *g = a->old;
  pln_ref pattern = pln_operand(g, old, 0);
  pln_scope arm = pln_graph_scope_of(g, old);
  if (g->nodes[pattern].kind != PLN_PATTERN_VAR)
    return;
  pln_ref data = pln_operand(g, g->scopes[arm].owner, 0);
  if (g->nodes[data].kind == PLN_VAR)
    pln_rewrite_bind(rw, pln_operand(g, pattern, 0),
                     pln_rewrite_image(rw, data));
}

static pln_status replace_alias(void *ud, pln_rewrite *rw, pln_ref old,
                                pln_ref *node) {
  const alias_removal *a = ud;
  const pln_graph *g = a->old;
  if (g->nodes[old].kind == PLN_CLAUSE)
    pass_clause(a, rw, old);
  if (g->nodes[old].kind != PLN_LET)
    return PLN_OK;
  pln_ref var = aliased(a, pln_operand(g, old, 1));
  if (var == PLN_NONE)
    return PLN_OK;
  if (!pln_rewrite_builder(rw))
    return PLN_ERR_NOMEM;
  pln_rewrite_bind(rw, pln_operand(g, old, 0), pln_rewrite_image(rw, var));
  *node = pln_rewrite_image(rw, var);
  return PLN_OK;
}

static pln_status find_lets(alias_removal *a) {
  const pln_graph *g = a->old;
  pln_ref next = PLN_NONE;
  a->next = pln_mem_new(g->engine, g->n_nodes * sizeof *a->next);
  if (!a->next)
    return pln_nomem(g->engine);
  for (pln_ref ref = g->n_nodes; ref-- > 0; a->next[ref] = next)
    if (g->nodes[ref].kind == PLN_LET &&
        aliased(a, pln_operand(g, ref, 1)) == PLN_NONE)
      next = ref;
  return PLN_OK;
}

/* A block without a let that stays is dissolved. */
static pln_status enter_block(void *ud, pln_rewrite *rw, pln_scope old,
                              pln_scope_action *action) {
  const alias_removal *a = ud;
  const pln_graph *g = a->old;
  const pln_scope_row *row = &g->scopes[old];
  (void)rw;
  if (g->nodes[row->owner].kind == PLN_LET_BLOCK &&
      (row->begin == row->end || a->next[row->begin] >= row->end))
    *action = PLN_SCOPE_DISSOLVE;
  return PLN_OK;
}

static pln_status remove_aliases(pln_engine *e, const pln_graph *old,
                                 pln_graph **out) {
  alias_removal a = {.old = old,
                     .copy = op_named(e, "device_copy"),
                     .on_device = op_named(e, "on_device")};
  pln_mutator m = {.ud = &a, .visit = replace_alias, .enter = enter_block};
  PLN_TRY(find_lets(&a));
  pln_status status = pln_graph_rewrite(old, &m, out);
  pln_mem_free(e, a.next, old->n_nodes * sizeof *a.next);
  return status;
}

/* ----------------------------------------------------------------- liveness */

/* A use of a variable, where it ends: at the let of the value that it is part
 * of, at the end of the scope whose result it is part of, or at the begin of
 * the branches whose condition it is part of. */
typedef struct var_use {
  uint64_t at; /* 2 * node + 1 for a let, 2 * node before a node */
  pln_scope scope;
  pln_ref let; /* a kill would follow it; PLN_NONE: none */
} var_use;

typedef struct var_kill {
  pln_ref var;
  uint32_t next; /* + 1; 0: the last */
} var_kill;

typedef struct lifetimes {
  pln_engine *engine;
  const pln_graph *g;
  pln_op kill;
  pln_scope *scope;    /* by node */
  pln_scope_tree tree; /* of the scopes */
  var_use *end;        /* by node: where its last use ends */
  uint8_t *stays;      /* by variable: never killed */
  uint32_t *first;     /* by variable: its first use */
  var_use *uses;       /* by variable, in order of evaluation */
  uint32_t *kills;     /* by let: the first kill, + 1 */
  var_kill *list;
  uint32_t n_list, cap_list;
} lifetimes;

static size_t most_uses(const pln_graph *g) {
  return (size_t)g->n_operands + g->n_scopes;
}

static pln_status alloc_lifetimes(lifetimes *l) {
  const pln_graph *g = l->g;
  size_t n = g->n_nodes;
  l->scope = pln_mem_new(l->engine, n * sizeof *l->scope);
  l->end = pln_mem_zeroed(l->engine, n * sizeof *l->end);
  l->stays = pln_mem_zeroed(l->engine, n);
  l->first = pln_mem_zeroed(l->engine, (n + 1) * sizeof *l->first);
  l->uses = pln_mem_new(l->engine, most_uses(g) * sizeof *l->uses);
  l->kills = pln_mem_zeroed(l->engine, n * sizeof *l->kills);
  if (!l->scope || !l->end || !l->stays || !l->first || !l->uses || !l->kills)
    return pln_nomem(l->engine);
  pln_graph_node_scopes(g, l->scope);
  PLN_TRY(pln_scope_tree_begin(&l->tree, l->engine, g->n_scopes));
  for (pln_scope s = 1; s < g->n_scopes; s++)
    pln_scope_tree_add_child(&l->tree, s, g->scopes[s].parent);
  return PLN_OK;
}

static void free_lifetimes(lifetimes *l) {
  const pln_graph *g = l->g;
  size_t n = g->n_nodes;
  pln_mem_free(l->engine, l->scope, n * sizeof *l->scope);
  pln_mem_free(l->engine, l->end, n * sizeof *l->end);
  pln_mem_free(l->engine, l->stays, n);
  pln_mem_free(l->engine, l->first, (n + 1) * sizeof *l->first);
  pln_mem_free(l->engine, l->uses, most_uses(g) * sizeof *l->uses);
  pln_mem_free(l->engine, l->kills, n * sizeof *l->kills);
  pln_mem_free(l->engine, l->list, l->cap_list * sizeof *l->list);
  pln_scope_tree_end(&l->tree);
}

/* The function whose lets are followed by kills, besides the root. */
static pln_ref closure_body(const pln_graph *g) {
  const pln_node *root = &g->nodes[g->root];
  const pln_attr *mark = pln_attrs_find(g->engine, root->attrs, "Closure");
  pln_ref result = g->scopes[root->data].result;
  bool inner = mark && mark->v.i && g->nodes[result].kind == PLN_FUNCTION;
  return inner ? result : g->root;
}

/* By scope: it is not in a nested function. */
static void find_own_scopes(const pln_graph *g, bool *own) {
  pln_ref inner = closure_body(g);
  own[0] = true;
  for (pln_scope s = 1; s < g->n_scopes; s++) {
    pln_ref owner = g->scopes[s].owner;
    own[s] =
        own[g->scopes[s].parent] && (g->nodes[owner].kind != PLN_FUNCTION ||
                                     owner == g->root || owner == inner);
  }
}

static bool has_branches(const pln_node *n) {
  return (n->kind == PLN_IF || n->kind == PLN_MATCH) && pln_owns(n);
}

/* Where a use by `user` ends; that of the user itself is known. */
static var_use use_by(const lifetimes *l, pln_ref user) {
  const pln_node *n = &l->g->nodes[user];
  if (n->kind == PLN_LET)
    return (var_use){2 * (uint64_t)user + 1, l->scope[user], user};
  var_use use = l->end[user];
  if (!use.at) /* an effect whose value nobody uses */
    use = (var_use){2 * (uint64_t)user + 1, l->scope[user], PLN_NONE};
  if (has_branches(n)) {
    use.at = 2 * (uint64_t)l->g->scopes[n->data].begin;
    use.scope = l->scope[user];
  }
  return use;
}

static var_use use_as_result(const lifetimes *l, pln_scope s) {
  return (var_use){2 * (uint64_t)l->g->scopes[s].end, s, PLN_NONE};
}

static void note_end(var_use *end, var_use use) {
  if (end->at < use.at)
    *end = use;
}

static void find_ends(lifetimes *l) {
  const pln_graph *g = l->g;
  for (pln_scope s = 1; s < g->n_scopes; s++)
    note_end(&l->end[g->scopes[s].result], use_as_result(l, s));
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    var_use use = use_by(l, ref);
    for (uint32_t i = 0; i < g->nodes[ref].count; i++)
      note_end(&l->end[pln_operand(g, ref, i)], use);
  }
}

/* ------------------------------------------------------- uses by variable */

/* The operands of a node that are uses: not what it binds. */
static uint32_t first_used(const pln_node *n) {
  if (pln_kinds[n->kind].kind_class == PLN_CLASS_PATTERN)
    return n->count;
  return n->kind == PLN_LET;
}

static void count_uses(lifetimes *l, const bool *own) {
  const pln_graph *g = l->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    bool stays = !own[l->scope[ref]] ||
                 (n->kind == PLN_CALL && n->data && n->data == l->kill);
    for (uint32_t i = first_used(n); i < n->count; i++) {
      l->first[pln_operand(g, ref, i)]++;
      l->stays[pln_operand(g, ref, i)] |= stays;
    }
  }
  for (pln_scope s = 1; s < g->n_scopes; s++) {
    l->first[g->scopes[s].result]++;
    l->stays[g->scopes[s].result] |= !own[s];
  }
}

static void list_uses(lifetimes *l) {
  const pln_graph *g = l->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    for (uint32_t i = first_used(&g->nodes[ref]); i < g->nodes[ref].count; i++)
      l->uses[l->first[pln_operand(g, ref, i)]++] = use_by(l, ref);
  for (pln_scope s = 1; s < g->n_scopes; s++)
    l->uses[l->first[g->scopes[s].result]++] = use_as_result(l, s);
}

/* A counting sort of the uses by variable. */
static void find_uses(lifetimes *l, const bool *own) {
  uint32_t n = l->g->n_nodes, sum = 0;
  count_uses(l, own);
  for (pln_ref ref = 0; ref <= n; ref++) {
    uint32_t count = l->first[ref];
    l->first[ref] = sum;
    sum += count;
  }
  list_uses(l);
  memmove(l->first + 1, l->first, n * sizeof *l->first);
  l->first[0] = 0;
}

/* ------------------------------------------------------------------- kills */

static pln_ref owner_below(const lifetimes *l, pln_scope scope,
                           pln_scope ancestor) {
  pln_ref owner = PLN_NONE;
  for (; scope != ancestor; scope = l->g->scopes[scope].parent)
    owner = l->g->scopes[scope].owner;
  return owner;
}

/* Returns true if `b` is evaluated after `a`, rather than in another branch of
 * an If or Match around both. */
static bool comes_after(const lifetimes *l, const var_use *a,
                        const var_use *b) {
  if (b->at <= a->at)
    return false;
  pln_scope common = pln_scope_tree_lca(&l->tree, a->scope, b->scope);
  return common == a->scope || common == b->scope ||
         owner_below(l, a->scope, common) != owner_below(l, b->scope, common);
}

/* The last uses are looked at first: mostly the last one comes after. */
static bool is_last(const lifetimes *l, pln_ref var, const var_use *use) {
  for (uint32_t i = l->first[var + 1]; i-- > l->first[var];)
    if (comes_after(l, use, &l->uses[i]))
      return false;
  return true;
}

static pln_status kill_after(lifetimes *l, pln_ref var, pln_ref let) {
  uint32_t first = l->kills[let];
  if (first && l->list[first - 1].var == var)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(l->engine, (void **)&l->list, &l->cap_list,
                       (size_t)l->n_list + 1, sizeof *l->list));
  l->list[l->n_list] = (var_kill){var, first};
  l->kills[let] = ++l->n_list;
  return PLN_OK;
}

/* From the last variable to the first, so that lists are in order. */
static pln_status find_kills(lifetimes *l) {
  const pln_graph *g = l->g;
  for (pln_ref var = g->n_nodes; var-- > 0;) {
    if (g->nodes[var].kind != PLN_VAR || l->stays[var])
      continue;
    for (uint32_t i = l->first[var]; i < l->first[var + 1]; i++)
      if (l->uses[i].let != PLN_NONE && is_last(l, var, &l->uses[i]))
        PLN_TRY(kill_after(l, var, l->uses[i].let));
  }
  return PLN_OK;
}

static pln_status find_lifetimes(lifetimes *l) {
  size_t size = l->g->n_scopes;
  bool *own = pln_mem_zeroed(l->engine, size);
  if (!own)
    return pln_nomem(l->engine);
  find_own_scopes(l->g, own);
  find_ends(l);
  find_uses(l, own);
  pln_mem_free(l->engine, own, size);
  return find_kills(l);
}

static pln_status insert_kills(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  const lifetimes *l = ud;
  (void)node;
  for (uint32_t i = l->kills[old]; i; i = l->list[i - 1].next) {
    pln_builder *b = pln_rewrite_builder(rw);
    if (!b)
      return PLN_ERR_NOMEM;
    pln_ref var = pln_rewrite_image(rw, l->list[i - 1].var), call;
    PLN_TRY(pln_build_call(b, l->kill, 0, 0, 1, &var, &call));
    PLN_TRY(pln_let_new(b, call, &var));
  }
  return PLN_OK;
}

/* --------------------------------------------------------------------- pass */

static pln_status manifest(pln_pass_run *run, const pln_graph *g) {
  lifetimes l = {.engine = g->engine, .g = g};
  pln_mutator m = {.ud = &l, .visit = insert_kills};
  pln_graph *out = NULL;
  bool allowed = false;
  l.kill = op_named(l.engine, "memory.kill");
  pln_status status = alloc_lifetimes(&l);
  if (status == PLN_OK)
    status = find_lifetimes(&l);
  if (status == PLN_OK && l.n_list)
    status = pln_rule_apply(l.engine, "kill", g->root, &allowed);
  if (status == PLN_OK && allowed)
    status = pln_graph_rewrite(g, &m, &out);
  free_lifetimes(&l);
  if (status == PLN_OK && out)
    pln_run_set_function(run, out);
  return status;
}

pln_status pln_pass_manifest_lifetimes(pln_pass_run *run) {
  const pln_graph *old = pln_run_function(run);
  pln_graph *plain;
  if (old->nodes[old->root].kind != PLN_FUNCTION)
    return PLN_OK;
  PLN_TRY(remove_aliases(pln_run_engine(run), old, &plain));
  if (plain != old)
    pln_run_set_function(run, pln_graph_retain(plain));
  pln_status status = manifest(run, plain);
  pln_graph_release(plain);
  return status;
}
