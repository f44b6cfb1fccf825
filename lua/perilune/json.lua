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

-- ------------------------------------------------------------------ reading

local deepest = 64
local characters = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }
local words = { ["true"] = true, ["false"] = false }

local function wrong(at, what) error({ at = at, what = what }, 0) end

local function read_string(text, at)
  local finish = at
  while true do
    finish = text:find('[\\"]', finish)
    if not finish then wrong(at, "the string does not end") end
    if text:byte(finish) == 34 then break end
    finish = finish + 2
  end
  local raw = text:sub(at, finish - 1):gsub("\\u(%x%x%x%x)", function(hex)
    return utf8.char(tonumber(hex, 16))
  end):gsub("\\(.)", function(c) return characters[c] or c end)
  return raw, finish + 1
end

local read

-- What follows an item: a comma, or the end.
local function read_items(text, at, close, item)
  at = text:find("%S", at) or #text + 1
  if text:sub(at, at) == close then return at + 1 end
  while true do
    at = text:find("%S", item(at)) or #text + 1
    local c = text:sub(at, at)
    if c == close then return at + 1 end
    if c ~= "," then wrong(at, ("',' or '%s' expected"):format(close)) end
    at = at + 1
  end
end

local function read_list(text, at, depth)
  local out = {}
  return out, read_items(text, at, "]", function(from)
    out[#out + 1], from = read(text, from, depth)
    return from
  end)
end

local function read_object(text, at, depth)
  local out = {}
  return out, read_items(text, at, "}", function(from)
    local key
    from = text:match('^%s*"()', from) or wrong(from, "a key expected")
    key, from = read_string(text, from)
    from = text:match("^%s*:()", from) or wrong(from, "':' expected")
    out[key], from = read(text, from, depth)
    return from
  end)
end

function read(text, at, depth)
  if depth > deepest then wrong(at, "the nesting is too deep") end
  at = text:find("%S", at) or wrong(#text + 1, "a value expected")
  local c = text:sub(at, at)
  if c == "{" then return read_object(text, at + 1, depth + 1) end
  if c == "[" then return read_list(text, at + 1, depth + 1) end
  if c == '"' then return read_string(text, at + 1) end
  local word = text:match("^%a+", at)
  if words[word] ~= nil then return words[word], at + #word end
  local digits = text:match("^-?%d[%d.eE+-]*", at)
  if not tonumber(digits) then wrong(at, "a value expected") end
  return math.tointeger(digits) or tonumber(digits), at + #digits
end

--- The value of a JSON text: objects and lists are tables; null is not read. nil and a message
-- with the position when it is malformed.
function json.decode(text)
  local ok, value, at = pcall(read, text, 1, 1)
  if ok and text:find("%S", at) then ok, value = false, { at = at, what = "the text goes on" } end
  if ok then return value end
  if type(value) ~= "table" then error(value, 0) end
  return nil, ("byte %d: %s"):format(value.at, value.what)
end

return json
