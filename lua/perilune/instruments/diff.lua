--- pl.instruments.diff: what each pass changed, line by line of the functions it
-- changed.

local core = require "perilune.core"
local diff = require "perilune.diff"
local nesting = require "perilune.instruments.nesting"
core.internal()

--- Prints what each pass changed. options: write(text) (print), colour (false), most
-- (1000): functions with more differing lines are only named.
return function(options)
  options = options or {}
  local write = options.write or print
  local self = nesting { name = "diff" }
  local inside = {}

  function self.open(mod)
    inside[self.depth + 1] = false
    return mod
  end

  -- What is made of passes has been told pass by pass.
  function self.close(before, after, info)
    local depth = self.depth + 1
    if before == after then return end
    inside[depth - 1] = true
    if inside[depth] then return end
    local text = diff(before, after, options)
    write(text == "" and "-- " .. info.name or ("-- %s\n%s"):format(info.name, text))
  end

  return self
end
