--- What the evaluator says of two modules, for those who ask it again and again:
-- the instrument and the predicate of that name.

require "perilune.core".internal()

--- Whether @main of both computes the same: true; false and the first difference;
-- nil and the reason why the evaluator cannot tell (no @main, an operator without
-- kernel). `options` are those of pl.check.
return function(before, after, options)
  if not before.functions.main or not after.functions.main then return nil, "no @main" end
  local same, diag = require "perilune.check" (before, after, options)
  if same then return true end
  if diag.message:find "^no round could be compared" then return nil, diag.message end
  return false, diag.message
end
