-- What a PrimFunc is compiled for: a dictionary with at least `kind`, `keys` and
-- `tag`, which is how an attribute is known to be a Target.
--
--     tir.Target "llvm"
--     tir.Target "cuda -arch=sm_50"
--     tir.Target { kind = "cuda", arch = "sm_50", host = "llvm" }

local core = require "perilune.core"
local argument = require "perilune.argument"
core.internal()

-- Keys of the kinds that TVM knows; of any other there are none.
local default_keys = {
  llvm = { "cpu" }, c = { "cpu" }, stackvm = { "cpu" }, cuda = { "cuda", "gpu" },
  nvptx = { "cuda", "gpu" }, rocm = { "rocm", "gpu" }, opencl = { "opencl", "gpu" },
  metal = { "metal", "gpu" }, vulkan = { "vulkan", "gpu" }, webgpu = { "webgpu", "gpu" },
  sdaccel = { "sdaccel", "hls" }, aocl = { "aocl", "hls" }, aocl_sw_emu = { "aocl", "hls" },
  hexagon = { "hexagon" }, hybrid = { "hybrid" },
}

-- A word is what it looks like: an integer, a list where commas are, else a string.
local function parsed_value(name, text)
  if name == "keys" or text:find(",", 1, true) then
    local list = {}
    for word in text:gmatch "[^,]+" do list[#list + 1] = word end
    return list
  end
  return math.tointeger(tonumber(text)) or text
end

-- "cuda -arch=sm_50"
local function parsed(text)
  local options = { kind = text:match "^%s*([%w_%-]+)" }
  if not options.kind then argument.fail(("Target: no kind in '%s'"):format(text)) end
  for word in text:gsub("^%s*%S+", ""):gmatch "%S+" do
    local name, value = word:match "^%-%-?([%w_%-]+)=(.+)$"
    if not name then argument.fail(("Target: '%s' is not of the form -name=value"):format(word)) end
    options[name] = parsed_value(name, value)
  end
  return options
end

--- A Target of a kind, with its options; its host may be given as another one is.
local function target(spec, host)
  if type(spec) == "string" then spec = parsed(spec) end
  local options = {}
  argument.table(spec, "tir.Target", "options")
  for name, value in pairs(spec) do options[name] = value end
  if type(options.kind) ~= "string" then argument.fail("Target: its kind is a string") end
  options.tag = options.tag or ""
  options.keys = options.keys or default_keys[options.kind] or {}
  host = host or options.host
  if host then options.host = target(host) end
  return core.attrs(options)
end

return target
