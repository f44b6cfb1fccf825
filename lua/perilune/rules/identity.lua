--- Operators that give back their operand.

return {
  { "only_operand: {copy|add_n|mean_n|maximum|minimum}(?x) => ?x",
    reason = "a copy, or a sum, mean, maximum or minimum of one operand",
    source = "ONNX eliminate_identity" },
  { "inference_dropout: nn.dropout(...)", native = "inference_dropout",
    reason = "in inference dropout keeps every element",
    source = "ONNX eliminate_nop_dropout; TVM SimplifyInference" },
}
