-- Tuning passes that are stopped, by Ctrl-C or by limit.seconds: the best so far stays.

local command = require "spec.cli.command"
local pl = require "perilune"
local tune = pl.tune

tune.functions["stopped_search_spec.cost"] = function(mod, cost)
  return mod:with_attrs { cost = cost }
end

local function program()
  local x = pl.var("x", "Tensor[(4), float32]")
  return pl.module { main = pl.func({ x }, pl.op.nn.relu(x)) }
end

-- A knob whose second decision is the best of ten.
local function knob(name)
  local choices = {}
  for i = 1, 10 do
    choices[("%02d"):format(i)] = tune.choice { transform = "stopped_search_spec.cost",
      args = { i == 2 and 1 or 10 + i } }
  end
  return tune.knob(name, choices)
end

local function work(seconds)
  local begun = os.clock()
  while os.clock() - begun < seconds do end -- luacheck: ignore
end

local function pass(measure, more)
  local spec = { name = "Tune", knobs = { knob "k" }, measure = measure }
  for field, value in pairs(more or {}) do spec[field] = value end
  return tune.tuning_pass(spec)
end

local function limited(seconds) return pl.context { config = { ["limit.seconds"] = seconds } } end

describe("limit.seconds in a tuning pass", function()
  it("ends the search with the best so far", function()
    local n = 0
    local out = pl.with(limited(0.5), pass(function(mod)
      n = n + 1
      if n > 4 then work(20) end
      return mod.attrs.cost
    end), program())
    assert.equal(1, out.attrs.cost)
    assert.equal(5, n)
  end)

  it("is an error before a candidate was measured, and the module is as before", function()
    local mod = program()
    local ok, err = pcall(pl.with, limited(0.2), pass(function() work(20) end), mod)
    assert.is_false(ok)
    assert.matches("limit.seconds ended before a candidate was measured", tostring(err))
    assert.is_nil(mod.attrs.cost)
  end)

  it("ends the tuning passes around it, too", function()
    local n = 0
    local inner = pass(function(mod)
      n = n + 1
      if n > 4 then work(20) end
      return mod.attrs.cost
    end)
    local outer = pass(function(mod) return mod.attrs.cost end, { name = "Outer",
      eval_passes = { inner } })
    local out = pl.with(limited(0.5), outer, program())
    assert.equal(1, out.attrs.cost)
    assert.equal(5, n)
  end)

  it("lets the passes behind it run", function()
    local ran = false
    local behind = pl.module_pass { name = "Behind", run = function(mod)
      ran = true
      return mod:with_attrs { cost = mod.attrs.cost, behind = 1 }
    end }
    local n = 0
    local first = pass(function(mod)
      n = n + 1
      if n > 4 then work(20) end
      return mod.attrs.cost
    end)
    local out = pl.with(limited(0.5), pl.sequential { first, behind }, program())
    assert.is_true(ran)
    assert.equal(1, out.attrs.cost)
    assert.equal(1, out.attrs.behind)
  end)
end)

describe("Ctrl-C in a tuning pass", function()
  it("ends the search with the best so far, and the command goes on", function()
    local folder = command.folder()
    command.write(folder .. "/in.relay", [[
#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) { nn.relu(%x) }
]])
    command.write(folder .. "/tune.lua", [[
local pl = require "perilune"
local tune = pl.tune
tune.functions["scaled"] = function(mod, n)
  local x = pl.var("x", "Tensor[(4), float32]")
  local body = pl.op.nn.relu(x)
  for _ = 1, n do body = pl.op.nn.relu(body) end
  return mod:with { main = pl.func({ x }, body) }
end
local choices = {}
for i = 1, 9 do choices[tostring(i)] = tune.choice { transform = "scaled", args = { 9 - i } } end
local n = 0
return tune.tuning_pass { name = "Tune", knobs = { tune.knob("k", choices) },
  measure = function(mod)
    n = n + 1
    if n == 5 then
      os.execute "(sleep 0.2; kill -INT $PPID) &" -- system() itself ignores the signal
      local begun = os.clock()
      while os.clock() - begun < 20 do end
    end
    return tune.measure.nodes(mod)
  end }
]])
    local status, out, err = command.run(folder, ("opt %s/in.relay -o %s/out.relay -p %s/tune.lua")
      :format(folder, folder, folder))
    assert.equal(0, status, out .. err)
    -- The fourth decision of nine has five calls behind the first one.
    local _, calls = tostring(pl.load(folder .. "/out.relay")):gsub("nn%.relu", "")
    assert.equal(6, calls)
    os.execute("rm -rf " .. folder)
  end)
end)
