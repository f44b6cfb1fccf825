--- Dataflow patterns as text:
--
--     nn.relu(nn.bias_add(nn.conv2d(*, *), Constant))
--     nn.relu(add(*, *) | subtract(*, *))
--
-- `*` and `_` match everything, `Constant` and `Var` what they say, an operator's name with
-- arguments a call of it, `a | b` either, `(a, b)` a tuple, `a.0` a field of one.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"
local operator_name = require "perilune.ir.operator_name"

local text = {}

local function wrong(state, what)
  argument.fail(("pattern '%s', at %d: %s"):format(state.text, state.at, what))
end

-- Skips spaces; the text that matches `pattern` here, or nil.
local function take(state, pattern)
  state.at = state.text:match("^%s*()", state.at)
  local found, stop = state.text:match("^(" .. pattern .. ")()", state.at)
  if found then state.at = stop end
  return found
end

local function expect(state, pattern, what)
  return take(state, pattern) or wrong(state, what .. " expected")
end

local alternatives
local MOST_LEVELS = 200

-- The patterns up to the closing parenthesis, and whether a comma ends the list.
local function list(state, level)
  local items, comma = {}, nil
  while not take(state, "%)") do
    if #items > 0 and not comma then wrong(state, "',' or ')' expected") end
    items[#items + 1] = alternatives(state, level + 1)
    comma = take(state, ",")
  end
  return items, comma
end

local function named(state, name, level)
  local df = state.df
  if name == "Constant" then return df.is_constant() end
  if name == "Var" then return df.is_var() end
  if not operator_name.find(name) then wrong(state, operator_name.unknown(name)) end
  local op = df.is_op(name)
  return take(state, "%(") and op(table.unpack((list(state, level)))) or op
end

local function primary(state, level)
  if level > MOST_LEVELS then wrong(state, "it is nested too deep") end
  if take(state, "[*_]") then return state.df.wildcard() end
  if take(state, "%(") then
    local items, comma = list(state, level)
    return #items == 1 and not comma and items[1] or state.df.is_tuple(items)
  end
  return named(state, expect(state, "[%a][%w_.]*", "a pattern"), level)
end

local function fields(state, level)
  local p = primary(state, level)
  local index = take(state, "%.%d+")
  while index do
    p = state.df.is_tuple_get_item(p, math.tointeger(index:sub(2)))
    index = take(state, "%.%d+")
  end
  return p
end

function alternatives(state, level)
  local p = fields(state, level)
  while take(state, "|") do p = p | fields(state, level) end
  return p
end

--- The pattern that a text describes; `df` is pl.dataflow_pattern.
function text.parse(df, source)
  local state = { text = source, at = 1, df = df }
  local p = alternatives(state, 0)
  state.at = source:match("^%s*()", state.at)
  if state.at <= #source then wrong(state, "the end expected") end
  return p
end

-- "NHWC", 1, true: what a condition compares an attribute with.
local function value_of(word)
  if word == "true" or word == "True" then return true end
  if word == "false" or word == "False" then return false end
  return math.tointeger(tonumber(word)) or tonumber(word) or word:match '^"(.*)"$' or word
end

--- The conditions on attributes in a text: "groups == 1 and data_layout == NHWC".
function text.conditions(source)
  local conditions = {}
  local rest = source:gsub("^%s*check:", "") .. " and "
  for item in rest:gmatch "(.-)%s+and%s+" do
    local name, value = item:match "^%s*([%w_]+)%s*==%s*(%S+)%s*$"
    if not name then
      argument.fail(("check '%s': NAME == VALUE expected, got '%s'"):format(source, item))
    end
    conditions[#conditions + 1] = { name = name, value = value_of(value) }
  end
  return conditions
end

return text
