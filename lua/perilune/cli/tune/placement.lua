--- What `perilune tune --placement` does: measures the parts of the model that the base pipeline
-- makes, chooses their backends, and writes the result.

local backend_of = require "perilune.cli.tune.backend"
local save = require "perilune.cli.save"
local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local function names_of(text)
  local list = {}
  for name in text:gmatch "[^,]+" do list[#list + 1] = name:match "^%s*(.-)%s*$" end
  return list
end

local function backends_of(text)
  local list = names_of(text)
  for i, name in ipairs(list) do
    if name:find "%.lua$" then list[i] = backend_of(name, "--placement") end
  end
  local ok, made = pcall(require "perilune.tune.placement.backends".list, list,
    "pl.tune.placement")
  if not ok then
    if type(made) == "string" then stop.usage("--placement: %s", made) end
    error(made, 0)
  end
  return list, made
end

-- Functions with the attribute Compiler are none that ONNX has.
local function check_output(backends, options)
  if not options.output or options.output:find "%.relay$" then return end
  for _, backend in ipairs(backends) do
    if backend.compiler then
      stop.usage("-o %s: parts of the backend '%s' become functions of their own, which ONNX does "
        .. "not have; write OUT.relay, from which 'perilune build' takes them", options.output,
        backend.name)
    end
  end
end

-- Seconds and parts by backend.
local function report(result, options)
  if options.quiet then return end
  local sums, order, out = {}, {}, save.messages(options.output)
  for _, part in ipairs(result.parts) do
    if not sums[part.backend] then
      sums[part.backend], order[#order + 1] = { n = 0, seconds = 0 }, part.backend
    end
    local sum = sums[part.backend]
    sum.n, sum.seconds = sum.n + 1, sum.seconds + part.seconds
  end
  local line = "%s: %.3f ms in %d parts, of which %.3f ms are moving values, %.3f ms by the host "
    .. "alone; %d parts measured%s\n"
  out:write(line:format(options.input, 1e3 * result.cost, #result.parts,
    1e3 * result.boundary_cost, 1e3 * result.base_cost, result.measured,
    result.exact and "" or ", not all covers tried"))
  for _, name in ipairs(order) do
    out:write(("  %s: %d parts, %.3f ms\n"):format(name, sums[name].n,
      1e3 * sums[name].seconds))
  end
  if result.verdict == "faster" then
    out:write(("as a whole: cost %.4g of the base pipeline's result (%.1f %% less), confidence "
      .. "%.2f %%\n"):format(result.ratio, 100 * (1 - result.ratio), 100 * result.confidence))
  elseif result.verdict then
    out:write("as a whole nothing is faster with confidence than the base pipeline's result, which "
      .. "is written\n")
  end
  if result.unmeasured > 0 then
    out:write(("  %d parts were not measured: %g s were spent\n"):format(result.unmeasured,
      options.seconds))
  end
  for i = 1, math.min(3, #result.reasons) do
    out:write("  not measured: ", result.reasons[i]:match "[^\n]*", "\n")
  end
end

return function(module, options, context, pass)
  local pl = require "perilune"
  local backends, made = backends_of(options.placement)
  check_output(made, options)
  local ok, result = pcall(pl.with, context, function()
    return pl.tune.placement { mod = pass(module), backends = backends, dims = options.dims,
      seconds = options.seconds > 0 and options.seconds or nil,
      runner = pl.tune.runner { seconds = options.run_seconds, memory = options.run_memory << 20,
        pairs = 10, seed = options.seed } }
  end)
  if not ok and type(result) == "string" then stop.usage("--placement: %s", result) end
  if not ok then error(result, 0) end
  if options.output then save.module(result.mod, options.output) end
  report(result, options)
end
