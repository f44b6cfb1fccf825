-- Work is linear: when a program of functions, lets, scopes, type definitions or constants
-- doubles, what passes and whole-module calls cost doubles. Cost is what can be counted: bytes
-- that the engine asks for, and instructions of Lua; spec/bench/doubling.lua takes the time.

package.path = "spec/bench/?.lua;" .. package.path

local pl = require "perilune"
local programs = require "programs"

local SMALL, DOUBLINGS = 150, 2
-- A doubling: 2 when work is linear, 4 when it is quadratic. Arrays grow by powers of two, so
-- that one step more may be taken.
local LIMIT = 2.9
-- What is below is too little to tell how it grows.
local BYTES, INSTRUCTIONS, STEP = 200000, 20000, 100

-- FuseOps makes groups of at most 256 operators: what is smaller is one group.
local smallest = { ladders = 600 }

-- Runs the calls of the program: its result may be exponentially larger (option max_steps).
local unbounded = { PartialEvaluate = true }
-- Refuses functions with the attribute Primitive, and values with several uses that no let binds.
-- Gradients refuse operators that have none too, Defunctionalization results that are functions.
local may_refuse = { ToCPS = true, Gradient = true, FirstOrderGradient = true,
  LazyGradientInit = true, Defunctionalization = true }

local function allocated() return (select(4, pl.memory())) end

-- Bytes and instructions; `refusal`: of a failure too.
local function cost(f, mod, refusal)
  local n = 0
  local before = allocated()
  debug.sethook(function() n = n + 1 end, "", STEP)
  local ok, err = pcall(f, mod)
  debug.sethook()
  if not ok and not refusal then error(tostring(err), 0) end
  return allocated() - before, n * STEP
end

local function ratio(small, large, least, doublings)
  if large < least or small == 0 then return 0 end
  return (large / small) ^ (1 / doublings)
end

local works = {}
for name in pairs(pl.passes) do
  if name ~= "PrintIR" and not unbounded[name] then
    local pass = pl.sequential { opt_level = 0, name }
    works[#works + 1] = { name, function(mod)
      return pl.with(pl.context { opt_level = 4 }, pass, mod)
    end }
  end
end

local function idle() end

-- Not for programs whose text is indented by their depth. AnnotateSpans reads the text.
local with_text = { text = true, differences = true, AnnotateSpans = true }

-- f(main, mod): for programs of the loop level.
local function of_loops(f)
  return function(mod)
    local main = mod.functions.main
    if main.kind == "PrimFunc" then f(main, mod) end
  end
end

local function with(instrument, text)
  return function(mod)
    local ctx = pl.context { opt_level = 3, instruments = { instrument() } }
    return pl.with(ctx, pl.pipeline(text), mod)
  end
end

local round = "SimplifyExpr,FoldConstant,EliminateCommonSubexpr,DeadCodeElimination"
for _, row in ipairs {
  { "a fixpoint", function(mod)
    return pl.with(pl.context { opt_level = 3 }, pl.pipeline("fixpoint(4){" .. round .. "}"), mod)
  end },
  { "functions{...} with an instrument", with(function()
    return { name = "idle", before = idle }
  end, "functions{" .. round .. "}") },
  -- What differs in more lines is only named: the search is quadratic in them.
  { "differences", with(function()
    return pl.instruments.diff { write = idle, most = 10 }
  end, round) },
  { "statistics", with(function() return pl.instruments.statistics() end, round) },
  { "a kept result", function(mod)
    local ctx = pl.context { opt_level = 3, config = { cache = 1 << 30 } }
    pl.with(ctx, pl.pipeline(round), mod)
    pl.with(ctx, pl.pipeline(round), mod)
    pl.cache_clear()
  end },
  { "a mutator", pl.function_pass { name = "Mutator", run = pl.mutator {
    Call = function(_, rebuild)
      local new = rebuild()
      return new.op == pl.op.tanh and pl.op.exp(new.args[1]) or new
    end } } },
  { "functions by name", function(mod)
    for _, name in ipairs(mod.names) do assert(mod.functions[name]) end
  end },
  { "functions removed", function(mod)
    local names = {}
    for _, name in ipairs(mod.names) do if name ~= "main" then names[#names + 1] = name end end
    mod:without(names)
  end },
  { "text", function(mod) assert(pl.parse(mod:text())) end },
  { "equality", function(mod) assert(pl.equal(mod, mod:with_attrs { k = 1 }) == false) end },
  { "hash", pl.hash }, { "verify", pl.verify }, { "well_formed", pl.well_formed },
  { "infer_type", pl.infer_type }, { "features", pl.detect_feature },
  { "basic blocks", pl.is_basic_block_normal_form },
  { "a run", function(mod)
    local args = programs.arguments(mod)
    if args then pcall(pl.eval, mod, table.unpack(args, 1, #mod.functions.main.params)) end
  end },
  { "definitions of types", function(mod)
    for i = 1, #mod.types do assert(mod.types[i].name) end
  end },
  { "pl.tir.check", of_loops(function(_, mod) pl.tir.check(mod, mod, { rounds = 1 }) end) },
  { "pl.tir.verify_ssa", of_loops(pl.tir.verify_ssa) },
  { "pl.tir.verify_well_formed", of_loops(pl.tir.verify_well_formed) },
  { "pl.tir.undefined_vars", of_loops(function(fn) pl.tir.undefined_vars(fn.body) end) },
  { "pl.tir.substitute", of_loops(function(fn)
    for _, var in ipairs(fn.params) do
      if var.dtype == "int32" then pl.tir.substitute(fn.body, { [var] = 3 }) end
    end
  end) },
  { "pl.tir.transform", of_loops(function(fn) pl.tir.transform(fn, nil, idle) end) },
  { "picture", function(mod) mod:dot() end }, { "json", function(mod) mod:json() end },
} do works[#works + 1] = row end

local names = { "bytes", "instructions" }
local least = { BYTES, INSTRUCTIONS }

-- What of `large` is above the limit after that many doublings of the program: a text for each.
local function excesses(work, small, large, doublings)
  local found = {}
  for i, name in ipairs(names) do
    if ratio(small[i], large[i], least[i], doublings) > LIMIT then
      found[i] = ("%s: %d, then %d %s"):format(work, small[i], large[i], name)
    end
  end
  return found
end

describe("twice the program costs at most twice as much:", function()
  for _, program in ipairs(programs) do
    it(program.name, function()
      local size = smallest[program.name] or SMALL
      local small, large = program.make(size), program.make(size << DOUBLINGS)
      for _, work in ipairs(works) do
        -- Passes over PrimFuncs have an order.
        local name, f = work[1], work[2]
        local refusal = may_refuse[name] or name:find("tir.", 1, true) == 1
        if program.nested and with_text[name] then f = idle end
        -- What is made once; of another program, as passes note what they did not change.
        cost(f, program.make(size), refusal)
        local few = { cost(f, small, refusal) }
        local many = { cost(f, large, refusal) }
        local found = excesses(name, few, many, DOUBLINGS)
        if next(found) then
          -- The engine's tables of types and names double now and then, whatever is done at that
          -- time, and they have what the small program needs. What grows faster than the program
          -- does so from there to the next size too.
          local larger = program.make(size << DOUBLINGS + 1)
          local again = excesses(name, many, { cost(f, larger, refusal) }, 1)
          for i, text in pairs(found) do assert.is_nil(again[i] and text .. "; " .. again[i]) end
        end
      end
    end)
  end
end)
