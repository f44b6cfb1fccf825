--- pl.tune.functions: the functions that choices name. A choice keeps the name, so that a
-- trace which was written in one process is replayed in another, where the same script
-- registers them anew.
--
--     pl.tune.functions.set_layout = function(mod, layout) ... return mod end
--
-- `identity` of a function is a hash of its text and of what it holds: a trace that was
-- written with another function of that name is refused instead of replayed.

local argument = require "perilune.argument"
local core = require "perilune.core"
local hash = require "perilune.tune.text_hash"
local source_text = require "perilune.pass.function_source"
core.internal()

local functions = {}

local by_name, name_of = {}, setmetatable({}, { __mode = "k" })
local identities = setmetatable({}, { __mode = "k" })

local function register(_, name, f)
  if type(name) ~= "string" then argument.fail("functions are registered under names") end
  if f ~= nil then
    argument.callable(f, "pl.tune.functions", name)
    name_of[f] = name_of[f] or name
  end
  by_name[name] = f
end

--- The registry: assigning registers, indexing gives the function or nil.
functions.registry = setmetatable({}, {
  __name = "perilune.tune.functions",
  __index = function(_, name) return by_name[name] end,
  __newindex = register,
  __pairs = function() return next, by_name, nil end,
})

--- A hash of what the function is, or nil when it holds something that has no text (a
-- file, a node, a coroutine).
function functions.identity(f)
  local known = identities[f]
  if known == nil then
    local text = source_text(f)
    known = text and hash(text) or false
    identities[f] = known
  end
  return known or nil
end

--- The name of a function or of the one that is registered under it. One that has no name
-- is registered under where it is written, "deploy.lua:12#2" where there are several.
function functions.name(f, where)
  if type(f) == "string" then return f end
  argument.callable(f, where)
  if not name_of[f] then
    local info = type(f) == "function" and debug.getinfo(f, "S")
    local place = info and ("%s:%d"):format(info.short_src, info.linedefined) or "callable"
    local name, n = place, 1
    while by_name[name] do
      n = n + 1
      name = ("%s#%d"):format(place, n)
    end
    register(nil, name, f)
  end
  return name_of[f]
end

--- The function of that name; raises when there is none.
function functions.find(name, where)
  local f = by_name[name]
  if not f then
    argument.fail(("%s: no function '%s' is registered in pl.tune.functions%s"):format(where, name,
      argument.near(name, by_name)))
  end
  return f
end

return functions
