/* sync_plan.c: finds the statements before which a barrier stands: one reads or
 * writes an element of shared memory that another thread may have written, or
 * read, since the last barrier (sync_plan.h).
 *
 * Called by thread_sync.c. The statements of each level are entries, in order
 * of execution, with their accesses. A statement with bodies becomes one entry
 * when it is left: what it accesses before its first barrier and after its last
 * one. Accesses count inside of an AttrStmt that binds a thread only. Always:
 * entries and accesses of open levels are at the end of their stacks.
 *
 * Semantics: TVM's StorageAccessVisitor and ThreadSyncPlanner. */

#include "lower/thread/sync_plan.h"

typedef struct sync_entry {
  pln_ref stmt;
  uint32_t first, n; /* accesses */
} sync_entry;

typedef struct sync_frame {
  pln_ref stmt;
  uint32_t entry, access; /* where the level begins */
  uint32_t own;           /* the first access of an IfThenElse */
  uint64_t thread;        /* that was innermost before */
} sync_frame;

typedef struct planner {
  pln_sync_plan *plan;
  const pln_graph *g;
  pln_engine *engine;
  pln_pending pending, exposed;
  sync_entry *entries;
  pln_thread_access *accesses, *kept;
  sync_frame *frames;
  pln_ref *stack;
  uint32_t *seen; /* by node: the statement that has it, + 1 */
  uint32_t n_entries, n_accesses, n_kept, n_frames, n_stack;
  uint32_t cap_entries, cap_accesses, cap_kept, cap_frames, cap_stack;
  uint32_t device;     /* frames that bind threads */
  uint32_t conditions; /* frames that run under a condition */
  uint64_t thread;     /* bit of the innermost one */
} planner;

/* ---------------------------------------------------------------- accesses */

static pln_slice key_of(const pln_graph *g, pln_ref stmt) {
  return pln_attrs_string(g->engine, g->nodes[stmt].attrs, "attr_key", "");
}

bool pln_is_in_storage(const pln_graph *g, pln_ref var, pln_slice scope) {
  const pln_node *n = &g->nodes[var];
  pln_slice text = {0};
  if (n->kind != PLN_VAR)
    return false;
  if (pln_type_get_kind(g->engine, n->type) == PLN_TYPE_POINTER)
    text = pln_symbol_text(g->engine, pln_type_symbol(g->engine, n->type));
  if (text.size == 0)
    text = pln_text("global");
  return text.size == scope.size &&
         memcmp(text.data, scope.data, scope.size) == 0;
}

static pln_status add_access(planner *p, pln_thread_access access) {
  access.thread = p->thread;
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->accesses, &p->cap_accesses,
                       (size_t)p->n_accesses + 1, sizeof *p->accesses));
  p->accesses[p->n_accesses++] = access;
  return PLN_OK;
}

/* A vector is a region. */
static bool is_point(const pln_graph *g, pln_ref at) {
  for (uint32_t i = g->nodes[at].kind == PLN_BUFFER_STORE ? 2 : 1;
       i < g->nodes[at].count; i++)
    if (pln_prim_lanes(g, pln_operand(g, at, i)) != 1)
      return false;
  return true;
}

static pln_status add_element(planner *p, pln_ref at, pln_access_type type) {
  pln_ref data = pln_operand(p->g, pln_operand(p->g, at, 0), 0);
  pln_thread_access access = {.type = type, .data = data, .at = at};
  access.is_point = is_point(p->g, at);
  return p->pending.row_of[data] ? add_access(p, access) : PLN_OK;
}

/* T.tvm_access_ptr(type, data, offset, extent, 1: reads, 2: writes) */
static pln_status add_pointer(planner *p, pln_ref call) {
  pln_ref data = pln_operand(p->g, call, 1), mask = pln_operand(p->g, call, 4);
  pln_thread_access access = {.data = data, .at = PLN_NONE};
  if (p->g->nodes[data].kind != PLN_VAR || !p->pending.row_of[data])
    return PLN_OK;
  if (p->g->nodes[mask].kind != PLN_INT_IMM)
    return pln_diag_error(p->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.ThreadSync: the rw_mask of T.tvm_access_ptr is "
                          "no integer");
  for (uint32_t i = 0; i < 2; i++) {
    access.type = i == 0 ? PLN_ACCESS_READ : PLN_ACCESS_WRITE;
    if (pln_node_int(p->g, mask) >> i & 1)
      PLN_TRY(add_access(p, access));
  }
  return PLN_OK;
}

