/* test_deformable_conv.c: convolutions at positions moved by offsets, and along
 * time with a state: small ones computed by hand and what is refused, as tables
 * (op_table.h); then offsets of zero beside a plain convolution. */

#include "oom.h"

#include "op_table.h"

#define IOTA9 "float32 1x1x3x3: 1 2 3 4 5 6 7 8 9"
#define UNIT "float32 1x1x1x1: 1"

/* ------------------------------------------------------------------ offsets */

static void moves(void) {
  static const row rows[] = {
      /* One tap at each place, moved by (y, x). */
      {"nn.deformable_conv",
       "",
       {"float32 1x1x2x2: 1 2 3 4", UNIT,
        "float32 1x2x2x2: 0 0.5 -0.5 1  0.5 0 0 0"},
       "float32 1x1x2x2: 1.5 3 2 0",
       0},
      {"nn.deformable_conv",
       "",
       {"float32 1x1x2x2: 1 2 3 4", UNIT,
        "float32 1x2x2x2: -1 nan 0 1e30  0 0 -0.75 0", "float32 1: 10",
        "float32 1x1x2x2: 1 1 2 1"},
       "float32 1x1x2x2: 10 10 11.5 10",
       0},
  };
  run_rows(ROWS(rows));
}

static void groups_move_apart(void) {
  static const row rows[] = {
      /* The first channel stays, the second moves a column. */
      {"nn.deformable_conv",
       "offset_group=2",
       {"float32 1x2x1x2: 1 2 10 20", "float32 1x2x1x1: 1 1",
        "float32 1x4x1x2: 0 0 0 0 0 0 1 1"},
       "float32 1x1x1x2: 21 2",
       0},
      {"nn.deformable_conv",
       "group=2",
       {"float64 1x2x1x2: 1 2 10 20", "float64 2x1x1x1: 1 3",
        "float64 1x2x1x2: 0 0 1 1"},
       "float64 1x2x1x2: 2 0 60 0",
       0},
      {"nn.deformable_conv",
       "",
       {"float16 1x1x1x2: 1 2", "float16 1x1x1x1: 2",
        "float16 1x2x1x2: 0 0 0.5 0.5"},
       "float16 1x1x1x2: 3 2",
       0},
      {"nn.deformable_conv",
       "",
       {"float32 0x1x1x2:", UNIT, "float32 0x2x1x2:"},
       "float32 0x1x1x2:",
       0},
  };
  run_rows(ROWS(rows));
}

static void refuses_offsets(void) {
  static const row rows[] = {
      {"nn.deformable_conv",
       "",
       {IOTA9, UNIT, "float32 1x2x3x2: 0 0 0 0 0 0 0 0 0 0 0 0"},
       "refused: 'nn.deformable_conv': offsets or mask do not match the "
       "outputs",
       0},
      {"nn.deformable_conv",
       "offset_group=2",
       {"float32 1x1x1x1: 1", UNIT, "float32 1x2x1x1: 0 0"},
       "refused: 'nn.deformable_conv': 2 offset groups of 1 channels",
       0},
      {"nn.deformable_conv",
       "",
       {"float32 1x1x1: 1", "float32 1x1x1: 1", "float32 1x2x1: 0 0"},
       "refused: 'nn.deformable_conv': images must have 2 spatial axes, got 1",
       0},
  };
  run_rows(ROWS(rows));
}

static pln_ref add_counted(uint32_t rank, const int64_t *dims, bool zero) {
  pln_tensor *t;
  pln_ref node = PLN_NONE;
  CHECK_OK(pln_tensor_new(engine, PLN_FLOAT32, rank, dims, &t));
  float *data = pln_tensor_writable(t);
  for (size_t i = 0; i < t->count && !zero; i++)
    data[i] = (float)(i * 7 % 11) - 5;
  CHECK_OK(pln_build_constant(builder, t, &node));
  pln_tensor_release(t);
  return node;
}

static pln_tensor *call_of(const char *op, uint32_t n, const pln_ref *args) {
  pln_ref node;
  pln_tensor *out = NULL;
  pln_attr a = {.kind = PLN_ATTR_INT, .v.i = 2};
  pln_attrs attrs = 0;
  CHECK_OK(pln_symbol_intern(engine, pln_text("group"), &a.name));
  CHECK_OK(pln_attrs_make(engine, 1, &a, &attrs));
  CHECK_OK(pln_build_call(builder, pln_op_find(engine, pln_text(op)), attrs, 0,
                          n, args, &node));
  CHECK_OK(pln_eval_call(pln_builder_graph(builder), node, &out));
  return out;
}

