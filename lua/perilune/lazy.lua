--- Parts of the library that are loaded at their first use, so that the library starts
-- without them.
--
--     local check = lazy "perilune.check"
--     check(a, b); check.inputs(a)          -- loads it
--
-- What stands for the part can be called and indexed, as the part can.

local lazy = {}

--- The metatable of what stands for a part.
lazy.class = {
  __index = function(self, key)
    local part = require(rawget(self, 1))
    return part[key]
  end,
  __call = function(self, ...)
    local part = require(rawget(self, 1))
    return part(...)
  end,
}

return setmetatable(lazy, {
  __call = function(_, name) return setmetatable({ name }, lazy.class) end,
})
