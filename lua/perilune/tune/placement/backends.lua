--- Backends of pl.tune.placement: what takes parts of a function, and how they are measured.
--
--     { name = "dnnl", compiler = "dnnl", builder = pl.tune.builder { kind = "command", ... },
--       patterns = { { "sum_relu", is_op "nn.relu" (is_op "add" (wildcard(), wildcard())) } } }
--
--     { name = "mine", compiler = "mine", patterns = { { "product", is_op "nn.matmul" (wildcard(),
--       wildcard()) } }, builder = pl.tune.builder { kind = "function", source = "mine.c",
--       symbol = "my_product" } }
--
-- name; compiler: the parts become functions with the attribute Compiler, otherwise they stay
-- calls of the host; transform: a pass, or the text of a pipeline, whose result replaces a part;
-- builder: what runs it (the evaluator); blas: "own" or "openblas" while it is measured; patterns:
-- rows of a name and a dataflow pattern; group: without patterns, calls with up to so many calls in
-- all that only they use (1); ops: names of operators that are taken, otherwise all.

local argument = require "perilune.argument"
local builder = require "perilune.tune.run.builder"
local core = require "perilune.core"
local subgraph = require "perilune.tune.subgraph"
core.internal()

local backends = {}

local names = { "name", "compiler", "transform", "builder", "blas", "patterns", "group", "ops" }

local products = { "nn.matmul", "nn.dense", "nn.batch_matmul", "nn.gemm", "nn.conv", "nn.conv2d" }

local function evaluator() return builder.new { kind = "evaluator" } end

local known = {
  evaluator = function() return { name = "evaluator" } end,
  own = function() return { name = "own", blas = "own" } end,
  openblas = function()
    return { name = "openblas", blas = "openblas", compiler = "openblas", ops = products }
  end,
  c = function()
    return { name = "c", compiler = "c", group = 4, builder = builder.new { kind = "c" } }
  end,
  ["com.microsoft"] = function()
    return { name = "com.microsoft", group = 8,
      transform = 'FuseOnnxOps{fusions="com.microsoft"}' }
  end,
}

local function set_of(list, place)
  local set = {}
  for _, name in ipairs(argument.table(list, place, "ops")) do
    set[argument.string(name, place, "an operator of ops")] = true
  end
  return set
end

local function transform_of(transform, place)
  if type(transform) == "string" then transform = core.pipeline(transform) end
  if argument.kind_of(transform) ~= "Pass" then
    argument.fail(("%s: transform: a pass or the text of a pipeline expected, got %s"):format(place,
      argument.kind_of(transform)))
  end
  return transform
end

local function check_patterns(patterns, place)
  for i, row in ipairs(argument.table(patterns, place, "patterns")) do
    local is_pattern = type(row) == "table"
      and require "perilune.dataflow_pattern.pattern".is_pattern(row[2])
    if not is_pattern or type(row[1]) ~= "string" then
      argument.fail(("%s: patterns: row %d is no name and dataflow pattern"):format(place, i))
    end
  end
  return patterns
end

local function check_blas(blas, place)
  if blas ~= "own" and blas ~= "openblas" then
    argument.fail(place .. ": blas: 'own' or 'openblas' expected")
  end
  return blas
end

local function checked(given, where, i)
  local place = ("%s: backend %d"):format(where, i)
  local row = argument.options(given, place, names)
  local group = row.group or 1
  if math.type(group) ~= "integer" or group < 1 then
    argument.fail(place .. ": group: an integer from 1 on expected")
  end
  if row.builder ~= nil and not builder.is(row.builder) then
    argument.fail(place .. ": builder: pl.tune.builder makes one")
  end
  return { name = argument.string(row.name, place, "name"), group = group,
    compiler = row.compiler ~= nil and argument.string(row.compiler, place, "compiler") or nil,
    transform = row.transform ~= nil and transform_of(row.transform, place) or nil,
    blas = row.blas ~= nil and check_blas(row.blas, place) or nil,
    builder = row.builder or evaluator(),
    patterns = row.patterns ~= nil and check_patterns(row.patterns, place) or nil,
    ops = row.ops ~= nil and set_of(row.ops, place) or nil }
end

-- The host computes what is left: each call alone.
local function check_host(host, where)
  if host.compiler or host.transform or host.patterns or host.ops then
    argument.fail(("%s: the first backend, '%s', is the host, which takes every call as it is")
      :format(where, host.name))
  end
end

--- The backends of a list of names and tables; nil: the evaluator and generated C.
function backends.list(given, where)
  local list, seen = {}, {}
  for i, one in ipairs(argument.table(given or { "evaluator", "c" }, where, "backends")) do
    if type(one) == "string" then
      if not known[one] then
        argument.fail(("%s: there is no backend '%s'%s"):format(where, one,
          argument.near(one, known)))
      end
      one = known[one]()
    end
    list[i] = checked(one, where, i)
    if seen[list[i].name] then
      argument.fail(("%s: two backends are called '%s'"):format(where, list[i].name))
    end
    seen[list[i].name] = true
  end
  if #list == 0 then argument.fail(where .. ": backends: the list is empty") end
  check_host(list[1], where)
  return list
end

-- ------------------------------------------------------------------------ parts

-- Whether a node is a call of more than constants.
local function is_work(node)
  if node.kind ~= "Call" then return false end
  for _, operand in ipairs(node.args) do
    if operand.kind ~= "Constant" then return true end
  end
  return false
end

-- Other compilers take tensors and give one; what is constant is no work for them.
local function fits(backend, part)
  if #part.outputs ~= 1 then return false end
  if not backend.compiler then return true end
  for _, input in ipairs(part.inputs) do
    if not input.type or input.type.kind ~= "tensor" then return false end
  end
  for _, node in ipairs(part.nodes) do
    if not is_work(node) then return false end
  end
  return part.outputs[1].type.kind == "tensor"
end

local function is_taken(backend, node)
  return node.kind == "Call" and node.op ~= nil and (not backend.ops or backend.ops[node.op.name])
end

-- The last of the calls that only the group uses.
local function next_member(backend, index, members, seen)
  local best
  for _, member in ipairs(members) do
    for _, operand in ipairs(member.args) do
      local users = index.users[operand]
      local alone = is_taken(backend, operand) and not seen[operand]
      for _, user in ipairs(users or {}) do alone = alone and seen[user] end
      if alone and (not best or index.place[operand] > index.place[best]) then best = operand end
    end
  end
  return best
end

-- A call, then with what only it uses, one call more each time.
local function add_groups(backend, index, root, name, add)
  local members, seen = { root }, { [root] = true }
  add(subgraph.part(index, members, name))
  while #members < backend.group do
    local member = next_member(backend, index, members, seen)
    if not member then return end
    members[#members + 1], seen[member] = member, true
    add(subgraph.part(index, members, name))
  end
end

--- The parts of a function that a backend takes, in order; they may have nodes in common.
function backends.parts(backend, index, name)
  local list = {}
  local function add(part)
    if part and fits(backend, part) then list[#list + 1] = part end
  end
  for _, row in ipairs(backend.patterns or {}) do
    for _, part in ipairs(subgraph.matches(index, row[2], name)) do add(part) end
  end
  for _, node in ipairs(backend.patterns and {} or index.order) do
    if is_taken(backend, node) then add_groups(backend, index, node, name, add) end
  end
  return list
end

return backends
