-- Rules made at random, well and ill typed, over graphs made at random: each rewrite ends in
-- a verified module or in a diagnostic that leaves the module as it was. A module that comes out is
-- typed as its text is when it is read; it is written, read again, and computes what its types say.
--
-- PERILUNE_REWRITES says how many, PERILUNE_SEED which come first; PERILUNE_MODELS names a
-- directory that keeps what was written, for spec/cross/rewrites.py: SEED.onnx, or
-- SEED.unranked.onnx where export warned of an output without a rank.

local pl = require "perilune"
local core = require "perilune.core"
local random_graph = require "spec.random.graph"
local seeded_random = require "spec.random.seeded"

local op = pl.op
local first = tonumber(os.getenv "PERILUNE_SEED") or 1
local rewrites = tonumber(os.getenv "PERILUNE_REWRITES") or 300
local keep = os.getenv "PERILUNE_MODELS"

local dtypes = { "float32", "float32", "float32", "int64", "int32", "bool", "float64" }

local function ints(list) return pl.const(pl.tensor(list, "int64")) end
local function variable(name, dtype, ...)
  return pl.var(name, pl.type { shape = { ... }, dtype = dtype })
end

-- What rules answer, f(random, call, rebuild): good, doubtful and wrong.
local answers = {}
local function answer(f) answers[#answers + 1] = f end
local function pick(random, list) return list[random(1, #list)] end
local function argument(random, call) return call.args[random(1, math.max(1, #call.args))] end

answer(function() return nil end)
answer(function(_, _, rebuild) return rebuild() end)
answer(function(random, call) return argument(random, call) end)
answer(function(_, _, rebuild) return op.abs(rebuild()) end)
answer(function(_, _, rebuild) return rebuild() * 1 end)
answer(function(_, _, rebuild) return op.copy(rebuild()) end)
answer(function(random, call)
  return op.mean(argument(random, call), { axis = { random(0, 2) } })
end)
answer(function(random, call)
  return op.sum(argument(random, call), { axis = { random(-2, 1) }, keepdims = random(0, 1) })
end)
answer(function(random, _, rebuild) return op.cast(rebuild(), { dtype = pick(random, dtypes) }) end)
answer(function(random, call)
  return op.cast(argument(random, call), { dtype = pick(random, dtypes) })
end)
answer(function(random, call)
  return op.reshape(argument(random, call), ints { random(-1, 6), random(1, 4) })
end)
answer(function(_, _, rebuild) return op.reshape(rebuild(), ints { -1 }) end)
answer(function(_, call) return op.transpose(call.args[1]) end)
answer(function(random, call) return op.expand_dims(call.args[1], { axis = random(-3, 3) }) end)
answer(function(random) return random(-3, 3) end)
answer(function(random) return random() end)
answer(function() return true end)
answer(function() return "x" end)
answer(function(random) return pl.tensor({ random(0, 3), 2 }, pick(random, dtypes)) end)
answer(function(_, call) return pl.tuple(call.args) end)
answer(function(_, call) return pl.tuple(call.args):get(0) end)
answer(function(_, call) return call.args[1]:get(1) end)
answer(function(random) return variable("free", "float32", 2, random(1, 3)) end)
answer(function(_, call) return pl.func({}, call.args[1])() end)
answer(function(_, call)
  local p = pl.var("p", "Tensor[*, float32]")
  return pl.func({ p }, op.tanh(p))(call.args[1])
end)
answer(function(_, call) return pl.if_(pl.const(true), call.args[1], call.args[2]) end)
answer(function(_, call, rebuild)
  return call.args[2] and call.op(call.args[2], call.args[1]) or op.nn.relu(rebuild())
end)
answer(function(_, call) return op.matmul(call.args[1], call.args[1]) end)
answer(function(_, call, rebuild)
  local v = pl.var("v", call.type)
  return pl.let(v, rebuild(), v + v)
end)

local variables = {
  function() return nil end,
  function(_, var) return pl.var(var.name .. "_", var.type) end,
  function(random, var) return variable(var.name, "float32", random(1, 3), 3) end,
  function(random, var) return variable(var.name, pick(random, dtypes), 2, 3) end,
  function(_, var) return op.abs(var) end,
  function() return pl.const(1, "float32") end,
}

-- A mutator of few of those; each node is looked at with a chance.
local function rules(random)
  local chosen, var, rate = {}, pick(random, variables), 0.1 + random() * 0.6
  for i = 1, random(1, 3) do chosen[i] = pick(random, answers) end
  local functions = { name = "random", Call = function(call, rebuild)
    if random() < rate then return pick(random, chosen)(random, call, rebuild) end
  end }
  if random() < 0.2 then functions.Var = function(v) return var(random, v) end end
  if random() < 0.2 then functions.Constant = function() return pick(random, chosen)(random) end end
  return pl.mutator(functions)
end

-- Whether a tensor's shape and dtype are what the type says.
local function fits(type_, value)
  if type_ == nil or type_.kind ~= "tensor" then return true end
  if type_.dtype and type_.dtype ~= value.dtype then return false end
  local shape = type_.shape
  if shape and #shape ~= #value.shape then return false end
  for i, dim in ipairs(shape or {}) do
    if math.type(dim) == "integer" and dim ~= value.shape[i] then return false end
  end
  return true
end

-- A tensor of the parameter's type; N is 3.
local function input(random, type_)
  local function fill(axis)
    if axis > #type_.shape then return type_.dtype == "bool" and random(0, 1) or random(-4, 4) end
    local row = {}
    local extent = math.type(type_.shape[axis]) == "integer" and type_.shape[axis] or 3
    for i = 1, extent do row[i] = fill(axis + 1) end
    return row
  end
  return pl.tensor(fill(1), type_.dtype)
end

local function evaluate(random, mod)
  local args = {}
  for i, param in ipairs(mod.main.params) do args[i] = input(random, param.type) end
  return table.pack(pcall(pl.eval, mod, table.unpack(args)))
end

local function is_typed(mod)
  for node in mod.main:nodes() do
    if tostring(node.type):find("%f[%w_]_%f[^%w_]") then return false end
  end
  return true
end

-- Types that are found anew are those that the module has. What is not known, of operands that are
-- left out, InferType may find to be wrong.
local function check_types(mod)
  assert(pl.verify(mod))
  if not is_typed(mod) then return end
  assert(pl.verify(assert(pl.infer_type(mod))))
  local again = assert(pl.parse(mod:text()))
  assert(pl.verify(again))
  assert.equal(mod.main.type, again.main.type)
end

local function warned_of_rank()
  for _, diag in ipairs(core.diags()) do
    if diag.message:find("has unknown rank", 1, true) then return true end
  end
  return false
end

local function check_file(seed, mod)
  local path = keep and ("%s/%d.onnx"):format(keep, seed) or os.tmpname()
  local ok, diag = pl.onnx.save(mod, path)
  if ok and keep and warned_of_rank() then
    local unranked = path:gsub("onnx$", "unranked.onnx")
    assert(os.rename(path, unranked))
    path = unranked
  end
  local again, wrong
  if ok then
    again, wrong = pl.onnx.load(path)
    if again then again, wrong = pl.verify(again) end
  end
  if not keep or not ok then os.remove(path) end
  if ok then assert(again, "what was written is not read: " .. tostring(wrong)) end
  assert(ok or diag.message)
  return ok
end

-- Every other module comes from a file, whose nodes are written as they were unless a rule
-- changes them.
local function module(seed)
  local mod = random_graph(seed)
  local bytes = seed % 2 == 0 and pl.onnx.tostring(mod)
  return bytes and assert(pl.onnx.parse(bytes)) or mod
end

-- "refused" or "verified", and whether it was written and computed.
local function try(seed)
  local random = seeded_random(seed)
  local mod = module(seed)
  local before, main = mod:text(), mod.main
  local pass = pl.function_pass { name = "Random", run = rules(random) }
  local ok, out = pcall(pass, mod)
  assert.equal(before, mod:text())
  assert.equal(main, mod.main)
  if not ok then -- a rule's own operators are refused, or its answer is
    assert(type(out) == "string" or out.message, "no diagnostic")
    return "refused"
  end
  check_types(out)
  if keep then pl.onnx.save(mod, ("%s/%d.before.onnx"):format(keep, seed)) end
  local written = check_file(seed, out)
  local values = evaluate(random, out)
  for i, part in ipairs(values[1] and out.main.body.type.parts or {}) do
    assert(fits(part, values[i + 1]), ("result %d is not of type %s"):format(i, part))
  end
  return "verified", written, values[1]
end

describe("rules made at random", function()
  it("end in a verified module or in a diagnostic", function()
    local n = { refused = 0, verified = 0, written = 0, computed = 0 }
    for seed = first, first + rewrites - 1 do
      local ok, end_, written, computed = xpcall(try, function(message)
        return type(message) == "table" and message or debug.traceback(tostring(message), 2)
      end, seed)
      if not ok then error(("seed %d: %s"):format(seed, tostring(end_.message or end_)), 0) end
      n[end_] = n[end_] + 1
      n.written = n.written + (written and 1 or 0)
      n.computed = n.computed + (computed and 1 or 0)
    end
    if rewrites ~= 300 then
      print(("seeds %d to %d: %d refused, %d verified, of which %d written and %d computed"):format(
        first, first + rewrites - 1, n.refused, n.verified, n.written, n.computed))
    end
    assert.is_true(n.refused > rewrites / 20 and n.computed > rewrites / 20)
  end)
end)
