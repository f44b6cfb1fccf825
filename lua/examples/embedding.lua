--- Embedding: a tool of one's own on top of the library: it says how a model
-- changes when each pass of a pipeline runs alone, and leaves failures to the
-- caller as values.
--
--     lua5.4 embedding.lua [model.onnx] [pass ...]
--
-- The same code works in any program that can load a Lua 5.4 C module.

local pl = require "perilune"

local tool = {}

--- Counts calls by operator, over all functions.
function tool.operators(mod)
  local counts = {}
  for _, fn in pairs(mod) do
    for node in fn:nodes() do
      local op = node.op
      if op then counts[op.name] = (counts[op.name] or 0) + 1 end
    end
  end
  return counts
end

local function total(counts)
  local n = 0
  for _, count in pairs(counts) do n = n + count end
  return n
end

--- Runs one pass in a context of its own: the module, or nil and a diagnostic.
-- A pass that fails has changed nothing, so going on is safe.
function tool.try(mod, name)
  local ok, result = pcall(function() return pl.passes[name]()(mod) end)
  if ok then return result end
  return nil, result
end

--- A list of { pass, before, after, seconds }, one row a pass that ran.
function tool.compare(mod, names)
  local rows, before = {}, total(tool.operators(mod))
  for _, name in ipairs(names) do
    local out, diag = tool.try(mod, name)
    local report = pl.report()
    rows[#rows + 1] = {
      pass = name, before = before, diag = diag,
      after = out and total(tool.operators(out)),
      seconds = report[1] and report[1].seconds or 0,
    }
  end
  return rows
end

-- A stand-in for a model: y = relu(x + 0), twice.
local function sample()
  local x = pl.var("x", "Tensor[(2, 3), float32]")
  return pl.module { main = pl.func({ x },
    pl.tuple(pl.op.nn.relu(x + 0.0), pl.op.nn.relu(x + 0.0))) }
end

local function main(path, ...)
  local names = { ... }
  if #names == 0 then names = { "SimplifyExpr", "EliminateCommonSubexpr", "NoSuchPass" } end
  local mod = path and assert(pl.onnx.load(path)) or sample()
  for _, row in ipairs(tool.compare(mod, names)) do
    print(("%-24s %4d -> %-4s %s"):format(row.pass, row.before, row.after or "?",
      row.diag and "failed" or ""))
  end
end

-- Run as a script it prints; loaded by `require` it is a module.
if arg and arg[0] and arg[0]:find "embedding%.lua$" then main(...) end

return tool
