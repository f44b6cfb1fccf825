-- pl.eval: loops, sequences, optionals, and arguments that do not fit.

local pl = require "perilune"

local op = pl.op

local function scalar(name, dtype) return pl.var(name, ("Tensor[(), %s]"):format(dtype)) end
local function floats(name, n) return pl.var(name, ("Tensor[(%s), float32]"):format(n)) end
local function tables(list)
  local out = {}
  for i, tensor in ipairs(list) do out[i] = tensor:to_table() end
  return out
end

local function refuses(f, message)
  local ok, err = pcall(f)
  assert.is_false(ok)
  assert.truthy(tostring(err):find(message, 1, true), tostring(err))
end

-- A function of a trip count, a condition and a start that adds 1 in each round
-- and collects twice the sum, until the third round.
local function counting()
  local i, cond, v = scalar("i", "int64"), scalar("cond", "bool"), floats("v", 2)
  local sum = v + 1
  local body = pl.func({ i, cond, v }, pl.tuple { op.less(i, pl.const(2)), sum, sum * 2 })
  local m, go, x = scalar("m", "int64"), scalar("go", "bool"), floats("x", 2)
  local loop = op.loop(m, go, x, body, { n_results = 2 })
  return pl.func({ m, go, x }, pl.tuple { loop:unpack() })
end

describe("a loop", function()
  local f = counting()

  it("runs as often as its trip count says", function()
    local last, all = pl.eval(f, 2, true, { 0, 10 })
    assert.same({ 2.0, 12.0 }, last:to_table())
    assert.same({ { 2.0, 22.0 }, { 4.0, 24.0 } }, all:to_table())
  end)

  it("ends when its condition fails", function()
    local last, all = pl.eval(f, 100, true, { 0, 10 })
    assert.same({ 3.0, 13.0 }, last:to_table())
    assert.same({ 3, 2 }, all.shape)
  end)

  it("that never runs gives its start, and nothing in the right shape", function()
    for _, run in ipairs { { 0, true }, { -5, true }, { 9, false } } do
      local last, all = pl.eval(f, run[1], run[2], { 0, 10 })
      assert.same({ 0.0, 10.0 }, last:to_table())
      assert.same({ 0, 2 }, all.shape)
      assert.equal("float32", all.dtype)
    end
  end)

  it("without a trip count runs by its condition", function()
    local last = pl.eval(f, nil, true, { 0, 10 })
    assert.same({ 3.0, 13.0 }, last:to_table())
  end)

  it("in a loop sees the values outside", function()
    local k, c2, w = scalar("k", "int64"), scalar("c2", "bool"), floats("w", 2)
    local i, c1, v = scalar("i", "int64"), scalar("c1", "bool"), floats("v", 2)
    local x = floats("x", 2)
    local inner = pl.func({ k, c2, w }, pl.tuple { c2, w + v + x })
    local nested = op.loop(pl.const(2), pl.const(true), v, inner, { n_results = 1 })
    local outer = pl.func({ i, c1, v }, pl.tuple { c1, nested:get(0) })
    local loop = op.loop(pl.const(2), pl.const(true), x, outer, { n_results = 1 })
    local f2 = pl.func({ x }, loop:get(0))
    -- v -> 3 v + 2 x, twice
    assert.same({ 17.0, 34.0 }, pl.eval(f2, { 1, 2 }):to_table())
  end)

  it("of many rounds needs no stack", function()
    local i, cond, v = scalar("i", "int64"), scalar("cond", "bool"), scalar("v", "int64")
    local body = pl.func({ i, cond, v }, pl.tuple { cond, v + i })
    local m = scalar("m", "int64")
    local loop = op.loop(m, pl.const(true), pl.const(0), body, { n_results = 1 })
    assert.equal(4999950000, pl.eval(pl.func({ m }, loop:get(0)), 100000):to_table())
  end)

  it("whose condition is no boolean is refused", function()
    local i, cond, v = scalar("i", "int64"), scalar("cond", "bool"), floats("v", 2)
    local body = pl.func({ i, cond, v }, pl.tuple { v, v })
    local x = floats("x", 2)
    local loop = op.loop(pl.const(2), pl.const(true), x, body, { n_results = 1 })
    refuses(function() pl.eval(pl.func({ x }, loop:get(0)), { 1, 2 }) end,
      "'loop': an iteration does not give a boolean condition")
  end)
end)

describe("a scan", function()
  local function running(attrs)
    local s, e = scalar("s", "float32"), scalar("e", "float32")
    local sum = s + e
    local body = pl.func({ s, e }, pl.tuple { sum, sum })
    local x = pl.var("x", "Tensor[(N), float32]")
    attrs.num_scan_inputs, attrs.n_results = 1, 2
    local scan = op.scan(pl.const(pl.tensor(0.0)), x, body, attrs)
    return pl.func({ x }, pl.tuple { scan:unpack() })
  end

  it("applies a function along an axis", function()
    local last, all = pl.eval(running {}, { 1, 2, 3 })
    assert.equal(6.0, last:to_table())
    assert.same({ 1.0, 3.0, 6.0 }, all:to_table())
  end)

  it("goes backwards where asked", function()
    local f = running { scan_input_directions = { 1 }, scan_output_directions = { 1 } }
    local _, all = pl.eval(f, { 1, 2, 3 })
    assert.same({ 6.0, 5.0, 3.0 }, all:to_table())
  end)

  it("of nothing gives nothing", function()
    local last, all = pl.eval(running {}, pl.tensor("", "float32", { 0 }))
    assert.equal(0.0, last:to_table())
    assert.same({ 0 }, all.shape)
  end)
end)

