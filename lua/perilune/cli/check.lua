--- perilune check: whether two models compute the same.

local load = require "perilune.cli.load"
local numbers = require "perilune.cli.numbers"
local stop = require "perilune.cli.stop"
require "perilune.core".internal() -- diagnostics point at the scripts of others

local check = {
  description = "Runs two models on inputs made for them, round after round with other numbers "
    .. "(ordinary ones, zeros, small ones that may be indices, NaN, infinities, extremes) and "
    .. "other sizes of symbolic dims (1 and 0 among them), and compares what comes out. Inputs "
    .. "are matched by name where the models share names. A round that both refuse counts for "
    .. "nothing; one that only one of them refuses is a difference.",
}

--- The options that `opt --check` has as well.
function check.options(parser)
  parser:option("--rounds", "How many rounds to run."):argname "N":default "6"
    :convert(numbers.count)
  parser:option("--seed", "What the numbers of the first round are made from."):argname "N"
    :default "1":convert(numbers.seed)
  parser:option("--rtol", "How much a float may differ, as a part of what is expected; four "
    .. "units in the last place are allowed in any case."):argname "X":default "1e-3"
    :convert(numbers.tolerance)
  parser:option("--atol", "How much a float may differ in any case, times the largest magnitude "
    .. "of the expected tensor, at least 1."):argname "X":default "1e-5":convert(numbers.tolerance)
  parser:option("--float16", "'emulate' computes float16 operators in float32, so that a rewrite "
    .. "may round elsewhere; 'exact' rounds after each operator.")
    :choices { "emulate", "exact" }:default "emulate"
end

function check.arguments(parser)
  parser:argument("a", "A model."):argname "A"
  parser:argument("b", "Another one."):argname "B"
  parser:option("--dim", "Fixes the size of a symbolic dim."):argname "NAME=SIZE":count "*"
  check.options(parser)
end

-- A name that neither model has is a mistake.
local function sizes(texts, modules)
  local sample = require "perilune.sample"
  local known, names, dims = {}, {}, {}
  for _, module in ipairs(modules) do
    local types = {}
    for i, row in ipairs((require "perilune.cli.signature"(module))) do types[i] = row.type end
    for _, name in ipairs(sample.symbols(types)) do
      known[name], names[#names + 1] = true, name
    end
  end
  for _, dim in ipairs(numbers.dims(texts)) do
    if not known[dim.name] then
      stop.failure("--dim %s=%d: no input has a dim of that name%s", dim.name, dim.size,
        require "perilune.core".suggest(dim.name, names))
    end
    dims[dim.name] = dim.size
  end
  return dims
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

--- Evaluations tell on a terminal how far they are, until the command ends or
-- host.end_progress.
function check.show_progress(a, b)
  if not require "perilune.core".terminal "stderr" then return end
  require "perilune.cli.host".show_progress(("comparing %s and %s"):format(a, b))
end

--- Compares two modules as the options tell: a line that says how, or a failure.
function check.compare(a, b, options, dims)
  a, b = check.widened(a, options), check.widened(b, options)
  local same, report = require "perilune".check(a, b, { rounds = options.rounds,
    seed = options.seed, rtol = options.rtol, atol = options.atol, dims = dims,
    units = check.units })
  if not same then return nil, report.message end
  return ("equal in %d of %d rounds%s, from seed %d"):format(report.compared, report.rounds,
    report.compared < report.rounds and " (the others are refused)" or "", options.seed)
end

function check.run(options)
  numbers.dims(options.dim) -- wrong usage is told before any work is done
  local a, b = assert(load.model(options.a)), assert(load.model(options.b))
  check.show_progress(options.a, options.b)
  local text, reason = check.compare(a, b, options, sizes(options.dim, { a, b }))
  if not text then stop.failure("%s and %s differ: %s", options.a, options.b, reason) end
  require "perilune.cli.host".end_progress()
  print(text)
  return 0
end

return check
