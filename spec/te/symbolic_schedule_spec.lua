-- Random tensor programs of symbolic shapes under random schedules: for every size the lowered
-- loops compute what those of the default schedule do, and so does generated C. PERILUNE_SEED and
-- PERILUNE_PROGRAMS set the first seed and the number, PERILUNE_C how many programs a C file has.

local core = require "perilune.core"
local pl = require "perilune"
local schedules = require "spec.te.random_schedule"
local seeded = require "spec.random.seeded"
local symbolic = require "spec.te.symbolic_schedule"

local te, tir = pl.te, pl.tir

local first_seed = tonumber(os.getenv "PERILUNE_SEED" or 1)
local number = tonumber(os.getenv "PERILUNE_PROGRAMS" or 60)
local c_programs = tonumber(os.getenv "PERILUNE_C" or 6)

local sizes = { { 1, 1 }, { 3, 5 }, { 8, 16 }, { 17, 9 } }

local function equal(a, b)
  if type(a) ~= "table" then return a == b or a ~= a and b ~= b end
  for i = 1, math.max(#a, #b) do
    if a[i] == nil or b[i] == nil or not equal(a[i], b[i]) then return false end
  end
  return true
end

-- What lowering refuses of schedules that can be written, as TVM does.
local refusals = { "a double buffer scope must be inside of a loop",
  "but its extent is not constant", "Failed to vectorize loop with extent",
  "the variable 'vthread' is free in a function", "'vthread' needs a constant extent" }

local function is_refusal(text)
  for _, part in ipairs(refusals) do
    if text:find(part, 1, true) then return true end
  end
  return false
end

local function lowered(s, program)
  local ok, mod = pcall(s.to_module, s, program.args, "main")
  if not ok then return nil end
  ok, mod = pcall(pl.with, pl.context { opt_level = 3 }, pl.lower, mod)
  if ok then return mod end
  assert(is_refusal(tostring(mod)), tostring(mod))
  return nil
end

local function results(program, mod, n, m)
  local random = seeded(n * 1000 + m)
  local values = symbolic.values(program, random, n, m)
  return tir.run(mod, values, { uninitialized = "error" })[#values]:to_table()
end

local function check(seed)
  local random = seeded(seed)
  for _ = 1, 5 do random() end
  local program = symbolic.make(random)
  local default = pl.lower(te.create_schedule(program.op), { args = program.args, name = "main" })
  local s = schedules.schedule(random, program, function() end)
  local mod = lowered(s, program)
  if not mod then return nil end
  for _, size in ipairs(sizes) do
    local n, m = table.unpack(size)
    local expected = results(program, default, n, m)
    local ok, got = pcall(results, program, mod, n, m)
    assert(ok and equal(expected, got), ("n = %d, m = %d: %s\n%s"):format(n, m,
      ok and "other values" or tostring(got), tostring(s)))
  end
  return { seed = seed, program = program, mod = mod, default = default }
end

local function run_c(list)
  local functions = {}
  for _, one in ipairs(list) do
    local name = "f" .. one.seed
    functions[name] = one.mod.functions.main:with { attrs = { global_symbol = name } }
  end
  local built = pl.build(core.module(functions), { target = "c", flags = "-O1" })
  for _, one in ipairs(list) do
    for _, size in ipairs(sizes) do
      local n, m = table.unpack(size)
      local values = symbolic.values(one.program, seeded(n * 1000 + m), n, m)
      local args = {}
      for i, value in ipairs(values) do args[i] = pl.tensor(value, "float32") end
      local out = table.pack(built["f" .. one.seed](table.unpack(args)))
      local got = (type(out[1]) == "table" and out[1] or out)[#values]:to_table()
      assert(equal(results(one.program, one.default, n, m), got),
        ("seed %d: generated C: n = %d, m = %d: other values"):format(one.seed, n, m))
    end
  end
end

describe("random schedules of symbolic shapes", function()
  it("compute what the default schedule does", function()
    local list, lowerable, failures = {}, 0, {}
    for seed = first_seed, first_seed + number - 1 do
      local ok, one = pcall(check, seed)
      if not ok then failures[#failures + 1] = ("seed %d: %s"):format(seed, tostring(one)) end
      if ok and one then
        lowerable = lowerable + 1
        if c_programs > 0 and seed % 10 == 0 then list[#list + 1] = one end
      end
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
