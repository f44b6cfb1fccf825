-- OUT and OUT.data when the run that writes them is killed, or when two write
-- them: whoever reads OUT finds one model, whole, and never data of another.
-- PERILUNE_ROUNDS says how often (default 5).

local pl = require "perilune"
local command = require "spec.cli.command"

local rounds = tonumber(os.getenv "PERILUNE_ROUNDS") or 5
local folder, out

before_each(function()
  folder = command.folder()
  out = folder .. "/out.onnx"
  -- Model N computes x + N, N times in a row: its elements are all N.
  command.write(folder .. "/write.lua", [[
local pl = require "perilune"
local out, rounds = arg[1], tonumber(arg[2])
local function model(n)
  local x = pl.var("x", "Tensor[(20000), float32]")
  local y = x
  local elements = {}
  for i = 1, 20000 do elements[i] = n + 0.0 end
  for _ = 1, n do y = y + pl.const(pl.tensor(elements)) end
  return pl.module { main = pl.func({ x }, y) }
end
local models = { model(tonumber(arg[3]) or 1), model(tonumber(arg[4]) or 2) }
for i = 1, rounds do
  assert(pl.onnx.save(models[i % 2 + 1], out, { external_data = true }))
end
]])
end)

after_each(function() os.execute("rm -rf " .. folder) end)

local function write(n, before, behind)
  return os.execute(("%s %s %s/write.lua %s %d %s"):format(before or "", command.program, folder,
    out, n, behind or ""))
end

-- Which model it is: n * n is added to each element.
local function read()
  local module = assert(pl.load(out))
  local result = pl.eval(module, pl.tensor.full(0.0, { 20000 }, "float32")):to_table()
  for i = 2, #result do assert.equal(result[1], result[i]) end
  return result[1]
end

local function names()
  local list = {}
  for name in io.popen("ls " .. folder):lines() do
    if name:find "^out" then list[#list + 1] = name end
  end
  return table.concat(list, " ")
end

describe("a model and its external data", function()
  it("are whole after every kill, and the next run leaves nothing else", function()
    write(1)
    for i = 1, rounds do
      write(100000, ("timeout -s KILL %.3f"):format(0.02 + 0.013 * (i % 7)), "2>/dev/null")
      local sum = read()
      assert.is_true(sum == 1 or sum == 4, sum)
    end
    write(1)
    assert.equal(4, read())
    assert.equal("out.onnx out.onnx.data", names())
  end)

  it("are those of one of two that write at the same time", function()
    write(1)
    local line = "%s %s/write.lua %s %d %d %d &\n"
    os.execute(line:format(command.program, folder, out, 3 * rounds, 1, 2)
      .. line:format(command.program, folder, out, 3 * rounds, 3, 4) .. "wait")
    assert.is_true(({ [1] = true, [4] = true, [9] = true, [16] = true })[read()])
    assert.equal("out.onnx out.onnx.data", names())
  end)

  it("are read by others while they are written", function()
    write(1)
    os.execute(("%s %s/write.lua %s %d & echo $! >%s/pid"):format(command.program, folder, out,
      100000, folder))
    for _ = 1, rounds do
      local module, diag = pl.load(out)
      if module then
        local main = tostring(module.main)
        assert.is_true(main:find "add" ~= nil, tostring(diag))
      end
    end
    os.execute(("kill -9 $(cat %s/pid)"):format(folder))
    local sum = read()
    assert.is_true(sum == 1 or sum == 4)
  end)

  it("have the same bytes however often they are written", function()
    write(1)
    local model, data = command.read(out), command.read(out .. ".data")
    write(3)
    assert.equal(model, command.read(out))
    assert.equal(data, command.read(out .. ".data"))
    assert.is_truthy(model:find("out.onnx.data", 1, true))
  end)

  it("leave what they did not write", function()
    for _, name in ipairs { "out.onnx.tmp", "out.onnx.data.bak", "out.onnx.perilune" } do
      command.write(folder .. "/" .. name, "mine")
    end
    write(2)
    assert.equal("out.onnx out.onnx.data out.onnx.data.bak out.onnx.perilune out.onnx.tmp", names())
  end)

  it("replace a stale temporary file", function()
    command.write(out .. ".perilune-tmp-0", "left")
    command.write(out .. ".data.perilune-tmp-3", "left")
    command.write(out .. ".perilune-2.data", "left")
    write(2)
    assert.equal("out.onnx out.onnx.data", names())
  end)
end)

describe("external data that another process replaced", function()
  local stale = "external data 'out.onnx.data' was replaced after the model was read"

  local function refuses(message, fn, ...)
    local made, diag = fn(...)
    assert.is_nil(made)
    assert.equal("io", diag.code)
    assert.matches(message, diag.message, 1, true)
  end

  it("is not read as that of the model", function()
    write(1)
    local module = assert(pl.load(out))
    write(1, nil, "3 4")
    local after = command.read(out)
    refuses(stale, pl.onnx.save, module, out)
    refuses(stale, pl.onnx.save, module, out, { external_data = true })
    refuses(stale, pl.onnx.save, module, folder .. "/out2.onnx", { external_data = true })
    local ok, diag = pcall(pl.eval, module, pl.tensor.full(0.0, { 20000 }, "float32"))
    assert.is_false(ok)
    assert.matches(stale, tostring(diag), 1, true)
    assert.equal(after, command.read(out))
    assert.equal(16, read())
    assert.equal("out.onnx out.onnx.data", names())
  end)

  it("is not taken for it when it was changed in place", function()
    write(1)
    local module = assert(pl.load(out))
    os.execute(("touch -d 2001-01-01 %s.data"):format(out))
    refuses(stale, pl.onnx.save, module, out)
  end)

  it("stays that of the model where it was opened before", function()
    write(1)
    local module = assert(pl.load(out))
    local zeros = pl.tensor.full(0.0, { 20000 }, "float32")
    local sum = pl.eval(module, zeros):get(1)
    write(1, nil, "3 4")
    assert.equal(sum, pl.eval(module, zeros):get(1))
    refuses(stale, pl.onnx.save, module, out)
  end)

  it("may be saved in place again and again by one script", function()
    write(1)
    local module = assert(pl.load(out))
    for _ = 1, 3 do assert(pl.onnx.save(module, out)) end
    assert.equal(4, read())
  end)
end)
