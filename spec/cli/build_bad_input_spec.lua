-- perilune build: programs and compilers that are wrong. A message that names the place or the
-- command, the status, and no file.

local command = require "spec.cli.command"

local folder = command.folder()
teardown(function() os.execute("rm -rf " .. folder) end)

local function path(name) return folder .. "/" .. name end

local function program(params, ...)
  local lines = { "@T.prim_func", ("def f(%s):"):format(params) }
  for _, line in ipairs { ... } do lines[#lines + 1] = "    " .. line end
  return command.write(path "in.tir", table.concat(lines, "\n") .. "\n")
end

local params = 'A: T.Buffer((4,), "int32"), x: T.int32'

local function valid() return program(params, "A[0] = x") end

local function exists(name)
  local file = io.open(name)
  if file then file:close() end
  return file ~= nil
end

local function refuses(status, message, arguments)
  os.remove(path "out.so")
  local got, _, err = command.run(folder, "build " .. arguments)
  assert.matches(message, err, 1, true)
  assert.equal(status, got)
  assert.is_false(exists(path "out.so"))
  return err
end

local function compiler(name, lines)
  command.write(path(name), "#!/bin/sh\n" .. lines .. "\n")
  os.execute("chmod +x " .. path(name))
  return path(name)
end

describe("perilune build", function()
  local ill_typed = {
    ["A[0] = T.float32(1) + T.handle()"] = "in.tir:3:27: error: an expression is expected",
    ['A["x"] = 1'] = "an index into 'A' is an integer, not a handle",
    ["for i in range(1.5): A[i] = 2"] = "an index into 'A' is an integer, not a float32",
    ["A[0, 1] = 3"] = "2 indices into 'A' of rank 1",
    ["A[T.float32(0)] = 1"] = "an index into 'A' is an integer, not a float32",
    ["A[0] = T.exp(T.float32(1))"] = "a value of float32x1 into elements of int32x1",
    ["A[0] = T.float32(1) & x"] = "T.bitwise_and is of integers and of bools",
    ["A[0] = y"] = "no variable or function is called 'y'",
    ["A[0] = T.exq(x)"] = "did you mean 'exp'?",
  }
  for line, message in pairs(ill_typed) do
    it(("refuses %q"):format(line), function()
      local err = refuses(1, message, ("%s -o %s"):format(program(params, line), path "out.so"))
      assert.matches("    " .. line .. "\n", err, 1, true)
      assert.matches("^", err, 1, true)
    end)
  end

  local usage = {
    ["--threads 0"] = "--threads 0: an integer from 1 to 64 expected",
    ["--threads 1.5"] = "--threads 1.5: an integer from 1 to 64 expected",
    ["--threads many"] = "malformed argument 'many'",
    ["--vector-bytes 24"] = "--vector-bytes 24: 16, 32 or 64 expected",
    ["--compile-seconds 0"] = "--compile-seconds must be a number above 0",
    ["-o x.exe"] = "-o x.exe: the name ends in none of .c, .h, .so, .o",
    ["--no-such-option"] = "unknown option '--no-such-option'",
  }
  for options, message in pairs(usage) do
    it("takes no " .. options, function()
      refuses(2, message, ("%s -o %s %s"):format(valid(), path "out.so", options))
    end)
  end

  it("shows the command of a compiler that is missing, fails or hangs", function()
    local function with(cc, more)
      return ("%s -o %s --cc %s --cache '' %s"):format(valid(), path "out.so", cc, more or "")
    end
    local missing = refuses(1, "the C compiler 'no-such-cc' is not found", with "no-such-cc")
    assert.matches("command: no-such-cc --version", missing, 1, true)
    local fails = compiler("fails",
      'case "$1" in --version) echo v;; *) echo "in.c:1: broken" >&2; exit 3;; esac')
    local err = refuses(1, "in.c:1: broken", with(fails))
    assert.matches("command: " .. fails, err, 1, true)
    local hangs = compiler("hangs", 'case "$1" in --version) echo v;; *) sleep 100;; esac')
    err = refuses(1, "was stopped by its time limit", with(hangs, "--compile-seconds 0.3"))
    assert.matches("command: " .. hangs, err, 1, true)
    refuses(1, path "killed", with(compiler("killed",
      'case "$1" in --version) echo v;; *) kill -9 $$;; esac')))
  end)

  it("says what it cannot read or write", function()
    refuses(1, "No such file or directory", path "no.tir" .. " -o " .. path "out.so")
    refuses(1, "a module or function is expected",
      command.write(path "empty.tir", "") .. " -o " .. path "out.so")
    refuses(1, "cannot write", valid() .. " -o " .. folder .. "/none/out.c")
  end)

  it("builds loops of no iteration and of any number", function()
    for _, lines in ipairs {
      { "for i in range(-5): A[i] = 1" }, { "for i in range(x, x - 3): A[i] = 1" },
      { "for i in range(T.int64(4000000000000000000)): A[T.int64(0)] = 1" },
    } do
      local status, _, err = command.run(folder,
        ("build %s -o %s"):format(program(params, table.unpack(lines)), path "loop.c"))
      assert.equal("", err)
      assert.equal(0, status)
    end
  end)

  it("writes 100,000 lets and sums of 100,000 terms", function()
    local lets = {}
    for i = 1, 100000 do lets[i] = ("v%d: T.int32 = x"):format(i % 7) end
    lets[#lets + 1] = "A[0] = v0"
    local sum = "A[0] = " .. ("A[1] + "):rep(99999) .. "A[2]"
    for _, lines in ipairs { lets, { sum } } do
      local status, _, err = command.run(folder,
        ("build %s -o %s"):format(program(params, table.unpack(lines)), path "long.c"))
      assert.equal("", err)
      assert.equal(0, status)
    end
  end)
end)
