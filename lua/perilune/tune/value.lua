--- Arguments of choices as JSON: nil is left out; booleans, integers, strings and lists and
-- tables of such are themselves; a float is its shortest text, a module its Relay text.

local argument = require "perilune.argument"
local core = require "perilune.core"
local json = require "perilune.json"
core.internal()

local value = {}

local MOST_NESTED = 100

local function float_text(x)
  for digits = 15, 17 do
    local text = ("%%.%dg"):format(digits):format(x)
    if tonumber(text) == x then return text end
  end
  return ("%.17g"):format(x) -- inf, nan
end

local specials = { inf = math.huge, ["-inf"] = -math.huge, nan = 0 / 0, ["-nan"] = 0 / 0 }

local function is_list(t)
  local n = 0
  for key in next, t do
    if math.type(key) ~= "integer" or key < 1 or key > #t then return false end
    n = n + 1
  end
  return n == #t
end

local encode

local function encode_list(t, depth)
  local out = {}
  for i, item in ipairs(t) do out[i] = encode(item, depth + 1) end
  return json.list(out)
end

-- Keys are strings: a table with others has no JSON.
local function encode_table(t, depth)
  local out = {}
  for key, item in next, t do
    if type(key) ~= "string" then
      argument.fail(("an argument of a choice: a table has names as keys, got %s"):format(
        tostring(key)))
    end
    out[key] = encode(item, depth + 1)
  end
  return { table = out }
end

function encode(x, depth)
  if depth > MOST_NESTED then argument.fail "an argument of a choice is nested too deep" end
  local kind = argument.kind_of(x)
  if kind == "boolean" or kind == "string" or math.type(x) == "integer" then return x end
  if kind == "number" then return { float = float_text(x) } end
  if kind == "Module" then return { module = x:text() } end
  if kind == "table" then return is_list(x) and encode_list(x, depth) or encode_table(x, depth) end
  argument.fail(("an argument of a choice has no JSON: a plain value or a module expected, got %s")
    :format(kind))
end

--- What json.encode writes.
function value.encode(x) return encode(x, 1) end

local decode

local function decode_module(text)
  local mod, diag = core.text_parse(text)
  if not mod then core.raise(diag) end
  return mod
end

function decode(x)
  if type(x) ~= "table" then return x end
  if x.float then return tonumber(x.float) or specials[x.float] end
  if x.module then return decode_module(x.module) end
  local out = {}
  for key, item in next, x.table or x do out[key] = decode(item) end
  return out
end

--- The value again, from what json.decode read.
value.decode = decode

return value
