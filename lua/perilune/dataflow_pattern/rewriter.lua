--- Rewriting by callbacks: rounds over all of them until nothing changes.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"
local pattern = require "perilune.dataflow_pattern.pattern"
local vars = require "perilune.ir.vars"

local rewriter = {}

local MOST_ROUNDS = 100
-- A program that grows by half or more in so many rounds one after another, grows for ever.
local MOST_GROWING = 14

local class = { __name = "DFPatternCallback" }
class.__index = class

local fields = { "pattern", "callback", "require_type", "rewrite_once", "name" }

--- A callback: { pattern =, callback = function(pre, post, node_map), require_type =,
-- rewrite_once =, name = }. The function gets a matched node, the same with rewritten
-- operands, and { [pattern object] = { node, ... } }; it gives the node to use instead, or
-- nil. With require_type types are inferred first; with rewrite_once the callback is not
-- used again after the first round in which it changed something.
function rewriter.callback(spec)
  argument.options(spec, "DFPatternCallback", fields)
  argument.table(spec, "DFPatternCallback", "callback")
  argument.callable(spec.callback, "DFPatternCallback", "callback")
  if spec.name ~= nil then argument.string(spec.name, "DFPatternCallback", "name") end
  return setmetatable({ pattern = pattern.as_pattern(spec.pattern, "DFPatternCallback: pattern"),
    callback = spec.callback, require_type = spec.require_type, rewrite_once = spec.rewrite_once,
    name = spec.name }, class)
end

--- Rewrites an expression by this callback alone.
function class:rewrite(expr, mod, options)
  return rewriter.rewrite(self, expr, mod, options)
end

--- Applies f to an expression, or to each function of a module and its name.
function rewriter.each_function(program, where, f)
  if argument.kind_of(program) ~= "Module" then
    return f(argument.node(program, where, "an expression, a function or a module"))
  end
  local changed = {}
  for name, fn in pairs(program) do
    if fn.kind == "Function" then
      local new = f(fn, name)
      if new ~= fn then changed[name] = new end
    end
  end
  return next(changed) and program:with(changed) or program
end

local function list_of_callbacks(given)
  argument.table(given, "rewrite", "callbacks")
  if given.pattern or getmetatable(given) == class then given = { given } end
  local list = {}
  for i, callback in ipairs(given) do
    if getmetatable(callback) ~= class then callback = rewriter.callback(callback) end
    list[i] = callback
  end
  return list
end

local function name_of(callback, i) return callback.name or ("callback %d"):format(i) end

-- The file and line where the function of a callback is, and the other arguments.
local function place_of(callback, ...)
  local f = callback.callback
  if type(f) ~= "function" then f = getmetatable(f).__call end
  local info = debug.getinfo(f, "S")
  return info.short_src, math.max(info.linedefined, 0), ...
end

local function typed(expr, mod)
  local node, diag = core.infer_type(expr, mod)
  if not node then core.raise(diag) end
  return node
end

-- The callbacks among `active`, for messages.
local function names_of(callbacks, active)
  local names = {}
  for i, callback in ipairs(callbacks) do
    if active[callback] then names[#names + 1] = ("'%s'"):format(name_of(callback, i)) end
  end
  return table.concat(names, ", ")
end

local function endless(callbacks, active, why)
  argument.fail(("rewrite: %s; callbacks that still rewrite: %s"):format(why,
    names_of(callbacks, active)))
end

-- One round over the callbacks that are not done. Gives the new expression and its size.
local function run_round(callbacks, done, expr, mod, active)
  local size
  local lets = callbacks.lets
  for i, callback in ipairs(callbacks) do
    active[callback] = nil
    if not done[callback] then
      if callback.require_type then expr = typed(expr, mod) end
      local f = callback.callback
      local new, nodes = pattern.compiled(callback.pattern):rewrite(expr,
        function(pre, post, node_map) return f(pre, post, node_map) end, name_of(callback, i),
        place_of(callback, lets))
      if new ~= expr then active[callback], size = true, nodes end
      if new ~= expr and callback.rewrite_once then done[callback] = true end
      expr = new
    end
  end
  return expr, size
end

-- A module's function must not get variables of others.
local function check_closed(callbacks, used, name, new)
  local free = new.kind == "Function" and vars.free_vars(new)[1]
  if not free then return end
  argument.fail(("rewrite: in function @%s: what callbacks made has the variable '%s', which the "
    .. "function does not have; callbacks that rewrote it: %s"):format(name, free.name,
    names_of(callbacks, used)))
end

local function same(a, b) return a == b or core.node_equal(a, b, false) end

-- `used` gets the callbacks that changed something.
local function rewrite_node(callbacks, expr, mod, used)
  local done, active, original, before, growing = {}, {}, expr, math.huge, 0
  for _ = 1, MOST_ROUNDS do
    local last = expr
    local new, size = run_round(callbacks, done, expr, mod, active)
    expr = new
    for callback in pairs(active) do used[callback] = true end
    if same(last, expr) then return same(original, last) and original or last end
    growing = size and size >= 1.5 * before and growing + 1 or 0
    before = size or before
    if growing == MOST_GROWING then
      endless(callbacks, active, ("the program grew by half in each of %d rounds"):format(growing))
    end
  end
  endless(callbacks, active, ("it did not end after %d rounds"):format(MOST_ROUNDS))
end

--- Rewrites an expression, a function or each function of a module by one callback or a
-- list of them until a round changes nothing. Gives the same one if nothing changed. `mod`
-- gives the types of global functions. Options as of match. Raises after 100 rounds.
function rewriter.rewrite(callbacks, expr, mod, options)
  local list = list_of_callbacks(callbacks)
  list.lets = pattern.lets(options, "rewrite")
  return rewriter.each_function(expr, "rewrite", function(node, name)
    local used = {}
    local new = rewrite_node(list, node, mod, used)
    if name and new ~= node then check_closed(list, used, name, new) end
    return new
  end)
end

return rewriter
