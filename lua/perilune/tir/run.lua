-- Running PrimFuncs: pl.tir.run.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local ir = require "perilune.ir"

local run = {}

local option_names = { "uninitialized", "externs" }

--- The PrimFunc that a program is: itself, or the only one of a module.
function run.prim_func(program, where)
  if ir.kind_of(program) ~= "Module" then
    argument.node(program, where, "func")
    if program.kind == "PrimFunc" then return program end
    argument.fail(("%s: a PrimFunc expected, got a %s"):format(where, program.kind))
  end
  local found, count = nil, 0
  for _, fn in pairs(program) do
    if fn.kind == "PrimFunc" then found, count = fn, count + 1 end
  end
  if count ~= 1 then
    argument.fail(("%s: the module has %d PrimFuncs; give one of its functions"):format(where,
      count))
  end
  return found
end

--- The options of core.loop_run.
function run.options(options, where)
  options = argument.options(options, where, option_names)
  local memory = options.uninitialized or "error"
  if memory ~= "error" and memory ~= "zero" then
    argument.fail(("%s: uninitialized is \"error\" or \"zero\""):format(where))
  end
  for name, fn in pairs(argument.options(options.externs, where)) do
    argument.string(name, where, "the name of an extern")
    argument.callable(fn, where, name)
  end
  return { zero_memory = memory == "zero", externs = options.externs }
end

--- Runs a PrimFunc, or the only one of a module, on a list of arguments: tensors or nested tables
-- for buffers, numbers for scalars. The result is a list of tensors: what each buffer parameter is
-- after the run, the very argument if it was not written. Arguments are not changed.
--
-- Options: `uninitialized` "error" (the default: reading an element that the program allocated
-- and did not write fails) or "zero" (it is 0); `externs`, functions by name for
-- call_extern and call_packed, which take and return numbers.
function run.run(func, args, options)
  local fn = run.prim_func(func, "tir.run")
  argument.table(args, "tir.run", "args")
  return core.loop_run(fn, args, run.options(options, "tir.run"))
end

return run
