--- pl.instruments.oracle: evaluates the module before and after each pass that
-- changed it, on inputs made for it; a pass that changes what is computed fails,
-- with its name and the first difference.

local core = require "perilune.core"
local nesting = require "perilune.instruments.nesting"
local oracle = require "perilune.oracle"
core.internal()

--- `options` are those of pl.check. Modules that cannot be evaluated (an operator
-- without kernel, no @main) are passed over: `skipped` lists { name, reason },
-- `compared` counts the others.
return function(options)
  local self = nesting { name = "oracle", compared = 0, skipped = {} }

  function self.open(mod) return mod end

  -- What is made of passes has been compared pass by pass.
  function self.close(before, after, info, told)
    if before == after or told then return end
    local same, reason = oracle(before, after, options)
    if same then
      self.compared = self.compared + 1
    elseif same == nil then
      self.skipped[#self.skipped + 1] = { name = info.name, reason = reason }
    else
      error(("pass '%s' changes what is computed: %s"):format(info.name, reason), 0)
    end
  end

  return self
end
