-- pl.lower, the pass tir.lower, and what watches passes on modules of PrimFuncs.

local pl = require "perilune"

local function parse(body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T
@T.prim_func
def main(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
%s
]]):format(body)))
end

-- 100 elements in rounds of 16, with a guard.
local function guarded()
  return parse [[
    for i in range(7):
        for j in T.vectorized(16):
            if T.likely(i * 16 + j < 100):
                B[i * 16 + j] = A[i * 16 + j] + T.float32(1)]]
end

local function names_of(mod, options, config)
  local names = {}
  local context = pl.context { config = config, instruments = { { name = "names",
    before = function(_, info) names[#names + 1] = info.name end } } }
  local out = pl.with(context, pl.lower, mod, options)
  return names, out
end

local function index_of(list, name)
  for i, each in ipairs(list) do if each == name then return i end end
  return nil
end

local function has_kind(mod, kind, attrs)
  for node in mod.functions.main:nodes() do
    if node.kind == kind and (attrs == nil or node.attrs.kind == attrs) then return true end
  end
  return false
end

describe("pl.lower", function()
  it("runs TVM's passes in TVM's order", function()
    local names = names_of(guarded())
    local order = { "tir.StorageFlatten", "tir.LowerInitBlock", "tir.ConvertBlocksToOpaque",
      "tir.LowerMatchBuffer", "tir.LowerOpaqueBlock", "tir.FlattenBuffer", "tir.NarrowDataType",
      "tir.LoopPartition", "tir.VectorizeLoop", "tir.InjectVirtualThread",
      "tir.InjectDoubleBuffer", "tir.StorageRewrite", "tir.UnrollLoop",
      "tir.RenormalizeSplitPattern", "tir.RemoveNoOp", "tir.RewriteUnsafeSelect",
      "tir.CommonSubexprElimTIR" }
    local last = 0
    for _, name in ipairs(order) do
      local at = assert(index_of(names, name), name)
      assert.is_true(at > last, name)
      last = at
    end
  end)

  it("keeps what is computed", function()
    local mod = guarded()
    for _, simple in ipairs { true, false } do
      assert(pl.tir.check(mod, pl.lower(mod, { simple_mode = simple }), { atol = 0, rtol = 0 }))
    end
  end)

  it("leaves out tir.LoopPartition in simple mode", function()
    assert.truthy(index_of(names_of(guarded()), "tir.LoopPartition"))
    assert.is_nil(index_of(names_of(guarded(), { simple_mode = true }), "tir.LoopPartition"))
  end)

  it("reads the config when the list of passes is made", function()
    local names = names_of(guarded(), nil, { ["tir.disable_storage_rewrite"] = true })
    assert.is_nil(index_of(names, "tir.StorageRewrite"))
    local mod = parse [[
    for i in T.vectorized(4):
        B[i] = A[i] ]]
    assert.is_true(has_kind(pl.lower(mod), "Ramp"))
    local _, serial = names_of(mod, nil, { ["tir.disable_vectorize"] = true })
    assert.is_false(has_kind(serial, "Ramp"))
    local twice = parse [[
    for i in range(10):
        for j in range(10):
            B[i * 10 + j] = A[i * 10 + j] ]]
    assert.is_true(has_kind(pl.lower(twice), "LetStmt"))
    local _, plain = names_of(twice, nil, { ["tir.disable_cse_tir"] = true })
    assert.is_false(has_kind(plain, "LetStmt"))
  end)

  it("names a PrimFunc and says that its buffers do not overlap", function()
    local fn = guarded().functions.main
    local out = pl.lower(fn, { name = "add" })
    assert.equal("add", out.functions.add.attrs.global_symbol)
    assert.is_true(out.functions.add.attrs["tir.noalias"])
    local context = pl.context { config = { ["tir.noalias"] = false } }
    assert.is_nil(pl.with(context, pl.lower, fn).functions.main.attrs["tir.noalias"])
  end)

  it("takes what gives a module", function()
    local seen
    local schedule = { to_module = function(self, args, name)
      seen = { self, args, name }
      return guarded()
    end }
    local args = {}
    assert.equal("Module", pl.ir.kind_of(pl.lower(schedule, { args = args, name = "f" })))
    assert.is_true(rawequal(schedule, seen[1]) and rawequal(args, seen[2]))
    assert.equal("f", seen[3])
  end)

  it("refuses other values by name", function()
    for _, value in ipairs { 1, "main", {}, pl.var "x" } do
      assert.error_matches(function() pl.lower(value) end,
        "pl.lower: a PrimFunc, a module or a schedule expected")
    end
    assert.error_matches(function() pl.lower(guarded(), { simple = true }) end,
      "no option 'simple'")
    assert.error_matches(function() pl.lower(guarded(), { simple_mode = 1 }) end,
      "simple_mode: true or false expected")
  end)

  it("is a pipeline and a pass by name", function()
    local mod = guarded()
    assert.is_true(pl.equal(pl.lower(mod), pl.pipelines["tir.lower"](mod)))
    assert.is_true(pl.equal(pl.lower(mod, { simple_mode = true }),
      pl.pipeline "tir.lower{simple_mode=true}" (mod)))
  end)
end)

describe("tir.add_lower_pass", function()
  local function marker(name, log)
    return pl.prim_func_pass { name = name, run = function(fn)
      log[#log + 1] = name
      return fn
    end }
  end

  it("appends passes at the end of their phases", function()
    local log = {}
    local names = names_of(guarded(), nil, { ["tir.add_lower_pass"] = {
      { 3, marker("mark.late", log) }, { 0, marker("mark.early", log) },
      { 1, marker("mark.flat", log) }, { 2, "tir.RemoveNoOp" }, { 7, marker("mark.last", log) },
    } })
    assert.same({ "mark.early", "mark.flat", "mark.late", "mark.last" }, log)
    assert.is_true(index_of(names, "mark.early") < index_of(names, "tir.InjectPrefetch"))
    assert.equal(index_of(names, "tir.LoopPartition") - 1, index_of(names, "mark.flat"))
    assert.equal(index_of(names, "tir.UnrollLoop") + 1, index_of(names, "tir.RemoveNoOp"))
    assert.equal(index_of(names, "tir.CommonSubexprElimTIR") - 1, index_of(names, "mark.last"))
  end)

  it("runs a pass of Lua that changes the function", function()
    local serial = pl.prim_func_pass { name = "mark.serial", run = function(fn)
      return pl.mutator { For = function(loop, rebuild)
        local now = rebuild()
        return loop.attrs.kind == 2
          and pl.tir.For(now.loop_var, now.min, now.extent, "serial", now.body) or now
      end } (fn)
    end }
    local mod = parse [[
    for i in T.vectorized(4):
        B[i] = A[i] ]]
    local context = pl.context { config = { ["tir.add_lower_pass"] = { { 1, serial } } } }
    local out = pl.with(context, pl.lower, mod)
    assert.is_false(has_kind(out, "Ramp"))
    assert(pl.tir.check(mod, out))
  end)

  it("keeps apart two passes of one name, and takes texts", function()
    local log, other = {}, {}
    local context = pl.context { config = { ["tir.add_lower_pass"] = {
      { 0, marker("mark.twin", log) }, { 0, marker("mark.twin", other) }, "2:tir.Simplify" } } }
    pl.with(context, pl.lower, guarded())
    assert.equal(1, #log)
    assert.equal(1, #other)
  end)

  it("refuses what is no pair of a phase and a pass", function()
    local function lower(value)
      local context = pl.context { config = { ["tir.add_lower_pass"] = value } }
      pl.with(context, pl.lower, guarded())
    end
    assert.error_matches(function() lower "tir.Simplify" end, "a list of { phase, pass } expected")
    assert.error_matches(function() lower { { "1", "tir.Simplify" } } end, "entry 1")
    assert.error_matches(function() lower { { 1 } } end, "entry 1")
    assert.error_matches(function() lower { "tir.Simplify" } end, "PHASE:PASS")
    assert.error_matches(function() lower { "1:tir.Simplfy" } end, "tir.Simplify")
  end)
end)

describe("on modules of PrimFuncs", function()
  -- Stores another value than the program does.
  local broken = { name = "mark.broken", kind = "prim_func", run = function(fn)
    return pl.mutator { FloatImm = function(imm) return pl.tir.FloatImm(imm.dtype, 2) end } (fn)
  end }

  it("the oracle runs the interpreter and names the pass", function()
    local oracle = pl.instruments.oracle { rounds = 1 }
    pl.with(pl.context { instruments = { oracle } }, pl.lower, guarded())
    assert.is_true(oracle.compared >= 2)
    local context = pl.context { instruments = { pl.instruments.oracle { rounds = 1 } },
      config = { ["tir.add_lower_pass"] = { { 2, pl.prim_func_pass(broken) } } } }
    assert.error_matches(function() pl.with(context, pl.lower, guarded()) end,
      "pass 'mark.broken.*' changes what is computed")
  end)

  it("a bisection finds the pass that is wrong", function()
    pl.passes["mark.broken_once"] = broken
    local pass = pl.pipeline "tir.UnrollLoop,mark.broken_once,tir.Simplify"
    local found = pl.bisect(pass, guarded(), pl.predicate "oracle")
    pl.passes["mark.broken_once"] = nil
    assert.equal("mark.broken_once", found.pass)
  end)

  it("times, dumps and diffs each pass", function()
    local timing, lines = pl.instruments.timing(), {}
    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    local dump = pl.instruments.dump(folder)
    local diff = pl.instruments.diff { write = function(text) lines[#lines + 1] = text end }
    pl.with(pl.context { instruments = { timing, dump, diff } }, pl.lower, guarded())
    assert.equal("000_input.tir", dump.files[1])
    assert.matches("tir%.LoopPartition", table.concat(dump.files, " "))
    assert.matches("tir%.VectorizeLoop", table.concat(lines, "\n"))
    assert.matches("tir%.VectorizeLoop", tostring(timing))
    local last = folder .. "/" .. dump.files[#dump.files]
    assert.is_true(pl.equal(pl.lower(guarded()), assert(pl.load(last))))
    os.execute("rm -r " .. folder)
  end)
end)
