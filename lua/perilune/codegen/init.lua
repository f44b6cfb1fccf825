--- pl.build: PrimFuncs as C, compiled and called.
--
--     local m = pl.build(mod, { target = "c" })
--     local results = m.matmul(a, b, c)       -- what each buffer is after the call
--     print(m:source())
--     m:save "matmul.so"
--
-- A call runs in a child process unless `run = "process"` is given: a crash or a hang of what was
-- compiled is an error that names the function, and this process goes on.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local ir = require "perilune.ir"

local option_names = { "target", "cc", "flags", "run", "threads", "asserts", "vector_bytes",
  "stack_bytes", "cache", "seconds", "compile_seconds", "compile_memory" }

-- Options of numbers, with the least value of each.
local integers = { threads = 1, vector_bytes = 16, stack_bytes = 0, compile_memory = 1 }
local numbers = { seconds = 0, compile_seconds = 0 }

local function check_flags(flags)
  if type(flags) == "string" then
    local list = {}
    for word in flags:gmatch "%S+" do list[#list + 1] = word end
    return list
  end
  for _, flag in ipairs(argument.table(flags, "build", "flags")) do
    argument.string(flag, "build", "a flag")
  end
  return flags
end

local function check_numbers(options)
  for name, least in pairs(integers) do
    local value = options[name]
    if value ~= nil and (math.type(value) ~= "integer" or value < least or value > 2 ^ 40) then
      argument.fail(("build: %s: an integer of at least %d expected"):format(name, least))
    end
  end
  for name, least in pairs(numbers) do
    local value = options[name]
    if value ~= nil and not (type(value) == "number" and value > least) then
      argument.fail(("build: %s: a positive number expected"):format(name))
    end
  end
end

local function read_options(options)
  options = argument.options(options, "build", option_names)
  local out = {}
  for name, value in pairs(options) do out[name] = value end
  if (out.target or "c") ~= "c" then
    argument.fail(('build: target: "c" expected, got %s'):format(tostring(out.target)))
  end
  if out.run ~= nil and out.run ~= "child" and out.run ~= "process" then
    argument.fail 'build: run: "child" or "process" expected'
  end
  for _, name in ipairs { "cc", "cache" } do
    if out[name] ~= nil then argument.string(out[name], "build", name) end
  end
  if out.flags ~= nil then out.flags = check_flags(out.flags) end
  check_numbers(out)
  return out
end

-- Names and functions of a module, or of one PrimFunc, in the order of the names.
local function functions_of(program)
  if ir.kind_of(program) ~= "Module" then
    argument.node(program, "build", "program")
    if program.kind ~= "PrimFunc" then
      argument.fail(("build: a PrimFunc or a module expected, got a %s"):format(program.kind))
    end
    local attrs = program.attrs
    return { attrs and attrs.global_symbol or "main" }, { program }
  end
  local names, list = {}, {}
  for name, fn in pairs(program) do
    if fn.kind ~= "PrimFunc" then
      argument.fail(("build: '%s' is a %s; lower it to PrimFuncs with pl.lower first"):format(name,
        fn.kind))
    end
    names[#names + 1] = name
  end
  if #names == 0 then argument.fail "build: the module has no functions" end
  table.sort(names)
  for i, name in ipairs(names) do list[i] = program.functions[name] end
  return names, list
end

-- ------------------------------------------------------------------- modules

-- What a built module keeps, by the module: its fields are its functions.
local state_of = setmetatable({}, { __mode = "k" })

local Built = {}

local function artifact(self, kind)
  if not self.artifacts[kind] then
    self.artifacts[kind] = core.c_compile(self.code, kind, self.options)
  end
  return self.artifacts[kind]
end

local function call(self, index, args, options)
  if not self.library then self.library = core.c_library(self.code, artifact(self, "so")) end
  return core.c_call(self.library, self.code, index, args, {
    in_process = self.options.run == "process",
    seconds = options.seconds or self.options.seconds,
    least = options.least,
  })
end

local function index_of(self, name)
  for i, fn in ipairs(self.functions) do
    if fn.name == name or fn.c_name == name then return i end
  end
  local names = {}
  for i, fn in ipairs(self.functions) do names[i] = fn.name end
  argument.fail(("there is no function '%s'%s"):format(tostring(name),
    core.suggest(tostring(name), names)))
end

--- Calls a function on tensors or nested tables for buffers and numbers for scalars. The result is
-- a list of tensors: what each buffer is after the call; arguments do not change.
function Built:run(name, ...)
  local state = state_of[self]
  return (call(state, index_of(state, name), { ... }, {}))
end

--- Calls a function again and again for some seconds (0.1); the least time of a call in seconds,
-- and the results.
function Built:time(name, args, options)
  local state = state_of[self]
  argument.table(args, "time", "args")
  options = argument.options(options, "time", { "least", "seconds" })
  local results, seconds = call(state, index_of(state, name), args,
    { least = options.least or 0.1, seconds = options.seconds })
  return seconds, results
end

--- The C source, and the header that declares its functions.
function Built:source() return core.c_source(state_of[self].code) end

function Built:header() return core.c_header(state_of[self].code) end

--- The functions: lists of { name =, c_name =, params = { { name =, dtype =, ... }, ... } }.
function Built:functions() return core.c_functions(state_of[self].code) end

--- The path of the compiled "so" or "o", the command that made it, the compiler's version, and
-- whether it was in the cache.
function Built:artifact(kind)
  local made = artifact(state_of[self], kind or "so")
  return { path = made.path, command = made.command, version = made.version,
    cached = made.cached }
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read "a"
  file:close()
  return bytes
end

local function write(path, bytes)
  local beside = ("%s.perilune-tmp"):format(path)
  local file, reason = io.open(beside, "wb")
  if not file then error(reason, 0) end
  local ok, why = file:write(bytes)
  local closed, late = file:close()
  if ok and closed then ok, why = os.rename(beside, path) end
  if ok and closed then return end
  os.remove(beside)
  error(("%s: %s"):format(path, why or late), 0)
end

--- Writes NAME.c, NAME.h, NAME.so or NAME.o, by the ending.
function Built:save(path)
  argument.string(path, "save", "path")
  local kind = path:match "%.(%a+)$"
  if kind == "c" then
    write(path, self:source())
  elseif kind == "h" then
    write(path, self:header())
  elseif kind == "so" or kind == "o" then
    write(path, read(artifact(state_of[self], kind).path))
  else
    argument.fail(("save: '%s' ends in none of .c, .h, .so, .o"):format(path))
  end
  return path
end

local meta = { __name = "perilune.Built" }

function meta.__index(self, key)
  if Built[key] then return Built[key] end
  local state = state_of[self]
  local index = index_of(state, key)
  return function(...) return (call(state, index, { ... }, {})) end
end

function meta.__tostring(self)
  local names = {}
  for i, fn in ipairs(state_of[self].functions) do names[i] = fn.name end
  return ("built module: %s"):format(table.concat(names, ", "))
end

--- Builds a PrimFunc or a module of PrimFuncs. Compiling happens at the first call, or when an
-- object is saved; source() never needs a compiler.
return function(program, options)
  options = read_options(options)
  local names, list = functions_of(program)
  options.vector_bytes = options.vector_bytes or core.c_native_vector_bytes()
  local code = core.c_write(names, list, options)
  local built = setmetatable({}, meta)
  state_of[built] = { code = code, options = options, artifacts = {},
    functions = core.c_functions(code) }
  return built
end
