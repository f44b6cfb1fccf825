--- A module made small, step by step, for pl.reduce. Each step changes the module of
-- the job through job:try(build), which keeps a change as long as what fails still
-- fails. What a step makes may be ill-typed: then it is not kept.

local core = require "perilune.core"
local chunks = require "perilune.debug.reduce.chunks"
local ir = require "perilune.ir"
local mutator = require "perilune.ir.mutator"
core.internal()

local steps = {}

-- ------------------------------------------------------------------ functions

-- Names of functions that others call: their parameters have to stay.
local function called(module)
  local names = {}
  for _, fn in pairs(module) do
    for node in fn:nodes() do
      if node.kind == "GlobalVar" then names[node.name] = true end
    end
  end
  return names
end

-- A function of the body; of its parameters those that are used (all when others
-- call it), and what else is free in the body.
local function function_of(fn, body, all)
  local free, params = core.vars(body, "free"), {}
  local used = {}
  for _, var in ipairs(free) do used[var] = true end
  for _, param in ipairs(fn.params) do
    if all or used[param] then params[#params + 1] = param end
    used[param] = false
  end
  for _, var in ipairs(free) do
    if used[var] then params[#params + 1] = var end
  end
  return core.func(params, body, nil, fn.attrs, fn.type_params)
end

-- One function at a time: `fn` as it is now.
local function work_on(job, name)
  local self = { job = job, keeps = called(job.module)[name] }

  function self.fn() return job.module.functions[name] end

  -- Tries a function instead; what others call keeps its type.
  function self.try(make)
    return job:try(function()
      local fn = make()
      if self.keeps and fn.type ~= self.fn().type then return job.module end
      return job.module:with { [name] = fn }
    end)
  end

  -- Tries another body: of expressions of the function, wherever they stand.
  function self.try_body(body)
    return self.try(function() return function_of(self.fn(), body, self.keeps) end)
  end

  -- Tries the function after some shrink actions; what is free then becomes a parameter.
  function self.try_shrinks(shrinks)
    return self.try(function()
      local fn = core.shrink(self.fn(), shrinks)
      return function_of(fn, fn.body, self.keeps)
    end)
  end

  return self
end

function steps.functions(job)
  chunks(job.module.names, function(rest)
    local kept = {}
    for _, name in ipairs(rest) do kept[name] = true end
    return job:try(function()
      local module = job.module
      for _, name in ipairs(job.module.names) do
        if not kept[name] then module = module:without(name) end
      end
      return module
    end)
  end)
end

-- -------------------------------------------------------------------- results

local leaves = { Var = true, Constant = true, GlobalVar = true, Op = true, Absent = true,
  Constructor = true, Let = true, LetBlock = true, Clause = true }

-- Whether a node has a value of a type that a result or parameter may have.
local function is_value(node)
  local kind = not leaves[node.kind] and not node.kind:find "^Pattern" and node.type
    and node.type.kind
  return kind and kind ~= "incomplete" and kind ~= "func"
end

local function values_of(fn)
  local list = {}
  for node in fn:nodes() do
    if is_value(node) then list[#list + 1] = node end
  end
  return list
end

-- The first value that will do as the result, looked for by halving.
local function early_result(work)
  local list = values_of(work.fn())
  local low, high = 1, #list
  while low <= high do
    local middle = (low + high) // 2
    if work.try_body(list[middle]) then
      list = values_of(work.fn())
      low, high = 1, #list - 1 -- the last one is the result now
    else
      low = middle + 1
    end
  end
end

-- Operands of the result in its place, again and again.
local function peel(work)
  repeat
    local body, found = work.fn().body, false
    for i = 1, is_value(body) and #body or 0 do
      found = found or is_value(body[i]) and work.try_body(body[i])
    end
  until not found
end

local function drop_fields(work)
  local body = work.fn().body
  if body.kind ~= "Tuple" then return end
  chunks(body.fields, function(rest)
    return #rest > 0 and work.try_body(#rest == 1 and rest[1] or core.tuple(rest))
  end)
end

function steps.results(work)
  early_result(work)
  drop_fields(work)
  peel(work)
end

-- -------------------------------------------------------------------- shrinking

-- Nodes for which shrink_of(node) gives an action.
local function targets(fn, shrink_of)
  local list = {}
  for node in fn:nodes() do
    local shrink = shrink_of(node)
    if shrink then list[#list + 1] = { node = node, shrink = shrink } end
  end
  return list
end

local function piece(list, at, size)
  local shrinks = {}
  for i = at, math.min(at + size - 1, #list) do shrinks[list[i].node] = list[i].shrink end
  return shrinks
end

-- Cuts as many nodes as will do, large pieces of the list first. What is left of it.
local function shrink_pieces(work, shrink_of)
  local list = targets(work.fn(), shrink_of)
  local size = #list
  while size >= 1 do
    local at = 1
    while at <= #list do
      if work.try_shrinks(piece(list, at, size)) then
        list = targets(work.fn(), shrink_of)
      else
        at = at + size
      end
    end
    size = math.min(size // 2, #list)
  end
  return list
end

-- Nodes that can only be shrunk together, such as two of which one has to be like the
-- other: pairs, of the few that are left.
local FEW = 8

local function shrink_pairs(work, list)
  if #list > FEW then return false end
  for i = 1, #list do
    for k = i + 1, #list do
      local both = { [list[i].node] = list[i].shrink, [list[k].node] = list[k].shrink }
      if work.try_shrinks(both) then return true end
    end
  end
  return false
end

local function shrink_all(work, shrink_of)
  repeat
    local list = shrink_pieces(work, shrink_of)
  until not shrink_pairs(work, list)
end

local function is_zero(data)
  local first = {}
  for i = 1, data.rank do first[i] = 1 end
  return data.size == 0 or (data.splat or data.size == 1) and data:get(table.unpack(first)) == 0
end

local function shrink_to_zero(node)
  local some = node.kind == "Constant" and not is_zero(node.data) or is_value(node)
  return some and "zero" or nil
end

local function shrink_to_free(node) return is_value(node) and "free" or nil end

-- The first (or last) operand of the node's own type.
local function shrink_to_operand(first)
  return function(node)
    if node.kind ~= "Call" then return nil end
    local n, found = #node, nil
    for i = 1, n do
      local k = first and i or n + 1 - i
      found = found or node[k].type == node.type and k or nil
    end
    return found
  end
end

local function shrink_let(node) return node.kind == "Let" and "value" or nil end

local function shrink_to_branch(k)
  return function(node) return node.kind == "If" and k or nil end
end

function steps.shrinks(work)
  for _, shrink_of in ipairs { shrink_to_free, shrink_to_operand(true), shrink_to_operand(false),
    shrink_to_branch(1), shrink_to_branch(2), shrink_let, shrink_to_zero } do
    shrink_all(work, shrink_of)
  end
end

-- ----------------------------------------------------------------------- arms

local function matches(fn)
  return targets(fn, function(node) return node.kind == "Match" and "arms" end)
end

local function with_clauses(fn, match, clauses)
  return mutator.make {
    Match = function(node)
      return rawequal(node, match) and ir.Match(node.data, clauses, { complete = false }) or nil
    end,
  } (fn)
end

-- Drops arms of each Match, from the last one on: the nodes of those before it stay
-- as they are counted.
function steps.arms(work)
  for at = #matches(work.fn()), 1, -1 do
    local match = matches(work.fn())[at]
    for i = match and #match.node.clauses or 0, 1, -1 do
      local node = matches(work.fn())[at].node
      local rest = { table.unpack(node.clauses) }
      table.remove(rest, i)
      if #rest > 0 then
        work.try(function() return with_clauses(work.fn(), node, rest) end)
      end
    end
  end
end

-- ----------------------------------------------------- parameters, attributes

function steps.params(work)
  if work.keeps then return end
  work.try_body(work.fn().body)
end

-- The function with other attributes of one call.
local function with_attrs(fn, call, attrs)
  if call.n_results > 0 then attrs.n_results = call.n_results end
  return mutator.make {
    Call = function(node)
      return rawequal(node, call) and ir.Call(node.op, node.args, attrs) or nil
    end,
  } (fn)
end

local function attrs_without(call, name)
  local attrs = {}
  for key, value in pairs(call.attrs) do
    if name and key ~= name then attrs[key] = value end
  end
  return attrs
end

local function calls_with_attrs(fn)
  return targets(fn, function(node)
    return node.kind == "Call" and node.op and next(attrs_without(node, "")) and "attrs"
  end)
end

-- Drops attributes of the call: all, or else one by one. True when some are gone.
local function drop_attrs(work, call)
  local names = {}
  for key in pairs(call.attrs) do names[#names + 1] = key end
  for i = 0, #names > 1 and #names or 0 do
    local dropped = work.try(function()
      return with_attrs(work.fn(), call, attrs_without(call, names[i]))
    end)
    if dropped then return true end
  end
  return false
end

function steps.attrs(work)
  local at, list = 1, calls_with_attrs(work.fn())
  while list[at] do
    if drop_attrs(work, list[at].node) then
      list = calls_with_attrs(work.fn())
    else
      at = at + 1
    end
  end
end

-- ----------------------------------------------------------------------- dims

local function symbols_of(module)
  local names, seen = {}, {}
  for _, fn in pairs(module) do
    for _, param in ipairs(fn.kind == "Function" and fn.params or {}) do
      for _, name in ipairs(param.type and core.type_symbols(param.type) or {}) do
        if name and not seen[name] then names[#names + 1], seen[name] = name, true end
      end
    end
  end
  return names
end

-- A size for each dim of an input that has no name.
local function unnamed_dims(job)
  local main = job.module.functions.main
  for _, param in ipairs(main and main.kind == "Function" and main.params or {}) do
    for axis, dim in ipairs(param.type and param.type.shape or {}) do
      local shape = {}
      for k = 1, #param.type.shape do shape[k] = "?" end
      for size = 1, dim == "?" and 3 or 0 do
        shape[axis] = size
        if job:try(function()
          return assert(job.module:fix_shape(param.name, shape))
        end) then break end
      end
    end
  end
end

function steps.dims(job)
  for _, name in ipairs(symbols_of(job.module)) do
    for _, size in ipairs { 1, 2, 3 } do
      if job:try(function() return job.module:fix_dim(name, size) end) then break end
    end
  end
  unnamed_dims(job)
end

function steps.dead_code(job)
  job:try(function() return core.make("DeadCodeElimination")(job.module) end)
end

-- --------------------------------------------------------------------- rounds

local on_functions = { "results", "shrinks", "arms", "params", "attrs" }

local function one_round(job)
  steps.functions(job)
  steps.dead_code(job)
  for _, name in ipairs(job.module.names) do
    if job.module.functions[name].kind == "Function" then
      local work = work_on(job, name)
      for _, step in ipairs(on_functions) do steps[step](work) end
    end
  end
  steps.dims(job)
end

--- Repeats all steps until none of them changes anything any more.
return function(job)
  repeat
    local kept = job.kept
    one_round(job)
  until job.kept == kept or job:over()
end
