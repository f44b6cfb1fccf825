--- How two modules differ, line by line of the functions that differ. Lines are
-- compared without the numbers of graph variables, so that one node more does
-- not change all lines below it.

local changed_functions = require "perilune.debug.changed_functions"
require "perilune.core".internal()

local CONTEXT = 2 -- lines shown around a change

local function split(text)
  local lines, keys = {}, {}
  for line in (text .. "\n"):gmatch "(.-)\n" do
    lines[#lines + 1] = line
    keys[#keys + 1] = line:gsub("%%%d+", "%%")
  end
  return { lines = lines, keys = keys }
end

-- One more step of the search: the furthest place on each diagonal.
local function step(v, d, a, b, low, high)
  for k = -d, d, 2 do
    local x
    if k == -d or (k ~= d and v[k - 1] < v[k + 1]) then x = v[k + 1] else x = v[k - 1] + 1 end
    while low + x <= high.a and low + x - k <= high.b and a[low + x] == b[low + x - k] do
      x = x + 1
    end
    v[k] = x
    if low + x > high.a and low + x - k > high.b then return true end
  end
end

local function copy(v, d)
  local out = {}
  for k = -d, d do out[k] = v[k] end
  return out
end

-- The edits as a list of { sign, index }, from the trace of the search.
local function backtrack(trace, low, x, y)
  local edits = {}
  for d = #trace, 1, -1 do
    local v = trace[d]
    local k = x - y
    local down = k == -d or (k ~= d and v[k - 1] < v[k + 1])
    local from = down and k + 1 or k - 1
    local px = v[from]
    local py = px - from
    if down then
      edits[#edits + 1] = { "+", low + py }
    else
      edits[#edits + 1] = { "-", low + px }
    end
    x, y = px, py
  end
  return edits
end

-- The shortest edit script (Myers, An O(ND) difference algorithm, 1986) between
-- what is left of both when equal ends are cut off. nil when there are more than
-- `most` edits.
local function edits_of(a, b, most)
  local low, high = 1, { a = #a, b = #b }
  while low <= #a and low <= #b and a[low] == b[low] do low = low + 1 end
  while high.a >= low and high.b >= low and a[high.a] == b[high.b] do
    high.a, high.b = high.a - 1, high.b - 1
  end
  local v, trace = { [1] = 0 }, {}
  for d = 0, most do
    if d > 0 then trace[d] = copy(v, d) end
    if step(v, d, a, b, low, high) then
      return backtrack(trace, low, high.a - low + 1, high.b - low + 1)
    end
    v[d + 1] = v[d + 1] or -1
    v[-d - 1] = v[-d - 1] or -1
  end
end

-- Marks lines that go and lines that come.
local function marks_of(edits)
  local gone, new = {}, {}
  for _, edit in ipairs(edits) do
    if edit[1] == "-" then gone[edit[2]] = true else new[edit[2]] = true end
  end
  return gone, new
end

-- Lines " kept", "-gone", "+new" in order.
local function merge(a, b, gone, new)
  local out, i, j = {}, 1, 1
  while i <= #a or j <= #b do
    if i <= #a and gone[i] then
      out[#out + 1], i = "-" .. a[i], i + 1
    elseif j <= #b and new[j] then
      out[#out + 1], j = "+" .. b[j], j + 1
    else
      out[#out + 1], i, j = " " .. (b[j] or a[i]), i + 1, j + 1
    end
  end
  return out
end

-- Only the neighbourhood of changes.
local function shorten(lines)
  local near = {}
  for i, line in ipairs(lines) do
    if line:byte() ~= 32 then
      for k = i - CONTEXT, i + CONTEXT do near[k] = true end
    end
  end
  local out, skipped = {}, false
  for i, line in ipairs(lines) do
    if near[i] then
      if skipped and #out > 0 then out[#out + 1] = "@@" end
      out[#out + 1], skipped = line, false
    else
      skipped = true
    end
  end
  return out
end

-- Constants by what they hold: their numbers change with others that come and go.
local compared = { metadata = false, hash_references = true }

local function text_of(fn) return fn and fn:text(compared) or "" end

local colours = { ["-"] = "\27[31m", ["+"] = "\27[32m", ["@"] = "\27[36m" }

local function paint(lines)
  for i, line in ipairs(lines) do
    local colour = colours[line:sub(1, 1)]
    if colour then lines[i] = colour .. line .. "\27[0m" end
  end
end

-- One function, before and after; nil when they are the same.
local function compare(name, before, after, options)
  if before == after then return nil end
  local a, b = split(text_of(before)), split(text_of(after))
  local edits = edits_of(a.keys, b.keys, options.most)
  if not edits then
    return { ("@%s: more than %d lines differ"):format(name, options.most) }
  end
  if #edits == 0 then return nil end
  local gone, new = marks_of(edits)
  local lines = shorten(merge(a.lines, b.lines, gone, new))
  table.insert(lines, 1, ("@%s"):format(name))
  return lines
end

--- The text; "" when nothing differs. options: colour (false), most (1000): of
-- functions with more differing lines only the names are told.
return function(before, after, options)
  local settings, parts = { most = options and options.most or 1000 }, {}
  local old, new = before.functions, after.functions
  for _, name in ipairs(changed_functions(before, after)) do
    local lines = compare(name, old[name], new[name], settings)
    if lines and options and options.colour then paint(lines) end
    if lines then parts[#parts + 1] = table.concat(lines, "\n") end
  end
  return table.concat(parts, "\n")
end
