--- perilune: tensor programs, optimised by pipelines written in Lua.
--
--     local pl = require "perilune"
--     local model = assert(pl.onnx.load "model.onnx")
--     local small = pl.sequential { "SimplifyExpr", "FoldConstant" } (model)
--     assert(pl.onnx.save(small, "small.onnx"))
--
-- This file puts the parts together; lua/README.md says which part is where,
-- lua/types/perilune.lua describes every name.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"

local analysis = require "perilune.ir.analysis"
local ir = require "perilune.ir"
local lazy = require "perilune.lazy"
local pass = require "perilune.pass"
local mutator = require "perilune.ir.mutator"
local rule = require "perilune.rule"
local vars = require "perilune.ir.vars"
local visitor = require "perilune.ir.visitor"

local profile = lazy "perilune.profile"

local pl = {
  _VERSION = core._VERSION,

  op = require "perilune.ir.op",
  op_attr = require "perilune.ir.op_attr",
  ops = require "perilune.ir.operators",
  ir = ir,
  tensor = require "perilune.ir.tensor",
  onnx = require "perilune.onnx",
  target = require "perilune.target",
  passes = require "perilune.pass.passes",
  pipelines = require "perilune.pipelines".public,
  config = require "perilune.pass.config",
  mutator = mutator.make,
  rules = rule.rules,
  why_not = require "perilune.rule.why_not",
  rewrite = mutator.rewrite,
  visitor = visitor.make,
  post_order = visitor.post_order,
  detect_feature = analysis.detect_feature,
  features = analysis.features,
  list_op_freqs = analysis.list_op_freqs,
  extract_operators = analysis.extract_operators,
  get_total_mac_number = analysis.get_total_mac_number,
  cost = core.cost,
  bind = vars.bind,
  renew_defs = vars.renew_defs,
  all_vars = vars.all_vars,
  bound_vars = vars.bound_vars,
  free_vars = vars.free_vars,
  all_type_vars = vars.all_type_vars,
  bound_type_vars = vars.bound_type_vars,
  free_type_vars = vars.free_type_vars,

  var = ir.Var,
  const = ir.Constant,
  tuple = ir.Tuple,
  func = ir.Function,
  let = ir.Let,
  if_ = ir.If,
  match = ir.Match,
  global = ir.GlobalVar,
  call = ir.Call,
  type = ir.type,
  module = core.module,
  builder = core.builder,

  function_pass = pass.function_pass,
  module_pass = pass.module_pass,
  prim_func_pass = pass.prim_func_pass,
  pass_class = pass.pass_class,
  sequential = pass.sequential,
  fixpoint = pass.fixpoint,
  try = pass.try,
  if_changed = pass.if_changed,
  functions = pass.functions,
  pipeline = core.pipeline,
  context = pass.context,
  current = core.current,
  with = pass.with,
  layout_config = pass.layout_config,
  report = core.report,
  rule_report = core.rule_report,
  cache_stats = core.cache_stats,
  cache_clear = core.cache_clear,

  diagnostics = core.diags,
  memory = core.memory,
  memory_pool = core.memory_pool,
  blas = core.blas,
  seed = core.seed,
  guard_coroutines = core.guard_coroutines,
}

--- The module that Relay text describes, or nil and a diagnostic: the first
-- error, with the others as its notes. The second argument is what messages call
-- the text, or { name =, init_module =, init_meta = }: functions, data types and
-- constants that the text may refer to beside its own.
pl.parse = core.text_parse

--- The expression that Relay text describes: a node, or nil and a diagnostic.
pl.parse_expr = core.text_parse_expr

--- Whether a path is that of a file of text: Relay's, or TVMScript.
local function is_text(path)
  local suffix = path:match "%.(%w+)$"
  return suffix == "relay" or suffix == "tir" or suffix == "tvmscript" or suffix == "py"
end

local function path_of(path, where)
  if type(path) ~= "string" then argument.string(path, where, "path") end
  return path
end

--- The module in a file, or nil and a diagnostic: NAME.relay is Relay text,
-- NAME.tir, NAME.tvmscript and NAME.py are TVMScript, all else is an ONNX model.
function pl.load(path)
  if is_text(path_of(path, "pl.load")) then return core.text_load(path) end
  return pl.onnx.load(path)
