-- What a PrimFunc is compiled for: a dictionary with at least `kind`, `keys` and
-- `tag`, which is how an attribute is known to be a Target.
--
--     tir.Target "llvm"
--     tir.Target "cuda -arch=sm_50"
--     tir.Target { kind = "cuda", arch = "sm_50", host = "llvm" }

local core = require "perilune.core"
local argument = require "perilune.argument"
core.internal()

-- From a text, a table, or another Target.
local function one(spec, what)
  if type(spec) ~= "string" and type(spec) ~= "userdata" then
    argument.table(spec, "tir.Target", what)
  end
  return core.target(spec)
end

--- A Target of a kind, with its options; its host may be given as another one is.
local function target(spec, host)
  local made = one(spec, "options")
  if host == nil then return made end
  local options = {}
  for name, value in pairs(made) do options[name] = value end
  options.host = one(host, "host")
  return core.target(options)
end

return target
