--- pl.lower: TVM's default lowering, from schedules and PrimFuncs to plain loops.
--
--     local loops = pl.lower(schedule, { args = { A, B } })
--     local loops = pl.lower(prim_func, { name = "add", simple_mode = true })
--
-- Runs the passes of phases 0 to 3 (the pass tir.lower; engine/lower/phases.def lists them) in
-- the current context, whose config is read when the list is made: tir.disable_vectorize,
-- tir.disable_storage_rewrite, tir.disable_cse_tir, tir.instrument_bound_checkers, tir.noalias and
-- tir.debug_keep_trivial_loop (which a schedule's to_module(args, name, options) gets as options),
-- and tir.add_lower_pass, a list of { phase, pass } or of texts "PHASE:PASS".

local argument = require "perilune.argument"
local core = require "perilune.core"
local ir = require "perilune.ir"
core.internal()

local option_names = { "name", "simple_mode", "args" }

-- TVM's LowerPrimFunc names the function and says that its buffers do not overlap.
local function module_of_function(fn, name)
  if fn.kind ~= "PrimFunc" then
    argument.fail(("pl.lower: a PrimFunc, a module or a schedule expected, got %s"):format(fn.kind))
  end
  local attrs = { global_symbol = name }
  if core.current():get "tir.noalias" then attrs["tir.noalias"] = true end
  return core.module { [name] = fn:with { attrs = attrs } }
end

local function to_module(x, options)
  local name = options.name or "main"
  if ir.kind_of(x) == "Module" then return x end
  if ir.kind_of(x) == "Node" then return module_of_function(x, name) end
  local kind = type(x)
  local found, convert = pcall(function()
    return (kind == "table" or kind == "userdata") and x.to_module or nil
  end)
  if not (found and convert) then
    argument.fail("pl.lower: a PrimFunc, a module or a schedule expected, got "
      .. argument.kind_of(x))
  end
  local context = core.current()
  return convert(x, options.args, name, { noalias = context:get "tir.noalias",
    debug_keep_trivial_loop = context:get "tir.debug_keep_trivial_loop" })
end

local function check_options(options)
  options = argument.options(options, "pl.lower", option_names)
  if options.name ~= nil then argument.string(options.name, "pl.lower", "name") end
  if options.args ~= nil then argument.table(options.args, "pl.lower", "args") end
  if options.simple_mode ~= nil and type(options.simple_mode) ~= "boolean" then
    argument.fail("pl.lower: simple_mode: true or false expected, got "
      .. argument.kind_of(options.simple_mode))
  end
  return options
end

--- The module of the lowered functions.
return function(x, options)
  options = check_options(options)
  local mod = to_module(x, options)
  return core.make("tir.lower", { simple_mode = options.simple_mode or false })(mod)
end
