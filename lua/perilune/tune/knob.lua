--- pl.tune.knob: a decision that is to be taken, with its choices.
--
--     local none = pl.tune.choice {}
--     local knob = pl.tune.knob("layout", { NHWC = to_nhwc, NCHW = to_nchw, none = none })
--     local flag = pl.tune.knob("parallel", { pl.tune.choice { transform = f }, none })
--     knob:verify "NHWC"                    -- true
--     local out = knob:apply(mod, "NHWC")
--
-- The choices of a list are called 0, 1, ..., as in TVM's tuning_api; a number stands for
-- its text. Named choices are tried in the order of their names.

local argument = require "perilune.argument"
local core = require "perilune.core"
local choice = require "perilune.tune.choice"
core.internal()

local knob = {}

local methods = {}
local class = { __name = "knob", __index = methods }

local function decision_text(decision)
  return math.type(decision) == "integer" and tostring(decision) or decision
end

--- Whether there is a choice of that name.
function methods.verify(self, decision)
  return self.choices[decision_text(decision)] ~= nil
end

--- The name of a choice as the trace keeps it; raises when there is none.
function methods.decision(self, decision)
  local name = decision_text(decision)
  if type(name) ~= "string" or not self.choices[name] then
    argument.fail(("the knob '%s' has no choice '%s'%s"):format(self.name, tostring(decision),
      argument.near(name, self.choices)))
  end
  return name
end

--- The module that the choice makes.
function methods.apply(self, mod, decision)
  return self.choices[self:decision(decision)]:apply_transform_func(mod)
end

--- A plain table that json.encode writes.
function methods.as_table(self)
  local choices = {}
  for name, one in pairs(self.choices) do choices[name] = one:as_table() end
  return { name = self.name, choices = choices, ordered = self.listed }
end

function class.__tostring(self)
  local lines = { ("%s (# of choices: %d)"):format(self.name, #self.decisions) }
  for _, name in ipairs(self.decisions) do
    lines[#lines + 1] = ("  - %s: %s"):format(name, tostring(self.choices[name]))
  end
  return table.concat(lines, "\n")
end

local function check_choice(name, value)
  if not choice.is(value) then
    argument.fail(("pl.tune.knob: choice '%s' is a %s; make it with pl.tune.choice"):format(name,
      argument.kind_of(value)))
  end
end

local function listed(choices)
  local out, names = {}, {}
  for i, one in ipairs(choices) do
    local name = tostring(i - 1)
    check_choice(name, one)
    out[name], names[i] = one, name
  end
  return out, names
end

local function named(choices)
  local out, names = {}, {}
  for key, one in pairs(choices) do
    if type(key) ~= "string" then
      argument.fail("pl.tune.knob: choices are a list, or a table from names to choices")
    end
    check_choice(key, one)
    out[key], names[#names + 1] = one, key
  end
  table.sort(names)
  return out, names
end

--- A knob of that name; `choices` is a list of choices or a table from names to choices.
function knob.new(name, choices)
  argument.string(name, "pl.tune.knob", "name")
  argument.table(choices, "pl.tune.knob", "choices")
  local is_list = #choices > 0
  local by_name, decisions = (is_list and listed or named)(choices)
  if #decisions == 0 then argument.fail(("the knob '%s' has no choices"):format(name)) end
  return setmetatable({ name = name, choices = by_name, decisions = decisions,
    listed = is_list }, class)
end

--- Whether a value is a knob.
function knob.is(x) return getmetatable(x) == class end

--- The knob of a table that as_table made.
function knob.from_table(row)
  if type(row) ~= "table" or type(row.name) ~= "string" or type(row.choices) ~= "table" then
    argument.fail "a knob's JSON has its name and its choices"
  end
  local choices, n = {}, 0
  for name, one in pairs(row.choices) do
    choices[name], n = choice.from_table(one), n + 1
  end
  if not row.ordered then return knob.new(row.name, choices) end
  local list = {}
  for i = 1, n do list[i] = choices[tostring(i - 1)] end
  return knob.new(row.name, list)
end

return knob
