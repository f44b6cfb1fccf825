--- pl.pattern_table: tables of dataflow patterns for MergeComposite.
--
--     pl.pattern_table("dnnl", {
--       { "dnnl.relu", df.is_op "nn.relu" (df.wildcard()) },
--       { "dnnl.add", "add(*, *)", function(call) return #call.type.shape == 4 end },
--     })
--     pl.passes.MergeComposite { pattern_table = "dnnl" }
--     pl.passes.MergeComposite { pattern_table = { { "mine.add", "add(*, *)" } } }
--
-- A row is the name of the composite function, a pattern (an object, or its text) and a
-- check: a function that gets the matched node, or a text about the attributes of calls in
-- the match, "groups == 1 and data_layout == NHWC".

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"
local df = require "perilune.dataflow_pattern"
local pattern = require "perilune.dataflow_pattern.pattern"
local text = require "perilune.dataflow_pattern.text"

local registered = {} -- by name: the list as it was given
local names = setmetatable({}, { __mode = "k" }) -- of lists without a name
local count = 0

-- Whether calls of the operator have an attribute of that name.
local function has_attribute(op, name)
  for _, schema in ipairs { op.relay or "", op.attrs } do
    for word in schema:gmatch "%S+" do
      local own, core_name = word:match "^([%w_]+)>?([%w_]*):"
      if own == name or core_name == name then return true end
    end
  end
  return false
end

-- Calls in the tree of calls that a pattern matched.
local function calls_of(match, root)
  local calls = {}
  for object, nodes in pairs(match) do
    if object.kind == "CallPattern" then
      for _, node in ipairs(nodes) do calls[#calls + 1] = node end
    end
  end
  if #calls == 0 then calls[1] = root end
  return calls
end

-- A check of attributes: each call in the match whose operator has the attribute has it so.
local function attribute_check(p, source)
  local conditions = text.conditions(source)
  return function(root)
    local _, match = pattern.compiled(p):match(root, true)
    for _, call in ipairs(calls_of(match or {}, root)) do
      for _, condition in ipairs(conditions) do
        if call.op and has_attribute(call.op, condition.name) then
          local test = df.has_attr({ [condition.name] = condition.value })
          if not test:match(call) then return false end
        end
      end
    end
    return true
  end
end

local function compiled_row(row, where)
  argument.table(row, where, "row")
  argument.string(row[1], where, "name")
  local p = row[2]
  if type(p) == "string" then p = text.parse(df, p) end
  p = pattern.as_pattern(p, where)
  local check = row[3]
  if type(check) == "string" then check = attribute_check(p, check) end
  if check ~= nil then argument.callable(check, where, "check") end
  return { row[1], pattern.compiled(p), check and function(node) return check(node) end, p }
end

local function register(name, list, where)
  argument.table(list, where, "patterns")
  local rows = {}
  for i = 1, #list do rows[i] = compiled_row(list[i], where) end
  core.pattern_table(name, rows)
  registered[name] = list
end

-- The name under which a list is registered that has none: the same for the same content, as
-- far as that is text.
local function name_of(list)
  if names[list] then return names[list] end
  local parts = {}
  for i = 1, #list do
    local row = argument.table(list[i], "MergeComposite", "row of pattern_table")
    for k = 1, 3 do
      if row[k] ~= nil and type(row[k]) ~= "string" then parts = nil break end
      parts[#parts + 1] = row[k] or ""
    end
    if not parts then break end
  end
  count = count + 1
  names[list] = parts and table.concat(parts, "; ") or ("patterns %d"):format(count)
  return names[list]
end

--- Registers a list of patterns under a name; without a list gives the one that is
-- registered, or nil.
local function pattern_table(name, list)
  argument.string(name, "pl.pattern_table", "name")
  if list == nil then return registered[name] end
  register(name, list, "pl.pattern_table")
end

--- The options of MergeComposite with the name of a table in place of a list.
local function prepare(options)
  if type(options) ~= "table" or type(options.pattern_table) ~= "table" then return options end
  local copy = {}
  for key, value in pairs(options) do copy[key] = value end
  copy.pattern_table = name_of(options.pattern_table)
  register(copy.pattern_table, options.pattern_table, "MergeComposite")
  return copy
end

return { pattern_table = pattern_table, prepare = prepare }
