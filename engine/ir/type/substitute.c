/* type/substitute.c: type substitution: rebuilds types with some parts
 * replaced.
 *
 * Called by unification, instantiation and type visitors. Each part is mapped
 * once, however often it occurs; an explicit stack replaces recursion.
 * Invariant: `images` has an entry for each type that was begun, BEGUN until
 * its image is known. */

#include "ir/type/substitute.h"
#include "ir/type/type.h"

/* Marks a type whose frame is still open. */
#define BEGUN UINT32_MAX

void pln_type_substitution_reset(pln_type_substitution *map) {
  pln_idmap_free(map->images);
  map->images = NULL;
  map->n_frames = map->n_parts = 0;
}

void pln_type_substitution_free(pln_type_substitution *map) {
  pln_type_substitution_reset(map);
  pln_mem_free(map->engine, map->frames, map->cap_frames * sizeof *map->frames);
  pln_mem_free(map->engine, map->parts, map->cap_parts * sizeof *map->parts);
  map->frames = NULL;
  map->parts = NULL;
  map->cap_frames = map->cap_parts = 0;
}

static pln_status push_mapped_part(pln_type_substitution *map, pln_type type) {
  PLN_TRY(pln_mem_grow(map->engine, (void **)&map->parts, &map->cap_parts,
                       (size_t)map->n_parts + 1, sizeof *map->parts));
  map->parts[map->n_parts++] = type;
  return PLN_OK;
}

static pln_status keep_image(pln_type_substitution *map, pln_type type,
                             uint32_t image) {
  if (map->afresh)
    return PLN_OK;
  if (!map->images)
    PLN_TRY(pln_idmap_new(map->engine, &map->images));
  return pln_idmap_set(map->images, type, image);
}

pln_status pln_type_substitution_bind(pln_type_substitution *map, pln_type type,
                                      pln_type image) {
  return keep_image(map, type, image + 1);
}

static pln_status push_map_frame(pln_type_substitution *map, pln_type type,
                                 pln_type walked) {
  PLN_TRY(keep_image(map, type, BEGUN));
  PLN_TRY(pln_mem_grow(map->engine, (void **)&map->frames, &map->cap_frames,
                       (size_t)map->n_frames + 1, sizeof *map->frames));
  map->frames[map->n_frames++] = (pln_substitution_frame){
      .type = type, .walked = walked, .first = map->n_parts};
  return PLN_OK;
}

/* Maps a type immediately, or opens a frame for it. */
static pln_status begin_mapped_type(pln_type_substitution *map, pln_type type) {
  if (!(pln_type_flags(map->engine, type) & map->flags))
    return push_mapped_part(map, type);
  uint32_t known = map->images ? pln_idmap_get(map->images, type) : 0;
  if (known == BEGUN)
    return pln_diag_error(map->engine, PLN_ERR_TYPE, NULL,
                          "the type is infinite: it contains itself");
  if (known)
    return push_mapped_part(map, known - 1);
  pln_type image = type;
  bool again = false;
  if (map->image)
    PLN_TRY(map->image(map->ud, type, &image, &again));
  if (image == type || again)
    return push_map_frame(map, type, image);
  PLN_TRY(keep_image(map, type, image + 1));
  return push_mapped_part(map, image);
}

static pln_status finish_mapped_type(pln_type_substitution *map) {
  pln_substitution_frame frame = map->frames[--map->n_frames];
  pln_type image;
  if (frame.walked != frame.type) {
    image = map->parts[frame.first];
    if (map->leave)
      map->leave(map->ud, frame.type, image);
  } else {
    const pln_type *parts = map->parts ? map->parts + frame.first : NULL;
    PLN_TRY(pln_type_rebuild(map->engine, frame.type, parts, &image));
  }
  map->n_parts = frame.first;
  PLN_TRY(keep_image(map, frame.type, image + 1));
  return push_mapped_part(map, image);
}

static pln_status map_next_type(pln_type_substitution *map) {
  pln_substitution_frame *top = &map->frames[map->n_frames - 1];
  uint32_t n = 1;
  const pln_type *parts = &top->walked;
  if (top->walked == top->type)
    parts = pln_type_all_parts(map->engine, top->type, &n);
  if (top->done == n)
    return finish_mapped_type(map);
  return begin_mapped_type(map, parts[top->done++]);
}

pln_status pln_type_substitution_apply(pln_type_substitution *map,
                                       pln_type type, pln_type *out) {
  map->n_frames = map->n_parts = 0;
  PLN_TRY(begin_mapped_type(map, type));
  while (map->n_frames > 0)
    PLN_TRY(map_next_type(map));
  *out = map->parts[0];
  return PLN_OK;
}

/* ------------------------------------------------------------ substitution */

pln_status pln_type_substitute(pln_engine *engine, pln_type type, uint32_t n,
                               const pln_type *vars, const pln_type *types,
                               pln_type *out) {
  pln_type_substitution map = {.engine = engine, .flags = PLN_TYPE_HAS_VAR};
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < n && status == PLN_OK; i++)
    status = pln_type_substitution_bind(&map, vars[i], types[i]);
  if (status == PLN_OK)
    status = pln_type_substitution_apply(&map, type, out);
  pln_type_substitution_free(&map);
  return status;
}
