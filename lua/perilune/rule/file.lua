--- Files of rules: Lua scripts that return a set (pl.rules), a list of sets, or a list of
-- rules as pl.rules takes it. `perilune opt -p` and `--rules` and `perilune rules check`
-- read them.
--
--     return {
--       "silu: multiply(?x, sigmoid(?x)) => nn.silu(?x)",
--       { "nn.relu(nn.relu(?x))", "nn.relu(?x)", reason = "relu is idempotent" },
--     }

local core = require "perilune.core"
local pass = require "perilune.pass"
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

-- The lines of the rules' texts in the file.
local function lines_of(list, path)
  local lines, handle = {}, io.open(path, "rb")
  local source = handle and handle:read "a" or ""
  if handle then handle:close() end
  for i, given in ipairs(list) do
    local text = type(given) == "table" and given[1] or given
    local at = type(text) == "string" and source:find(text, 1, true)
    lines[i] = at and select(2, source:sub(1, at):gsub("\n", "")) + 1 or nil
  end
  return lines
end

local function sets_of_list(value, path)
  for _, set in ipairs(value) do
    if not rule.is_set(set) then return nil end
  end
  if #value > 0 then return value end
  return nil, ("%s: the list has no rules"):format(path)
end

--- The sets in what a file returned: a list, or nil and, where rules were meant, why there
-- is none. Wrong rules raise what pl.rules raises.
function file.sets(value, path)
  local sets, reason
  if rule.is_set(value) then
    sets = { value }
  elseif is_plain(value) and is_rule(value[1]) then
    sets = { rule.of_file(stem(path), value, path, lines_of(value, path)) }
  elseif is_plain(value) then
    sets, reason = sets_of_list(value, path)
  end
  for _, set in ipairs(sets or {}) do
    if #set == 0 then return nil, ("%s: the set '%s' has no rules"):format(path, set.name) end
  end
  return sets, reason
end

--- The sets in a file: a list, or nil and why there is none. Errors that the script raises
-- are raised.
function file.load(path)
  local chunk, reason = loadfile(path)
  if not chunk then return nil, reason end
  local value = chunk()
  local sets
  sets, reason = file.sets(value, path)
  if sets then return sets end
  return nil, reason or ("%s: a file of rules returns a set (pl.rules), a list of sets or a list "
    .. "of rules, this one returned %s"):format(path, value == nil and "nothing"
    or "a " .. type(value))
end

--- Passes that run the sets, one each.
function file.passes(sets)
  local passes = {}
  for i, set in ipairs(sets) do passes[i] = pass.rule_pass(set) end
  return passes
end

return file
