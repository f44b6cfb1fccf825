-- engine/README.md names functions as `file:function`; each is there.

local function text_of(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

describe("engine/README.md", function()
  local readme = text_of "engine/README.md"

  it("names functions that are defined in the files that it names", function()
    local count, missing = 0, {}
    for path, name in readme:gmatch "`([%w_/]+%.c):([%w_]+)`" do
      count = count + 1
      local text = text_of("engine/" .. path)
      if not text or not text:find("\n[%w_ *]-%f[%w_]" .. name .. "%([^;{]*{") then
        missing[#missing + 1] = path .. ":" .. name
      end
    end
    assert.same({}, missing)
    assert.is_true(count > 30)
  end)

  it("names files that are there", function()
    for path in readme:gmatch "%f[%w_/]([%w_]+/[%w_/]+%.%a+)" do
      if not path:find "^build" then
        assert(text_of(path) or text_of("engine/" .. path), path)
      end
    end
  end)
end)

-- The arrows of engine/README.md: the folders that a file of a folder may include from,
-- besides its own and the public header. engine.c puts the parts together.
local allowed = {
  base = {},
  ir = { "base" },
  arith = { "base", "ir" },
  op = { "base", "ir", "arith" },
  eval = { "base", "ir", "arith", "op" },
  rule = { "base", "ir", "arith", "op", "eval" },
  pass = { "base", "ir", "arith", "op", "eval", "rule" },
  transform = { "base", "ir", "arith", "op", "eval", "rule", "pass" },
  lower = { "base", "ir", "arith", "pass" },
  te = { "base", "ir", "arith", "pass" },
  codegen = { "base", "ir" },
  tune = { "base" },
  onnx = { "base", "ir", "op" },
  lua = { "base", "ir", "arith", "op", "eval", "rule", "pass", "transform", "lower", "te",
    "codegen", "tune", "onnx" },
  cli = {
    "base", "ir", "arith", "op", "eval", "rule", "pass", "transform", "lower", "te", "codegen",
    "tune", "onnx",
    "lua",
  },
}

local function set_of(list)
  local set = {}
  for _, name in ipairs(list) do set[name] = true end
  return set
end

-- Calls visit(file, included) for each `#include "folder/file"` below engine/.
local function each_include(visit)
  local pipe = assert(io.popen "find engine -name '*.[ch]' -o -name '*.def'")
  for path in pipe:lines() do
    local file = path:match "^engine/(.*)"
    for included in text_of(path):gmatch '#include "([%w_/]+/[%w_]+%.%a+)"' do
      if file:find "/" and not included:find "^perilune/" then visit(file, included) end
    end
  end
  pipe:close()
end

-- "ir/graph" of "ir/graph/graph.h", "ir" of "ir/op_info.h".
local function folder_of_ir(path)
  return path:match "^(ir/[%w_]+)/" or path:match "^(ir)/"
end

-- A circle of folders as text, or nil. `arrows` maps a folder to a set of others.
local function find_circle(arrows)
  local state, path = {}, {}
  local function visit(folder)
    if state[folder] == "done" then return nil end
    path[#path + 1] = folder
    if state[folder] == "open" then return table.concat(path, " -> ") end
    state[folder] = "open"
    for other in pairs(arrows[folder] or {}) do
      local circle = visit(other)
      if circle then return circle end
    end
    state[folder] = "done"
    path[#path] = nil
  end
  for folder in pairs(arrows) do
    local circle = visit(folder)
    if circle then return circle end
  end
end

describe("the folders of engine/", function()
  it("include only from folders to their left", function()
    local count, wrong = 0, {}
    for folder, list in pairs(allowed) do allowed[folder] = set_of(list) end
    each_include(function(file, included)
      local from, to = file:match "^[%w_]+", included:match "^[%w_]+"
      count = count + 1
      if from ~= to and not allowed[from][to] then
        wrong[#wrong + 1] = file .. " includes " .. included
      end
    end)
    assert.same({}, wrong)
    assert.is_true(count > 1000, count)
  end)

  it("have no circle inside of ir/", function()
    local arrows, count = {}, 0
    each_include(function(file, included)
      local from, to = folder_of_ir(file), folder_of_ir(included)
      if from and to and from ~= to then
        arrows[from] = arrows[from] or {}
        arrows[from][to] = true
        count = count + 1
      end
    end)
    assert.is_nil(find_circle(arrows))
    assert.is_true(count > 100, count)
  end)

  it("would be found in a circle", function()
    assert.truthy(find_circle { a = { b = true }, b = { c = true }, c = { a = true } })
    assert.is_nil(find_circle { a = { b = true, c = true }, b = { c = true } })
  end)
end)
