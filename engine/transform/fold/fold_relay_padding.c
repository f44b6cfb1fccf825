/* fold_relay_padding.c: FoldExplicitPadding for Relay's operators.
 *
 * Called by fold_explicit_padding.c for each call. An nn.pad that adds borders
 * along spatial axes only is joined with the padding of what uses it: nn.conv1d
 * to nn.conv3d and nn.avg_pool1d to 3d if it adds zeros, nn.max_pool1d to 3d if
 * it adds the least number of the dtype, qnn.conv2d if it adds the zero point.
 * An average that counted no padding counts all of it then, unless it has some
 * of its own.
 *
 *     nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), %w)
 *       =>   nn.conv2d(%x, %w, padding=[1, 1, 1, 1])
 *
 * Semantics: TVM FoldExplicitPadding. */

#include "transform/fold/fold_relay_padding.h"
#include "ir/tensor/tensor.h"
#include "op/infer/window.h"
#include "op/relay/data_layout.h"

enum { MAX_SPACE = 3, MOST = 1 << 24 };

typedef enum window_kind { NO_WINDOW, CONV, QNN_CONV, AVG, MAX } window_kind;

/* A call with a window, the nn.pad before it, and the padding that both make
 * together: before each spatial axis, then after each. */
typedef struct padded_window {
  window_kind kind;
  pln_infer call, pad;
  pln_data_layout layout;
  uint32_t space;
  bool own; /* the window has padding of its own */
  int64_t padding[2 * MAX_SPACE];
} padded_window;

static window_kind kind_of(pln_op op, uint32_t *space, const char **layout) {
  static const char *const layouts[] = {"NCW", "NCHW", "NCDHW"};
  window_kind kind = NO_WINDOW;
  switch (op) {
  case PLN_OP_CONV_1D: kind = CONV, *space = 1; break;
  case PLN_OP_CONV_2D: kind = CONV, *space = 2; break;
  case PLN_OP_CONV_3D: kind = CONV, *space = 3; break;
  case PLN_OP_QNN_CONV_2D: kind = QNN_CONV, *space = 2; break;
  case PLN_OP_AVG_POOL_1D: kind = AVG, *space = 1; break;
  case PLN_OP_AVG_POOL_2D: kind = AVG, *space = 2; break;
  case PLN_OP_AVG_POOL_3D: kind = AVG, *space = 3; break;
  case PLN_OP_MAX_POOL_1D: kind = MAX, *space = 1; break;
  case PLN_OP_MAX_POOL_2D: kind = MAX, *space = 2; break;
  case PLN_OP_MAX_POOL_3D: kind = MAX, *space = 3; break;
  default: return NO_WINDOW;
  }
  *layout = layouts[*space - 1];
  return kind;
}

static bool is_valid_call(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CALL && n->data && !n->results &&
         pln_call_is_valid(g, node);
}

static bool find_window(const pln_graph *g, pln_ref node, padded_window *w) {
  const char *layout;
  *w = (padded_window){.kind = NO_WINDOW};
  if (!is_valid_call(g, node))
    return false;
  w->call = pln_infer_of(g, node);
  w->kind = kind_of(w->call.op, &w->space, &layout);
  if (w->kind == NO_WINDOW || !is_valid_call(g, w->call.args[0]))
    return false;
  w->pad = pln_infer_of(g, w->call.args[0]);
  const char *name =
      w->kind == AVG || w->kind == MAX ? "layout" : "data_layout";
  pln_slice text = pln_attrs_string(g->engine, w->call.attrs, name, layout);
  return w->pad.op == PLN_OP_PAD && w->pad.n_args == 2 &&
         pln_call_has(&w->pad, "pad_width") &&
         pln_call_string_is(&w->pad, "pad_mode", "constant", "constant") &&
         pln_data_layout_read(text, &w->layout);
}

/* -------------------------------------------------------------- the padding */

/* Attribute `padding` has one element for all, one per axis, or two per axis.
 */
static bool read_own(padded_window *w) {
  uint32_t n, space = w->space;
  const int64_t *ints = pln_call_ints(&w->call, "padding", &n);
  if (!ints || n == 0)
    return true;
  if (n != 1 && n != space && n != 2 * space)
    return false;
  for (uint32_t i = 0; i < 2 * space; i++) {
    int64_t pad = ints[n == 1 ? 0 : n == space ? i % space : i];
    if (pad < 0 || pad > MOST)
      return false;
    w->own |= pad != 0;
    w->padding[i] = pad;
  }
  return true;
}

