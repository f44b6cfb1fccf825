-- Node handles: identity, lifetime, staleness.

local pl = require "perilune"

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end
local function small()
  local x = pl.var("x", f32(2))
  return pl.module { main = pl.func({ x }, pl.op.tanh(x) + 1) }
end

describe("a handle", function()
  it("is one object a node, so that it works as a table key", function()
    local mod = small()
    local seen = {}
    for node in mod.main:nodes() do seen[node] = node.kind end
    assert.equal("Call", seen[mod.main.body])
    assert.equal("Call", seen[mod.main.body.args[1]])
    assert.equal("Var", seen[mod.main.params[1]])
    assert.is_true(rawequal(mod.main.body, mod.functions.main.body))
  end)

  it("of a variable equals the same variable in another graph", function()
    local x = pl.var("x", f32(2))
    local f = pl.func({ x }, x + 1)
    local mod = pl.module { main = f }
    local param = mod.main.params[1]
    assert.is_false(rawequal(x, param))
    assert.is_true(x == param)
    assert.is_false(x == pl.var("x", f32(2)))
    assert.is_false(f.body == mod.main.body)
  end)

  it("keeps its graph when the module is closed and collected", function()
    local mod = small()
    local body = mod.main.body
    mod:close()
    mod = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    assert.equal(pl.op.add, body.op)
    assert.equal(pl.op.tanh, body.args[1].op)
  end)

  it("of one graph may be used in another", function()
    local a, b = small(), small()
    local sum = pl.func(a.main.params, a.main.body * b.main.body)
    assert.equal(2, #sum.body)
    assert(pl.verify(pl.func({ a.main.params[1], b.main.params[1] }, sum.body)))
  end)

  it("has no writable fields, and nil for fields of other kinds", function()
    local body = small().main.body
    assert.has_error(function() body.kind = "Var" end)
    assert.is_nil(body.params)
    assert.is_nil(body.cond)
    assert.is_nil(body.no_such_field)
    assert.is_nil(body[0])
    assert.is_nil(body[3])
    assert.equal(2, #body)
    assert.equal("perilune.Node", getmetatable(body))
  end)

  it("of a pass's builder is stale when the pass has ended", function()
    local kept
    local pass = pl.function_pass { name = "keeps", run = function(fn)
      kept = fn.params[1] + 1
      assert.equal(pl.op.add, kept.op)
    end }
    pass(small())
    local ok, message = pcall(function() return kept.op end)
    assert.is_false(ok)
    assert.is_truthy(tostring(message):find("stale", 1, true))
    assert.is_truthy(tostring(message):find "handles_spec.lua:%d+")
    assert.has_error(function() return kept + 1 end)
    assert.has_error(function() return tostring(kept) end)
    assert.has_error(function() return #kept end)
  end)

  it("of a rewrite is stale when the rewrite has ended", function()
    local kept
    local m = pl.mutator { Call = function(_, rebuild) kept = rebuild() end }
    m(small().main)
    local ok, message = pcall(function() return kept.kind end)
    assert.is_false(ok)
    assert.is_truthy(tostring(message):find("rewrite", 1, true))
  end)

  it("does not keep what nobody uses", function()
    collectgarbage()
    collectgarbage()
    local before = pl.memory()
    for _ = 1, 20 do
      local x = pl.var("x", f32(2))
      local e = x
      for _ = 1, 1000 do e = e + x end
      pl.module { main = pl.func({ x }, e) }
    end
    collectgarbage()
    collectgarbage()
    assert.is_true(pl.memory() < before + 200000)
  end)
end)

describe("finalizers", function()
  it("run in any order, more than once, and in closing states", function()
    local script = [[
      local pl = require "perilune"
      local x = pl.var("x", "Tensor[(2), float32]")
      keep = { pl.module { main = pl.func({ x }, x + 1) }, x, pl.tensor { 1 }, pl.context {},
        pl.function_pass { name = "p", run = function() end } }
      pl.passes.Kept = { run = function() return keep end }
      local ctx = pl.context { instruments = { { name = "i", before = function() end } } }
      ctx:enter()
      setmetatable({}, { __gc = function()
        local t = pcall(function() return tostring(keep[1]) end)
        pcall(function() return pl.var("late") end)
      end })
      co = coroutine.wrap(function() pl.context {}:enter() coroutine.yield() end)
      co()
    ]]
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(("package.path, package.cpath = %q, %q\n"):format(package.path, package.cpath),
      script)
    file:close()
    assert.is_true((os.execute("lua5.4 " .. path)))
    os.remove(path)
  end)
end)

describe("a list that a handle gives", function()
  local x, y = pl.var("x", f32(2)), pl.var("y", f32(2))
  local fn = pl.func({ x, y }, pl.tuple { x + y, pl.op.transpose(pl.op.tanh(x), { axes = { 0 } }) })
  local sum, turned = fn.body.fields[1], fn.body.fields[2]
  local lists = {
    ["node.args"] = function() return sum.args end,
    ["tuple.fields"] = function() return fn.body.fields end,
    ["fn.params"] = function() return fn.params end,
    ["type.shape"] = function() return sum.type.shape end,
    ["type.parts"] = function() return fn.body.type.parts end,
    ["a list of node.attrs"] = function() return turned.attrs.axes end,
    ["tensor.shape"] = function() return pl.tensor({ 1, 2 }, "float32").shape end,
  }

  for name, get in pairs(lists) do
    it("is a fresh copy, which may be changed: " .. name, function()
      local before = fn:text()
      local list, want = get(), get()
      assert.is_true(#list > 0)
      assert.is_false(rawequal(list, want))
      list[1], list[#list + 1] = "changed", "added"
      assert.same(want, get())
      assert.equal(before, fn:text())
    end)
  end

  it("serves to make another node", function()
    local params = fn.params
    params[#params + 1] = pl.var("z", f32(2))
    assert.equal(3, #pl.func(params, sum).params)
    assert.equal(2, #fn.params)
  end)

  it("is no field to assign to", function()
    assert.error_matches(function() sum.args = {} end, "no writable field 'args'", 1, true)
    assert.error_matches(function() sum.type.shape = {} end, "no writable field 'shape'", 1, true)
    assert.error_matches(function() turned.attrs.axes = {} end, "no writable field 'axes'", 1, true)
  end)
end)
