-- Reads all TVMScript texts of the archive of TVM's TIR transforms, when it is there; prints them,
-- reads that again, and compares.

local pl = require "perilune"

local shared = os.getenv "PERILUNE_SHARED"
local archive = shared and shared .. "/conformance/tir-oracle.tar.xz"

-- Why a text is not read, by what the message says.
local reasons = {
  ["no variable or function is called"] = "a variable is used before its declaration",
  ["a thread is expected"] = "the text does not give the tag of the thread",
  ["is bound more than once"] = "one variable is bound twice, which no sealed graph has",
  ["'int1'"] = "the dtype int1",
  ["an expression is expected"] = "an attribute of a Target",
}

local function reason_of(diag)
  local text = tostring(diag)
  for pattern, reason in pairs(reasons) do
    if text:find(pattern, 1, true) then return reason end
  end
  return nil
end

local function is_there(path)
  local file = path and io.open(path)
  if file then file:close() end
  return file ~= nil
end

-- The paths of the archive's texts, and a function that removes them.
local function texts()
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute(("mkdir %s && tar xf %s -C %s"):format(folder, archive, folder)))
  local find = ("find %s -path '*/transform/*' -name '*.tvmscript'"):format(folder)
  local list = assert(io.popen(find))
  local paths = {}
  for path in list:lines() do paths[#paths + 1] = path end
  list:close()
  return paths, function() os.execute("rm -r " .. folder) end
end

local function replay(path, counts)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  local module, diag = pl.tir.parse(text, path)
  counts.texts = counts.texts + 1
  if not module then
    local reason = assert(reason_of(diag), tostring(diag))
    counts.exceptions[reason] = (counts.exceptions[reason] or 0) + 1
    return
  end
  counts.read = counts.read + 1
  local printed = module:text()
  if printed == text then counts.same = counts.same + 1 end
  local second = pl.tir.parse(printed, "printed")
  if second and pl.equal(module, second, { map_free_vars = true }) then
    counts.equal = counts.equal + 1
  end
end

describe("the texts of TVM's TIR transforms", function()
  it("are read, printed and read again", function()
    if not is_there(archive) then return pending "the archive is not there" end
    local counts = { texts = 0, read = 0, same = 0, equal = 0, exceptions = {} }
    local paths, clean = texts()
    for _, path in ipairs(paths) do replay(path, counts) end
    clean()
    io.write(("\n%d texts, %d read, %d printed as they were, %d equal when read again\n"):format(
      counts.texts, counts.read, counts.same, counts.equal))
    local known = 0
    for reason, n in pairs(counts.exceptions) do
      io.write(("%5d %s\n"):format(n, reason))
      known = known + n
    end
    assert.are.equal(8724, counts.texts)
    assert.are.equal(counts.texts, counts.read + known)
    assert.is_true(counts.read >= 8614)
    assert.is_true(counts.same >= 8412)
    assert.is_true(counts.equal >= counts.read - 1)
  end)
end)
