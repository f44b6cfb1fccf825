/* features.h: which features a program uses (features.def). For passes that
 * handle some of them only, and for pl.features. */

#ifndef PLN_IR_ANALYSIS_FEATURES_H
#define PLN_IR_ANALYSIS_FEATURES_H

#include "ir/graph/graph.h"

enum {
#define FEATURE(id, name, doc) PLN_FEATURE_NUMBER_##id,
#include "ir/analysis/features.def"
  PLN_N_FEATURES
};

enum {
#define FEATURE(id, name, doc) PLN_FEATURE_##id = 1 << PLN_FEATURE_NUMBER_##id,
#include "ir/analysis/features.def"
  PLN_ALL_FEATURES = (1 << PLN_N_FEATURES) - 1
};

/* The names of features, by number. */
extern const char *const pln_feature_names[PLN_N_FEATURES];

/* *out: the features that the sealed function uses, as bits. Linear. */
pln_status pln_graph_features(const pln_graph *graph,
                              uint32_t *out) PLN_CHECKED;
/* *out: the bit of a name. PLN_ERR_NAME with the most similar name if there is
 * none. */
pln_status pln_feature_find(pln_engine *engine, const char *name,
                            uint32_t *out) PLN_CHECKED;

#endif
