/* test_composed.c: kernels that are made of other kernels, while memory runs
 * out. What they compute is tested in relay_kernel_spec.lua. */

#include "ir/graph/module.h"
#include "oom.h"

static pln_status evaluate(pln_engine *engine, void *ud) {
  pln_module *m = NULL;
  pln_tensor *out = NULL;
  PLN_TRY(pln_parse_module(engine, pln_text(ud), "test", NULL, &m));
  pln_status status =
      pln_eval_tensors(m, pln_module_function_at(m, 0), 0, NULL, 1, &out);
  pln_tensor_release(out);
  pln_module_release(m);
  return status;
}

#define BODY(text) "#[version = \"0.0.5\"]\ndef @main() { " text " }"

static void memory_runs_out(void) {
  static const char *const texts[] = {
      BODY("variance(ones(shape=[2, 3]), ones(shape=[2, 1]), axis=[1])"),
      BODY("sort(ones(shape=[2, 3], dtype=\"int32\"))"),
      BODY("argsort(ones(shape=[2, 3], dtype=\"int32\"))"),
      BODY("nn.conv2d(ones(shape=[1, 3, 3, 2]), ones(shape=[2, 2, 2, 1]), "
           "data_layout=\"NHWC\", kernel_layout=\"HWIO\")"),
      BODY("nn.avg_pool2d(ones(shape=[1, 3, 3, 2]), pool_size=[2, 2], "
           "layout=\"NHWC\")"),
      BODY("nn.adaptive_avg_pool1d(ones(shape=[1, 2, 5]), output_size=[2])"),
      BODY("nn.avg_pool2d_grad(ones(shape=[1, 1, 2, 2]), "
           "ones(shape=[1, 1, 3, 3]), pool_size=[2, 2])"),
      BODY("image.resize2d(ones(shape=[1, 2, 2, 1]), size=[3, 3], "
           "layout=\"NHWC\")"),
      BODY("searchsorted(ones(shape=[3]), ones(shape=[2, 2]))"),
      BODY("sequence_mask(ones(shape=[2, 3]), "
           "ones(shape=[3], dtype=\"int32\"))"),
      BODY("%0 = (ones(shape=[2, 3]), ones(shape=[2], dtype=\"int64\")); "
           "adv_index(%0)"),
      BODY("qnn.requantize(ones(shape=[3], dtype=\"int32\"), 0.5f, 0, 1f, 0, "
           "out_dtype=\"int8\")"),
      BODY("qnn.add(ones(shape=[3], dtype=\"uint8\"), "
           "ones(shape=[3], dtype=\"uint8\"), 1f, 0, 1f, 0, 2f, 5)"),
      BODY("image.crop_and_resize(ones(shape=[1, 1, 2, 2]), "
           "ones(shape=[2, 4]), zeros(shape=[2], dtype=\"int32\"), "
           "crop_size=[1, 2])"),
      BODY("nn.sparse_dense(ones(shape=[1, 3]), ones(shape=[1]), "
           "ones(shape=[1], dtype=\"int32\"), "
           "zeros(shape=[2], dtype=\"int32\"))"),
      BODY("nn.dilate(ones(shape=[2, 3]), strides=[2, 2])"),
      BODY("nn.space_to_batch_nd(ones(shape=[1, 4, 1]), block_shape=[2], "
           "paddings=[])"),
  };
  for (size_t i = 0; i < PLN_COUNT(texts); i++)
    oom_sweep(evaluate, (void *)(uintptr_t)texts[i]);
}

static const check_test tests[] = {
    {"memory runs out", memory_runs_out},
};
CHECK_MAIN(tests)
