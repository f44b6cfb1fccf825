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

local ir = require "perilune.ir"
local pass = require "perilune.pass"
local visitor = require "perilune.visitor"

local pl = {
  _VERSION = core._VERSION,

  op = require "perilune.op",
  ir = ir,
  tensor = require "perilune.tensor",
  onnx = require "perilune.onnx",
  instruments = require "perilune.instruments",
  passes = require "perilune.passes",
  config = require "perilune.config",
  mutator = require "perilune.mutator",
  visitor = visitor.make,
  post_order = visitor.post_order,

  var = ir.Var,
  const = ir.Constant,
  tuple = ir.Tuple,
  func = ir.Function,
  let = ir.Let,
  if_ = ir.If,
  global = ir.GlobalVar,
  call = ir.Call,
  type = ir.type,
  module = core.module,
  builder = core.builder,

  function_pass = pass.function_pass,
  module_pass = pass.module_pass,
  prim_func_pass = pass.prim_func_pass,
  sequential = pass.sequential,
  fixpoint = pass.fixpoint,
  try = pass.try,
  if_changed = pass.if_changed,
  functions = pass.functions,
  pipeline = core.pipeline,
  context = pass.context,
  current = core.current,
  with = pass.with,
  report = core.report,
  check = require "perilune.check",

  diagnostics = core.diags,
  memory = core.memory,
  blas = core.blas,
  seed = core.seed,
}

--- The module in a file, or nil and a diagnostic.
function pl.load(path) return pl.onnx.load(path) end

--- Whether two modules, functions, expressions, types or tensors are the same
-- by structure: names of bound variables do not count, sharing does.
function pl.equal(a, b)
  local kind = ir.kind_of(a)
  if kind ~= ir.kind_of(b) then return false end
  if kind == "Module" then return core.module_equal(a, b) end
  if kind == "Node" then return core.node_equal(a, b, false) end
  if kind == "Tensor" then return a:equal(b) end
  return a == b
end

--- A hash that agrees with pl.equal.
function pl.hash(a)
  local kind = ir.kind_of(a)
  if kind == "Module" then return core.module_hash(a) end
  if kind == "Node" then return core.node_hash(a, false) end
  error(("pl.hash: a module, function or expression expected, got %s"):format(kind), 2)
end

--- The immediate post-dominators in a function: a table from each node to the
-- nearest node that all ways of its value lead through. Nodes without one (a
-- result, a value that is bound, one with effects) are not in it.
function pl.dominators(fn) return core.dominators(fn) end

--- Checks every rule of the IR: true, or nil and a diagnostic.
function pl.verify(a)
  if ir.kind_of(a) == "Module" then return core.verify_module(a) end
  return core.verify_node(a)
end

--- Runs a function, the module's main, or an expression without free
-- variables. Arguments are tensors, numbers or nested tables, for a sequence a
-- table of tensors, nil for what is left out; a tuple's fields come back as so
-- many results. `pl.eval(mod, "name", ...)` runs another
-- function of a module.
function pl.eval(callee, ...)
  local name = ...
  if ir.kind_of(callee) ~= "Module" or type(name) ~= "string" then
    return core.eval(callee, ...)
  end
  local fn = callee.functions[name]
  if not fn then error(("pl.eval: the module has no function '%s'"):format(name), 2) end
  return core.eval_in(callee, fn, select(2, ...))
end

return pl