static pln_status add_barrier(planner *p, pln_ref call) {
  const pln_node *scope = &p->g->nodes[pln_operand(p->g, call, 0)];
  if (scope->kind == PLN_STRING_IMM &&
      pln_slice_is(pln_symbol_text(p->engine, scope->data), "warp"))
    return PLN_OK;
  return add_access(p, (pln_thread_access){.type = PLN_ACCESS_SYNC});
}

/* ------------------------------------------------------------- expressions */

static pln_status push_operands(planner *p, pln_ref ref, uint32_t from) {
  const pln_node *n = &p->g->nodes[ref];
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->stack, &p->cap_stack,
                       (size_t)p->n_stack + n->count, sizeof *p->stack));
  for (uint32_t i = n->count; i-- > from;)
    p->stack[p->n_stack++] = pln_operand(p->g, ref, i);
  return PLN_OK;
}

static pln_status visit_call(planner *p, pln_ref ref) {
  const pln_node *n = &p->g->nodes[ref];
  if (pln_is_call_of(n, "address_of") && n->count == 1) {
    pln_ref load = pln_operand(p->g, ref, 0);
    return push_operands(p, load, 1); /* itself it reads nothing */
  }
  if (pln_is_call_of(n, "tvm_access_ptr") && n->count == 5)
    PLN_TRY(add_pointer(p, ref));
  if (pln_is_call_of(n, "tvm_storage_sync") && n->count > 0)
    PLN_TRY(add_barrier(p, ref));
  return push_operands(p, ref, 0);
}

static pln_status visit_expr(planner *p, pln_ref ref) {
  switch (p->g->nodes[ref].kind) {
  case PLN_BUFFER: return PLN_OK;
  case PLN_PRIM_CALL: return visit_call(p, ref);
  case PLN_BUFFER_LOAD:
    PLN_TRY(add_element(p, ref, PLN_ACCESS_READ));
    return push_operands(p, ref, 1);
  default: return push_operands(p, ref, 0);
  }
}

/* Adds the accesses of the statement's operands, each expression once. */
static pln_status visit_operands(planner *p, pln_ref stmt) {
  PLN_TRY(push_operands(p, stmt, 0));
  while (p->n_stack > 0) {
    pln_ref ref = p->stack[--p->n_stack];
    if (p->seen[ref] == stmt + 1)
      continue;
    p->seen[ref] = stmt + 1;
    PLN_TRY(visit_expr(p, ref));
  }
  return PLN_OK;
}

/* ----------------------------------------------------- barriers of a level */

/* TVM plans all of dynamic shared memory as one. */
static void join_dynamic(planner *p, uint32_t from) {
  pln_ref data = PLN_NONE;
  if (!pln_slice_is(p->plan->scope, "shared.dyn"))
    return;
  for (uint32_t i = from; i < p->n_accesses; i++) {
    if (p->accesses[i].type == PLN_ACCESS_SYNC)
      continue;
    if (data == PLN_NONE)
      data = p->accesses[i].data;
    p->accesses[i].data = data;
  }
}

static bool needs_barrier(planner *p, const sync_entry *entry, bool carried) {
  for (uint32_t i = 0; i < entry->n; i++) {
    const pln_thread_access *access = &p->accesses[entry->first + i];
    if (access->type == PLN_ACCESS_SYNC)
      pln_pending_clear(&p->pending);
    else if (pln_pending_conflicts(&p->pending, p->plan, access, carried))
      return true;
  }
  return false;
}

static pln_status insert_barrier(planner *p, pln_ref stmt) {
  if (p->conditions > 0)
    return pln_diag_error(p->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.ThreadSync: a barrier would stand under a "
                          "condition, where not all threads reach it");
  p->plan->count += !p->plan->before[stmt];
  p->plan->before[stmt] = true;
  return PLN_OK;
}

static void add_pending(planner *p, const sync_entry *entry) {
  for (uint32_t i = 0; i < entry->n; i++) {
    const pln_thread_access *access = &p->accesses[entry->first + i];
    if (access->type == PLN_ACCESS_SYNC)
      pln_pending_clear(&p->pending);
    else
      (void)pln_pending_add(&p->pending, p->plan, access);
  }
}

static pln_status plan_in_order(planner *p, uint32_t from) {
  pln_pending_clear(&p->pending);
  for (uint32_t i = from; i < p->n_entries; i++) {
    bool before = needs_barrier(p, &p->entries[i], false);
    if (before) {
      PLN_TRY(insert_barrier(p, p->entries[i].stmt));
      pln_pending_clear(&p->pending);
    }
    add_pending(p, &p->entries[i]);
  }
  return PLN_OK;
}

