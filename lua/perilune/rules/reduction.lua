--- Reductions.

return {
  { "reduce_single: {sum|mean|prod|max|min}(...)", native = "reduce_single",
    reason = "the reduced axes have one element" },
}
