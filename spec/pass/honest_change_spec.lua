-- What a pass changed is told as it is: an equal copy is no change, whoever
-- made it, and every other difference is one.

local pl = require "perilune"
local command = require "spec.cli.command"

local text = [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) {
  add(nn.relu(%x), %x)
}
]]

local function parse(more) return assert(pl.parse(text .. (more or ""))) end

-- The pass again and again, as a new function.
local function copy(fn)
  local x = fn.params[1]
  return pl.func({ x }, pl.op.add(pl.op.nn.relu(x), x))
end

local function messages()
  local all = {}
  for i, diag in ipairs(pl.diagnostics()) do all[i] = diag.severity .. ": " .. diag.message end
  return all
end

describe("an equal copy", function()
  it("of a function is no change, and is told with its pass and function", function()
    local mod = parse()
    local pass = pl.function_pass { name = "Copy", run = copy }
    assert.equal(mod, pass(mod))
    assert.is_false(pl.report()[1].changed)
    assert.equal(1, pl.report()[1].counts["equal copy"])
    assert.same({ "note: pass 'Copy', function @main: it gives an equal copy; the function stays "
      .. "as it was" }, messages())
  end)

  it("of a module is told, too", function()
    local mod = parse()
    local pass = pl.module_pass { name = "Copy", run = function() return parse() end }
    assert.equal(mod, pass(mod))
    assert.same({ "note: pass 'Copy': it gives an equal copy; the module stays as it was" },
      messages())
  end)

  it("with other spans is a change of a pass that declares changes_spans", function()
    local function reparse(mod) return assert(pl.parse(tostring(mod), "again.relay")) end
    local mod = parse()
    local function apply(spec)
      local got = pl.module_pass(spec)(mod)
      return got, pl.report()[1]
    end
    local kept, row = apply { name = "Plain", run = reparse }
    assert.equal(mod, kept)
    assert.is_false(row.changed)
    local changed
    changed, row = apply { name = "Spans", run = reparse, changes_spans = true }
    assert.not_equal(mod, changed)
    assert.is_true(row.changed)
    assert.is_nil(row.counts["equal copy"])
    assert.same({}, messages())
    local source = changed.main.body:history()
    assert.equal("again.relay", source[#source].file)
  end)

  it("with the same spans is none, so that a fixpoint of such passes ends", function()
    local pass = pl.module_pass { name = "Spans", changes_spans = true,
      run = function(mod) return assert(pl.parse(tostring(mod), "again.relay")) end }
    assert.is_true(pass.changes_spans)
    assert.is_false(pl.passes.SimplifyExpr().changes_spans)
    local once = pass(parse())
    local rounds = 0
    local context = pl.context { instruments = { { before = function(_, info)
      if info.name == "Spans" then rounds = rounds + 1 end
    end } } }
    assert.equal(once, pl.with(context, pl.fixpoint { pass, rounds = 9 }, once))
    assert.equal(1, rounds)
  end)

  it("is told once a pass in a run", function()
    local mod = parse((text:gsub("^.-\n", ""):gsub("@main", "@other")))
    local a = pl.function_pass { name = "A", run = copy }
    local b = pl.function_pass { name = "B", run = copy }
    pl.sequential { a, b, a } (mod)
    assert.equal(2, pl.report()[3].counts["equal copy"])
    local told = messages()
    assert.equal(2, #told)
    assert.matches("pass 'A', function @main: ", told[1])
    assert.matches("pass 'B', function @main: ", told[2])
    pl.sequential { a } (mod)
    assert.equal(1, #messages())
  end)

  it("that the cache remembers is told again", function()
    local mod = parse()
    local pass = pl.function_pass { name = "Copy", run = copy, cache = true }
    local context = pl.context { config = { cache = 100000 } }
    pl.with(context, pass, mod)
    local first = messages()
    pl.with(context, pass, mod)
    assert.equal(1, pl.report()[1].counts.cached)
    assert.same(first, messages())
    assert.equal(1, #first)
  end)

  it("is shown by opt", function()
    local folder = command.folder()
    command.write(folder .. "/in.relay", text)
    command.write(folder .. "/copy.lua", [[
      local pl = require "perilune"
      return pl.function_pass { name = "Copy", run = function(fn)
        local x = fn.params[1]
        return pl.func({ x }, pl.op.add(pl.op.nn.relu(x), x))
      end }]])
    local status, _, err = command.run(folder, ("opt %s/in.relay -o %s/out.relay -p %s/copy.lua")
      :format(folder, folder, folder))
    local _, _, quiet = command.run(folder, ("opt -q %s/in.relay -o %s/out.relay -p %s/copy.lua")
      :format(folder, folder, folder))
    os.execute("rm -r " .. folder)
    assert.equal(0, status)
    assert.equal("note: pass 'Copy', function @main: it gives an equal copy; the function stays as "
      .. "it was\n", err)
    assert.equal("", quiet)
  end)
end)

describe("an equal node", function()
  local function turning(f)
    return pl.function_pass { name = "Turn", run = pl.mutator { Call = f } }
  end

  it("that a mutator answers with is no application of its rule", function()
    local mod = parse()
    local out = turning(function(call)
      if call.op.name == "add" then return pl.op.add(call.args[1], call.args[2]) end
      return pl.op.nn.relu(call.args[1])
    end)(mod)
    assert.equal(mod, out)
    assert.equal(0, pl.report()[1].applications)
    local told = messages()
    assert.equal("note: pass 'Turn', function @main: rule 'Call' returned an equal copy of its "
      .. "node; the node is left unchanged", told[2])
  end)

  it("beside a change leaves that one alone", function()
    local out = turning(function(call)
      if call.op.name == "add" then return pl.op.add(call.args[1], call.args[2]) end
      return pl.op.tanh(call.args[1])
    end)(parse())
    assert.equal(1, pl.report()[1].applications)
    assert.is_true(pl.report()[1].changed)
    assert.equal(1, #messages())
    assert.matches("tanh", tostring(out))
    assert.not_matches("relu", tostring(out))
    assert.is_true(pl.verify(out))
  end)

  it("is one with the very same operands, attributes and type", function()
    local out = turning(function(call)
      if call.op.name == "add" then return pl.op.add(call.args[2], call.args[1]) end
    end)(parse())
    assert.equal(1, pl.report()[1].applications)
    assert.same({}, messages())
    assert.is_true(pl.report()[1].changed)
    assert.is_true(pl.verify(out))
  end)
end)

describe("a change", function()
  it("of types only is one", function()
    local open = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32], %f: fn (Tensor[(2), float32]) -> _) { %f(%x) }
]])
    local closed = pl.function_pass { name = "Close", run = function(fn)
      local x = fn.params[1]
      local f = pl.var("f", pl.type "fn (Tensor[(2), float32]) -> Tensor[(2), float32]")
      return pl.func({ x, f }, pl.call(f, { x }))
    end }
    assert.not_equal(open, closed(open))
    assert.is_true(pl.report()[1].changed)
    assert.same({}, messages())
  end)
end)

describe("a module", function()
  it("cannot be changed in place, by nobody", function()
    local mod = parse()
    local before = tostring(mod)
    local fn = mod.functions.main
    assert.has_error(function() mod.attrs = {} end)
    assert.has_error(function() fn.body = fn.params[1] end)
    assert.has_error(function() fn.params[1].name = "y" end)
    assert.has_error(function() fn.body.attrs.axis = 1 end)
    pcall(function() mod.functions.main = nil end)
    pcall(function() fn.body.args[1] = fn.params[1] end)
    pcall(function() fn.params[1] = nil end)
    assert.equal(before, tostring(mod))
    local liar = pl.module_pass { run = function(module)
      pcall(function() module.functions.main = nil end)
    end }
    assert.equal(mod, liar(mod))
    assert.equal(before, tostring(mod))
  end)
end)
