--- The passes of a pipeline made few, for pl.reduce.

local core = require "perilune.core"
local chunks = require "perilune.debug.reduce.chunks"
core.internal()

-- A pipeline as tables that can be changed: a pass that is no form stands for
-- itself.
local function open(pass)
  if pass.form == "primitive" then return pass end
  local node = { form = pass.form, pass = pass, rounds = pass.rounds, items = {}, otherwise = {} }
  for i, item in ipairs(pass.passes) do node.items[i] = open(item) end
  for i, item in ipairs(pass.otherwise or {}) do node.otherwise[i] = open(item) end
  return node
end

local close

local function close_all(list, passes)
  for _, item in ipairs(list) do passes[#passes + 1] = close(item) end
  return passes
end

--- The pass that the tables stand for.
function close(node)
  if type(node) ~= "table" then return node end
  local passes = close_all(node.otherwise, close_all(node.items, {}))
  if node.form == "sequential" then
    local pass = node.pass
    return core.sequential(pass.name, pass.opt_level, pass.required, passes)
  end
  return core.form(node.form, node.rounds or 0, #node.otherwise, passes)
end

-- All forms, outer before inner.
local function forms(root)
  local list = { root }
  for _, node in ipairs(list) do
    for _, items in ipairs { node.items, node.otherwise } do
      for _, item in ipairs(items) do
        if type(item) == "table" then list[#list + 1] = item end
      end
    end
  end
  return list
end

-- Tries the pipeline with another value of a field.
local function try(job, root, node, field, value)
  local old = node[field]
  node[field] = value
  if job:try_pipeline(close(root)) then return true end
  node[field] = old
  return false
end

local function splice(items, at)
  local list = table.move(items, 1, at - 1, 1, {})
  table.move(items[at].items, 1, #items[at].items, at, list)
  return table.move(items, at + 1, #items, #list + 1, list)
end

-- What is in a form takes its place.
local function unwrap(job, root, node)
  local at = 1
  while at <= #node.items do
    local item = node.items[at]
    if type(item) ~= "table" or not try(job, root, node, "items", splice(node.items, at)) then
      at = at + 1
    end
  end
end

local function shorten(job, root, node)
  for _, field in ipairs { "items", "otherwise" } do
    chunks(node[field], function(rest) return try(job, root, node, field, rest) end)
  end
  unwrap(job, root, node)
  if node.rounds and node.rounds > 1 then try(job, root, node, "rounds", 1) end
end

--- Drops passes, and forms around passes, as long as what fails still fails.
return function(job)
  local root = open(job.pipeline)
  while type(root) == "table" do
    for _, node in ipairs(forms(root)) do shorten(job, root, node) end
    local only = #root.items == 1 and #root.otherwise == 0 and root.items[1]
    if not only or not job:try_pipeline(close(only)) then return end
    root = only
  end
end
