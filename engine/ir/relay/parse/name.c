/* relay/parse/name.c: parses names and resolves them in their scope.
 *
 * Called by the files of the parser. One symbol table holds the visible
 * variables and type variables; bindings are kept in order, so that a scope
 * ends by removing the newest. */

#include <stdio.h>

#include "base/text/source_text.h"
#include "ir/relay/parse/parse.h"

/* ------------------------------------------------------------------- texts */

pln_status pln_parse_text(pln_parser *p, const pln_token *token,
                          pln_slice *out) {
  pln_slice text = token->text;
  *out = text;
  if (!token->escaped)
    return PLN_OK;
  p->word.size = 0;
  PLN_TRY(pln_text_unescape(text, &p->word));
  *out = (pln_slice){p->word.data, p->word.size};
  return PLN_OK;
}

pln_status pln_parse_symbol(pln_parser *p, const pln_token *token,
                            pln_symbol *out) {
  pln_slice text;
  PLN_TRY(pln_parse_text(p, token, &text));
  return pln_symbol_intern(p->engine, text, out);
}

/* ---------------------------------------------------------------- bindings */

static uint64_t parsed_name_key(pln_name_space space, pln_symbol name) {
  return (uint64_t)space << 32 | name;
}

pln_status pln_parse_bind(pln_parser *p, pln_name_space space, pln_symbol name,
                          uint32_t value) {
  uint64_t key = parsed_name_key(space, name);
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->bindings, &p->cap_bindings,
                       (size_t)p->n_bindings + 1, sizeof *p->bindings));
  uint32_t former = pln_idmap_get(p->names, key);
  PLN_TRY(pln_idmap_set(p->names, key, p->n_bindings + 1));
  p->bindings[p->n_bindings++] = (pln_graph_binding){key, value, former};
  return PLN_OK;
}

bool pln_parse_lookup(const pln_parser *p, pln_name_space space,
                      pln_symbol name, uint32_t *value) {
  uint32_t found = pln_idmap_get(p->names, parsed_name_key(space, name));
  if (found)
    *value = p->bindings[found - 1].value;
  return found != 0;
}

/* Setting an existing key cannot fail. */
void pln_parse_unbind(pln_parser *p, uint32_t mark) {
  while (p->n_bindings > mark) {
    const pln_graph_binding *b = &p->bindings[--p->n_bindings];
    pln_status status = pln_idmap_set(p->names, b->key, b->former);
    (void)status;
  }
}

/* ----------------------------------------------------------- unknown names */

uint32_t pln_parse_visible(const pln_parser *p, pln_name_space space,
                           uint32_t most, const char **names) {
  uint32_t n = 0;
  for (uint32_t i = p->n_bindings; i-- > 0 && n < most;)
    if (p->bindings[i].key >> 32 == space)
      names[n++] =
          pln_symbol_text(p->engine, (pln_symbol)p->bindings[i].key).data;
  return n;
}

/* A name that is not an interned symbol cannot be bound; looking it up must not
 * intern it. */
bool pln_parse_is_variable(pln_parser *p, const pln_token *token) {
  for (uint32_t i = p->n_bindings; i-- > 0;) {
    uint64_t key = p->bindings[i].key;
    if (key >> 32 == PLN_SPACE_LOCAL &&
        pln_slice_equal(pln_symbol_text(p->engine, (pln_symbol)key),
                        token->text))
      return true;
  }
  return false;
}

pln_status pln_parse_unknown(pln_parser *p, const pln_token *token,
                             const char *what, uint32_t n,
                             const char *const *names) {
  char wanted[80], hint[160];
  int size = token->text.size > 70 ? 70 : (int)token->text.size;
  snprintf(wanted, sizeof wanted, "%.*s", size, token->text.data);
  pln_suggest(wanted, n, names, hint, sizeof hint);
  return pln_parse_report(p, token, PLN_ERR_NAME, "no %s is called '%s'%s",
                          what, wanted, hint);
}
