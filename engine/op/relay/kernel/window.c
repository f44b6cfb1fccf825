/* window.c: see window.h. Called by the kernels of Relay's convolutions and
 * pooling. */

#include "op/relay/kernel/window.h"

bool pln_relay_ints(const pln_kernel_call *call, const char *name, uint32_t n,
                    int64_t other, int64_t *out) {
  pln_list list = pln_kernel_list(call, PLN_NONE, name);
  for (uint32_t i = 0; i < n; i++)
    out[i] = list.count == 0   ? other
             : list.count == 1 ? list.ints[0]
             : i < list.count  ? list.ints[i]
                               : other;
  return list.count <= 1 || list.count == n;
}

bool pln_relay_pads(const pln_kernel_call *call, uint32_t n, int64_t *out) {
  pln_list list = pln_kernel_list(call, PLN_NONE, "padding");
  if (list.count == 2 * n) {
    memcpy(out, list.ints, 2 * n * sizeof *out);
    return true;
  }
  bool good = pln_relay_ints(call, "padding", n, 0, out);
  memcpy(out + n, out, n * sizeof *out);
  return good;
}

void pln_compose_window(pln_composition *s, uint32_t n, const int64_t *pads) {
  int64_t strides[PLN_WINDOW_AXES], dilations[PLN_WINDOW_AXES];
  int64_t own[2 * PLN_WINDOW_AXES];
  if (!pln_relay_ints(s->call, "strides", n, 1, strides) ||
      !pln_relay_ints(s->call, "dilation", n, 1, dilations) ||
      !pln_relay_pads(s->call, n, own))
    pln_composition_refuse(s, "the window does not match the operand");
  pln_compose_ints(s, "strides", n, strides);
  pln_compose_ints(s, "dilations", n, dilations);
  pln_compose_ints(s, "pads", 2 * n, pads ? pads : own);
}

/* ------------------------------------------------------------------ layouts */

static pln_slice layout_in(const pln_kernel_call *call, const char *attr,
                           pln_slice other) {
  pln_slice text = {0};
  if (attr)
    text = pln_attrs_string(call->engine, call->attrs, attr, "");
  return text.size ? text : other;
}

const pln_tensor *pln_compose_to_plain_layout(pln_composition *s,
                                              const pln_tensor *x,
                                              const char *attr,
                                              const char *plain) {
  pln_slice from = layout_in(s->call, attr, pln_text(plain));
  return pln_compose_layout(s, x, from, pln_text(plain));
}

const pln_tensor *pln_compose_from_plain_layout(pln_composition *s,
                                                const pln_tensor *y,
                                                const char *attr,
                                                const char *other,
                                                const char *plain) {
  pln_slice to = layout_in(s->call, other, pln_text(plain));
  return pln_compose_layout(s, y, pln_text(plain),
                            layout_in(s->call, attr, to));
}
