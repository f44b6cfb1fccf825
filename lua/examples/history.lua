--- History: where a node comes from: the passes and rules that made it, back to the
-- line of text, or the node of a file, that it was.
--
--     lua5.4 history.lua

local pl = require "perilune"

local mod = assert(pl.parse([[
#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) {
  %0 = add(multiply(%x, 1f), 0f);
  tanh(exp(%0))
}
]], "model.relay"))

pl.passes.Swap = { kind = "function", run = pl.mutator {
  Call = function(call)
    if call.op == pl.op.exp then return pl.op.sigmoid(call[1]) end
  end,
} }

local out = pl.pipeline "SimplifyExpr,Swap" (mod)
for node in out.main:nodes() do
  if node.kind == "Call" then
    print(node)
    for _, step in ipairs(node:history()) do
      print("", step.pass and ("%s, rule %s"):format(step.pass, step.rule) or step.source)
    end
  end
end
