--- What a function is made of, as a text: its code, that of the functions it
-- holds, the values of its upvalues, and the text of its file. Two functions of
-- the same text do the same, as far as they keep to what they hold; what they
-- reach through globals is told by the file only.

local core = require "perilune.core"
local read_file = require "perilune.read_file"
core.internal()

local MOST = 10000 -- values; what holds more has no text

local standard = { _G = true, coroutine = true, debug = true, io = true, math = true, os = true,
  package = true, string = true, table = true, utf8 = true }

local function is_known(name)
  return standard[name] or name == "perilune" or name:find "^perilune%." ~= nil
end

-- Names of what the libraries hold.
local function library_names()
  local names = {}
  for name, value in pairs(package.loaded) do
    if type(name) == "string" and is_known(name) then
      names[value] = name
      if type(value) == "table" then
        for key, field in next, value do
          local kind = type(field)
          if kind == "function" or kind == "table" then
            names[field] = names[field] or name .. "." .. tostring(key)
          end
        end
      end
    end
  end
  names[_G] = "_G"
  return names
end

local plain = { ["nil"] = true, boolean = true, number = true, string = true }
local told = { ["perilune.Op"] = true, ["perilune.Type"] = true }

-- The text of a value inside of another: itself, a name, a number of the list;
-- nil when there is none.
local function reference(list, value)
  local kind = type(value)
  if plain[kind] then return ("%q"):format(value) end
  if list.names[value] then return list.names[value] end
  if kind == "userdata" and told[getmetatable(value)] then return tostring(value) end
  if kind ~= "function" and kind ~= "table" then return nil end
  if not list.number[value] then
    list[#list + 1] = value
    list.number[value] = "#" .. #list
  end
  return list.number[value]
end

-- Modules that a file names; what is loaded counts, not what lies on the disk.
-- nil when it requires something that no constant names.
local function required(list, text)
  local parts, calls = {}, 0
  for name in text:gmatch "%f[%w_]require%s*%(?%s*[\"']([^\"']+)[\"']" do
    calls = calls + 1
    if not is_known(name) then
      local loaded = package.loaded[name]
      if loaded == nil then return nil end
      parts[#parts + 1] = reference(list, loaded)
      if not parts[#parts] then return nil end
    end
  end
  local _, all = text:gsub("%f[%w_]require%f[^%w_]", "")
  return all == calls and table.concat(parts, " ") or nil
end

-- The text of a file and what that requires; of a file of the library that lies
-- in the command, the version. nil when it has none.
local function read_source(list, source)
  local path = source:match "^@(.*)"
  if not path then return "no file" end
  local text = read_file(path)
  if not text then return path:find "perilune/[%w_/]+%.lua$" and core._VERSION or nil end
  local modules = required(list, text)
  return modules and ("%q %s"):format(text, modules)
end

-- A name of the file, which is read once.
local function file_name(list, source)
  if not list.files[source] then
    local text = read_source(list, source)
    if not text then return nil end
    list.texts[#list.texts + 1] = text
    list.files[source] = "file " .. #list.texts
  end
  return list.files[source]
end

local function function_text(list, f)
  local info = debug.getinfo(f, "Su")
  if info.what == "C" then return nil end
  local file = file_name(list, info.source)
  if not file then return nil end
  local parts = { file, ("%q"):format(string.dump(f, true)) }
  for i = 1, info.nups do
    local _, value = debug.getupvalue(f, i)
    parts[#parts + 1] = reference(list, value)
    if #parts < i + 2 then return nil end
  end
  return table.concat(parts, " ")
end

-- Keys in order; nil when one is no plain value.
local function sorted_keys(list, value)
  local keys = {}
  for key in next, value do
    if not plain[type(key)] or #keys >= MOST then return nil end
    keys[#keys + 1] = { reference(list, key), key }
  end
  table.sort(keys, function(a, b) return a[1] < b[1] end)
  return keys
end

local function table_text(list, value)
  local parts, keys = {}, sorted_keys(list, value)
  for i, key in ipairs(keys or {}) do
    local field = reference(list, rawget(value, key[2]))
    if not field then return nil end
    parts[i] = key[1] .. "=" .. field
  end
  local class = reference(list, debug.getmetatable(value))
  return keys and class and table.concat(parts, " ") .. " class " .. class
end

--- The text of a function or a callable table, or nil when it holds something
-- that has none: a file, a node, a coroutine, a function of another library.
return function(value)
  local list = { names = library_names(), number = {}, files = {}, texts = {} }
  local parts = { reference(list, value) }
  local i = 1
  while list[i] do
    if i > MOST then return nil end
    local text
    if type(list[i]) == "function" then
      text = function_text(list, list[i])
    else
      text = table_text(list, list[i])
    end
    if not text then return nil end
    parts[#parts + 1] = text
    i = i + 1
  end
  table.move(list.texts, 1, #list.texts, #parts + 1, parts)
  return table.concat(parts, "\n")
end
