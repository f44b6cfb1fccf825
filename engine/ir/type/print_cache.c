/* type/print_cache.c: a cache of printed types with a limit on the total of
 * long texts.
 *
 * Used by the printer and the dumps. Short texts are cached. A long text is
 * printed again at each use, until their total exceeds a limit; from then on
 * long texts that are optional are omitted. */

#include "ir/type/print_cache.h"

#include "base/text/writer.h"

/* SHORT: texts always returned. CACHED: texts up to this length are cached, up
 * to CACHED_TOTAL bytes in all. LONG_SUM: total bytes of long texts before
 * optional ones are omitted. */
enum { SHORT = 256, CACHED = 4096, CACHED_TOTAL = 1 << 26, LONG_SUM = 1 << 24 };

/* The key that marks a type's text as too long, next to the key of the text. */
#define TOO_LONG (UINT64_C(1) << 32)

pln_status pln_type_cache_init(pln_type_cache *texts, pln_engine *engine) {
  *texts = (pln_type_cache){.engine = engine};
  pln_buffer_init(&texts->long_text, engine);
  return pln_fragments_init(&texts->fragments, engine);
}

void pln_type_cache_free(pln_type_cache *texts) {
  if (!texts->engine)
    return;
  pln_buffer_free(&texts->long_text);
  pln_fragments_free(&texts->fragments);
}

/* Appends the text to a buffer, at most about `limit` bytes; *cut: it was
 * truncated. */
static pln_status write_type(pln_type_cache *texts, pln_type type, size_t limit,
                             pln_buffer *out, bool *truncated) {
  pln_writer w;
  pln_writer_init(&w, texts->engine, limit, pln_buffer_write, out);
  w.naming = texts->naming;
  w.meta = texts->meta;
  pln_put_type(&w, type);
  PLN_TRY(pln_writer_end(&w));
  *truncated = w.truncated;
  return PLN_OK;
}

static pln_status cache_type_text(pln_type_cache *texts, pln_type type,
                                  size_t from, pln_slice *out) {
  uint32_t fragment;
  PLN_TRY(pln_fragments_add(&texts->fragments, from, &fragment));
  *out = pln_fragments_text(&texts->fragments, fragment);
  return pln_fragments_store(&texts->fragments, type, fragment);
}

static pln_status make_long(pln_type_cache *texts, pln_type type,
                            pln_slice *out) {
  bool truncated;
  texts->long_text.size = 0;
  PLN_TRY(write_type(texts, type, 0, &texts->long_text, &truncated));
  *out = (pln_slice){texts->long_text.data, texts->long_text.size};
  return PLN_OK;
}

static bool is_too_long(const pln_type_cache *texts, pln_type type) {
  return pln_fragments_find(&texts->fragments, TOO_LONG | type) != PLN_NONE;
}

/* True if one of the first parts is known to be too long; the type is then too
 * long as well. */
static bool has_long_part(const pln_type_cache *texts, pln_type type) {
  enum { MOST = 8 };
  uint32_t n = pln_type_n_parts(texts->engine, type);
  for (uint32_t i = 0; i < n && i < MOST; i++)
    if (is_too_long(texts, pln_type_part_at(texts->engine, type, i)))
      return true;
  return false;
}

static pln_status make_type_text(pln_type_cache *texts, pln_type type,
                                 bool may_lack, pln_slice *out) {
  pln_buffer *text = &texts->fragments.text;
  size_t from = text->size;
  bool truncated, bound = may_lack && texts->long_bytes > LONG_SUM;
  if (bound && is_too_long(texts, type))
    return PLN_OK;
  if (bound && has_long_part(texts, type))
    return pln_fragments_store(&texts->fragments, TOO_LONG | type, 0);
  PLN_TRY(write_type(texts, type, bound ? SHORT : CACHED, text, &truncated));
  if (!truncated && from < CACHED_TOTAL)
    return cache_type_text(texts, type, from, out);
  text->size = from;
  if (truncated && bound)
    return pln_fragments_store(&texts->fragments, TOO_LONG | type, 0);
  return make_long(texts, type, out);
}

pln_status pln_type_cache_get(pln_type_cache *texts, pln_type type,
                              bool may_lack, pln_slice *out) {
  uint32_t fragment = pln_fragments_find(&texts->fragments, type);
  *out = (pln_slice){NULL, 0};
  if (fragment != PLN_NONE)
    *out = pln_fragments_text(&texts->fragments, fragment);
  else
    PLN_TRY(make_type_text(texts, type, may_lack, out));
  if (out->size <= SHORT)
    return PLN_OK;
  if (may_lack && texts->long_bytes > LONG_SUM)
    *out = (pln_slice){NULL, 0};
  else
    texts->long_bytes += out->size;
  return PLN_OK;
}
