-- Times pl.lower of the programs that TVM lowered: milliseconds each, simple and full, beside
-- TVM's, and microseconds of each pass of one of them; tir.CommonSubexprElimTIR of a loop of 300
-- stores, each with an index of its own that it reads too, for which TVM takes 12 s.
--
--     PERILUNE_BUILD=build lua5.4 spec/bench/lower.lua FOLDER [PROGRAM]
--
-- FOLDER is the unpacked tir-oracle/te. A time is the least of 20 runs; for counts of
-- instructions run one program under `perf stat -e instructions:u`.

local build = os.getenv "PERILUNE_BUILD" or "build"
package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
package.cpath = build .. "/lua/?.so;" .. package.cpath

local pl = require "perilune"

local function text_of(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

local function least(times, fn)
  local best = math.huge
  for _ = 1, times do
    local begin = os.clock()
    fn()
    best = math.min(best, os.clock() - begin)
  end
  return best
end

local function program_of(folder, name)
  local path = ("%s/%s/phases/000_input.tvmscript"):format(folder, name)
  local text = text_of(path)
  return text and pl.tir.parse(text, path) or nil
end

local function print_passes(mod)
  local rows = {}
  for _ = 1, 20 do
    pl.lower(mod)
    for i, row in ipairs(pl.report()) do
      rows[i] = rows[i] or { row.name, math.huge }
      rows[i][2] = math.min(rows[i][2], row.seconds)
    end
  end
  for _, row in ipairs(rows) do print(("%-44s %8.1f us"):format(row[1], row[2] * 1e6)) end
end

local function print_common_subexpr_elim()
  local lines = {}
  for i = 1, 300 do
    lines[i] = ("        A[i * 300 + %d] = A[i * 300 + %d] + T.float32(1)"):format(i - 1, i - 1)
  end
  local mod = assert(pl.tir.parse("@T.prim_func\ndef main(A: T.Buffer((9000,), \"float32\")):\n"
    .. "    for i in range(30):\n" .. table.concat(lines, "\n") .. "\n"))
  local pass = pl.passes["tir.CommonSubexprElimTIR"]()
  print(("tir.CommonSubexprElimTIR of 300 stores  %.3f ms"):format(
    least(50, function() pass(mod) end) * 1e3))
end

local folder, only = arg[1], arg[2]
assert(folder, "the folder te of the recordings is missing")
print(("%-34s %10s %10s %10s"):format("program", "simple ms", "full ms", "TVM ms"))
local list = assert(io.popen(("ls '%s'"):format(folder)))
for name in list:lines() do
  local mod = (not only or name == only) and program_of(folder, name)
  if mod then
    local info = text_of(("%s/%s/info.json"):format(folder, name))
    local simple = least(20, function() pl.lower(mod, { simple_mode = true }) end)
    local full = least(20, function() pl.lower(mod) end)
    print(("%-34s %10.3f %10.3f %10s"):format(name, simple * 1e3, full * 1e3,
      info:match '"tvm_lower_ms_min": ([%d.]+)' or "-"))
    if only then print_passes(mod) end
  end
end
list:close()
if not only then print_common_subexpr_elim() end
