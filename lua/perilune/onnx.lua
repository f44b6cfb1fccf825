--- pl.onnx: ONNX models. Failures give nil and a diagnostic.

local core = require "perilune.core"
core.internal()

local oldest, newest = core.onnx_opsets()

return {
  --- The opsets of ai.onnx that models are converted to, from `oldest` to `newest`.
  opsets = { oldest = oldest, newest = newest },
  --- load(path): the module; the main graph is its function "main".
  load = core.onnx_load,
  --- save(mod, path [, { external_data =, external_threshold =, embed_data =, opset =,
  -- value_info = }]): true. embed_data: what lies in files beside the model goes into
  -- it. With an opset the model is converted to it first.
  -- value_info: true writes the types of all values that are known, false none that
  -- the file did not have; nil, those of graphs that had any and changed.
  save = core.onnx_save,
  --- parse(bytes [, directory]): a model in memory; external data is looked
  -- for in `directory`.
  parse = core.onnx_parse,
  --- tostring(mod [, { embed_data =, opset =, value_info = }]): the model's bytes.
  tostring = core.onnx_tostring,
  --- load_value(path [, type]): the tensor in a file such as input_0.pb; with a
  -- sequence type the table of tensors in it, with an optional type what it has
  -- or nil. What the file calls it is the third result.
  load_value = core.onnx_load_value,
  --- save_value(value, path [, type [, name]]): writes such a file: true.
  save_value = core.onnx_save_value,
  --- default(mod, input): the tensor that the input has when nothing is given, or
  -- nil.
  default = core.onnx_default,
  --- defaults(mod): { name = tensor } of all inputs that have a default.
  defaults = core.onnx_defaults,
  --- count(path): { nodes, compute_nodes, operators, files } of a model file.
  count = core.onnx_count,
}
