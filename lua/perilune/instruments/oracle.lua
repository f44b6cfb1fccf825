--- pl.instruments.oracle: evaluates the module before and after each pass that
-- changed it, on inputs made for it; a pass that changes what is computed fails,
-- with its name and the first difference.

local core = require "perilune.core"
local nesting = require "perilune.instruments.nesting"
local oracle = require "perilune.debug.oracle"
core.internal()

local function fail(info, format, reason)
  error(("pass '%s' %s"):format(info.name, format:format(reason)), 0)
end

--- `options` are those of pl.check, and `prepare`, a function that modules go through
-- before they are compared. A pass whose result cannot be compared (an operator
-- without kernel, no @main, no inputs that the evaluator takes) fails; with `skip =
-- true` it is passed over, and `skipped` lists { name, reason }. `compared` counts
-- the others.
return function(options)
  local self = nesting { name = "oracle", compared = 0, skipped = {} }
  local skip = options and options.skip

  function self.open(mod) return mod end

  -- What is made of passes has been compared pass by pass.
  function self.close(before, after, info, told)
    if before == after or told then return end
    local same, reason = oracle(before, after, options)
    if same == false then fail(info, "changes what is computed: %s", reason) end
    if same == nil and not skip then
      fail(info, "cannot be checked by the oracle: %s", reason)
    elseif same == nil then
      self.skipped[#self.skipped + 1] = { name = info.name, reason = reason }
    else
      self.compared = self.compared + 1
    end
  end

  return self
end
