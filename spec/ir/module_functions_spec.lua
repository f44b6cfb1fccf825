-- mod.functions, the view of a module's functions by name, and mod:without of one name or many.

local pl = require "perilune"

local x = pl.var("x", "float32")
local function fn(k) return pl.func({ x }, pl.op.add(x, k)) end

describe("mod.functions", function()
  local mod = pl.module { a = fn(1), b = fn(2), c = fn(3) }

  it("gives functions by name, and nil for another name", function()
    assert.equal("Function", mod.functions.a.kind)
    assert.equal(mod.b, mod.functions.b)
    assert.is_nil(mod.functions.nobody)
    assert.is_nil(mod.functions[1])
    assert.is_nil(mod.functions[{}])
  end)

  it("is walked in the order of the module, and counted", function()
    local names = {}
    for name, f in pairs(mod.functions) do
      names[#names + 1] = name
      assert.equal(mod[name], f)
    end
    assert.same(mod.names, names)
    assert.equal(3, #mod.functions)
  end)

  it("finds functions that are called as its methods are", function()
    local odd = pl.module { with = fn(1), functions = fn(2), names = fn(3) }
    for _, name in ipairs { "with", "functions", "names" } do
      assert.equal("Function", odd.functions[name].kind)
    end
  end)

  it("never changes, and outlives a closed module", function()
    assert.error_matches(function() mod.functions.d = fn(4) end, "no writable field 'd'")
    local closed = pl.module { a = fn(1) }
    local functions = closed.functions
    closed:close()
    assert.equal("Function", functions.a.kind)
    assert.has_error(function() return closed.functions end)
  end)

  it("is what pl.module and mod:with take", function()
    assert.is_true(pl.equal(mod, pl.module(mod.functions)))
    local more = pl.module { d = fn(4) }:with(mod.functions)
    assert.same({ "d", "a", "b", "c" }, more.names)
    assert.error_matches(function() pl.module(fn(1)) end, "table expected")
  end)

  it("asks for memory for what is asked for, not for the whole module", function()
    local function cost(n)
      local functions = {}
      for i = 1, n do functions["f" .. i] = fn(i) end
      local large = pl.module(functions)
      for _, f in pairs(large) do assert(f) end -- handles are made
      collectgarbage()
      collectgarbage "stop"
      local before = collectgarbage "count"
      for name in pairs(functions) do assert(large.functions[name]) end
      local used = collectgarbage "count" - before
      collectgarbage "restart"
      return used
    end
    assert.is_true(cost(400) < 2.4 * cost(200))
  end)
end)

describe("mod:without", function()
  local mod = pl.module { a = fn(1), b = fn(2), c = fn(3) }

  it("leaves one function out, or those of a list", function()
    assert.same({ "a", "c" }, mod:without "b".names)
    assert.same({ "b" }, mod:without { "a", "c" }.names)
    assert.same({ "b" }, mod:without { "c", "nobody", "a", "c" }.names)
  end)

  it("gives the module itself when it has none of them", function()
    assert.equal(mod, mod:without "nobody")
    assert.equal(mod, mod:without { "nobody" })
    assert.equal(mod, mod:without {})
  end)

  it("refuses what is no name", function()
    assert.error_matches(function() mod:without(1) end, "names of functions are strings")
    assert.error_matches(function() mod:without { "a", 2 } end, "names of functions are strings")
  end)
end)
