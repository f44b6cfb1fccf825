-- Traces: what was done to a schedule, in order. An entry is { row, args, results, decision },
-- where a variable is an object of the schedule.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local instructions = require "perilune.tir.schedule.instructions"
local json = require "perilune.json"
local tir = require "perilune.tir"

local trace = {}

local Trace = { __name = "perilune.tir.Trace" }
Trace.__index = Trace
trace.Trace = Trace

local variable_roles = { block = "single", loop = "single", loop_or_block = "single",
  location = "single", blocks = "list", loops = "list", factors = "list" }

--- A trace of entries, which it does not change.
function trace.new(entries) return setmetatable({ entries = entries }, Trace) end

function trace.is(value) return getmetatable(value) == Trace end

--- A random variable: { class = "block", "loop" or "value" }.
function trace.variable(class) return setmetatable({ class = class }, trace.Variable) end

trace.Variable = { __name = "perilune.tir.Variable" }
function trace.Variable.__tostring(variable) return "a " .. variable.class .. " of a schedule" end

function trace.is_variable(value) return getmetatable(value) == trace.Variable end

-- ------------------------------------------------------------------- names

local letters = { block = "b", loop = "l", value = "v" }

-- Names by variable, numbered in the order in which they are made.
local function namer()
  local names, n = {}, 0
  return names, function(variable)
    names[variable] = letters[variable.class] .. n
    n = n + 1
    return names[variable]
  end
end

-- -------------------------------------------------------------- index maps

-- The names of the variables, and the text of the indices.
local function map_texts(map)
  local vars, indices = {}, {}
  for i, var in ipairs(map.initial_indices) do vars[i] = var.name end
  for i, index in ipairs(map.final_indices) do indices[i] = tostring(index) end
  return vars, indices
end

local function read_map(value, where)
  if type(value) ~= "table" or type(value[1]) ~= "table" or type(value[2]) ~= "table" then
    argument.fail(where .. ": an index map is names of variables and indices")
  end
  local vars, names, indices = {}, {}, {}
  for i, name in ipairs(value[1]) do
    if type(name) ~= "string" or names[name] then
      argument.fail(where .. ": variables of an index map have different names")
    end
    vars[i] = tir.Var(name, "int32")
    names[name] = vars[i]
  end
  for i, text in ipairs(value[2]) do
    local index, diag = tir.parse_expr(argument.string(text, where, "an index"), where, names)
    if not index then argument.fail(("%s: %s"):format(where, diag.message)) end
    indices[i] = index
  end
  return tir.IndexMap(vars, indices)
end

-- ------------------------------------------------------------------ Python

local function python(value, names)
  if value == nil then return "None" end
  if trace.is_variable(value) then return names[value] or "_" end
  if type(value) == "string" then return json.encode(value) end
  if value == true then return "True" elseif value == false then return "False" end
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for i = 1, value.n or #value do
    -- A factor that is left open.
    parts[i] = value[i] == -1 and value.open and "None" or python(value[i], names)
  end
  return "[" .. table.concat(parts, ", ") .. "]"
end

