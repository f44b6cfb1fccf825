/* convert_layout.c: ConvertLayout: computes operators in the layouts that the
 * user wants.
 *
 * Run by the executor, once per function. Requires a verified graph.
 * `desired_layouts` maps an operator to the layouts of its data and weights;
 * the other operators adapt, and conversions are inserted where one cannot.
 *
 *     ConvertLayout{desired_layouts={"nn.conv2d"=["NCHW","default"]}}
 *
 *     nn.conv2d(%x, %w, data_layout="NHWC", kernel_layout="HWIO")
 *       =>   %0 = layout_transform(%x, src_layout="NHWC", dst_layout="NCHW")
 *            %1 = layout_transform(%w, src_layout="HWIO", dst_layout="OIHW")
 *            %2 = nn.conv2d(%0, %1)
 *            layout_transform(%2, src_layout="NCHW", dst_layout="NHWC")
 *
 * Semantics: TVM ConvertLayout and FTVMConvertOpLayout, LayoutConfig. */

#include <stdio.h>
#include <stdlib.h>

#include "transform/layout/transform_layout.h"

/* The weights' layout that goes with one of the data. */
typedef struct kernel_default {
  const char *data, *kernel;
  const char *depthwise; /* of convolutions of single channels; or NULL */
} kernel_default;

typedef enum conversion_form {
  CONVERT_CONV,    /* data_layout, kernel_layout */
  CONVERT_WEIGHT,  /* a gradient: layouts of both operands and of the result */
  CONVERT_DATA,    /* layout, out_layout */
  CONVERT_REGIONS, /* layout; the regions stay */
} conversion_form;

typedef struct conversion {
  pln_op op;
  conversion_form form;
  bool counted; /* a layer of skip_layers */
  uint32_t space;
  const kernel_default *kernels;
} conversion;

static const kernel_default conv_2d[] = {{"NCHW", "OIHW", NULL},
                                         {"NHWC", "HWIO", "HWOI"},
                                         {"HWNC", "HWOI", NULL},
                                         {0}};
static const kernel_default qnn_conv_2d[] = {
    {"NCHW", "OIHW", NULL}, {"NHWC", "HWIO", "HWOI"}, {0}};
static const kernel_default conv_2d_transpose[] = {
    {"NCHW", "IOHW", NULL}, {"NHWC", "HWIO", NULL}, {0}};
static const kernel_default deformable[] = {
    {"NCHW", "OIHW", NULL}, {"NHWC", "HWIO", NULL}, {0}};
static const kernel_default conv_3d[] = {
    {"NCDHW", "OIDHW", NULL}, {"NDHWC", "DHWIO", NULL}, {0}};

static const conversion conversions[] = {
    {PLN_OP_CONV_2D, CONVERT_CONV, true, 2, conv_2d},
    {PLN_OP_CONV_3D, CONVERT_CONV, false, 3, conv_3d},
    {PLN_OP_CONV_2D_TRANSPOSE, CONVERT_CONV, false, 2, conv_2d_transpose},
    {PLN_OP_DEFORMABLE_CONV_2D, CONVERT_CONV, true, 2, deformable},
    {PLN_OP_QNN_CONV_2D, CONVERT_CONV, false, 2, qnn_conv_2d},
    {PLN_OP_QNN_CONV_2D_TRANSPOSE, CONVERT_CONV, false, 2, conv_2d_transpose},
    {PLN_OP_CONV_2D_BACKWARD_WEIGHT, CONVERT_WEIGHT, false, 2, NULL},
    {PLN_OP_MAX_POOL_2D, CONVERT_DATA, false, 2, NULL},
    {PLN_OP_AVG_POOL_2D, CONVERT_DATA, false, 2, NULL},
    {PLN_OP_GLOBAL_MAX_POOL_2D, CONVERT_DATA, false, 2, NULL},
    {PLN_OP_GLOBAL_AVG_POOL_2D, CONVERT_DATA, false, 2, NULL},
    {PLN_OP_QNN_AVG_POOL_2D, CONVERT_DATA, false, 2, NULL},
    {PLN_OP_RESIZE_2D, CONVERT_DATA, false, 2, NULL},
    {PLN_OP_ROI_ALIGN, CONVERT_REGIONS, false, 2, NULL},
    {PLN_OP_MAX_ROI_POOL, CONVERT_REGIONS, false, 2, NULL},
};

