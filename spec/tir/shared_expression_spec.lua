-- Expressions whose parts are shared: as trees they are exponentially larger than their nodes are
-- many. What walks them visits each node once; their text, which repeats the parts, is refused.

local pl = require "perilune"
local tir = pl.tir

local DEPTH = 40
-- A walk of 2^40 steps is ended by this.
local LIMIT = 5

local n = tir.Var("n", "int32")

local shapes = {
  ["sums"] = function(a) return tir.Add(a, a) end,
  ["remainders"] = function(a, i) return tir.Add(tir.FloorMod(a, i + 3), tir.Mul(a, 2)) end,
  ["maxima"] = function(a, i) return tir.Max(tir.Add(a, i), tir.FloorDiv(a, 2)) end,
  ["branches"] = function(a, i) return tir.Select(tir.LT(a, i), tir.Add(a, 1), a) end,
}

local function expression(shape)
  local out = n
  for i = 1, DEPTH do out = shapes[shape](out, i) end
  return out
end

local function program(shape)
  local A = tir.decl_buffer({ 64 }, "float32", "A")
  return tir.PrimFunc({ A, n }, A:store(tir.FloatImm("float32", 1),
    tir.FloorMod(expression(shape), 64)))
end

local function bounded(f, ...)
  return pl.with(pl.context { config = { ["limit.seconds"] = LIMIT } }, f, ...)
end

describe("of a shared expression", function()
  for shape in pairs(shapes) do
    local expr, fn = expression(shape), program(shape)
    local mod = pl.module { main = fn }

    it("of " .. shape .. ", the analyzer tells what it tells", function()
      for _, ask in ipairs { "simplify", "rewrite_simplify", "canonical_simplify",
        "const_int_bound", "modular_set", "int_set" } do
        local analyzer = pl.arith.Analyzer()
        bounded(analyzer[ask], analyzer, expr)
      end
      local analyzer = pl.arith.Analyzer()
      bounded(analyzer.can_prove, analyzer, tir.GE(expr, 0))
    end)

    it("of " .. shape .. ", walks visit each node once", function()
      assert.is_true(bounded(tir.expr_deep_equal, expr, expression(shape)))
      assert.are.equal(pl.hash(expr), pl.hash(expression(shape)))
      assert.are.equal(1, #tir.undefined_vars(expr))
      tir.substitute(expr, { [n] = 3 })
      assert.is_true(pl.verify(mod))
      assert.is_true((tir.verify_well_formed(fn)))
      assert.is_true((tir.verify_ssa(fn)))
      assert(mod:json())
      tir.run(fn, { pl.tensor.full(0, { 64 }), 0 })
    end)

    it("of " .. shape .. ", passes end", function()
      for name in pairs(pl.passes) do
        -- Refusals of what has no target are no failures here.
        if name:find("tir.", 1, true) == 1 then
          local ok, err = pcall(bounded, pl.passes[name](), mod)
          if not ok then assert.not_matches("limit", tostring(err)) end
        end
      end
    end)

    it("of " .. shape .. ", the text is refused with a reason", function()
      for _, print in ipairs { tostring, tir.script } do
        local ok, err = pcall(print, fn)
        assert.is_false(ok)
        assert.matches("the text of an expression is too long: it repeats parts that the "
          .. "expression shares", tostring(err), 1, true)
      end
    end)
  end
end)
