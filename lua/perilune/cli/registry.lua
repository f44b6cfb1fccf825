--- The registered passes as lists, for commands that show or search them.

require "perilune.core".internal() -- errors name the scripts of others

local core = require "perilune.core"
require "perilune.pass.passes" -- registers those that are written in Lua

local registry = {}

--- Passes in order of registration.
function registry.passes()
  local list = {}
  repeat
    local pass = core.registered(#list + 1)
    list[#list + 1] = pass
  until not pass
  return list
end

--- The pass of that name, or nil.
function registry.find(name)
  for _, pass in ipairs(registry.passes()) do
    if pass.name == name then return pass end
  end
end

return registry
