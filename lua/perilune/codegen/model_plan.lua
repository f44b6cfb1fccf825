-- The plan of a compiled model while it is made: which functions run in which order, on which
-- values. Used by model.lua and model_loops.lua.
--
-- A value is { kind = "input" | "weight" | "buffer" }, or a list of the values of a tuple. A buffer
-- lives from row `first` to row `last`; one with an `alias` lies where that lies.
-- A row { external, args, results } calls a user's C (external.lua). Else
-- a row is { name, args, results, targets, sizes }: a call of a PrimFunc with pointers to args,
-- results (which begin to live here) and targets, then sizes (nil: what the function asks for). Or
-- it is { branch =, args, results }: "if", "else", "end" of an If; "buffers", which only begin to
-- live; "loop", "end loop".

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"

local model_plan = { ALIGNMENT = 64 }

function model_plan.refuse(format, ...) argument.fail("build: " .. format:format(...)) end

local refuse = model_plan.refuse

function model_plan.check_type(type_)
  if type_.kind ~= "tensor" or not type_.shape then
    refuse("a value of type %s", tostring(type_))
  end
  for _, dim in ipairs(type_.shape) do
    if dim == "?" then
      refuse("the shape of %s is not known: give the sizes of its dimensions", tostring(type_))
    end
  end
end

-- The bytes of a value: a number, or an expression of model_sizes.lua.
local function bytes_of(plan, type_)
  model_plan.check_type(type_)
  return plan.sizes:bytes(type_, model_plan.ALIGNMENT)
end

--- Buffers of the results of a call: one, or a list.
function model_plan.new_buffers(plan, type_, at)
  if type_.kind == "tuple" then
    local list = {}
    for i, part in ipairs(type_.parts) do list[i] = model_plan.new_buffers(plan, part, at) end
    return list
  end
  local buffer = { kind = "buffer", type = type_, bytes = bytes_of(plan, type_), first = at,
    last = at }
  plan.buffers[#plan.buffers + 1] = buffer
  return buffer
end

--- Appends the values of nested tuples.
function model_plan.flatten(value, into)
  if value.kind then
    into[#into + 1] = value
  else
    for _, field in ipairs(value) do model_plan.flatten(field, into) end
  end
  return into
end

--- The next row uses the value. What is older than a loop around the row is used in each round, so
-- that it lives up to the end of the loop.
function model_plan.use(plan, value)
  value.last = #plan.calls + 1
  for i = #plan.loops, 1, -1 do
    local loop = plan.loops[i]
    if not value.first or value.first >= loop.start then return end
    loop.used[value] = true
  end
end

--- Adds a row.
function model_plan.add_row(plan, row)
  row.args, row.results, row.targets = row.args or {}, row.results or {}, row.targets or {}
  for _, value in ipairs(row.args) do model_plan.use(plan, value) end
  plan.calls[#plan.calls + 1] = row
  return row
end

--- The name of a function that the entry needs; make() makes it once.
function model_plan.helper(plan, name, make)
  name = "tvmgen_default_" .. name
  if not plan.helpers[name] then
    local params, body = make()
    plan.helpers[name] = tir.PrimFunc(params, body, nil, nil,
      { global_symbol = name, ["tir.noalias"] = true, keep_asserts = 1 })
  end
  return name
end

-- A function that copies elements of a dtype.
local function copy_function(plan, dtype)
  return model_plan.helper(plan, "copy_" .. dtype:gsub("%W", "_"), function()
    local n, i = tir.Var("n", "int64"), tir.Var("i", "int64")
    local from, to = tir.decl_buffer({ n }, dtype, "from"), tir.decl_buffer({ n }, dtype, "to")
    return { from, to, n }, tir.For(i, operand.const(0, "int64"), n, "serial",
      tir.BufferStore(to, tir.BufferLoad(from, { i }), { i }))
  end)
end

--- A row that copies a value to another of its type.
function model_plan.copy(plan, value, to)
  return model_plan.add_row(plan, { name = copy_function(plan, to.type.dtype), args = { value },
    targets = { to }, sizes = { plan.sizes:count(to.type) } })
end

return model_plan