typedef struct converter {
  pln_engine *engine;
  pln_attrs desired;
  pln_attr skipped; /* INTS */
  int64_t n_layers; /* counted so far */
} converter;

/* ----------------------------------------------------------------- options */

static pln_status desired_error(const converter *x, pln_op op, const char *what,
                                pln_slice text) {
  pln_slice name = pln_op_name(x->engine, op);
  return pln_diag_error(x->engine, PLN_ERR_ARGUMENT, NULL,
                        "pass 'ConvertLayout': desired_layouts of '%.*s': %s, "
                        "got '%.*s'",
                        (int)name.size, name.data, what,
                        (int)(text.size < 40 ? text.size : 40), text.data);
}

static pln_status check_desired_text(const converter *x, pln_op op,
                                     pln_slice text) {
  pln_data_layout axes;
  if (pln_slice_is(text, "default") ||
      (text.size && pln_data_layout_read(text, &axes)))
    return PLN_OK;
  return desired_error(x, op, "expected layouts such as 'NHWC', or 'default'",
                       text);
}

/* Checks what every program would be refused for. */
static pln_status check_desired(const converter *x) {
  for (uint32_t i = 0; i < pln_attrs_count(x->engine, x->desired); i++) {
    const pln_attr *entry = pln_attrs_at(x->engine, x->desired, i);
    pln_slice name = pln_symbol_text(x->engine, entry->name);
    pln_op op = pln_op_find(x->engine, name);
    if (!op)
      return pln_diag_error(x->engine, PLN_ERR_NAME, NULL,
                            "pass 'ConvertLayout': desired_layouts names '%s', "
                            "which is no operator",
                            name.data);
    for (uint32_t k = 0; k < entry->count; k++)
      PLN_TRY(check_desired_text(x, op, entry->v.strings[k]));
  }
  return PLN_OK;
}

static pln_status expect_layouts(const converter *x, const conversion *c,
                                 const pln_attr *desired, uint32_t n) {
  char count[32];
  if (desired->count != n) {
    snprintf(count, sizeof count, "%u layouts", desired->count);
    return desired_error(x, c->op,
                         n == 1 ? "expected one layout, of the data"
                                : "expected two layouts, of the data and the "
                                  "weights",
                         pln_text(count));
  }
  if (pln_slice_is(desired->v.strings[0], "default"))
    return desired_error(x, c->op, "the data has no default layout",
                         desired->v.strings[0]);
  return PLN_OK;
}

/* -------------------------------------------------------------- attributes */

static uint32_t letters_of(pln_slice text) {
  uint32_t letters = 0;
  for (size_t i = 0; i < text.size; i++)
    if (text.data[i] >= 'A' && text.data[i] <= 'Z')
      letters |= 1u << (text.data[i] - 'A');
  return letters;
}

/* Sets an attribute to a layout of the same axes. */
static pln_status set_layout(const converter *x, pln_layout_change *change,
                             const char *name, pln_slice text) {
  pln_attr value;
  PLN_TRY(pln_relay_get(x->engine, change->op, change->attrs, name, &value));
  if (value.kind == PLN_ATTR_STRING && value.v.s.size &&
      letters_of(value.v.s) != letters_of(text))
    return desired_error(x, change->op,
                         "expected a layout of the axes that are there", text);
  value = (pln_attr){.kind = PLN_ATTR_STRING, .v.s = text};
  return pln_relay_set(x->engine, change->op, change->attrs, name, value,
                       &change->attrs);
}

/* TVM's constructors write the padding after each axis too. */
static pln_status write_padding(const converter *x, const conversion *c,
                                pln_layout_change *change) {
  int64_t pads[6];
  pln_attr value;
  PLN_TRY(
      pln_relay_get(x->engine, change->op, change->attrs, "padding", &value));
  if (value.kind != PLN_ATTR_INTS || value.count != c->space)
    return PLN_OK;
  for (uint32_t i = 0; i < 2 * c->space; i++)
    pads[i] = value.v.ints[i % c->space];
  value.count = 2 * c->space;
  value.v.ints = pads;
  return pln_relay_set(x->engine, change->op, change->attrs, "padding", value,
                       &change->attrs);
}