end

--- Writes a module to a file: text to NAME.relay, NAME.tir, NAME.tvmscript and NAME.py, else an
-- ONNX model, with the options of pl.onnx.save. True, or nil and a diagnostic.
function pl.save(module, path, options)
  if is_text(path_of(path, "pl.save")) then return core.text_save(module, path) end
  return pl.onnx.save(module, path, options)
end

local compare_options = { "map_free_vars", "contents" }

--- Whether two modules, functions, expressions, types or tensors are the same
-- by structure, as Relay defines it: names of bound variables do not count,
-- sharing does. Free variables are equal to themselves only, unless
-- `options.map_free_vars`. Constants over 1 KiB are equal when they are the same
-- buffer or slice of a file; with `options.contents` they are compared by what they
-- hold.
function pl.equal(a, b, options)
  argument.options(options, "pl.equal", compare_options)
  local kind = ir.kind_of(a)
  local map = options and options.map_free_vars or false
  if kind ~= ir.kind_of(b) then return false end
  local contents = options and options.contents or false
  if kind == "Module" and not (map or contents) then return core.module_equal(a, b) end
  if kind == "Module" then return core.module_mismatch(a, b, map, contents) == nil end
  if kind == "Node" and not contents then return core.node_equal(a, b, map) end
  if kind == "Node" then return core.node_mismatch(a, b, map, contents) == nil end
  if kind == "Type" then return core.type_equal(a, b, map) end
  if kind == "Tensor" then return a:equal(b) end
  return a == b
end

--- A hash that agrees with pl.equal under the same options.
function pl.hash(a, options)
  argument.options(options, "pl.hash", compare_options)
  local kind = ir.kind_of(a)
  local map = options and options.map_free_vars or false
  if kind == "Module" then return core.module_hash(a) end
  if kind == "Node" then return core.node_hash(a, map) end
  if kind == "Type" then return core.type_hash(a, map) end
  argument.fail(("pl.hash: a module, function, expression or type expected, got %s"):format(kind))
end

--- Where two modules, functions or expressions differ first: a text such as
-- "@main.body.args[0].attrs.axis: 1 versus 2" and the two nodes; nil when they
-- are equal.
function pl.mismatch(a, b, options)
  argument.options(options, "pl.mismatch", compare_options)
  local kind = ir.kind_of(a)
  local map = options and options.map_free_vars or false
  local contents = options and options.contents or false
  if kind == ir.kind_of(b) then
    if kind == "Module" then return core.module_mismatch(a, b, map, contents) end
    if kind == "Node" then return core.node_mismatch(a, b, map, contents) end
  end
  if pl.equal(a, b, options) then return nil end
  return ("%s versus %s"):format(kind == ir.kind_of(b) and tostring(a) or kind,
    kind == ir.kind_of(b) and tostring(b) or ir.kind_of(b))
end

--- Raises unless pl.equal: with the place of the first difference and both
-- nodes printed. Gives `a`.
function pl.assert_equal(a, b, options)
  local text, x, y = pl.mismatch(a, b, options)
  if not text then return a end
  if x then text = ("%s\nthe first has\n%s\nthe second has\n%s"):format(text, x, y) end
  argument.fail("not equal: " .. text)
end

--- The immediate post-dominators in a function: a table from each node to the
-- nearest node that all ways of its value lead through. Nodes without one (a
-- result, a value that is bound, one with effects) are not in it.
function pl.dominators(fn) return core.dominators(fn) end

--- Whether a program is in basic block normal form: no value that branches, arms or
-- nested functions need is left unbound, as ToBasicBlockNormalForm makes it. false comes
-- with a node that is not as it should be.
function pl.is_basic_block_normal_form(a)
  if ir.kind_of(a) ~= "Module" then return core.basic_blocks(a) end
  for _, fn in pairs(a) do
    local holds, node = core.basic_blocks(fn)
    if not holds then return holds, node end
  end
  return true
end

