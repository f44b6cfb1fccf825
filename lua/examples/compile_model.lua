--- A model as generated C: its operators become tensor expressions, loops and one C source; the
-- result is compared with the evaluator's. An operator of one's own has a compute, too.
--
--     lua5.4 compile_model.lua

local pl = require "perilune"
local te = pl.te

local model = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 16), float32], %w: Tensor[(8, 16), float32], %b: Tensor[(8), float32]) {
  %0 = nn.bias_add(nn.dense(%x, %w, units=8), %b);
  nn.softmax(nn.relu(%0))
}]])

-- What LowerTE makes: a call of a function of loops for each fused function.
local lowered = pl.sequential { "InferType", "FuseOps", "LowerTE" } (model)
for name, fn in pairs(lowered) do print(name, fn.kind) end

-- The compute of an operator, by hand: a tensor and its schedule.
local x = te.placeholder({ 2, 8 }, "float32", "x")
local y = pl.topi.nn.softmax(x, -1)
local schedule = pl.topi.generic.schedule_softmax(y)
print(pl.lower(schedule, { args = { x, y }, name = "softmax" }))

-- The whole model, compiled and called.
local built = pl.build(model)
local info = built:model()
print(("%d calls, an arena of %d bytes"):format(info.calls, info.arena_bytes))

local function random(shape, seed)
  return pl.tensor.random(shape, "float32", { seed = seed, low = -1, high = 1 })
end
local input, weights, bias = random({ 2, 16 }, 1), random({ 8, 16 }, 2), random({ 8 }, 3)
local result = built.main(input, weights, bias)[1]
print((result:compare(pl.eval(model, input, weights, bias), { rtol = 1e-4, atol = 1e-5 })))

-- An operator of one's own: what it becomes is its attribute FTVMCompute.
pl.ops["my.cube"] = { args = { "x" }, infer = "same", traits = { "elementwise" } }
pl.op_attr("my.cube", "FTVMCompute", function(_, inputs)
  return pl.topi.multiply(pl.topi.multiply(inputs[1], inputs[1]), inputs[1])
end)
local v = pl.var("v", "Tensor[(4), float32]")
local cube = pl.build(pl.module { main = pl.func({ v }, pl.op.my.cube(v)) })
print(table.concat(cube.main({ 1, 2, 3, 4 })[1]:to_table(), " "))
