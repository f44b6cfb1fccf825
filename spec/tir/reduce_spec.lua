-- Reductions of TIR: tir.comm_reducer, tir.sum and its like.

local pl = require "perilune"
local tir = pl.tir

describe("a reduction", function()
  local A = tir.decl_buffer({ 16, 8, 4 }, "float32", "A")
  local i = tir.Var "i"
  local k = tir.IterVar({ 0, 8 }, "k", "CommReduce")
  local l = tir.IterVar({ 0, 4 }, "l", "CommReduce")
  local value = A:load(i, k.var, l.var)

  it("over an axis is a Reduce of one combiner", function()
    local sum = tir.sum(value, { k, l })
    assert.equal("Reduce", sum.kind)
    assert.equal("float32", sum.dtype)
    assert.same({ 1, 2, 0, 0 }, { #sum.source, #sum.axis, #sum.init, sum.value_index })
    assert.is_true(sum.condition.value == 1)
    local combiner = sum.combiner
    assert.equal("x + y", tostring(combiner.result[1]))
    assert.same({ "x", "y" }, { combiner.lhs[1].name, combiner.rhs[1].name })
    assert.equal(0, combiner.identity_element[1].value)
    local x, y = tir.Var("x", "float32"), tir.Var("y", "float32")
    assert.is_true(pl.equal(sum, tir.Reduce(tir.CommReducer({ x }, { y }, { x + y },
      { tir.const(0.0, "float32") }), { value }, { k, l })))
  end)

  it("starts with what changes nothing, of any dtype", function()
    local function identity(reduce, dtype)
      return reduce(tir.Var("v", dtype), k).combiner.identity_element[1].value
    end
    assert.equal(1, identity(tir.prod, "int64"))
    assert.equal(127, identity(tir.min, "int8"))
    assert.equal(-(1 << 31), identity(tir.max, "int32"))
    assert.equal(65504.0, identity(tir.min, "float16"))
    assert.equal(0, identity(tir.max, "uint8"))
  end)

  it("takes a condition and an initial value", function()
    local max = tir.max(value, k, tir.lt(k.var, 4), tir.const(2.0, "float32"))
    assert.equal("k < 4", tostring(max.condition))
    assert.equal(2.0, max.init[1].value)
    assert.equal("T.max(x, y)", tostring(max.combiner.result[1]))
  end)

  it("without an axis is of the values", function()
    assert.equal(5, tir.max(1, 5, 3).value)
    assert.equal(7, tir.sum(3, 4).value)
    assert.equal(24, tir.prod(2, 3, 4).value)
    assert.equal("T.min(i, 3)", tostring(tir.min(i, 3)))
  end)

  it("of several values has as many results", function()
    local argmax = tir.comm_reducer(function(x, y)
      local first = tir.ge(x[2], y[2])
      return { tir.Select(first, x[1], y[1]), tir.Select(first, x[2], y[2]) }
    end, function(index, dtype) return { tir.const(-1, index), tir.min_value(dtype) } end, "argmax")
    local at, most = argmax({ k.var, value }, k)
    assert.same({ 0, 1 }, { at.value_index, most.value_index })
    assert.same({ "int32", "float32" }, { at.dtype, most.dtype })
    assert.same({ "x_0", "x_1" }, { at.combiner.lhs[1].name, at.combiner.lhs[2].name })
    assert.is_true(pl.equal(at.combiner, most.combiner))
  end)

  it("refuses what is no axis and no value", function()
    local function message(f, ...)
      local ok, what = pcall(f, ...)
      assert.is_false(ok)
      return (what:gsub("^%S+:%d+: ", "", 1))
    end
    local plain = tir.IterVar({ 0, 8 }, "j", "DataPar")
    local wrong = "tir.sum: an axis is an IterVar of type CommReduce"
    assert.equal(wrong, message(tir.sum, value, plain))
    assert.equal(wrong, message(tir.sum, value, { i }))
    assert.equal("tir.sum: an axis: a node expected, got number", message(tir.sum, value, { 1 }))
    assert.equal("tir.min: an axis is needed", message(tir.min, value, {}))
    assert.equal("tir.min: a value is needed", message(tir.min, {}, k))
    assert.equal("tir.max: an axis or another value is expected, got nil", message(tir.max, value))
    assert.equal("tir.comm_reducer: fidentity: a function expected, got nil",
      message(tir.comm_reducer, print))
    local none = tir.comm_reducer(tir.add, function() return {} end, "none")
    assert.equal("none: of 1 values it has 1 results and 0 identities", message(none, value, k))
  end)
end)