--- A function with less in place of some of its nodes: `changes` maps nodes to "free" (a
-- new free variable), "zero" (a constant of zeros), "value" (of a Let: it goes, its
-- variable is the value) or k (operand k; of an If branch k). Whether the other nodes
-- bear the types that they see then, pl.verify tells.
function pl.shrink(fn, changes) return core.shrink(fn, changes) end

--- A module or an expression with the types that follow from what is known, or
-- nil and a diagnostic when they contradict each other. The very same one comes
-- back when there is nothing to find. `mod` says what an expression's globals and
-- constructors are.
function pl.infer_type(a, mod)
  if ir.kind_of(a) == "Module" then return core.infer_module(a) end
  return core.infer_type(a, mod)
end

--- The kind of a type: "Type", "Constraint", "AdtHandle", ...; nil and a diagnostic
-- when one of its parts is of another kind than its place wants. `mod` knows the
-- data types.
function pl.check_kind(spec, mod) return core.check_kind(ir.type(spec), mod) end

--- The patterns of the cases that no arm of `match` covers, none when it is
-- complete; nil and a diagnostic when `mod`, which has the data types, lacks one.
function pl.unmatched_cases(match, mod)
  local cases, diag = core.unmatched_cases(match, mod)
  if not cases then return nil, diag end
  return cases.patterns
end

--- Checks every rule of the IR: true, or nil and a diagnostic.
function pl.verify(a)
  if ir.kind_of(a) == "Module" then return core.verify_module(a) end
  return core.verify_node(a)
end

--- Whether a program is well-formed as Relay has it: every rule of the IR holds,
-- and each variable is bound once at the most, not after it appeared free, and
-- not used after its scope ended. true, or nil and a diagnostic.
function pl.well_formed(a)
  if ir.kind_of(a) == "Module" then return core.well_formed_module(a) end
  local ok, result, diag = pcall(core.well_formed_node, a)
  if ok then return result, diag end
  -- What is built freely is laid out first; that tells what no scope can hold.
  local code = ir.kind_of(a) == "Node" and type(result) ~= "string" and result.code
  if code == "type" or code == "invalid" then return nil, result end
  argument.fail(result)
end

-- What Lua's stack holds of the arguments of a call.
local MOST_ARGUMENTS = 250000
-- Options of pl.eval, and `n`, the number of elements where some are nil.
local eval_options = { threads = true, profile = true, n = true }

local function check_eval_options(call)
  for key in pairs(call) do
    if type(key) == "string" and not eval_options[key] then
      argument.fail(("pl.eval has no option '%s'%s"):format(key,
        core.suggest(key, { "threads", "profile" })))
    end
  end
  local n = call.n or #call
  if math.type(n) ~= "integer" or n < 0 or n > MOST_ARGUMENTS then
    argument.fail(("pl.eval: n: the number of arguments, up to %d, expected, got %s"):format(
      MOST_ARGUMENTS, tostring(n)))
  end
  if call.profile and not profile.is(call.profile) then
    argument.fail("pl.eval: the option 'profile' is a value that pl.profile() has made")
  end
end

-- The limits are those of the current context.
local function eval_with_options(call)
  check_eval_options(call)
  local config = { threads = call.threads }
  for key, value in pairs(pl.current().config) do
    if config[key] == nil then config[key] = value end
  end
  local ctx, n = pl.context { config = config }, call.n or #call
  if call.profile then
    return profile.collect(call.profile, pl.with, ctx, pl.eval, table.unpack(call, 1, n))
  end
  return pl.with(ctx, pl.eval, table.unpack(call, 1, n))
end

-- The PrimFunc that is run: the callee, or the only function of the module.
local function loop_level_function(callee)
  if ir.kind_of(callee) == "Node" then return callee.kind == "PrimFunc" and callee or nil end
  if ir.kind_of(callee) ~= "Module" then return nil end
  local only = nil
  for _, one in pairs(callee) do
    if only or one.kind ~= "PrimFunc" then return nil end
    only = one
  end
  return only
end

