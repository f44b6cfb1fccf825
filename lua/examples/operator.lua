--- An operator of one's own: typed, computed and folded in Lua, printed and parsed, written to
-- ONNX as a node of a custom domain, and used by a rule.

local pl = require "perilune"

pl.ops["example.lerp"] = {
  doc = "a + (b - a) * weight, element by element.",
  args = { "a", "b" },
  attrs = { weight = 0.5 },
  traits = { "broadcast" }, -- types calls by broadcasting and lets FuseOps fuse them
  eval = function(inputs, attrs)
    local a, b = pl.const(inputs.a), pl.const(inputs.b)
    return pl.eval(pl.func({}, a + (b - a) * attrs.weight))
  end,
  onnx = { domain = "com.example", op_type = "Lerp", attributes = { weight = "alpha" } },
}

-- a type function gets the operands' types and the attributes, with their defaults
pl.ops["example.pool"] = {
  doc = "The mean of neighbours along the last axis.",
  args = { "data" },
  attrs = { size = { kind = "int", required = true } },
  infer = function(types, attrs)
    local shape = table.move(types.data.shape, 1, #types.data.shape, 1, {})
    local last = shape[#shape]
    if last % attrs.size ~= 0 then
      return nil, ("%d does not divide the last axis, %d"):format(attrs.size, last)
    end
    shape[#shape] = last // attrs.size
    return pl.type { shape = shape, dtype = types.data.dtype }
  end,
}

local x = pl.var("x", "Tensor[(2, 6), float32]")
local lerp = pl.op.example.lerp
local pooled = pl.op.example.pool(lerp(x, 1.0), { size = 3 })
print(pooled.type)
print(select(2, pcall(pl.op.example.pool, x, { size = 4 })))

-- text is read as it was printed
local mod = pl.module { main = pl.func({ x }, pooled) }
print(mod)
assert(pl.equal(mod, assert(pl.parse(tostring(mod)))))

-- computed, and folded by FoldConstant
local constant = lerp(pl.const(pl.tensor { 0.0, 2.0 }), 4.0, { weight = 0.25 })
local folded = pl.passes.FoldConstant()(pl.module { main = pl.func({}, constant) })
print(folded.main.body.kind, table.concat(pl.eval(folded):to_table(), " "))

-- matched and made by rules
local simpler = pl.rules { "example.lerp(?a, ?b, weight=0) => ?a" }
local y = pl.var("y", "Tensor[(6), float32]")
print(simpler:apply(pl.func({ x, y }, lerp(x, y, { weight = 0 }))).body)

-- a node of com.example in ONNX, both ways
local path = os.tmpname()
assert(pl.onnx.save(pl.module { main = pl.func({ x }, lerp(x, x, { weight = 2 })) }, path))
local read = assert(pl.onnx.load(path))
print(read.main.body.op, read.main.body.attrs.weight, read.attrs.opset_import["com.example"])
os.remove(path)

for name, op in pairs(pl.ops) do
  if op.registered then print(name, op.doc) end
end
