-- Rewriting in TIR by functions, one a node kind, where statements
-- that have bodies are rewritten too: each is put together again from its
-- rewritten parts before its function sees it. Called by pl.mutator and
-- pl.rewrite.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"

local expr = require("perilune.tir.operand").expr
local walk = require "perilune.tir.depth_first"

local mutator = {}

local class_of, owners = {}, {}
for _, row in ipairs(core.kinds()) do
  class_of[row.name] = row.class
  if row.scopes then owners[#owners + 1] = row.name end
end

local function nothing() return nil end

--- Whether those functions for a node of TIR are called here: one is for a kind
-- that has bodies.
function mutator.takes(functions, subject)
  local kind = subject.kind
  local class = class_of[kind]
  if class ~= "prim" and class ~= "stmt" and kind ~= "PrimFunc" then return false end
  for _, owner in ipairs(owners) do
    if functions[owner] then return true end
  end
  return false
end

-- The node that an answer is: a number is an immediate of the dtype of what it replaces.
local function taken(answer, rule, f, node)
  if type(answer) == "number" then return expr(answer, node.dtype) end
  if getmetatable(answer) == "perilune.Node" then return answer end
  local at = type(f) == "function" and debug.getinfo(f, "S") or { short_src = "?", linedefined = 0 }
  error(("%s:%d: rule '%s': a node, a number or nil expected as its answer, got %s"):format(
    at.short_src, at.linedefined, rule, argument.kind_of(answer)), 0)
end

--- The node rewritten by functions(node, rebuild), parts first; `node` has its rewritten parts.
-- With `post` they are given the node as it was and the one with its rewritten parts. A node that
-- stays is the very same.
function mutator.apply(functions, subject, post)
  local sealed = core.seal(subject)
  local result = walk(sealed, nothing, function(node, rebuilt, kind)
    local f, answer = functions[kind], nil
    if f and post then
      answer = f(node, rebuilt)
    elseif f then
      answer = f(rebuilt, function() return rebuilt end)
    end
    if answer == nil or rawequal(answer, rebuilt) then return rebuilt end
    -- What a function answers of the node as it was has none of the changes inside.
    local rule = functions.name or kind
    answer = taken(answer, rule, f, rebuilt)
    return core.apply_rule(rule, node) and answer or rebuilt
  end, true)
  return rawequal(result, sealed) and subject or core.seal(result)
end

return mutator
