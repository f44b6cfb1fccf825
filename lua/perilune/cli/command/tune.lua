--- perilune tune: looks for the pipeline, the layouts, or the schedule whose result is the fastest,
-- by measuring.

local core = require "perilune.core"
local host = require "perilune.cli.host"
local load = require "perilune.cli.load"
local numbers = require "perilune.cli.numbers"
local saving = require "perilune.cli.save"
local stop = require "perilune.cli.stop"
core.internal() -- diagnostics point at the scripts of others

local tune = {
  description = "Tunes a model: searches for the pipeline, or for the layouts of convolutions, "
    .. "the operators that are combined and the kernels of generated C behind it, whose result is "
    .. "the fastest, and writes that "
    .. "result. Candidates are measured in child processes, in turn with the best one "
    .. "so far; one wins only if it is faster with confidence and computes what IN does. "
    .. "The result is never slower than that of the default pipeline (-p) beyond what "
    .. "can be measured. With --space schedule loops of a PrimFunc are tiled, reordered, unrolled "
    .. "and vectorized in place of running passes. "
    .. "Ctrl-C ends the search; the best so far is written.",
}

-- Seconds: a model may be lowered when Ctrl-C comes. Another one ends the command at once.
local GRACE = 60

local strategies = { "evolutionary", "exhaustive", "random", "beam", "annealing", "halving",
  "bandit", "separate" }

function tune.arguments(parser)
  parser:argument("input", "The model to tune."):argname "IN"
  parser:option("-o --output", "Where to write the tuned model; - is standard output, which gets "
    .. "nothing else then; with --measure c OUT.c, OUT.so or "
    .. "OUT.o too. What is decided for kernels is kept in OUT.onnx, from which 'perilune build' "
    .. "takes it."):argname "OUT"
  parser:option("--space", "What is searched: 'pipeline': order, presence and options of passes; "
    .. "'layout': the layout of the model, and of each convolution over two axes; those of ONNX "
    .. "get it by transposes, and with --measure c in memory; 'combine': which parallel "
    .. "convolutions, dense layers and products of matrices become one; 'substitution': what "
    .. "EqualitySaturation makes with which rules, for which cost, and whether that comes before "
    .. "the pipeline; 'schedule': tiles, "
    .. "order, vectors and unrolled loops of the blocks of a PrimFunc; 'kernels': the compiler, "
    .. "tiles, panels, transforms and orders of loops of each fused function of a model as C; or "
    .. "several in the order in which they work, as 'pipeline+kernels'. The default is "
    .. "'pipeline', and 'kernels' with --measure c."):argname "SPACE"
  parser:option("--substitution-rules", "Rules of --space substitution in place of those that "
    .. "perilune has: a line each, [name:] pattern => replacement [where condition], or with <=>; "
    .. "lines that begin with # are comments."):argname "FILE"
  parser:option("--substitution-cost", "With --space substitution: what extraction minimises, "
    .. "'measured' (each distinct call is measured once and kept in --db), the estimates 'time', "
    .. "'bytes', 'flops', 'nodes'; may be repeated. Without it all are tried; 'measured' where the "
    .. "time is minimised, by the evaluator or as C."):argname "NAME":count "*"
    :choices { "measured", "time", "bytes", "flops", "nodes" }
  parser:option("--placement", "Chooses the backend of each part of @main in place of a search: "
    .. "'evaluator' or 'own' first, which computes what no other one does, then 'openblas', 'c' "
    .. "(compiled), 'com.microsoft' (fused operators) and FILE.lua, which returns a backend with "
    .. "patterns and a builder, as of a C function, separated by commas. Parts of compilers "
    .. "become functions with the attribute Compiler."):argname "BACKENDS"
  parser:option("--measure-dim", "With --placement: the size that an open dim has while parts are "
    .. "measured; the result keeps it open. --dim fixes it."):argname "NAME=SIZE":count "*"
  parser:option("--pool", "Passes, as Name,Name{option=value}, that a pipeline may have beside "
    .. "those of the base pipeline; otherwise those that fit the kind of program."):argname "TEXT"
  parser:option("--search", "How the space is searched; 'separate', the default with kernels, "
    .. "measures each kernel by itself; else 'evolutionary'."):choices(strategies)
  parser:option("--cost-model", "A model that learns from the trials and says which of several "
    .. "candidates is measured next (random, beam and evolutionary searches); 'xgboost' needs "
    .. "libxgboost."):argname "KIND"
    :choices { "trees", "ridge", "xgboost" }
  parser:option("--trials", "The most candidates."):argname "N":default "100"
    :convert(numbers.count)
  parser:option("--seconds", "The most seconds."):argname "S":default "60"
    :convert(tonumber)
  parser:option("--seed", "The seed of the search and of inputs."):argname "N":default "1"
    :convert(numbers.seed)
  parser:option("--db", "The file of records. What it has is not measured again."):argname "FILE"
  parser:option("--target", "What records are kept for, in place of the metrics, what measures and "
    .. "this machine's processor: times of another one are not taken for those of this one. "
    .. "'perilune db list' shows those of a file."):argname "TEXT"
  parser:option("--measure", "What runs a candidate: 'evaluator', 'c' (compiled), or "
    .. "'command COMMAND', in which {} stands for the file of the model. The default is "
    .. "'evaluator', and 'c' for schedules."):argname "HOW"
  parser:option("--timing", "What counts of a command: its wall time, or the seconds of "
    .. "one run that the last line of its output has."):choices { "wall", "output" }:default "wall"
  parser:option("--metric", "What is minimised, NAME or NAME:WEIGHT: time, nodes, flops, bytes, "
    .. "peak_memory, energy (joules by RAPL, where the system lets it be read); may be repeated. "
    .. "Without it time."):argname "NAME":count "*"
  parser:option("--difference", "What two programs differ by at least when one is faster. The "
    .. "default is 0.03, and 0.02 with kernels."):argname "SHARE":convert(tonumber)
  parser:option("--run-seconds", "The time limit of a measurement."):argname "S":default "30"
    :convert(tonumber)
  parser:option("--run-memory", "The memory limit of a measurement, in MiB."):argname "N"
    :default "4096":convert(numbers.count)
  parser:option("--apply-best", "Applies the best pipeline that the records of FILE have for IN; "
    .. "nothing is measured."):argname "FILE"
  parser:flag("--replay", "Repeats the search that --db has recorded, without measuring.")
  require "perilune.cli.runner".options(parser)
  parser:option("--parallel", "The number of measurements on their way at once, with --runner "
    .. "farm or slurm."):argname "N":default "16":convert(numbers.count)
  parser:option("--trial", "Measures one candidate: what a task does."):argname "TEXT":hidden(true)
  require "perilune.cli.work".options(parser)
  parser:flag("-q --quiet", "Prints nothing unless something fails.")
