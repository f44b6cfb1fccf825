--- pl.dataflow_pattern: TVM's dataflow pattern language (relay.dataflow_pattern).
--
--     local df = pl.dataflow_pattern
--     local x, w, b = df.wildcard(), df.wildcard(), df.is_constant()
--     local conv = df.is_op "nn.conv2d" (x, w)
--     local pattern = df.is_op "nn.relu" (conv:optional(function(y)
--       return df.is_op "nn.bias_add" (y, b)
--     end))
--     pattern:match(expr)                                    --> true or false
--     pattern:partition(fn, { Composite = "conv_relu" })     --> fn with composites
--     df.rewrite({ pattern = pattern, callback = function(pre, post, node_map)
--       return pl.op.tanh(node_map[x][1])
--     end }, fn)
--
-- A pattern is an immutable graph of pattern objects; the engine compiles and matches
-- it. One object matches one node in a match: used twice, it asks for the same node.
-- A wildcard that is redirected to a pattern around itself makes a recursive pattern,
-- each level of which is an instance of its own. `p(a, b)` matches a call of p with
-- those arguments, `p(nil)` one with any arguments. In expressions, nodes stand for
-- is_expr(node).
--
-- Semantics are TVM's. Unlike there, alternatives that matched are taken back when what
-- follows fails, and what a function or a branch of a partition captures becomes an
-- argument. A Let that is the tail of its block matches, but is not rewritten.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"
local pattern = require "perilune.dataflow_pattern.pattern"
local rewriter = require "perilune.dataflow_pattern.rewriter"

local make, as_pattern, methods = pattern.make, pattern.as_pattern, pattern.methods

local df = {}

-- --------------------------------------------------------------- constructors

local function list_of_patterns(list, where, what)
  argument.table(list, where, what)
  local patterns = {}
  for i = 1, #list do patterns[i] = as_pattern(list[i], where) end
  return patterns
end

--- Matches an expression that is equal by structure, or an operator.
function df.ExprPattern(expr)
  if argument.kind_of(expr) ~= "Op" then argument.node(expr, "is_expr", "expr") end
  return make("ExprPattern", { expr = expr })
end

--- Matches a variable, of that name if one is given.
function df.VarPattern(name)
  if name ~= nil then argument.string(name, "is_var", "name") end
  return make("VarPattern", { name = name or "" })
end

--- Matches a constant.
function df.ConstantPattern() return make("ConstantPattern", {}) end

--- Matches everything; see redirect_to.
function df.WildcardPattern() return make("WildcardPattern", {}) end

--- Matches a call of `op` with these arguments; without a list, with any.
function df.CallPattern(op, args)
  return make("CallPattern", { op = as_pattern(op, "CallPattern"),
    args = args and list_of_patterns(args, "CallPattern", "args") })
end

--- Matches a function of these parameters (without a list, of any) and this body.
function df.FunctionPattern(params, body)
  return make("FunctionPattern", {
    params = params and list_of_patterns(params, "FunctionPattern", "params"),
    body = as_pattern(body, "FunctionPattern") })
end

function df.LetPattern(var, value, body)
  return make("LetPattern", { var = as_pattern(var, "is_let"), value = as_pattern(value, "is_let"),
    body = as_pattern(body, "is_let") })
end

function df.IfPattern(cond, true_branch, false_branch)
  return make("IfPattern", { cond = as_pattern(cond, "is_if"),
    true_branch = as_pattern(true_branch, "is_if"),
    false_branch = as_pattern(false_branch, "is_if") })
end

--- Matches a tuple of these fields; without a list, of any.
function df.TuplePattern(fields)
  fields = fields and list_of_patterns(fields, "is_tuple", "fields")
  return make("TuplePattern", { fields = fields })
end

--- Matches field `index` of a tuple, counted from 0; without an index, any.
function df.TupleGetItemPattern(tuple, index)
  if index == -1 then index = nil end
  if index ~= nil and (math.type(index) ~= "integer" or index < 0 or index >= 1 << 31) then
    argument.fail(("is_tuple_get_item: index: an integer from 0 expected, got %s"):format(index))
  end
  return make("TupleGetItemPattern", { tuple = as_pattern(tuple, "is_tuple_get_item"),
    index = index })
end

--- Matches what `left` does, else what `right` does.
function df.AltPattern(left, right)
  return make("AltPattern", { left = as_pattern(left, "|"), right = as_pattern(right, "|") })
end

-- The operand of a test, by default anything.
local function tested(p, where)
  if p == nil then return df.WildcardPattern() end
  return as_pattern(p, where)
end

local function test_of_type(p, type_)
  return make("TypePattern", { pattern = tested(p, "has_type"), type = pattern.type(type_) })
end

local function test_of_dtype(p, dtype)
  argument.string(dtype, "has_dtype", "dtype")
  pattern.type { dtype = dtype } -- raises for a name that is none
  return make("DataTypePattern", { pattern = tested(p, "has_dtype"), dtype = dtype })
end

