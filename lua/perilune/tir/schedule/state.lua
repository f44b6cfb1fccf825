-- What a schedule has made of its functions: their trees, and where each loop and block is in them.
--
-- A primitive works on a state of its own: the trees are immutable, so that a refused primitive
-- leaves nothing behind and an earlier state shares what did not change.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local tree = require "perilune.tir.schedule.tree"

local State = {}
State.__index = State

--- `funcs`: what tree.read_func gives, by name.
function State.new(terms, funcs)
  local self = setmetatable({ terms = terms, funcs = funcs }, State)
  self:index()
  return self
end

-- The parent of each statement (the name of the function of an outermost one), and statements by
-- id.
function State:index()
  local parents, by_id = {}, {}
  for name, func in pairs(self.funcs) do
    tree.visit(func.body, function(stmt, parent)
      parents[stmt] = parent or name
      if stmt.id then by_id[stmt.id] = stmt end
    end)
  end
  self.parents, self.by_id = parents, by_id
end

--- Raises: the primitive, what it was applied to, and why it is refused.
function State:fail(what, ...)
  argument.fail(("tir.Schedule.%s: %s"):format(self.primitive, what:format(...)))
end

--- How messages name a loop or block.
function State:describe(stmt)
  if stmt.kind == "For" then return ("loop '%s'"):format(self.terms:name(stmt.var)) end
  return ("block '%s'"):format(stmt.name)
end

--- The statement around; nil of the outermost one.
function State:parent(stmt)
  local parent = self.parents[stmt]
  return type(parent) == "table" and parent or nil
end

--- The name of the function that a statement is in.
function State:func_of(stmt)
  while type(stmt) == "table" do stmt = self.parents[stmt] end
  return stmt
end

--- The block around a loop or block.
function State:scope(stmt)
  local around = self:parent(stmt)
  while around and around.kind ~= "Block" do around = self:parent(around) end
  if not around then self:fail("%s is in no block", self:describe(stmt)) end
  return around
end

--- The loops around, up to the next block, outermost first.
function State:loops(stmt)
  local out, around = {}, self:parent(stmt)
  while around and around.kind ~= "Block" do
    if around.kind == "For" then table.insert(out, 1, around) end
    around = self:parent(around)
  end
  return out
end

--- Whether `outer` is around a statement, or is it.
function State:contains(outer, stmt)
  while stmt and stmt ~= outer do stmt = self:parent(stmt) end
  return stmt ~= nil
end

--- The blocks in a loop or block that are in no other block there, in order.
function State:child_blocks(stmt) -- luacheck: ignore 212
  local out = {}
  tree.visit(stmt, function(inner)
    if inner ~= stmt and inner.kind == "Block" then
      out[#out + 1] = inner
      return false
    end
  end)
  return out
end

--- Puts a statement in the place of another; `nil` removes it. The statements around are new.
function State:replace(old, new)
  local around = self.parents[old]
  while type(around) == "table" do
    local bodies = {}
    for _, child in ipairs(tree.children(around)) do
      if child ~= old then bodies[#bodies + 1] = child
      elseif new then bodies[#bodies + 1] = new end
    end
    if not new and around.kind == "If" and #bodies > 0 then
      self:fail("a branch of an if would be left without statements")
    end
    old, around, new = around, self.parents[around],
      #bodies > 0 and tree.with_children(around, bodies) or nil
    if not new and old.kind == "Block" then
      self:fail("%s would be left without statements", self:describe(old))
    end
  end
  self.funcs = tree.with(self.funcs, { [around] = tree.with(self.funcs[around], { body = new }) })
  self:index()
end

--- The same statement after replacements: what has an id is found by it.
function State:now(stmt) return self.by_id[stmt.id] end

--- Says the ranges of the loops around a statement, through all blocks.
function State:bind_loops(stmt)
  local around = stmt
  while around do
    if around.kind == "For" then
      self.terms:bind(around.var, around.min, around.extent)
    end
    around = self:parent(around)
  end
end

return State
