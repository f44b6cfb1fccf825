--- What the evaluator says of two modules, for those who ask it again and again:
-- the instrument and the predicate of that name.

require "perilune.core".internal()

local loops = require "perilune.tir.check"

-- Of a table by name of the input what `module` has still: reducing drops inputs.
local function of_inputs(module, by_name)
  local left, names = {}, {}
  for i, param in ipairs(module.functions.main.params) do
    names[param.name], names[i] = true, true
  end
  for name, value in pairs(by_name) do
    if names[name] then left[name] = value end
  end
  return left
end

-- What pl.check takes.
local function of_check(options, module)
  local given = {}
  for name, value in pairs(options) do
    if name ~= "prepare" and name ~= "skip" then given[name] = value end
  end
  for _, name in ipairs { "shapes", "example" } do
    if given[name] then given[name] = of_inputs(module, given[name]) end
  end
  if given.data then
    given.data = {}
    for i, set in ipairs(options.data) do given.data[i] = of_inputs(module, set) end
  end
  return given
end

-- Modules of PrimFuncs are run by the interpreter of loops.
local function of_loops(before, after, options)
  local same, diag = loops.check(before, after, loops.options_of(options))
  if same then return true end
  if diag.code ~= "invalid" then return nil, diag.message end
  return false, diag.message
end

--- Whether @main of both, or their PrimFuncs, compute the same: true; false and the first
-- difference; nil and the reason why the evaluator cannot tell (no @main, an operator
-- without kernel, no inputs that both take, a limit). `options` are those of pl.check,
-- and `prepare`, a function that both modules go through first.
return function(before, after, options)
  options = options or {}
  if loops.is_loop_level(before) and loops.is_loop_level(after) then
    return of_loops(before, after, options)
  end
  if not before.functions.main or not after.functions.main then return nil, "no @main" end
  if options.prepare then before, after = options.prepare(before), options.prepare(after) end
  local same, diag = require "perilune.check" (before, after,
    of_check(options, before))
  if same then return true end
  if diag.code ~= "invalid" then return nil, diag.message end
  return false, diag.message
end
