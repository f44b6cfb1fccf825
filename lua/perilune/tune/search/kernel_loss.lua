--- What kernels take beyond what they would at the rate of the best of them: those that lose the
-- most have the most to gain, however long the others take.
--
-- The rate is operations a second of the kernel that has the most, so that a replay of the recorded
-- times gives the same order. A kernel that may be computed in another way, with fewer operations,
-- may gain all of its time.

require "perilune.core".internal() -- errors name the scripts of others

local features = require "perilune.tune.cost.program_features"

local kernel_loss = {}

-- The number of floating-point operations among the features, which are logarithms.
local OPERATIONS = 1

-- Decisions between ways to compute that have other numbers of operations.
local other_operations = { winograd = true }

--- The floating-point operations of a module of PrimFuncs.
function kernel_loss.operations(mod) return 2 ^ features(mod)[OPERATIONS] - 1 end

--- Whether one of the decisions changes what is computed.
function kernel_loss.is_free(decisions)
  for _, row in ipairs(decisions) do
    if other_operations[row.name] then return true end
  end
  return false
end

--- Sets the loss of rows { seconds = (of a call), calls =, operations =, free = }: seconds of all
-- calls.
function kernel_loss.set(rows)
  local rate = 0
  for _, row in ipairs(rows) do
    if row.seconds > 0 then rate = math.max(rate, row.operations / row.seconds) end
  end
  for _, row in ipairs(rows) do
    local least = rate > 0 and not row.free and row.operations / rate or 0
    row.loss = math.max(0, row.seconds - least) * row.calls
  end
end

return kernel_loss
