--- The energy that processors took, by RAPL (Running Average Power Limit) of Intel and AMD, which
-- Linux shows in /sys/class/powercap.
--
-- A zone counts microjoules up to max_energy_range_uj and begins at 0 again. Zones of packages have
-- two numbers in their name parts ("intel-rapl:0"); those within a package are counted by it. What
-- else runs on the package is counted, too. Most systems let only root read the counters.

local argument = require "perilune.argument"
local core = require "perilune.core"
core.internal()

local energy = {}

local FOLDER <const> = "/sys/class/powercap"
-- More packages than any machine has.
local MOST_PACKAGES = 64

local function read_number(path)
  local file, reason = io.open(path)
  if not file then return nil, reason end
  local n = file:read "n"
  file:close()
  if not n then return nil, path .. ": it has no number" end
  return n
end

-- The zones of packages: { counter = path, range = microjoules }.
local function zones(folder)
  local list, reason = {}, nil
  for i = 0, MOST_PACKAGES - 1 do
    local zone = ("%s/intel-rapl:%d"):format(folder, i)
    local range = read_number(zone .. "/max_energy_range_uj")
    if not range then break end
    local now, why = read_number(zone .. "/energy_uj")
    if now then
      list[#list + 1] = { counter = zone .. "/energy_uj", range = range }
    else
      reason = why
    end
  end
  if #list > 0 then return list end
  return nil, reason or ("there is no zone %s/intel-rapl:0"):format(folder)
end

--- A meter: meter() gives the joules since it was made. nil and a reason where the counters cannot
-- be read. `folder`: of the zones.
function energy.meter(folder)
  local list, reason = zones(folder or FOLDER)
  if not list then return nil, reason end
  local function read()
    local values = {}
    for i, zone in ipairs(list) do values[i] = assert(read_number(zone.counter)) end
    return values
  end
  local before = read()
  return function()
    local sum = 0
    for i, now in ipairs(read()) do
      local used = now - before[i]
      if used < 0 then used = used + list[i].range + 1 end
      sum = sum + used
    end
    return sum * 1e-6
  end
end

--- A meter, or an error that says why there is none.
function energy.required(folder, where)
  local meter, reason = energy.meter(folder)
  if not meter then
    argument.fail(("%s: the energy of this machine cannot be read: %s"):format(where, reason))
  end
  return meter
end

return energy
