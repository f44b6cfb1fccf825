-- The command on files of TVMScript: programs of loops.

local pl = require "perilune"
local command = require "spec.cli.command"

local folder = command.folder()
local function run(arguments) return command.run(folder, arguments) end
local function path(name) return folder .. "/" .. name end

local TEXT = [[
# from tvm.script import tir as T

@T.prim_func
def add(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i in range(7):
        for j in T.vectorized(16):
            if T.likely(i * 16 + j < 100):
                B[i * 16 + j] = A[i * 16 + j] + T.float32(1)
]]

local input = command.write(path "in.tir", TEXT)

describe("perilune", function()
  teardown(function() os.execute("rm -r " .. folder) end)

  it("opt lowers a program and writes what it became", function()
    for _, suffix in ipairs { "tir", "py", "tvmscript" } do
      local out = path("out." .. suffix)
      local status, text = run(("opt %s -o %s -p tir.lower --check --oracle"):format(input, out))
      assert.equal(0, status, text)
      assert.matches("equal in the interpreter of loops", text)
      local mod, before = assert(pl.load(out)), assert(pl.load(input))
      assert.is_true(pl.equal(pl.lower(before), mod))
    end
  end)

  it("writes files that end with a line feed", function()
    local function ends(name)
      local file = assert(io.open(path(name), "rb"))
      local text = file:read "a"
      file:close()
      return text:sub(-2)
    end
    for _, suffix in ipairs { "tir", "py", "tvmscript" } do
      assert.equal(0, (run(("opt %s -o %s -q"):format(input, path("ends." .. suffix)))))
      assert.matches("[^\n]\n", ends("ends." .. suffix))
    end
    local status, printed = run("fmt " .. input)
    assert.equal(0, status)
    assert.matches("[^\n]\n$", printed)
  end)

  it("opt shows times and changes of each pass, and dumps them", function()
    local status, text = run(("opt %s -o %s -p tir.lower --time --diff --dump %s"):format(input,
      path "out.tir", path "dump"))
    assert.equal(0, status, text)
    assert.matches("%-%- tir%.LoopPartition", text)
    assert.matches("tir%.CommonSubexprElimTIR +yes", text)
    assert.matches("def add", command.read(path "dump/000_input.tir"))
  end)

  it("opt takes the config of the default lowering", function()
    local status, text = run(("opt %s -o %s -p tir.lower --set tir.disable_vectorize=true "
      .. "--set 'tir.add_lower_pass=[\"2:tir.RemoveNoOp\"]' --stats text"):format(input,
      path "out.tir"))
    assert.equal(0, status, text)
    assert.is_nil(command.read(path "out.tir"):find("T.Ramp", 1, true))
  end)

  it("check compares two programs", function()
    local other = command.write(path "other.tir", (TEXT:gsub("T%.float32%(1%)", "T.float32(2)")))
    assert.equal(0, (run(("check %s %s"):format(input, path "in.tir"))))
    local status, _, err = run(("check %s %s"):format(input, other))
    assert.equal(1, status)
    assert.matches("differ", err)
  end)

  it("bisect names the pass that is wrong", function()
    local script = command.write(path "broken.lua", [[
local pl = require "perilune"
pl.passes["mark.broken"] = { kind = "prim_func", run = function(fn)
  return pl.mutator { FloatImm = function(imm) return pl.tir.FloatImm(imm.dtype, 3) end } (fn)
end }
]])
    local status, text = run(("bisect %s -p tir.UnrollLoop,mark.broken,tir.Simplify --oracle "
      .. "--script %s"):format(input, script))
    assert.equal(0, status, text)
    assert.matches("mark%.broken", text)
  end)

  it("names the place of an error in a text", function()
    local wrong = command.write(path "wrong.tir", (TEXT:gsub("range%(7%)", "rang(7)")))
    local status, _, err = run(("opt %s -o %s -p tir.lower"):format(wrong, path "out.tir"))
    assert.equal(1, status)
    assert.matches("wrong.tir:5", err)
  end)
end)
