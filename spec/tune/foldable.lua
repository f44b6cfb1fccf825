--- foldable(): a module with a product of constants, which folding takes away.

local pl = require "perilune"

return function()
  local x = pl.var("x", "Tensor[(1, 160), float32]")
  local elements = {}
  for i = 1, 160 do
    elements[i] = {}
    for k = 1, 160 do elements[i][k] = ((i * k) % 7) / 7 end
  end
  local w = pl.const(pl.tensor(elements, "float32"))
  return pl.module { main = pl.func({ x }, pl.op.nn.dense(x, pl.op.nn.dense(w, w))) }
end
