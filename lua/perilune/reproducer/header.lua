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
function header.is(text) return text:sub(1, #FIRST) == FIRST end

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
      return nil, row, ("format %s is not known here; this version reads %d")
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

--- A number, boolean or string as text that header.value reads back.
function header.quote(value)
  if type(value) ~= "string" then
    return math.type(value) == "float" and ("%.17g"):format(value) or tostring(value)
  end
  return '"' .. value:gsub('[%c"\\]', escape) .. '"'
end

--- The value of such a text; nil when it is none.
function header.value(text)
  if text == "true" or text == "false" then return text == "true" end
  local inner = text:match '^"([^"]*)"$'
  if not inner then return tonumber(text) end
  local bad = false
  inner = inner:gsub("\\(%d?%d?%d?)", function(digits)
    local byte = #digits == 3 and tonumber(digits)
    bad = bad or not byte or byte > 255
    return not bad and string.char(byte) or ""
  end)
  if not bad then return inner end
end

return header
