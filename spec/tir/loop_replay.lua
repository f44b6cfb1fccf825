-- Runs the programs of TVM's recorded TIR passes before and after each pass, on equal inputs:
--
--     lua5.4 spec/tir/loop_replay.lua FOLDER [PATTERN]
--
-- FOLDER is the oracle's folder `transform`; PATTERN selects files. Prints for each pass how many
-- cases are equal, different, refused (and why). Others who have a pass of their own use
-- `replay.case(before, after, options)` or pl.tir.check.

local pl = require "perilune"

local replay = {}

local function text_of(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

-- A reason with names and numbers left out, so that equal ones are counted together.
local function reason_of(diag)
  local text = tostring(diag.message or diag):match "^[^\n]*"
  if not text:find("interpreted", 1, true) then
    text = text:gsub("'[^']*'", "'..'"):gsub("%d+", "N")
  end
  return (text:gsub("no element was compared: ", ""))
end

--- "equal", or "different" or "refused" with a diagnostic, of two programs.
function replay.case(before, after, options)
  local ok, same, diag = pcall(pl.tir.check, before, after, options)
  if not ok then return "refused", { message = tostring(same) } end
  if same then return "equal" end
  if diag.code == "unsupported" or diag.code == "limit" then return "refused", diag end
  return "different", diag
end

--- The verdict of two texts; "unread" when one cannot be parsed.
function replay.texts(before, after, options)
  local a, diag_a = pl.tir.parse(before, "before")
  if not a then return "unread", diag_a end
  local b, diag_b = pl.tir.parse(after, "after")
  if not b then return "unread", diag_b end
  return replay.case(a, b, options)
end

--- Calls visit(pass, path, verdict, diag) for each case below a folder.
function replay.folder(folder, pattern, options, visit)
  local list = assert(io.popen(("find '%s' -name '*.in.tvmscript' | sort"):format(folder)))
  for path in list:lines() do
    local stem = path:match "^(.*)%.in%.tvmscript$"
    local after = text_of(stem .. ".out.tvmscript")
    if after and path:find(pattern or ".") then
      local verdict, diag = replay.texts(text_of(path), after, options)
      visit(stem:match "[^/]*$":gsub("^%d+_", ""), path, verdict, diag)
    end
  end
  list:close()
end

-- ------------------------------------------------------------------- report

local function sorted(set)
  local names = {}
  for name in pairs(set) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local function count(set, name, by) set[name] = (set[name] or 0) + (by or 1) end

local function print_table(passes, reasons)
  print(("%-46s %6s %9s %8s %7s"):format("pass", "equal", "different", "refused", "unread"))
  local total = {}
  for _, pass in ipairs(sorted(passes)) do
    local row = passes[pass]
    print(("%-46s %6d %9d %8d %7d"):format(pass, row.equal or 0, row.different or 0,
      row.refused or 0, row.unread or 0))
    for verdict, n in pairs(row) do count(total, verdict, n) end
  end
  print(("%-46s %6d %9d %8d %7d"):format("all", total.equal or 0, total.different or 0,
    total.refused or 0, total.unread or 0))
  print "\nrefused:"
  local names = sorted(reasons)
  table.sort(names, function(x, y) return reasons[x] > reasons[y] end)
  for _, reason in ipairs(names) do print(("%6d %s"):format(reasons[reason], reason)) end
end

local function main(folder, pattern)
  local passes, reasons = {}, {}
  local options = { rounds = 1 }
  local function visit(pass, path, verdict, diag)
    passes[pass] = passes[pass] or {}
    count(passes[pass], verdict)
    if verdict == "refused" then count(reasons, reason_of(diag)) end
    if verdict == "different" then
      print(("different: %s: %s"):format(path:match "[^/]*/[^/]*$", tostring(diag)))
    end
  end
  local context = pl.context { config = { ["limit.seconds"] = 0.2 } }
  pl.with(context, replay.folder, folder, pattern, options, visit)
  print_table(passes, reasons)
end

if arg and arg[0] and arg[0]:find "loop_replay%.lua$" then main(arg[1], arg[2]) end

return replay
