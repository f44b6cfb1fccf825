/* relay/metadata/references.h: references meta[type key][i] in printed text,
 * and the metadata section that holds their entries. */

#ifndef PLN_IR_RELAY_METADATA_REFERENCES_H
#define PLN_IR_RELAY_METADATA_REFERENCES_H

#include "base/text/writer.h"
#include "ir/tensor/tensor.h"
#include "ir/type/print_cache.h"

typedef enum pln_metadata_kind {
  PLN_META_CONSTANT, /* a Constant, with its type */
  PLN_META_TENSOR,   /* a tensor in an attribute, which TVM does not type */
  PLN_META_OBJECT,   /* relay/metadata/object.h */
  PLN_META_ATTRS,    /* the attribute struct of a call */
  PLN_META_DIM,      /* a symbolic dim that is a tir.Var in TVM */
  PLN_META_TEXT      /* a string */
} pln_metadata_kind;

typedef struct pln_metadata_entry {
  uint8_t kind;  /* pln_metadata_kind */
  uint32_t next; /* next entry of the same type key, or PLN_NONE */
  uint32_t root; /* while writing the section: its node */
  union {
    const pln_tensor *tensor; /* borrowed */
    pln_slice object;         /* borrowed; TEXT: likewise */
    pln_attrs attrs;          /* a list with names, in TVM's order */
    struct {
      pln_symbol name;
      pln_slice dtype;
    } dim;
  } of;
} pln_metadata_entry;

typedef struct pln_metadata_key {
  pln_slice name;              /* "relay.Constant" */
  uint32_t first, last, count; /* entries */
  uint32_t row;                /* while writing the section: the node that lists
                                * them */
} pln_metadata_key;

typedef struct pln_metadata {
  pln_engine *engine;
  pln_metadata_key *keys; /* in order of first use */
  uint32_t n_keys, cap_keys;
  pln_metadata_entry *entries; /* also in order of first use */
  uint32_t count, capacity;
  pln_interner *objects; /* objects already entered */
  uint32_t *object_numbers;
  uint32_t cap_object_numbers;
  bool by_digest;        /* references to tensors show a digest */
  pln_attrs tir_vars;    /* name of a dim -> dtype of its tir.Var */
  pln_idmap *dim_number; /* symbol of a dim -> its index + 1 */
} pln_metadata;

pln_status pln_metadata_init(pln_metadata *meta,
                             pln_engine *engine) PLN_CHECKED;
void pln_metadata_free(pln_metadata *meta);
/* Adds a Constant; *number is its index. */
pln_status pln_metadata_add(pln_metadata *meta, const pln_tensor *tensor,
                            uint32_t *number) PLN_CHECKED;

/* Write a reference inside attributes. Each tensor and each attribute struct is
 * a new entry; objects of equal text share one. Without a metadata section the
 * index is a question mark. */
void pln_put_meta_tensor(pln_writer *w, const pln_tensor *tensor);
void pln_put_meta_object(pln_writer *w, pln_slice object);
/* `attrs` is a list with names, from pln_relay_write. */
void pln_put_meta_attrs(pln_writer *w, const char *type_key, pln_attrs attrs);

/* The type key of an entry without references: the module's own attributes,
 * `name=value, ...`. TVM ignores it. */
#define PLN_META_MODULE "IRModule"
/* Adds the text, borrowed until the section is written. */
pln_status pln_metadata_add_module(pln_metadata *meta,
                                   pln_slice text) PLN_CHECKED;

/* Writes the section, or nothing without entries. Tensors over 1 MiB in files
 * are written as file ranges, large splats as one element
 * (relay/metadata/write_array.c). */
void pln_write_metadata_section(pln_writer *w, pln_metadata *meta);

/* relay/metadata/write_array.c: one of the section's arrays, as TVM's NDArray
 * in base64, or
 * {"dtype": .., "shape": [..], "file": path, "offset": .., "length": ..}, or
 * {"dtype": .., "shape": [..], "splat": an element in base64}, or, in brief
 * text, {"dtype": .., "shape": [..], "omitted": a hash} or {"dtype": ..,
 * "shape": [..], "omitted": true, "file": name, "offset": .., "length": ..}. */
#define PLN_META_OMITTED "omitted"
/* Brief text includes the elements of tensors up to this size. */
#define PLN_BRIEF_ELEMENTS 64
void pln_put_array(pln_writer *w, const pln_tensor *tensor);
/* A reference with a digest in place of the constant's index: a hash, or for
 * unread files the file range. */
void pln_put_constant_digest(pln_writer *w, const pln_tensor *tensor);

#endif
