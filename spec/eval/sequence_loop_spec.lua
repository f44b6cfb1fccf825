-- Sequences that grow and shrink in loops: in place, where nobody else sees it.

local pl = require "perilune"
local op = pl.op

local function scalar(name, dtype) return pl.var(name, pl.type("Tensor[(), " .. dtype .. "]")) end

local sequences = pl.type "seq(Tensor[(), int64])"

-- A function of a trip count and a sequence; `round(i, s)` gives what a round
-- makes of the sequence.
local function loop(round)
  local i, cond, s = scalar("i", "int64"), scalar("cond", "bool"), pl.var("s", sequences)
  local body = pl.func({ i, cond, s }, pl.tuple { cond, round(i, s) })
  local n, start = scalar("n", "int64"), pl.var("start", sequences)
  return pl.func({ n, start }, op.loop(n, pl.const(true), start, body, { n_results = 0 }))
end

local function numbers(list)
  local values = {}
  for k, t in ipairs(list) do values[k] = t:to_table() end
  return values
end

local function start() return { pl.tensor(7, "int64"), pl.tensor(8, "int64") } end

describe("a loop over a sequence", function()
  it("inserts at its end, at its beginning, in between", function()
    local at_end = loop(function(i, s) return op.sequence_insert(s, i) end)
    assert.same({ 7, 8, 0, 1, 2 }, numbers(pl.eval(at_end, 3, start())))
    local first = loop(function(i, s) return op.sequence_insert(s, i, pl.const(0)) end)
    assert.same({ 2, 1, 0, 7, 8 }, numbers(pl.eval(first, 3, start())))
    local inside = loop(function(i, s) return op.sequence_insert(s, i, pl.const(-1)) end)
    assert.same({ 7, 0, 1, 2, 8 }, numbers(pl.eval(inside, 3, start())))
  end)

  it("erases, down to nothing", function()
    local erase = loop(function(_, s) return op.sequence_erase(s, pl.const(0)) end)
    assert.same({ 8 }, numbers(pl.eval(erase, 1, start())))
    assert.same({}, numbers(pl.eval(erase, 2, start())))
    assert.error_matches(function() pl.eval(erase, 3, start()) end, "outside of 0 elements")
  end)

  it("leaves alone what others hold", function()
    local given = start()
    local f = loop(function(i, s) return op.sequence_insert(s, i) end)
    pl.eval(f, 5, given)
    assert.same({ 7, 8 }, numbers(given))
    local s = pl.var("s", sequences)
    local both = pl.func({ s }, pl.tuple { op.sequence_insert(s, pl.const(1)),
      op.sequence_erase(s), s })
    local one, two, three = pl.eval(both, start())
    assert.same({ { 7, 8, 1 }, { 7 }, { 7, 8 } }, { numbers(one), numbers(two), numbers(three) })
  end)

  it("sees the sequence of the round before, inserted into twice", function()
    local f = loop(function(i, s)
      local longer = op.sequence_insert(s, i)
      return op.sequence_insert(longer, op.sequence_length(longer))
    end)
    assert.same({ 7, 8, 0, 3, 1, 5 }, numbers(pl.eval(f, 2, start())))
  end)

  it("takes time in proportion to its rounds", function()
    local f = loop(function(i, s) return op.sequence_insert(s, i) end)
    assert.equal(200002, #pl.eval(f, 200000, start())) -- minutes, if each round copied
  end)
end)
