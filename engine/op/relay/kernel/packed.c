/* packed.c: kernels of Relay's operators on packed operands:
 * nn.contrib_dense_pack, nn.bitpack. Called through ops.def.
 *
 *     nn.contrib_dense_pack(x, w)   =>   nn.dense(x, w in layout NC)
 *
 * Semantics: TVM's TOPI. The first of packed elements is in the high bits. */

#include "op/kernel/composed.h"
#include "op/relay/data_layout.h"
#include "op/relay/kernel/window.h"

/* (x, weights in blocks of rows) */
pln_status pln_kernel_dense_pack(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *w = pln_compose_to_plain_layout(&s, pln_kernel_arg(call, 1),
                                                    "weight_layout", "NC");
  pln_compose_int(&s, "transB", 1);
  return pln_composition_finish(
      &s, pln_compose_binary(&s, PLN_OP_GEMM, pln_kernel_arg(call, 0), w));
}

/* ----------------------------------------------------------------- bitpack */

typedef struct packing {
  uint32_t bits, width; /* planes; elements in a word */
  uint32_t pack, bit;   /* the packed axis of the operand; the new axis */
  size_t outer, extent, inner;
  pln_dtype dtype;
} packing;

/* Reads the attributes. Negative axes count from the end of the result. */
static bool read_packing(const pln_kernel_call *call, packing *p) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_slice name = pln_attrs_string(call->engine, call->attrs, "pack_type", "");
  int64_t bits = pln_kernel_int(call, "bits", 1);
  p->dtype = name.size ? pln_dtype_find(name) : PLN_UINT32;
  if (bits < 1 || bits > 8 || x->rank + 1 > PLN_MAX_RANK ||
      !pln_dtype_is_integer(p->dtype) || pln_dtype_bits(p->dtype) < 8 ||
      !pln_kernel_axis(pln_kernel_int(call, "pack_axis", 1), x->rank,
                       &p->pack) ||
      !pln_kernel_axis(pln_kernel_int(call, "bit_axis", -1), x->rank + 1,
                       &p->bit))
    return false;
  p->bits = (uint32_t)bits;
  p->width = pln_dtype_bits(p->dtype);
  p->extent = (size_t)x->dims[p->pack];
  p->outer = pln_dims_product(x->dims, 0, p->pack);
  p->inner = pln_dims_product(x->dims, p->pack + 1, x->rank);
  return p->extent % p->width == 0;
}

/* One plane of bits: `extent / width` words on the packed axis. */
static void pack_plane(const packing *p, const uint8_t *in, uint32_t plane,
                       uint64_t *out) {
  size_t words = p->extent / p->width;
  for (size_t i = 0; i < p->outer * words * p->inner; i++) {
    size_t inner = i % p->inner, word = i / p->inner % words;
    size_t outer = i / p->inner / words;
    uint64_t bits = 0;
    for (size_t k = 0; k < p->width; k++) {
      size_t at = (outer * p->extent + word * p->width + k) * p->inner + inner;
      bits = bits << 1 | (in[at] >> plane & 1);
    }
    out[i] = bits;
  }
}

/* All planes along a new first axis, then moved to the axis `bit`. */
static const pln_tensor *pack_planes(pln_composition *s, const packing *p,
                                     const pln_tensor *x) {
  int64_t dims[PLN_MAX_RANK], axes[PLN_MAX_RANK];
  pln_tensor *t = NULL;
  dims[0] = p->bits;
  memcpy(dims + 1, x->dims, x->rank * sizeof *dims);
  dims[1 + p->pack] /= p->width;
  s->status =
      pln_tensor_unset(s->call->engine, PLN_UINT64, x->rank + 1, dims, &t);
  if (!pln_compose_own(s, t))
    return NULL;
  uint64_t *out = pln_tensor_writable(t);
  for (uint32_t i = 0; i < p->bits; i++)
    pack_plane(p, x->data, i, out + i * (t->count / p->bits));
  for (uint32_t i = 0, from = 1; i <= x->rank; i++)
    axes[i] = i == p->bit ? 0 : from++;
  return pln_compose_transpose(s, t, x->rank + 1, axes);
}

pln_status pln_kernel_bitpack(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  packing p;
  pln_composition s;
  if (x->rank == 0 || !pln_dtype_is_integer((pln_dtype)x->dtype))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (!read_packing(call, &p))
    return pln_kernel_refuse(call, "bits, pack_type and axes do not match the "
                                   "operand");
  pln_composition_begin(&s, call);
  const pln_tensor *bytes = pln_compose_cast(&s, x, PLN_UINT8);
  const pln_tensor *words = bytes ? pack_planes(&s, &p, bytes) : NULL;
  return pln_composition_finish(&s, pln_compose_cast(&s, words, p.dtype));
}
