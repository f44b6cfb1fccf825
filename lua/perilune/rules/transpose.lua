--- Elementwise operators between transposes, in ONNX models: they work on the operands as they
-- are before the transposes. Each of these rules leaves a transpose less.

local binary = "?f{add|subtract|multiply|divide|power|maximum|minimum}"
local inner, alone = "?t@transpose(?x, axes=?p)", "?u.uses == 1 and ?t.uses == 1"
local cancel = "compose(?p, ?q) == iota(?x.rank) and " .. alone
local row = "transpose(reshape(?y, newshape=list(?x.rank - 1, 1) + ?y.shape), axes=?q)"
local as_before = "between two transposes, an elementwise operator works on what is before them"
local optimizer = "ONNX Runtime TransposeOptimizer"
local rules = {
  { "transposed_unary: transpose(?u@?f{elementwise}(" .. inner .. "), axes=?q) => "
    .. "?f(transpose(?x, axes=compose(?p, ?q)), **?u) where opset >= 1 and " .. alone,
    reason = as_before, source = optimizer },
  { "transposed_operands: transpose(?u@" .. binary .. "(" .. inner .. ", ?s@transpose(?y, "
    .. "axes=?r)), axes=?q) => ?f(transpose(?x, axes=compose(?p, ?q)), transpose(?y, "
    .. "axes=compose(?r, ?q)), **?u) where opset >= 1 and ?x.rank == ?y.rank and ?s.uses == 1 "
    .. "and " .. alone, reason = as_before, source = optimizer },
  { "common_transpose: ?u@" .. binary .. "(" .. inner .. ", ?s@transpose(?y, axes=?p)) => "
    .. "transpose(?f(?x, ?y, **?u), axes=?p) where opset >= 1 and ?x.rank == ?y.rank and "
    .. "?s.uses == 1 and ?t.uses == 1",
    reason = "two operands that are transposed alike are transposed behind the operator",
    source = optimizer },
  { "transposed_softmax: transpose(?u@?f{nn.softmax|nn.log_softmax}(" .. inner .. ", axis=?a, "
    .. "coerce_2d=0), axes=?q) => ?f(?x, axis=?p[normalize(?a, ?x.rank)]) where opset >= 1 and "
    .. cancel, proof = "reassociates",
    reason = "the axis is another one before the transposes; sums along the last axis have "
      .. "another order", source = optimizer },
}
for _, side in ipairs { "left", "right" } do
  local function operands(a, b) return side == "left" and a .. ", " .. b or b .. ", " .. a end
  local function add(name, pattern, x, y, where)
    rules[#rules + 1] = { ("%s_%s: transpose(?u@%s(%s), axes=?q) => ?f(%s, **?u) where "
      .. "opset >= 1 and %s"):format(name, side, binary, operands(inner, pattern),
      operands(x, y), where), reason = as_before, source = optimizer }
  end
  add("transposed_number", "?c:scalar", "transpose(?x, axes=compose(?p, ?q))", "?c",
    "?c.rank <= 1 and ?x.rank >= 1 and " .. alone)
  add("transposed_row", "?y:const", "?x", row, "?y.rank == 1 and ?x.rank >= 1 and " .. cancel)
  add("transposed_operand", "?y", "?x", "transpose(?y, axes=?q)",
    "?y.rank == ?x.rank and " .. cancel)
end

return rules
