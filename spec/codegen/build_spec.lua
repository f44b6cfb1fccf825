-- pl.build and perilune build: objects, the cache, and what goes wrong.

local pl = require "perilune"

local source = [[
@T.prim_func
def scale(A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = A[i] * T.float32(2)]]

local function parse(text) return assert(pl.tir.parse(text, "spec")) end

local function folder()
  local name = os.tmpname()
  os.remove(name)
  assert(os.execute("mkdir " .. name))
  return name
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function fails(text, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(text, tostring(err), 1, true)
  return tostring(err)
end

describe("pl.build", function()
  local one = pl.tensor({ 1, 2, 3, 4, 5, 6, 7, 8 }, "float32")

  it("leaves arguments alone", function()
    local m = pl.build(parse(source))
    assert.same({ 2, 4, 6, 8, 10, 12, 14, 16 }, m.scale(one)[1]:to_table())
    assert.equal(1, one:to_table()[1])
    assert.equal(16, m:run("scale", one)[1]:to_table()[8])
  end)

  it("calls functions without parameters", function()
    local m = pl.build(parse "@T.prim_func\ndef f():\n    T.evaluate(0)")
    assert.same({}, m.f())
    assert.matches("int32_t f(void)", m:source(), 1, true)
  end)

  it("keeps objects by their content", function()
    local cache = folder()
    local first = pl.build(parse(source), { cache = cache }):artifact()
    local second = pl.build(parse(source), { cache = cache }):artifact()
    local other = pl.build(parse(source), { cache = cache, flags = "-O1" }):artifact()
    assert.is_false(first.cached)
    assert.is_true(second.cached)
    assert.is_false(other.cached)
    assert.equal(first.path, second.path)
    assert.not_equal(first.path, other.path)
    assert.matches("-shared", first.command, 1, true)
    os.execute("rm -r " .. cache)
  end)

  it("saves source, header and objects", function()
    local dir = folder()
    local m = pl.build(parse(source), { cache = "" })
    for _, kind in ipairs { "c", "h", "o", "so" } do
      assert.equal(dir .. "/x." .. kind, m:save(dir .. "/x." .. kind))
    end
    assert.equal(m:source(), read(dir .. "/x.c"))
    write(dir .. "/main.c", '#include "x.h"\nint main(void) {\n  float a[8] = {0};\n'
      .. "  return scale(a) + (int)scale_workspace_size();\n}\n")
    assert(os.execute("cd " .. dir
      .. " && cc -Wall -Wextra -Werror -std=c11 main.c x.o -lm -o main && ./main"))
    fails("ends in none of", m.save, m, dir .. "/x.txt")
    os.execute("rm -r " .. dir)
  end)

  it("tells what a compiler said", function()
    local m = pl.build(parse(source), { cache = "", cc = "no-such-compiler-here" })
    fails("the C compiler 'no-such-compiler-here' is not found or not a program", m.scale, one)
    m = pl.build(parse(source), { cache = "", flags = "-no-such-flag" })
    local text = fails("failed", m.scale, one)
    assert.matches("command: ", text, 1, true)
  end)

  it("stops a compiler that hangs", function()
    local dir = folder()
    write(dir .. "/slow", '#!/bin/sh\ncase "$1" in --version) echo slow;; *) sleep 100;; esac\n')
    os.execute("chmod +x " .. dir .. "/slow")
    local m = pl.build(parse(source), { cache = "", cc = dir .. "/slow", compile_seconds = 0.3 })
    fails("was stopped by its time limit", m.scale, one)
    os.execute("rm -r " .. dir)
  end)

  it("tells that a compiler crashed", function()
    local dir = folder()
    write(dir .. "/bad", '#!/bin/sh\ncase "$1" in --version) echo bad;; '
      .. "*) echo too deep >&2; kill -SEGV $$;; esac\n")
    os.execute("chmod +x " .. dir .. "/bad")
    local m = pl.build(parse(source), { cache = "", cc = dir .. "/bad" })
    local text = fails("crashed", m.scale, one)
    assert.matches("command: " .. dir .. "/bad", text, 1, true)
    assert.matches("too deep", text, 1, true)
    os.execute("rm -r " .. dir)
  end)

  -- gcc and clang need minutes for loops that deep, tcc does not.
  for _, cc in ipairs { "tcc", "gcc", "clang" } do
    it("compiles 100,000 nested loops in time or tells why not: " .. cc, function()
      if not os.execute("command -v " .. cc .. " >/dev/null") then return pending(cc) end
      local buffer = pl.tir.decl_buffer({ 1 }, "int32", "B")
      local store = buffer:store(buffer:load(0) + 1, 0)
      for _ = 1, 100000 do store = pl.tir.For(pl.tir.Var("i", "int32"), 0, 1, "serial", store) end
      local m = pl.build(pl.tir.PrimFunc({ buffer }, store),
        { cache = "", cc = cc, compile_seconds = cc == "tcc" and 60 or 3 })
      local begin = os.time()
      local ok, result = pcall(m.main, pl.tensor({ 0 }, "int32"))
      if ok then
        assert.equal(1, result[1]:to_table()[1])
      else
        assert.are_not.equal("tcc", cc, tostring(result))
        assert.matches("command: " .. cc .. " ", tostring(result), 1, true)
        assert.is_true(os.time() - begin < 60)
      end
    end)
  end

  it("stops a compiler and a function at the limit of a context", function()
    local dir = folder()
    write(dir .. "/slow", '#!/bin/sh\ncase "$1" in --version) echo slow;; *) sleep 100;; esac\n')
    os.execute("chmod +x " .. dir .. "/slow")
    local limited = pl.context { config = { ["limit.seconds"] = 0.3 } }
    local m = pl.build(parse(source), { cache = "", cc = dir .. "/slow" })
    local text = fails("it took longer than limit.seconds = 0.3", pl.with, limited, m.scale, one)
    assert.matches("command: " .. dir .. "/slow", text, 1, true)
    os.execute("rm -r " .. dir)
    local hang = pl.build(parse [[
@T.prim_func
def forever(B: T.Buffer((1,), "int32")):
    while B[0] < 3:
        B[0] = 0]])
    fails("it took longer than limit.seconds = 0.3", pl.with, limited, hang.forever,
      pl.tensor({ 0 }, "int32"))
  end)

  it("survives functions that crash or hang, and names them", function()
    local crash = pl.build(parse [[
@T.prim_func
def wild(A: T.Buffer((8,), "float32")):
    for i in range(100000000):
        A[i * 64] = T.float32(0)]])
    fails("'wild' crashed in its child process: signal 11", crash.wild, one)
    local hang = pl.build(parse [[
@T.prim_func
def forever(B: T.Buffer((1,), "int32")):
    while B[0] < 3:
        B[0] = 0]], { seconds = 0.3 })
    fails("'forever' was stopped after 0.3 seconds", hang.forever, pl.tensor({ 0 }, "int32"))
  end)

  it("refuses what is not lowered, and says so", function()
    fails("lower the function with pl.lower first", pl.build, parse [[
@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            A[v] = T.float32(0)]])
    fails("a PrimFunc or a module expected", pl.build, pl.const(1))
    fails("there is no option 'flag'; did you mean 'flags'?", pl.build, parse(source),
      { flag = "-O2" })
    fails("there is no function 'scal'", function() return pl.build(parse(source)).scal end)
    fails("argument 1 ('A') of 'scale': float32 expected, got int32", pl.build(parse(source)).scale,
      pl.tensor({ 1, 2, 3, 4, 5, 6, 7, 8 }, "int32"))
  end)

  it("writes 20,000 nested loops and lets", function()
    local lines, n = { "@T.prim_func", 'def f(B: T.Buffer((1,), "int32")):' }, 150
    for i = 1, n do
      lines[#lines + 1] = ("%sfor i%d in range(1):"):format((" "):rep(3 + i), i)
    end
    lines[#lines + 1] = (" "):rep(4 + n) .. "B[0] = B[0] + 1"
    local m = pl.build(parse(table.concat(lines, "\n")))
    assert.equal(1, m.f(pl.tensor({ 0 }, "int32"))[1]:to_table()[1])
    local tir = pl.tir
    local buffer = tir.decl_buffer({ 1 }, "int32", "B")
    local x = tir.Var("x", "int32")
    local body = tir.BufferStore(buffer, x, { 0 })
    for i = 1, 20000 do
      local var = tir.Var("x", "int32")
      body = tir.LetStmt(x, i == 20000 and tir.BufferLoad(buffer, { 0 }) or var + 1, body)
      x = var
    end
    local deep = tir.PrimFunc({ buffer }, body)
    assert.matches("B[0] = x_19999;", pl.build(deep):source(), 1, true)
    local store = tir.BufferStore(buffer, tir.BufferLoad(buffer, { 0 }) + 1, { 0 })
    for _ = 1, 20000 do store = tir.For(tir.Var("i", "int32"), 0, 1, "serial", store) end
    assert.matches("goto L", pl.build(tir.PrimFunc({ buffer }, store)):source(), 1, true)
  end)
end)

describe("perilune build", function()
  it("writes C and objects", function()
    local command = require "spec.cli.command"
    local dir = folder()
    write(dir .. "/in.tir", source)
    local status, out = command.run(dir, ("build %s/in.tir"):format(dir))
    assert.equal(0, status)
    assert.matches("int32_t scale(float *restrict A)", out, 1, true)
    local all = ("build DIR/in.tir -o DIR/a.c -o DIR/a.h -o DIR/a.so --cache ''"):gsub("DIR", dir)
    assert.equal(0, (command.run(dir, all)))
    assert.matches("scale_call", read(dir .. "/a.h"), 1, true)
    assert.equal(2, (command.run(dir, ("build %s/in.tir -o %s/a.txt"):format(dir, dir))))
    local failed, _, err = command.run(dir, ("build %s/in.tir -o %s/no/a.c"):format(dir, dir))
    assert.equal(1, failed)
    assert.equal(("error: cannot write '%s/no/a.c': No such file or directory\n"):format(dir), err)
    os.execute("rm -r " .. dir)
  end)
end)
