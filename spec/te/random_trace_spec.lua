-- Random schedules as values: from JSON the same steps and the same program, undone step by step to
-- each schedule before. PERILUNE_SEED and PERILUNE_SCHEDULES set the first seed and the number.

local pl = require "perilune"
local programs = require "spec.te.random_schedule"
local seeded = require "spec.random.seeded"

local te = pl.te
local first_seed = tonumber(os.getenv "PERILUNE_SEED" or 1)
local number = tonumber(os.getenv "PERILUNE_SCHEDULES" or 100)

-- The lowered text, or the message of the refusal without its place.
local function lowered(s, args)
  local ok, made = pcall(s.to_module, s, args, "main")
  return ok and tostring(made) or tostring(made):gsub("^[^\n]-: error: ", "")
end

local function check(seed)
  local random = seeded(seed)
  for _ = 1, 5 do random() end
  local program = programs.make(random)
  local s = programs.schedule(random, program, function() end)
  local steps, what = s:n_steps(), ("seed %d\n%s"):format(seed, tostring(s))
  local texts, modules = {}, {}
  for i = 0, steps do
    local part = s:copy(i)
    assert(part:n_steps() == i, what)
    texts[i], modules[i] = tostring(part), lowered(part, program.args)
  end
  assert(texts[steps] == tostring(s) and modules[steps] == lowered(s, program.args), what)
  local json = s:to_json()
  local again = te.create_schedule(program.op):apply_json(json, program.used)
  assert(again == s and again:to_json() == json and tostring(again) == texts[steps], what)
  assert(lowered(again, program.args) == modules[steps], what)
  while s:n_steps() > 0 do
    s:undo()
    local n = s:n_steps()
    assert(tostring(s) == texts[n], what)
    assert(lowered(s, program.args) == modules[n], what)
  end
  return steps
end

describe("random schedules", function()
  it("are replayed from JSON and undone step by step", function()
    local steps = 0
    for seed = first_seed, first_seed + number - 1 do steps = steps + check(seed) end
    assert.is_true(steps > 2 * number)
  end)
end)