local function test_of_shape(p, shape)
  argument.table(shape, "has_shape", "shape")
  pattern.type { shape = shape }
  return make("ShapePattern", { pattern = tested(p, "has_shape"),
    shape = table.move(shape, 1, #shape, 1, {}) })
end

local function test_of_attrs(p, attrs)
  argument.table(attrs, "has_attr", "attrs")
  local copy = {}
  for name, value in pairs(attrs) do
    argument.string(name, "has_attr", "the name of an attribute")
    copy[name] = value
  end
  return make("AttrPattern", { pattern = tested(p, "has_attr"), attrs = copy })
end

df.TypePattern, df.DataTypePattern = test_of_type, test_of_dtype
df.ShapePattern, df.AttrPattern = test_of_shape, test_of_attrs

--- Matches what `child` does if all that it is computed of leads through nodes that
-- match `path` to one node that matches `parent`, and all uses of that node lead to it.
function df.DominatorPattern(parent, path, child)
  return make("DominatorPattern", { parent = as_pattern(parent, "dominates"),
    path = as_pattern(path, "dominates"), child = as_pattern(child, "dominates") })
end

-- ------------------------------------------------------------------ functions

df.is_var, df.is_constant, df.is_expr = df.VarPattern, df.ConstantPattern, df.ExprPattern
df.wildcard, df.is_if, df.is_let = df.WildcardPattern, df.IfPattern, df.LetPattern
df.is_tuple, df.is_tuple_get_item = df.TuplePattern, df.TupleGetItemPattern
df.is_function, df.dominates = df.FunctionPattern, df.DominatorPattern

--- Matches an operator.
function df.is_op(name) return make("ExprPattern", { expr = pattern.find_op(name) }) end

--- Matches what `p` does (by default everything) if it has that type, dtype or shape.
function df.has_type(type_, p) return test_of_type(p, type_) end
function df.has_dtype(dtype, p) return test_of_dtype(p, dtype) end
function df.has_shape(shape, p) return test_of_shape(p, shape) end

--- Matches what `p` does (by default everything) if it has all of these attributes: an
-- operator those of the registry (TOpPattern, TNonComputational, TOpIsStateful), a call
-- its own and their defaults, a function its own.
function df.has_attr(attrs, p) return test_of_attrs(p, attrs) end

function df.match(p, expr, options) return as_pattern(p, "match"):match(expr, options) end

function df.partition(p, expr, attrs, check, options)
  return as_pattern(p, "partition"):partition(expr, attrs, check, options)
end

df.DFPatternCallback = rewriter.callback
df.rewrite = rewriter.rewrite

-- -------------------------------------------------------------------- methods

function methods:has_type(type_) return test_of_type(self, type_) end
function methods:has_dtype(dtype) return test_of_dtype(self, dtype) end
function methods:has_shape(shape) return test_of_shape(self, shape) end
function methods:has_attr(attrs) return test_of_attrs(self, attrs) end

--- Matches what this does, or f of it: p | f(p).
function methods:optional(f)
  argument.callable(f, "optional", "f")
  return df.AltPattern(self, f(self))
end

--- dominates(parent, path, this); the path is anything by default.
function methods:dominates(parent, path)
  return df.DominatorPattern(parent, path or df.WildcardPattern(), self)
end

--- Whether an expression or operator matches. Options: lets (a variable that a let binds to
-- a value without an effect is that value, as in graph normal form; false by default, as in
-- TVM).
function methods:match(expr, options) return (pattern.match(self, expr, false, options)) end

--- What each pattern object matched, { [object] = { node, ... } }; nil if this does not
-- match. Options as of match.
function methods:extract_matched_expr(expr, options)
  local _, node_map = pattern.match(self, expr, true, options)
  return node_map
end

--- Each match becomes a call of a new function with the attribute
-- PartitionedFromPattern and those given. `check` gets the root of a match and says
-- whether it is to be one. Gives the new expression, function or module, or the same one
-- if nothing matches. Options as of match.
function methods:partition(expr, attrs, check, options)
  local lets = pattern.lets(options, "partition")
  if attrs ~= nil then argument.table(attrs, "partition", "attrs") end
  if check ~= nil then argument.callable(check, "partition", "check") end
  if self.kind == "FunctionPattern" then
    warn "perilune: partitioning a function that is not called makes no sense; it is left as it is"
    return expr
  end
  return rewriter.each_function(expr, "partition", function(node)
    return pattern.compiled(self):partition(node, check and function(root) return check(root) end,
      attrs or {}, lets)
  end)
end

--- Rewrites by one callback function of (pre, post, node_map); see df.rewrite.
function methods:rewrite(callback, expr, mod, options)
  return rewriter.rewrite({ pattern = self, callback = callback }, expr, mod, options)
end

local function binary(name)
  return function(a, b)
    return df.CallPattern(df.is_op(name), { as_pattern(a, name), as_pattern(b, name) })
  end
end

pattern.metamethods {
  __add = binary "add", __sub = binary "subtract", __mul = binary "multiply",
  __div = binary "divide",
  __unm = function(a) return df.CallPattern(df.is_op "negative", { a }) end,
  __bor = df.AltPattern,
  __call = function(op, ...)
    if select("#", ...) == 1 and (...) == nil then return df.CallPattern(op) end
    return df.CallPattern(op, { ... })
  end,
}

return df
