-- Models of a folder through generated C: how many are built and give what the evaluator gives
-- within 1e-4 (1e-2 where results are 16-bit floats), and why LowerTE leaves out the others, by how
-- many models each reason stops.
--
--     PERILUNE_BUILD=build lua5.4 spec/bench/exports.lua [--lower] [--symbolic] FOLDER [NAME]
--
-- FOLDER has NAME/model.onnx, NAME picks by a part of the name. Symbolic dims get small sizes
-- (`sizes`, else 1); with --symbolic they stay, and what is built once is run with several
-- (`several`). --lower stops before the C compiler: what has no compute is shown alone.

local build = os.getenv "PERILUNE_BUILD" or "build"
package.path = "lua/?.lua;lua/?/init.lua;./?.lua;" .. package.path
package.cpath = build .. "/lua/?.so;" .. package.cpath

local pl = require "perilune"

local function option(name)
  return arg[1] == name and table.remove(arg, 1) ~= nil
end

local only_lower, symbolic = option "--lower", option "--symbolic"
local folder, part = assert(arg[1], "a folder of models is expected"), arg[2] or ""

local sizes = { batch = 1, seq = 6, enc = 8, past = 8, total = 14, height = 64, width = 64,
  samples = 1600, time = 32 }

local several = {
  { batch = 1, seq = 5, enc = 7, past = 9, total = 14, height = 64, width = 32, samples = 1600,
    time = 32 },
  { batch = 3, seq = 1, enc = 4, past = 3, total = 4, height = 32, width = 96, samples = 3700,
    time = 17 },
  { batch = 2, seq = 12, enc = 9, past = 1, total = 13, height = 48, width = 80, samples = 2011,
    time = 50 },
}

local function names_in(path)
  local names = {}
  local pipe <close> = assert(io.popen("ls '" .. path .. "'"))
  for name in pipe:lines() do
    if name:find(part, 1, true) then names[#names + 1] = name end
  end
  return names
end

-- The model with a size for each dim.
local function fixed(mod, own)
  own = own or sizes
  for _, param in ipairs(mod.functions.main.params) do
    local shape = param.type.shape
    for i, dim in ipairs(shape or {}) do
      if math.type(dim) ~= "integer" then shape[i] = own[dim] or own.batch end
    end
    if shape then mod = assert(mod:fix_shape(param.name, shape)) end
  end
  return mod
end

local function arguments(mod)
  local args = {}
  for i, param in ipairs(mod.functions.main.params) do
    local type_ = param.type
    local float = type_.dtype:find "float" ~= nil
    args[i] = pl.tensor.random(type_.shape, "float32", { seed = i, low = float and -1 or 0,
      high = float and 1 or 2 })
    if type_.dtype ~= "float32" then
      args[i] = pl.eval(pl.op.cast(pl.const(args[i]), { dtype = type_.dtype }))
    end
  end
  return args
end

-- Why LowerTE refuses a call of a fused function.
local function reason_of(call)
  local params, args = {}, {}
  for i, arg in ipairs(call.args) do
    args[i] = arg
    if arg.kind ~= "Constant" then
      args[i] = pl.var("x" .. i, arg.type)
      params[#params + 1] = args[i]
    end
  end
  local one = pl.module { main = pl.func(params, pl.ir.Call(call.callee, args)) }
  local ok, err = pcall(function() return pl.passes.LowerTE()(assert(pl.infer_type(one))) end)
  return ok and "is lowered by itself" or tostring(err):match "LowerTE: ([^\n]*)" or tostring(err)
end

-- Why LowerTE leaves calls to the evaluator, as a set.
local function left(mod)
  local fused = pl.sequential { "InferType", 'FoldConstant{fold="all"}', "InferType", "FuseOps" } (
    mod)
  local found = {}
  local lowered = pl.passes.LowerTE { unsupported = "keep", symbolic = "on" } (fused)
  for node in lowered.functions.main:nodes() do
    if node.kind == "Call" and node.callee and node.callee.kind == "Function" then
      found[reason_of(node)] = true
    elseif node.kind == "Match" then
      found["a Match"] = true
    end
  end
  return found
end

-- nil where the results agree, else what differs.
local function difference(mod, built)
  local args = arguments(mod)
  local expected = table.pack(pl.eval(mod, table.unpack(args)))
  for i, result in ipairs(built.main(table.unpack(args))) do
    local most = expected[i].dtype:find "float16" and 1e-2 or 1e-4
    local same, how = result:compare(expected[i], { rtol = most, atol = most, scaled = true })
    if not same then
      return ("result %d: %s, expected %s"):format(i, tostring(how.got), tostring(how.expected))
    end
  end
end

local count, good, needs = 0, 0, {}

-- The same with the sizes of `several`, of what is built once.
local function differences(mod)
  local model = require "perilune.codegen.model".with_named_dims(mod)
  local built = pl.build(pl.pipelines.default(model))
  for i, own in ipairs(several) do
    local how = difference(fixed(mod, own), built)
    if how then return ("sizes %d: %s"):format(i, how) end
  end
end

local function examine(name)
  local mod = assert(pl.onnx.load(("%s/%s/model.onnx"):format(folder, name)))
  if symbolic then return differences(mod) end
  mod = pl.pipelines.default(fixed(mod))
  local reasons = left(mod)
  for reason in pairs(reasons) do
    needs[reason] = needs[reason] or {}
    table.insert(needs[reason], name)
  end
  if next(reasons) then return next(reasons) end
  if not only_lower then return difference(mod, pl.build(mod)) end
end

for _, name in ipairs(names_in(folder)) do
  count = count + 1
  local ok, failure = pcall(examine, name)
  if ok and not failure then good = good + 1 end
  print(("%-48s %s"):format(name, failure and tostring(failure):gsub("\n.*", "") or "good"))
end

local rows = {}
for reason, list in pairs(needs) do rows[#rows + 1] = { reason, #list } end
table.sort(rows, function(a, b)
  if a[2] ~= b[2] then return a[2] > b[2] end
  return a[1] < b[1]
end)
print(("\n%d of %d models are %s"):format(good, count, only_lower and "lowered"
  or "built and agree with the evaluator"))
for _, row in ipairs(rows) do print(("%4d  %s"):format(row[2], row[1])) end
