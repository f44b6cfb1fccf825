/* tir/script/parse/parse.c: parses TVMScript: modules of PrimFuncs, single
 * PrimFuncs, statements and PrimExprs.
 *
 * Called by everything that loads text. Invariant: any input gives a module (or
 * node) or diagnostics, in linear time and memory. */

#include "ir/tir/script/parse/parse.h"

static bool contains(pln_slice text, const char *word) {
  size_t n = strlen(word);
  const char *at = text.data, *end = at ? at + text.size : at;
  while (at && (size_t)(end - at) >= n &&
         (at = memchr(at, word[0], (size_t)(end - at) - n + 1))) {
    if (!memcmp(at, word, n))
      return true;
    at++;
  }
  return false;
}

static pln_status start(pln_script_parser *p, pln_engine *engine,
                        pln_slice text, const char *source, bool part) {
  pln_open_frame base = {.what = part ? PLN_F_PART : PLN_F_MODULE};
  *p = (pln_script_parser){.engine = engine,
                           .text = text,
                           .source = source ? source : "text",
                           .part = part,
                           .result = PLN_NONE};
  pln_arena_init(&p->arena, engine);
  pln_buffer_init(&p->word, engine);
  pln_script_lex_begin(&p->lexer, text);
  p->text.data = p->lexer.begin;
  p->place = base.at = p->lexer.begin;
  p->has_producers = contains(text, "ProducerRealize");
  PLN_TRY(pln_idmap_new(engine, &p->names));
  PLN_TRY(pln_idmap_new(engine, &p->functions));
  PLN_TRY(pln_idmap_new(engine, &p->ranges));
  PLN_TRY(pln_type_prim(engine, PLN_INT32, 1, &p->types[0]));
  PLN_TRY(pln_type_prim(engine, PLN_FLOAT32, 1, &p->types[1]));
  PLN_TRY(pln_type_prim(engine, PLN_BOOL, 1, &p->types[2]));
  PLN_TRY(pln_type_prim(engine, PLN_DTYPE_NONE, 1, &p->types[3]));
  PLN_TRY(pln_module_new(engine, &p->module));
  p->outside = !part;
  PLN_TRY(pln_builder_new(engine, &p->b));
  pln_script_fill_words(p);
  PLN_TRY(pln_script_find_functions(p));
  PLN_TRY(pln_script_open_frame(p, base));
  pln_script_lex_next(&p->lexer, &p->token);
  return PLN_OK;
}

static void finish(pln_script_parser *p) {
  pln_engine *e = p->engine;
  pln_builder_free(p->b);
  pln_module_release(p->module);
  pln_idmap_free(p->names);
  pln_idmap_free(p->functions);
  pln_idmap_free(p->ranges);
  pln_arena_free(&p->arena);
  pln_buffer_free(&p->word);
  for (uint32_t i = 0; i < p->n_tensors; i++)
    pln_tensor_release(p->tensors[i]);
  pln_mem_free(e, p->tensors, p->cap_tensors * sizeof *p->tensors);
  pln_mem_free(e, p->bindings, p->cap_bindings * sizeof *p->bindings);
  pln_mem_free(e, p->known, p->cap_known * sizeof *p->known);
  pln_mem_free(e, p->loop_ranges, p->cap_loop_ranges * sizeof *p->loop_ranges);
  pln_mem_free(e, p->values, p->cap_values * sizeof *p->values);
  pln_mem_free(e, p->kept, p->cap_kept * sizeof *p->kept);
  pln_mem_free(e, p->open, p->cap_open * sizeof *p->open);
  pln_mem_free(e, p->lambdas, p->cap_lambdas * sizeof *p->lambdas);
  pln_mem_free(e, p->frames, p->cap_frames * sizeof *p->frames);
  pln_mem_free(e, p->parts, p->cap_parts * sizeof *p->parts);
  pln_mem_free(e, p->stmts, p->cap_stmts * sizeof *p->stmts);
  pln_mem_free(e, p->saved, p->cap_saved * sizeof *p->saved);
  pln_mem_free(e, p->refs, p->cap_refs * sizeof *p->refs);
  pln_mem_free(e, p->grids, p->cap_grids * sizeof *p->grids);
  pln_mem_free(e, p->targets, p->cap_targets * sizeof *p->targets);
  pln_mem_free(e, p->assigned, p->cap_assigned * sizeof *p->assigned);
}

/* -------------------------------------------------------------------- parts */

/* The expression, or the statements as one. */
static pln_status seal_part(pln_script_parser *p, pln_graph **out) {
  const pln_open_frame *base = &p->frames[0];
  pln_ref root = p->result;
  size_t mark = pln_diag_count(p->engine);
  if (p->n_errors > 0)
    return PLN_ERR_FORMAT;
  if (root != PLN_NONE && p->n_stmts > 0)
    return pln_script_fail_at(p, base->at, 1,
                              "statements follow the expression");
  if (root == PLN_NONE && p->n_stmts == 0)
    return pln_script_fail_at(p, base->at, 1,
                              "an expression or statement is expected");
  pln_status status = PLN_OK;
  if (root == PLN_NONE)
    status = pln_script_sequence(p, 0, &root);
  if (status == PLN_OK)
    status = pln_builder_seal(p->b, root, out);
  p->place = base->at;
  p->place_size = 1;
  if (status != PLN_OK && status != PLN_ERR_NOMEM)
    PLN_TRY(pln_script_locate(p, mark));
  return status;
}

pln_status pln_parse_script_expr(pln_engine *engine, pln_slice text,
                                 const char *source, pln_graph **out) {
  pln_script_parser p;
  pln_graph *graph = NULL;
  pln_stoppable_begin(engine);
  pln_status status = start(&p, engine, text, source, true);
  if (status == PLN_OK)
    status = pln_script_lines(&p);
  if (status == PLN_OK)
    status = seal_part(&p, &graph);
  pln_stoppable_end(engine);
  finish(&p);
  if (status == PLN_OK)
    *out = graph;
  return status;
}

/* ------------------------------------------------------------------ modules */

static pln_status end_module(pln_script_parser *p, pln_module **out) {
  pln_module *module = NULL;
  if (p->n_errors > 0)
    return PLN_ERR_FORMAT;
  if (p->module->count == 0 && !p->class_name)
    return pln_script_fail_at(p, p->lexer.begin, 1,
                              "a module or function is expected");
  if (!p->module_attrs) {
    *out = p->module;
    p->module = NULL;
    return PLN_OK;
  }
  PLN_TRY(pln_module_with_attrs(p->module, p->module_attrs, &module));
  *out = module;
  return PLN_OK;
}

pln_status pln_parse_script(pln_engine *engine, pln_slice text,
                            const char *source, pln_module **out) {
  pln_script_parser p;
  pln_module *module = NULL;
  pln_stoppable_begin(engine);
  pln_status status = start(&p, engine, text, source, false);
  if (status == PLN_OK)
    status = pln_script_lines(&p);
  if (status == PLN_OK)
    status = end_module(&p, &module);
  pln_stoppable_end(engine);
  finish(&p);
  if (status == PLN_OK)
    *out = module;
  return status;
}
