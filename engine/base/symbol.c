/* symbol.c: interned strings: symbols are ids of the engine's interner. */

#include "base/base.h"

pln_status pln_symbol_intern(pln_engine *engine, pln_slice text,
                             pln_symbol *out) {
  return pln_intern(engine->symbols, text.data, text.size, out, NULL);
}

pln_slice pln_symbol_text(const pln_engine *engine, pln_symbol symbol) {
  pln_slice text = {"", 0};
  if (symbol && symbol <= pln_interner_count(engine->symbols))
    text.data = pln_interned(engine->symbols, symbol, &text.size);
  return text;
}
