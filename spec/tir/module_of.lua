--- module_of(body): a module whose function main has the statements `body`, over the buffers A and
-- B of 64 float32 and the variable n.

local pl = require "perilune"

return function(body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), n: T.int32):
%s
]]):format((body:gsub("[^\n]+", "    %0")))))
end
