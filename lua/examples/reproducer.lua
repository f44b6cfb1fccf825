--- A reproducer: when a pass fails, a file with all it takes to fail again. Here it
-- is written, read, and replayed with the script mended.
--
--     lua5.4 reproducer.lua FILE.relay
--
-- `perilune replay FILE.relay` does the same as the last lines.

local pl = require "perilune"

local path = assert(..., "a file for the reproducer is needed")

-- A pass with a mistake: not every call has two operands.
local swap = pl.function_pass { name = "Swap", run = pl.mutator {
  Call = function(call)
    if call.args[1].type == call.args[2].type then return call.op(call[2], call[1]) end
  end,
} }

local x = pl.var("x", "Tensor[(4), float32]")
local mod = pl.module { main = pl.func({ x }, pl.op.tanh(x + 0.0)) }
local pipeline = pl.sequential { name = "deploy", "SimplifyExpr", pl.fixpoint { rounds = 2, swap } }

local context = pl.context { opt_level = 3, config = { reproducer = path } }
local _, failure = pcall(pl.with, context, pipeline, mod)
print(failure.message)

-- Reading runs nothing.
local what = assert(pl.reproducer.read(path))
print(what.whole .. ", of which " .. what.ran .. " ran; then " .. what.pipeline .. ":")
print(what.failure.text)

-- The script runs as far as it applies a pass, for the passes that it makes.
local passes, again = pl.reproducer.replay(what)
print(passes, again.message == failure.message and "fails as it did" or again)

local script = what.scripts[1]
script.source = script.source:gsub("  if call.args", "  if call[2] and call.args")
local mended, module = pl.reproducer.replay(what)
print(mended, module)
