-- Reads JSON: objects and lists become tables, null becomes json.null.

local json = { null = setmetatable({}, { __tostring = function() return "null" end }) }

local escapes = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function read_string(text, at)
  local finish = at
  repeat
    finish = text:find('[\\"]', finish)
    local escaped = text:sub(finish, finish) == "\\"
    finish = finish + (escaped and 2 or 0)
  until not escaped
  local raw = text:sub(at, finish - 1)
  raw = raw:gsub("\\u(%x%x%x%x)", function(hex) return utf8.char(tonumber(hex, 16)) end)
  raw = raw:gsub("\\(.)", function(c) return escapes[c] or c end)
  return raw, finish + 1
end

local read

local function skip(text, at) return text:find("[^%s]", at) end

local function read_list(text, at)
  local out = {}
  at = skip(text, at)
  if text:sub(at, at) == "]" then return out, at + 1 end
  while true do
    out[#out + 1], at = read(text, at)
    at = skip(text, at)
    if text:sub(at, at) == "]" then return out, at + 1 end
    at = at + 1
  end
end

local function read_object(text, at)
  local out = {}
  at = skip(text, at)
  if text:sub(at, at) == "}" then return out, at + 1 end
  while true do
    local key
    key, at = read_string(text, skip(text, at) + 1)
    at = text:find(":", at, true) + 1
    out[key], at = read(text, at)
    at = skip(text, at)
    if text:sub(at, at) == "}" then return out, at + 1 end
    at = at + 1
  end
end

local words = { ["true"] = true, ["false"] = false, null = json.null }

function read(text, at)
  at = skip(text, at)
  local c = text:sub(at, at)
  if c == "{" then return read_object(text, at + 1) end
  if c == "[" then return read_list(text, at + 1) end
  if c == '"' then return read_string(text, at + 1) end
  local word = text:match("^%a+", at)
  if word then return words[word], at + #word end
  local number = text:match("^[-+%d.eE]+", at)
  return math.tointeger(number) or tonumber(number), at + #number
end

function json.decode(text) return (read(text, 1)) end

return json
