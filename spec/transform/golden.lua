-- Golden pairs of a pass: a program in Relay text, and what the pass makes of it.

local pl = require "perilune"

local golden = {}

local function module(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

-- Applies the pass; the result is valid and final, and the input stays as it was.
function golden.apply(pass, before)
  local text = tostring(before)
  local after = pass(before)
  assert(pl.verify(after))
  assert(pl.equal(after, pass(after)), "the pass changes its own result")
  assert(text == tostring(before), "the pass changed its input")
  return after
end

-- Both compute the same, where the evaluator has a kernel for what the input calls.
local function computes_the_same(before, after, inputs)
  local same, diag = pl.check(before, after, inputs)
  local refused = not same and tostring(diag):find("only the first refuses", 1, true)
  assert(same or refused, diag)
end

-- `inputs`: options of pl.check; false: the result computes something else by definition.
function golden.becomes(pass, before, expected, inputs)
  before, expected = module(before), module(expected)
  local after = golden.apply(pass, before)
  if not pl.equal(after, expected) then
    error(("%s\nexpected %s\ngot %s"):format(pl.mismatch(after, expected), expected, after), 2)
  end
  if inputs ~= false then computes_the_same(before, after, inputs) end
  return after
end

-- The very same module comes back.
function golden.stays(pass, text)
  local mod = module(text)
  assert(mod == pass(mod), "the pass changed the module")
end

golden.module = module

return golden