-- An argument by its name.
local function python_named(parameter, value, names)
  local text
  if parameter.role == "index_map" then
    local vars, indices = map_texts(value)
    text = ("lambda %s: (%s%s)"):format(table.concat(vars, ", "), table.concat(indices, ", "),
      #indices == 1 and "," or "")
  elseif parameter.role == "buffer" then
    text = ("(%q, %d)"):format(value[1], value[2])
  elseif parameter.role == "factors" then
    text = python(table.move(value, 1, #value, 1, { open = true }), names)
  end
  return ("%s=%s"):format(parameter.name, text or python(value, names))
end

local function python_args(entry, names)
  local out = {}
  for _, parameter in ipairs(entry.row.arguments) do
    local value = entry.args[parameter.name]
    if entry.row.variadic == parameter.name then
      for _, one in ipairs(value) do out[#out + 1] = python(one, names) end
    elseif entry.row.positional then
      out[#out + 1] = python(value, names)
    elseif parameter.role ~= "blocks" or #value > 0 then
      out[#out + 1] = python_named(parameter, value, names)
    end
  end
  if entry.row.samples then out[#out + 1] = "decision=" .. python(entry.decision, names) end
  return table.concat(out, ", ")
end

local function python_results(entry, name)
  local made = {}
  for i, variable in ipairs(entry.results) do made[i] = name(variable) end
  if #made == 0 then return "" end
  local single = entry.row.results == "block" or entry.row.results == "loop"
    or entry.row.results == "value"
  return table.concat(made, ", ") .. (#made == 1 and not single and ", = " or " = ")
end

--- The lines of the trace as a Python function's body, without indentation.
function Trace:as_python()
  local names, name = namer()
  local lines = {}
  for i, entry in ipairs(self.entries) do
    local args = python_args(entry, names)
    lines[i] = ("%ssch.%s(%s)"):format(python_results(entry, name), entry.row.name, args)
  end
  return lines
end

function Trace:__tostring()
  local lines = self:as_python()
  for i, line in ipairs(lines) do lines[i] = "  " .. line end
  table.insert(lines, 1, "# from tvm import tir\ndef apply_schedule(sch: tir.Schedule) -> None:")
  if #lines == 1 then lines[2] = "  pass" end
  return table.concat(lines, "\n")
end

-- -------------------------------------------------------------------- JSON

local function plain(value, names)
  if trace.is_variable(value) then return names[value] or "_" end
  if type(value) ~= "table" then return value end
  local out = {}
  for i, item in ipairs(value) do out[i] = plain(item, names) end
  return json.list(out)
end

-- Variables, and what may be one, are inputs; the rest are attributes.
local function json_entry(entry, names, name)
  local inputs, attrs, made = {}, {}, {}
  for _, parameter in ipairs(entry.row.arguments) do
    local value = entry.args[parameter.name]
    local how = variable_roles[parameter.role]
    if how == "list" and parameter.role ~= "blocks" then
      for _, one in ipairs(value) do inputs[#inputs + 1] = plain(one, names) end
    elseif how then
      inputs[#inputs + 1] = plain(value, names)
    elseif parameter.role == "index_map" then
      local vars, indices = map_texts(value)
      attrs[#attrs + 1] = json.list { json.list(vars), json.list(indices) }
    else
      attrs[#attrs + 1] = plain(value, names)
    end
  end
  for i, variable in ipairs(entry.results) do made[i] = name(variable) end
  return json.list { entry.row.kind, json.list(inputs), json.list(attrs), json.list(made) }
end

--- The trace as JSON text, as TVM's Trace.as_json has it: instructions and decisions.
function Trace:as_json()
  local names, name = namer()
  local list, decisions = {}, {}
  for i, entry in ipairs(self.entries) do
    list[i] = json_entry(entry, names, name)
    if entry.row.samples then
      decisions[#decisions + 1] = json.list { i - 1, plain(entry.decision, names) }
    end
  end
  return json.encode(json.list { json.list(list), json.list(decisions) })
end

local function malformed(what, ...)
  argument.fail(("tir.Schedule.apply_json: " .. what):format(...))
end

local function variable_of(known, text, where)
  if type(text) == "string" then
    if not known[text] then malformed("%s: there is no variable '%s'", where, text) end
    return known[text]
  end
  return text
end

-- Takes the inputs from the front of a list: a list of variables takes the rest.
local function read_inputs(row, inputs, attrs, known, where)
  local args, at, at_attr = {}, 1, 1
  for _, parameter in ipairs(row.arguments) do
    local how = variable_roles[parameter.role]
    if parameter.role == "blocks" then
      args[parameter.name] = {}
      for i, one in ipairs(inputs[at] or {}) do
        args[parameter.name][i] = variable_of(known, one, where)
      end
      at = at + 1
    elseif how == "list" then
      local list = {}
      for i = at, #inputs do list[#list + 1] = variable_of(known, inputs[i], where) end
      args[parameter.name], at = list, #inputs + 1
    elseif how then
      args[parameter.name], at = variable_of(known, inputs[at], where), at + 1
    else
      local value = attrs[at_attr]
      if parameter.role == "index_map" then value = read_map(value, where) end
      args[parameter.name], at_attr = value, at_attr + 1
    end
  end
  return args
end

local function check_entry(one, where)
  if type(one) ~= "table" or #one ~= 4 or type(one[1]) ~= "string" or type(one[2]) ~= "table"
      or type(one[3]) ~= "table" or type(one[4]) ~= "table" then
    malformed("%s is no instruction", where)
  end
  local row = instructions["kind:" .. one[1]]
  if not row then malformed("%s: there is no instruction '%s'", where, one[1]) end
  return row
end

--- Calls apply(row, args, decision), which gives the variables that it made, for each instruction
-- of a text that as_json made.
function trace.each_json(text, apply)
  local data, message = json.decode(text)
  if data == nil then malformed("%s", message) end
  if type(data) ~= "table" or type(data[1]) ~= "table" or type(data[2]) ~= "table" then
    malformed("a list of instructions and a list of decisions expected")
  end
  local decisions, known = {}, {}
  for _, pair in ipairs(data[2]) do
    if type(pair) ~= "table" or math.type(pair[1]) ~= "integer" then
      malformed("a decision is a number and what was decided")
    end
    decisions[pair[1]] = pair[2]
  end
  for i, one in ipairs(data[1]) do
    local where = ("instruction %d"):format(i - 1)
    local row = check_entry(one, where)
    local made = apply(row, read_inputs(row, one[2], one[3], known, where), decisions[i - 1])
    if #made ~= #one[4] then
      malformed("%s: %s gives %d results here, not %d", where, row.name, #made, #one[4])
    end
    for k, name in ipairs(one[4]) do known[name] = made[k] end
  end
end

-- ------------------------------------------------------------------ replay

-- An argument with the variables of another schedule.
local function renamed(value, map)
  if trace.is_variable(value) then return map[value] or value end
  if type(value) ~= "table" or getmetatable(value) ~= nil then return value end
  local out = {}
  for key, item in pairs(value) do out[key] = renamed(item, map) end
  return out
end

--- Calls apply(row, args, decision) for each entry, with the variables that it gave before.
function trace.each_entry(entries, apply)
  local map = {}
  for _, entry in ipairs(entries) do
    local made = apply(entry.row, renamed(entry.args, map), entry.decision)
    for i, variable in ipairs(entry.results) do map[variable] = made[i] end
  end
end

return trace