describe("a sequence", function()
  local s = pl.var("s", "seq(Tensor[(?), float32])")
  local x = pl.var("x", "Tensor[(?), float32]")
  local function run(body, ...) return pl.eval(pl.func({ s }, body), ...) end
  local two = { pl.tensor({ 1, 2 }, "float32"), pl.tensor({ 3 }, "float32") }

  it("is a table of tensors", function()
    assert.same({ { 1.0, 2.0 }, { 3.0 } }, tables(run(s, two)))
    assert.same({}, run(s, {}))
    assert.same({ { 7.0 } }, tables(run(s, { { 7 } })))
  end)

  it("has a length and elements, counted from both ends", function()
    assert.equal(2, run(op.sequence_length(s), two):to_table())
    assert.same({ 3.0 }, run(op.sequence_at(s, pl.const(-1)), two):to_table())
    refuses(function() run(op.sequence_at(s, pl.const(2)), two) end,
      "'sequence_at': position 2 is outside of 2 elements")
  end)

  it("grows and shrinks", function()
    local f = pl.func({ s, x }, op.sequence_insert(s, x, pl.const(-1)))
    assert.same({ { 1.0, 2.0 }, { 9.0 }, { 3.0 } }, tables(pl.eval(f, two, { 9 })))
    assert.same({ { 3.0 } }, tables(run(op.sequence_erase(s, pl.const(0)), two)))
    assert.same({ { 1.0, 2.0 } }, tables(run(op.sequence_erase(s), two)))
    refuses(function() run(op.sequence_erase(s), {}) end, "outside of 0 elements")
  end)

  it("is joined, and made of parts", function()
    assert.same({ 1.0, 2.0, 3.0 }, run(op.concat_from_sequence(s, { axis = 0 }), two):to_table())
    refuses(function() run(op.concat_from_sequence(s, { axis = 0 }), {}) end,
      "the sequence is empty")
    local m = pl.var("m", "Tensor[(5, 2), int64]")
    local rows = pl.func({ m }, op.split_to_sequence(m, pl.const(2), { axis = 0 }))
    assert.same({ { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8 } }, { { 9, 0 } } },
      tables(pl.eval(rows, { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 }, { 9, 0 } })))
    local columns = pl.func({ m }, op.split_to_sequence(m, { axis = 1, keepdims = 0 }))
    assert.same({ { 1, 3, 5, 7, 9 }, { 2, 4, 6, 8, 0 } },
      tables(pl.eval(columns, { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 }, { 9, 0 } })))
  end)

  it("is mapped", function()
    local e = pl.var("e", "Tensor[(?), float32]")
    local map = op.sequence_map(s, pl.func({ e }, e * 2))
    assert.same({ { 2.0, 4.0 }, { 6.0 } }, tables(run(map, two)))
    assert.same({}, run(map, {}))
  end)
end)

describe("an optional", function()
  local o = pl.var("o", "optional(Tensor[(2), float32])")
  it("is what it has, or nil", function()
    local has = pl.func({ o }, op.optional_has_element(o))
    assert.is_true(pl.eval(has, { 1, 2 }):to_table())
    assert.is_false(pl.eval(has, nil):to_table())
    local get = pl.func({ o }, op.optional_get_element(o))
    assert.same({ 1.0, 2.0 }, pl.eval(get, { 1, 2 }):to_table())
    refuses(function() pl.eval(get, nil) end, "the optional is empty")
  end)
end)

describe("arguments that do not fit", function()
  local a, b = pl.var("a", "Tensor[(N, 2), float32]"), pl.var("b", "Tensor[(N), float32]")
  local f = pl.func({ a, b }, pl.tuple { a, b })
  local function refused(message, ...)
    local args = table.pack(...)
    refuses(function() pl.eval(f, table.unpack(args, 1, args.n)) end, message)
  end

  it("are named, with what was expected", function()
    refused("expected 2 arguments, got 1", { { 1, 2 } })
    refused("argument 1 'a': expected Tensor[(N, 2), float32], got Tensor[(2), float32]", { 1, 2 },
      { 1 })
    refused("argument 2 'b': expected Tensor[(1), float32], got Tensor[(1), int64]", { { 1, 2 } },
      pl.tensor({ 1 }, "int64"))
  end)

  it("give a symbolic extent one number", function()
    refused("argument 2 'b': expected Tensor[(1), float32], got Tensor[(2), float32]", { { 1, 2 } },
      { 1, 2 })
  end)
end)

describe("a function behind an annotation", function()
  it("is called after the function that made it has ended", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @make(%x: float32) -> (fn () -> float32,) {
  %0 = fn () -> float32 { tanh(%x) };
  %1 = annotation.stop_fusion(%0);
  (%1,)
}
def @main(%x: float32) -> float32 {
  let %a = @make(%x);
  let %b = @make(add(%x, 1f));
  add(%a.0(), %b.0())
}]])
    local sum = pl.eval(mod, 0.5):to_table() -- tanh(0.5) + tanh(1.5)
    assert.is_true(math.abs(sum - 1.3672654) < 1e-5, sum)
  end)
end)
