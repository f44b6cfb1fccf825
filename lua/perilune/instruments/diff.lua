--- pl.instruments.diff: what each pass changed, line by line of the functions it
-- changed.

local argument = require "perilune.argument"
local core = require "perilune.core"
local diff = require "perilune.text_diff"
local nesting = require "perilune.instruments.nesting"
core.internal()

--- Prints what each pass changed. options: write(text) (print), colour (false), most
-- (1000): functions with more differing lines are only named.
return function(options)
  options = argument.options(options, "instruments.diff", { "write", "colour", "most" })
  local write = options.write or print
  local self = nesting { name = "diff" }

  function self.open(mod) return mod end

  -- What is made of passes has been told pass by pass.
  function self.close(before, after, info, told)
    if before == after or told then return end
    local text = diff(before, after, options)
    write(text == "" and "-- " .. info.name or ("-- %s\n%s"):format(info.name, text))
  end

  return self
end