/* ------------------------------------------------------------- convolutions */

/* The whole extent of an axis of argument `i` of the call; -1 if unknown. */
static int64_t extent_of(const pln_layout_change *change, uint32_t i,
                         const char *layout_name, char letter) {
  const pln_graph *g = pln_rewrite_old(change->rw);
  pln_type type = g->nodes[pln_operand(g, change->old, i)].type;
  pln_data_layout axes;
  pln_attr text;
  int64_t extent = 1;
  if (pln_relay_get(g->engine, change->op, change->attrs, layout_name, &text) !=
          PLN_OK ||
      text.kind != PLN_ATTR_STRING || !pln_data_layout_read(text.v.s, &axes) ||
      pln_type_get_kind(g->engine, type) != PLN_TYPE_TENSOR ||
      pln_type_rank(g->engine, type) != axes.rank)
    return -1;
  for (int32_t k = 0; k < axes.rank; k++) {
    pln_dim dim = pln_type_dims(g->engine, type)[k];
    if (axes.letter[k] != letter)
      continue;
    if (!PLN_DIM_IS_CONST(dim) || dim < 0 || dim > INT32_MAX ||
        extent > INT32_MAX)
      return -1;
    extent *= dim;
  }
  return extent;
}

static bool is_depthwise(const pln_layout_change *change) {
  pln_engine *e = pln_rewrite_old(change->rw)->engine;
  int64_t groups = pln_attrs_int(e, change->attrs, "groups", 1);
  return extent_of(change, 0, "data_layout", 'C') == groups &&
         extent_of(change, 1, "kernel_layout", 'O') == groups;
}

/* The layout of weights that goes with the data's; NULL if there is none. */
static const char *default_kernel(const conversion *c,
                                  const pln_layout_change *change,
                                  pln_slice data) {
  for (const kernel_default *k = c->kernels; k->data; k++)
    if (pln_slice_is(data, k->data))
      return k->depthwise && is_depthwise(change) ? k->depthwise : k->kernel;
  return NULL;
}

/* The block size of "NCHW16c"; 0 for other layouts. */
static int64_t block_of(pln_slice data) {
  char *end;
  if (data.size < 6 || memcmp(data.data, "NCHW", 4) != 0)
    return 0;
  long long block = strtoll(data.data + 4, &end, 10);
  return *end == 'c' && block > 0 ? block : 0;
}

/* nn.contrib_conv2d_NCHWc, unless the data is a parameter that has no whole
 * number of blocks. */
static pln_status convert_to_blocks(const converter *x, const conversion *c,
                                    const pln_attr *desired, int64_t block,
                                    pln_layout_change *change) {
  const pln_graph *g = pln_rewrite_old(change->rw);
  const pln_node *data = &g->nodes[pln_operand(g, change->old, 0)];
  if (pln_slice_is(desired->v.strings[1], "default"))
    return desired_error(x, c->op, "blocks of weights have no default layout",
                         desired->v.strings[1]);
  if (data->kind == PLN_VAR) {
    int64_t channels = extent_of(change, 0, "data_layout", 'C');
    if (channels < 0 || channels % block != 0)
      return PLN_OK;
  }
  PLN_TRY(set_layout(x, change, "data_layout", desired->v.strings[0]));
  PLN_TRY(set_layout(x, change, "kernel_layout", desired->v.strings[1]));
  change->op = PLN_OP_CONV_2D_NCHWC;
  return PLN_OK;
}

static pln_status convert_conv(converter *x, const conversion *c,
                               const pln_attr *desired,
                               pln_layout_change *change) {
  PLN_TRY(expect_layouts(x, c, desired, 2));
  pln_slice data = desired->v.strings[0], kernel = desired->v.strings[1];
  int64_t block = c->op == PLN_OP_CONV_2D ? block_of(data) : 0;
  PLN_TRY(write_padding(x, c, change));
  if (block)
    return convert_to_blocks(x, c, desired, block, change);
  if (pln_slice_is(kernel, "default")) {
    const char *text = default_kernel(c, change, data);
    if (!text)
      return desired_error(
          x, c->op, "weights have no default layout for data in this", data);
    kernel = pln_text(text);
  }
  PLN_TRY(set_layout(x, change, "data_layout", data));
  return set_layout(x, change, "kernel_layout", kernel);
}