/* More channels and outputs than are computed at a time. */
static void zeros_move_nothing(void) {
  static const int64_t x[4] = {2, 80, 19, 23}, w[4] = {6, 40, 3, 3};
  static const int64_t offset[4] = {2, 18, 17, 21}, bias[1] = {6};
  begin();
  pln_ref image = add_counted(4, x, false), weights = add_counted(4, w, false);
  pln_ref added = add_counted(1, bias, false);
  pln_ref moved[4] = {image, weights, add_counted(4, offset, true), added};
  pln_ref plain[3] = {image, weights, added};
  pln_tensor *got = call_of("nn.deformable_conv", 4, moved);
  pln_tensor *want = call_of("nn.conv", 3, plain);
  CHECK_EQ_INT(got->bytes, want->bytes);
  CHECK(!memcmp(got->data, want->data, want->bytes));
  pln_tensor_release(got);
  pln_tensor_release(want);
  end();
}

/* --------------------------------------------------------------------- time */

static void carries_a_state(void) {
  static const row rows[] = {
      {"causal_conv_with_state",
       "",
       {"float32 1x2x3: 1 2 3 4 5 6", "float32 2x1x2: 1 10 0 1"},
       "float32 1x2x3: 10 21 32 4 5 6 | float32 1x2x1: 3 6",
       2},
      {"causal_conv_with_state",
       "",
       {"float32 1x1x1: 5", "float32 1x1x3: 1 10 100", "float32 1: 1000",
        "float32 1x1x2: 2 3"},
       "float32 1x1x1: 1532 | float32 1x1x2: 3 5",
       2},
      {"causal_conv_with_state",
       "activation=silu",
       {"float64 1x1x2: 0 100", "float64 1x1x1: 1"},
       "float64 1x1x2: 0 100 | float64 1x1x0:",
       2},
      {"causal_conv_with_state",
       "activation=swish",
       {"float16 1x1x1: 1", "float16 1x1x2: 0 -1"},
       "float16 1x1x1: -0.269043 | float16 1x1x1: 1",
       2},
      {"causal_conv_with_state",
       "",
       {"float32 1x1x0:", "float32 1x1x3: 1 2 3", "-", "float32 1x1x2: 7 8"},
       "float32 1x1x0: | float32 1x1x2: 7 8",
       2},
      {"causal_conv_with_state",
       "",
       {"float32 1x1x1: 2", "float32 1x1x1: 3"},
       "float32 1x1x1: 6",
       1},
  };
  run_rows(ROWS(rows));
}

static void refuses_states(void) {
  static const row rows[] = {
      {"causal_conv_with_state",
       "",
       {"float32 1x1x1: 2", "float32 1x1x2: 3 4", "-", "float32 1x1x2: 1 2"},
       "refused: 'causal_conv_with_state': operands do not match each other",
       0},
      {"causal_conv_with_state",
       "activation=relu",
       {"float32 1x1x1: 2", "float32 1x1x1: 3"},
       "refused: 'causal_conv_with_state': activation is not silu, swish or "
       "none",
       0},
      {"causal_conv_with_state",
       "",
       {"float32 1x2x1: 2 3", "float32 1x1x1: 3"},
       "ill-typed: 'causal_conv_with_state', operand 1: expected extent 2, got "
       "1",
       0},
  };
  run_rows(ROWS(rows));
  static const row types[] = {
      {"causal_conv_with_state",
       "",
       {"float32 NxCxT", "float32 8x1xK"},
       "float32 Nx8xT",
       0},
  };
  type_rows(ROWS(types));
}

/* ------------------------------------------------------------------- memory */

static pln_status convolve_halves(pln_engine *e, void *name) {
  const int64_t dims[5] = {1, 2, 1, 1, 1};
  bool moving = !strcmp(name, "nn.deformable_conv");
  pln_builder *b;
  pln_tensor *t = NULL, *out[2] = {NULL};
  pln_ref node = 0;
  PLN_TRY(pln_builder_new(e, &b));
  pln_status status = pln_tensor_new(e, PLN_FLOAT16, moving ? 4 : 3,
                                     dims + (moving ? 0 : 2), &t);
  if (status == PLN_OK)
    status = pln_build_constant(b, t, &node);
  pln_tensor_release(t);
  pln_ref args[3] = {node, node, node};
  if (status == PLN_OK)
    status = pln_build_call(b, pln_op_find(e, pln_text(name)), 0,
                            moving ? 1 : 2, moving ? 3 : 2, args, &node);
  if (status == PLN_OK)
    status = pln_eval_call(pln_builder_graph(b), node, out);
  pln_tensor_release(out[0]);
  pln_tensor_release(out[1]);
  pln_builder_free(b);
  return status;
}

static void hears_of_memory(void) {
  char moving[] = "nn.deformable_conv", causal[] = "causal_conv_with_state";
  oom_sweep(convolve_halves, moving);
  oom_sweep(convolve_halves, causal);
}

static const check_test tests[] = {
    {"offsets by hand", moves},
    {"groups of offsets and of channels", groups_move_apart},
    {"offsets that do not match are refused", refuses_offsets},
    {"offsets of zero move nothing", zeros_move_nothing},
    {"a state by hand", carries_a_state},
    {"what does not match a state is refused", refuses_states},
    {"memory that runs out is heard of", hears_of_memory},
};
CHECK_MAIN(tests)
