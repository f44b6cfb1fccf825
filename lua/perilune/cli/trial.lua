--- One model run on the data sets that lie beside it, for `perilune test`.

local core = require "perilune.core"
local dataset = require "perilune.cli.dataset"
local difference = require "perilune.check.tensor_difference"
local host = require "perilune.cli.host"
local pl = require "perilune"
local signature = require "perilune.cli.signature"
core.internal() -- diagnostics point at the scripts of others

local function message(err)
  return type(err) ~= "string" and err.message or tostring(err)
end

-- The operator without which nothing can be said about the model, or nil.
local function missing_kernel(err)
  local name = message(err):match "operator '([^']+)' cannot be evaluated$"
  if name and err.code == "unsupported" then return name end
end

-- Runs the function `main` of the module on what the set holds: nil when all
-- is as expected, else what is not, and whether it is for want of a kernel.
local function run_set(case, set)
  local inputs, reason = dataset.inputs(set.path, case.inputs, case.loaded)
  if not inputs then return reason end
  local expected
  expected, reason = dataset.outputs(set.path, case.outputs)
  if not expected then return reason end
  local got = table.pack(pcall(pl.eval, case.module, table.unpack(inputs, 1, inputs.n)))
  if not got[1] then
    local name = missing_kernel(got[2])
    if name then return ("no kernel for '%s'"):format(name), true end
    return ("%s: %s"):format(set.name, message(got[2]))
  end
  for i, output in ipairs(case.outputs) do
    local text = difference(got[i + 1], expected[i], case.tolerance)
    if text then return ("%s: output %d '%s'%s"):format(set.name, i - 1, output.name, text) end
  end
end

-- The module as it is to be run.
local function prepare(module, options)
  if options.pass then module = options.pass(module) end
  for _, pass in ipairs(options.emulate or {}) do module = pass(module) end
  return module
end

local function verdict_of(folder, options)
  local path = folder .. "/model.onnx"
  if not host.stat(path) then return "failed", { path .. " is missing" } end
  local sets = dataset.sets(folder)
  if #sets == 0 then return "failed", { "there is no test_data_set_0" } end
  local module, diag = pl.onnx.load(path)
  if not module then return "failed", { diag.message } end
  local inputs, outputs = signature(module)
  local ok, prepared = pcall(prepare, module, options)
  if not ok then return "failed", { message(prepared) } end
  local case = { loaded = module, module = prepared, inputs = inputs, outputs = outputs,
    tolerance = options.tolerance }
  local problems = {}
  for _, set in ipairs(sets) do
    local problem, skipped = run_set(case, set)
    if skipped then return "skipped", { problem } end
    problems[#problems + 1] = problem
  end
  return #problems > 0 and "failed" or "passed", problems
end

--- options: tolerance (as tensor:compare takes it), pass (run first, if any) and emulate (a
-- list of passes that run after it). Returns "passed", "failed" or "skipped", and texts
-- that say why.
return function(folder, options)
  local verdict, problems = verdict_of(folder, options)
  collectgarbage() -- the model and its data go before the next one comes
  return verdict, problems
end
