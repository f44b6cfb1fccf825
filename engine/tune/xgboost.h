/* xgboost.h: boosted trees of XGBoost's library, opened at run time. */

#ifndef PLN_TUNE_XGBOOST_H
#define PLN_TUNE_XGBOOST_H

#include "base/base.h"

typedef struct pln_xgboost pln_xgboost;

/* Fits `rows` x `columns` features, row by row, to a target for each row.
 * `file`: the library; NULL: the name that packages have. PLN_ERR_IO: it cannot
 * be opened, or refuses the data. */
pln_status pln_xgboost_fit(pln_engine *engine, const char *file, uint32_t rows,
                           uint32_t columns, const float *features,
                           const float *targets, pln_xgboost **out) PLN_CHECKED;
/* What the trees give for a row of as many features. */
pln_status pln_xgboost_predict(pln_xgboost *model, const float *row,
                               double *out) PLN_CHECKED;
uint32_t pln_xgboost_columns(const pln_xgboost *model);
void pln_xgboost_free(pln_xgboost *model); /* may be NULL */

#endif
