-- Computes of recurrent layers: lstm, gru and rnn, with ONNX's attributes. What the input adds to
-- the gates is one product for all steps. The steps are loops of one statement: the state of a
-- sequence times the transposed weights, then the gates.

local core = require "perilune.core"
core.internal()

local dense = require "perilune.topi.nn.dense"
local dims = require "perilune.topi.dims"
local loops = require "perilune.topi.compute.loops"
local operand = require "perilune.tir.operand"
local te = require "perilune.te"
local tir = require "perilune.tir"
local transform = require "perilune.topi.transform"

local compute = {}

-- -------------------------------------------------------------- activations

-- Functions of x, alpha and beta, and the defaults of those two.
local activations = {
  Tanh = { function(x) return tir.tanh(x) end },
  Sigmoid = { function(x) return tir.sigmoid(x) end },
  Relu = { function(x) return tir.Select(tir.lt(x, 0.0), operand.const(0, x.dtype), x) end },
  Affine = { function(x, a, b) return x * a + b end, 1, 0 },
  LeakyRelu = { function(x, a) return tir.Select(tir.lt(x, 0.0), x * a, x) end, 0.01 },
  ScaledTanh = { function(x, a, b) return tir.tanh(x * b) * a end, false, false },
  HardSigmoid = { function(x, a, b) return tir.max(tir.min(x * a + b, 1.0), 0.0) end, 0.2, 0.5 },
  Softsign = { function(x) return x / (tir.abs(x) + 1.0) end },
}

-- The number of an activation: the next one of the list, or its default.
local function parameter(list, default)
  if default == nil then return nil end
  local value = list[list.next]
  list.next = list.next + 1
  return value or default
end

-- Functions of the gates, `n` for each direction; nil and a reason.
local function functions_of(attrs, n, directions, fallback)
  local names, found = attrs.activations or {}, {}
  local alphas = table.move(attrs.activation_alpha or {}, 1, 16, 1, { next = 1 })
  local betas = table.move(attrs.activation_beta or {}, 1, 16, 1, { next = 1 })
  for i = 1, n * directions do
    local name = #names > 0 and names[i] or fallback[(i - 1) % n + 1]
    local row = activations[name]
    if not row then return nil, "activation " .. tostring(name) end
    local alpha, beta = parameter(alphas, row[2]), parameter(betas, row[3])
    if alpha == false or beta == false then return nil, "an activation without numbers" end
    found[i] = function(x)
      return row[1](x, alpha and operand.const(alpha, x.dtype),
        beta and operand.const(beta, x.dtype))
    end
  end
  return found
end

local function clipped(f, limit)
  if not limit then return f end
  return function(x) return f(tir.max(tir.min(x, limit), -limit)) end
end

-- -------------------------------------------------------------------- layer

