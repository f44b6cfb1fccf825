-- perilune fmt: several files, standard input, --check, -i, comments.

local command = require "spec.cli.command"

local folder = command.folder()
local function run(arguments) return command.run(folder, arguments) end
local function path(name) return folder .. "/" .. name end

local HEAD = '#[version = "0.0.5"]\n'
local LOOSE = HEAD .. "def @main(%x: int32) { %x+1 }\n"
local FORMED = HEAD .. [[
def @main(%x: int32 /* ty=int32 */) -> int32 {
  add(%x, 1 /* ty=int32 */) /* ty=int32 */
}
]]

--- Its status and what it prints of the file as standard input.
local function piped(arguments, file)
  local out = path "piped"
  local _, _, status = os.execute(("%s %s <%s >%s 2>&1"):format(command.program, arguments, file,
    out))
  return status, command.read(out)
end

describe("perilune fmt", function()
  local loose, formed, bad
  before_each(function()
    loose = command.write(path "loose.relay", LOOSE)
    formed = command.write(path "formed.relay", FORMED)
    bad = command.write(path "bad.relay", HEAD .. "def @main( { 1 }")
  end)
  teardown(function() os.execute("rm -r " .. folder) end)

  it("prints several files one after another", function()
    local status, out = run(("fmt %s %s"):format(loose, formed))
    assert.equal(0, status)
    assert.equal(FORMED .. FORMED, out)
  end)

  it("reads standard input, text or ONNX", function()
    assert.same({ 0, FORMED }, { piped("fmt -", loose) })
    assert.same({ 0, FORMED }, { piped("fmt", loose) })
    local model = path "model.onnx"
    assert.equal(0, (run(("opt -q %s -o %s"):format(loose, model))))
    local status, out = piped("fmt -", model)
    assert.equal(0, status)
    assert.matches("add%(%%x, 1", out)
    status, out = piped("fmt", bad)
    assert.equal(1, status)
    assert.matches("^standard input:2:12: error: ", out)
  end)

  it("goes on behind a file that cannot be read", function()
    local status, out, err = run(("fmt %s %s %s"):format(bad, path "missing.relay", formed))
    assert.equal(1, status)
    assert.equal(FORMED, out)
    assert.matches("bad.relay:2:12: error: ", err)
    assert.matches("perilune: .-missing.relay: No such file", err)
  end)

  it("--check names files of another form", function()
    assert.same({ 0, "", "" }, { run("fmt --check " .. formed) })
    local status, out = run(("fmt --check %s %s"):format(formed, loose))
    assert.equal(1, status)
    assert.equal(loose .. "\n", out)
    assert.equal(LOOSE, command.read(loose))
    command.write(formed, FORMED .. "\n")
    assert.equal(0, (run("fmt --check " .. formed)))
  end)

  it("-i writes the form into the file", function()
    assert.same({ 0, "", "" }, { run(("fmt -i %s %s"):format(loose, formed)) })
    assert.equal(FORMED, command.read(loose))
    assert.equal(FORMED, command.read(formed))
  end)

  it("-i leaves a file alone that has its form, or is wrong", function()
    assert.equal(0, (os.execute("chmod a-w " .. formed) and run("fmt -i " .. formed)))
    assert.equal(1, (run("fmt -i " .. bad)))
    assert.equal(HEAD .. "def @main( { 1 }", command.read(bad))
  end)

  it("-i takes comments away only when told", function()
    local text = HEAD .. 'def @main(%x: int32, s="a /* \\" // b") {\n  %x // why\n}\n'
    local file = command.write(path "comment.relay", text)
    local status, _, err = run("fmt -i " .. file)
    assert.equal(1, status)
    assert.equal(("perilune: %s:3: this comment would be lost; --drop-comments agrees to that\n")
      :format(file), err)
    assert.equal(text, command.read(file))
    assert.equal(0, (run("fmt -i --drop-comments " .. file)))
    assert.equal(0, (run("fmt -i " .. file)))
    command.write(file, HEAD .. "/* outer /* inner */ */ def @main(%x: int32) { %x }\n")
    assert.equal(1, (run("fmt -i " .. file)))
    command.write(file, HEAD .. "def @main(%x: int32 /* ty=int32 /* nested */ */) { %x }\n")
    assert.equal(0, (run("fmt -i " .. file)))
  end)

  it("is used wrongly", function()
    assert.equal(2, (run "fmt -i -"))
    assert.equal(2, (run("fmt -i --check " .. loose)))
    assert.equal(2, (run("fmt --drop-comments " .. loose)))
    local model = path "model.onnx"
    assert.equal(0, (run(("opt -q %s -o %s"):format(loose, model))))
    local status, _, err = run("fmt -i " .. model)
    assert.equal(1, status)
    assert.matches("model.onnx: only Relay text is written in place", err)
  end)
end)
