-- Lowers the tensor programs that TVM lowered (../shared/conformance/tir-oracle.tar.xz, te/) and
-- compares the results:
--
--     PERILUNE_BUILD=build lua5.4 spec/tir/lower_replay.lua [FOLDER] [-v] [PROGRAM...]
--
-- FOLDER is the archive's folder te; without it the archive is unpacked. Each program is lowered
-- with its config, in full and in simple mode, and the module after each pass is compared with the
-- recorded one. A verdict is "equal" (by structure), "same" (the interpreter of loops computes
-- the same of both), "different" or "failed". -v prints what differs.

local replay = {}

local json = dofile "spec/arith/json_decode.lua"

local function text_of(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

--- The folder te of the archive, unpacked, and a function that removes it; nil without archive.
function replay.unpack()
  local archive = (os.getenv "PERILUNE_SHARED" or "../shared")
    .. "/conformance/tir-oracle.tar.xz"
  local file = io.open(archive)
  if not file then return nil end
  file:close()
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute(("mkdir %s && tar xf %s -C %s tir-oracle/te"):format(folder, archive,
    folder)))
  return folder .. "/tir-oracle/te", function() os.execute("rm -r " .. folder) end
end

--- The programs that have recorded phases, in order.
function replay.programs(folder)
  local names = {}
  local list = assert(io.popen(("ls '%s'"):format(folder)))
  for name in list:lines() do
    if text_of(("%s/%s/phases/phases.json"):format(folder, name)) then names[#names + 1] = name end
  end
  list:close()
  return names
end

-- The recorded config, a table per pass, as a context takes it.
local function config_of(pl, info)
  local config = {}
  for key, value in pairs(info.config or {}) do
    if type(value) ~= "table" then
      config[key] = value
    else
      for field, inner in pairs(value) do
        local name = key .. "." .. field
        local row = pl.config[key]
        if row then config[name] = inner == true or inner == 1 or inner end
      end
    end
  end
  config["limit.seconds"] = 20
  return config
end

-- ------------------------------------------------------------------ verdicts

local function compare(pl, got, wanted, run)
  if pl.equal(got, wanted, { map_free_vars = true }) then return "equal" end
  local why = require "perilune.text_diff" (wanted, got)
  if not run then return "different", why end
  local limits = pl.context { config = { ["limit.seconds"] = 5 } }
  local ok, same, diag = pcall(pl.with, limits, pl.tir.check, wanted, got, { rounds = 1 })
  if ok and same then return "same", why end
  return "different", ("%s\n%s"):format(tostring(ok and diag or same), why)
end

local function read(pl, path)
  local text = text_of(path)
  if not text then return nil, path .. ": no such file" end
  return pl.tir.parse(text, path)
end

-- The recorded module after each pass, in order: { pass =, path = }.
local function recorded_phases(folder)
  local list, latest = {}, folder .. "/000_input.tvmscript"
  for _, row in ipairs(json.decode(text_of(folder .. "/phases.json"))) do
    if row.n then
      if row.file then latest = folder .. "/" .. row.file end
      list[#list + 1] = { pass = row.pass, path = latest }
    end
  end
  return list
end

-- Lowers; the modules after each pass go to `seen`.
local function lower(pl, input, info, simple_mode, seen)
  local depth = 0
  local watch = { name = "phases", before = function() depth = depth + 1 end,
    after = function(mod, pass)
      depth = depth - 1
      if depth == 2 then seen[#seen + 1] = { pass = pass.name, module = mod } end
    end }
  local context = pl.context { opt_level = 3, config = config_of(pl, info),
    instruments = seen and { watch } or nil }
  local ok, result = pcall(pl.with, context, pl.lower, input, { simple_mode = simple_mode })
  if ok then return result end
  return nil, tostring(result)
end

local function replay_mode(pl, path, input, info, simple_mode, visit)
  local mode = simple_mode and "simple" or "full"
  local wanted, diag = read(pl, ("%s/lower_%s.tvmscript"):format(path, mode))
  if not wanted then return visit(mode, "failed", tostring(diag)) end
  local seen = {}
  local got, why = lower(pl, input, info, simple_mode, seen)
  if not got then return visit(mode, "failed", why) end
  visit(mode, compare(pl, got, wanted, true))
  return seen
end

-- Compares the module after each pass with the recorded one; stops at the first that cannot be
-- read.
local function replay_phases(pl, path, seen, visit)
  local recorded, at = recorded_phases(path .. "/phases"), 1
  for _, step in ipairs(seen) do
    while recorded[at] and recorded[at].pass ~= step.pass do at = at + 1 end
    local phase = recorded[at]
    if not phase then return end
    at = at + 1
    local wanted, diag = read(pl, phase.path)
    if not wanted then
      visit(step.pass, "failed", tostring(diag))
    else
      visit(step.pass, compare(pl, step.module, wanted, false))
    end
  end
end

--- Lowers a program and calls visit(what, verdict, message) for "full", "simple" and each pass.
function replay.program(pl, folder, name, visit)
  local path = folder .. "/" .. name
  local info = json.decode(text_of(path .. "/info.json"))
  local input, diag = read(pl, path .. "/phases/000_input.tvmscript")
  if not input then
    visit("full", "failed", tostring(diag))
    return visit("simple", "failed", tostring(diag))
  end
  replay_mode(pl, path, input, info, true, visit)
  local seen = replay_mode(pl, path, input, info, false, visit)
  if seen then replay_phases(pl, path, seen, visit) end
end

-- -------------------------------------------------------------------- report

local function count(set, key, verdict)
  set[key] = set[key] or {}
  set[key][verdict] = (set[key][verdict] or 0) + 1
end

local function print_passes(passes)
  local names = {}
  for name in pairs(passes) do names[#names + 1] = name end
  table.sort(names)
  print(("\n%-42s %6s %10s %7s"):format("after", "equal", "different", "failed"))
  for _, name in ipairs(names) do
    local row = passes[name]
    print(("%-42s %6d %10d %7d"):format(name, row.equal or 0, row.different or 0,
      row.failed or 0))
  end
end

local function main(arguments)
  local pl = require "perilune"
  local folder, remove, verbose, only = nil, nil, false, {}
  for i = 1, #arguments do
    if arguments[i] == "-v" then verbose = true
    elseif arguments[i]:find "/" then folder = arguments[i]
    else only[#only + 1] = arguments[i] end
  end
  if not folder then folder, remove = replay.unpack() end
  assert(folder, "there is no archive of recordings")
  local passes, totals = {}, {}
  print(("%-36s %-10s %s"):format("program", "simple", "full"))
  for _, name in ipairs(#only > 0 and only or replay.programs(folder)) do
    local row = {}
    replay.program(pl, folder, name, function(what, verdict, message)
      if what == "full" or what == "simple" then
        row[what] = verdict
        count(totals, what, verdict)
      else
        count(passes, what, verdict)
      end
      if verbose and verdict ~= "equal" then
        print(("=== %s, %s: %s\n%s"):format(name, what, verdict, message))
      end
    end)
    print(("%-36s %-10s %s"):format(name, row.simple or "-", row.full or "-"))
  end
  for _, mode in ipairs { "simple", "full" } do
    local row = totals[mode] or {}
    print(("%s: %d equal, %d the same result, %d different, %d failed"):format(mode,
      row.equal or 0, row.same or 0, row.different or 0, row.failed or 0))
  end
  print_passes(passes)
  if remove then remove() end
end

if arg and arg[0] and arg[0]:find "lower_replay%.lua$" then
  local build = os.getenv "PERILUNE_BUILD" or "build"
  package.cpath = build .. "/lua/?.so;" .. package.cpath
  package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
  main(arg)
end

return replay
