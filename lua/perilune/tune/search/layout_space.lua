--- The space of layouts: one for the whole model, and one for each convolution.
--
-- The first decisions are those of convolutions, by their number in each function as skip_layers of
-- ConvertLayout counts them: what the model's is, or a layout. The last one is the model's: all
-- stay as they are, or take a layout. The text of a point is a pipeline: ConvertLayout for each
-- layout, then FoldConstant, which computes the new weights.
--
-- Convolutions of ONNX have one layout. A point of such a program writes them as Relay's first
-- (OnnxToRelay), and the result as ONNX's operators between transposes (RelayToOnnx), so that it
-- can be saved as what it was. In generated C each result is blocked, plain or (N, H, W, C) in
-- memory in place of that (perilune.topi.layout), which AnnotateSchedules says: decisions between
-- those of layers and that of the model.

local argument = require "perilune.argument"
local core = require "perilune.core"
local choice_space = require "perilune.tune.search.choice_space"
local decision = require "perilune.topi.decision"
core.internal()

local space = {}

local methods = {}

-- Layouts of data, with those of weights. Blocked ones come last: a convolution in blocks is
-- another operator, which is counted no more.
local layouts = {
  { name = "NCHW", weights = "default", conv3d = "NCDHW" },
  { name = "NHWC", weights = "default", conv3d = "NDHWC" },
  { name = "NCHW8c", weights = "OIHW8i8o", block = 8 },
  { name = "NCHW16c", weights = "OIHW16i16o", block = 16 },
}

-- -------------------------------------------------------------------- programs

-- Around the passes of a program of ONNX. Weights in the layout of ONNX are computed, a bias is an
-- operand of its convolution again.
local FROM_ONNX = "OnnxToRelay"
local TO_ONNX = 'RelayToOnnx,FoldConstant{fold="all"},FoldConvBias,SimplifyExpr'

local counted = { ["nn.conv2d"] = true, ["nn.deformable_conv2d"] = true }

-- The extent of the axis of a letter; nil where it is no number.
local function extent(type_, layout, letter)
  local axis = layout:find(letter, 1, true)
  local dim = axis and type_.kind == "tensor" and type_.shape and type_.shape[axis]
  return math.type(dim) == "integer" and dim or nil
end

local function divides(block, n) return n ~= nil and n % block == 0 end

local function data_layout(call) return call.attrs.data_layout or "NCHW" end

-- Whether a convolution can be computed in that layout.
local function admits(call, layout)
  if call.op.name ~= "nn.conv2d" then return false end
  if not layout.block then return true end
  local args, data = call.args, data_layout(call)
  return (call.attrs.groups or 1) == 1 and not data:find "%d"
    and divides(layout.block, extent(args[1].type, data, "C"))
    and divides(layout.block, extent(args[2].type, call.attrs.kernel_layout or "OIHW", "O"))
end

-- What the layers of all functions admit, by number: lists of layouts and the one that they have.
local function add_layer(layers, k, call)
  local layer = layers[k] or { has = data_layout(call), admits = {} }
  for _, layout in ipairs(layouts) do
    local ok = admits(call, layout)
    layer.admits[layout.name] = ok and layer.admits[layout.name] ~= false
  end
  if layer.has ~= data_layout(call) then layer.has = nil end
  layers[k] = layer
end

local function add_layers(layers, fn, others)
  local k = 0
  for node in fn:nodes() do
    local name = node.kind == "Call" and node.op and node.op.name
    if counted[name] then
      k = k + 1
      add_layer(layers, k, node)
    elseif name == "nn.conv2d_transpose" or name == "nn.conv3d" then
      others[name] = true
    end
  end
end

local function scan(mod)
  local layers, others = {}, {}
  for _, fn in pairs(mod) do
    if fn.kind == "Function" then add_layers(layers, fn, others) end
  end
  return layers, others
end

local function from_onnx(mod) return core.pipeline(FROM_ONNX)(mod) end

-- ---------------------------------------------------------------------- points

-- The layout that a layer gets; nil: it stays.
local function layout_of(self, layer, choice, of_model)
  local wanted = choice > 1 and self.layer_choices[choice - 1] or of_model
  if wanted and layer.admits[wanted.name] and layer.has ~= wanted.name then return wanted end
end

