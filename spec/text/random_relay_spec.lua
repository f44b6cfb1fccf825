-- What holds of every Relay program: of modules made at random, the text is read
-- as an equal module of the same hash and printed the same; what is typed is
-- typed for good; a sweep that changes nothing gives the very same module; each
-- pass leaves a valid, well-formed module, its types known, that computes the same
-- and that it does not change again; bytes that are changed in its text never
-- break the reader.
--
-- PERILUNE_PROGRAMS says how many, PERILUNE_SEED which come first; a seed that
-- fails is named.

local pl = require "perilune"
local amount = require "spec.random.amount"
local random_relay = require "spec.random.relay"

local first = tonumber(os.getenv "PERILUNE_SEED") or 1
local programs = amount("PERILUNE_PROGRAMS", 100)

local passes, prim_func_passes = {}, {}
for name, pass in pairs(pl.passes) do
  local list = pass.kind == "prim_func" and prim_func_passes or passes
  if name ~= "PrintIR" then list[#list + 1] = name end
end
table.sort(passes)
table.sort(prim_func_passes)

-- These refuse what their definition leaves out: type parameters, operators without a gradient,
-- values with several uses that no let binds, a @main that returns a function.
local refuses = { Gradient = true, FirstOrderGradient = true, LazyGradientInit = true, ToCPS = true,
  PartialEvaluate = true, Defunctionalization = true }
-- These give another program each time: derivatives, continuations, annotations, operators on what
-- was cast for them, what is left of the functions that were evaluated; and a pipeline whose
-- last pass leaves less to the first. Spans in a text's comments move what follows them.
local not_idempotent = { Gradient = true, FirstOrderGradient = true, LazyGradientInit = true,
  ToCPS = true, AnnotateTarget = true, PartialEvaluate = true, ToMixedPrecision = true,
  ["relay.default"] = true, ["relay.optimize"] = true, AnnotateSpans = true }
-- What these build of constructors gets its type arguments from InferType; an annotation of data
-- whose type is not wholly known has a type that its text does not say.
local types_later = { Gradient = true, FirstOrderGradient = true, LazyGradientInit = true,
  ToCPS = true, PartialEvaluate = true, AnnotateTarget = true }
-- These compute something else by definition.
local other_results = { Gradient = true, FirstOrderGradient = true, LazyGradientInit = true,
  ToCPS = true, ToMixedPrecision = true }

local function read_back(mod)
  return assert(pl.parse(mod:text()))
end

local function check_equal(mod, again)
  local text = pl.mismatch(mod, again, { contents = true })
  if text then error(text, 0) end
  assert.is_true(pl.equal(mod, again, { contents = true }))
  assert.equal(pl.hash(mod), pl.hash(again))
end

-- Equal to what its text says, which prints the same.
local function check_text(mod)
  local again = read_back(mod)
  assert.equal(tostring(mod), tostring(again))
  check_equal(mod, again)
end

-- Here types may be known that do not follow from the text: a let that told them is
-- gone. `lifted`: a function has the type variables of another one.
local function check_module(mod, lifted)
  assert(pl.verify(mod))
  assert(pl.well_formed(mod))
  local again = read_back(mod)
  if not lifted then check_equal(mod, again) end
  check_text(again)
end

-- How many nodes have a type that is not wholly known.
local function unknown(mod)
  local n = 0
  for _, fn in pairs(mod) do
    for node in fn:nodes() do
      if node.kind ~= "Op" and tostring(node.type):find("%f[%w_]_%f[^%w_]") then n = n + 1 end
    end
  end
  return n
end

-- The program of a seed, as it is read back from its text; made once.
local program_of = setmetatable({}, { __index = function(list, seed)
  local mod = read_back(assert(pl.infer_type(random_relay(seed))))
  list[seed] = mod
  return mod
end })

-- f(module, seed) of each program.
local function for_programs(f)
  for seed = first, first + programs - 1 do
    local ok, message = xpcall(function() f(program_of[seed], seed) end, debug.traceback)
    if not ok then error(("seed %d: %s"):format(seed, message), 0) end
  end
end

-- The text with a few bytes replaced, followed by a piece of it, or left out.
local function changed(text, random)
  local bytes = {}
  for _ = 1, random(4) do bytes[random(#text)] = true end
  local parts, from = {}, 1
  for at = 1, #text do
    if bytes[at] then
      parts[#parts + 1] = text:sub(from, at - 1)
      local n, other = random(3), random(#text)
      if n == 1 then parts[#parts + 1] = string.char(random(256) - 1) end
      if n == 2 then parts[#parts + 1] = text:sub(other, other + random(12)) end
      from = at + 1
    end
  end
  parts[#parts + 1] = text:sub(from)
  return table.concat(parts)
end

-- Tensors, in tables for tuples, as bytes.
local function bytes_of(result)
  if type(result) ~= "table" then return result:to_bytes() end
  local list = {}
  for i, field in ipairs(result) do list[i] = bytes_of(field) end
  return list
end

-- Nil when the program cannot be run.
local function results(mod)
  local list = table.pack(pcall(pl.eval, mod))
  return list[1] and bytes_of(table.move(list, 2, list.n, 1, {})) or nil
end

-- What the program of a seed gives, false where it cannot be run; run once.
local results_of = setmetatable({}, { __index = function(list, seed)
  local result = results(program_of[seed]) or false
  list[seed] = result
  return result
end })

-- What a pass leaves of the program of a seed.
local function check_pass(name, mod, seed)
  local pass = pl.passes[name]()
  local ok, after = pcall(pass, mod)
  if not ok and refuses[name] then return end
  assert(ok, after)
  if after == mod then return end -- the very module, which other tests check
  if types_later[name] then after = assert(pl.infer_type(after)) end
  check_module(after, name == "LambdaLift")
  if not types_later[name] then
    assert.is_true(unknown(after) <= unknown(pl.infer_type(after)))
  end
  if not not_idempotent[name] then assert.equal(after, pass(after)) end
  if results_of[seed] and not other_results[name] then
    assert.same(results_of[seed], results(after))
  end
end

describe("a program of Relay's made at random", function()
  it("is the same for the same seed", function()
    assert.equal(tostring(random_relay(first)), tostring(random_relay(first)))
  end)

  it("is valid, well-formed, and typed", function()
    for_programs(function(mod, seed)
      local built = random_relay(seed)
      assert(pl.verify(built))
      assert(pl.well_formed(built))
      assert(pl.verify(mod))
      assert(pl.well_formed(mod))
      assert.equal(mod, pl.infer_type(mod))
    end)
  end)

  it("is read back from its text", function()
    for_programs(function(mod, seed)
      check_text(mod)
      check_text(assert(pl.infer_type(random_relay(seed))))
    end)
  end)

  it("stays what it is when a sweep changes nothing", function()
    local sweep = pl.mutator { Call = function(_, rebuild) return rebuild() end,
      Tuple = function() end }
    for_programs(function(mod) assert.equal(mod, sweep(mod)) end)
  end)

  it("is visited node by node, operands first", function()
    for_programs(function(mod)
      for _, fn in pairs(mod) do
        local seen = {}
        for node in pl.post_order(fn) do
          assert.is_nil(seen[node])
          seen[node] = true
        end
        assert.is_true(seen[fn])
      end
    end)
  end)

  it("is drawn and dumped", function()
    for_programs(function(mod)
      assert.is_string(mod:dot())
      assert.is_string(mod:json())
    end)
  end)

  for _, name in ipairs(passes) do
    it("is a program after " .. name, function()
      for_programs(function(mod, seed) check_pass(name, mod, seed) end)
    end)
  end

  it("is left alone by passes over PrimFuncs", function()
    local made = {}
    for _, name in ipairs(prim_func_passes) do
      -- Some have options that must be given.
      local ok, pass = pcall(pl.passes[name])
      if ok then made[#made + 1] = pass end
    end
    assert.is_true(#made > 50)
    for_programs(function(mod)
      for _, pass in ipairs(made) do assert.equal(mod, pass(mod)) end
    end)
  end)

  it("has a text that can be changed anywhere", function()
    for_programs(function(mod, seed)
      local state = seed
      local function random(n)
        state = (state * 1664525 + 1013904223) % 4294967296
        return (state >> 8) % n + 1
      end
      local text = tostring(mod)
      for _ = 1, 5 do
        local read = pl.parse(changed(text, random))
        if read then check_module(read) end
      end
    end)
  end)
end)
