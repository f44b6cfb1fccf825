--- Files of rules: Lua scripts that return a set (pl.rules), a list of sets, or a list of
-- rules as pl.rules takes it. `perilune opt -p` and `--rules` and `perilune rules check`
-- read them.
--
--     return {
--       "silu: multiply(?x, sigmoid(?x)) => nn.silu(?x)",
--       { "nn.relu(nn.relu(?x))", "nn.relu(?x)", reason = "relu is idempotent" },
--     }

local core = require "perilune.core"
local rule = require "perilune.rule"
core.internal()

local file = {}

-- No pipeline's text has these.
local function is_rule_text(value)
  return type(value) == "string" and (value:find "=>" or value:find "%?" or value:find "%.%.%.")
end

local function is_plain(value) return type(value) == "table" and getmetatable(value) == nil end

local function is_rule(value)
  return is_rule_text(value) or is_plain(value) and is_rule_text(value[1])
end

-- "algebra" for "models/algebra.lua".
local function stem(path) return path:match "([^/]*)$":gsub("%.lua$", "") end

local function sets_of_list(value)
  for _, set in ipairs(value) do
    if not rule.is_set(set) then return nil end
  end
  return #value > 0 and value or nil
end

-- A set of a list that stands in no call that messages could name.
local function set_of_rules(value, path)
  local ok, set = pcall(rule.of_file, stem(path), value, path)
  if ok then return set end
  if type(set) ~= "string" then error(set, 0) end
  core.raise(core.diag("invalid", path .. ": " .. set))
end

--- The sets in what a file returned: a list, or nil and, where rules were meant, why there
-- is none. Wrong rules raise what pl.rules raises.
function file.sets(value, path)
  local sets
  if rule.is_set(value) then
    sets = { value }
  elseif is_plain(value) and is_rule(value[1]) then
    sets = { set_of_rules(value, path) }
  elseif is_plain(value) then
    sets = sets_of_list(value)
  end
  for _, set in ipairs(sets or {}) do
    if #set == 0 then return nil, ("%s: the set '%s' has no rules"):format(path, set.name) end
  end
  return sets
end

local function wrong_value(value, path)
  local what = value == nil and "nothing" or "a " .. type(value)
  if is_plain(value) and #value == 0 then what = "an empty list" end
  return ("%s: a file of rules returns a set (pl.rules), a list of sets or a list of rules, this "
    .. "one returned %s"):format(path, what)
end

--- The sets in a file: a list, or nil and why there is none. Errors that the script raises
-- are raised.
function file.load(path)
  local chunk, reason = loadfile(path)
  if not chunk then return nil, reason end
  local value = rule.load(path, chunk)
  local sets
  sets, reason = file.sets(value, path)
  if sets then return sets end
  return nil, reason or wrong_value(value, path)
end

return file