-- Numbers of the layers that do not get this layout, among those that are counted still; and
-- whether one gets it.
local function skipped(layers, wanted, layout)
  local skip, n, used = {}, 0, false
  for k in ipairs(layers) do
    local other = wanted[k]
    local gone = other and other.block and other.block < (layout.block or 0)
    if not gone then
      if other == layout then used = true else skip[#skip + 1] = tostring(n) end
      n = n + 1
    end
  end
  return skip, used
end

-- Entries of desired_layouts.
local function desired_text(self, layout, for_convolutions, for_others)
  local parts = {}
  if for_convolutions then
    parts[1] = ('"nn.conv2d"=["%s","%s"]'):format(layout.name, layout.weights)
  end
  if for_others and layout.conv3d then
    if self.others["nn.conv2d_transpose"] then
      parts[#parts + 1] = ('"nn.conv2d_transpose"=["%s","default"]'):format(layout.name)
    end
    if self.others["nn.conv3d"] then
      parts[#parts + 1] = ('"nn.conv3d"=["%s","default"]'):format(layout.conv3d)
    end
  end
  return #parts > 0 and table.concat(parts, ",")
end

-- What is decided for results in memory, as a pass; nil: the defaults.
local function memory_text(self, decisions)
  local own = {}
  for i, row in ipairs(self.memory) do
    local choice = decisions[self.n_layers + i]
    if choice > 1 then own[row.name] = row.candidates[choice] end
  end
  local text = decision.text { [self.memory.key or ""] = own }
  return text ~= "" and ('AnnotateSchedules{decisions="%s"}'):format(text) or nil
end

local function pipeline_text(self, wanted, of_model, decisions)
  local passes = {}
  for _, layout in ipairs(layouts) do
    local skip, used = skipped(self.layers, wanted, layout)
    local desired = desired_text(self, layout, used, of_model == layout)
    if desired then
      local rest = #skip > 0 and (",skip_layers=[%s]"):format(table.concat(skip, ",")) or ""
      passes[#passes + 1] = ("ConvertLayout{desired_layouts={%s}%s}"):format(desired, rest)
    end
  end
  if #passes > 0 then passes[#passes + 1] = 'FoldConstant{fold="all"}' end
  if #passes > 0 and self.onnx then
    table.insert(passes, 1, FROM_ONNX)
    passes[#passes + 1] = TO_ONNX
  end
  passes[#passes + 1] = memory_text(self, decisions)
  return table.concat(passes, ",")
end

--- A point of decisions.
function methods.make(self, decisions)
  local n, wanted = #self.n_choices, {}
  local of_model = self.model_choices[decisions[n] - 1]
  for k, layer in ipairs(self.layers) do
    -- Of a program with other layers than those that were counted first.
    wanted[k] = layout_of(self, layer, k <= self.n_layers and decisions[k] or 1, of_model)
  end
  return { decisions = decisions, text = pipeline_text(self, wanted, of_model, decisions) }
end

--- The pipeline of a point.
function methods.text(_, point) return point.text end

--- The points to begin with: all stays as it is, and each layout for the whole model.
function methods.start(self)
  local list = {}
  for choice = 1, #self.model_choices + 1 do
    local decisions = {}
    for i = 1, #self.n_choices - 1 do decisions[i] = 1 end
    decisions[#self.n_choices] = choice
    list[choice] = self:make(decisions)
  end
  return list
end

--- The same decisions for another program, which an earlier space of a joint one makes.
function methods.rebase(self, mod, point)
  local layers, others = scan(self.onnx and from_onnx(mod) or mod)
  return methods.make(setmetatable({ layers = layers, others = others }, { __index = self }),
    point.decisions)
end

local class = choice_space.class("layout space", methods)

-- Layouts that a layer, or one of the other operators, does not have.
local function choices_of(layers, others)
  local list = {}
  for _, layout in ipairs(layouts) do
    local useful = layout.conv3d and next(others) ~= nil
    for _, layer in ipairs(layers) do
      useful = useful or layer.admits[layout.name] and layer.has ~= layout.name
    end
    if useful then list[#list + 1] = layout end
  end
  return list
end

-- What is decided for the results of ONNX's convolutions in generated C.
local function memory_of(mod)
  local model = require "perilune.codegen.model"
  if not model.is_model(mod) then return {} end
  local rows = {}
  require "perilune.topi.lower_te"(model.fused(mod), { layout = "NCHWc", winograd = "on",
    only = true, schedules = {}, on_layout = function(of_function)
      table.move(of_function, 1, #of_function, #rows + 1, rows)
    end })
  if #rows > 0 then rows.key = require "perilune.topi.layout".KEY end
  return rows
end

--- The space of the layouts of a program. `compiled`: what is measured is generated C.
function space.new(mod, compiled, where)
  local layers, others = scan(mod)
  local onnx = #layers == 0 and next(others) == nil
  local memory = compiled and onnx and memory_of(mod) or {}
  if onnx and not compiled then layers, others = scan(from_onnx(mod)) end
  local list = choices_of(layers, others)
  if #list == 0 and #memory == 0 then
    argument.fail(where .. ": space: layout: the program has no convolution whose layout can be "
      .. "changed (nn.conv2d, nn.conv2d_transpose, nn.conv3d, and nn.conv over two axes)")
  end
  local counts = {}
  for k in ipairs(layers) do counts[k] = #layouts + 1 end
  for _, row in ipairs(memory) do counts[#counts + 1] = #row.candidates end
  counts[#counts + 1] = #list + 1
  return setmetatable({ kind = "layout", layers = layers, others = others, model_choices = list,
    layer_choices = layouts, n_choices = counts, n_layers = #layers, memory = memory,
    onnx = onnx }, class)
end

return space
