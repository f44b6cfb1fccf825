--- Neutral operands, and operands that another operand makes redundant. x + 0
-- becomes x also for -0.0, where IEEE 754 gives +0.0: the two compare equal.

return {
  { "add_zero: add(?x, 0) => ?x", reason = "x + 0 = x", source = "ONNX eliminate_nop_with_unit" },
  { "subtract_zero: subtract(?x, 0) => ?x", reason = "x - 0 = x",
    source = "ONNX eliminate_nop_with_unit" },
  { "multiply_one: multiply(?x, 1) => ?x", reason = "x * 1 = x",
    source = "ONNX eliminate_nop_with_unit" },
  { "divide_one: divide(?x, 1) => ?x", reason = "x / 1 = x",
    source = "ONNX eliminate_nop_with_unit" },
  { "power_one: power(?x, ?e@1) => ?x where ?e.dtype == ?x.dtype or contains(float64, ?x.dtype)",
    reason = "x ^ 1 = x, where the power is not computed in a dtype that rounds x",
    source = "ONNX eliminate_nop_with_unit" },
  { "and_true: logical_and(?x, true) => ?x", reason = "x and true = x",
    source = "ONNX eliminate_nop_with_unit" },
  { "or_false: logical_or(?x, false) => ?x", reason = "x or false = x",
    source = "ONNX eliminate_nop_with_unit" },
  { "drop_broadcast: {add|subtract|multiply|divide|power|mod|logical_and|logical_or|logical_xor"
    .. "|equal|greater|greater_equal|less|less_equal|maximum|minimum|where}(...)",
    native = "drop_broadcast",
    reason = "an operator broadcasts its operands itself; another one has the result's shape",
    source = "onnxscript remove_expand_before_binary_op" },
  { "drop_fill: {add|subtract|multiply|divide|power|mod|logical_and|logical_or|logical_xor"
    .. "|equal|greater|greater_equal|less|less_equal|maximum|minimum|where}(...)",
    native = "drop_fill",
    reason = "an operator broadcasts a value itself; another operand has the result's shape",
    source = "TVM FullElementwise" },
  { "add_constants: add(add(?x:int, ?a:const), ?b:const) => add(?x, add(?a, ?b))",
    reason = "(x + a) + b = x + (a + b), also modulo 2^n" },
  { "multiply_constants: multiply(multiply(?x:int, ?a:const), ?b:const) => "
    .. "multiply(?x, multiply(?a, ?b))", reason = "(x * a) * b = x * (a * b), also modulo 2^n" },
  { "add_multiples: add(multiply(?x:int, ?a:const), multiply(?x, ?b:const)) => "
    .. "multiply(?x, add(?a, ?b))", reason = "x * a + x * b = x * (a + b), also modulo 2^n" },
  { "reciprocal_square_root: divide(?x, sqrt(?y)) => multiply(?x, rsqrt(?y)) where not onnx",
    proof = "reassociates", reason = "x / sqrt(y) = x * (1 / sqrt(y)); ONNX has no rsqrt",
    source = "TVM SimplifyRSqrt" },
  { "add_float_constants: add(add(?x:dynamic, ?a:const), ?b:const) => add(?x, add(?a, ?b)) "
    .. "where not onnx", proof = "reassociates", reason = "(x + a) + b = x + (a + b)",
    source = "TVM SimplifyAdjacentMultiplyOrAdd" },
  { "multiply_float_constants: multiply(multiply(?x:dynamic, ?a:const), ?b:const) => "
    .. "multiply(?x, multiply(?a, ?b)) where not onnx", proof = "reassociates",
    reason = "(x * a) * b = x * (a * b)", source = "TVM SimplifyAdjacentMultiplyOrAdd" },
  { "distribute_constant: multiply(?s@add(?x:dynamic, ?a:const), ?b:const) => "
    .. "add(multiply(?x, ?b), multiply(?a, ?b)) where not onnx and ?s.uses == 1",
    proof = "reassociates", grows = true, reason = "(x + a) * b = x * b + a * b, "
      .. "where FoldScaleAxis finds the factor", source = "TVM SwitchAddMultiply" },
  { "binomial: add(add(multiply(_, _), multiply(_, _)), multiply(_, _))", native = "binomial",
    proof = "reassociates", reason = "a x^2 + b x y + c y^2 = a (x + p y) (x + q y)",
    source = "TVM SimplifyBinomial",
    example = "fn (%x: Tensor[(3), int32], %y: Tensor[(3), int32]) { add(add(multiply(%x, %x), "
      .. "multiply(2, multiply(%x, %y))), multiply(%y, %y)) }" },
}