-- What a call says: extents, directions, functions; nil and a reason.
local function read(attrs, inputs, cell)
  local x, weights = inputs[1], inputs[3]
  if x.dtype ~= "float32" and x.dtype ~= "float64" then return nil, "of " .. x.dtype end
  local shape, batch_first = dims.of(x), attrs.layout == 1
  local direction = attrs.direction or "forward"
  local layer = { cell = cell, attrs = attrs, dtype = x.dtype, batch_first = batch_first,
    steps = shape[batch_first and 2 or 1], batch = shape[batch_first and 1 or 2],
    inputs = shape[3], hidden = dims.of(weights)[3], directions = dims.of(weights)[1],
    reverse = { direction == "reverse", true } }
  layer.width = cell.gates * layer.hidden
  local functions, reason = functions_of(attrs, #cell.fallback, layer.directions, cell.fallback)
  if not functions then return nil, reason end
  for i, f in ipairs(functions) do
    if not cell.cells or i % 3 ~= 0 then functions[i] = clipped(f, attrs.clip) end
  end
  layer.functions = functions
  return layer
end

-- The operand with its last two axes exchanged: ahead of time if it is constant.
local function transposed(x, arg)
  if arg.pack then return arg.pack { 0, 2, 1 } end
  return transform.transpose(x, { 0, 2, 1 })
end

-- What the input adds: (directions, steps * batch, width).
local function input_products(layer, inputs, args)
  local x = inputs[1]
  if layer.batch_first then x = transform.transpose(x, { 1, 0, 2 }) end
  local rows = transform.reshape(x, { 1, layer.steps * layer.batch, layer.inputs })
  return dense.matmul(rows, transposed(inputs[2], args[2]))
end

-- Places in results and states.
local function all_at(layer, t, d, b, j)
  return layer.batch_first and { b, t, d, j } or { t, d, b, j }
end

local function last_at(layer, d, b, j)
  return layer.batch_first and { b, d, j } or { d, b, j }
end

-- --------------------------------------------------------------------- steps

-- to[to_first + j] += sum of state[k] * R[k][first + j], for n gates: rows of R are read in a row,
-- ROWS of them in one sweep over the gates.
local ROWS = 8

local function add_state(run, state, first, n, to, to_first)
  local function rows(k, count)
    return loops.vectors(n, "j", function(j)
      local at = { j + to_first }
      local sum = to:load(at[1])
      for row = 0, count - 1 do
        sum = sum + state:load(k + row) * run.ins.r:load(run.d, k + row, j + first)
      end
      return tir.BufferStore(to, sum, at)
    end)
  end
  local hidden, list = run.layer.hidden, {}
  if hidden >= ROWS then
    list[1] = loops.over(hidden // ROWS, "k", function(k) return rows(k * ROWS, ROWS) end)
  end
  if hidden % ROWS > 0 then
    list[#list + 1] = rows(operand.const(hidden - hidden % ROWS, "int32"), hidden % ROWS)
  end
  return loops.seq(table.unpack(list))
end

-- The bias of W, or of R, of a gate; 0 without one.
local function bias(run, part, at)
  if not run.ins.bias then return operand.const(0, run.layer.dtype) end
  return run.ins.bias:load(run.d, at + part * run.layer.width)
end

-- gates = what the input adds, and both biases but that of R from `linear` on.
local function begin_gates(run, linear)
  local layer = run.layer
  linear = linear or layer.width
  local function part(first, last)
    if first == last then return nil end
    return loops.vectors(last - first, "j", function(lane)
      local j = lane + first
      local value = run.ins.x:load(run.d, run.t * layer.batch + run.b, j) + bias(run, 0, j)
      if first < linear then value = value + bias(run, 1, j) end
      return tir.BufferStore(run.gates, value, { j })
    end)
  end
  return loops.seq(part(0, linear), part(linear, layer.width))
end

-- Whether the sequence has this step; nil where all have it.
local function lasts(run)
  return run.ins.lengths and tir.lt(run.t, run.ins.lengths:load(run.b))
end

local function kept(run, new, old)
  local condition = lasts(run)
  return condition and tir.Select(condition, new, old) or new
end

-- Stores a new state of the sequence, and the result of the step.
local function finish(run, j, value)
  local layer, new = run.layer, tir.Var("h_new", run.layer.dtype)
  local out = tir.BufferStore(run.outs[1], kept(run, new, operand.const(0, layer.dtype)),
    all_at(layer, run.t, run.d, run.b, j))
  return tir.LetStmt(new, value,
    loops.seq(out, tir.BufferStore(run.h, kept(run, new, run.h:load(j)), { j })))
end

local function lstm_step(run)
  local layer, n, c = run.layer, run.layer.hidden, run.c
  local f1, f2, f3 = run.functions(1), run.functions(2), run.functions(3)
  local function gate(which, j, cell)
    local value = run.gates:load(j + which * n)
    if not run.ins.peepholes or which == 3 then return value end
    return value + run.ins.peepholes:load(run.d, j + which * n) * cell
  end
  local update = loops.vectors(n, "j", function(j)
    local i, old, new = tir.Var("i_gate", layer.dtype), c:load(j), tir.Var("c_new", layer.dtype)
    local f = layer.attrs.input_forget == 1 and 1.0 - i or f1(gate(2, j, old))
    local h = f1(gate(1, j, new)) * f3(new)
    return tir.LetStmt(i, f1(gate(0, j, old)), tir.LetStmt(new, f * old + i * f2(gate(3, j)),
      loops.seq(finish(run, j, h), tir.BufferStore(c, kept(run, new, old), { j }))))
  end)
  return loops.seq(begin_gates(run), add_state(run, run.h, 0, layer.width, run.gates, 0), update)
end

local function rnn_step(run)
  local f = run.functions(1)
  return loops.seq(begin_gates(run),
    add_state(run, run.h, 0, run.layer.hidden, run.gates, 0),
    loops.vectors(run.layer.hidden, "j", function(j)
      return finish(run, j, f(run.gates:load(j)))
    end))
end

-- (1 - z) * candidate + z * h.
local function blend(run, f1, candidate)
  return loops.vectors(run.layer.hidden, "j", function(j)
    local z = tir.Var("z_gate", run.layer.dtype)
    return tir.LetStmt(z, f1(run.gates:load(j)),
      finish(run, j, (1.0 - z) * candidate(j) + z * run.h:load(j)))
  end)
end

local function gru_step(run)
  local n, gates, spare = run.layer.hidden, run.gates, run.spare
  local f1, f2 = run.functions(1), run.functions(2)
  local function reset(j) return f1(gates:load(j + n)) end
  if run.layer.attrs.linear_before_reset == 1 then
    return loops.seq(begin_gates(run, 2 * n), add_state(run, run.h, 0, 2 * n, gates, 0),
      loops.vectors(n, "j", function(j)
        return tir.BufferStore(spare, bias(run, 1, j + 2 * n), { j })
      end), add_state(run, run.h, 2 * n, n, spare, 0), blend(run, f1, function(j)
        return f2(gates:load(j + 2 * n) + reset(j) * spare:load(j))
      end))
  end
  return loops.seq(begin_gates(run), add_state(run, run.h, 0, 2 * n, gates, 0),
    loops.vectors(n, "j", function(j)
      return tir.BufferStore(spare, reset(j) * run.h:load(j), { j })
    end), add_state(run, spare, 2 * n, n, gates, 2 * n),
    blend(run, f1, function(j) return f2(gates:load(j + 2 * n)) end))
end

-- ----------------------------------------------------------------- sequences

local function initial(run, buffer, state)
  return loops.over(run.layer.hidden, "j", function(j)
    local value = state and tir.BufferLoad(state, last_at(run.layer, run.d, run.b, j))
    return tir.BufferStore(buffer, value or operand.const(0, run.layer.dtype), { j })
  end)
end

-- The last state as a result; zero of a sequence without steps.
local function write_last(run, buffer, out)
  return loops.over(run.layer.hidden, "j", function(j)
    local value = buffer:load(j)
    if run.ins.lengths then
      value = tir.Select(tir.gt(run.ins.lengths:load(run.b), 0), value,
        operand.const(0, run.layer.dtype))
    end
    return tir.BufferStore(out, value, last_at(run.layer, run.d, run.b, j))
  end)
end

local function steps_of(run)
  local layer = run.layer
  local list = { initial(run, run.h, run.ins.h0) }
  if run.c then list[#list + 1] = initial(run, run.c, run.ins.c0) end
  list[#list + 1] = loops.over(layer.steps, "s", function(s)
    run.t = layer.reverse[run.number] and layer.steps - 1 - s or s
    return layer.cell.step(run)
  end)
  if run.outs[2] then list[#list + 1] = write_last(run, run.h, run.outs[2]) end
  if run.outs[3] then list[#list + 1] = write_last(run, run.c, run.outs[3]) end
  return loops.seq(table.unpack(list))
end

-- The statement of one direction, with the memory of its state.
local function direction(layer, number, ins, outs)
  local run = { layer = layer, number = number, d = number - 1, ins = ins, outs = outs,
    functions = function(i) return layer.functions[(number - 1) * #layer.cell.fallback + i] end }
  return loops.over(layer.batch, "b", function(b)
    run.b = b
    return loops.allocate(layer.width, layer.dtype, "gates", function(gates)
      run.gates = gates
      return loops.allocate(layer.hidden, layer.dtype, "h", function(h)
        run.h = h
        return loops.allocate(layer.hidden, layer.dtype, "spare", function(spare)
          run.spare, run.c = spare, layer.cell.cells and spare or nil
          return steps_of(run)
        end)
      end)
    end)
  end)
end

local function shapes_of(out_type)
  local parts, shapes, dtypes = out_type.kind == "tuple" and out_type.parts or { out_type }, {}, {}
  for i, part in ipairs(parts) do shapes[i], dtypes[i] = part.shape, part.dtype end
  return shapes, dtypes
end

local operands = { [4] = "bias", [5] = "lengths", [6] = "h0", [7] = "c0", [8] = "peepholes" }

local function define(name, cell)
  compute[name] = function(attrs, inputs, out_type, args)
    local layer, reason = read(attrs, inputs, cell)
    if not layer then return nil, reason end
    if layer.steps * layer.batch * layer.hidden * layer.inputs == 0 then return nil, "nothing" end
    if layer.directions == 1 and attrs.direction == "bidirectional" then
      return nil, "weights of one direction"
    end
    if layer.directions == 2 then layer.reverse = { false, true } end
    local tensors = { input_products(layer, inputs, args), transposed(inputs[3], args[3]) }
    local names = { "x", "r" }
    for i = 4, 8 do
      if inputs[i] then
        tensors[#tensors + 1], names[#names + 1] = inputs[i], operands[i]
      end
    end
    local shapes, dtypes = shapes_of(out_type)
    return { te.extern(shapes, tensors, function(buffers, outs)
      local ins, list = {}, {}
      for i, key in ipairs(names) do ins[key] = buffers[i] end
      for i = 1, layer.directions do list[i] = direction(layer, i, ins, outs) end
      return loops.seq(table.unpack(list))
    end, { name = "T_" .. name, dtype = dtypes }) }
  end
end

define("lstm", { gates = 4, fallback = { "Sigmoid", "Tanh", "Tanh" }, cells = true,
  step = lstm_step })
define("gru", { gates = 3, fallback = { "Sigmoid", "Tanh" }, step = gru_step })
define("rnn", { gates = 1, fallback = { "Tanh" }, step = rnn_step })

return compute
