-- Reproducers: written when passes fail, read without running anything, replayed.

local command = require "spec.cli.command"
local pl = require "perilune"

local folder
before_each(function() folder = command.folder() end)
after_each(function() os.execute("rm -rf " .. folder) end)

local x = pl.var("x", "Tensor[(2, 3), float32]")
local function sample() return pl.module { main = pl.func({ x }, pl.op.tanh(x) + 0.0) } end

-- A script as a file of the folder; gives what it returns.
local function script(name, text)
  local path = command.write(folder .. "/" .. name, text)
  return assert(loadfile(path)), path
end

local BROKEN = [[
local pl = require "perilune"
local function broken(fn)
  if #fn.params > 0 then error "broken here" end
end
return pl.sequential { name = "deploy", "SimplifyExpr",
  pl.function_pass { name = "Broken", run = broken } }
]]

-- Runs the pass in a context that writes a reproducer: the diagnostic, the path.
local function fail(pass, spec, mod)
  local path = folder .. "/bug.relay"
  spec = spec or {}
  spec.config = spec.config or {}
  spec.config.reproducer = spec.config.reproducer or path
  local ok, diag = pcall(pl.with, pl.context(spec), pass, mod or sample())
  assert.is_false(ok)
  return diag, path
end

local function last_note(diag) return diag.notes[#diag.notes].message end

describe("a reproducer", function()
  it("is written when a pass fails: the module before it, and all the rest", function()
    local chunk = script("deploy.lua", BROKEN)
    local diag, path = fail(chunk(), { opt_level = 3, disabled = { "InferType", "FoldConstant:2" },
      config = { ["limit.seconds"] = 9.5, fold = "all" } })
    assert.equal(("`perilune replay %s` runs it again"):format(path), last_note(diag))
    local text = command.read(path):gsub(folder:gsub("%p", "%%%0"), "DIR")
      :gsub("perilune [%d.]+,", "perilune VERSION,")
    assert.equal([[
// perilune reproducer 1
// # `perilune replay FILE` runs the pipeline on the module below these comments;
// # both may be edited. Where an entry `onnx` has the module's bytes, those are run
// # and the text is for reading: delete the entry to run the text.
// version: perilune VERSION, Lua 5.4
// failure: callback
//   | error: pass 'Broken', function @main: DIR/deploy.lua:3: broken here
//   | note: in pipeline 'deploy', element 2 of 2: Broken
//   |     sequential(deploy){SimplifyExpr,Broken}
//   |                                     ^~~~~~
// pipeline: Broken
// whole: sequential(deploy){SimplifyExpr,Broken}
// ran: SimplifyExpr (changed)
// seed: 0
// opt_level: 3
// disabled: InferType
// config: fold = "all"
// config: limit.seconds = 9.5
// script: DIR/deploy.lua
//   | local pl = require "perilune"
//   | local function broken(fn)
//   |   if #fn.params > 0 then error "broken here" end
//   | end
//   | return pl.sequential { name = "deploy", "SimplifyExpr",
//   |   pl.function_pass { name = "Broken", run = broken } }
//   |
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32] /* ty=Tensor[(2, 3), float32] */) -> ]]
      .. [[
Tensor[(2, 3), float32] {
  tanh(%x) /* ty=Tensor[(2, 3), float32] */
}

]], text)
  end)

  it("is Relay text, too", function()
    local _, path = fail(script("deploy.lua", BROKEN)())
    assert.is_true(pl.equal(pl.passes.SimplifyExpr()(sample()), assert(pl.load(path))))
  end)

  it("fails again in the same way, and passes when the script is mended", function()
    local diag, path = fail(script("deploy.lua", BROKEN)())
    local ok, again, remarks = pl.reproducer.replay(path)
    assert.is_false(ok)
    assert.equal(diag.text, again.text)
    assert.same({}, remarks)
    command.write(path, (command.read(path):gsub("> 0 then", "> 9 then")))
    local passes, module = pl.reproducer.replay(path)
    assert.is_true(passes)
    assert.is_true(pl.equal(pl.load(path), module))
  end)

  it("begins with the input of the pipeline when it is told to", function()
    local mod = sample()
    local diag, path = fail(script("deploy.lua", BROKEN)(), {
      config = { ["reproducer.from"] = "input" }, disabled = { "FoldConstant:2" } }, mod)
    local what = assert(pl.reproducer.read(path))
    assert.equal("sequential(deploy){SimplifyExpr,Broken}", what.pipeline)
    assert.is_nil(what.whole)
    assert.same({ "FoldConstant:2" }, what.context.disabled)
    assert.is_true(pl.equal(mod, what.module))
    local _, again = pl.reproducer.replay(path)
    assert.equal(diag.text, again.text)
    assert.equal(diag.notes[1].text, again.notes[1].text)
  end)

  it("is read without running anything", function()
    local _, path = fail(script("deploy.lua", "_G.reproducer_ran = true\n" .. BROKEN)())
    _G.reproducer_ran = nil -- luacheck: ignore
    local what = assert(pl.reproducer.read(path))
    assert.is_nil(_G.reproducer_ran) -- luacheck: ignore
    assert.equal("callback", what.failure.code)
    assert.equal("Broken", what.pipeline)
    assert.equal(1, #what.scripts)
  end)

  it("is written under limits of time and memory, too", function()
    local forever = script("forever.lua", [[
      return require "perilune".module_pass { name = "Forever",
        run = function() while true do end end }]])()
    local diag, path = fail(forever, { config = { ["limit.seconds"] = 0.05 } })
    assert.equal("limit", diag.code)
    local ok, again = pl.reproducer.replay(path)
    assert.is_false(ok)
    assert.equal(diag.message, again.message)
    local hungry = script("hungry.lua", [[
      local pl = require "perilune"
      return pl.module_pass { name = "Hungry",
        run = function() pl.tensor.random({ 4096, 4096 }, "float32") end }]])()
    diag, path = fail(hungry, { config = { ["limit.memory"] = pl.memory() + 4000000 } })
    assert.equal("limit", diag.code)
    assert.equal("limit", assert(pl.reproducer.read(path)).failure.code)
  end)

  it("is judged by the instruments that judged before", function()
    local wrong = script("wrong.lua", [[
      local pl = require "perilune"
      return pl.function_pass { name = "Wrong", run = pl.mutator { Call = function(call)
        if call.op.name == "tanh" then return pl.op.sigmoid(call[1]) end
      end } }]])()
    local diag, path = fail(wrong, { instruments = { pl.instruments.oracle(),
      pl.instruments.nodes(), { name = "mine" } } })
    assert.matches("pass 'Wrong' changes what is computed", diag.message)
    assert.same({ "oracle", "nodes", "mine" }, pl.reproducer.read(path).context.instruments)
    local ok, again, remarks = pl.reproducer.replay(path)
    assert.is_false(ok)
    assert.equal(diag.message, again.message)
    assert.same({ "the instrument 'mine' is not there" }, remarks)
  end)

  it("holds the bytes of a model that text does not say all of", function()
    local zoo = require "perilune.zoo"
    local bytes = assert(zoo.build("lstm", { hidden = 4, vocabulary = 5 })):tostring()
    local mod = assert(pl.onnx.parse(bytes))
    local _, path = fail(script("deploy.lua", BROKEN)(),
      { config = { ["reproducer.from"] = "input" } }, mod)
    assert.is_true(pl.equal(mod, assert(pl.reproducer.read(path)).module, { contents = true }))
  end)

  it("names the file of weights over 1 MiB, or holds them when it is told to", function()
    local w = pl.const(pl.tensor.random({ 300, 1000 }, "float32"))
    local built = pl.module { main = pl.func({ x }, pl.tuple { pl.op.tanh(x), w }) }
    assert(pl.onnx.save(built, folder .. "/m.onnx"))
    local mod = assert(pl.load(folder .. "/m.onnx"))
    local pass = script("deploy.lua", BROKEN)()
    local _, path = fail(pass, {}, mod)
    local text = command.read(path)
    assert.is_true(#text < 10000)
    assert.matches(('"file": "%s/m.onnx", "offset": %%d+, "length": 1200000'):format(folder), text)
    local what = assert(pl.reproducer.read(path))
    local simple = pl.passes.SimplifyExpr()(mod)
    assert.equal(tostring(simple), tostring(what.module))
    _, path = fail(pass, { config = { ["reproducer.embed"] = true } }, mod)
    os.remove(folder .. "/m.onnx")
    what = assert(pl.reproducer.read(path))
    assert.is_falsy(command.read(path):find('"file"', 1, true))
    assert(pl.check(simple, what.module))
  end)

  it("tells other versions, and runs", function()
    local _, path = fail(script("deploy.lua", BROKEN)())
    local text = command.read(path):gsub("version: perilune [%d.]+", "version: perilune 0")
    command.write(path, text)
    local _, _, remarks = pl.reproducer.replay(path)
    assert.equal(1, #remarks)
    assert.matches("^written by perilune 0, Lua 5.4; this is perilune [%d.]+, Lua 5.4$", remarks[1])
  end)

  it("is not written by one who did not ask, nor by who succeeds", function()
    local pass = script("deploy.lua", BROKEN)()
    local ok, diag = pcall(pass, sample())
    assert.is_false(ok)
    assert.equal(1, #diag.notes)
    local path = folder .. "/none.relay"
    local context = pl.context { config = { reproducer = path } }
    pl.with(context, pl.pipeline "SimplifyExpr", sample())
    assert.is_nil(io.open(path))
    -- What a body catches is no failure of the run.
    pl.with(context, pl.module_pass { run = function(m) pcall(pass, m) end }, sample())
    assert.is_nil(io.open(path))
  end)

  it("that cannot be written leaves the failure as it is", function()
    local path = folder .. "/no/such/folder"
    local diag = fail(script("deploy.lua", BROKEN)(), { config = { reproducer = path } })
    assert.matches("broken here", diag.message)
    assert.equal(("no reproducer: cannot write '%s': No such file or directory"):format(path),
      last_note(diag))
  end)

  it("is written by hand, with what is not given as it is now", function()
    local path = folder .. "/mine.relay"
    local mod = sample()
    assert(pl.reproducer.write(path, { module = mod, pipeline = "SimplifyExpr",
      context = { opt_level = 1, required = { "SimplifyExpr" }, config = { fold = "all" } },
      scripts = { { name = "a.lua", source = "x = 1\n\n  y = '//'", arguments = { n = 1.5,
        text = 'a "b"\n\\c\0', yes = true } } }, seed = 7, failure = "all wrong" }))
    local what = assert(pl.reproducer.read(path))
    assert.is_true(pl.equal(mod, what.module))
    what.module = nil
    assert.same({ version = what.version, failure = { code = "error", text = "all wrong" },
      pipeline = "SimplifyExpr", seed = 7,
      context = { opt_level = 1, required = { "SimplifyExpr" }, disabled = {}, only = {},
        instruments = {}, config = { fold = "all" } },
      scripts = { { name = "a.lua", source = "x = 1\n\n  y = '//'", arguments = { n = 1.5,
        text = 'a "b"\n\\c\0', yes = true } } } }, what)
    assert.has_error(function() pl.reproducer.write(path, { modul = mod }) end,
      "a reproducer has no field 'modul'; did you mean 'module'?")
    assert.has_error(function() pl.reproducer.write(path, { module = mod }) end,
      "a reproducer has a module and a pipeline")
  end)
end)

describe("a script that is run for its passes", function()
  -- Replays the pass 'Broken' of this script.
  local function replay(text)
    local path = folder .. "/mine.relay"
    assert(pl.reproducer.write(path, { module = sample(), pipeline = "Broken", context = {},
      scripts = { { name = "main.lua", source = text } } }))
    return pl.reproducer.replay(path)
  end

  local MAKE = [[
    local pl = require "perilune"
    local broken = pl.function_pass { name = "Broken", run = function() error "broken" end }
    local x = pl.var("x", "Tensor[(2), float32]")
    local mod = pl.module { main = pl.func({ x }, x) }
  ]]

  it("ends where it applies one, whatever it catches", function()
    for _, use in ipairs {
      "broken(mod)",
      "for _ = 1, 9 do pcall(broken, mod) end pl.reproducer_went_on = true",
      "coroutine.wrap(function() broken(mod) end)() pl.reproducer_went_on = true",
      "local co = coroutine.create(function() broken(mod) end) coroutine.resume(co)"
        .. " pl.reproducer_went_on = true",
      "xpcall(broken, function() broken(mod) end, mod) pl.reproducer_went_on = true",
    } do
      local ok, diag = replay(MAKE .. use)
      assert.is_false(ok)
      assert.equal("pass 'Broken', function @main: main.lua:2: broken", diag.message)
      assert.is_nil(pl.reproducer_went_on)
    end
    local mod = sample()
    assert.equal(mod, pl.pipeline "" (mod)) -- passes are applied again
  end)

  it("may register passes, and leaves nothing else behind", function()
    local ok, diag = replay [[
      require "perilune".passes.Broken = function() error "registered" end
      leaked = true]]
    assert.is_false(ok)
    pl.passes.Broken = nil
    assert.equal("pass 'Broken', function @main: main.lua:1: registered", diag.message)
    assert.is_nil(leaked) -- luacheck: ignore
    replay(MAKE)
    assert.is_nil(pl.passes.Broken) -- registered for a moment only
  end)

  it("that fails is told of, and so is a pass that nobody made", function()
    local ok, diag, remarks = replay "local x = nil + 1"
    assert.is_false(ok)
    assert.equal("pass 'Broken' is not registered", diag.message)
    assert.same({ "main.lua:1: attempt to perform arithmetic on a nil value" }, remarks)
    remarks = select(3, replay "not Lua")
    assert.same({ "main.lua:1: unexpected symbol near 'not'" }, remarks)
  end)

  it("replays nothing itself", function()
    local _, _, remarks = replay [[require "perilune".reproducer.replay {
      scripts = { { name = "b", source = "" } }, context = {}, pipeline = "" }]]
    assert.same({ "main.lua:1: error: a script that is loaded for its passes cannot replay" },
      remarks)
  end)
end)

describe("a bad reproducer", function()
  local BODY = '#[version = "0.0.5"]\ndef @main(%x: int32) { %x }\n'

  local function refuses(expected, text)
    local what, diag = pl.reproducer.parse(text, "bug.relay")
    assert.is_nil(what)
    assert.equal(expected, diag.text)
  end

  it("is refused with the line", function()
    refuses("bug.relay:1: error: not a reproducer: expected '// perilune reproducer 1'", "")
    refuses("bug.relay:1: error: not a reproducer: expected '// perilune reproducer 1'", BODY)
    refuses("bug.relay:1: error: format 2 is unknown here; this version reads 1",
      "// perilune reproducer 2\n" .. BODY)
    local first = "// perilune reproducer 1\n"
    refuses("bug.relay:1: error: there is no pipeline: '// pipeline: TEXT'", first .. BODY)
    refuses("bug.relay:3: error: a reproducer has no key 'pipelin'; did you mean 'pipeline'?",
      first .. "// # remark\n// pipelin: FoldConstant\n" .. BODY)
    refuses("bug.relay:2: error: expected '// KEY: VALUE', '//   | TEXT' or '// # REMARK'",
      first .. "// what is this\n" .. BODY)
    refuses("bug.relay:2: error: text that belongs to no key", first .. "//   | text\n" .. BODY)
    first = first .. "// pipeline: SimplifyExpr\n"
    refuses("bug.relay:3: error: the seed is an integer", first .. "// seed: 1.5\n" .. BODY)
    refuses("bug.relay:3: error: the level is an integer", first .. "// opt_level: x\n" .. BODY)
    for _, value in ipairs { "fold", "fold = all", 'fold = "a', 'fold = "\\9"',
      'fold = "\\999"' } do
      refuses('bug.relay:3: error: expected NAME = VALUE, a number, true, false or "text"',
        first .. "// config: " .. value .. "\n" .. BODY)
    end
    refuses("bug.relay:3: error: an argument follows its script",
      first .. "// argument: n = 1\n" .. BODY)
    refuses("bug.relay:3: error: the model's bytes are no base64",
      first .. "// onnx:\n//   | AA*=\n" .. BODY)
  end)

  it("has the text's own error when the module is wrong", function()
    local what, diag = pl.reproducer.parse(
      "// perilune reproducer 1\n// pipeline: SimplifyExpr\n" .. BODY:gsub("{ %%x", "{ %%y"),
      "bug.relay")
    assert.is_nil(what)
    assert.matches("^bug.relay:4:24: error: no variable is called 'y'", diag.text)
  end)

  it("fails to replay when context or pipeline make no sense", function()
    local function replay(lines)
      local what = assert(pl.reproducer.parse("// perilune reproducer 1\n" .. lines .. BODY))
      local ok, diag = pl.reproducer.replay(what)
      assert.is_false(ok)
      return diag.message
    end
    assert.equal("pass 'SimplifyExp' is not registered; did you mean 'SimplifyExpr'?",
      replay "// pipeline: SimplifyExp\n")
    assert.matches("fould", replay "// pipeline: SimplifyExpr\n// config: fould = 1\n")
    assert.matches("Nope", replay "// pipeline: SimplifyExpr\n// disabled: Nope\n")
  end)

  it("raises nothing, whatever its bytes are", function()
    local _, path = fail(script("deploy.lua", BROKEN)())
    local text = command.read(path)
    local random = 1
    local function pick(n)
      random = random * 1103515245 + 12345 & 0x7fffffff
      return random >> 8 & 0x7fffff, (random >> 8) % n + 1
    end
    for _ = 1, 300 do
      local _, at = pick(#text)
      local _, byte = pick(256)
      local _, keep = pick(3)
      local changed = text:sub(1, at - 1) .. (keep > 1 and string.char(byte - 1) or "")
        .. (keep > 2 and "" or text:sub(at + 1))
      local ok, what, diag = pcall(pl.reproducer.parse, changed, "bug.relay")
      assert.is_true(ok)
      assert.is_true(what ~= nil or diag.text ~= nil)
    end
  end)
end)

describe("settings of a reproducer", function()
  local header = require "perilune.debug.reproducer.header"

  it("come back, lists and tables too", function()
    for _, value in ipairs { 1, -2.5, 1e300, true, false, "", 'a "b" = [{\\\n', { 1, "x", true },
      { deep = 1, wide = { "a", "b" }, ["far.off"] = { n = -1 } } } do
      assert.same(value, header.value(header.quote(value)))
    end
    assert.equal('{deep = 1, wide = ["a", "b"]}',
      header.quote { wide = { "a", "b" }, deep = 1 })
  end)

  it("are refused when they make no sense", function()
    for _, text in ipairs { "", "x", "nan?", "[1", "{1}", "{a = }", "[1]]", "{a = 1} ", '"a"b',
      ("["):rep(100000), "nil" } do
      assert.is_nil(header.value(text))
    end
  end)

  it("with fields are replayed", function()
    pl.config.reproducer_fields = { fields = { deep = 2, wide = "a" } }
    local _, path = fail(script("deploy.lua", BROKEN)(),
      { config = { reproducer_fields = { deep = 5 } } })
    assert.equal(5, pl.reproducer.read(path).context.config.reproducer_fields.deep)
    local ok, diag = pl.reproducer.replay(path)
    assert.is_false(ok)
    assert.matches("broken here", diag.message)
    pl.config.reproducer_fields = nil
  end)

  it("hold the bytes of an ONNX model", function()
    local bytes = assert(require "perilune.zoo".build("lstm", { hidden = 4, vocabulary = 5 }))
      :tostring()
    local what = assert(pl.reproducer.parse("// perilune reproducer 1\n// pipeline: SimplifyExpr\n"
      .. "// onnx:\n//   | " .. require "perilune.core".base64_encode(bytes) .. "\n"))
    assert.is_true(pl.equal(assert(pl.onnx.parse(bytes)), what.module, { contents = true }))
  end)
end)

describe("base64", function()
  local core = require "perilune.core"

  it("comes back", function()
    assert.equal("Zm9vYg==", core.base64_encode "foob")
    for n = 0, 300 do
      local bytes = {}
      for i = 1, n do bytes[i] = string.char(i * 7 % 256) end
      bytes = table.concat(bytes)
      assert.equal(bytes, core.base64_decode(core.base64_encode(bytes)))
    end
  end)

  it("refuses what it is not", function()
    for _, text in ipairs { "A", "AAA", "AA=A", "====", "A===", "AAAA=", "AA?A", "=AAA" } do
      assert.is_nil(core.base64_decode(text))
    end
  end)
end)

describe("perilune replay", function()
  local function run(arguments) return command.run(folder, arguments) end

  it("runs what opt left", function()
    local deploy = command.write(folder .. "/deploy.lua", [[
      local pl = require "perilune"
      local level = (...).level or 1
      return pl.sequential { "SimplifyExpr", pl.function_pass { name = "Level", run = function()
        if level > 2 then error("level " .. level .. " is too much") end
      end } }]])
    local input = folder .. "/in.relay"
    assert(pl.save(sample(), input))
    local bug = folder .. "/bug.relay"
    local status, _, err = run(("opt %s -o %s/out.relay -p %s --set level=3 --reproducer %s")
      :format(input, folder, deploy, bug))
    assert.equal(1, status)
    assert.matches("note: `perilune replay " .. bug .. "` runs it again", err, 1, true)
    local out
    status, out, err = run("replay " .. bug)
    assert.equal(1, status)
    assert.equal("", out)
    assert.matches("^error: pass 'Level', function @main: %S*deploy.lua:4: level 3 is too much\n",
      err)
    status, out, err = run(("replay %s --set level=2 -o %s/out.relay"):format(bug, folder))
    assert.equal(0, status)
    assert.equal("it passes now\n", out)
    assert.equal("", err)
    assert.is_true(pl.equal(pl.passes.SimplifyExpr()(sample()), pl.load(folder .. "/out.relay")))
    status, _, err = run(("replay %s --set level=4"):format(bug))
    assert.equal(1, status)
    assert.matches("^perilune: it fails in another way than it did:\nerror: pass 'Level'", err)
    assert.matches("\nerror: pass 'Level', function @main: %S*deploy.lua:4: level 4 is too much",
      err)
  end)

  it("runs a part of it", function()
    local bug = folder .. "/bug.relay"
    fail(script("deploy.lua", BROKEN)(), { config = { reproducer = bug,
      ["reproducer.from"] = "input" } })
    assert.equal(1, (run("replay " .. bug)))
    local status, out = run("replay --to 1 " .. bug)
    assert.equal(0, status)
    assert.equal("it passes now\n", out)
  end)

  it("says what is wrong with a file", function()
    local status, _, err = run("replay " .. folder .. "/none.relay")
    assert.equal(1, status)
    assert.equal("error: " .. folder .. "/none.relay: No such file or directory\n", err)
    local path = command.write(folder .. "/bad.relay", "def @main() { 1 }")
    status, _, err = run("replay " .. path)
    assert.equal(1, status)
    assert.equal(path .. ":1: error: not a reproducer: expected '// perilune reproducer 1'\n", err)
    assert.equal(2, (run "replay"))
  end)
end)
