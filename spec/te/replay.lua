-- Compares what the schedules of spec/te/programs.lua are lowered to with what TVM's
-- schedule_to_module made of the same programs (tir-oracle/te, phases/000_input); prints a table.
--
--     PERILUNE_BUILD=build lua5.4 spec/te/replay.lua FOLDER [-v] [PROGRAM...]
--
-- FOLDER is the archive's folder te. -v prints what differs.

local replay = {}

local function text_of(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

-- "equal", "different", "unread" or "error", and why.
local function compare(pl, folder, name, program)
  local text = text_of(("%s/%s/phases/000_input.tvmscript"):format(folder, name))
  if not text then return "unread", "no recording" end
  local expected, diag = pl.tir.parse(text, name)
  if not expected then return "unread", tostring(diag) end
  local ok, made = pcall(function()
    local schedule, args = program()
    return schedule:to_module(args, name)
  end)
  if not ok then return "error", tostring(made) end
  if pl.equal(made, expected) then return "equal" end
  return "different", ("%s\n--- here\n%s\n--- TVM\n%s"):format(
    tostring(pl.mismatch(made, expected)), tostring(made), text)
end

--- Results by program, and their counts.
function replay.run(pl, folder, names)
  local programs = dofile "spec/te/programs.lua"
  local results, counts = {}, { equal = 0, different = 0, unread = 0, error = 0 }
  for name, program in pairs(programs) do
    if not names or names[name] then
      local result, why = compare(pl, folder, name, program)
      results[name] = { result = result, why = why }
      counts[result] = counts[result] + 1
    end
  end
  return results, counts
end

function replay.print(results, counts, verbose)
  local names = {}
  for name in pairs(results) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    print(("%-36s %s"):format(name, results[name].result))
    if verbose and results[name].why then print(results[name].why) end
  end
  print(("%d equal, %d different, %d unread, %d errors"):format(counts.equal, counts.different,
    counts.unread, counts.error))
end

if not (arg and arg[0] and arg[0]:find "replay%.lua$") then return replay end

package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
package.cpath = (os.getenv "PERILUNE_BUILD" or "build") .. "/lua/?.so;" .. package.cpath
local verbose, names
for i = 2, #arg do
  if arg[i] == "-v" then
    verbose = true
  else
    names = names or {}
    names[arg[i]] = true
  end
end
local results, counts = replay.run(require "perilune", arg[1], names)
replay.print(results, counts, verbose)
