/* pipeline.h: loops that are marked as software pipelines; for
 * tir.InjectSoftwarePipeline. */

#ifndef PLN_LOWER_PIPELINE_PIPELINE_H
#define PLN_LOWER_PIPELINE_PIPELINE_H

#include "lower/emit.h"
#include "lower/lower.h"

/* A statement of the loop's body. */
typedef struct pln_pipeline_child {
  pln_ref stmt;  /* a BlockRealize without condition, when all are blocks */
  pln_ref block; /* its Block, else PLN_NONE */
  int64_t stage, order;
  bool async;        /* what it writes is waited for */
  uint32_t by_order; /* number of the child that is the i-th in order */
} pln_pipeline_child;

typedef struct pln_pipeline {
  pln_ref loop;
  uint32_t first, n; /* children */
  uint32_t first_alloc, n_allocs;
  int64_t max_stage;
} pln_pipeline;

/* What a node is to the pipeline that it is in. */
typedef enum pln_pipeline_role {
  PLN_PIPELINE_NONE,
  PLN_PIPELINE_LOOP,
  PLN_PIPELINE_SHELL, /* a block whose statements are children */
  PLN_PIPELINE_CHILD,
  PLN_PIPELINE_CHILD_BLOCK
} pln_pipeline_role;

typedef struct pln_pipelines {
  const pln_graph *g;
  pln_pipeline *items; /* those that have none inside of them */
  uint32_t n, cap;
  pln_pipeline_child *children;
  uint32_t n_children, cap_children;
  pln_ref *allocs; /* Buffers that are allocated in the loops */
  uint32_t n_allocs, cap_allocs;
  pln_scope *scope_of;     /* by node */
  uint8_t *roles;          /* by node */
  uint32_t *number;        /* by node: of a loop, or a child and its Block */
  int64_t *versions;       /* by node: of a Buffer, 0: it has one */
  pln_ref *reads, *writes; /* by scope: BlockReads, BlockWrites, or PLN_NONE */
} pln_pipelines;

/* Finds the innermost pipelines and their children; `blocks`: these are blocks,
 * and stages, orders and versions of memory are found and checked.
 * PLN_ERR_ARGUMENT: it is no pipeline. */
pln_status pln_pipelines_find(const pln_graph *g, bool blocks,
                              pln_pipelines *out) PLN_CHECKED;
void pln_pipelines_free(pln_pipelines *all);
/* Region `i` of what a child, which is a block, reads or writes, as its Buffer;
 * PLN_NONE: there are less. */
pln_ref pln_pipeline_buffer(const pln_pipelines *all,
                            const pln_pipeline_child *child, bool writes,
                            uint32_t i);
/* Whether there is a loop that is marked. */
bool pln_has_pipeline(const pln_graph *g);

/* access_regions.c: passes before and after the rewriting. Children that are no
 * blocks become such; blocks of pln_pipeline_block get what they read and
 * write. */
pln_status pln_pipeline_make_blocks(pln_pass_run *run) PLN_CHECKED;
pln_status pln_pipeline_fill_regions(pln_pass_run *run) PLN_CHECKED;
/* A Block without variables and its BlockRealize. `body` has what it reads and
 * writes, or `fill`. */
pln_status pln_pipeline_block(pln_builder *b, pln_attrs attrs, bool fill,
                              pln_ref condition, pln_ref body,
                              pln_ref *out) PLN_CHECKED;

#endif
