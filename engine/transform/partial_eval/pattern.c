/* pattern.c: matches what is known of a value against the pattern of an arm.
 *
 * Called for each arm of a Match until one matches or may match. The nodes of a
 * pattern are visited from the outermost on, which are last in the graph. */

#include "transform/partial_eval/partial_evaluate.h"

typedef struct pattern_match {
  pe_run *pe;
  const pln_graph *g;
  pln_ref first;   /* of the nodes of the pattern */
  pe_value **data; /* by node of the pattern, from `first` on: its value, or
                    * NULL */
  pe_match result;
} pattern_match;

static void match_fields(pattern_match *m, pln_ref pattern, const pe_value *v) {
  const pln_node *n = &m->g->nodes[pattern];
  if (n->count != v->n) {
    m->result = PE_NO_MATCH;
    return;
  }
  for (uint32_t i = 0; i < n->count; i++)
    m->data[pln_operand(m->g, pattern, i) - m->first] = v->fields[i];
}

static void match_constructor(pattern_match *m, pln_ref pattern,
                              const pe_value *v) {
  if (v->kind == PE_ADT && v->of.constructor != m->g->nodes[pattern].data)
    m->result = PE_NO_MATCH;
  else if (v->kind == PE_ADT)
    match_fields(m, pattern, v);
  else
    m->result = PE_MATCH_UNKNOWN;
}

static void match_node(pattern_match *m, pln_ref pattern, pe_value *v) {
  switch ((pln_kind)m->g->nodes[pattern].kind) {
  case PLN_PATTERN_VAR:
    *pe_slot(m->pe, pln_operand(m->g, pattern, 0)) = v;
    break;
  case PLN_PATTERN_CONSTRUCTOR: match_constructor(m, pattern, v); break;
  case PLN_PATTERN_TUPLE:
    if (v->kind == PE_TUPLE)
      match_fields(m, pattern, v);
    else
      m->result = PE_MATCH_UNKNOWN;
    break;
  default: break;
  }
}

pln_status pe_match_pattern(pe_run *pe, pln_scope arm, pe_value *data,
                            pe_match *out) {
  const pln_graph *g = pe->frame->source->graph;
  pln_ref root = pln_arm_pattern(g, arm), first = g->scopes[arm].begin;
  pattern_match m = {.pe = pe, .g = g, .first = first, .result = PE_MATCH};
  m.data = pe_alloc(pe, (root - first + (size_t)1) * sizeof *m.data);
  if (!m.data)
    return PLN_ERR_NOMEM;
  m.data[root - first] = data;
  bool unknown = false;
  for (pln_ref ref = root + 1; ref-- > first && m.result != PE_NO_MATCH;) {
    if (m.data[ref - first] &&
        pln_kinds[g->nodes[ref].kind].kind_class == PLN_CLASS_PATTERN)
      match_node(&m, ref, m.data[ref - first]);
    unknown |= m.result == PE_MATCH_UNKNOWN;
  }
  *out = unknown && m.result != PE_NO_MATCH ? PE_MATCH_UNKNOWN : m.result;
  return PLN_OK;
}
