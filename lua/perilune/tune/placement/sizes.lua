--- Placement of a function with symbolic sizes: its parts are measured at sizes that the user
-- gives, and the result keeps the symbols. Both functions have the same nodes in the same order.

local argument = require "perilune.argument"
local core = require "perilune.core"
local sorted_keys = require "perilune.sorted_keys"
local subgraph = require "perilune.tune.subgraph"
core.internal()

local sizes = {}

local function fail(format, ...)
  core.raise(core.diag("unsupported", format:format(...)))
end

--- Raises where `dims` is no table of sizes by name.
function sizes.check(dims, where)
  for name, size in pairs(argument.table(dims or {}, where, "dims")) do
    argument.string(name, where, "a name of dims")
    if math.type(size) ~= "integer" or size < 0 then
      argument.fail(("%s: dims: the size of '%s': an integer from 0 on expected"):format(where,
        name))
    end
  end
  return dims or {}
end

local function dims_of(type_, list)
  for _, part in ipairs(type_.parts or {}) do dims_of(part, list) end
  for _, dim in ipairs(type_.kind == "tensor" and type_.shape or {}) do
    if type(dim) ~= "number" then list[#list + 1] = tostring(dim) end
  end
  return list
end

-- Raises where a size of a parameter is open: no argument can be made then.
local function check_parameters(fn, where)
  for _, param in ipairs(fn.params) do
    local open = param.type and dims_of(param.type, {})[1]
    if open then
      fail("%s: the size '%s' of the input '%s' is open, so that nothing can be measured; `dims` "
        .. "gives the sizes to measure with, as dims = { %s = 1 }", where, open,
        param.name or "?", open:match "%a[%w_]*" or "N")
    end
  end
end

local function check_nodes(a, b, where)
  for i, node in ipairs(a.order) do
    local other = b.order[i]
    if not other or other.kind ~= node.kind or (other.op and other.op.name)
      ~= (node.op and node.op.name) then
      fail("%s: the program with these sizes is another one", where)
    end
  end
end

--- The module with these sizes. `measured`: its parts are to be run.
function sizes.bind(mod, dims, name, measured, where)
  local bound = mod
  for _, dim in ipairs(sorted_keys(dims)) do
    local better, diag = bound:fix_dim(dim, dims[dim])
    if not better then fail("%s: dims: %s = %d: %s", where, dim, dims[dim], diag.message) end
    bound = better
  end
  local index = subgraph.index(bound, name, where)
  if measured then check_parameters(bound.functions[name], where) end
  if bound ~= mod then check_nodes(subgraph.index(mod, name, where), index, where) end
  return bound, index
end

--- What was chosen for the bound program as parts of `mod`; transform(backend, part) gives what
-- takes the place of a part, or nil.
function sizes.unbound(mod, chosen, bound_index, name, transform, where)
  local index, list = subgraph.index(mod, name, where), {}
  for _, one in ipairs(chosen) do
    local nodes = {}
    for i, node in ipairs(one.part.nodes) do nodes[i] = index.order[bound_index.place[node]] end
    local part = subgraph.part(index, nodes, name)
    local made = part and transform(one.backend, part)
    if made then list[#list + 1] = { backend = one.backend, part = part, mod = made } end
  end
  return list
end

return sizes
