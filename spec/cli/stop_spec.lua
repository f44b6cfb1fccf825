-- How the command ends when it is stopped, or cannot write: with a message and a
-- status, and without a file that is half done.

local command = require "spec.cli.command"

local folder

before_each(function()
  folder = command.folder()
  command.write(folder .. "/in.relay", [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) { add(nn.relu(%x), 1f) }
]])
end)

after_each(function() os.execute("rm -rf " .. folder) end)

-- Runs a line of a shell with the command as $PERILUNE in the folder: status,
-- standard error.
local function shell(line)
  local script = ("cd %s || exit; PERILUNE=%s; %s"):format(folder,
    command.program:gsub("%S+$", function(path)
      return path:find "^/" and path or io.popen "pwd":read() .. "/" .. path
    end):gsub("^(.*)$", "'%1'"), line)
  local _, _, status = os.execute(("sh -c '%s' 2>%s/err"):format(script:gsub("'", "'\\''"), folder))
  return status, command.read(folder .. "/err")
end

local function exists(name)
  local file = io.open(folder .. "/" .. name)
  if file then file:close() end
  return file ~= nil
end

describe("an error of standard output is one of the command", function()
  for _, arguments in ipairs { "fmt in.relay", "ops", "passes", "info in.relay", "--help",
    "opt --help", "opt in.relay -o out.relay" } do
    it("on a full device: " .. arguments, function()
      local status, err = shell("$PERILUNE " .. arguments .. " >/dev/full")
      assert.equal(1, status)
      assert.matches("perilune: standard output: .+\n$", err)
    end)
  end

  it("however it was printed", function()
    for _, script in ipairs { "print(1)", "io.write(('x'):rep(1e6)) print(1)",
      "print(1) os.exit(0)",
      "print(('x'):rep(1e6)) os.exit(true, true)" } do
      command.write(folder .. "/print.lua", script)
      local status, err = shell "$PERILUNE print.lua >/dev/full"
      assert.equal(1, status)
      assert.matches("^perilune: standard output: ", err)
    end
  end)

  it("on a closed pipe, which a script cannot fill for ever", function()
    command.write(folder .. "/print.lua", "while true do print 'more' end")
    local _, err = shell "{ $PERILUNE print.lua; echo $? >status; } | head -1 >/dev/null"
    assert.equal("1\n", command.read(folder .. "/status"))
    assert.equal("perilune: cannot write: the reader of a pipe has closed it\n", err)
  end)
end)

describe("an error of a file that was asked for is one of the command", function()
  it("of a file at the limit of its size", function()
    command.write(folder .. "/long.relay", ('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), '
      .. 'float32]) { ' .. ("nn.relu("):rep(400) .. "%x" .. (")"):rep(400) .. " }\n"))
    local status, err = shell "ulimit -f 1; $PERILUNE opt long.relay -o out.relay -p \"\""
    assert.equal(1, status)
    assert.matches("cannot write 'out.relay': File too large", err, 1, true)
    assert.is_false(exists "out.relay")
  end)

  for option, name in pairs { ["--history"] = "/dev/full", ["--trace"] = "/dev/full" } do
    it(option, function()
      local status, err = shell(("$PERILUNE opt in.relay -o out.relay %s %s"):format(option, name))
      assert.equal(1, status)
      assert.matches("^perilune: " .. option:gsub("%-", "%%-") .. ": ", err)
      assert.is_false(exists "out.relay")
    end)
  end

  it("--dump", function()
    os.execute("mkdir -p " .. folder .. "/dump/000_input.relay")
    local status, err = shell "$PERILUNE opt in.relay -o out.relay --dump dump"
    assert.equal(1, status)
    assert.matches("^perilune: %-%-dump: .*000_input.relay", err)
    assert.is_false(exists "out.relay")
  end)
end)

-- Where Lua's hooks do not reach.
local limited = "$PERILUNE opt in.relay -o out.relay -p mine.lua --set limit.seconds=0.1"
local endless = {
  ["string.rep"] = "while true do local _ = ('x'):rep(1e9) end",
  ["a pattern that backtracks"] =
    "return ('a'):rep(60):match(('a?'):rep(60) .. ('a'):rep(60) .. 'b')",
  ["table.move"] = "table.move({}, 1, 1 << 50, 1, {})",
  ["a finaliser"] =
    "setmetatable({}, { __gc = function() while true do end end }) collectgarbage()",
  ["a handler of xpcall"] = "xpcall(error, function() while true do end end)",
  ["__tostring of an error"] =
    "error(setmetatable({}, { __tostring = function() while true do end end }))",
}

