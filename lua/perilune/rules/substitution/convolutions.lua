--- Rules of graph substitution, as `perilune rules generate` wrote them: lua/perilune/rule/generate
-- says how they are found and proved. The reason is the equation; another run gives the same file.

local function example(domain, text)
  return function(g) return require "perilune.rule.generate.example".of_text(domain, text)(g) end
end

return {
  { "generated_onnx_first_concat_channels: split(concatenate(?x:static, ?y:static, "
    .. "axis=1), split=?s, axis=1).0 => ?x where ?x.dtype == float32 and ?x.rank == 4 and "
    .. "?y.rank == 4 and len(?s) == 2",
    example = example("convolutions", "first(concat_channels(x, y))"),
    reason = "first(concat_channels(x, y)) = x",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_second_concat_channels: split(concatenate(?x:static, ?y:static, "
    .. "axis=1), split=?s, axis=1).1 => ?y where ?x.dtype == float32 and ?x.rank == 4 and "
    .. "?y.rank == 4 and len(?s) == 2",
    example = example("convolutions", "second(concat_channels(x, y))"),
    reason = "second(concat_channels(x, y)) = y",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_concat_channels_first_second: concatenate(split(?x:static, split=?s, "
    .. "axis=1).0, split(?x:static, split=?s, axis=1).1, axis=1) => ?x where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and len(?s) == 2",
    example = example("convolutions", "concat_channels(first(x), second(x))"),
    reason = "concat_channels(first(x), second(x)) = x",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_relu_relu: nn.relu(nn.relu(?x:static)) => nn.relu(?x) where ?x.dtype "
    .. "== float32 and ?x.rank == 4",
    example = example("convolutions", "relu(relu(x))"),
    reason = "relu(relu(x)) = relu(x)", proof = "exact", source = "generated", grows = true },
  { "generated_onnx_concat_channels_concat_channels: concatenate(?x:static, "
    .. "concatenate(?y:static, ?z:static, axis=1), axis=1) => concatenate(concatenate(?x, "
    .. "?y, axis=1), ?z, axis=1) where ?x.dtype == float32 and ?x.rank == 4 and ?y.rank == "
    .. "4 and ?z.rank == 4",
    example = example("convolutions", "concat_channels(x, concat_channels(y, z))"),
    reason = "concat_channels(x, concat_channels(y, z)) = concat_channels(concat_channels(x, y), "
    .. "z)",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_concat_channels_concat_channels_2: "
    .. "concatenate(concatenate(?x:static, ?y:static, axis=1), ?z:static, axis=1) => "
    .. "concatenate(?x, concatenate(?y, ?z, axis=1), axis=1) where ?x.dtype == float32 and "
    .. "?x.rank == 4 and ?y.rank == 4 and ?z.rank == 4",
    example = example("convolutions", "concat_channels(concat_channels(x, y), z)"),
    reason = "concat_channels(concat_channels(x, y), z) = concat_channels(x, concat_channels(y, "
    .. "z))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_concat_outputs_concat_outputs: concatenate(?w:static, "
    .. "concatenate(?v:static, ?u:static, axis=0), axis=0) => concatenate(concatenate(?w, "
    .. "?v, axis=0), ?u, axis=0) where ?w.dtype == float32 and ?w.rank == 4 and ?v.rank == "
    .. "4 and ?u.rank == 4",
    example = example("convolutions", "concat_outputs(w, concat_outputs(v, u))"),
    reason = "concat_outputs(w, concat_outputs(v, u)) = concat_outputs(concat_outputs(w, v), u)",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_concat_outputs_concat_outputs_2: concatenate(concatenate(?w:static, "
    .. "?v:static, axis=0), ?u:static, axis=0) => concatenate(?w, concatenate(?v, ?u, "
    .. "axis=0), axis=0) where ?w.dtype == float32 and ?w.rank == 4 and ?v.rank == 4 and "
    .. "?u.rank == 4",
    example = example("convolutions", "concat_outputs(concat_outputs(w, v), u)"),
    reason = "concat_outputs(concat_outputs(w, v), u) = concat_outputs(w, concat_outputs(v, u))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_scale_conv: multiply(nn.conv(?x:static, ?w:static, group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]), ?c) => nn.conv(?x, multiply(?w, ?c), kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1]) where ?x.dtype == float32 and ?x.rank == 4 and ?w.rank == 4 and "
    .. "?c.rank == 0",
    example = example("convolutions", "scale(conv(x, w), c)"),
    reason = "scale(conv(x, w), c) = conv(x, scale(w, c))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_conv_scale: nn.conv(?x:static, multiply(?w:static, ?c), group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]) => multiply(nn.conv(?x, ?w, kernel_shape=[3, 3], pads=[1, 1, 1, "
    .. "1]), ?c) where ?x.dtype == float32 and ?x.rank == 4 and ?w.rank == 4 and ?c.rank == "
    .. "0",
    example = example("convolutions", "conv(x, scale(w, c))"),
    reason = "conv(x, scale(w, c)) = scale(conv(x, w), c)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_first_conv_concat_outputs: split(nn.conv(?x:static, "
    .. "concatenate(?w:static, ?v:static, axis=0), group=1, kernel_shape=[3, 3], pads=[1, "
    .. "1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1]), split=?s, axis=1).0 "
    .. "=> nn.conv(?x, ?w, kernel_shape=[3, 3], pads=[1, 1, 1, 1]) where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and ?w.rank == 4 and ?v.rank == 4 and len(?s) == 2",
    example = example("convolutions", "first(conv(x, concat_outputs(w, v)))"),
    reason = "first(conv(x, concat_outputs(w, v))) = conv(x, w)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_second_conv_concat_outputs: split(nn.conv(?x:static, "
    .. "concatenate(?w:static, ?v:static, axis=0), group=1, kernel_shape=[3, 3], pads=[1, "
    .. "1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1]), split=?s, axis=1).1 "
    .. "=> nn.conv(?x, ?v, kernel_shape=[3, 3], pads=[1, 1, 1, 1]) where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and ?w.rank == 4 and ?v.rank == 4 and len(?s) == 2",
    example = example("convolutions", "second(conv(x, concat_outputs(w, v)))"),
    reason = "second(conv(x, concat_outputs(w, v))) = conv(x, v)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_scale_conv_2: multiply(nn.conv(?x:static, ?w:static, group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]), ?c) => nn.conv(multiply(?x, ?c), ?w, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1]) where ?x.dtype == float32 and ?x.rank == 4 and ?w.rank == 4 and "
    .. "?c.rank == 0",
    example = example("convolutions", "scale(conv(x, w), c)"),
    reason = "scale(conv(x, w), c) = conv(scale(x, c), w)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_conv_scale_2: nn.conv(multiply(?x:static, ?c), ?w:static, group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]) => multiply(nn.conv(?x, ?w, kernel_shape=[3, 3], pads=[1, 1, 1, "
    .. "1]), ?c) where ?x.dtype == float32 and ?x.rank == 4 and ?c.rank == 0 and ?w.rank == "
    .. "4",
    example = example("convolutions", "conv(scale(x, c), w)"),
    reason = "conv(scale(x, c), w) = scale(conv(x, w), c)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_first_scale_concat_channels: split(multiply(concatenate(?x:static, "
    .. "?y:static, axis=1), ?c), split=?s, axis=1).0 => multiply(?x, ?c) where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and ?y.rank == 4 and ?c.rank == 0 and len(?s) == 2",
    example = example("convolutions", "first(scale(concat_channels(x, y), c))"),
    reason = "first(scale(concat_channels(x, y), c)) = scale(x, c)",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_second_scale_concat_channels: split(multiply(concatenate(?x:static, "
    .. "?y:static, axis=1), ?c), split=?s, axis=1).1 => multiply(?y, ?c) where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and ?y.rank == 4 and ?c.rank == 0 and len(?s) == 2",
    example = example("convolutions", "second(scale(concat_channels(x, y), c))"),
    reason = "second(scale(concat_channels(x, y), c)) = scale(y, c)",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_first_avg_pool_concat_channels: "
    .. "split(nn.avg_pool(concatenate(?x:static, ?y:static, axis=1), kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1], ceil_mode=0, "
    .. "count_include_pad=0), split=?s, axis=1).0 => nn.avg_pool(?x, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1]) where ?x.dtype == float32 and ?x.rank == 4 and ?y.rank == 4 and "
    .. "len(?s) == 2",
    example = example("convolutions", "first(avg_pool(concat_channels(x, y)))"),
    reason = "first(avg_pool(concat_channels(x, y))) = avg_pool(x)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_second_avg_pool_concat_channels: "
    .. "split(nn.avg_pool(concatenate(?x:static, ?y:static, axis=1), kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1], ceil_mode=0, "
    .. "count_include_pad=0), split=?s, axis=1).1 => nn.avg_pool(?y, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1]) where ?x.dtype == float32 and ?x.rank == 4 and ?y.rank == 4 and "
    .. "len(?s) == 2",
    example = example("convolutions", "second(avg_pool(concat_channels(x, y)))"),
    reason = "second(avg_pool(concat_channels(x, y))) = avg_pool(y)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_avg_pool_scale: nn.avg_pool(multiply(?x:static, ?c), "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1], ceil_mode=0, count_include_pad=0) => multiply(nn.avg_pool(?x, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1]), ?c) where ?x.dtype == float32 and ?x.rank "
    .. "== 4 and ?c.rank == 0",
    example = example("convolutions", "avg_pool(scale(x, c))"),
    reason = "avg_pool(scale(x, c)) = scale(avg_pool(x), c)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_scale_avg_pool: multiply(nn.avg_pool(?x:static, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1], ceil_mode=0, "
    .. "count_include_pad=0), ?c) => nn.avg_pool(multiply(?x, ?c), kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1]) where ?x.dtype == float32 and ?x.rank == 4 and ?c.rank == 0",
    example = example("convolutions", "scale(avg_pool(x), c)"),
    reason = "scale(avg_pool(x), c) = avg_pool(scale(x, c))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_conv_add: nn.conv(?x:static, add(?w:static, ?w:static), group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]) => nn.conv(add(?x, ?x), ?w, kernel_shape=[3, 3], pads=[1, 1, 1, "
    .. "1]) where ?x.dtype == float32 and ?x.rank == 4 and ?w.rank == 4",
    example = example("convolutions", "conv(x, add(w, w))"),
    reason = "conv(x, add(w, w)) = conv(add(x, x), w)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_conv_add_2: nn.conv(add(?x:static, ?x:static), ?w:static, group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]) => nn.conv(?x, add(?w, ?w), kernel_shape=[3, 3], pads=[1, 1, 1, "
    .. "1]) where ?x.dtype == float32 and ?x.rank == 4 and ?w.rank == 4",
    example = example("convolutions", "conv(add(x, x), w)"),
    reason = "conv(add(x, x), w) = conv(x, add(w, w))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_first_max_pool_concat_channels: "
    .. "split(nn.max_pool(concatenate(?x:static, ?y:static, axis=1), kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1], ceil_mode=0, "
    .. "storage_order=0), split=?s, axis=1).0 => nn.max_pool(?x, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1]) where ?x.dtype == float32 and ?x.rank == 4 and ?y.rank == 4 and "
    .. "len(?s) == 2",
    example = example("convolutions", "first(max_pool(concat_channels(x, y)))"),
    reason = "first(max_pool(concat_channels(x, y))) = max_pool(x)",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_first_relu_concat_channels: split(nn.relu(concatenate(?x:static, "
    .. "?y:static, axis=1)), split=?s, axis=1).0 => nn.relu(?x) where ?x.dtype == float32 "
    .. "and ?x.rank == 4 and ?y.rank == 4 and len(?s) == 2",
    example = example("convolutions", "first(relu(concat_channels(x, y)))"),
    reason = "first(relu(concat_channels(x, y))) = relu(x)",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_first_scale: split(multiply(?x:static, ?c), split=?s, axis=1).0 => "
    .. "multiply((split(?x, constant(?s), axis=1, n_results=2)).0, ?c) where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and ?c.rank == 0 and len(?s) == 2",
    example = example("convolutions", "first(scale(x, c))"),
    reason = "first(scale(x, c)) = scale(first(x), c)",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_scale_first: multiply(split(?x:static, split=?s, axis=1).0, ?c) => "
    .. "(split(multiply(?x, ?c), constant(?s), axis=1, n_results=2)).0 where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and ?c.rank == 0 and len(?s) == 2",
    example = example("convolutions", "scale(first(x), c)"),
    reason = "scale(first(x), c) = first(scale(x, c))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_second_max_pool_concat_channels: "
    .. "split(nn.max_pool(concatenate(?x:static, ?y:static, axis=1), kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1], ceil_mode=0, "
    .. "storage_order=0), split=?s, axis=1).1 => nn.max_pool(?y, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1]) where ?x.dtype == float32 and ?x.rank == 4 and ?y.rank == 4 and "
    .. "len(?s) == 2",
    example = example("convolutions", "second(max_pool(concat_channels(x, y)))"),
    reason = "second(max_pool(concat_channels(x, y))) = max_pool(y)",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_second_relu_concat_channels: split(nn.relu(concatenate(?x:static, "
    .. "?y:static, axis=1)), split=?s, axis=1).1 => nn.relu(?y) where ?x.dtype == float32 "
    .. "and ?x.rank == 4 and ?y.rank == 4 and len(?s) == 2",
    example = example("convolutions", "second(relu(concat_channels(x, y)))"),
    reason = "second(relu(concat_channels(x, y))) = relu(y)",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_second_scale: split(multiply(?x:static, ?c), split=?s, axis=1).1 => "
    .. "multiply((split(?x, constant(?s), axis=1, n_results=2)).1, ?c) where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and ?c.rank == 0 and len(?s) == 2",
    example = example("convolutions", "second(scale(x, c))"),
    reason = "second(scale(x, c)) = scale(second(x), c)",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_scale_second: multiply(split(?x:static, split=?s, axis=1).1, ?c) => "
    .. "(split(multiply(?x, ?c), constant(?s), axis=1, n_results=2)).1 where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and ?c.rank == 0 and len(?s) == 2",
    example = example("convolutions", "scale(second(x), c)"),
    reason = "scale(second(x), c) = second(scale(x, c))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_avg_pool_first: nn.avg_pool(split(?x:static, split=?s, axis=1).0, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1], ceil_mode=0, count_include_pad=0) => (split(nn.avg_pool(?x, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1]), constant(?s), axis=1, n_results=2)).0 "
    .. "where ?x.dtype == float32 and ?x.rank == 4 and len(?s) == 2",
    example = example("convolutions", "avg_pool(first(x))"),
    reason = "avg_pool(first(x)) = first(avg_pool(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_first_avg_pool: split(nn.avg_pool(?x:static, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1], ceil_mode=0, "
    .. "count_include_pad=0), split=?s, axis=1).0 => nn.avg_pool((split(?x, constant(?s), "
    .. "axis=1, n_results=2)).0, kernel_shape=[3, 3], pads=[1, 1, 1, 1]) where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and len(?s) == 2",
    example = example("convolutions", "first(avg_pool(x))"),
    reason = "first(avg_pool(x)) = avg_pool(first(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_avg_pool_second: nn.avg_pool(split(?x:static, split=?s, axis=1).1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1], ceil_mode=0, count_include_pad=0) => (split(nn.avg_pool(?x, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1]), constant(?s), axis=1, n_results=2)).1 "
    .. "where ?x.dtype == float32 and ?x.rank == 4 and len(?s) == 2",
    example = example("convolutions", "avg_pool(second(x))"),
    reason = "avg_pool(second(x)) = second(avg_pool(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_second_avg_pool: split(nn.avg_pool(?x:static, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1], ceil_mode=0, "
    .. "count_include_pad=0), split=?s, axis=1).1 => nn.avg_pool((split(?x, constant(?s), "
    .. "axis=1, n_results=2)).1, kernel_shape=[3, 3], pads=[1, 1, 1, 1]) where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and len(?s) == 2",
    example = example("convolutions", "second(avg_pool(x))"),
    reason = "second(avg_pool(x)) = avg_pool(second(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_max_pool_first: nn.max_pool(split(?x:static, split=?s, axis=1).0, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1], ceil_mode=0, storage_order=0) => (split(nn.max_pool(?x, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1]), constant(?s), axis=1, n_results=2)).0 "
    .. "where ?x.dtype == float32 and ?x.rank == 4 and len(?s) == 2",
    example = example("convolutions", "max_pool(first(x))"),
    reason = "max_pool(first(x)) = first(max_pool(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_first_max_pool: split(nn.max_pool(?x:static, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1], ceil_mode=0, "
    .. "storage_order=0), split=?s, axis=1).0 => nn.max_pool((split(?x, constant(?s), "
    .. "axis=1, n_results=2)).0, kernel_shape=[3, 3], pads=[1, 1, 1, 1]) where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and len(?s) == 2",
    example = example("convolutions", "first(max_pool(x))"),
    reason = "first(max_pool(x)) = max_pool(first(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_relu_first: nn.relu(split(?x:static, split=?s, axis=1).0) => "
    .. "(split(nn.relu(?x), constant(?s), axis=1, n_results=2)).0 where ?x.dtype == float32 "
    .. "and ?x.rank == 4 and len(?s) == 2",
    example = example("convolutions", "relu(first(x))"),
    reason = "relu(first(x)) = first(relu(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_first_relu: split(nn.relu(?x:static), split=?s, axis=1).0 => "
    .. "nn.relu((split(?x, constant(?s), axis=1, n_results=2)).0) where ?x.dtype == float32 "
    .. "and ?x.rank == 4 and len(?s) == 2",
    example = example("convolutions", "first(relu(x))"),
    reason = "first(relu(x)) = relu(first(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_relu_max_pool: nn.relu(nn.max_pool(?x:static, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1], ceil_mode=0, "
    .. "storage_order=0)) => nn.max_pool(nn.relu(?x), kernel_shape=[3, 3], pads=[1, 1, 1, "
    .. "1]) where ?x.dtype == float32 and ?x.rank == 4",
    example = example("convolutions", "relu(max_pool(x))"),
    reason = "relu(max_pool(x)) = max_pool(relu(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_max_pool_relu: nn.max_pool(nn.relu(?x:static), kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1], ceil_mode=0, "
    .. "storage_order=0) => nn.relu(nn.max_pool(?x, kernel_shape=[3, 3], pads=[1, 1, 1, "
    .. "1])) where ?x.dtype == float32 and ?x.rank == 4",
    example = example("convolutions", "max_pool(relu(x))"),
    reason = "max_pool(relu(x)) = relu(max_pool(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_max_pool_second: nn.max_pool(split(?x:static, split=?s, axis=1).1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1], ceil_mode=0, storage_order=0) => (split(nn.max_pool(?x, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1]), constant(?s), axis=1, n_results=2)).1 "
    .. "where ?x.dtype == float32 and ?x.rank == 4 and len(?s) == 2",
    example = example("convolutions", "max_pool(second(x))"),
    reason = "max_pool(second(x)) = second(max_pool(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_second_max_pool: split(nn.max_pool(?x:static, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1], ceil_mode=0, "
    .. "storage_order=0), split=?s, axis=1).1 => nn.max_pool((split(?x, constant(?s), "
    .. "axis=1, n_results=2)).1, kernel_shape=[3, 3], pads=[1, 1, 1, 1]) where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and len(?s) == 2",
    example = example("convolutions", "second(max_pool(x))"),
    reason = "second(max_pool(x)) = max_pool(second(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_relu_second: nn.relu(split(?x:static, split=?s, axis=1).1) => "
    .. "(split(nn.relu(?x), constant(?s), axis=1, n_results=2)).1 where ?x.dtype == float32 "
    .. "and ?x.rank == 4 and len(?s) == 2",
    example = example("convolutions", "relu(second(x))"),
    reason = "relu(second(x)) = second(relu(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_second_relu: split(nn.relu(?x:static), split=?s, axis=1).1 => "
    .. "nn.relu((split(?x, constant(?s), axis=1, n_results=2)).1) where ?x.dtype == float32 "
    .. "and ?x.rank == 4 and len(?s) == 2",
    example = example("convolutions", "second(relu(x))"),
    reason = "second(relu(x)) = relu(second(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_conv_add_3: nn.conv(?x:static, add(?w:static, ?v:static), group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]) => add(nn.conv(?x, ?w, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), "
    .. "nn.conv(?x, ?v, kernel_shape=[3, 3], pads=[1, 1, 1, 1])) where ?x.dtype == float32 "
    .. "and ?x.rank == 4 and ?w.rank == 4 and ?v.rank == 4 and ?w.shape == ?v.shape",
    example = example("convolutions", "conv(x, add(w, v))"),
    reason = "conv(x, add(w, v)) = add(conv(x, w), conv(x, v))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_add_conv_conv: add(?p1@nn.conv(?x:static, ?w:static, group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]), ?p2@nn.conv(?x:static, ?v:static, group=1, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1])) => "
    .. "nn.conv(?x, add(?w, ?v), kernel_shape=[3, 3], pads=[1, 1, 1, 1]) where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and ?w.rank == 4 and ?v.rank == 4 and ?p1.shape == "
    .. "?p2.shape",
    example = example("convolutions", "add(conv(x, w), conv(x, v))"),
    reason = "add(conv(x, w), conv(x, v)) = conv(x, add(w, v))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_conv_add_4: nn.conv(add(?x:static, ?y:static), ?w:static, group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]) => add(nn.conv(?x, ?w, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), "
    .. "nn.conv(?y, ?w, kernel_shape=[3, 3], pads=[1, 1, 1, 1])) where ?x.dtype == float32 "
    .. "and ?x.rank == 4 and ?y.rank == 4 and ?w.rank == 4 and ?x.shape == ?y.shape",
    example = example("convolutions", "conv(add(x, y), w)"),
    reason = "conv(add(x, y), w) = add(conv(x, w), conv(y, w))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_add_conv_conv_2: add(?p1@nn.conv(?x:static, ?w:static, group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]), ?p2@nn.conv(?y:static, ?w:static, group=1, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1])) => "
    .. "nn.conv(add(?x, ?y), ?w, kernel_shape=[3, 3], pads=[1, 1, 1, 1]) where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and ?w.rank == 4 and ?y.rank == 4 and ?p1.shape == "
    .. "?p2.shape",
    example = example("convolutions", "add(conv(x, w), conv(y, w))"),
    reason = "add(conv(x, w), conv(y, w)) = conv(add(x, y), w)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_scale_add: multiply(add(?x:static, ?y:static), ?c) => "
    .. "add(multiply(?x, ?c), multiply(?y, ?c)) where ?x.dtype == float32 and ?x.rank == 4 "
    .. "and ?y.rank == 4 and ?c.rank == 0 and ?x.shape == ?y.shape",
    example = example("convolutions", "scale(add(x, y), c)"),
    reason = "scale(add(x, y), c) = add(scale(x, c), scale(y, c))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_add_scale_scale: add(?p1@multiply(?x:static, ?c), "
    .. "?p2@multiply(?y:static, ?c)) => multiply(add(?x, ?y), ?c) where ?x.dtype == float32 "
    .. "and ?x.rank == 4 and ?c.rank == 0 and ?y.rank == 4 and ?p1.shape == ?p2.shape",
    example = example("convolutions", "add(scale(x, c), scale(y, c))"),
    reason = "add(scale(x, c), scale(y, c)) = scale(add(x, y), c)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_conv_concat_outputs: nn.conv(?x:static, concatenate(?w:static, "
    .. "?v:static, axis=0), group=1, kernel_shape=[3, 3], pads=[1, 1, 1, 1], "
    .. "auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1]) => concatenate(nn.conv(?x, ?w, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1]), nn.conv(?x, ?v, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1]), axis=1) where ?x.dtype == float32 and ?x.rank == 4 and ?w.rank "
    .. "== 4 and ?v.rank == 4",
    example = example("convolutions", "conv(x, concat_outputs(w, v))"),
    reason = "conv(x, concat_outputs(w, v)) = concat_channels(conv(x, w), conv(x, v))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_concat_channels_conv_conv: concatenate(nn.conv(?x:static, ?w:static, "
    .. "group=1, kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]), nn.conv(?x:static, ?v:static, group=1, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1]), axis=1) => "
    .. "nn.conv(?x, concatenate(?w, ?v, axis=0), kernel_shape=[3, 3], pads=[1, 1, 1, 1]) "
    .. "where ?x.dtype == float32 and ?x.rank == 4 and ?w.rank == 4 and ?v.rank == 4",
    example = example("convolutions", "concat_channels(conv(x, w), conv(x, v))"),
    reason = "concat_channels(conv(x, w), conv(x, v)) = conv(x, concat_outputs(w, v))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_scale_concat_channels: multiply(concatenate(?x:static, ?y:static, "
    .. "axis=1), ?c) => concatenate(multiply(?x, ?c), multiply(?y, ?c), axis=1) where "
    .. "?x.dtype == float32 and ?x.rank == 4 and ?y.rank == 4 and ?c.rank == 0",
    example = example("convolutions", "scale(concat_channels(x, y), c)"),
    reason = "scale(concat_channels(x, y), c) = concat_channels(scale(x, c), scale(y, c))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_concat_channels_scale_scale: concatenate(multiply(?x:static, ?c), "
    .. "multiply(?y:static, ?c), axis=1) => multiply(concatenate(?x, ?y, axis=1), ?c) where "
    .. "?x.dtype == float32 and ?x.rank == 4 and ?c.rank == 0 and ?y.rank == 4",
    example = example("convolutions", "concat_channels(scale(x, c), scale(y, c))"),
    reason = "concat_channels(scale(x, c), scale(y, c)) = scale(concat_channels(x, y), c)",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_scale_concat_outputs: multiply(concatenate(?w:static, ?v:static, "
    .. "axis=0), ?c) => concatenate(multiply(?w, ?c), multiply(?v, ?c), axis=0) where "
    .. "?w.dtype == float32 and ?w.rank == 4 and ?v.rank == 4 and ?c.rank == 0",
    example = example("convolutions", "scale(concat_outputs(w, v), c)"),
    reason = "scale(concat_outputs(w, v), c) = concat_outputs(scale(w, c), scale(v, c))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_concat_outputs_scale_scale: concatenate(multiply(?w:static, ?c), "
    .. "multiply(?v:static, ?c), axis=0) => multiply(concatenate(?w, ?v, axis=0), ?c) where "
    .. "?w.dtype == float32 and ?w.rank == 4 and ?c.rank == 0 and ?v.rank == 4",
    example = example("convolutions", "concat_outputs(scale(w, c), scale(v, c))"),
    reason = "concat_outputs(scale(w, c), scale(v, c)) = scale(concat_outputs(w, v), c)",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_conv_add_5: nn.conv(?x:static, add(?w:static, ?v:static), group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]) => nn.conv(concatenate(?x, ?x, axis=1), concatenate(?w, ?v, "
    .. "axis=1), kernel_shape=[3, 3], pads=[1, 1, 1, 1]) where ?x.dtype == float32 and "
    .. "?x.rank == 4 and ?w.rank == 4 and ?v.rank == 4 and ?w.shape == ?v.shape",
    example = example("convolutions", "conv(x, add(w, v))"),
    reason = "conv(x, add(w, v)) = conv(concat_channels(x, x), concat_inputs(w, v))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_conv_concat_channels_concat_inputs: nn.conv(concatenate(?x:static, "
    .. "?x:static, axis=1), concatenate(?w:static, ?v:static, axis=1), group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]) => nn.conv(?x, add(?w, ?v), kernel_shape=[3, 3], pads=[1, 1, 1, "
    .. "1]) where ?x.dtype == float32 and ?x.rank == 4 and ?w.rank == 4 and ?v.rank == 4",
    example = example("convolutions", "conv(concat_channels(x, x), concat_inputs(w, v))"),
    reason = "conv(concat_channels(x, x), concat_inputs(w, v)) = conv(x, add(w, v))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_conv_add_6: nn.conv(add(?x:static, ?y:static), ?w:static, group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]) => nn.conv(concatenate(?x, ?y, axis=1), concatenate(?w, ?w, "
    .. "axis=1), kernel_shape=[3, 3], pads=[1, 1, 1, 1]) where ?x.dtype == float32 and "
    .. "?x.rank == 4 and ?y.rank == 4 and ?w.rank == 4 and ?x.shape == ?y.shape",
    example = example("convolutions", "conv(add(x, y), w)"),
    reason = "conv(add(x, y), w) = conv(concat_channels(x, y), concat_inputs(w, w))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_conv_concat_channels_concat_inputs_2: nn.conv(concatenate(?x:static, "
    .. "?y:static, axis=1), concatenate(?w:static, ?w:static, axis=1), group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]) => nn.conv(add(?x, ?y), ?w, kernel_shape=[3, 3], pads=[1, 1, 1, "
    .. "1]) where ?x.dtype == float32 and ?x.rank == 4 and ?y.rank == 4 and ?w.rank == 4",
    example = example("convolutions", "conv(concat_channels(x, y), concat_inputs(w, w))"),
    reason = "conv(concat_channels(x, y), concat_inputs(w, w)) = conv(add(x, y), w)",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_avg_pool_add: nn.avg_pool(add(?x:static, ?y:static), "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1], ceil_mode=0, count_include_pad=0) => add(nn.avg_pool(?x, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1]), nn.avg_pool(?y, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1])) where ?x.dtype == float32 and ?x.rank == 4 and ?y.rank == 4 and "
    .. "?x.shape == ?y.shape",
    example = example("convolutions", "avg_pool(add(x, y))"),
    reason = "avg_pool(add(x, y)) = add(avg_pool(x), avg_pool(y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_add_avg_pool_avg_pool: add(?p1@nn.avg_pool(?x:static, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1], ceil_mode=0, count_include_pad=0), ?p2@nn.avg_pool(?y:static, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1], ceil_mode=0, count_include_pad=0)) => nn.avg_pool(add(?x, ?y), "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1]) where ?x.dtype == float32 and ?x.rank == 4 "
    .. "and ?y.rank == 4 and ?p1.shape == ?p2.shape",
    example = example("convolutions", "add(avg_pool(x), avg_pool(y))"),
    reason = "add(avg_pool(x), avg_pool(y)) = avg_pool(add(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_first_add: split(add(?x:static, ?y:static), split=?s, axis=1).0 => "
    .. "add((split(?x, constant(?s), axis=1, n_results=2)).0, (split(?y, constant(?s), "
    .. "axis=1, n_results=2)).0) where ?x.dtype == float32 and ?x.rank == 4 and ?y.rank == "
    .. "4 and len(?s) == 2 and ?x.shape == ?y.shape",
    example = example("convolutions", "first(add(x, y))"),
    reason = "first(add(x, y)) = add(first(x), first(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_add_first_first: add(?p1@split(?x:static, split=?s, axis=1).0, "
    .. "?p2@split(?y:static, split=?s, axis=1).0) => (split(add(?x, ?y), constant(?s), "
    .. "axis=1, n_results=2)).0 where ?x.dtype == float32 and ?x.rank == 4 and ?y.rank == 4 "
    .. "and len(?s) == 2 and ?p1.shape == ?p2.shape",
    example = example("convolutions", "add(first(x), first(y))"),
    reason = "add(first(x), first(y)) = first(add(x, y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_second_add: split(add(?x:static, ?y:static), split=?s, axis=1).1 => "
    .. "add((split(?x, constant(?s), axis=1, n_results=2)).1, (split(?y, constant(?s), "
    .. "axis=1, n_results=2)).1) where ?x.dtype == float32 and ?x.rank == 4 and ?y.rank == "
    .. "4 and len(?s) == 2 and ?x.shape == ?y.shape",
    example = example("convolutions", "second(add(x, y))"),
    reason = "second(add(x, y)) = add(second(x), second(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_add_second_second: add(?p1@split(?x:static, split=?s, axis=1).1, "
    .. "?p2@split(?y:static, split=?s, axis=1).1) => (split(add(?x, ?y), constant(?s), "
    .. "axis=1, n_results=2)).1 where ?x.dtype == float32 and ?x.rank == 4 and ?y.rank == 4 "
    .. "and len(?s) == 2 and ?p1.shape == ?p2.shape",
    example = example("convolutions", "add(second(x), second(y))"),
    reason = "add(second(x), second(y)) = second(add(x, y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_avg_pool_concat_channels: nn.avg_pool(concatenate(?x:static, "
    .. "?y:static, axis=1), kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, "
    .. "strides=[1, 1], dilations=[1, 1], ceil_mode=0, count_include_pad=0) => "
    .. "concatenate(nn.avg_pool(?x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), "
    .. "nn.avg_pool(?y, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), axis=1) where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and ?y.rank == 4",
    example = example("convolutions", "avg_pool(concat_channels(x, y))"),
    reason = "avg_pool(concat_channels(x, y)) = concat_channels(avg_pool(x), avg_pool(y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_concat_channels_avg_pool_avg_pool: "
    .. "concatenate(nn.avg_pool(?x:static, kernel_shape=[3, 3], pads=[1, 1, 1, 1], "
    .. "auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1], ceil_mode=0, "
    .. "count_include_pad=0), nn.avg_pool(?y:static, kernel_shape=[3, 3], pads=[1, 1, 1, "
    .. "1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1], ceil_mode=0, "
    .. "count_include_pad=0), axis=1) => nn.avg_pool(concatenate(?x, ?y, axis=1), "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1]) where ?x.dtype == float32 and ?x.rank == 4 "
    .. "and ?y.rank == 4",
    example = example("convolutions", "concat_channels(avg_pool(x), avg_pool(y))"),
    reason = "concat_channels(avg_pool(x), avg_pool(y)) = avg_pool(concat_channels(x, y))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_max_pool_concat_channels: nn.max_pool(concatenate(?x:static, "
    .. "?y:static, axis=1), kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, "
    .. "strides=[1, 1], dilations=[1, 1], ceil_mode=0, storage_order=0) => "
    .. "concatenate(nn.max_pool(?x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), "
    .. "nn.max_pool(?y, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), axis=1) where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and ?y.rank == 4",
    example = example("convolutions", "max_pool(concat_channels(x, y))"),
    reason = "max_pool(concat_channels(x, y)) = concat_channels(max_pool(x), max_pool(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_concat_channels_max_pool_max_pool: "
    .. "concatenate(nn.max_pool(?x:static, kernel_shape=[3, 3], pads=[1, 1, 1, 1], "
    .. "auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1], ceil_mode=0, storage_order=0), "
    .. "nn.max_pool(?y:static, kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, "
    .. "strides=[1, 1], dilations=[1, 1], ceil_mode=0, storage_order=0), axis=1) => "
    .. "nn.max_pool(concatenate(?x, ?y, axis=1), kernel_shape=[3, 3], pads=[1, 1, 1, 1]) "
    .. "where ?x.dtype == float32 and ?x.rank == 4 and ?y.rank == 4",
    example = example("convolutions", "concat_channels(max_pool(x), max_pool(y))"),
    reason = "concat_channels(max_pool(x), max_pool(y)) = max_pool(concat_channels(x, y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_relu_concat_channels: nn.relu(concatenate(?x:static, ?y:static, "
    .. "axis=1)) => concatenate(nn.relu(?x), nn.relu(?y), axis=1) where ?x.dtype == float32 "
    .. "and ?x.rank == 4 and ?y.rank == 4",
    example = example("convolutions", "relu(concat_channels(x, y))"),
    reason = "relu(concat_channels(x, y)) = concat_channels(relu(x), relu(y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_concat_channels_relu_relu: concatenate(nn.relu(?x:static), "
    .. "nn.relu(?y:static), axis=1) => nn.relu(concatenate(?x, ?y, axis=1)) where ?x.dtype "
    .. "== float32 and ?x.rank == 4 and ?y.rank == 4",
    example = example("convolutions", "concat_channels(relu(x), relu(y))"),
    reason = "concat_channels(relu(x), relu(y)) = relu(concat_channels(x, y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_max_pool_add: nn.max_pool(add(?x:static, ?x:static), "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1], ceil_mode=0, storage_order=0) => add(nn.max_pool(?x, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1]), nn.max_pool(?x, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1])) where ?x.dtype == float32 and ?x.rank == 4",
    example = example("convolutions", "max_pool(add(x, x))"),
    reason = "max_pool(add(x, x)) = add(max_pool(x), max_pool(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_add_max_pool_max_pool: add(?p1@nn.max_pool(?x:static, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1], ceil_mode=0, storage_order=0), ?p2@nn.max_pool(?x:static, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1], ceil_mode=0, storage_order=0)) => nn.max_pool(add(?x, ?x), "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1]) where ?x.dtype == float32 and ?x.rank == 4 "
    .. "and ?p1.shape == ?p2.shape",
    example = example("convolutions", "add(max_pool(x), max_pool(x))"),
    reason = "add(max_pool(x), max_pool(x)) = max_pool(add(x, x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_relu_add: nn.relu(add(?x:static, ?x:static)) => add(nn.relu(?x), "
    .. "nn.relu(?x)) where ?x.dtype == float32 and ?x.rank == 4",
    example = example("convolutions", "relu(add(x, x))"),
    reason = "relu(add(x, x)) = add(relu(x), relu(x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_add_relu_relu: add(?p1@nn.relu(?x:static), ?p2@nn.relu(?x:static)) "
    .. "=> nn.relu(add(?x, ?x)) where ?x.dtype == float32 and ?x.rank == 4 and ?p1.shape == "
    .. "?p2.shape",
    example = example("convolutions", "add(relu(x), relu(x))"),
    reason = "add(relu(x), relu(x)) = relu(add(x, x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_relu_avg_pool_relu: nn.relu(nn.avg_pool(nn.relu(?x:static), "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1], ceil_mode=0, count_include_pad=0)) => nn.avg_pool(nn.relu(?x), "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1]) where ?x.dtype == float32 and ?x.rank == 4",
    example = example("convolutions", "relu(avg_pool(relu(x)))"),
    reason = "relu(avg_pool(relu(x))) = avg_pool(relu(x))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_add_conv_conv_3: add(?p1@nn.conv(?x:static, ?w:static, group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]), ?p2@nn.conv(?y:static, ?v:static, group=1, kernel_shape=[3, 3], "
    .. "pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], dilations=[1, 1])) => "
    .. "nn.conv(concatenate(?x, ?y, axis=1), concatenate(?w, ?v, axis=1), kernel_shape=[3, "
    .. "3], pads=[1, 1, 1, 1]) where ?x.dtype == float32 and ?x.rank == 4 and ?w.rank == 4 "
    .. "and ?y.rank == 4 and ?v.rank == 4 and ?p1.shape == ?p2.shape",
    example = example("convolutions", "add(conv(x, w), conv(y, v))"),
    reason = "add(conv(x, w), conv(y, v)) = conv(concat_channels(x, y), concat_inputs(w, v))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_conv_concat_channels_concat_inputs_3: nn.conv(concatenate(?x:static, "
    .. "?y:static, axis=1), concatenate(?w:static, ?v:static, axis=1), group=1, "
    .. "kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=NOTSET, strides=[1, 1], "
    .. "dilations=[1, 1]) => add(nn.conv(?x, ?w, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), "
    .. "nn.conv(?y, ?v, kernel_shape=[3, 3], pads=[1, 1, 1, 1])) where ?x.dtype == float32 "
    .. "and ?x.rank == 4 and ?y.rank == 4 and ?w.rank == 4 and ?v.rank == 4",
    example = example("convolutions", "conv(concat_channels(x, y), concat_inputs(w, v))"),
    reason = "conv(concat_channels(x, y), concat_inputs(w, v)) = add(conv(x, w), conv(y, v))",
    proof = "reassociates", source = "generated", grows = true },
  { "generated_onnx_add_concat_channels_concat_channels: add(?p1@concatenate(?x:static, "
    .. "?x:static, axis=1), ?p2@concatenate(?z:static, ?y:static, axis=1)) => "
    .. "add(concatenate(?x, ?y, axis=1), concatenate(?z, ?x, axis=1)) where ?x.dtype == "
    .. "float32 and ?x.rank == 4 and ?z.rank == 4 and ?y.rank == 4 and ?p1.shape == "
    .. "?p2.shape",
    example = example("convolutions", "add(concat_channels(x, x), concat_channels(z, y))"),
    reason = "add(concat_channels(x, x), concat_channels(z, y)) = add(concat_channels(x, y), "
    .. "concat_channels(z, x))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_add_concat_channels_concat_channels_2: "
    .. "add(?p1@concatenate(?x:static, ?y:static, axis=1), ?p2@concatenate(?z:static, "
    .. "?x:static, axis=1)) => add(concatenate(?x, ?x, axis=1), concatenate(?z, ?y, "
    .. "axis=1)) where ?x.dtype == float32 and ?x.rank == 4 and ?y.rank == 4 and ?z.rank == "
    .. "4 and ?p1.shape == ?p2.shape",
    example = example("convolutions", "add(concat_channels(x, y), concat_channels(z, x))"),
    reason = "add(concat_channels(x, y), concat_channels(z, x)) = add(concat_channels(x, x), "
    .. "concat_channels(z, y))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_add_concat_channels_concat_channels_3: "
    .. "add(?p1@concatenate(?x:static, ?x:static, axis=1), ?p2@concatenate(?y:static, "
    .. "?z:static, axis=1)) => concatenate(add(?x, ?y), add(?x, ?z), axis=1) where ?x.dtype "
    .. "== float32 and ?x.rank == 4 and ?y.rank == 4 and ?z.rank == 4 and ?p1.shape == "
    .. "?p2.shape",
    example = example("convolutions", "add(concat_channels(x, x), concat_channels(y, z))"),
    reason = "add(concat_channels(x, x), concat_channels(y, z)) = concat_channels(add(x, y), "
    .. "add(x, z))",
    proof = "exact", source = "generated", grows = true },
  { "generated_onnx_concat_channels_add_add: concatenate(add(?x:static, ?y:static), "
    .. "add(?x:static, ?z:static), axis=1) => add(concatenate(?x, ?x, axis=1), "
    .. "concatenate(?y, ?z, axis=1)) where ?x.dtype == float32 and ?x.rank == 4 and ?y.rank "
    .. "== 4 and ?z.rank == 4 and ?x.shape == ?y.shape and ?x.shape == ?z.shape",
    example = example("convolutions", "concat_channels(add(x, y), add(x, z))"),
    reason = "concat_channels(add(x, y), add(x, z)) = add(concat_channels(x, x), "
    .. "concat_channels(y, z))",
    proof = "exact", source = "generated", grows = true },
}
