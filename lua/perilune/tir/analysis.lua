-- What can be asked of programs of TIR, by TVM's names. Its functions
-- are perilune.tir's.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"

local vars = require "perilune.ir.vars"
local walks = require "perilune.tir.walk"

local analysis = {}

-- In the order of TVM's CallEffectKind: what comes later includes what comes before, up to
-- update_state, which stands for everything behind it.
local rank = { expr_annotation = 0, pure = 1, read_state = 2, update_state = 3 }
local by_rank = { [0] = "expr_annotation", "pure", "read_state", "update_state" }

--- What is known of a builtin: its name, what a call of it does ("pure", "opaque", ...), and
-- how many arguments it takes (nil: any number).
function analysis.builtin(name)
  argument.string(name, "tir.builtin", "name")
  local number = core.builtin((name:gsub("^tir%.", "")))
  if number == nil then
    argument.fail(("no builtin is called '%s'%s"):format(name, core.suggest(name, core.builtins())))
  end
  local plain, effect, args = core.builtin_row(number)
  return { name = "tir." .. plain, effect = effect, args = args >= 0 and args or nil }
end

-- What evaluating a node adds to what its operands do.
local function own_rank(node)
  local kind = node.kind
  if kind == "BufferLoad" or kind == "ProducerLoad" then return rank.read_state end
  if kind ~= "PrimCall" then return rank.pure end
  local name = node.builtin
  return name and rank[analysis.builtin(name).effect] or rank.update_state
end

--- What evaluating a PrimExpr does: "pure", "read_state" or "update_state".
function analysis.side_effect(node)
  local most = rank.pure
  walks.post_order(node, function(part) most = math.max(most, own_rank(part)) end)
  return by_rank[most]
end

--- Whether a statement or PrimExpr uses a variable, or one of which the function says so.
function analysis.uses_var(node, which)
  local wanted = which
  if type(which) ~= "function" then wanted = function(var) return var == which end end
  for _, var in ipairs(vars.all_vars(node)) do
    if wanted(var) then return true end
  end
  return false
end

--- The variables that a statement or PrimExpr uses and does not bind, in the order of their
-- first uses; without those of the list `defined`.
function analysis.undefined_vars(node, defined)
  if defined ~= nil then argument.table(defined, "tir.undefined_vars", "defined") end
  local out = {}
  for _, var in ipairs(vars.free_vars(node)) do
    local known = false
    for _, other in ipairs(defined or {}) do known = known or var == other end
    if not known then out[#out + 1] = var end
  end
  return out
end

-- True, or false and a diagnostic; raised or returned by `ask`.
local function verdict(ask, node)
  local ok, result, diag = pcall(ask, node)
  if not ok then return false, result end
  if result then return true end
  return false, diag
end

--- Whether each variable is bound once at the most; then true, else false and a diagnostic. A
-- let in a PrimExpr may be there several times with the same value.
function analysis.verify_ssa(node) return verdict(core.loop_ssa, node) end

--- Whether a PrimFunc is well-formed: each variable is bound, once (indices of threads may be
-- bound again), and used inside of what binds it; a block with iteration variables uses no index
-- of a loop around it. True, or false and a diagnostic.
function analysis.verify_well_formed(fn) return verdict(core.well_formed_node, fn) end

--- Whether two PrimExprs are the same, with the very same variables.
function analysis.expr_deep_equal(a, b) return core.node_equal(a, b, false) end

return analysis
