-- How times grow when a program doubles: every pass, what scripts call and every command on
-- the programs of programs.lua and on narrow, deep models of the zoo. Prints each ratio of
-- times per doubling, which is 2 where work is linear; above the limit of 2.4 it is marked.
--
--     LUA_CPATH='BUILD/lua/?.so' lua5.4 spec/bench/doubling.lua BUILD [WORK [PROGRAM]]
--
-- WORK and PROGRAM pick rows by a part of their names: FoldConstant, "opt -", lets.
-- Times are of the processor, the least of some runs; a row is shown when it takes long enough
-- to be told from noise. Where a program outgrows a cache of the processor its time jumps once:
-- a ratio above the limit is measured again from the larger size on, and the lesser one counts.
-- PERILUNE_ALL=1 shows all, else only those above the limit; sizes begin at PERILUNE_SMALLEST.

package.path = "lua/?.lua;lua/?/init.lua;spec/bench/?.lua;" .. package.path

local build, work_part, program_part = arg[1] or "build", arg[2], arg[3]
local show_all = os.getenv "PERILUNE_ALL"

local pl = require "perilune"
local core = require "perilune.core"
local programs = require "programs"

local LIMIT = 2.4
-- Sizes of a first look: SMALL and FACTOR * SMALL.
local SMALL, FACTOR = tonumber(os.getenv "PERILUNE_SMALLEST") or 1000, 4
local DOUBLINGS = 2
local ENOUGH = 0.004 -- seconds that the small one must take
local LARGEST = tonumber(os.getenv "PERILUNE_LARGEST") or 16000
local TOO_LONG = 3 -- seconds; a row that takes more is not repeated

