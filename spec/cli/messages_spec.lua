-- What the command says to those who hold it wrong, and what it reads from pipes.

local command = require "spec.cli.command"
local model = require "perilune.zoo.model"

local folder = command.folder()
local function path(name) return folder .. "/" .. name end
local function run(arguments) return command.run(folder, arguments) end

-- Status and standard output of a shell command in which PERILUNE stands for the command.
local function shell(line)
  local out = path "shell.out"
  local _, _, status = os.execute(("%s >%s 2>%s"):format(line:gsub("PERILUNE", command.program),
    out, path "shell.err"))
  return status, command.read(out), command.read(path "shell.err")
end

local function tiny()
  local m = model.new { name = "tiny" }
  local x = m:input("x", "float32", { "batch", "tokens", 4 })
  local w = m:initializer("w", "float32", { 4 }, model.fill(4, 1))
  m:output(m:node("Add", { x, w }, nil, "y"), "float32", { "batch", "tokens", 4 })
  assert(m:save(path "tiny.onnx"))
  return path "tiny.onnx"
end

local input = tiny()
local TEXT = '#[version = "0.0.5"]\ndef @main(%x: int32) { %x }\n'

teardown(function() os.execute("rm -r " .. folder) end)

--- Standard error begins with `message` behind "perilune: ".
local function refuses(arguments, message, status)
  local got, out, err = run(arguments)
  assert.equal("perilune: " .. message, err:sub(1, #message + #"perilune: "))
  assert.same({ status or 2, "" }, { got, out })
end

describe("a file in place of a command", function()
  it("that is a model is for a command", function()
    local relay = command.write(path "in.relay", TEXT)
    for _, name in ipairs { input, relay } do
      refuses(name, ("%s is a model; try: perilune opt %s -o OUT, or perilune info %s"):format(
        name, name, name))
    end
  end)

  it("that is neither a model nor a script is told as what it is", function()
    local zip = command.write(path "weights.pt", "PK\3\4" .. ("\0"):rep(60))
    refuses(zip, zip .. " is no script, but a zip archive, as PyTorch's .pt files")
    refuses(folder, folder .. " is a directory, no script")
  end)

  it("that is a script runs, with or without a suffix", function()
    local script = command.write(path "script", "print(...)")
    assert.same({ 0, "a\tb\n" }, { (run(script .. " a b")), command.read(path "stdout") })
  end)
end)

describe("arguments", function()
  it("that name the result are for -o", function()
    refuses(("opt %s out.onnx"):format(input),
      "too many arguments; where the result goes is named by -o: perilune opt IN -o OUT")
    refuses("opt " .. input,
      "missing option '-o'; where the result goes is named by -o: perilune opt IN -o OUT")
    refuses("check " .. input, "missing argument B\nUsage: perilune check")
    refuses("opt --dimm N=1 x", "unknown option '--dimm'; did you mean '--dim'?")
  end)

  it("--dim lists the dims that there are", function()
    local opt = ("opt %s -o %s "):format(input, path "out.onnx")
    refuses(opt .. "--dim bach=1", "--dim bach=1: no dim is called 'bach'; did you mean 'batch'?",
      1)
    refuses(opt .. "--dim n=1", "--dim n=1: no dim is called 'n'; there is: batch, tokens", 1)
  end)

  it("--set suggests, and does not list everything", function()
    local opt = ("opt %s -o %s "):format(input, path "out.onnx")
    refuses(opt .. "--set m=50", "--set m: no option, config key or script argument has this name; "
      .. "perilune passes lists options and config keys\n")
    refuses(opt .. "--set max_depth=3", "--set max_depth: no option, config key or script argument "
      .. "has this name; did you mean 'relay.FuseOps.max_depth'?\n")
    local script = command.write(path "asks.lua",
      "local a = ... local _ = a.depth, a.width return {}")
    refuses(opt .. "-p " .. script .. " --set m=50", "--set m: no option, config key or script "
      .. "argument has this name; the script asks for depth, width; perilune passes lists")
  end)

  it("of passes and test are told likewise", function()
    refuses("passes timng", "no pass is called 'timng'; did you mean 'timing'?")
    refuses("passes limit.secnds",
      "no pass is called 'limit.secnds'; did you mean 'limit.seconds'?")
    refuses("test " .. input, input .. " is a file; test takes folders with model.onnx")
  end)

  it("of help name a command", function()
    local _, wanted = run "opt --help"
    for _, words in ipairs { "help opt", "--help opt", "-h opt" } do
      assert.same({ 0, wanted }, { (run(words)), command.read(path "stdout") }, words)
    end
    refuses("help optt", "unknown command 'optt'; did you mean 'opt'?")
    refuses("db", "db: one of its commands is expected: best, export, import")
    refuses("db lst", "db: there is no command 'lst'; did you mean 'list'?")
  end)

  it("of ops may be names of ONNX", function()
    local status, out = run "ops MatMul"
    assert.equal(0, status)
    assert.matches("^nn.matmul\n", out)
    assert.matches("\n  ONNX: MatMul from ai.onnx 1\n", out, 1, true)
    status, out = run "ops nn"
    assert.equal(0, status)
    assert.matches("^nn%.[^\n]+\nnn%.", out)
    assert.is_nil(out:find "\nadd")
    refuses("ops MatMull", "no operator is called 'MatMull'; did you mean 'MatMul' (ONNX), "
      .. "'nn.matmul' here?")
  end)
end)

describe("a file that is no ONNX model", function()
  local kinds = {
    ["text"] = "hello world\n",
    ["an empty file"] = "",
    ["gzip data; decompress it first (gunzip)"] = "\31\139\8\0rest of it",
    ["a zip archive, as PyTorch's .pt files and NumPy's .npz files are"] = "PK\3\4\20\0\0\0\8\0",
    ["a Python pickle, as PyTorch's older .pt files are"] = "\128\2}q\0X\1\0\0\0aq\1.",
    ["safetensors: weights without a graph"] = "\60\0\0\0\0\0\0\0{\"w\":{}}",
    ["a NumPy array"] = "\147NUMPY\1\0v\0{'descr': '<f4'}",
    ["HDF5 data, as Keras models are"] = "\137HDF\r\n\26\n\0\0\0\0",
    ["a TensorFlow Lite model"] = "\28\0\0\0TFL3\0\0\0\0",
    ["a pointer of Git LFS, not the file itself (git lfs pull)"] =
      "version https://git-lfs.github.com/spec/v1\noid sha256:00\n",
    ["a web page"] = "<!DOCTYPE html><html>",
    ["Relay text; such files are named NAME.relay"] = TEXT,
  }
  for kind, bytes in pairs(kinds) do
    it("but " .. kind, function()
      local file = command.write(path "other.onnx", bytes)
      local status, _, err = run("info " .. file)
      assert.same({ 1, ("error: %s: this is not an ONNX model, but %s\n"):format(file, kind) },
        { status, err })
    end)
  end

  it("but damaged is told where", function()
    local file = command.write(path "cut.onnx", command.read(input):sub(1, -20))
    local _, _, err = run("info " .. file)
    assert.matches("ModelProto", err)
  end)

  it("or no Relay text is told as what it is", function()
    local file = command.write(path "model.relay", command.read(input))
    local _, _, err = run("info " .. file)
    assert.equal(("error: %s: this is not Relay text, but binary data; an ONNX model is called "
      .. "NAME.onnx\n"):format(file), err)
  end)
end)

describe("standard input and pipes", function()
  it("are read by every command that reads a model", function()
    local _, wanted = run("fmt --full " .. input)
    for _, name in ipairs { "-", "/dev/stdin" } do
      for _, feed in ipairs { "PERILUNE %s <" .. input, "cat " .. input .. " | PERILUNE %s" } do
        local function read(words) return shell(feed:format(words:format(name))) end
        local status, text = read "fmt --full %s"
        assert.same({ 0, wanted }, { status, text })
        assert.equal(0, (read("opt %s -q -o " .. path "piped.onnx")))
        assert.equal(0, (read("check %s " .. input)))
        assert.equal(0, (read "info %s"))
        assert.equal(0, (read "run %s --input random"))
      end
    end
    assert.equal(0, (run(("check %s %s"):format(input, path "piped.onnx"))))
  end)

  it("hold Relay text as well", function()
    local text = command.write(path "text.relay", TEXT)
    local status = shell(("PERILUNE opt - -q -o %s <%s"):format(path "text.out.relay", text))
    assert.equal(0, status)
    local _, out = shell(("cat %s | PERILUNE info -"):format(text))
    assert.matches("x: int32", out, 1, true)
  end)

  it("are told as what they are", function()
    local _, _, err = shell "printf '\\037\\213\\010' | PERILUNE info -"
    assert.equal("error: standard input: this is not an ONNX model, but gzip data; decompress it "
      .. "first (gunzip)\n", err)
  end)
end)

describe("-o - of a model with external data", function()
  it("writes a model that needs no other file", function()
    local data = path "apart"
    os.execute("mkdir " .. data)
    local script = command.write(path "external.lua", ([[
      local pl = require "perilune"
      assert(pl.save(assert(pl.load %q), %q, { external_data = true, external_threshold = 1 }))
    ]]):format(input, data .. "/external.onnx"))
    assert.equal(0, (run(script)))
    for _, passes in ipairs { "", "SimplifyExpr" } do
      local line = ("PERILUNE opt %s/external.onnx -q -p '%s' -o -"):format(data, passes)
      local status, bytes = shell(line)
      assert.equal(0, status)
      local alone = command.write(path "alone.onnx", bytes)
      assert.equal(0, (run(("check %s %s"):format(input, alone))))
    end
  end)
end)

describe("a mistake in a user's script", function()
  local function failure(code)
    local _, _, err = run(command.write(path "mistake.lua", code))
    return (err:gsub(folder, "DIR"))
  end

  it("is told without the lines of the command", function()
    assert.equal("DIR/mistake.lua:1: attempt to call a nil value (method 'rp')\n",
      failure "print((''):rp(1))")
    assert.equal([[
DIR/mistake.lua:1: attempt to index a nil value (local 'x')
stack traceback:
	DIR/mistake.lua:1: in function 'helper'
	DIR/mistake.lua:2: in main chunk
]], failure "local function helper() local x; print(x.y) end\nlocal r = helper()\nprint(r)")
  end)

  it("is told likewise in a pipeline, with the line that called the library", function()
    local script = command.write(path "pipeline.lua",
      "local pl = require 'perilune'\nlocal p = pl.sequential(7)\nreturn p")
    local _, _, err = run(("opt %s -o %s -p %s"):format(input, path "out.onnx", script))
    assert.matches("^[^\n]*/pipeline.lua:2: [^\n]+\n$", err)
  end)
end)

describe("a failure of a user's pass", function()
  it("is told with the lines of the script alone", function()
    local script = command.write(path "failing.lua", [[
local pl = require "perilune"
local function inner() local x; return x.y end
return pl.function_pass { name = "Mine", run = function() local r = inner() return r end }
]])
    local _, _, err = run(("opt %s -q -o %s -p %s"):format(input, path "out.onnx", script))
    assert.equal([[
error: pass 'Mine', function @main: DIR/failing.lua:2: attempt to index a nil value (local 'x')
stack traceback:
	DIR/failing.lua:2: in function 'inner'
	DIR/failing.lua:3: in function <DIR/failing.lua:3>
]], (err:gsub(folder, "DIR")))
  end)
end)

describe("colours", function()
  -- A terminal is made by script(1).
  local has_terminal = os.execute "script -qec true /dev/null >/dev/null 2>&1 </dev/null"
  local function coloured(environment)
    local line = ("%s %s opt %s -p 'SimplifyExpr,FoldConstant{fold=\"all\"}' --diff -o %s"):format(
      environment, command.program, path "sum.onnx", path "out.onnx")
    local script = command.write(path "diff.sh", line .. "\n")
    os.execute(("script -qec 'sh %s' /dev/null >%s 2>&1 </dev/null"):format(script, path "typed"))
    return command.read(path "typed"):find("\27[", 1, true) ~= nil
  end

  it("are for terminals, and off when NO_COLOR is set and not empty", function()
    if not has_terminal then return pending "there is no script(1)" end
    local m = model.new { name = "sum" }
    local one = m:initializer("one", "float32", { 4 }, model.fill(4, 1))
    local x = m:input("x", "float32", { 4 })
    m:output(m:node("Add", { x, m:node("Add", { one, one }) }, nil, "y"), "float32", { 4 })
    assert(m:save(path "sum.onnx"))
    assert.is_true(coloured "env -u NO_COLOR")
    assert.is_true(coloured "NO_COLOR=")
    assert.is_false(coloured "NO_COLOR=1")
  end)
end)

describe("progress", function()
  local has_terminal = os.execute "script -qec true /dev/null >/dev/null 2>&1 </dev/null"

  -- What a terminal got.
  local function typed(line)
    local file = command.write(path "progress.sh", line .. "\n")
    os.execute(("script -qec 'sh %s' /dev/null >%s 2>&1 </dev/null"):format(file, path "typed"))
    return command.read(path "typed")
  end

  it("of run is shown on a terminal after a second, and goes", function()
    if not has_terminal then return pending "there is no script(1)" end
    local repeats = 100
    local line = "%s run %s --input random --dim batch=200 --dim tokens=900 --time --repeat %d"
    local text
    repeat -- as many rounds as take longer than a second
      repeats = repeats * 4
      text = typed(line:format(command.program, input, repeats))
      local seconds = text:match "total ([%d.]+) s\r?\n"
    until seconds and tonumber(seconds) > 1.2 or repeats > 1e6
    assert.matches("\r\27%[Krunning [^\r]+: node %d+ of %d+, %d s", text)
    assert.matches("\r\27%[Ky: Tensor", text)
  end)

  it("is for terminals", function()
    local _, _, err = run(("run %s --input random --repeat 10"):format(input))
    assert.equal("", err)
  end)
end)