/* The next round of a loop begins: at most one more barrier. */
static pln_status plan_next_round(planner *p, uint32_t from) {
  for (uint32_t i = from; i < p->n_entries; i++) {
    if (p->plan->before[p->entries[i].stmt])
      return PLN_OK;
    if (needs_barrier(p, &p->entries[i], true))
      return insert_barrier(p, p->entries[i].stmt);
  }
  return PLN_OK;
}

/* --------------------------------------------- what a level accesses itself */

/* Of each memory few accesses are kept: levels in levels stay linear. */
static pln_status keep(planner *p, pln_thread_access access) {
  if (access.type != PLN_ACCESS_SYNC &&
      !pln_pending_add(&p->exposed, p->plan, &access))
    return PLN_OK;
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->kept, &p->cap_kept,
                       (size_t)p->n_kept + 1, sizeof *p->kept));
  p->kept[p->n_kept++] = access;
  return PLN_OK;
}

/* After a barrier only what follows counts; the first one stays. */
static pln_status keep_barrier(planner *p, uint32_t *head) {
  pln_pending_clear(&p->exposed);
  if (*head > 0) {
    p->n_kept = *head;
    return PLN_OK;
  }
  PLN_TRY(keep(p, (pln_thread_access){.type = PLN_ACCESS_SYNC}));
  *head = p->n_kept;
  return PLN_OK;
}

static pln_status keep_exposed(planner *p, uint32_t from) {
  uint32_t head = 0; /* accesses up to the first barrier, and that one */
  p->n_kept = 0;
  pln_pending_clear(&p->exposed);
  for (uint32_t i = from; i < p->n_entries; i++) {
    const sync_entry *entry = &p->entries[i];
    if (p->plan->before[entry->stmt])
      PLN_TRY(keep_barrier(p, &head));
    for (uint32_t k = 0; k < entry->n; k++) {
      pln_thread_access access = p->accesses[entry->first + k];
      PLN_TRY(access.type == PLN_ACCESS_SYNC ? keep_barrier(p, &head)
                                             : keep(p, access));
    }
  }
  return PLN_OK;
}

/* Plans the level, and puts what it exposes in the place of its accesses. */
static pln_status summarize(planner *p, uint32_t entry, uint32_t access,
                            bool loop) {
  join_dynamic(p, access);
  PLN_TRY(plan_in_order(p, entry));
  if (loop)
    PLN_TRY(plan_next_round(p, entry));
  PLN_TRY(keep_exposed(p, entry));
  p->n_entries = entry;
  p->n_accesses = access;
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->accesses, &p->cap_accesses,
                       (size_t)access + p->n_kept, sizeof *p->accesses));
  for (uint32_t i = 0; i < p->n_kept; i++)
    p->accesses[p->n_accesses++] = p->kept[i];
  return PLN_OK;
}

/* The accesses from `first` on are an entry, if there are any. */
static pln_status add_entry(planner *p, pln_ref stmt, uint32_t first) {
  if (first == p->n_accesses)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->entries, &p->cap_entries,
                       (size_t)p->n_entries + 1, sizeof *p->entries));
  p->entries[p->n_entries++] = (sync_entry){stmt, first, p->n_accesses - first};
  return PLN_OK;
}

/* Behind a loop an index with its variable is a region, and no half of a double
 * buffer is known. */
static void leave_loop(planner *p, pln_ref loop, uint32_t first) {
  pln_ref var = p->g->scopes[p->g->nodes[loop].data].begin;
  for (uint32_t i = first; i < p->n_accesses; i++) {
    pln_thread_access *access = &p->accesses[i];
    access->double_write = false;
    if (!access->is_point)
      continue;
    for (uint32_t k = p->g->nodes[access->at].kind == PLN_BUFFER_STORE ? 2 : 1;
         k < p->g->nodes[access->at].count; k++)
      if (p->plan->facts[pln_operand(p->g, access->at, k)].latest >= var)
        access->is_point = false;
  }
}

static void mark_double(planner *p, pln_ref stmt, uint32_t first) {
  pln_ref data = pln_operand(p->g, stmt, 0);
  for (uint32_t i = first; i < p->n_accesses; i++)
    if (p->accesses[i].type == PLN_ACCESS_WRITE && p->accesses[i].data == data)
      p->accesses[i].double_write = true;
}

/* -------------------------------------------------------------- statements */

