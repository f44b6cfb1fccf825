--- The processor of this machine, as records name it: times that were measured on another one say
-- nothing of this one.

require "perilune.core".internal() -- errors name the scripts of others

local processor = {}

local known

-- What /proc/cpuinfo has: "model name" of x86, "CPU part" of ARM, "uarch" of RISC-V.
local function read()
  local text = require "perilune.read_file" "/proc/cpuinfo" or ""
  local _, cores = text:gsub("\nprocessor%s*:", "")
  local name = text:match "model name%s*:%s*([^\n]+)" or text:match "uarch%s*:%s*([^\n]+)"
  local part = text:match "CPU part%s*:%s*([^\n]+)"
  return { name = name or part and "CPU part " .. part, cores = cores
    + (text:find "^processor" and 1 or 0) }
end

--- Its name (nil when it is not known) and its number of cores.
function processor.name_and_cores()
  known = known or read()
  return known.name, known.cores
end

--- The text that targets have.
function processor.text()
  local name, cores = processor.name_and_cores()
  return ("%s, %d %s"):format(name or "a processor", cores, cores == 1 and "core" or "cores")
end

return processor
