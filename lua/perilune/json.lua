--- JSON text of Lua values. Keys come out in a fixed order: that of the list
-- `keys` of json.object, else sorted. Lists are tables made by json.list.

require "perilune.core".internal() -- errors name the scripts of others

local json = {}

local list = {}
local object = {}

--- Marks a table as a list (an empty one too).
function json.list(values) return setmetatable(values, list) end

--- Pairs { key, value } in the order to be written.
function json.object(pairs_in_order) return setmetatable(pairs_in_order, object) end

local escapes = {
  ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f",
  ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t",
}

local function quote(s)
  -- Names in models are any bytes; what is no UTF-8 goes out as Latin-1 would.
  if not utf8.len(s) then s = s:gsub("[\x80-\xff]", function(c) return utf8.char(c:byte()) end) end
  return '"' .. s:gsub('[%c"\\]', function(c)
    return escapes[c] or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

local function number(x)
  if math.type(x) == "integer" then return tostring(x) end
  if x ~= x or x == math.huge or x == -math.huge then return "null" end
  return ("%.9g"):format(x)
end

local function sorted(t)
  local entries = {}
  for key, value in pairs(t) do entries[#entries + 1] = { key, value } end
  table.sort(entries, function(a, b) return a[1] < b[1] end)
  return entries
end

--- The text of nil, booleans, numbers, strings and nested tables.
function json.encode(value)
  if type(value) == "string" then return quote(value) end
  if type(value) == "number" then return number(value) end
  if type(value) ~= "table" then return value == nil and "null" or tostring(value) end
  local parts, class = {}, getmetatable(value)
  if class == list then
    for i, item in ipairs(value) do parts[i] = json.encode(item) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  for i, entry in ipairs(class == object and value or sorted(value)) do
    parts[i] = quote(entry[1]) .. ":" .. json.encode(entry[2])
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

return json