end

-- ---------------------------------------------------------------------- options

local function builder_of(options)
  local kind, command = options.measure, nil
  if kind:find "^command%s" then kind, command = "command", kind:match "^command%s+(.*)$" end
  if kind == "command" and (command or "") == "" then
    stop.usage "--measure: 'command' is followed by the command, as in 'command my_runtime {}'"
  end
  if kind ~= "evaluator" and kind ~= "c" and kind ~= "command" then
    stop.usage("--measure %s: 'evaluator', 'c' or 'command COMMAND' is expected", options.measure)
  end
  local suffix = options.input:match "%.[%w]+$"
  if suffix ~= ".relay" and suffix ~= ".tir" and suffix ~= ".tvmscript" and suffix ~= ".py" then
    suffix = ".onnx"
  end
  return require "perilune".tune.builder { kind = kind, command = command, timing = options.timing,
    seed = options.seed, suffix = suffix }
end

local metric_names = { time = true, nodes = true, flops = true, bytes = true, peak_memory = true,
  energy = true }

local function metrics_of(texts)
  local list = {}
  for i, text in ipairs(texts) do
    local name, weight = text:match "^([%w_]+):(.+)$"
    name = name or text
    if not metric_names[name] or weight and (tonumber(weight) or 0) <= 0 then
      stop.usage("--metric %s: time, nodes, flops, bytes, peak_memory or energy expected, with a "
        .. "positive weight behind a colon", text)
    end
    list[i] = { name, name = name, weight = tonumber(weight) }
  end
  return #list > 0 and list or nil
end

