/* murmur_hash.c: MurmurHash3 of com.microsoft: the 32-bit hash of each element.
 * Type and kernel. Called through ops.def.
 *
 * Definition: MurmurHash3_x86_32 by Austin Appleby over the bytes of the
 * element, low bytes first, or of the string. */

#include "op/kernel/kernel.h"

pln_status pln_infer_murmur_hash(pln_infer *call) {
  bool positive = pln_call_int(call, "positive", 1) != 0;
  return pln_result_shaped_like(call, 0, 0, positive ? PLN_UINT32 : PLN_INT32);
}

static uint32_t rotate_left(uint32_t x, int n) {
  return x << n | x >> (32 - n);
}

static uint32_t scramble(uint32_t block) {
  return rotate_left(block * 0xcc9e2d51u, 15) * 0x1b873593u;
}

/* `size` bytes as a number, low bytes first. */
static uint32_t read_block(const uint8_t *data, size_t size) {
  uint32_t block = 0;
  for (size_t i = 0; i < size; i++)
    block |= (uint32_t)data[i] << 8 * i;
  return block;
}

static uint32_t hash_bytes(const uint8_t *data, size_t size, uint32_t seed) {
  uint32_t h = seed;
  size_t whole = size / 4 * 4;
  for (size_t i = 0; i < whole; i += 4)
    h = rotate_left(h ^ scramble(read_block(data + i, 4)), 13) * 5 +
        0xe6546b64u;
  if (size > whole)
    h ^= scramble(read_block(data + whole, size - whole));
  h ^= (uint32_t)size;
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

static bool is_hashed(pln_dtype dtype) {
  return dtype == PLN_INT32 || dtype == PLN_UINT32 || dtype == PLN_INT64 ||
         dtype == PLN_UINT64 || dtype == PLN_FLOAT32 || dtype == PLN_FLOAT64 ||
         dtype == PLN_STRING;
}

pln_status pln_kernel_murmur_hash(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  bool positive = pln_kernel_int(call, "positive", 1) != 0;
  uint32_t seed = (uint32_t)pln_kernel_int(call, "seed", 0);
  size_t size = pln_element_size((pln_dtype)x->dtype), polled = 0;
  void *data;
  if (!is_hashed((pln_dtype)x->dtype))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  PLN_TRY(pln_kernel_unset(call, 0, positive ? PLN_UINT32 : PLN_INT32, x->rank,
                           x->dims, &data));
  for (size_t i = 0; i < x->count; i++) {
    pln_slice text = {(const char *)x->data + i * size, size};
    if (x->dtype == PLN_STRING)
      text = ((const pln_slice *)x->data)[i];
    ((uint32_t *)data)[i] =
        hash_bytes((const uint8_t *)text.data, text.size, seed);
    PLN_TRY(pln_poll_after(call->engine, &polled, 1 + text.size));
  }
  return PLN_OK;
}
