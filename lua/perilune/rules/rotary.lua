--- Rotary embeddings (FuseOnnxOps): pairs of elements of each head, x: (batch, heads, length,
-- size), are rotated by an angle of their position. Of one form two operators are made: ONNX's,
-- and that of ONNX Runtime's own domain for older opsets, when it is asked for.

-- x * cos + rotated x * sin, where SimplifyExpr has made the rotation by half of a head a take,
-- has moved its signs to the sines, and has given the positions t their new axes first. The
-- angles of both halves are the same.
local pattern = "add(multiply(?x, cos(multiply(?t, ?w:const))), multiply(take(?x, ?i:const, "
  .. "axis=3), multiply(sin(multiply(?t, ?w)), ?g:const)))"
local condition = "?x.rank == 4 and ?t.rank == 4 and ?t.shape[1] == 1 and "
  .. "?t.shape[2] == ?x.shape[2] and ?t.shape[3] == 1 and ?w.rank == 1 and ?g.rank == 1 and "
  .. "?w.shape[0] == ?x.shape[3] and ?g.shape[0] == ?x.shape[3] and halves(?w, 1) and "
  .. "halves(?g, -1) and ?i.rank == 1 and ?x.shape[3] > 0 and ?i.value == "
  .. "sublist(iota(?x.shape[3]), ?x.shape[3] // 2, ?x.shape[3]) + "
  .. "sublist(iota(?x.shape[3]), 0, ?x.shape[3] // 2)"

-- The operators take the cosines and sines of half a head.
local half = "constant([?w.shape[0] // 2])"
local angles = ("multiply(squeeze(?t, axes=[1]), strided_slice(?w, constant([0]), %s))")
  :format(half)
local cosines = ("cos(%s)"):format(angles)
local sines = ("multiply(sin(%s), strided_slice(?g, %s, constant([?w.shape[0]])))"):format(angles,
  half)

local function rule(name, replacement, where)
  return { ("%s: %s => %s where %s and %s"):format(name, pattern, replacement, where, condition),
    proof = "approximates", grows = true,
    reason = "pairs of elements of each head are rotated by position",
    source = "ONNX RotaryEmbedding; ONNX Runtime RotaryEmbeddingFusion" }
end

return {
  rule("rotary_embedding", ("rotary_embedding(?x, %s, %s)"):format(cosines, sines),
    "opset >= 23 and ?t.shape[0] == ?x.shape[0]"),
  -- The tables of this operator are by position, from the first one on.
  rule("microsoft_rotary_embedding", ("microsoft.rotary_embedding(?x, constant([0]), "
    .. "squeeze(%s, axes=[0]), squeeze(%s, axes=[0]))"):format(cosines, sines),
    "microsoft and opset < 23 and ?x.dtype == float32 and ?t.shape[0] == 1"),
}
