--- Why operators are not computed: a line for each without kernel. Shown by
-- `perilune ops --missing`. False: the evaluator computes it without a kernel.

local device = "computed by an Ethos-U only, whose arithmetic is not defined outside of it"
local memory = "a step of TVM's virtual machine, which manages memory; it computes nothing"

return {
  ["loop"] = false, ["scan"] = false, ["scan_batches"] = false, ["sequence_map"] = false,
  ["auto_scheduler_layout_transform"] = "its layouts are names of a schedule, without definition",
  ["meta_schedule_layout_transform"] = "its map of indices is an object of TVM",
  ["nn.contrib_conv2d_winograd_nnpack_weight_transform"] =
    "the layout of its tiles is internal to NNPACK and differs from processor to processor",
  ["nn.dropout_raw"] = "TVM computes it nowhere; inference replaces nn.dropout",
  ["qnn.contrib_dense_pack"] = "TVM defines it for Hexagon's packed weights only",
  ["memory.kill"] = false, ["memory.alloc_storage"] = memory, ["memory.alloc_tensor"] = memory,
  ["vm.shape_func"] = memory, ["vm.invoke_tvm_op"] = memory,
  ["debug"] = "it calls a function of the host, which a module does not hold",
  ["no_op"] = "it has no value", ["copy_shape_func"] = memory,
  ["call_lowered"] = "it calls a function of the loop level by name",
  ["contrib.ethosu.conv2d"] = device, ["contrib.ethosu.depthwise_conv2d"] = device,
  ["contrib.ethosu.pooling"] = device, ["contrib.ethosu.binary_elementwise"] = device,
  ["contrib.ethosu.unary_elementwise"] = device, ["contrib.ethosu.identity"] = device,
}
