--- Tensor expressions and their schedules, by TVM's names.
--
--     local te = pl.te
--     local n = te.var("n")
--     local A, B = te.placeholder({ n }, "float32", "A"), te.placeholder({ n }, "float32", "B")
--     local C = te.compute({ n }, function(i) return A[{ i }] + B[{ i }] end, "C")
--     local s = te.create_schedule(C.op)
--     local outer, inner = s[C]:split(C.op.axis[1], 64)
--     print(s:to_module({ A, B, C }, "add"))

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operand = require "perilune.tir.operand"
local operation = require "perilune.te.operation"
local schedule = require "perilune.te.schedule"
local tir = require "perilune.tir"

local te = {
  placeholder = operation.placeholder, compute = operation.compute, scan = operation.scan,
  extern = operation.extern, tag_scope = operation.tag_scope,
  create_schedule = schedule.create_schedule, scan_get_body = operation.scan_get_body,
  scan_fix_point_analysis = operation.scan_fix_point_analysis,
  decl_tensor_intrin = require "perilune.te.tensor_intrin".decl_tensor_intrin,
  create_prim_func = require "perilune.te.create_prim_func",
  const = operand.const, comm_reducer = tir.comm_reducer,
  AXIS_SEPARATOR = tir.IndexMap.AXIS_SEPARATOR,
}

-- What is computed of values is as in pl.tir.
for _, name in ipairs {
  "sum", "min", "max", "any", "all", "if_then_else", "exp", "log", "sqrt", "rsqrt", "tanh",
  "sigmoid", "erf", "sin", "cos", "tan", "floor", "ceil", "trunc", "round", "abs", "power", "fmod",
  "isnan", "isinf", "isfinite", "div", "indexdiv", "indexmod", "truncdiv", "truncmod", "floordiv",
  "floormod", "max_value", "min_value",
} do
  te[name] = tir[name]
end

--- See perilune.te.gradient, which is loaded at its first use.
function te.gradient(output, inputs, head)
  return require "perilune.te.gradient"(output, inputs, head)
end

--- A variable, such as a size: te.var("n").
function te.var(name, dtype) return tir.Var(name or "tindex", dtype or "int32") end

--- A variable that is no less than 0.
function te.size_var(name, dtype) return tir.SizeVar(name or "size", dtype or "int32") end

--- An axis to reduce over: te.reduce_axis({ 0, n }, "k").
function te.reduce_axis(dom, name)
  if type(dom) == "number" then dom = { 0, dom } end
  if type(dom) == "table" and #dom ~= 2 then
    argument.fail("te.reduce_axis: a domain is { first, last }")
  end
  return tir.IterVar(dom, name or "rv", "CommReduce")
end

--- An axis of threads: te.thread_axis("threadIdx.x"), or te.thread_axis({ 0, 8 }, "vthread").
function te.thread_axis(dom, tag, name)
  if type(dom) == "string" then dom, tag, name = nil, dom, tag end
  if type(tag) ~= "string" or tag == "" then
    argument.fail("te.thread_axis: a tag such as \"threadIdx.x\" is expected")
  end
  if type(dom) == "number" then dom = { 0, dom } end
  return tir.IterVar(dom, name or tag, "ThreadIndex", tag)
end

-- Functions of loops are loaded at their first use.
return setmetatable(te, { __index = function(_, name)
  if name ~= "hybrid" then return nil end
  te.hybrid = require "perilune.te.hybrid"
  return te.hybrid
end })
