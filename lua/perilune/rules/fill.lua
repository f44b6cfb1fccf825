--- Tensors whose elements are all equal. Exporters write them as ConstantOfShape, as an Expand of
-- a scalar, and as tables of zeros (token types, masks that hide nothing).

return {
  { "fill_of_scalar: broadcast_to(...)",
    native = "fill_of_scalar", reason = "a scalar in a computed shape",
    source = "ONNX ConstantOfShape" },
  { "fill_of_condition: broadcast_to(...)", native = "fill_of_condition",
    reason = "a condition that always holds is true in each shape",
    source = "PyTorch's masks of attention" },
  { "choice_of_fill: where(...)", native = "choice_of_fill",
    reason = "the same choice for each element" },
  { "cast_of_fill: cast(...)", native = "cast_of_fill",
    reason = "the value is cast, then filled with" },
  { "take_of_fill: take(...)", native = "take_of_fill",
    reason = "the same row for each position is broadcast" },
  { "gather_of_fill: gather(...)", native = "gather_of_fill",
    reason = "whatever the positions, the elements are equal" },
  { "neutral_fill: {logical_and|logical_or|add|multiply}(...)", native = "neutral_fill",
    reason = "x and true = x, x + 0 = x, x * 1 = x",
    source = "TVM FullElementwise" },
  { "rows_of_broadcast: {add|subtract|multiply}(...)", native = "rows_of_broadcast",
    reason = "the operator broadcasts rows itself that broadcast positions select" },
  { "tile_ones: tile(...)", native = "tile_ones",
    reason = "operators broadcast axes of extent 1 themselves" },
  { "triangle: where(...)", native = "triangle",
    reason = "what a lower triangle of ones leaves out is the upper triangle",
    source = "PyTorch's scaled_dot_product_attention with is_causal" },
}