static bool is_thread(const pln_graph *g, pln_ref stmt) {
  return g->nodes[stmt].kind == PLN_ATTR_STMT &&
         pln_slice_is(key_of(g, stmt), "thread_extent") &&
         pln_binds_thread(g, &g->nodes[stmt]);
}

static bool is_double_write(const pln_graph *g, pln_ref stmt) {
  return g->nodes[stmt].kind == PLN_ATTR_STMT &&
         pln_slice_is(key_of(g, stmt), "double_buffer_write");
}

static bool is_condition(const pln_graph *g, pln_ref stmt) {
  return g->nodes[stmt].kind == PLN_IF_THEN_ELSE ||
         g->nodes[stmt].kind == PLN_WHILE;
}

static bool opens_level(const pln_graph *g, pln_ref stmt) {
  return g->nodes[stmt].kind == PLN_FOR || is_condition(g, stmt) ||
         is_thread(g, stmt) || is_double_write(g, stmt);
}

/* Operands of a statement with bodies: a barrier cannot stand before them in
 * each round. */
static pln_status check_operands(planner *p, pln_ref stmt) {
  uint32_t before = p->n_accesses;
  PLN_TRY(visit_operands(p, stmt));
  if (p->n_accesses == before)
    return PLN_OK;
  return pln_diag_error(p->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.ThreadSync: an operand of %s accesses memory of "
                        "'%s'; only stores, evaluations and values of "
                        "variables may",
                        pln_kinds[p->g->nodes[stmt].kind].name,
                        p->plan->scope.data);
}

static pln_status push_frame(planner *p, pln_ref stmt) {
  sync_frame frame = {.stmt = stmt, .entry = p->n_entries, .thread = p->thread};
  frame.access = frame.own = p->n_accesses;
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->frames, &p->cap_frames,
                       (size_t)p->n_frames + 1, sizeof *p->frames));
  p->frames[p->n_frames++] = frame;
  p->conditions += is_condition(p->g, stmt);
  if (is_thread(p->g, stmt)) {
    pln_ref var = pln_operand(p->g, pln_operand(p->g, stmt, 0), 0);
    p->thread = p->plan->facts[var].threads;
    p->device++;
  }
  return PLN_OK;
}

static pln_status enter_owner(planner *p, pln_ref stmt) {
  uint32_t first = p->n_accesses;
  if (p->device > 0 && p->g->nodes[stmt].kind == PLN_LET_STMT) {
    PLN_TRY(visit_operands(p, stmt));
    return add_entry(p, stmt, first);
  }
  if (p->device > 0)
    PLN_TRY(check_operands(p, stmt));
  if (!opens_level(p->g, stmt) || (p->device == 0 && !is_thread(p->g, stmt)))
    return PLN_OK;
  return push_frame(p, stmt);
}

/* The else part of an IfThenElse begins. */
static pln_status enter_next(planner *p, pln_ref stmt) {
  sync_frame *top = p->n_frames ? &p->frames[p->n_frames - 1] : NULL;
  if (!top || top->stmt != stmt)
    return PLN_OK;
  PLN_TRY(summarize(p, top->entry, top->access, false));
  top->access = p->n_accesses;
  return PLN_OK;
}

static pln_status leave_thread(planner *p, const sync_frame *frame) {
  p->thread = frame->thread;
  if (--p->device > 0)
    return PLN_OK;
  PLN_TRY(summarize(p, frame->entry, frame->access, false));
  p->n_accesses = frame->access; /* all threads end there */
  return PLN_OK;
}

static pln_status leave_owner(planner *p, pln_ref stmt) {
  if (p->n_frames == 0 || p->frames[p->n_frames - 1].stmt != stmt)
    return PLN_OK;
  sync_frame frame = p->frames[--p->n_frames];
  bool loop = p->g->nodes[stmt].kind == PLN_FOR;
  if (is_thread(p->g, stmt))
    return leave_thread(p, &frame);
  PLN_TRY(summarize(p, frame.entry, frame.access, loop));
  if (loop)
    leave_loop(p, stmt, frame.own);
  else if (is_double_write(p->g, stmt))
    mark_double(p, stmt, frame.own);
  p->conditions -= is_condition(p->g, stmt);
  return add_entry(p, stmt, frame.own);
}

