-- Dataflow patterns, by TVM's names: which part of a program matches, what it becomes, and
-- which parts go to an accelerator as functions of their own.

local pl = require "perilune"
local df = pl.dataflow_pattern

local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(3, 3, 3, 3), float32],
          %b: Tensor[(3), float32]) {
  %0 = nn.relu(nn.bias_add(nn.conv2d(%x, %w, padding=[1, 1, 1, 1]), %b));
  %1 = nn.conv2d(%0, %w, padding=[1, 1, 1, 1]);
  multiply(%1, sigmoid(%1))
}
]])

-- match: an object that is used twice is the same node twice
local y = df.wildcard()
local silu = y * df.is_op "sigmoid" (y)
print(silu, silu:match(mod.main.body), silu:match(mod.main.body.args[1]))

-- rewrite: the callback knows what each object matched
mod = df.rewrite({ pattern = silu, name = "silu", callback = function(_, _, node_map)
  return pl.op.nn.silu(node_map[y][1])
end }, mod)

-- partition, the largest composite first
local conv = df.is_op "nn.conv2d" (df.wildcard(), df.wildcard())
local bias = df.is_op "nn.bias_add" (conv, df.wildcard())
for _, composite in ipairs {
  { "dnn.conv2d_bias_relu", bias:optional(df.is_op "nn.relu") },
  { "dnn.conv2d_silu", df.is_op "nn.silu" (conv) },
} do
  mod = composite[2]:partition(mod, { Composite = composite[1] }, function(root)
    return root.type.dtype == "float32"
  end)
end
print(mod)