static bool is_spatial(const pln_data_layout *l, uint32_t axis) {
  return strchr("DHW", l->letter[axis]) && !l->factor[axis];
}

static bool add_widths(padded_window *w) {
  int64_t widths[2 * PLN_MAX_RANK];
  const pln_engine *e = w->call.engine;
  uint32_t n = pln_read_pad_widths(
                   e, pln_attrs_find(e, w->pad.attrs, "pad_width"), widths) /
               2;
  uint32_t axis = 0;
  if ((int32_t)n != w->layout.rank)
    return false;
  for (uint32_t i = 0; i < n; i++) {
    int64_t before = widths[i], after = widths[i + n];
    if (before < 0 || after < 0 || before > MOST || after > MOST)
      return false;
    if (is_spatial(&w->layout, i) && axis < w->space) {
      w->padding[axis] += before;
      w->padding[w->space + axis++] += after;
    } else if (before || after) {
      return false;
    }
  }
  return axis == w->space;
}

/* ------------------------------------------------------------- what is added
 */

static bool read_scalar(const pln_infer *call, uint32_t i, double *out) {
  const pln_tensor *t = i < call->n_args ? pln_arg_tensor(call, i) : NULL;
  return t && t->count == 1 && pln_tensor_number(t, 0, out);
}

/* The least number of the dtype of the value that is added. */
static bool is_least(const pln_infer *pad, double value) {
  pln_dtype dtype = pln_arg_dtype(pad, 1);
  int64_t least;
  if (pln_dtype_is_float(dtype))
    return value == -pln_float_greatest(dtype);
  switch (dtype) {
  case PLN_INT8: least = INT8_MIN; break;
  case PLN_INT16: least = INT16_MIN; break;
  case PLN_INT32: least = INT32_MIN; break;
  case PLN_UINT8:
  case PLN_UINT16:
  case PLN_UINT32:
  case PLN_UINT64: least = 0; break;
  default: return false;
  }
  return value == (double)least;
}

static bool adds_what_padding_adds(const padded_window *w) {
  double value, zero_point;
  if (!read_scalar(&w->pad, 1, &value))
    return false;
  switch (w->kind) {
  case QNN_CONV:
    return read_scalar(&w->call, 2, &zero_point) && value == zero_point;
  case MAX: return is_least(&w->pad, value);
  case AVG:
    return value == 0 && !pln_call_int(&w->call, "ceil_mode", 0) &&
           (!w->own || pln_call_int(&w->call, "count_include_pad", 0));
  case CONV: return value == 0;
  case NO_WINDOW: break;
  }
  return false;
}

/* -------------------------------------------------------------- replacement */

static pln_status padded_attrs(const padded_window *w, pln_attrs *out) {
  pln_engine *e = w->call.engine;
  pln_attr padding = {
      .kind = PLN_ATTR_INTS, .count = 2 * w->space, .v.ints = w->padding};
  pln_attr all = {.kind = PLN_ATTR_INT, .v.i = 1};
  PLN_TRY(pln_symbol_intern(e, pln_text("padding"), &padding.name));
  PLN_TRY(pln_attrs_with(e, w->call.attrs, &padding, out));
  if (w->kind != AVG)
    return PLN_OK;
  PLN_TRY(pln_symbol_intern(e, pln_text("count_include_pad"), &all.name));
  return pln_attrs_with(e, *out, &all, out);
}

pln_status pln_fold_relay_padding(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref args[6];
  padded_window w;
  pln_attrs attrs;
  if (!find_window(g, ctx->node, &w) || !read_own(&w) || !add_widths(&w) ||
      !adds_what_padding_adds(&w) || w.call.n_args > PLN_COUNT(args))
    return PLN_OK;
  memcpy(args, w.call.args, w.call.n_args * sizeof *args);
  args[0] = w.pad.args[0];
  PLN_TRY(padded_attrs(&w, &attrs));
  return pln_rule_replace_call(ctx, w.call.op, attrs, w.call.n_args, args, out);
}
