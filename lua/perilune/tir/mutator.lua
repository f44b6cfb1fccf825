-- Rewriting at the loop level by functions, one a node kind, where statements
-- that have bodies are rewritten too: each is put together again from its
-- rewritten parts before its function sees it. Called by pl.mutator and
-- pl.rewrite.

local core = require "perilune.core"
core.internal()

local expr = require("perilune.tir.operand").expr
local walk = require "perilune.tir.depth_first"

local mutator = {}

local class_of, owners = {}, {}
for _, row in ipairs(core.kinds()) do
  class_of[row.name] = row.class
  if row.scopes then owners[#owners + 1] = row.name end
end

local function nothing() return nil end

--- Whether those functions for a node of the loop level are called here: one is for a kind
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

--- The node rewritten by functions(node, rebuild), parts first; `node` has its rewritten parts,
-- or is the node as it was when `before` says so. A node that stays is the very same.
function mutator.apply(functions, subject, before)
  local sealed = core.seal(subject)
  local result = walk(sealed, nothing, function(node, rebuilt, kind)
    local f = functions[kind]
    local answer = f and f(before and node or rebuilt, function() return rebuilt end)
    if answer == nil or rawequal(answer, rebuilt) then return rebuilt end
    -- What a function answers of the node as it was has none of the changes inside.
    if core.apply_rule(functions.name or kind, node) then return expr(answer) end
    return rebuilt
  end, true)
  return rawequal(result, sealed) and subject or core.seal(result)
end

return mutator
