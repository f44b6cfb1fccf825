--- pl.instruments.oracle: evaluates the module before and after each pass that
-- changed it, on inputs made for it; a pass that changes what is computed fails,
-- with its name and the first difference.

local core = require "perilune.core"
local nesting = require "perilune.instruments.nesting"
core.internal()

--- `options` are those of pl.check. Modules that cannot be evaluated (an operator
-- without kernel, no @main) are passed over: `skipped` lists { name, reason },
-- `compared` counts the others.
return function(options)
  local self = nesting { name = "oracle", compared = 0, skipped = {} }
  local inside = {} -- depth -> whether a pass inside has changed something

  function self.open(mod)
    inside[self.depth + 1] = false
    return mod
  end

  local function compare(before, after, info)
    if not before.functions.main or not after.functions.main then return nil, "no @main" end
    local same, diag = require "perilune.check" (before, after, options)
    if same then return true end
    if diag.message:find "^no round could be compared" then return nil, diag.message end
    error(("pass '%s' changes what is computed: %s"):format(info.name, diag.message), 0)
  end

  -- What is made of passes has been compared pass by pass.
  function self.close(before, after, info)
    local depth = self.depth + 1
    if before == after then return end
    local told = inside[depth]
    inside[depth - 1] = true
    if told then return end
    local done, reason = compare(before, after, info)
    if done then
      self.compared = self.compared + 1
    else
      self.skipped[#self.skipped + 1] = { name = info.name, reason = reason }
    end
  end

  return self
end
