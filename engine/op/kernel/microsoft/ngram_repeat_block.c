/* ngram_repeat_block.c: NGramRepeatBlock of com.microsoft: scores of tokens
 * that would repeat an n-gram become minus infinity. Type and kernel. Called
 * through ops.def. */

#include <math.h>

#include "op/kernel/kernel.h"

/* (ids, scores): sequences by steps, sequences by tokens. */
pln_status pln_infer_ngram_repeat_block(pln_infer *call) {
  int64_t n = pln_call_int(call, "ngram_size", 0);
  if (n < 1)
    return pln_call_error(call, "ngram_size is %lld, not positive",
                          (long long)n);
  PLN_TRY(pln_arg_expect_rank(call, 0, 2));
  PLN_TRY(pln_arg_expect_rank(call, 1, 2));
  pln_result_like(call, 0, 1);
  return PLN_OK;
}

/* Blocks what follows each place where the last n - 1 of `count` ids were
 * before; false if an id that is blocked is no token. */
static bool block_sequence(const int64_t *ids, size_t count, size_t n,
                           float *scores, size_t tokens) {
  const int64_t *last = ids + count - (n - 1);
  for (size_t i = 0; i + n <= count; i++) {
    if (memcmp(ids + i, last, (n - 1) * sizeof *ids) != 0)
      continue;
    int64_t token = ids[i + n - 1];
    if (token < 0 || (size_t)token >= tokens)
      return false;
    scores[token] = -INFINITY;
  }
  return true;
}

pln_status pln_kernel_ngram_repeat_block(pln_kernel_call *call) {
  const pln_tensor *ids = pln_kernel_arg(call, 0), *x = pln_kernel_arg(call, 1);
  int64_t n = pln_kernel_int(call, "ngram_size", 0);
  size_t polled = 0;
  void *out;
  if (ids->dtype != PLN_INT64 || x->dtype != PLN_FLOAT32)
    return pln_kernel_no_dtype(
        call, (pln_dtype)(ids->dtype != PLN_INT64 ? ids->dtype : x->dtype));
  if (ids->rank != 2 || x->rank != 2 || ids->dims[0] != x->dims[0] || n < 1)
    return pln_kernel_refuse(call, "the scores do not match the ids");
  size_t count = (size_t)ids->dims[1], tokens = (size_t)x->dims[1];
  PLN_TRY(pln_kernel_unset(call, 0, PLN_FLOAT32, 2, x->dims, &out));
  if (x->bytes)
    memcpy(out, x->data, x->bytes);
  for (size_t b = 0; b < (size_t)x->dims[0] && (size_t)n <= count; b++) {
    if (!block_sequence((const int64_t *)ids->data + b * count, count,
                        (size_t)n, (float *)out + b * tokens, tokens))
      return pln_kernel_refuse(call, "an id has no score");
    PLN_TRY(pln_poll_after(call->engine, &polled, count));
  }
  return PLN_OK;
}
