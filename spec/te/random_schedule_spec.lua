-- Random tensor programs under random schedules: the loops compute what those of the default
-- schedule do, after each pass of lowering, and in generated C. PERILUNE_SEED and
-- PERILUNE_PROGRAMS set the first seed and the number, PERILUNE_C how many programs a C file has
-- (0: none).

local core = require "perilune.core"
local pl = require "perilune"
local programs = require "spec.te.random_schedule"
local seeded = require "spec.random.seeded"

local te, tir = pl.te, pl.tir

local first_seed = tonumber(os.getenv "PERILUNE_SEED" or 1)
local number = tonumber(os.getenv "PERILUNE_PROGRAMS" or 150)
local c_programs = tonumber(os.getenv "PERILUNE_C" or 10)

local function fill(shape, random)
  local function build(level)
    local rows = {}
    for i = 1, shape[level] do
      rows[i] = level < #shape and build(level + 1) or random(-4, 4) * 1.0
    end
    return rows
  end
  return build(1)
end

local function values_of(program, random)
  local values = {}
  for i, tensor in ipairs(program.args) do
    local dims = {}
    for k, dim in ipairs(tensor.shape) do dims[k] = dim.value end
    values[i] = fill(dims, random)
  end
  return values
end

-- A Select of vectors reads both arms, as TVM's does: the guard of a cache in a vectorized loop
-- does not keep it inside of the tensor.
local function is_vector_select(text)
  return text:find("out of bounds", 1, true)
    and (text:find("T.Select(", 1, true) or text:find("cse_var", 1, true))
end

-- What each output is; nil of those, and where Buffers are bound to regions, which lowering
-- removes.
local function run(program, mod, values)
  local ok, results = pcall(tir.run, mod, values, { uninitialized = "error" })
  if not ok and tostring(results):find("'buffer_bind_scope' is not interpreted", 1, true) then
    return nil
  elseif not ok and is_vector_select(tostring(results)) then
    return nil
  elseif not ok and tostring(results):find("variable 'vthread' has no value", 1, true) then
    return nil -- memory of threads that is not computed inside of them
  elseif not ok then
    error(results, 0)
  end
  local out = {}
  for i = #program.inputs + 1, #program.args do out[#out + 1] = results[i]:to_table() end
  return out
end

local function is_refusal(text)
  return not text:find("attempt to", 1, true) and not text:find("stack overflow", 1, true)
end

