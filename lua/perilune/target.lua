--- pl.target: what a program is compiled for: a kind, its attributes, and a host.
--
--     local t = pl.target "llvm -mcpu=skylake-avx512 -num-cores=4"
--     t.kind, t.keys[1], t.attrs.mcpu, t.attrs["num-cores"]  --> "llvm", "cpu", "skylake-avx512", 4
--     tostring(t)                          --> "llvm -keys=cpu -mcpu=skylake-avx512 -num-cores=4"
--     pl.target { kind = "cuda", arch = "sm_50", host = "llvm" }
--     pl.target '{"kind": "cuda", "arch": "sm_50"}'
--     pl.context { target = t }            -- passes find it as pl.current().target
--
-- Semantics: TVM's Target: its text, its dictionaries and its order of keys.

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"
local json = require "perilune.json"

-- Keys of the kinds that TVM knows; of any other there are none.
local default_keys = {
  llvm = { "cpu" }, c = { "cpu" }, stackvm = { "cpu" }, cuda = { "cuda", "gpu" },
  nvptx = { "cuda", "gpu" }, rocm = { "rocm", "gpu" }, opencl = { "opencl", "gpu" },
  metal = { "metal", "gpu" }, vulkan = { "vulkan", "gpu" }, webgpu = { "webgpu", "gpu" },
  sdaccel = { "sdaccel", "hls" }, aocl = { "aocl", "hls" }, aocl_sw_emu = { "aocl", "hls" },
  hexagon = { "hexagon" }, hybrid = { "hybrid" }, ["ext_dev"] = { "ext_dev" },
  composite = {}, test = {}, ccompiler = {}, ["ethos-u"] = {}, ["cmsis-nn"] = {},
}

-- Attributes that are lists, also of one word.
local lists = { keys = true, mattr = true, libs = true, ["model-list"] = true }

local class = { __name = "perilune.Target" }
local contents = setmetatable({}, { __mode = "k" })

function class:__index(key) return contents[self][key] end

function class.__newindex(_, key)
  argument.fail(("a target is immutable; '%s' cannot be set"):format(tostring(key)))
end

local function is_target(value) return getmetatable(value) == class end