--- Runs a function, the module's main, or an expression without free
-- variables. Arguments are tensors, numbers or nested tables, for a sequence a
-- table of tensors, nil for what is left out; a tuple's fields come back as so
-- many results. `pl.eval(mod, "name", ...)` runs another
-- function of a module. A PrimFunc gives its buffers (pl.tir.run).
-- `pl.eval { mod, ..., threads = 2 }` is a call with options.
function pl.eval(callee, ...)
  local name = ...
  if type(callee) == "table" then return eval_with_options(callee) end
  local loops = loop_level_function(callee)
  if loops then return table.unpack(pl.tir.run(loops, { ... })) end
  if ir.kind_of(callee) ~= "Module" or type(name) ~= "string" then
    return core.eval(callee, ...)
  end
  local fn = callee.functions[name]
  if not fn then argument.fail(("pl.eval: the module has no function '%s'"):format(name)) end
  return core.eval_in(callee, fn, select(2, ...))
end

-- A Function, or what a GlobalVar names in `mod`.
local function named_function(fn, mod, caller)
  if ir.kind_of(fn) == "Node" and fn.kind == "GlobalVar" then
    local named = mod.functions[fn.name]
    if not named then
      argument.fail(("%s: the module has no function '%s'"):format(caller, fn.name))
    end
    fn = named
  end
  if ir.kind_of(fn) ~= "Node" or fn.kind ~= "Function" then
    argument.fail(("%s: a function expected, got %s"):format(caller, ir.kind_of(fn)))
  end
  return fn
end

local gradient_options = { "mod", "mode" }

--- The gradient of a function of tensors: a function of the same parameters that returns
-- the result and a tuple of the gradients with respect to them. `mod` has the functions
-- that it calls; the module with their gradients (@f_grad) is the second result. `mode` is
-- "higher_order", or "first_order" for pure dataflow.
function pl.gradient(fn, options)
  options = argument.options(options, "pl.gradient", gradient_options)
  local mod = options.mod or pl.module {}
  fn = named_function(fn, mod, "pl.gradient")
  local out = pl.passes.Gradient { mode = options.mode or "higher_order" }(mod:with { main = fn })
  return out.functions.main, out
end

--- The function in first-order form: functions that are values are data, and calls of
-- them calls of functions of the module. `mod` has the functions that it calls. The
-- module with the types and functions that were made, the function its @main, is the
-- second result.
function pl.defunctionalization(fn, mod)
  mod = mod or pl.module {}
  if ir.kind_of(mod) ~= "Module" then
    argument.fail("pl.defunctionalization: a module expected, got " .. ir.kind_of(mod))
  end
  fn = named_function(fn, mod, "pl.defunctionalization")
  local out = pl.passes.Defunctionalization()(mod:with { main = fn })
  return out.functions.main, out
end

-- Parts that most scripts do not use are loaded at their first use: the module of each, and
-- the field of the module that is meant.
local parts = {
  arith = { "perilune.arith" },
  bisect = { "perilune.debug.bisect" },
  build = { "perilune.codegen" },
  check = { "perilune.check" },
  dataflow_pattern = { "perilune.dataflow_pattern" },
  instruments = { "perilune.instruments" },
  lower = { "perilune.lower" },
  pass_properties = { "perilune.pass.properties" },
  pattern_table = { "perilune.dataflow_pattern.table", "pattern_table" },
  predicate = { "perilune.debug.predicate", "make" },
  profile = { "perilune.profile", "new" },
  reduce = { "perilune.debug.reduce" },
  reproducer = { "perilune.debug.reproducer" },
  rule_expression = { "perilune.rule.expression", "public" },
  te = { "perilune.te" },
  tir = { "perilune.tir" },
  topi = { "perilune.topi" },
  tune = { "perilune.tune" },
  validate = { "perilune.pass.validate" },
}

local function load_part(self, name)
  local row = parts[name]
  if not row then return nil end
  local part = require(row[1])
  if row[2] then part = part[row[2]] end
  rawset(self, name, part)
  return part
end

return setmetatable(pl, {
  __index = load_part,
  __pairs = function(self)
    for name in pairs(parts) do
      if rawget(self, name) == nil then load_part(self, name) end
    end
    return next, self, nil
  end,
})