-- The minimum of nothing is the greatest number, of which sums and differences may be NaN.
local function equal(a, b)
  if type(a) ~= "table" then return a == b or a ~= a and b ~= b end
  for i = 1, math.max(#a, #b) do
    if a[i] == nil or b[i] == nil or not equal(a[i], b[i]) then return false end
  end
  return true
end

-- What lowering may be told, each in one of four programs; half of them are lowered by default.
local settings = {
  { "tir.LoopPartition", { partition_const_loop = true } },
  { "tir.LoopPartition", { partition_const_loop = true, no_unroll_loop_with_extent_one = true } },
  { "tir.InjectDoubleBuffer", { split_loop = 2 } },
  { "tir.InjectDoubleBuffer", { split_loop = 0 } },
  { "tir.UnrollLoop", { auto_max_step = 64, auto_max_extent = 8 } },
  { "tir.UnrollLoop", { explicit_unroll = false } },
  { "tir.Simplify", { propagate_knowns_to_prove_conditional = true,
    propagate_knowns_to_simplify_expressions = true } },
  { "tir.Simplify", { convert_boolean_to_and_of_ors = true,
    apply_constraints_to_boolean_branches = true, transitively_prove_inequalities = true } },
  { "tir.RemoveNoOp", { use_dataflow_analysis = true } },
  { "tir.enable_equiv_terms_in_cse_tir", true },
  { "tir.disable_vectorize", true },
  { "tir.disable_storage_rewrite", true },
  { "tir.instrument_bound_checkers", true },
  { "tir.debug_keep_trivial_loop", true },
  { "tir.add_lower_pass", { "1:tir.ReduceBranchingThroughOvercompute", "2:tir.HoistExpression" } },
  { "tir.add_lower_pass", { "0:tir.Simplify", "3:tir.LoopPartition", "3:tir.ConvertSSA" } },
}

local function random_config(seed)
  local random, config = seeded(seed + 1000003), {}
  for _ = 1, 5 do random() end
  if random(1, 2) == 1 then return config end
  for _, setting in ipairs(settings) do
    if random(1, 4) == 1 then config[setting[1]] = setting[2] end
  end
  return config
end

local function lowered(program, mod, values, expected, seed)
  local function after(now, info)
    if not now or #info.name == 0 then return end
    local ok, result = pcall(run, program, now, values)
    if not ok or result and not equal(expected, result) then
      error(("seed %d: after %s: %s"):format(seed, info.name, ok and "other values" or result), 0)
    end
  end
  local compare = { name = "compare", after = after }
  local context = pl.context { opt_level = 3, instruments = { compare },
    config = random_config(seed) }
  return pl.with(context, pl.lower, mod)
end

-- What lowering refuses of schedules that can be written, as TVM does.
local refused_by_passes = { "a double buffer scope must be inside of a loop",
  "is marked unrolled, but its extent is not constant", "Failed to vectorize loop with extent",
  "the variable 'vthread' is free in a function" }

local function lowered_or_refused(...)
  local ok, made = pcall(lowered, ...)
  if ok then return made end
  for _, text in ipairs(refused_by_passes) do
    if tostring(made):find(text, 1, true) then return nil end
  end
  error(made, 0)
end

local function check(seed)
  local random = seeded(seed)
  for _ = 1, 5 do random() end
  local program = programs.make(random)
  local values = values_of(program, random)
  local default = te.create_schedule(program.op):to_module(program.args, "main")
  local expected = assert(run(program, pl.lower(default), values))
  local s = programs.schedule(random, program, function(name, text, before, now)
    assert(is_refusal(text), ("seed %d: %s: %s"):format(seed, name, text))
    assert(now:n_steps() >= before)
  end)
  local ok, mod = pcall(s.to_module, s, program.args, "main")
  if not ok then
    assert(is_refusal(tostring(mod)), ("seed %d: %s"):format(seed, tostring(mod)))
    return nil
  end
  local fine, result = pcall(run, program, mod, values)
  if not fine or result and not equal(expected, result) then
    error(("seed %d: scheduled: %s\n%s"):format(seed, fine and "other values" or result,
      tostring(s)), 0)
  end
  mod = lowered_or_refused(program, mod, values, expected, seed)
  if not mod then return nil end
  local final = run(program, mod, values)
  if not final then return nil end
  assert(equal(expected, final), "lowered: other values")
  return { seed = seed, program = program, values = values, expected = expected, mod = mod }
end

-- How a file of C is built, by its first program.
local builds = { { flags = "-O1" }, { flags = "-O1 -march=native" },
  { flags = "-O2 -march=native", vector_bytes = 32 }, { flags = "-O1", vector_bytes = 16 },
  { flags = "-O2 -march=native", vector_bytes = 64 } }

local function run_c(list)
  local functions = {}
  for _, one in ipairs(list) do
    local fn = one.mod.functions.main
    functions["f" .. one.seed] = fn:with { attrs = { global_symbol = "f" .. one.seed } }
  end
  local build = builds[list[1].seed * 7919 // 64 % #builds + 1]
  local built = pl.build(core.module(functions), { target = "c", flags = build.flags,
    vector_bytes = build.vector_bytes })
  for _, one in ipairs(list) do
    local args = {}
    for i, value in ipairs(one.values) do args[i] = pl.tensor(value) end
    local results = table.pack(built["f" .. one.seed](table.unpack(args)))
    if type(results[1]) == "table" then results = results[1] end
    local out = {}
    for i = #one.program.inputs + 1, #one.program.args do
      out[#out + 1] = results[i]:to_table()
    end
    assert(equal(one.expected, out), ("seed %d: generated C, %s, vectors of %s bytes: other values")
      :format(one.seed, build.flags, build.vector_bytes or "the machine's"))
  end
end

describe("random schedules", function()
  it("compute what the default schedule does", function()
    local list, lowerable, failures = {}, 0, {}
    for seed = first_seed, first_seed + number - 1 do
      local ok, one = pcall(check, seed)
      if not ok then
        failures[#failures + 1] = ("seed %d: %s"):format(seed, tostring(one))
        one = nil
      end
      lowerable = lowerable + (one and 1 or 0)
      if one and c_programs > 0 and seed % 10 == 0 then list[#list + 1] = one end
      if #list > 0 and (#list == c_programs or seed == first_seed + number - 1) then
        run_c(list)
        list = {}
      end
    end
    assert(#failures == 0, #failures .. " failures\n" .. table.concat(failures, "\n", 1,
      math.min(8, #failures)))
    assert.is_true(lowerable > number // 2, lowerable .. " of " .. number)
  end)
end)
