-- What holds of equality on every program: on graphs made at random, a program is
-- equal to itself with other variables, and not equal once a single thing in it is
-- changed: an operand, their order, a constant, an attribute, a node more, a shared
-- node repeated. The hash differs then as well, and pl.mismatch names a place.
--
-- PERILUNE_GRAPHS says how many graphs, PERILUNE_SEED which come first. A seed that
-- fails is named.

local pl = require "perilune"
local random_graph = require "spec.random.graph"

local first = tonumber(os.getenv "PERILUNE_SEED") or 1
local graphs = math.min(tonumber(os.getenv "PERILUNE_GRAPHS") or 1000, 1000)

-- Calls of operators with operands, in order of evaluation.
local function calls_of(fn)
  local list = {}
  for node in fn:nodes() do
    if node.kind == "Call" and node.op and #node.args > 0 then list[#list + 1] = node end
  end
  return list
end

-- The function with what make(node) gives in the place of that node.
local function replace(fn, node, make)
  return pl.mutator { [node.kind] = function(at)
    if rawequal(at, node) then return make(at) end
  end } (fn)
end

local function calls_where(fn, fits)
  local list = {}
  for _, call in ipairs(calls_of(fn)) do
    if fits(call) then list[#list + 1] = call end
  end
  return list
end

local function pick(seed, list) return list[seed % math.max(#list, 1) + 1] end

-- A change of one thing, by name: the changed function, nil when there is no such
-- thing in it.
local changes = {}

function changes.wrapped(fn, seed)
  local call = pick(seed, calls_where(fn, function(call) return call.type.dtype == "float32" end))
  return call and replace(fn, call, function(at) return pl.op.abs(at) end)
end

function changes.swapped(fn, seed)
  local call = pick(seed, calls_where(fn, function(call)
    return #call.args == 2 and not pl.equal(call.args[1], call.args[2])
      and call.args[1].type == call.args[2].type
  end))
  return call and replace(fn, call, function(at)
    return at:with { args = { at.args[2], at.args[1] } }
  end)
end

function changes.constant(fn, seed)
  local list = {}
  for node in fn:nodes() do
    if node.kind == "Constant" and node.type.dtype == "float32" then list[#list + 1] = node end
  end
  local constant = pick(seed, list)
  return constant and replace(fn, constant, function(at)
    return pl.const(pl.tensor.full(12345, "float32", at.type.shape))
  end)
end

function changes.attribute(fn, seed)
  local call = pick(seed, calls_where(fn, function(call)
    return math.type(call.attrs.axis) == "integer"
  end))
  return call and replace(fn, call, function(at)
    return at:with { attrs = { axis = at.attrs.axis == 0 and 1 or 0 } }
  end)
end

function changes.unshared(fn, seed)
  local uses = {}
  for _, call in ipairs(calls_of(fn)) do
    for _, arg in ipairs(call.args) do
      if arg.kind == "Call" then uses[arg] = (uses[arg] or 0) + 1 end
    end
  end
  local call = pick(seed, calls_where(fn, function(call)
    local arg = call.args[1]
    return uses[arg] and uses[arg] > 1 and arg.n_results == 0
  end))
  return call and replace(fn, call, function(at)
    local args = at.args
    args[1] = pl.ir.Call(args[1].op, args[1].args, args[1].attrs)
    return at:with { args = args }
  end)
end

function changes.parameter(fn)
  local params = fn.params
  params[#params + 1] = pl.var("more", "float32")
  return pl.func(params, fn.body)
end

local names = { "wrapped", "swapped", "constant", "attribute", "unshared", "parameter" }

local function check(seed, name, condition, what)
  if not condition then error(("seed %d, %s: %s"):format(seed, name, what), 0) end
end

describe("on graphs made at random", function()
  it("other variables make no difference", function()
    for seed = first, first + graphs - 1, 5 do
      local fn = random_graph(seed).main
      local renewed = pl.renew_defs(fn)
      check(seed, "renewed", pl.equal(fn, renewed) and pl.equal(renewed, fn), "not equal")
      check(seed, "renewed", pl.hash(fn) == pl.hash(renewed), "another hash")
    end
  end)

  it("one change makes a difference, which is told", function()
    local made = {}
    for seed = first, first + graphs - 1 do
      local name = names[seed % #names + 1]
      local fn = random_graph(seed).main
      local ok, changed = pcall(changes[name], fn, seed // #names)
      if ok and changed and changed ~= fn then
        made[name] = (made[name] or 0) + 1
        check(seed, name, not pl.equal(fn, changed) and not pl.equal(changed, fn), "equal")
        check(seed, name, pl.hash(fn) ~= pl.hash(changed), "the same hash")
        local place = pl.mismatch(fn, changed)
        check(seed, name, place and #place > 0, "no place is told")
        check(seed, name, pl.equal(changed, pl.renew_defs(changed)), "not equal to itself")
      end
    end
    for _, name in ipairs(names) do
      assert.is_true((made[name] or 0) > graphs / #names / 20, name .. " was hardly ever made")
    end
  end)
end)
