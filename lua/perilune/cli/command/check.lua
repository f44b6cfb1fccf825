--- perilune check: whether two models compute the same.

local core = require "perilune.core"
local load = require "perilune.cli.load"
local loops = require "perilune.tir.check"
local numbers = require "perilune.cli.numbers"
local stop = require "perilune.cli.stop"
core.internal() -- diagnostics point at the scripts of others

local check = {
  description = "Evaluates two models on the same inputs and compares the outputs. "
    .. "Inputs are generated in several rounds (ordinary numbers, zeros, small integers that can "
    .. "be indices, NaN, infinities, extremes), with sizes of open dims that the operators of A "
    .. "admit, or are read with --data. Inputs are matched by name where the models share names. "
    .. "A round that both models refuse is not counted, and the check fails when no round is "
    .. "counted. A round that only one of them refuses is a difference.",
}

--- The options that `opt --check` has as well.
function check.options(parser)
  parser:option("--rounds", "The number of rounds with generated inputs: 6, with "
    .. "--data 0.")
    :argname "N":convert(numbers.count)
  parser:option("--data", "Reads inputs from input_N.pb in a folder such as "
    .. "test_data_set_0, or in all such folders inside DIR."):argname "DIR":count "*"
  parser:option("--seed", "The seed of the random numbers of the first round."):argname "N"
    :default "1":convert(numbers.seed)
  parser:option("--rtol", "The relative tolerance of floats. A difference of four "
    .. "units in the last place is always allowed."):argname "X":default "1e-3"
    :convert(numbers.tolerance)
  parser:option("--atol", "The absolute tolerance of floats, scaled by the largest "
    .. "magnitude of the expected tensor (at least 1).")
    :argname "X":default "1e-5":convert(numbers.tolerance)
  parser:option("--float16", "'emulate' computes float16 operators in float32, so that a rewrite "
    .. "may round elsewhere; 'exact' rounds after each operator.")
    :choices { "emulate", "exact" }:default "emulate"
end

function check.arguments(parser)
  parser:argument("a", "The model that is expected to be right."):argname "A"
  parser:argument("b", "The model that is compared with it."):argname "B"
  require "perilune.cli.shapes".options(parser)
  require "perilune.cli.settings".option(parser)
  check.options(parser)
end

-- The names of the inputs of both models, and of their dims.
local function names_of(modules)
  local inputs, dims = {}, {}
  for _, module in ipairs(modules) do
    for _, row in ipairs((require "perilune.cli.signature"(module))) do
      inputs[#inputs + 1], inputs[row.name] = row.name, true
      for _, name in ipairs(core.type_symbols(row.type) or {}) do
        if name then dims[#dims + 1], dims[name] = name, true end
      end
    end
  end
  return inputs, dims
end

-- What is fixed, by name. A name that neither model has is a mistake.
local function fixed_sizes(fixed, modules)
  local inputs, names = names_of(modules)
  local dims, shapes = {}, {}
  for _, dim in ipairs(fixed.dims) do
    if not names[dim.name] then
      stop.failure("--dim %s=%d: no input has a dim of that name%s", dim.name, dim.size,
        core.suggest(dim.name, names))
    end
    dims[dim.name] = dim.size
  end
  for _, row in ipairs(fixed.shapes) do
    if not inputs[row.name] then
      stop.failure("--shape %s: no input is called '%s'%s", row.text, row.name,
        core.suggest(row.name, inputs))
    end
    shapes[row.name] = row.shape
  end
  return dims, shapes
end

--- A model as it is to be run: float16 operators in float32, unless they are to be
-- exact.
function check.widened(module, options)
  if options.float16 == "exact" then return module end
  return require "perilune.pipelines".chunk "emulate_float16" {} (module)
end

--- What an optimiser may round once more, as when it folds weights of float16,
-- is no difference.
check.units = 4

--- What the options say of a comparison, for pl.check, and `prepare` for the oracle.
function check.comparison(options)
  return { rounds = options.rounds, seed = options.seed, rtol = options.rtol,
    atol = options.atol, units = check.units,
    prepare = function(module) return check.widened(module, options) end }
end

--- Adds the data that the options name to a comparison of `module`, which came from the
-- file `path`, and the shapes of the data beside it.
function check.add_data(comparison, options, path, module)
  if loops.is_loop_level(module) then
    if #options.data > 0 then stop.failure "--data: inputs of PrimFuncs are made, not read" end
    return
  end
  local dataset = require "perilune.cli.dataset"
  local rows = require "perilune.cli.signature"(module)
  for _, folder in ipairs(options.data) do
    local sets, reason = dataset.named_inputs(folder, rows, module)
    if not sets then stop.failure("--data %s", reason) end
    comparison.data = table.move(sets, 1, #sets, #(comparison.data or {}) + 1,
      comparison.data or {})
  end
  if not comparison.data then comparison.example = dataset.example(path, rows, module) end
end

--- Evaluations tell on a terminal how far they are, until the command ends or
-- host.end_progress.
function check.show_progress(a, b)
  if not core.terminal "stderr" then return end
  require "perilune.cli.host".show_progress(("comparing %s and %s"):format(a, b))
end

local function rounds_text(comparison, report)
  local made, sets = report.rounds - #(comparison.data or {}), #(comparison.data or {})
  local parts = {}
  if sets > 0 then parts[1] = ("on %d data set%s"):format(sets, sets == 1 and "" or "s") end
  if made > 0 then parts[#parts + 1] = ("from seed %d"):format(comparison.seed) end
  local refused = report.refused == 0 and "" or (" (%d refused, the last: %s)"):format(
    report.refused, report.reason)
  return ("equal in %d of %d rounds%s, %s"):format(report.compared, report.rounds, refused,
    table.concat(parts, " and "))
end

-- Modules of PrimFuncs, by the interpreter of loops.
local function compare_loops(a, b, comparison)
  local same, diag = loops.check(a, b, loops.options_of(comparison))
  if not same then return nil, diag.message, diag.code == "invalid" end
  return ("equal in the interpreter of loops, from seed %d"):format(comparison.seed)
end

--- Compares two modules (`comparison` is that of check.comparison): a line that says
-- how; or nil, a failure, and whether it is a difference.
function check.compare(a, b, comparison)
  if loops.is_loop_level(a) and loops.is_loop_level(b) then
    return compare_loops(a, b, comparison)
  end
  local given = {}
  for name, value in pairs(comparison) do if name ~= "prepare" then given[name] = value end end
  local same, report = require "perilune".check(comparison.prepare(a), comparison.prepare(b),
    given)
  if not same then return nil, report.message, report.code == "invalid" end
  return rounds_text(comparison, report)
end

function check.run(options)
  local fixed = require "perilune.cli.shapes".parse(options) -- before any work is done
  local context = require "perilune.cli.settings".context(options.set)
  local pl = require "perilune"
  local a, b = assert(load.model(options.a)), assert(load.model(options.b))
  local comparison = check.comparison(options)
  comparison.dims, comparison.shapes = fixed_sizes(fixed, { a, b })
  check.add_data(comparison, options, options.a, a)
  check.show_progress(options.a, options.b)
  local text, reason, differ = pl.with(context, check.compare, a, b, comparison)
  if not text then
    stop.failure("%s and %s %s: %s", options.a, options.b, differ and "differ"
      or "cannot be compared", reason)
  end
  require "perilune.cli.host".end_progress()
  print(text)
  return 0
end

return check
