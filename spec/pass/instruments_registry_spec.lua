-- pl.instruments as a registry: what is assigned, what it constructs, what is
-- refused; and instruments on the command line.

local pl = require "perilune"
local command = require "spec.cli.command"

local function small()
  local x = pl.var("x", "Tensor[(2), float32]")
  return pl.module { main = pl.func({ x }, pl.op.tanh(x) + 1) }
end

local function message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return type(err) == "string" and err:gsub("^%S*_spec.lua:%d+: ", "") or err.message
end

describe("the registry of instruments", function()
  after_each(function() pl.instruments.mine, pl.instruments.other = nil, nil end)

  it("lists those that are there, in order, each with a sentence and its options", function()
    local names = {}
    for name, one in pairs(pl.instruments) do
      names[#names + 1] = name
      assert.equal(name, one.name)
      assert.equal(name, tostring(one))
      assert.is_true(#one.doc > 0, name)
      for _, row in ipairs(one.options) do assert.is_true(#row.doc > 0, name .. row.name) end
    end
    assert.same({ "timing", "statistics", "diff" }, { names[1], names[2], names[3] })
    assert.is_nil(pl.instruments.nothing)
    local row = pl.instruments.diff.options[2]
    assert.same({ "most", "integer", 1000, 0 }, { row.name, row.type, row.default, row.least })
  end)

  it("takes a function, whose arguments are as they are given", function()
    pl.instruments.mine = function(...) return { name = table.concat({ ... }, "-") } end
    assert.equal("a-b", pl.instruments.mine("a", "b").name)
  end)

  it("takes a table with doc, options and make: options are checked", function()
    pl.instruments.mine = { doc = "Counts.", options = { step = { default = 1, least = 1 },
      names = { default = {}, type = "strings" } },
      make = function(options)
        local self = { seen = 0, names = options.names }
        function self.before() self.seen = self.seen + options.step end
        return self
      end }
    assert.equal("Counts.", pl.instruments.mine.doc)
    local one, two = pl.instruments.mine(), pl.instruments.mine { step = 2, names = { "x" } }
    pl.with(pl.context { instruments = { one, two } }, pl.passes.InferType(), small())
    assert.same({ 1, 2, {}, { "x" } }, { one.seen, two.seen, one.names, two.names })
    assert.equal("instrument 'mine': option 'step' expects an integer from 1 on, got 0",
      message(pl.instruments.mine, { step = 0 }))
    assert.equal("instrument 'mine' has no option 'stepp'; did you mean 'step'?",
      message(pl.instruments.mine, { stepp = 0 }))
  end)

  it("takes an instrument, which it gives each time", function()
    local log = { before = function() end }
    pl.instruments.mine = log
    assert.is_true(rawequal(log, pl.instruments.mine()))
  end)

  it("takes options as text, those of its own as well", function()
    local print_after = pl.instruments.print_after:make "{names=[FoldConstant, InferType]}"
    assert.is_function(print_after.after)
    assert.equal("instrument 'diff': option 'most' expects an integer from 0 on, got -1",
      message(pl.instruments.diff.make, pl.instruments.diff, "{most=-1}"))
    local _, diag = pcall(pl.instruments.diff.make, pl.instruments.diff, "{most}")
    assert.equal("expected '=' after the option, got '}'", diag.message)
    assert.equal(6, diag.span.column)
  end)

  it("may be assigned anew; what was made stays; nil removes", function()
    pl.instruments.mine = function() return { name = "one" } end
    local before, made = pl.instruments.mine, pl.instruments.mine()
    pl.instruments.other = function() return {} end
    pl.instruments.mine = function() return { name = "two" } end
    assert.same({ "one", "one", "two" }, { made.name, before().name, pl.instruments.mine().name })
    local last, but_last
    for name in pairs(pl.instruments) do last, but_last = name, last end
    assert.same({ "mine", "other" }, { but_last, last })
    pl.instruments.mine = nil
    assert.is_nil(pl.instruments.mine)
    pl.instruments.mine = nil
  end)

  it("refuses what is none, and keeps those that are built in", function()
    local function assign(name, value)
      return message(function() pl.instruments[name] = value end)
    end
    assert.equal("an instrument is a function or a table, got a number", assign("mine", 3))
    assert.equal("instrument 'mine' has neither a hook nor 'make'", assign("mine", {}))
    assert.equal("instrument 'mine': 'make' is a number, no function", assign("mine", { make = 3 }))
    assert.equal("instrument 'mine' has no field 'docs'; did you mean 'doc'?",
      assign("mine", { make = print, docs = "x" }))
    assert.equal("instruments are registered under names", assign(1, print))
    assert.equal("instrument 'timing' is built in; register another name", assign("timing", print))
    assert.equal("instrument 'timing' is built in; register another name", assign("timing", nil))
    assert.is_nil(pl.instruments.mine)
  end)
end)

describe("perilune opt --instrument", function()
  local folder, model
  setup(function()
    folder = command.folder()
    model = folder .. "/in.relay"
    assert(pl.save(small(), model))
  end)
  teardown(function() os.execute("rm -rf " .. folder) end)

  local function run(arguments)
    return command.run(folder, ("opt %s -o %s/out.relay %s"):format(model, folder, arguments))
  end

  it("takes a name with options, more than once", function()
    local status, out = run("-q -p InferType --instrument 'print_after{names=[InferType]}' "
      .. "--instrument nodes")
    assert.equal(0, status)
    assert.matches("^%-%- after InferType\n", out)
    assert.matches("InferType: 5 nodes, then 5\n", out, 1, true)
  end)

  it("takes a script, and an instrument that the pipeline's script registers", function()
    local script = command.write(folder .. "/watch.lua", [[
return function()
  return setmetatable({ before = function(_, info) print("before " .. info.name) end },
    { __tostring = function() return "that was all" end })
end
]])
    local status, out = run("-q -p InferType --instrument " .. script)
    assert.equal(0, status)
    assert.matches("before InferType\nthat was all\n", out, 1, true)
    local pipeline = command.write(folder .. "/deploy.lua", [[
local pl = require "perilune"
pl.instruments.mine = { before = function(_, info) print("mine " .. info.name) end }
return "InferType"
]])
    status, out = run("-q -p " .. pipeline .. " --instrument mine")
    assert.equal(0, status)
    assert.matches("mine InferType\n", out, 1, true)
  end)

  it("says what is wrong", function()
    local status, _, err = run "--instrument timng"
    assert.equal(2, status)
    assert.matches("--instrument timng: no instrument is called 'timng'; did you mean 'timing'?",
      err, 1, true)
    status, _, err = run "--instrument 'diff{most=x}'"
    assert.equal(2, status)
    assert.matches("instrument 'diff': option 'most' expects an integer from 0 on, got 'x'", err, 1,
      true)
    status, _, err = run("--instrument " .. command.write(folder .. "/three.lua", "return 3"))
    assert.equal(1, status)
    assert.matches("a script for --instrument returns an instrument, this one returned a number",
      err, 1, true)
    status = run "--instrument none.lua"
    assert.equal(1, status)
  end)

  it("is listed by perilune passes", function()
    local _, out = command.run(folder, "passes")
    assert.matches("Instruments (opt --instrument NAME{OPTION=VALUE}):", out, 1, true)
    local status, one = command.run(folder, "passes print_after")
    assert.equal(0, status)
    assert.equal([[
  print_after
    Prints the module after passes.
    names: strings, by default []
      The passes; none given: all.
    full: boolean, by default false
      With all constants, however large.
]], one)
    status, one = command.run(folder, "passes tir.InjectDoubleBuffer")
    assert.equal(0, status)
    assert.equal([[
  tir.InjectDoubleBuffer (prim_func, from level 0)
    Double buffers, filled one round ahead of their use.
  tir.InjectDoubleBuffer: table
    How tir.InjectDoubleBuffer splits loops.
    split_loop: integer from 0 on, by default 1
      By how much the loop is split.
]], one)
  end)
end)