describe("limit.seconds of the command ends", function()
  for what, code in pairs(endless) do
    it(what, function()
      command.write(folder .. "/mine.lua", ([[
local pl = require "perilune"
return pl.function_pass { name = "Endless", run = function() %s end }
]]):format(code))
      local status, err = shell(limited)
      assert.equal(1, status)
      assert.matches("limit%.seconds", err)
      assert.is_false(exists "out.relay")
    end)
  end

  it("a script that never returns its pipeline", function()
    command.write(folder .. "/mine.lua", "while true do end")
    local status, err = shell(limited)
    assert.equal(1, status)
    assert.matches("^perilune: a script runs longer than limit.seconds;", err)
    assert.is_false(exists "out.relay")
  end)

  it("a finaliser between the passes and at the end", function()
    command.write(folder .. "/mine.lua", [[
setmetatable({}, { __gc = function() while true do end end })
return require "perilune".passes.SimplifyExpr()
]])
    local status, err = shell(limited)
    assert.matches("runs longer than limit.seconds; the command ends\n$", err)
    assert.equal(exists "out.relay" and 0 or 1, status)
  end)
end)

describe("Ctrl-C", function()
  -- Sends the signal a moment after the file `started` is there.
  local function interrupted(code)
    command.write(folder .. "/mine.lua", ([[
local pl = require "perilune"
return pl.function_pass { name = "Endless", run = function()
  io.open("started", "w"):close()
  %s
end }
]]):format(code))
    return shell([[
$PERILUNE opt in.relay -o out.relay -p mine.lua & pid=$!
while ! [ -e started ]; do kill -0 $pid || break; done
kill -INT $pid; wait $pid]])
  end

  it("ends what no hook reaches", function()
    local status, err = interrupted(endless["a pattern that backtracks"])
    assert.equal(130, status)
    -- A signal that comes before the pattern begins reaches the hook, which names the pass.
    err = err:gsub("^perilune: pass 'Endless', function @main: ", "perilune: ", 1)
    assert.equal("perilune: interrupted; nothing is written\n", err)
    assert.is_false(exists "out.relay")
  end)

  it("ends what a hook reaches", function()
    local status, err = interrupted "while true do end"
    assert.equal(130, status)
    assert.matches("interrupted; nothing is written\n$", err)
  end)
end)

describe("Ctrl-C ends a compiler that hangs, and what it has started", function()
  -- The compiler notes the id of the process that it starts.
  local slow = "#!/bin/sh\nsleep 60 &\necho $! > %s/started\nwait\n"

  local function interrupted(arguments)
    command.write(folder .. "/slow", slow:format(folder))
    os.execute("chmod +x " .. folder .. "/slow")
    local script = 'import os, signal, subprocess, sys, time; signal.signal(signal.SIGINT, '
      .. 'signal.default_int_handler); p = subprocess.Popen(sys.argv[1:]); t = time.time()\n'
      .. 'while not os.path.exists("started") or not open("started").read():\n'
      .. '    assert time.time() < t + 60; time.sleep(0.02)\n'
      .. 'p.send_signal(signal.SIGINT); print(p.wait())\n'
    command.write(folder .. "/interrupt.py", script)
    local _, err = shell("python3 interrupt.py $PERILUNE " .. arguments .. " >status")
    return command.read(folder .. "/status"), err
  end

  local function is_gone()
    for _ = 1, 100 do
      if shell "kill -0 $(cat started) 2>/dev/null" ~= 0 then return true end
      os.execute "sleep 0.05"
    end
    return false
  end

  before_each(function()
    command.write(folder .. "/f.tir", [[
# from tvm.script import tir as T
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = T.float32(0)
]])
  end)

  it("of the command build", function()
    local status, err = interrupted "build f.tir -o f.so --cc ./slow"
    assert.equal("-2\n", status)
    assert.matches("^perilune: interrupted; nothing is written\n"
      .. "note: the C compiler was stopped with it; command: ./slow", err)
    assert.is_true(is_gone())
    assert.is_false(exists "f.so")
  end)

  it("of a script", function()
    command.write(folder .. "/run.lua", [[
      local pl = require "perilune"
      local built = pl.build(assert(pl.load "f.tir"), { cc = "./slow", cache = "" })
      built.main(pl.tensor { 1, 2, 3, 4, 5, 6, 7, 8 })
    ]])
    assert.equal("-2\n", (interrupted "run.lua"))
    assert.is_true(is_gone())
  end)
end)
