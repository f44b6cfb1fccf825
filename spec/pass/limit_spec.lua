-- Limits of passes: time, memory, nodes, rewrites; and what is verified.

local pl = require "perilune"

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end

local function sums(n)
  local x = pl.var("x", f32(2))
  local y = pl.op.tanh(x)
  for _ = 1, n do y = y + pl.op.tanh(x) end
  return pl.module { main = pl.func({ x }, y) }
end

-- Runs a pass in a context of this config; gives what it raised, if it did.
local function run(config, pass, mod)
  local context = pl.context { config = config }
  local ok, err = pcall(pl.with, context, pass, mod or sums(3))
  if ok then return nil, err end
  return err
end

local function endless() while true do end end -- luacheck: ignore

local function doubling()
  return pl.function_pass { name = "Doubling", run = function(fn)
    return pl.func(fn.params, fn.body + pl.op.exp(fn.body) + pl.op.tan(fn.body))
  end }
end

describe("limit.seconds", function()
  it("stops a pass that never ends", function()
    local mod = sums(1)
    local started = os.clock()
    local err = run({ ["limit.seconds"] = 0.05 },
      pl.function_pass { name = "Endless", run = endless }, mod)
    assert.is_true(os.clock() - started < 2)
    assert.equal("limit", err.code)
    assert.equal("pass 'Endless', function @main: it took longer than limit.seconds = 0.05",
      err.message)
  end)

  it("stops it inside pcall, as often as it is caught", function()
    local caught = 0
    local err = run({ ["limit.seconds"] = 0.05 }, pl.module_pass { run = function()
      while true do
        pcall(endless)
        caught = caught + 1
        if caught > 1e6 then return end
      end
    end })
    assert.equal("limit", err.code)
    assert.is_true(caught <= 1)
  end)

  it("lets others run, and the next pass after it", function()
    local config = { ["limit.seconds"] = 20 }
    local mod = sums(2)
    assert.is_nil((run(config, pl.passes.SimplifyExpr(), mod)))
    run({ ["limit.seconds"] = 0.02 }, pl.module_pass { run = endless })
    local n = 0
    assert.is_nil((run(config, pl.module_pass { run = function()
      for i = 1, 1e6 do n = n + i end
    end })))
    assert.equal(500000500000, n)
  end)

  it("is a failure that a try undoes", function()
    local mod = sums(1)
    local try = pl.try { pl.module_pass { name = "Endless", run = endless } }
    local err, after = run({ ["limit.seconds"] = 0.02 }, try, mod)
    assert.is_nil(err)
    assert.equal(mod, after)
    assert.matches("limit.seconds", pl.diagnostics()[1].message)
  end)

  it("stops a pass behind a coroutine that is gone", function()
    local err = run({ ["limit.seconds"] = 0.05 }, pl.module_pass { run = function()
      for _ = 1, 100 do
        coroutine.wrap(function() return pl.tensor { 1, 2 } end)()
      end
      collectgarbage()
      endless()
    end })
    assert.equal("limit", err.code)
  end)

  it("of an outer pass holds for the passes that it runs", function()
    local inner = pl.module_pass { name = "Inner", run = endless }
    local outer = pl.module_pass { name = "Outer", run = function(mod)
      pcall(inner, mod)
      endless()
    end }
    local err = run({ ["limit.seconds"] = 0.05 }, outer)
    assert.equal("limit", err.code)
    assert.matches("pass 'Outer'", err.message)
  end)
end)