static pln_status visit_node(planner *p, pln_ref ref) {
  const pln_node *n = &p->g->nodes[ref];
  uint32_t first = p->n_accesses;
  if (pln_owns(n))
    return leave_owner(p, ref);
  if (p->device == 0 ||
      (n->kind != PLN_BUFFER_STORE && n->kind != PLN_EVALUATE))
    return PLN_OK;
  if (n->kind == PLN_BUFFER_STORE)
    PLN_TRY(add_element(p, ref, PLN_ACCESS_WRITE));
  PLN_TRY(visit_operands(p, ref));
  return add_entry(p, ref, first);
}

static pln_status visit_graph(planner *p) {
  const pln_graph *g = p->g;
  pln_scope next = 1;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    for (; next < g->n_scopes && g->scopes[next].begin == ref; next++) {
      pln_ref owner = g->scopes[next].owner;
      PLN_TRY(g->nodes[owner].data == next ? enter_owner(p, owner)
                                           : enter_next(p, owner));
    }
    PLN_TRY(pln_poll_round(p->engine, ref));
    PLN_TRY(visit_node(p, ref));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- facts */

/* The variables of loops and threads. Threads beyond the 64th have no bit: no
 * index depends on them, so that barriers stand. */
static void mark_variables(const pln_graph *g, pln_index_facts *facts) {
  uint64_t bit = 1;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (g->nodes[ref].kind == PLN_FOR) {
      pln_ref var = g->scopes[g->nodes[ref].data].begin;
      facts[var].latest = var;
    } else if (is_thread(g, ref)) {
      pln_ref var = pln_operand(g, pln_operand(g, ref, 0), 0);
      if (facts[var].threads)
        continue;
      facts[var].threads = bit;
      bit <<= 1;
    }
  }
}

/* Operands precede what has them. */
static pln_status find_facts(const pln_graph *g, pln_index_facts *facts) {
  mark_variables(g, facts);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    PLN_TRY(pln_poll_round(g->engine, ref));
    if (!pln_is_prim(n))
      continue;
    for (uint32_t i = n->kind == PLN_BUFFER_LOAD; i < n->count; i++) {
      const pln_index_facts *of = &facts[pln_operand(g, ref, i)];
      facts[ref].threads |= of->threads;
      if (of->latest > facts[ref].latest)
        facts[ref].latest = of->latest;
    }
    if (n->kind == PLN_PRIM_CALL)
      facts[ref].latest = PLN_NONE;
  }
  return PLN_OK;
}

static void free_planner(planner *p) {
  pln_engine *e = p->engine;
  pln_pending_free(&p->pending, p->plan);
  pln_pending_free(&p->exposed, p->plan);
  pln_mem_free(e, p->entries, p->cap_entries * sizeof *p->entries);
  pln_mem_free(e, p->accesses, p->cap_accesses * sizeof *p->accesses);
  pln_mem_free(e, p->kept, p->cap_kept * sizeof *p->kept);
  pln_mem_free(e, p->frames, p->cap_frames * sizeof *p->frames);
  pln_mem_free(e, p->stack, p->cap_stack * sizeof *p->stack);
  pln_mem_free(e, p->seen, p->g->n_nodes * sizeof *p->seen);
}

static pln_status make_plan(planner *p) {
  PLN_TRY(pln_pending_new(&p->pending, p->plan));
  if (p->pending.n_rows == 0)
    return PLN_OK;
  PLN_TRY(pln_pending_new(&p->exposed, p->plan));
  p->seen = pln_mem_zeroed(p->engine, p->g->n_nodes * sizeof *p->seen);
  return p->seen ? visit_graph(p) : pln_nomem(p->engine);
}

pln_status pln_sync_plan_make(pln_sync_plan *plan, const pln_graph *g,
                              pln_slice scope) {
  planner p = {.plan = plan, .g = g, .engine = g->engine};
  *plan = (pln_sync_plan){.g = g, .scope = scope};
  p.pending.engine = p.exposed.engine = g->engine;
  plan->facts = pln_mem_zeroed(g->engine, g->n_nodes * sizeof *plan->facts);
  plan->before = pln_mem_zeroed(g->engine, g->n_nodes * sizeof *plan->before);
  if (!plan->facts || !plan->before)
    return pln_nomem(g->engine);
  PLN_TRY(find_facts(g, plan->facts));
  pln_status status = make_plan(&p);
  free_planner(&p);
  return status;
}

void pln_sync_plan_free(pln_sync_plan *plan) {
  size_t n = plan->g->n_nodes;
  pln_mem_free(plan->g->engine, plan->facts, n * sizeof *plan->facts);
  pln_mem_free(plan->g->engine, plan->before, n * sizeof *plan->before);
}
