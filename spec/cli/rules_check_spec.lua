-- perilune rules check; files of rules for opt and test: -p, --rules, --exact.

local command = require "spec.cli.command"

local folder = command.folder()
local function run(arguments) return command.run(folder, arguments) end
local function write(name, text) return command.write(folder .. "/" .. name, text) end

local function model(body)
  return write("in.relay", ([[
#[version = "0.0.5"]
def @main(%%x: Tensor[(2, 3), float32]) {
  %s
}
]]):format(body))
end

describe("perilune rules check", function()
  it("checks the shipped rules of a file, and one rule", function()
    local status, out = run "rules check identity --cases 10"
    assert.equal(0, status)
    assert.matches("^2 passed, 0 failed, 0 not checked; %d+ programs, 20 comparisons, seed 1", out)
    status, out = run "rules check arithmetic add_zero -v --cases 7 --seed 5"
    assert.equal(0, status)
    assert.matches("^add_zero: passed %(exact, %d+ programs, 7 comparisons%)\n1 passed", out)
    status, out = run "rules check arithmetic add_zero -q"
    assert.same({ 0, "" }, { status, out })
  end)

  it("shows what fails in a file, with a seed that shows it again", function()
    local path = write("wrong.lua", 'return { "one: add(?x, 1) => ?x", "two: add(?x, 0) => ?x" }')
    local status, out = run("rules check " .. path)
    assert.equal(1, status)
    assert.matches("one: failed", out, 1, true)
    assert.matches("program:", out, 1, true)
    assert.matches("1 passed, 1 failed, 0 not checked", out, 1, true)
    local seed = out:match "  seed: (%d+)"
    local _, again = run("rules check " .. path .. " one --cases 1 --seed " .. seed)
    assert.matches("one: failed (exact, 1 programs, 1 comparisons)", again, 1, true)
    assert.equal(out, (select(2, run("rules check " .. path))):gsub("[%d.]+ s\n$",
      out:match "([%d.]+ s\n)$"))
  end)

  it("fails for what was not checked", function()
    local path = write("none.lua", 'return { "one: add(?x, ?y) => ?x where ?x.rank == 99" }')
    local status, out = run("rules check " .. path)
    assert.equal(1, status)
    assert.matches("one: unchecked.*was not checked: it applied to none of %d+ programs", out)
    assert.matches("0 passed, 0 failed, 1 not checked", out, 1, true)
  end)

  it("has help of its own", function()
    local _, help = run "rules check --help"
    assert.matches("^Usage: perilune rules check", help)
    assert.equal(help, (select(2, run "help rules check")))
    assert.matches("^Usage: perilune rules %[", (select(2, run "help rules")))
  end)

  it("suggests names, and refuses wrong numbers", function()
    local status, _, err = run "rules check arithmetics"
    assert.equal(2, status)
    assert.matches("no rules are called 'arithmetics'; did you mean 'arithmetic'?", err, 1, true)
    status, _, err = run "rules check arithmetic ad_zero"
    assert.equal(2, status)
    assert.matches("no rule of 'arithmetic' is called 'ad_zero'; did you mean 'add_zero'?", err, 1,
      true)
    status, _, err = run "rules check --cases 0"
    assert.equal(2, status)
    assert.matches("'0' is not a count", err, 1, true)
    status, _, err = run("rules check " .. folder .. "/missing.lua")
    assert.equal(1, status)
    assert.matches("missing.lua", err, 1, true)
  end)
end)

local forms = {
  list = 'return { "twice: tanh(tanh(?x)) => tanh(?x)", { "abs(?x) => ?x", name = "gone" } }',
  set = 'local pl = require "perilune"\n'
    .. 'return pl.rules "algebra" { "twice: tanh(tanh(?x)) => tanh(?x)" }',
  sets = 'local pl = require "perilune"\n'
    .. 'return { pl.rules "a" { "abs(?x) => ?x" }, '
    .. 'pl.rules "b" { "twice: tanh(tanh(?x)) => tanh(?x)" } }',
}