-- A word is what it looks like: a number, a list where commas are, else a string.
local function value_of(name, text)
  if name == "host" then return text end
  if lists[name] or text:find(",", 1, true) then
    local list = {}
    for word in text:gmatch "[^,]+" do list[#list + 1] = word end
    return list
  end
  if text == "true" or text == "True" then return true end
  if text == "false" or text == "False" then return false end
  return math.tointeger(tonumber(text)) or tonumber(text) or text
end

-- Words of a text; what stands in quotes is part of a word.
local function words_of(text)
  local words, at = {}, 1
  while true do
    at = text:match("^%s*()", at)
    if at > #text then return words end
    local word, stop = "", at
    while stop <= #text and not text:find("^%s", stop) do
      local quoted, after = text:match('^"([^"]*)"()', stop)
      if not quoted then quoted, after = text:match("^'([^']*)'()", stop) end
      if not quoted then quoted, after = text:match("^(.)()", stop) end
      word, stop = word .. quoted, after
    end
    words[#words + 1], at = word, stop
  end
end

-- A kind of one's own is a name that cannot be a slip of one that TVM knows.
local function check_kind(kind)
  argument.string(kind, "pl.target", "kind")
  if not kind:find "^[%a_][%w_%.%-]*$" then
    argument.fail(("pl.target: a kind is a name, got '%s'"):format(kind))
  end
  local near = default_keys[kind] and "" or argument.near(kind, default_keys)
  if near ~= "" then argument.fail(("pl.target: there is no kind '%s'%s"):format(kind, near)) end
end

-- '{"kind": "cuda", "arch": "sm_50"}'
local function decoded(text)
  local spec, why = json.decode(text)
  if type(spec) ~= "table" then
    argument.fail(("pl.target: '%s' is not the JSON text of an object (%s)"):format(text, why))
  end
  return spec
end

-- "cuda -arch=sm_50": { kind = "cuda", arch = "sm_50" }. "-name value" and "-flag" are allowed.
local function parsed(text)
  if text:find "^%s*{" then return decoded(text) end
  local words = words_of(text)
  local spec = { kind = words[1] }
  if not spec.kind or spec.kind:sub(1, 1) == "-" then
    argument.fail(("pl.target: no kind in '%s'"):format(text))
  end
  local i = 2
  while i <= #words do
    local name, value = words[i]:match "^%-%-?([%w_%.%-]+)(.*)$"
    if not name or not (value == "" or value:sub(1, 1) == "=") then
      argument.fail(("pl.target: '%s' is not of the form -name=value"):format(words[i]))
    end
    if spec[name] ~= nil then
      argument.fail(("pl.target: '%s' stands twice in '%s'"):format(name, text))
    end
    local following = words[i + 1]
    if value ~= "" then
      spec[name] = value_of(name, value:sub(2))
    elseif following and following:sub(1, 1) ~= "-" then
      spec[name], i = value_of(name, following), i + 1
    else
      spec[name] = true
    end
    i = i + 1
  end
  return spec
end

-- The device's name first, then the keys that are given, else those of the kind.
local function keys_of(spec)
  local keys, seen = {}, {}
  local function add(key)
    if not seen[key] then keys[#keys + 1], seen[key] = key, true end
  end
  local given = spec.keys
  if type(given) == "string" then given = { given } end
  for _, key in ipairs(given or {}) do add(argument.string(key, "pl.target", "a key")) end
  if spec.device then add(spec.device) end
  for _, key in ipairs(default_keys[spec.kind] or {}) do add(key) end
  return keys
end

local plain = { string = true, number = true, boolean = true }

local function check_attribute(name, value)
  local list = type(value) == "table" and not getmetatable(value)
  for key, item in pairs(list and value or {}) do
    list = list and math.type(key) == "integer" and plain[type(item)]
  end
  if type(name) ~= "string" or not (plain[type(value)] or list) then
    argument.fail(("pl.target: attribute '%s': a string, a number, a boolean or a list expected, "
      .. "got %s"):format(tostring(name), argument.kind_of(value)))
  end
end

local own = { kind = true, keys = true, tag = true, host = true }

--- A target from its text, a table or another target; `host` is the target of the code that
-- calls its kernels.
local function target(spec, host)
  if is_target(spec) and host == nil then return spec end
  if is_target(spec) then spec = spec:dict() end
  if type(spec) == "string" then spec = parsed(spec) end
  argument.table(spec, "pl.target", "options")
  check_kind(spec.kind)
  local attrs = {}
  for name, value in pairs(spec) do
    if not own[name] then
      check_attribute(name, value)
      attrs[name] = type(value) == "table" and table.move(value, 1, #value, 1, {}) or value
    end
  end
  local self = setmetatable({}, class)
  if host == nil then host = spec.host end
  contents[self] = { kind = spec.kind, keys = keys_of(spec), tag = spec.tag or "", attrs = attrs,
    host = host ~= nil and target(host) or nil, dict = class.dict,
    complete_text = class.complete_text }
  return self
end

--- The target as a table that pl.target takes: { kind =, keys =, tag =, host =, ... }.
function class:dict()
  local dict = { kind = self.kind, keys = table.move(self.keys, 1, #self.keys, 1, {}),
    tag = self.tag, host = self.host and self.host:dict() }
  for name, value in pairs(self.attrs) do dict[name] = value end
  return dict
end

local function text_of(value)
  if type(value) == "boolean" then return value and "1" or "0" end
  if type(value) == "table" then
    local parts = {}
    for i, item in ipairs(value) do parts[i] = text_of(item) end
    return table.concat(parts, ",")
  end
  local text = tostring(value)
  return text:find "[%s\"']" and '"' .. text:gsub('"', "'") .. '"' or text
end

--- TVM's text: the kind, the keys, and the attributes by name. The host is not part of it.
function class:__tostring()
  local parts, names = { self.kind }, {}
  if #self.keys > 0 then parts[2] = "-keys=" .. table.concat(self.keys, ",") end
  for name in pairs(self.attrs) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    parts[#parts + 1] = ("-%s=%s"):format(name, text_of(self.attrs[name]))
  end
  return table.concat(parts, " ")
end

--- Its text with the host's, which pl.target reads back.
function class:complete_text()
  local host = self.host and self.host:complete_text():gsub('"', "'")
  return host and ('%s -host="%s"'):format(self, host) or tostring(self)
end

local function same(a, b)
  if a == nil or b == nil then return a == b end
  return tostring(a) == tostring(b) and a.tag == b.tag and same(a.host, b.host)
end

class.__eq = same

core.target_reader(target)

return target
