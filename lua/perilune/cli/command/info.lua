--- perilune info: what a model is made of.

local load = require "perilune.cli.load"
local sorted_keys = require "perilune.sorted_keys"

require "perilune.core".internal() -- diagnostics point at the scripts of others

local info = { description = "Shows the operators, shapes, parameters, opsets and dtypes of FILE." }

function info.arguments(parser)
  parser:argument("file", "The model to read."):argname "FILE"
  parser:flag("--json", "Prints JSON.")
  parser:flag("--macs", "Shows the multiply-accumulates of each operator, from the types alone.")
  require "perilune.cli.shapes".options(parser)
  parser:flag("--graph", "With --json: the nodes too.")
  parser:flag("--dot", "Prints a picture for Graphviz: perilune info --dot FILE | dot -Tsvg.")
end

-- Parameters are the constants of all functions: how many, how many elements
-- and bytes of each dtype. Reads no weights.
local function parameters(module)
  local total = { tensors = 0, elements = 0, bytes = 0, dtypes = {} }
  for _, fn in pairs(module) do
    for node in fn:nodes() do
      local data = node.kind == "Constant" and node.data
      if data then
        total.tensors = total.tensors + 1
        total.elements = total.elements + data.size
        total.bytes = total.bytes + data.bytes
        total.dtypes[data.dtype] = (total.dtypes[data.dtype] or 0) + data.size
      end
    end
  end
  return total
end

-- As a table: what the module has is an Attrs object.
local function opsets_of(module)
  local opsets = {}
  for domain, version in pairs(module.attrs.opset_import or {}) do opsets[domain] = version end
  return opsets
end

-- Names and types as texts.
local function named(values)
  local list = {}
  for i, value in ipairs(values) do list[i] = { name = value.name, type = tostring(value.type) } end
  return list
end

-- Multiply-accumulates by operator of the engine, and how many calls have open dims.
local function multiply_accumulates(module)
  local core = require "perilune.core"
  local macs = { total = 0, open = 0, operators = {} }
  require "perilune".post_order(module, function(node)
    if node.kind ~= "Call" or not node.op then return end
    local n = core.cost(node)
    if math.type(n) ~= "integer" then
      macs.open = macs.open + 1
    elseif n > 0 then
      macs.total = macs.total + n
      macs.operators[node.op.name] = (macs.operators[node.op.name] or 0) + n
    end
  end)
  return macs
end

local function collect(options)
  local path, shapes = options.file, require "perilune.cli.shapes"
  local fixed = shapes.parse(options)
  local module, diag = load.model(path)
  if not module then error(diag, 0) end
  module = shapes.fix(module, fixed)
  local counts = require "perilune.cli.counts"(path, module, load.bytes(path))
  local inputs, outputs = require "perilune.cli.signature"(module)
  local functions = {}
  for name in pairs(module) do
    if name ~= "main" then functions[#functions + 1] = name end
  end
  return {
    module = module, file = path, ir_version = module.attrs.ir_version, opsets = opsets_of(module),
    features = sorted_keys(require "perilune".features(module)),
    inputs = named(inputs), outputs = named(outputs), functions = functions, counts = counts,
    parameters = parameters(module), macs = options.macs and multiply_accumulates(module) or nil,
  }
end

local function show_values(title, values)
  print(title)
  for _, value in ipairs(values) do print(("  %s: %s"):format(value.name, value.type)) end
end

local function show_opsets(opsets)
  local parts = {}
  for _, domain in ipairs(sorted_keys(opsets)) do
    parts[#parts + 1] = ("%s %d"):format(domain == "" and "ai.onnx" or domain, opsets[domain])
  end
  print("opsets: " .. table.concat(parts, ", "))
end

local function show_parameters(total)
  local units = require "perilune.cli.units"
  local parts = {}
  for _, dtype in ipairs(sorted_keys(total.dtypes)) do
    parts[#parts + 1] = ("%s %d"):format(dtype, total.dtypes[dtype])
  end
  local dtypes = #parts > 0 and " (" .. table.concat(parts, ", ") .. ")" or ""
  print(("parameters: %d in %d tensors, %s%s"):format(total.elements, total.tensors,
    units.bytes(total.bytes), dtypes))
end

local function show_macs(macs)
  print(("multiply-accumulates: %d%s"):format(macs.total, macs.open == 0 and "" or
    (", and those of %d operators whose dims are open (--dim, --shape)"):format(macs.open)))
  local rows = {}
  for _, name in ipairs(sorted_keys(macs.operators)) do
    rows[#rows + 1] = { " ", name, tostring(macs.operators[name]) }
  end
  if #rows > 0 then io.stdout:write(require "perilune.columns"(rows)) end
end

local function show(model)
  print(model.file)
  if not load.is_text(model.file) then
    print(("IR version: %s"):format(model.ir_version or "?"))
    show_opsets(model.opsets)
  end
  show_values("inputs:", model.inputs)
  show_values("outputs:", model.outputs)
  if #model.functions > 0 then print("functions: " .. table.concat(model.functions, ", ")) end
  if #model.features > 0 then print("features: " .. table.concat(model.features, ", ")) end
  show_parameters(model.parameters)
  print(("operators: %d nodes, %d of them compute"):format(model.counts.nodes,
    model.counts.compute_nodes))
  local rows = {}
  for _, name in ipairs(sorted_keys(model.counts.operators)) do
    rows[#rows + 1] = { " ", name, tostring(model.counts.operators[name]) }
  end
  if #rows > 0 then io.stdout:write(require "perilune.columns"(rows)) end
  if model.macs then show_macs(model.macs) end
end

local function show_json(model, graph)
  local json = require "perilune.json"
  local total = model.parameters
  local text = json.encode(json.object {
    { "file", model.file }, { "ir_version", model.ir_version }, { "opsets", model.opsets },
    { "inputs", json.list(model.inputs) }, { "outputs", json.list(model.outputs) },
    { "functions", json.list(model.functions) }, { "features", json.list(model.features) },
    { "parameters", json.object {
      { "tensors", total.tensors }, { "elements", total.elements }, { "bytes", total.bytes },
      { "dtypes", total.dtypes } } },
    { "nodes", model.counts.nodes }, { "compute_nodes", model.counts.compute_nodes },
    { "operators", model.counts.operators }, { "macs", model.macs },
  })
  -- The nodes are a long text that the module writes itself.
  if graph then text = ('%s,"graph":%s}'):format(text:sub(1, -2), model.module:json()) end
  print(text)
end

local function show_dot(path)
  io.stdout:write(assert(load.model(path)):dot())
end

function info.run(options)
  if options.dot then
    show_dot(options.file)
    return 0
  end
  local model = collect(options)
  if options.json or options.graph then show_json(model, options.graph) else show(model) end
  return 0
end

return info
