--- pl.tune.choice: one way to transform a module, and when it may be taken.
--
--     local choice = pl.tune.choice { transform = "set_layout", args = { "NHWC" },
--       constraint = function(mod) return #mod.names == 1 end }
--     choice:check_constr(mod)               -- true or false
--     local out = choice:apply_transform_func(mod)
--
-- Functions are given themselves or by their names in pl.tune.functions. Without a transform
-- the module stays as it is, without a constraint the choice may always be taken. As in
-- TVM's tuning_api, a choice whose constraint does not hold leaves the module alone.

local argument = require "perilune.argument"
local core = require "perilune.core"
local functions = require "perilune.tune.functions"
local value = require "perilune.tune.value"
core.internal()

local choice = {}

functions.registry["perilune.identity"] = function(mod) return mod end
functions.registry["perilune.always"] = function() return true end

local methods = {}
local class = { __name = "choice", __index = methods }

local fields = { "transform", "args", "constraint", "constraint_args" }

local function call(self, field, mod)
  local f = functions.find(self[field], "a choice's " .. field)
  local args = field == "transform" and self.args or self.constraint_args
  return f(mod, table.unpack(args, 1, args.n or #args))
end

--- Whether the choice may be taken for the module.
function methods.check_constr(self, mod)
  local holds = call(self, "constraint", mod)
  if type(holds) ~= "boolean" then
    argument.fail(("the constraint '%s' returned a %s, and true or false is expected"):format(
      self.constraint, type(holds)))
  end
  return holds
end

--- The transformed module; the module itself where the constraint does not hold.
function methods.apply_transform_func(self, mod)
  if not self:check_constr(mod) then return mod end
  local out = call(self, "transform", mod)
  if argument.kind_of(out) ~= "Module" then
    argument.fail(("the transform '%s' returned a %s, and a module is expected"):format(
      self.transform, argument.kind_of(out)))
  end
  if out ~= mod then
    local ok, diag = core.verify_module(out)
    if not ok then core.raise(diag) end
  end
  return out
end

-- Those of the library are known by their names.
local function function_json(name)
  local f = functions.registry[name]
  local foreign = f and not name:find "^perilune%."
  return { name = name, identity = foreign and functions.identity(f) or nil }
end

--- A plain table that json.encode writes.
function methods.as_table(self)
  return { transform = function_json(self.transform), args = value.encode(self.args),
    constraint = function_json(self.constraint), constraint_args = value.encode(
      self.constraint_args) }
end

function class.__tostring(self)
  if self.transform == "perilune.identity" then return "no change" end
  local args = {}
  for i, x in ipairs(self.args) do args[i] = tostring(x) end
  return ("%s(%s)"):format(self.transform, table.concat(args, ", "))
end

--- A choice of { transform =, args =, constraint =, constraint_args = }.
function choice.new(spec)
  spec = argument.options(spec, "pl.tune.choice", fields)
  local function list(field)
    local args = spec[field]
    if args == nil then return {} end
    return argument.table(args, "pl.tune.choice", field)
  end
  return setmetatable({
    transform = functions.name(spec.transform or "perilune.identity", "a choice's transform"),
    args = list "args",
    constraint = functions.name(spec.constraint or "perilune.always", "a choice's constraint"),
    constraint_args = list "constraint_args",
  }, class)
end

--- Whether a value is a choice.
function choice.is(x) return getmetatable(x) == class end

-- The name of a function that is the one which was written.
local function checked_name(row)
  if type(row) ~= "table" or type(row.name) ~= "string" then
    argument.fail "a choice's JSON names its transform and its constraint"
  end
  local f = functions.find(row.name, "a choice")
  local now = functions.identity(f)
  if row.identity and now and row.identity ~= now then
    argument.fail(("the function '%s' of pl.tune.functions is not the one that the trace was "
      .. "made with"):format(row.name))
  end
  return row.name
end

--- The choice of a table that as_table made. Raises when a function is not registered, or
-- another one is under its name.
function choice.from_table(row)
  argument.table(row, "a choice's JSON")
  return choice.new { transform = checked_name(row.transform), args = value.decode(row.args),
    constraint = checked_name(row.constraint), constraint_args = value.decode(
      row.constraint_args) }
end

return choice