describe("limit.nodes and limit.growth", function()
  it("refuse what is larger, and leave the module", function()
    local mod = sums(1)
    local err = run({ ["limit.nodes"] = 6 }, doubling(), mod)
    assert.equal("pass 'Doubling': it leaves 9 nodes, more than limit.nodes = 6", err.message)
    err = run({ ["limit.growth"] = 1.5 }, doubling(), mod)
    assert.equal("pass 'Doubling': it leaves 9 nodes of 5, more than limit.growth = 1.5 times as "
      .. "many", err.message)
    assert.is_nil((run({ ["limit.nodes"] = 9, ["limit.growth"] = 2 }, doubling(), mod)))
  end)

  local function building(most)
    return pl.function_pass { name = "Building", run = function(fn)
      local sum = fn.body
      for _ = 1, most do sum = sum + 1.0 end
      return fn
    end }
  end

  it("stop a pass that builds without end", function()
    local mod = sums(1)
    local err = run({ ["limit.nodes"] = 100 }, building(math.huge), mod)
    assert.equal("limit", err.code)
    assert.matches("^pass 'Building', function @main: it is still building after %d+ nodes, and "
      .. "limit.nodes = 100$", err.message)
  end)

  it("let a pass build more than it leaves, and later passes too", function()
    local mod = sums(1)
    local pass = pl.sequential { building(20000), building(20000), building(20000) }
    assert.is_nil((run({ ["limit.nodes"] = 100 }, pass, mod)))
    assert.is_nil((run({ ["limit.growth"] = 10 }, building(100000), mod)))
  end)

  it("let workers build what they leave", function()
    local functions = {}
    for i = 1, 8 do functions["f" .. i] = sums(3).main end
    assert.is_nil((run({ ["limit.nodes"] = 100, threads = 2 }, pl.passes.SimplifyExpr(),
      pl.module(functions))))
  end)
end)

describe("limit.rewrites", function()
  it("refuses a pass that replaces more", function()
    local pass = pl.function_pass { name = "Turn", run = pl.mutator {
      Call = function(call)
        if call.op.name == "add" then return call.args[1] - call.args[2] end
      end } }
    local err = run({ ["limit.rewrites"] = 2 }, pass, sums(3))
    assert.equal("limit", err.code)
    assert.matches("more nodes are replaced than limit.rewrites = 2", err.message, 1, true)
    assert.is_nil((run({ ["limit.rewrites"] = 3 }, pass, sums(3))))
  end)
end)

describe("limit.memory", function()
  it("is told as such, not as lack of memory", function()
    local used = pl.memory()
    local pass = pl.module_pass { name = "Hungry", run = function()
      pl.tensor.random({ 4096, 1024 }, "float32")
    end }
    local err = run({ ["limit.memory"] = used + 4000000 }, pass)
    assert.equal("limit", err.code)
    assert.matches("it needs more memory than limit.memory = %d+ bytes", err.message)
    assert.is_nil((run({ ["limit.memory"] = used + 400000000 }, pass)))
  end)

  local function told(body)
    local pass = pl.module_pass { name = "Hungry", run = body }
    local err = run({ ["limit.memory"] = pl.memory() + 8000000 }, pass)
    return err and err.code .. ": " .. err.message:gsub("%d+", "N")
  end

  it("counts what Lua takes: strings, tables, in functions and coroutines", function()
    local message = "limit: pass 'Hungry': it needs more memory than limit.memory = N bytes"
    assert.equal(message, told(function()
      local s = "x"
      while true do s = s .. s end
    end))
    assert.equal(message, told(function()
      local t = {}
      while #t >= 0 do t[#t + 1] = { #t } end
      return t
    end))
    assert.equal(message, told(function() return ("x"):rep(1e9) end))
    assert.equal(message, told(function()
      coroutine.wrap(function()
        local t = {}
        while #t >= 0 do t[#t + 1] = { #t } end
        return t
      end)()
    end))
  end)

  it("counts no garbage, and nothing that was there before", function()
    local before = ("x"):rep(20000000)
    assert.is_nil(told(function()
      for i = 1, 200 do local _ = ("y"):rep(1000000) .. i end
    end))
    assert.equal(20000000, #before)
  end)

  it("goes on where a script catches it", function()
    local caught
    assert.is_nil(told(function() caught = pcall(string.rep, "x", 1e9) end))
    assert.is_false(caught)
  end)

  it("leaves Lua its own allocator afterwards", function()
    told(function() return ("x"):rep(1e9) end)
    assert.equal(20000000, #("x"):rep(20000000))
  end)
end)

describe("the limits", function()
  it("are checked when a context is made", function()
    assert.has_error(function() pl.context { config = { ["limit.nodes"] = -1 } } end)
    assert.has_error(function() pl.context { config = { ["limit.seconds"] = "soon" } } end)
    assert.has_error(function() pl.context { config = { ["limit.second"] = 1 } } end)
    assert.has_error(function() pl.context { config = { verify = "some" } } end)
  end)

  it("are listed with what they mean", function()
    assert.equal("The most nodes a pass may leave; 0: any.", pl.config["limit.nodes"].doc)
  end)
end)