-- Models of the zoo: as exported, a layer has 60 to 170 nodes.
local zoo = require "perilune.zoo"
local tiny = {
  bert = { hidden = 8, heads = 2, intermediate = 16, vocabulary = 16, positions = 16, batch = 1,
    sequence = 4 },
  gpt2 = { hidden = 8, heads = 2, vocabulary = 16, positions = 16, batch = 1, sequence = 4 },
  vit = { hidden = 8, heads = 2, mlp = 16, patch = 8, image = 16, classes = 4, batch = 1 },
}
for _, family in ipairs { "bert", "gpt2", "vit" } do
  local function options(n)
    local out = { layers = n // 100 }
    for name, value in pairs(tiny[family]) do out[name] = value end
    return out
  end
  programs[#programs + 1] = { name = "zoo: " .. family, family = family, options = options,
    make = function(n)
      return assert(pl.onnx.parse(assert(zoo.build(family, options(n))):tostring()))
    end }
end

local folder = os.getenv "TMPDIR" or "/tmp"
local stem = ("%s/perilune-doubling-%d"):format(folder, math.random(1 << 30))
local model_onnx, model_relay, out_onnx, out_relay =
  stem .. ".onnx", stem .. ".relay", stem .. ".out.onnx", stem .. ".out.relay"

-- --------------------------------------------------------------- what is measured

-- { name, prepare(mod, program, size) -> f } : f() is measured; nil when the program is not for it.
local works = {}

local function measured(name, prepare) works[#works + 1] = { name = name, prepare = prepare } end

local function nowhere() end

local function in_process(name, f)
  measured(name, function(mod) return function() return f(mod) end end)
end

-- Not for programs whose text is indented by their depth.
local function with_text(name, prepare)
  measured(name, function(mod, program, size)
    if program.nested then return nil end
    return prepare(mod, program, size)
  end)
end

-- f(main, mod): for programs of the loop level.
local function of_loops(name, f)
  measured(name, function(mod, program)
    if not program.loop then return nil end
    local fn = mod.functions.main
    return function() return f(fn, mod) end
  end)
end

for name in pairs(pl.passes) do
  if name ~= "PrintIR" then
    local pass = pl.sequential { opt_level = 0, name }
    local function run(mod)
      local scope <close> = pl.context { opt_level = 4 }:enter() -- luacheck: ignore scope
      return pass(mod)
    end
    if name == "AnnotateSpans" then -- it prints the module
      with_text(name, function(mod) return function() return run(mod) end end)
    else
      in_process(name, run)
    end
  end
end
local dataflow = { ["tir.Simplify.propagate_knowns_to_prove_conditional"] = true,
  ["tir.Simplify.propagate_knowns_to_simplify_expressions"] = true,
  ["tir.RemoveNoOp.use_dataflow_analysis"] = true,
  ["tir.ReduceBranchingThroughOvercompute.use_dataflow_analysis"] = true }
for _, name in ipairs { "tir.Simplify", "tir.RemoveNoOp",
  "tir.ReduceBranchingThroughOvercompute" } do
  in_process(name .. ", data flow", function(mod)
    return pl.with(pl.context { opt_level = 4, config = dataflow }, pl.pipeline(name), mod)
  end)
end
for _, text in ipairs { "tir.CommonSubexprElimTIR{identify_equiv_terms=true}",
  "EtaExpand{expand_global_var=true,expand_constructor=true}",
  "functions{SimplifyExpr,FoldConstant,DeadCodeElimination}",
  "fixpoint(4){SimplifyExpr,EliminateCommonSubexpr}" } do
  local pass = pl.pipeline(text)
  in_process(text, function(mod) return pl.with(pl.context { opt_level = 4 }, pass, mod) end)
end
in_process("default pipeline", function(mod)
  return pl.with(pl.context { opt_level = 3 }, require "perilune.pipelines.default", mod)
end)
in_process("default pipeline, cache", function(mod)
  local ctx = pl.context { opt_level = 3, config = { cache = 1 << 30 } }
  pl.with(ctx, require "perilune.pipelines.default", mod)
  local out = pl.with(ctx, require "perilune.pipelines.default", mod)
  core.cache_clear()
  return out
end)

-- A pass in Lua that changes each call.
local tanh_to_exp = pl.function_pass { name = "tanh_to_exp", run = pl.mutator {
  Call = function(_, rebuild)
    local new = rebuild()
    if new.op == pl.op.tanh then return pl.op.exp(new.args[1]) end
    return new
  end } }
in_process("a mutator that changes calls", tanh_to_exp)
in_process("a mutator that changes nothing", pl.function_pass { name = "same", run = pl.mutator {
  Call = function(_, rebuild) return rebuild() end } })
in_process("a pass that looks at all nodes", pl.function_pass { name = "look", run = function(fn)
  for node in fn:nodes() do assert(node.kind) end
  return fn
end })
in_process("a module pass with mod:with", pl.module_pass { name = "with", run = function(mod)
  local changed = {}
  for name, fn in pairs(mod) do
    if fn.kind == "Function" then changed[name] = fn:with { attrs = { seen = 1 } } end
  end
  return mod:with(changed)
end })

with_text("tostring(mod)", function(mod) return function() return tostring(mod) end end)
with_text("pl.parse(text)", function(mod)
  local text = tostring(mod)
  return function() return assert(pl.parse(text)) end
end)
with_text("pl.equal, pl.mismatch", function(mod)
  local other = assert(pl.parse(tostring(mod)))
  return function() return pl.equal(mod, other), pl.mismatch(mod, other) end
end)
in_process("pl.hash", pl.hash)
in_process("pl.verify", pl.verify)
in_process("pl.well_formed", pl.well_formed)
in_process("pl.infer_type", pl.infer_type)
in_process("pl.detect_feature", pl.detect_feature)
in_process("pl.list_op_freqs", pl.list_op_freqs)
in_process("pl.is_basic_block_normal_form", pl.is_basic_block_normal_form)
in_process("mod:dot", function(mod) return mod:dot() end)
in_process("mod:json", function(mod) return mod:json() end)
in_process("mod.functions[name] of each", function(mod)
  for _, name in ipairs(mod.names) do assert(mod.functions[name]) end
end)
measured("variables of @main", function(mod)
  local fn = mod.functions.main
  return function()
    return pl.all_vars(fn), pl.bound_vars(fn), pl.free_vars(fn), pl.all_type_vars(fn)
  end
end)
measured("pl.renew_defs(@main)", function(mod)
  local fn = mod.functions.main
  return function() return pl.renew_defs(fn) end
end)
measured("pl.dominators(@main)", function(mod)
  local fn = mod.functions.main
  return function() return pl.dominators(fn) end
end)
with_text("tostring(@main.body)", function(mod)
  local fn = mod.functions.main
  return function() return tostring(fn.body) end
end)
measured("a walk from @main.body", function(mod)
  local fn = mod.functions.main
  return function()
    local n = 0
    pl.post_order(fn, function() n = n + 1 end)
    return n
  end
end)
measured("histories of all nodes", function(mod)
  local scope <close> = pl.context { opt_level = 4 }:enter() -- luacheck: ignore scope
  local out = pl.passes.SimplifyExpr()(tanh_to_exp(mod))
  return function()
    for node in out.functions.main:nodes() do node:history() end
  end
end)
measured("mod:fix_dim", function(mod)
  return function() return mod:fix_dim("D1", 3) end
end)
measured("pl.eval", function(mod)
  local args, n = programs.arguments(mod), #mod.functions.main.params
  if not args or not pcall(pl.eval, mod, table.unpack(args, 1, n)) then return nil end
  return function() return pl.eval(mod, table.unpack(args, 1, n)) end
end)
measured("@f1 of another type", function(mod)
  local fn = mod.functions.f1
  if not fn or #fn.params ~= 1 then return nil end
  local x = pl.var("x", fn.params[1].type)
  local changed = pl.func({ x }, pl.tuple { x, x })
  if not pcall(mod.with, mod, { f1 = changed }) then return nil end
  return function() return mod:with { f1 = changed } end
end)
measured("expressions of all functions in one", function(mod)
  local bodies = {}
  for name, fn in pairs(mod) do
    if fn.kind == "Function" and name ~= "main" and #bodies < 100000 then
      bodies[#bodies + 1] = fn.body
    end
  end
  return function() return pl.tuple(bodies) end
end)
-- --------------------------------------------------------------- the loop level

local tir = pl.tir

local rounds = { rounds = 1, sizes = {} }
of_loops("pl.tir.check", function(_, mod) assert(tir.check(mod, mod, rounds)) end)
measured("pl.tir.run", function(mod, program)
  local fn = mod.functions.main
  local a, b = pl.tensor.full(0.5, { 64 }), pl.tensor.full(0, { 64 })
  if not program.loop or not pcall(tir.run, fn, { a, b, 1 }) then return nil end
  return function() return tir.run(fn, { a, b, 1 }) end
end)
of_loops("pl.tir.verify_ssa", tir.verify_ssa)
of_loops("pl.tir.verify_well_formed", tir.verify_well_formed)
of_loops("pl.tir.undefined_vars", function(fn) return tir.undefined_vars(fn.body) end)
of_loops("pl.tir.uses_var", function(fn) return tir.uses_var(fn.body, tir.Var("z", "int32")) end)
of_loops("pl.tir.substitute", function(fn)
  return tir.substitute(fn.body, { [fn.params[#fn.params]] = 3 })
end)
of_loops("pl.tir.transform", function(fn)
  return tir.transform(fn, nil, function(node) return tir.add(node.value, 1) end, { "IntImm" })
end)
of_loops("pl.tir.transform to the same", function(fn) return tir.transform(fn, nil, nowhere) end)
of_loops("pl.tir.post_order, pre_order", function(fn)
  tir.post_order(fn.body, nowhere)
  tir.pre_order(fn.body, nowhere)
end)

-- f(expression): for programs of one deep expression, that of their only statement.
local function of_expressions(name, f)
  measured(name, function(mod, program)
    if not program.expression then return nil end
    local statement
    tir.post_order(mod.functions.main.body, function(node)
      if node.kind == "BufferStore" or node.kind == "IfThenElse" then statement = node end
    end)
    local expr = statement.kind == "IfThenElse" and statement.condition or statement.indices[1]
    if expr.kind == "IntImm" then expr = statement.value end
    return function() return f(expr) end
  end)
end
of_expressions("pl.tir.side_effect", tir.side_effect)
of_expressions("pl.tir.expr_deep_equal", function(expr) return tir.expr_deep_equal(expr, expr) end)
of_expressions("pl.tir.script of an expression", function(expr)
  return tir.script(expr, { verbose_expr = true })
end)
of_expressions("pl.arith: simplify", function(expr) return pl.arith.Analyzer():simplify(expr) end)
of_expressions("pl.arith: rewrite_simplify", function(expr)
  return pl.arith.Analyzer():rewrite_simplify(expr)
end)
of_expressions("pl.arith: canonical_simplify", function(expr)
  return pl.arith.Analyzer():canonical_simplify(expr)
end)
of_expressions("pl.arith: bounds", function(expr)
  local analyzer = pl.arith.Analyzer()
  return pcall(analyzer.const_int_bound, analyzer, expr),
    pcall(analyzer.modular_set, analyzer, expr), pcall(analyzer.int_set, analyzer, expr)
end)
of_expressions("pl.arith: can_prove", function(expr)
  local condition = expr.dtype == "bool" and expr or expr.dtype == "int32" and tir.GE(expr, 0)
  return condition and pl.arith.Analyzer():can_prove(condition)
end)
of_expressions("pl.arith: linear, clip", function(expr)
  local vars = tir.undefined_vars(expr)
  if expr.dtype == "bool" then return pl.arith.detect_clip_bound(expr, vars) end
  if expr.dtype == "int32" then return pl.arith.detect_linear_equation(expr, vars) end
end)
of_expressions("pl.arith: deduce_bound", function(expr)
  local vars = tir.undefined_vars(expr)
  if expr.dtype == "int32" then return pl.arith.deduce_bound(vars[1], tir.LT(expr, 9)) end
end)

in_process("mod.types of each", function(mod)
  for i = 1, #mod.types do assert(mod.types[i]) end
end)

local function instrumented(name, make)
  in_process(name, function(mod)
    local ctx = pl.context { opt_level = 3, instruments = { make() } }
    return pl.with(ctx, require "perilune.pipelines.default", mod)
  end)
end
instrumented("instrument: none", function() return { name = "idle", before = nowhere } end)
for _, name in ipairs { "timing", "statistics" } do
  instrumented("instrument: " .. name, function() return pl.instruments[name]() end)
end
instrumented("instrument: diff", function() return pl.instruments.diff { write = nowhere } end)
in_process("functions{...}, instrumented", function(mod)
  local ctx = pl.context { opt_level = 3, instruments = { { name = "idle", before = nowhere } } }
  return pl.with(ctx, pl.pipeline "functions{SimplifyExpr,FoldConstant}", mod)
end)

local function saves(mod) return (pl.onnx.tostring(mod)) end
measured("pl.onnx.tostring", function(mod)
  if not saves(mod) then return nil end
  return function() return pl.onnx.tostring(mod) end
end)
measured("pl.onnx.load", function(mod)
  if not pl.onnx.save(mod, model_onnx) then return nil end
  return function() return assert(pl.onnx.load(model_onnx)) end
end)

-- ------------------------------------------------------------------- commands

local perilune, measure = build .. "/bin/perilune", build .. "/spec/bench/measure"

-- Seconds of the processor.
local function cost(command)
  local pipe = io.popen(("%s 1 sh -c 'ulimit -t %d; %s' 2>/dev/null"):format(measure,
    2 * TOO_LONG, command))
  local _, _, seconds = pipe:read("n", "n", "n")
  pipe:close()
  return seconds
end

local function command(name, line, suffix)
  local path = suffix == "onnx" and model_onnx or model_relay
  local out = suffix == "onnx" and out_onnx or out_relay
  with_text(name, function(mod)
    if not pl.save(mod, path) then return nil end
    local text = ("%s %s"):format(perilune,
      (line:gsub("%u+", { IN = path, OUT = out, STEM = stem })))
    return function() return cost(text) end, true
  end)
end

local kinds = os.getenv "PERILUNE_COMMANDS" == "0" and {} or { "relay", "onnx" }
for _, suffix in ipairs(kinds) do
  local function both(line) command(("perilune %s (%s)"):format(line, suffix), line, suffix) end
  both "info IN"
  both "info --json --graph IN"
  both "info --dot IN"
  both "fmt IN"
  both "opt -q IN -o OUT"
  both "opt -q IN -o OUT -p \"\""
  both "opt -q IN -o OUT --stats json"
  both "opt -q IN -o OUT --diff"
  both "opt -q IN -o OUT --history STEM.json"
  both "opt -q IN -o OUT --dump STEM.dump"
  both "opt -q IN -o OUT --trace STEM.trace --time"
  both "opt -q IN -o OUT --check --rounds 1"
  both "opt -q IN -o OUT --oracle"
  both "opt -q IN -o OUT --threads 2"
  both "check --rounds 1 IN IN"
  both "run IN"
  both "run IN --input random"
  both "reduce --verify IN -o OUT" -- nothing is wrong
  both "bisect IN"
  both "opt -q IN -o OUT --reproducer STEM.bug -p spec/bench/failing.lua; true"
  both "STEM.lua IN"
end

if kinds[1] then
  measured("perilune zoo", function(_, program, size)
    if not program.family then return nil end
    local sets = {}
    for name, value in pairs(program.options(size)) do
      sets[#sets + 1] = ("--set %s=%s"):format(name, value)
    end
    local text = ("%s zoo %s -o %s %s"):format(perilune, program.family, out_onnx,
      table.concat(sets, " "))
    return function() return cost(text) end, true
  end)
end

local function save_values(data, name, values)
  for i = 1, values.n do
    assert(pl.onnx.save_value(values[i], ("%s/%s_%d.pb"):format(data, name, i - 1)))
  end
end

-- A folder with the model, inputs of zeros and what the model computes of them.
local function write_case(mod, case)
  local data = case .. "/test_data_set_0"
  os.execute(("rm -rf %s && mkdir -p %s"):format(case, data))
  local params = mod.functions.main.params
  local args = { n = #params }
  for i, param in ipairs(params) do
    local dtype = param.type.dtype
    args[i] = pl.tensor.full(dtype ~= "bool" and 0, param.type.shape, dtype)
  end
  save_values(data, "input", args)
  save_values(data, "output", table.pack(pl.eval(mod, table.unpack(args, 1, args.n))))
  assert(pl.onnx.save(mod, case .. "/model.onnx"))
end

for _, flag in ipairs(kinds[1] and { "", " --opt" } or {}) do
  measured("perilune test" .. flag, function(mod)
    local case = stem .. ".case"
    if not pcall(write_case, mod, case) then return nil end
    local text = ("%s test%s %s"):format(perilune, flag, case)
    return function() return cost(text) end, true
  end)
end

-- A script that reads a module, changes it and asks it.
local script = assert(io.open(stem .. ".lua", "w"))
script:write [[
local pl = require "perilune"
local mod = assert(pl.load(arg[1]))
local out = pl.passes.SimplifyExpr()(mod)
for _, fn in pairs(out) do assert(#tostring(fn.type) > 0) end
]]
script:close()

-- -------------------------------------------------------------------- measuring

local function seconds_of(f, is_command)
  local best = math.huge
  for round = 1, 4 do
    collectgarbage()
    local start = os.clock()
    local result = f()
    local seconds = is_command and result or os.clock() - start
    if not seconds then return math.huge end
    best = math.min(best, seconds)
    if best * round > TOO_LONG then break end
  end
  return best
end

-- One at a time, so that one program's size does not weigh on another's time.
local made = {}
local function module(program, size)
  if made.program ~= program or not made[size] then
    if made.program ~= program then made = { program = program } end
    made[size] = program.make(size)
  end
  return made[size]
end

local function time_of(each, program, size)
  local scope <close> = pl.context { opt_level = 3 }:enter() -- luacheck: ignore scope
  local ok, f, is_command = pcall(each.prepare, module(program, size), program, size)
  if not ok or not f then return nil, f end
  local done, seconds = pcall(seconds_of, f, is_command)
  if done then return seconds end
  return nil, seconds
end

local function ratio_per_doubling(small, large) return (large / small) ^ (1 / DOUBLINGS) end

-- The ratio per doubling, the size it was found at, and the times; nil when the work is not for
-- the program.
local function ratio_of(each, program)
  local size, small = SMALL, time_of(each, program, SMALL)
  if not small then return nil end
  local base = each.name:find "^perilune" and 0.003 or 0
  while small - base < ENOUGH and size < LARGEST do
    size = size * FACTOR
    small = time_of(each, program, size)
    if not small then return nil end
  end
  if small > TOO_LONG then return math.huge, size, small, math.huge end
  local large = time_of(each, program, size * FACTOR)
  if not large then return nil end
  if small - base < ENOUGH and large < 4 * ENOUGH then return 0, size, small, large end
  local ratio = ratio_per_doubling(small, large)
  if ratio <= LIMIT or large > TOO_LONG then return ratio, size, small, large end
  local larger = time_of(each, program, size * FACTOR * FACTOR)
  local again = larger and ratio_per_doubling(large, larger) or math.huge
  if again < ratio then return again, size * FACTOR, large, larger end
  return ratio, size, small, large
end

local function matches(name, part) return not part or name:find(part, 1, true) end

local n, above, worst = 0, 0, 0
print(("%-44s %-32s %8s %10s %10s  ratio"):format("work", "program", "size", "ms", "x " .. FACTOR))
for _, program in ipairs(programs) do
  for _, each in ipairs(works) do
    if matches(each.name, work_part) and matches(program.name, program_part) then
      local ratio, size, small, large = ratio_of(each, program)
      if ratio then
        n, worst = n + 1, math.max(worst, ratio)
        above = above + (ratio > LIMIT and 1 or 0)
        if show_all or ratio > LIMIT then
          print(("%-44s %-32s %8d %10.2f %10.2f  %.2f%s"):format(each.name, program.name, size,
            small * 1e3, large * 1e3, ratio, ratio > LIMIT and "  <<<" or ""))
          io.stdout:flush()
        end
      end
    end
  end
end
print(("%d measured, %d above %.1f, the worst %.2f"):format(n, above, LIMIT, worst))
os.execute(("rm -rf %s %s.*"):format(stem, stem))
