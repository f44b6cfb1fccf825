/* tree.h: decision trees of ai.onnx.ml, from the attributes of their operators.
 */

#ifndef PLN_OP_KERNEL_ML_TREE_H
#define PLN_OP_KERNEL_ML_TREE_H

#include "op/kernel/ml/attributes.h"

typedef enum pln_tree_mode { /* as in nodes_modes of TreeEnsemble */
                             PLN_TREE_LEQ,
                             PLN_TREE_LT,
                             PLN_TREE_GTE,
                             PLN_TREE_GT,
                             PLN_TREE_EQ,
                             PLN_TREE_NEQ,
                             PLN_TREE_MEMBER,
                             PLN_TREE_TERMINAL
} pln_tree_mode;

typedef struct pln_tree_node {
  uint8_t mode;
  bool missing_is_true; /* NaN takes the true branch */
  double split;
  int64_t feature;
  uint32_t yes, no;      /* nodes */
  uint32_t first, count; /* weights of a leaf; members of a set */
} pln_tree_node;

typedef struct pln_tree_weight {
  int64_t target;
  double value;
} pln_tree_weight;

/* Arrays are in tensors that the composition owns. */
typedef struct pln_trees {
  pln_tree_node *nodes;
  pln_tree_weight *weights;
  const double *members;
  uint32_t *roots;
  size_t n_nodes, n_weights, n_roots;
} pln_trees;

/* Reads the attributes of tree_ensemble_classifier and _regressor; those of
 * weights begin with `prefix`, "class" or "target". Targets are below
 * `targets`. After a failure the composition has a status. */
void pln_trees_read(pln_composition *s, const char *prefix, int64_t targets,
                    pln_trees *out);
/* The same for tree_ensemble. */
void pln_trees_read_compact(pln_composition *s, int64_t targets,
                            pln_trees *out);
/* The leaf that a row of `columns` features ends in; NULL if the tree has a
 * cycle or a feature is no column. */
const pln_tree_node *pln_tree_terminal(const pln_trees *t, uint32_t root,
                                       const double *row, int64_t columns);

#endif
