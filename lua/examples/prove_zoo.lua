--- Proves an optimisation: makes a small model of every family of the zoo,
-- optimises it, and lets the evaluator compute both on random inputs.
--
--     lua5.4 prove_zoo.lua [family ...]
--
-- Your own models: pl.onnx.load instead of zoo.build, the rest stays.

local pl = require "perilune"
local zoo = require "perilune.zoo"
local default = require "perilune.pipelines.default"

-- Small enough to be computed many times in a second; N and S stay open.
local sizes = {
  resnet = { depth = 50, width = 8, image = 32, classes = 10 },
  mobilenetv2 = { width = 0.25, image = 32, classes = 10 },
  bert = { hidden = 32, heads = 4, intermediate = 64, vocabulary = 50 },
  gpt2 = { hidden = 32, heads = 4, vocabulary = 50 },
  vit = { hidden = 32, heads = 4, mlp = 64, image = 32, patch = 8, classes = 10 },
  lstm = { hidden = 16, vocabulary = 50 },
}

-- Passes that fold weights add floats in another order.
local check = { rounds = 3, rtol = 1e-4, atol = 1e-4 }

local function calls(module)
  local n = 0
  for node in module.main:nodes() do
    if node.kind == "Call" then n = n + 1 end
  end
  return n
end

local function prove(name)
  local module = assert(pl.onnx.parse(assert(zoo.build(name, sizes[name])):tostring()))
  local optimised = default(module)
  local same, reason = pl.check(module, optimised, check)
  print(("%-12s %5d -> %4d calls   %s"):format(name, calls(module), calls(optimised),
    same and "computes the same" or "NOT PROVED: " .. tostring(reason)))
  return same
end

local wanted, failures = { ... }, 0
for i, family in ipairs(zoo.families) do
  if #{ ... } == 0 then wanted[i] = family.name end
end
for _, name in ipairs(wanted) do
  if not prove(name) then failures = failures + 1 end
end
if failures > 0 then os.exit(false) end
