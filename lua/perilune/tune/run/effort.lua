--- A runner that takes a part of the pairs of blocks, 10 at least; or several times as many, and
-- does not end before because little speaks for a difference.

require "perilune.core".internal() -- errors name the scripts of others

return function(runner, effort)
  if effort == 1 then return runner end
  return setmetatable({ pairs = math.max(10, math.ceil(runner.pairs * effort)),
    patient = effort > 1 }, { __index = runner })
end
