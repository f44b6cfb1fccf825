-- Partial derivatives of an expression by the elements that it loads.
--
-- Reverse accumulation over the nodes, users before operands: each node is visited once.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"

local derivative = {}

local function zero(like) return operand.const(0.0, like.dtype) end

local function constant(number, like) return operand.const(number, like.dtype) end

-- By builtin: the derivatives by its arguments, times the adjoint `a` of the call.
local calls = {
  exp = function(node, a) return a * node end,
  exp2 = function(node, a) return a * node * constant(math.log(2), node) end,
  exp10 = function(node, a) return a * node * constant(math.log(10), node) end,
  log = function(_, a, x) return a / x end,
  log2 = function(_, a, x) return a / (x * constant(math.log(2), x)) end,
  log10 = function(_, a, x) return a / (x * constant(math.log(10), x)) end,
  log1p = function(_, a, x) return a / (x + constant(1.0, x)) end,
  sqrt = function(node, a) return a / (node * constant(2.0, node)) end,
  rsqrt = function(node, a, x) return a * node / x * constant(-0.5, node) end,
  sigmoid = function(node, a) return a * node * (constant(1.0, node) - node) end,
  tanh = function(node, a) return a * (constant(1.0, node) - node * node) end,
  sin = function(_, a, x) return a * tir.cos(x) end,
  cos = function(_, a, x) return zero(x) - a * tir.sin(x) end,
  tan = function(node, a) return a * (constant(1.0, node) + node * node) end,
  sinh = function(_, a, x) return a * tir.cosh(x) end,
  cosh = function(_, a, x) return a * tir.sinh(x) end,
  asin = function(_, a, x) return a * tir.rsqrt(constant(1.0, x) - x * x) end,
  acos = function(_, a, x) return zero(x) - a * tir.rsqrt(constant(1.0, x) - x * x) end,
  atan = function(_, a, x) return a / (constant(1.0, x) + x * x) end,
  erf = function(_, a, x)
    return a * constant(2 / math.sqrt(math.pi), x) * tir.exp(zero(x) - x * x)
  end,
  fabs = function(_, a, x) return tir.Select(tir.GE(x, zero(x)), a, zero(a) - a) end,
  pow = function(node, a, x, y)
    return a * y * tir.power(x, y - constant(1.0, y)), a * node * tir.log(x)
  end,
  if_then_else = function(_, a, condition)
    return nil, tir.if_then_else(condition, a, zero(a)), tir.if_then_else(condition, zero(a), a)
  end,
}

-- Functions that are constant wherever they have a derivative.
for _, name in ipairs { "floor", "ceil", "trunc", "round", "nearbyint", "isnan" } do
  calls[name] = function() return nil end
end

-- By kind: the operands, and their derivatives times the adjoint.
local kinds = {
  Add = { "a", "b", function(_, a) return a, a end },
  Sub = { "a", "b", function(_, a) return a, zero(a) - a end },
  Mul = { "a", "b", function(_, a, x, y) return a * y, a * x end },
  Div = { "a", "b", function(_, a, x, y) return a / y, zero(a) - a * x / (y * y) end },
  Min = { "a", "b", function(_, a, x, y)
    local first = tir.LE(x, y)
    return tir.Select(first, a, zero(a)), tir.Select(first, zero(a), a)
  end },
  Max = { "a", "b", function(_, a, x, y)
    local first = tir.GE(x, y)
    return tir.Select(first, a, zero(a)), tir.Select(first, zero(a), a)
  end },
  Cast = { "value", function(_, a, x) return operand.cast(x.dtype, a) end },
  Select = { "condition", "true_value", "false_value", function(_, a, condition)
    return nil, tir.Select(condition, a, zero(a)), tir.Select(condition, zero(a), a)
  end },
}

local function builtin_of(node) return (node.builtin or ""):gsub("^tir%.", "") end

-- The operands that a derivative goes through, and the rule.
local function rule_of(node)
  if node.kind == "PrimCall" then return node.args, calls[builtin_of(node)] end
  local row, operands = kinds[node.kind], {}
  if not row then return {}, nil end
  for i = 1, #row - 1 do operands[i] = node[row[i]] end
  return operands, row[#row]
end

-- The nodes in the order of evaluation, and which of them depend on a load that is wanted.
local function dependent(root, is_wanted)
  local order, depends = {}, {}
  tir.post_order(root, function(node)
    order[#order + 1] = node
    depends[node] = is_wanted(node)
    if depends[node] or node.kind == "ProducerLoad" then return end
    for _, each in ipairs((rule_of(node))) do depends[node] = depends[node] or depends[each] end
  end)
  return order, depends
end

local function refuse(node)
  local what = node.kind == "PrimCall" and "T." .. builtin_of(node) or node.kind
  argument.fail(("te.gradient: the derivative of %s is not known: %s"):format(what,
    tostring(node)))
end

local function pass_down(node, adjoints, depends)
  local operands, rule = rule_of(node)
  if not rule then refuse(node) end
  local parts = table.pack(rule(node, adjoints[node], table.unpack(operands)))
  for i, each in ipairs(operands) do
    if depends[each] and parts[i] ~= nil and operand.is_float(each.dtype) then
      adjoints[each] = adjoints[each] and adjoints[each] + parts[i] or parts[i]
    end
  end
end

--- For each ProducerLoad in the expression for which is_wanted(node) holds: { load, derivative },
-- in the order of evaluation.
function derivative.by_loads(root, is_wanted)
  root = core.seal(root)
  local order, depends = dependent(root, is_wanted)
  local adjoints, found = {}, {}
  local last = order[#order]
  if not depends[last] then return found end
  adjoints[last] = operand.const(1.0, root.dtype)
  for i = #order, 1, -1 do
    local node = order[i]
    if adjoints[node] and depends[node] then
      if is_wanted(node) then
        table.insert(found, 1, { load = node, derivative = adjoints[node] })
      else
        pass_down(node, adjoints, depends)
      end
    end
  end
  return found
end

return derivative
