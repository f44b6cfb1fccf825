--- The header of a reproducer: comments in front of Relay text.
--
--     // perilune reproducer 1
--     // # a remark for people
--     // pipeline: FoldConstant
--     // script: deploy.lua
--     //   | local pl = require "perilune"
--     //   | ...
--     #[version = "0.0.5"]
--
-- An entry is a key with a value on its line, and lines of text below it.

require "perilune.core".internal() -- errors name the scripts of others

local argument = require "perilune.argument"
local sorted_keys = require "perilune.sorted_keys"

local header = {}

local FIRST = "// perilune reproducer "
header.FORMAT = 1

-- ------------------------------------------------------------------- writing

local function put_block(lines, text)
  for line in (text .. "\n"):gmatch "(.-)\n" do
    lines[#lines + 1] = line == "" and "//   |" or "//   | " .. line
  end
end

--- The text of entries { key, value, block }: a value of several lines becomes
-- a block by itself.
function header.encode(entries, remarks)
  local lines = { FIRST .. header.FORMAT }
  for _, remark in ipairs(remarks) do lines[#lines + 1] = "// # " .. remark end
  for _, entry in ipairs(entries) do
    local value, block = entry[2] or "", entry[3]
    if value:find "\n" then value, block = "", value end
    lines[#lines + 1] = ("// %s:%s%s"):format(entry[1], value == "" and "" or " ", value)
    if block then put_block(lines, block) end
  end
  return table.concat(lines, "\n") .. "\n"
end

-- ------------------------------------------------------------------- reading

local function read_entry(line)
  local key, value = line:match "^// ([%a_][%w_.]*): ?(.*)$"
  return key and { key = key, value = value }
end

-- nil, or what is wrong with the line.
local function read_line(line, row, entries, state)
  if line:match "^//%s*$" or line:match "^// #" then return nil end
  local text = line:match "^//   | (.*)$" or line:match "^//   |%s*$" and ""
  if text then
    if not state.entry then return "text that belongs to no key" end
    state.entry.block = state.entry.block or {}
    table.insert(state.entry.block, text)
    return nil
  end
  local entry = read_entry(line)
  if not entry then return "expected '// KEY: VALUE', '//   | TEXT' or '// # REMARK'" end
  entry.row, state.entry = row, entry
  entries[#entries + 1] = entry
end

--- Whether a text begins like a reproducer.
function header.is(text)
  return argument.string(text, "pl.reproducer.is", "text"):sub(1, #FIRST) == FIRST
end

--- The entries { key, value, block, row } of a text, `block` as one text; or nil,
-- the row and what is wrong with it.
function header.decode(text)
  if not header.is(text) then return nil, 1, "not a reproducer: expected '" .. FIRST .. "1'" end
  local entries, state, row = {}, {}, 0
  for line in text:gmatch "([^\n]*)\n?" do
    row = row + 1
    if not line:find "^//" then break end
    local format = row == 1 and line:sub(#FIRST + 1)
    if format and tonumber(format) ~= header.FORMAT then
      return nil, row, ("format %s is unknown here; this version reads %d")
        :format(format, header.FORMAT)
    end
    local wrong = row > 1 and read_line(line, row, entries, state)
    if wrong then return nil, row, wrong end
  end
  for _, entry in ipairs(entries) do
    entry.block = entry.block and table.concat(entry.block, "\n")
  end
  return entries
end

-- -------------------------------------------------------------------- values

local function escape(c) return ("\\%03d"):format(c:byte()) end

local DEPTH = 4 -- of values in values

local function quote_scalar(value)
  if type(value) ~= "string" then
    return math.type(value) == "float" and ("%.17g"):format(value) or tostring(value)
  end
  return '"' .. value:gsub('[%c"\\]', escape) .. '"'
end

--- A number, boolean, string, list [1, 2] or table {a = 1} of such as text that
-- header.value reads back.
function header.quote(value)
  if type(value) ~= "table" and type(value) ~= "userdata" then return quote_scalar(value) end
  local items = {}
  if type(value) == "table" and #value > 0 then
    for i, item in ipairs(value) do items[i] = header.quote(item) end
    return "[" .. table.concat(items, ", ") .. "]"
  end
  for i, key in ipairs(sorted_keys(value)) do
    items[i] = ("%s = %s"):format(key, header.quote(value[key]))
  end
  return "{" .. table.concat(items, ", ") .. "}"
end

local function string_of(inner)
  local bad = false
  inner = inner:gsub("\\(%d?%d?%d?)", function(digits)
    local byte = #digits == 3 and tonumber(digits)
    bad = bad or not byte or byte > 255
    return not bad and string.char(byte) or ""
  end)
  if not bad then return inner end
end

-- The value that begins there, and where it ends; nil when there is none.
local function scalar_at(text, at)
  local inner, behind = text:match('^"([^"]*)"()', at)
  if inner then return string_of(inner), behind end
  local word
  word, behind = text:match("^([%w+.-]+)()", at)
  if word == "true" or word == "false" then return word == "true", behind end
  return tonumber(word), behind
end

local function value_at(text, at, depth)
  local open = text:match("^[%[{]", at)
  if not open then return scalar_at(text, at) end
  local close, out = open == "[" and "]" or "}", {}
  at = at + 1
  while depth > 0 and text:sub(at, at) ~= close do
    local key, item = #out + 1, nil
    if open == "{" then key, at = text:match("^([%w_.]+) = ()", at) end
    if key then item, at = value_at(text, at, depth - 1) end
    if item == nil then return nil end
    out[key] = item
    at = text:match("^, ()", at) or at
  end
  return depth > 0 and out or nil, at + 1
end

--- The value of such a text; nil when it is none.
function header.value(text)
  local value, behind = value_at(text, 1, DEPTH)
  if value ~= nil and behind == #text + 1 then return value end
end

return header