/* Both operands are data; the result is a weight. */
static pln_status convert_weight(converter *x, const conversion *c,
                                 const pln_attr *desired,
                                 pln_layout_change *change) {
  PLN_TRY(expect_layouts(x, c, desired, 2));
  if (pln_slice_is(desired->v.strings[1], "default"))
    return desired_error(x, c->op, "gradients have no default layout",
                         desired->v.strings[1]);
  PLN_TRY(write_padding(x, c, change));
  PLN_TRY(set_layout(x, change, "data_layout", desired->v.strings[0]));
  PLN_TRY(set_layout(x, change, "kernel_layout", desired->v.strings[0]));
  return set_layout(x, change, "out_layout", desired->v.strings[1]);
}

/* --------------------------------------------------------------- one layout
 */

static pln_status convert_data(converter *x, const conversion *c,
                               const pln_attr *desired,
                               pln_layout_change *change) {
  bool resizes = c->op == PLN_OP_RESIZE_2D;
  if (desired->count < 1 || resizes || c->op == PLN_OP_QNN_AVG_POOL_2D)
    PLN_TRY(expect_layouts(x, c, desired, 1));
  PLN_TRY(write_padding(x, c, change));
  PLN_TRY(set_layout(x, change, "layout", desired->v.strings[0]));
  return resizes ? PLN_OK
                 : set_layout(x, change, "out_layout", desired->v.strings[0]);
}

static pln_status convert_regions(converter *x, const conversion *c,
                                  const pln_attr *desired,
                                  pln_layout_change *change) {
  PLN_TRY(expect_layouts(x, c, desired, 2));
  if (!pln_slice_is(desired->v.strings[1], "default"))
    return desired_error(x, c->op, "the regions' layout must be 'default'",
                         desired->v.strings[1]);
  return set_layout(x, change, "layout", desired->v.strings[0]);
}

/* --------------------------------------------------------------------- pass */

static const conversion *conversion_of(pln_op op) {
  for (size_t i = 0; i < PLN_COUNT(conversions); i++)
    if (conversions[i].op == op)
      return &conversions[i];
  return NULL;
}

static bool is_skipped(converter *x) {
  int64_t number = x->n_layers++;
  for (uint32_t i = 0; i < x->skipped.count; i++)
    if (x->skipped.v.ints[i] == number)
      return true;
  return false;
}

static pln_status convert_call(void *ud, pln_layout_change *change) {
  converter *x = ud;
  const conversion *c = conversion_of(change->op);
  const pln_attr *desired =
      c ? pln_attrs_find(x->engine, x->desired,
                         pln_op_name(x->engine, change->op).data)
        : NULL;
  if (!desired)
    return PLN_OK;
  if (c->counted && is_skipped(x))
    return write_padding(x, c, change);
  switch (c->form) {
  case CONVERT_CONV: return convert_conv(x, c, desired, change);
  case CONVERT_WEIGHT: return convert_weight(x, c, desired, change);
  case CONVERT_DATA: return convert_data(x, c, desired, change);
  case CONVERT_REGIONS: return convert_regions(x, c, desired, change);
  }
  return PLN_OK;
}

pln_status pln_pass_convert_layout(pln_pass_run *run) {
  converter x = {.engine = pln_run_engine(run)};
  pln_layout_alteration alteration = {.ud = &x, .alter = convert_call};
  pln_attr desired = {.kind = PLN_ATTR_DICT};
  pln_graph *out;
  (void)pln_run_option(run, "desired_layouts", &desired);
  (void)pln_run_option(run, "skip_layers", &x.skipped);
  x.desired = desired.v.dict;
  PLN_TRY(check_desired(&x));
  PLN_TRY(pln_transform_layouts(pln_run_function(run), &alteration, &out));
  pln_run_set_function(run, out);
  return PLN_OK;
}
