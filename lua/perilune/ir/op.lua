--- pl.op: the operators as nested tables, looked up when they are asked for.
--
--     pl.op.add(x, 1)
--     pl.op.nn.relu(x)              -- also pl.op["nn.relu"](x)
--     pl.op.concatenate({ a, b }, { axis = 1 })
--
-- An operator is an Op object: callable, with .name, .doc, .attrs; the last
-- argument may be a table of attributes. node.op == pl.op.nn.relu compares.
-- pairs(pl.op) gives the operators by full name, in the registry's order.
-- pl.op["com.microsoft::QuickGelu"] is the operator that import makes of that ONNX node;
-- of a type that nobody here knows, too.

local core = require "perilune.core"
local argument = require "perilune.argument"
local operator_name = require "perilune.ir.operator_name"
core.internal()

local function has_prefix(prefix)
  for _, name in ipairs(core.ops()) do
    if name:sub(1, #prefix) == prefix then return true end
  end
  return false
end

local function iterate(prefix)
  local names, i = core.ops(), 0
  return function()
    repeat i = i + 1 until not names[i] or names[i]:sub(1, #prefix) == prefix
    if names[i] then return names[i]:sub(#prefix + 1), core.op(names[i]) end
  end
end

local namespace

local function lookup(prefix, name)
  if type(name) ~= "string" then return nil end
  local full = prefix .. name
  local op = operator_name.find(full)
  if op then return op end
  if has_prefix(full .. ".") then return namespace(full .. ".") end
  argument.fail(operator_name.unknown(full))
end

function namespace(prefix)
  return setmetatable({}, {
    __name = "operators",
    -- Only namespaces are kept: operators may be added while files are read.
    __index = function(self, name)
      local found = lookup(prefix, name)
      if type(found) == "table" then rawset(self, name, found) end
      return found
    end,
    __newindex = function() argument.fail("operators cannot be assigned") end,
    __pairs = function() return iterate(prefix) end,
  })
end

return namespace ""