-- The texts of the passes that are separated by commas outside of braces.
local function pool_of(text)
  if not text then return nil end
  local list, depth, begin = {}, 0, 1
  for at, c in text:gmatch "()([{},])" do
    if c == "{" then depth = depth + 1 elseif c == "}" then depth = depth - 1 end
    if c == "," and depth == 0 then
      list[#list + 1], begin = text:sub(begin, at - 1), at + 1
    end
  end
  list[#list + 1] = text:sub(begin)
  for _, pass in ipairs(list) do
    local ok, diag = pcall(core.pipeline, pass)
    if not pass:find "%S" then ok, diag = false, "a pass expected between commas" end
    if not ok then stop.usage("--pool: %s", tostring(diag)) end
  end
  return list
end

-- Endings of what only a model can be written to, and of what is built.
local built = { [".c"] = true, [".so"] = true, [".o"] = true }

local function suffix_of(path) return path and path:match "%.%w+$" or "" end

local function check_output(options, seen)
  local suffix = suffix_of(options.output)
  if built[suffix] and options.measure ~= "c" then
    stop.usage("-o %s: C is written with --measure c", options.output)
  elseif seen.kernels and suffix == ".relay" then
    stop.usage("-o %s: text does not have what is decided for kernels; write OUT.onnx, OUT.c, "
      .. "OUT.so or OUT.o", options.output)
  end
end

-- Whether the program is one of loops, by its file.
local function has_loops(path)
  local suffix = suffix_of(path)
  return suffix == ".tir" or suffix == ".tvmscript" or suffix == ".py"
end

local function check_space(options)
  local of_kernels = options.measure == "c" and not options.pool and not has_loops(options.input)
  options.space = options.space or of_kernels and "kernels" or "pipeline"
  local ok, names, seen = pcall(require "perilune.tune.search.spaces".names, options.space,
    "perilune tune")
  if not ok then stop.usage("%s", names) end
  if seen.knobs then stop.usage "--space knobs: knobs are those of a script (pl.tune.search)" end
  options.spaces, options.schedules = names, seen.schedule
  options.measure = options.measure or ((seen.schedule or seen.kernels) and "c" or "evaluator")
  options.search = options.search or seen.kernels and names[#names] == "kernels" and "separate"
    or "evolutionary"
  options.difference = options.difference or seen.kernels and 0.02 or 0.03
  if options.difference < 0 or options.difference >= 1 then
    stop.usage "--difference: a share from 0 to less than 1 is expected"
  end
  check_output(options, seen)
  if options.substitution_rules and not seen.substitution then
    stop.usage("--space %s has no rules; leave --substitution-rules out", options.space)
  end
  if #options.substitution_cost > 0 and not seen.substitution then
    stop.usage("--space %s extracts nothing; leave --substitution-cost out", options.space)
  end
  if options.pool and not seen.pipeline then
    stop.usage("--space %s tries no passes; leave --pool out", options.space)
  elseif not seen.schedule then
    return
  elseif options.pipeline and #names == 1 then
    stop.usage "--space schedule runs no passes; leave -p out"
  end
end

local function check(options)
  check_space(options)
  require "perilune.cli.runner".check(options)
  if options.seconds < 0 then stop.usage "--seconds: a number of seconds expected" end
  if options.run_seconds <= 0 then
    stop.usage "--run-seconds: a number of seconds above 0 expected"
  end
  for _, name in ipairs { "db", "apply_best", "replay", "trial" } do
    if options.placement and options[name] then
      stop.usage("--placement makes no records; leave --%s out", (name:gsub("_", "-")))
    end
  end
  options.dims = {}
  for _, dim in ipairs(numbers.dims(options.measure_dim)) do options.dims[dim.name] = dim.size end
  if next(options.dims) and not options.placement then
    stop.usage "--measure-dim is for --placement; --dim NAME=SIZE fixes the size of a dim"
  end
  if options.replay and not options.db then stop.usage "--replay needs --db FILE" end
  if options.apply_best and options.db then
    stop.usage "--apply-best has its own file of records; leave --db out"
  end
  if not options.output and options.apply_best then stop.usage "--apply-best needs -o OUT" end
end

-- --------------------------------------------------------------------- progress

local function progress_line(search, started)
  local left = math.max(0, search.seconds - (host.clock() - started))
  local best = search.best and ("%.3f of the base, confidence %.2f %%"):format(search.best.cost,
    100 * (search.best.confidence or 0)) or "none yet"
  return ("\rtrial %d of %d, %s left; best: %s\27[K"):format(search.count.trials, search.trials,
    left < math.huge and ("%.0f s"):format(left) or "time", best)
end

local function progress(options)
  if options.quiet or not core.terminal "stderr" then return nil end
  local started = host.clock()
  return function(search) io.stderr:write(progress_line(search, started)) end
end

local function end_line(options)
  if not options.quiet and core.terminal "stderr" then io.stderr:write "\r\27[K" end
end

-- ----------------------------------------------------------------------- report

local function base_name(options)
  return options.space == "schedule" and "the program as it is" or "the base pipeline's result"
end

-- The pipeline, or the steps of the schedule.
local function part_text(space, mod, text)
  if space == "schedule" then
    return tostring(require "perilune".tir.Schedule(mod):apply_json(text).trace)
  end
  return "pipeline: " .. (text == "" and "none: the model as it is" or text)
end

local function found_text(options, mod, text)
  if not options.schedules or #options.spaces == 1 then
    return part_text(options.space, mod, text)
  end
  local parts = {}
  for i, part in ipairs(require "perilune.json".decode(text)) do
    parts[i] = part_text(options.spaces[i], mod, part)
    mod = require "perilune.tune.search.spaces".apply(mod, part, { options.spaces[i] })
  end
  return table.concat(parts, "\n")
end

local function winner_text(result, options, module)
  local base = base_name(options)
  if result.verdict ~= "faster" then
    return ("no better one than %s%s: %s"):format(base, options.output and ", which is written"
      or "", result.reason)
  end
  return ("cost %.4g of %s (%.1f %% less), confidence %.2f %%\n%s"):format(result.ratio, base,
    100 * (1 - result.ratio), 100 * result.confidence,
    found_text(options, module, result.text))
end

-- What candidates failed of, the most frequent reasons first.
local function failures(list, out)
  local counts, reasons = {}, {}
  for _, trial in ipairs(list) do
    local reason = trial.failure and trial.failure:match "[^\n]*"
    if reason and not counts[reason] then reasons[#reasons + 1] = reason end
    if reason then counts[reason] = (counts[reason] or 0) + 1 end
  end
  table.sort(reasons, function(a, b)
    if counts[a] ~= counts[b] then return counts[a] > counts[b] end
    return a < b
  end)
  for i = 1, math.min(3, #reasons) do
    out:write(("  %d failed: %s\n"):format(counts[reasons[i]], reasons[i]))
  end
end

local function model_text(model)
  return ("cost model: rank correlation %.2f, %.0f of the %d best among the %d that it expected to "
    .. "be best, of %d trials that it had not seen"):format(model.rank_correlation,
    model.recall * model.k, model.k, model.k, model.n)
end

local function report(result, options, module)
  if options.quiet then return end
  local out = saving.messages(options.output)
  out:write(("%s: %d trial%s (%d measured, %d from records, %d failed) in %.1f s, %s\n")
    :format(options.input, result.trials, result.trials == 1 and "" or "s", result.measured,
      result.cached, result.failed, result.seconds, result.state))
  failures(result.list, out)
  if result.model then out:write(model_text(result.model), "\n") end
  out:write(winner_text(result, options, module), "\n")
  for _, trial in ipairs(result.front or {}) do
    local parts = {}
    for _, name in ipairs(require "perilune.sorted_keys"(trial.costs)) do
      parts[#parts + 1] = ("%s %.3f"):format(name, trial.costs[name])
    end
    out:write(("  not dominated: %s: %s\n"):format(table.concat(parts, ", "), trial.text))
  end
end

-- ---------------------------------------------------------------------- running

local function save(module, options)
  local output = options.output
  if output and built[suffix_of(output)] then
    require "perilune.codegen"(module):save(output)
  elseif output then
    saving.module(module, output)
  end
end

-- `target`: what there is no record for.
local function no_record_text(db, target, options)
  local others = {}
  for _, row in ipairs(db:list()) do
    if row.target ~= target and not others[row.target] then
      others[#others + 1], others[row.target] = ("'%s'"):format(row.target), true
    end
  end
  return ("%s has no record of a better %s for %s and the target '%s'%s"):format(
    options.apply_best, options.space, options.input, target, #others > 0
    and ("; it has records for %s (--target)"):format(table.concat(others, ", ")) or "")
end

local function apply_best(module, options, context)
  local pl = require "perilune"
  local db <close> = pl.tune.database { path = options.apply_best, readonly = true }
  local out, best = pl.with(context, pl.tune.apply_best, module, { database = db,
    builder = builder_of(options), metrics = metrics_of(options.metric),
    space = options.space, target = options.target })
  if not out then stop.failure("%s", no_record_text(db, best, options)) end
  save(out, options)
  if not options.quiet then
    local text = "cost %.4g of %s when it was recorded\n%s\n"
    saving.messages(options.output):write(text:format(best.cost,
      base_name(options), found_text(options, module, best.text)))
  end
end

local function open_database(options)
  local pl = require "perilune"
  if options.db then return pl.tune.database { path = options.db } end
  return pl.tune.database()
end

local function runner_of(options)
  return require "perilune".tune.runner { seconds = options.run_seconds,
    difference = options.difference,
    memory = options.run_memory << 20, rounds = options.schedules and 1 or nil,
    seed = options.seed }
end

-- Time for what a trial does beside measuring: compiling, checking results.
local function trial_seconds(options) return 600 + 10 * options.run_seconds end

-- Where trials are tasks. nil: they are measured here.
local function queue_of(options)
  if options.runner == "local" or options.replay then return nil end
  return require "perilune.cli.runner".queue(options)
end

local function search(module, options, pass)
  local pl = require "perilune"
  local db <close> = open_database(options)
  local queue <close> = queue_of(options)
  return pl.tune.search { mod = module, space = options.space,
    substitution = require "perilune.cli.tune.substitution_rules"(options.substitution_rules,
      options.substitution_cost),
    base = pass, pool = pool_of(options.pool), strategy = options.search,
    trials = options.trials, seconds = options.seconds,
    seed = options.seed, metrics = metrics_of(options.metric),
    builder = builder_of(options), runner = runner_of(options), database = db,
    target = options.target, on_trial = progress(options),
    replay = options.replay, cost_model = options.cost_model, queue = queue, command = queue
      and require "perilune.cli.tune.remote_command"(options),
    width = options.runner ~= "local" and options.parallel or nil,
    task_seconds = queue and trial_seconds(options) }
end

-- Ends the command with why there is no search: what the options and the model do not allow is the
-- user's to change, and says how.
local function refuse(why, options)
  local text = type(why) == "string" and why:match "^pl%.tune%.[%w_.]+: (.*)" or nil
  local before, dim = tostring(why):match "pl%.tune%.placement: (.-; )`dims` .*{ (%S+) = 1 }"
  if before then
    stop.failure("%s: %s--measure-dim %s=1 gives a size to measure with, --dim %s=1 fixes it",
      options.input, before, dim, dim)
  end
  if text then stop.failure("%s: %s", options.input, text) end
  if type(why) ~= "string" and tostring(why):find("no argument can be made", 1, true) then
    stop.failure("%s: %s; --shape INPUT=SIZES or --dim NAME=SIZE gives the sizes to tune for",
      options.input, why.message)
  end
  error(why, 0)
end

-- What a task does.
local function trial(module, options)
  io.stdout:write(require "perilune.tune.search.tasks".run(module, options.trial, {
    builder = builder_of(options), runner = runner_of(options),
    metrics = metrics_of(options.metric) }), "\n")
end

function tune.run(options)
  check(options)
  local pass, context = require "perilune.cli.work".prepare(options, {})
  builder_of(options)
  metrics_of(options.metric)
  local module = require "perilune.cli.work".fix_dims(assert(load.model(options.input)), options)
  if options.apply_best then return apply_best(module, options, context) end
  if options.trial then return require "perilune".with(context, trial, module, options) end
  host.catch_interrupt()
  host.grace_period(GRACE) -- the best so far is written
  if options.placement then
    local ok, why = pcall(require "perilune.cli.tune.placement", module, options, context, pass)
    if not ok then refuse(why, options) end
    return
  end
  local ok, result = pcall(require "perilune".with, context, search, module, options, pass)
  if not ok then
    end_line(options)
    refuse(result, options)
  end
  end_line(options)
  save(result.mod, options)
  report(result, options, module)
  if result.unrecorded then
    stop.failure("%s; the search ended there%s", result.unrecorded, options.output
      and ", and the best so far is written" or "")
  end
end

return tune