describe("a file of rules", function()
  local input = model "add(tanh(tanh(%x)), add(1f, 2f))"
  local output = folder .. "/out.relay"

  local function opt(arguments)
    os.remove(output)
    return run(("opt %s -o %s %s"):format(input, output, arguments))
  end

  for name, text in pairs(forms) do
    it("may be a pipeline or run in the default one: " .. name, function()
      local path = write(name .. ".lua", text)
      local status, out = opt("-v -p " .. path)
      assert.equal(0, status)
      assert.matches("twice 1", out, 1, true)
      local _, calls = command.read(output):gsub("tanh%(", "")
      assert.equal(1, calls)
      assert.matches("add%(1f", command.read(output))
      status, out = opt("--stats text --rules " .. path)
      assert.equal(0, status)
      assert.matches("\n  twice: %d+ tried, 1 applied", out)
      assert.not_matches("add%(1f", command.read(output))
    end)
  end

  it("runs before a pipeline that is given, and with other files", function()
    local a, b = write("a.lua", forms.set), write("b.lua", 'return { "add(?x, 2) => ?x" }')
    local status, _, err = opt(("-p FoldConstant --rules %s --rules %s"):format(a, b))
    assert.same({ 0, "" }, { status, err })
    local text = command.read(output)
    local _, calls = text:gsub("tanh%(", "")
    assert.equal(1, calls)
    assert.matches("add%(%%%d, 1f", text)
  end)

  it("shows its rules that were never applied", function()
    local _, out = opt("--stats text -v -p " .. write("list.lua", forms.list))
    assert.matches("never applied: gone", out, 1, true)
  end)

  it("runs exact rules only with --exact", function()
    local path = write("mixed.lua", 'return {\n'
      .. '  { "tanh(tanh(?x)) => tanh(?x)", name = "twice", proof = "approximates" },\n'
      .. '  { "add(1, 2) => 3", name = "three" } }')
    local status = opt("--exact -p " .. path)
    assert.equal(0, status)
    local text = command.read(output)
    assert.matches("tanh.*tanh", text)
    assert.matches("3f", text, 1, true)
    assert.equal(0, (opt("--set rules.exact=true -p " .. path)))
    assert.equal(text, command.read(output))
    assert.equal(0, (opt("--set rules.only=three -p " .. path)))
    assert.equal(text, command.read(output))
    assert.equal(0, (opt("-p " .. path)))
    assert.not_equal(text, command.read(output))
  end)

  it("is told of in a reproducer", function()
    local path = write("fails.lua",
      'return { { "tanh(?x)", function() error "boom" end, name = "bad" } }')
    local reproducer = folder .. "/bug.relay"
    local status, _, err = opt(("--rules %s --reproducer %s"):format(path, reproducer))
    assert.equal(1, status)
    assert.matches("fails.lua:1: boom.*in rule 'bad'", err)
    local _, _, again = run("replay " .. reproducer)
    assert.matches("fails.lua:1: boom.*in rule 'bad'", again)
  end)

  local bad = {
    { "return {", "unexpected symbol" },
    { "local x = 1", "returned nothing" },
    { "return 5", "returned a number" },
    { "return {}", "returned an empty list" },
    { 'return require "perilune".rules "e" {}', "the set 'e' has no rules" },
    { 'return { "a: abs(?x) => ?x", "a: tanh(?x) => ?x" }',
      "bad.lua: rules 1 and 2 of 'bad' are both called 'a'" },
    { 'return { { "abs(?x) => ?x", reson = "" } }',
      "bad.lua: rule 1 of 'bad': a rule has no field 'reson'; did you mean 'reason'?" },
    { 'return {\n  "abs(?x) => ?x",\n  "tnh(?x) => ?x",\n}',
      "bad.lua:3:1: error: there is no operator 'tnh'; did you mean 'tanh'?" },
    { 'return require "perilune".rules {\n  "abs(?x) => ?x",\n  "tnh(?x) => ?x",\n}',
      "bad.lua:3:1: error: there is no operator 'tnh'; did you mean 'tanh'?" },
    { 'return { "abs(?x) => ?x", "SimplifyExpr" }', "bad.lua:1:1: error: 'SimplifyExpr' is no" },
  }
  it("that is wrong is refused with what is wrong", function()
    for _, case in ipairs(bad) do
      local path = write("bad.lua", case[1])
      for _, use in ipairs { "--rules ", "-p " } do
        local is_pipeline = use == "-p " and (case[2]:find "^returned")
        local status, _, err = opt(use .. path)
        if not is_pipeline then
          assert.equal(1, status, case[1])
          assert.matches(case[2], err, 1, true)
          assert.not_matches("stack traceback", err, 1, true)
        end
      end
      local status, _, err = run("rules check " .. path)
      assert.equal(1, status)
      assert.matches(case[2], err, 1, true)
    end
    local status, _, err = run("test --rules x.lua " .. folder)
    assert.equal(2, status)
    assert.matches("--exact and --rules choose rules for --opt or --pipeline", err, 1, true)
  end)

  teardown(function() os.execute("rm -rf " .. folder) end)
end)
