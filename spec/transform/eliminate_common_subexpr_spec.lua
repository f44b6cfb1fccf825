-- EliminateCommonSubexpr with a function that says which calls stay (option fskip).

local pl = require "perilune"

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

local source = [[
def @main(%x: Tensor[(1, 16), float32]) {
  %0 = nn.relu(%x);
  %1 = add(%0, 1f);
  %2 = add(%0, 1f);
  %3 = add(%1, %2);
  %4 = nn.relu(%3);
  %5 = nn.relu(%3);
  add(%4, %5)
}]]

local function count(mod, name)
  local n = 0
  for node in mod.main:nodes() do
    if node.kind == "Call" and node.op.name == name then n = n + 1 end
  end
  return n
end

local function fails(pass, pattern, mod)
  mod = mod or parse(source)
  local before = tostring(mod)
  local ok, diag = pcall(pass, mod)
  assert.is_false(ok)
  assert.matches(pattern, tostring(diag))
  assert.equal(before, tostring(mod))
end

describe("EliminateCommonSubexpr with fskip", function()
  it("keeps the calls of which the function says true", function()
    local pass = pl.passes.EliminateCommonSubexpr {
      fskip = function(node) return node.kind == "Call" and node.op.name == "add" end }
    local out = pass(parse(source))
    assert(pl.verify(out))
    assert.equal(4, count(out, "add"))
    assert.equal(2, count(out, "nn.relu"))
    assert.equal(out, pass(out))
  end)

  it("asks for calls and projections, in order of evaluation", function()
    local kinds = {}
    pl.passes.EliminateCommonSubexpr { fskip = function(node)
      kinds[#kinds + 1] = node.kind == "Call" and node.op.name or node.kind
      return false
    end } (parse [[
def @main(%x: Tensor[(4), float32]) {
  %0 = split(%x, indices_or_sections=2);
  (add(%0.0, 1f), tanh(%0.1))
}]])
    assert.same({ "split", "TupleGetItem", "add", "TupleGetItem", "tanh" }, kinds)
  end)

  it("keeps projections of which the function says true", function()
    local text = [[
def @main(%t: (float32, float32)) { add(%t.0, %t.0) }]]
    local function projections(mod)
      local n = 0
      for node in mod.main:nodes() do if node.kind == "TupleGetItem" then n = n + 1 end end
      return n
    end
    local all = pl.passes.EliminateCommonSubexpr { fskip = function() return true end }
    assert.equal(2, projections(all(parse(text))))
    assert.equal(1, projections(pl.passes.EliminateCommonSubexpr()(parse(text))))
  end)

  it("fails and changes nothing when the function raises, yields or answers otherwise", function()
    local cse = pl.passes.EliminateCommonSubexpr
    fails(cse { fskip = function() error "cannot say" end },
      "EliminateCommonSubexpr.*cannot say")
    fails(cse { fskip = function() return 1 end },
      "true or false expected as the function's answer, got number")
    fails(cse { fskip = function() end },
      "true or false expected as the function's answer, got nil")
    fails(cse { fskip = coroutine.yield }, "yield")
  end)

  it("refuses options that are no function, and functions for other options", function()
    local ok, diag = pcall(pl.passes.EliminateCommonSubexpr, { fskip = "add" })
    assert.is_false(ok)
    assert.equal("pass 'EliminateCommonSubexpr': option 'fskip' expects a function, got a string",
      diag.message)
    ok, diag = pcall(pl.passes.FoldConstant, { fold = print })
    assert.is_false(ok)
    assert.equal("pass 'FoldConstant': option 'fold' expects one of budget|all, got a function",
      diag.message)
    ok, diag = pcall(pl.passes.EliminateCommonSubexpr, { skip = print })
    assert.is_false(ok)
    assert.matches("has no option 'skip'", diag.message)
  end)

  it("is shown in the pipeline's text, and refused there", function()
    local text = tostring(pl.sequential { "SimplifyExpr",
      pl.passes.EliminateCommonSubexpr { fskip = function() return false end } })
    assert.equal("SimplifyExpr,EliminateCommonSubexpr{fskip=<function>}", text)
    local ok, diag = pcall(pl.pipeline, text)
    assert.is_false(ok)
    assert.matches("'fskip' is a function: a script or a host gives it, text cannot",
      tostring(diag))
    assert.matches("pipeline:1:43", tostring(diag))
  end)

  it("is described by the pass", function()
    local row = pl.passes.EliminateCommonSubexpr.options[1]
    assert.same({ "fskip", "function", nil }, { row.name, row.type, row.default })
  end)

  it("is inherited by passes made from the pass, on the caller's thread, uncached", function()
    local n = 0
    pl.passes.Careful = pl.passes.EliminateCommonSubexpr { fskip = function()
      n = n + 1
      return true
    end }
    local mods = {}
    for i = 1, 40 do mods["f" .. i] = parse(source).main end
    local mod = pl.passes.Careful()(pl.module(mods)) -- merges constants
    n = 0
    pl.with(pl.context { config = { threads = 2, cache = 1 << 20 } }, function()
      for _ = 1, 2 do assert.equal(mod, pl.passes.Careful()(mod)) end
      assert.equal(2 * 40 * 7, n)
      assert.equal(mod, pl.pipeline "functions{Careful,Careful}" (mod))
    end)
    assert.is_false(pl.passes.Careful().info.parallel)
    assert.is_false(pl.passes.Careful().cacheable)
    pl.passes.Careful = nil
  end)

  it("lets go of the function with the last pass that has it", function()
    local gone = setmetatable({}, { __mode = "k" })
    do
      local f = function() return false end
      gone[f] = true
      local pass <close> = pl.passes.EliminateCommonSubexpr { fskip = f } -- luacheck: ignore
    end
    collectgarbage()
    collectgarbage()
    assert.is_nil(next(gone))
  end)
end)
