--- JSON text of Lua values, and values of JSON text (RFC 8259). Keys come out in a fixed
-- order: that of the list of json.object, else sorted. Lists are tables made by json.list.

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

-- ------------------------------------------------------------------- reading

local MOST_NESTED = 10000
local unescaped = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }
local words = { ["true"] = true, ["false"] = false }

local function fail(at, what) error({ at = at, what = what }, 0) end

-- "\uD83D\uDE00" is one character beyond 16 bits.
local function surrogate_pair(high, low)
  return utf8.char(0x10000 + ((tonumber(high, 16) & 0x3ff) << 10) + (tonumber(low, 16) & 0x3ff))
end

local function unescape(raw)
  raw = raw:gsub("\\\\", "\\u005c")
  raw = raw:gsub("\\u([dD][89abAB]%x%x)\\u([dD][c-fC-F]%x%x)", surrogate_pair)
  raw = raw:gsub("\\([^u])", function(c) return unescaped[c] or c end)
  return (raw:gsub("\\u(%x%x%x%x)", function(hex) return utf8.char(tonumber(hex, 16)) end))
end

-- The text behind the quote at `at` - 1, and the place behind it.
local function read_string(text, at)
  local finish = at
  while true do
    finish = text:find('["\\]', finish)
    if not finish then fail(at, "the text has no end") end
    if text:sub(finish, finish) == '"' then break end
    finish = finish + 2
  end
  return unescape(text:sub(at, finish - 1)), finish + 1
end

local function read_plain(text, at)
  if text:sub(at, at) == '"' then return read_string(text, at + 1) end
  local word = text:match("^[%w+.-]+", at)
  local value = word and words[word]
  if word == "null" then return nil, at + 4 end
  if value == nil and word and word:find "^-?%d" then value = tonumber(word) end
  if value == nil then fail(at, "a value is expected") end
  return value, at + #word
end

-- Reads '"key" :' of an object; the place behind it.
local function read_key(text, at)
  if text:sub(at, at) ~= '"' then fail(at, "a key in quotes is expected") end
  local key
  key, at = read_string(text, at + 1)
  at = text:match("^%s*:%s*()", at)
  if not at then fail(#text, "':' is expected behind a key") end
  return key, at
end

-- The value of an open list or object, `n` values in it so far.
local function put(open, value)
  if open.is_list then
    open.n = open.n + 1
    open.value[open.n] = value
  else
    open.value[open.key] = value
  end
end

local closing = { ["]"] = true, ["}"] = false }

-- Behind a value of `open`: the place of the next one, or nil and that behind its end.
local function next_value(text, at, open)
  local mark, behind = text:match("^%s*([,%]}])%s*()", at)
  if not mark then fail(at, "',' or an end is expected") end
  if mark == "," then return behind end
  if closing[mark] ~= open.is_list then fail(at, "the end of another bracket") end
  return nil, behind
end

local function read_all(text, at)
  local stack = {}
  while true do
    local value
    local open = stack[#stack]
    if open and not open.is_list then open.key, at = read_key(text, at) end
    local mark, behind = text:match("^([%[{])%s*()", at)
    local empty = mark and text:match(mark == "[" and "^%]%s*()" or "^}%s*()", behind)
    if mark and not empty then
      if #stack == MOST_NESTED then fail(at, "nested too deep") end
      stack[#stack + 1] = { value = {}, is_list = mark == "[", n = 0 }
      at = behind
    else
      if mark then value, at = {}, empty else value, at = read_plain(text, at) end
      local following
      repeat
        open = stack[#stack]
        if not open then return value, at end
        put(open, value)
        following, at = next_value(text, at, open)
        if not following then value, stack[#stack] = open.value, nil end
      until following
      at = following
    end
  end
end

local function decode(text)
  local value, at = read_all(text, text:match "^%s*()")
  local rest = text:match("^%s*()", at)
  if rest <= #text then fail(rest, "something stands behind the value") end
  return value
end

--- The value of a JSON text: objects and lists are tables, null is nil. nil and a message with
-- the line and column when it is none.
function json.decode(text)
  local ok, value = pcall(decode, text)
  if ok then return value end
  if type(value) ~= "table" or not value.what then error(value, 0) end
  local before = text:sub(1, value.at - 1)
  local _, line = before:gsub("\n", "")
  return nil, ("line %d, column %d: %s"):format(line + 1, #before:match "[^\n]*$" + 1, value.what)
end

return json
