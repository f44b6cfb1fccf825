/* dim_alignment.c: reads the annotation buffer_dim_align of blocks
 * (dim_alignment.h): a list of [number of the Buffer that the block writes,
 * axis, factor, offset].
 *
 * Called by compact_buffer_allocation.c. Entries of another form are left out.
 */

#include "lower/block/dim_alignment.h"

enum { MOST = 1 << 20 }; /* of a factor and of an offset */

/* Four integers of an INTS or a LIST. */
static bool read_entry(const pln_engine *e, const pln_attr *entry,
                       int64_t out[4]) {
  if (entry->kind == PLN_ATTR_INTS && entry->count == 4) {
    memcpy(out, entry->v.ints, 4 * sizeof *out);
    return true;
  }
  if (entry->kind != PLN_ATTR_LIST || pln_attrs_count(e, entry->v.dict) != 4)
    return false;
  for (uint32_t i = 0; i < 4; i++) {
    const pln_attr *item = pln_attrs_at(e, entry->v.dict, i);
    if (item->kind != PLN_ATTR_INT)
      return false;
    out[i] = item->v.i;
  }
  return true;
}

/* What stands in front of a block's body. */
static bool is_in_front(pln_kind kind) {
  return kind == PLN_ALLOC_BUFFER || kind == PLN_MATCH_BUFFER ||
         kind == PLN_BLOCK_READS;
}

/* What a block writes: the operands of its BlockWrites; PLN_NONE: nothing. */
static pln_ref writes_of(const pln_graph *g, pln_ref block) {
  const pln_scope_row *row = &g->scopes[g->nodes[block].data];
  for (pln_ref ref = row->begin; ref < row->end; ref++)
    if (g->nodes[ref].kind == PLN_BLOCK_WRITES)
      return ref;
    else if (pln_is_stmt(&g->nodes[ref]) &&
             !is_in_front((pln_kind)g->nodes[ref].kind))
      break;
  return PLN_NONE;
}

static pln_status add_entry(pln_dim_alignments *x, pln_ref writes,
                            const int64_t entry[4]) {
  const pln_graph *g = x->g;
  if (writes == PLN_NONE || entry[0] < 0 ||
      entry[0] >= (int64_t)g->nodes[writes].count || entry[2] < 1 ||
      entry[2] > MOST || entry[3] < 0 || entry[3] > MOST)
    return PLN_OK;
  pln_ref buffer =
      pln_operand(g, pln_operand(g, writes, (uint32_t)entry[0]), 0);
  PLN_TRY(pln_mem_grow(g->engine, (void **)&x->rows, &x->cap, (size_t)x->n + 1,
                       sizeof *x->rows));
  x->rows[x->n++] =
      (pln_dim_alignment){entry[1], entry[2], entry[3], x->first[buffer]};
  x->first[buffer] = x->n;
  return PLN_OK;
}

static pln_status read_block(pln_dim_alignments *x, pln_ref block) {
  const pln_engine *e = x->g->engine;
  const pln_attr *all =
      pln_attrs_find(e, x->g->nodes[block].attrs, "annotations");
  if (!all || all->kind != PLN_ATTR_DICT)
    return PLN_OK;
  const pln_attr *list = pln_attrs_find(e, all->v.dict, "buffer_dim_align");
  if (!list || list->kind != PLN_ATTR_LIST)
    return PLN_OK;
  pln_ref writes = writes_of(x->g, block);
  for (uint32_t i = 0; i < pln_attrs_count(e, list->v.dict); i++) {
    int64_t entry[4];
    if (read_entry(e, pln_attrs_at(e, list->v.dict, i), entry))
      PLN_TRY(add_entry(x, writes, entry));
  }
  return PLN_OK;
}

pln_status pln_dim_alignments_find(const pln_graph *g,
                                   pln_dim_alignments *out) {
  *out = (pln_dim_alignments){.g = g};
  out->first = pln_mem_zeroed(g->engine, g->n_nodes * sizeof *out->first);
  pln_status status = out->first ? PLN_OK : pln_nomem(g->engine);
  for (pln_ref ref = 0; status == PLN_OK && ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_BLOCK)
      status = read_block(out, ref);
  if (status != PLN_OK)
    pln_dim_alignments_free(out);
  return status;
}

void pln_dim_alignments_free(pln_dim_alignments *x) {
  if (!x->g)
    return;
  pln_mem_free(x->g->engine, x->rows, x->cap * sizeof *x->rows);
  pln_mem_free(x->g->engine, x->first, x->g->n_nodes * sizeof *x->first);
  x->g = NULL;
}

const pln_dim_alignment *pln_dim_alignment_of(const pln_dim_alignments *x,
                                              pln_ref buffer, uint32_t axis) {
  for (uint32_t i = x->first[buffer]; i; i = x->rows[i - 1].next)
    if (x->rows[i - 1].axis == (int64_t)axis)
      return &x->rows[i - 1];
  return NULL;
}
