--- pl.build: PrimFuncs and models as C, compiled and called.
--
--     local m = pl.build(mod, { target = "c" })
--     local results = m.matmul(a, b, c)       -- what each buffer is after the call
--     print(m:source())
--     m:save "matmul.so"
--
-- A module with a main function of Relay code is a model: its operators become loops (FuseOps,
-- LowerTE), unless they are, and m.main(inputs) gives the list of its outputs. The constants are
-- in NAME.bin beside NAME.c, NAME.so or NAME.o.
--
-- Some convolutions are transformed (topi/nn/winograd.lua) unless `winograd = false` is given.
-- `schedules`: a text of what is decided for kernels (topi/decision.lua), in place of what tuning
-- has left in the module.
--
-- `external`: the C of functions with the attribute Compiler, { [compiler] = { source = "mine.c",
-- symbol = "my_product" } }, or the builder that pl.tune.placement was given; it is compiled with
-- the rest. Those of the compiler "c" are generated C.
--
-- With `units = true` each function is compiled by itself, and its object kept in the cache: of two
-- programs the functions that both have are compiled once. The compiled whole is the same.
--
-- A call runs in a child process unless `run = "process"` is given: a crash or a hang of what was
-- compiled is an error that names the function, and this process goes on.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local c_compiler = require "perilune.codegen.c_compiler"
local ir = require "perilune.ir"
local model = require "perilune.codegen.model"

local option_names = { "target", "cc", "flags", "run", "threads", "asserts", "vector_bytes",
  "stack_bytes", "cache", "seconds", "compile_seconds", "compile_memory", "winograd",
  "schedules", "external", "units" }

-- Options of integers, with the least and the largest value of each.
local integers = { threads = { 1, 64 }, vector_bytes = { 16, 64 }, stack_bytes = { 0, 1 << 30 },
  compile_memory = { 1, 1 << 50 } }
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
  for name, range in pairs(integers) do
    local value = options[name]
    if value ~= nil and (math.type(value) ~= "integer" or value < range[1] or value > range[2]) then
      argument.fail(("build: %s: an integer from %d to %d expected"):format(name,
        table.unpack(range)))
    end
  end
  local bytes = options.vector_bytes
  if bytes and bytes & (bytes - 1) ~= 0 then
    argument.fail "build: vector_bytes: 16, 32 or 64 expected"
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
  for _, name in ipairs { "winograd", "units" } do
    if out[name] ~= nil and type(out[name]) ~= "boolean" then
      argument.fail(("build: %s: a boolean expected"):format(name))
    end
  end
  for _, name in ipairs { "cc", "cache", "schedules" } do
    if out[name] ~= nil then argument.string(out[name], "build", name) end
  end
  if out.external ~= nil then
    out.external = require "perilune.codegen.external".check(out.external, "build")
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

local function state_for(self, where)
  return state_of[self] or argument.fail(where .. ": a built module expected")
end

local function artifact(self, kind)
  if not self.artifacts[kind] then
    local compile = kind == "so" and self.units or core.c_compile
    self.artifacts[kind] = compile(self.code, kind, self.options)
  end
  return self.artifacts[kind]
end

local function call(self, index, args, options)
  if not self.library then self.library = core.c_library(self.code, artifact(self, "so")) end
  return core.c_call(self.library, self.code, index, args, {
    in_process = self.options.run == "process",
    seconds = options.seconds or self.options.seconds,
    least = options.least, evict = options.evict or 0,
  })
end

local function index_of(self, name)
  if self.model and name == "main" then return #self.functions end
  for i, fn in ipairs(self.functions) do
    if fn.name == name or fn.c_name == name then return i end
  end
  local names = {}
  for i, fn in ipairs(self.functions) do names[i] = fn.name end
  argument.fail(("there is no function '%s'%s"):format(tostring(name),
    core.suggest(tostring(name), names)))
end

-- What each buffer is after a call; of a model's main function the outputs.
local function call_named(self, name, args)
  local plan = name == "main" and self.model
  if not plan then return (call(self, index_of(self, name), args, {})) end
  return model.results(plan, (call(self, #self.functions, model.arguments(plan, args), {})))
end

--- Calls a function on tensors or nested tables for buffers and numbers for scalars. The result is
-- a list of tensors: what each buffer is after the call; arguments do not change. The main function
-- of a model takes its inputs and gives its outputs.
function Built:run(name, ...)
  return call_named(state_for(self, "run"), name, { ... })
end

--- Calls a function again and again for some seconds (0.1); the least time of a call in seconds,
-- and the results. options: least, seconds (the time limit), evict (bytes that are written before
-- each call, so that operands are not in the cache).
function Built:time(name, args, options)
  local state = state_for(self, "time")
  argument.table(args, "time", "args")
  options = argument.options(options, "time", { "least", "seconds", "evict" })
  for option, value in pairs(options) do
    if type(value) ~= "number" then
      argument.fail(("time: %s: a number expected"):format(option))
    end
  end
  local evict = options.evict or 0
  if math.type(evict) ~= "integer" or evict < 0 or evict > 1 << 30 then
    argument.fail "time: evict: an integer from 0 to 2^30 expected"
  end
  local plan = name == "main" and state.model
  local results, seconds = call(state, index_of(state, name),
    plan and model.arguments(plan, args) or args,
    { least = options.least or 0.1, seconds = options.seconds, evict = evict })
  return seconds, plan and model.results(plan, results) or results
end

--- The C source, and the header that declares its functions.
function Built:source() return core.c_source(state_for(self, "source").code) end

function Built:header() return core.c_header(state_for(self, "header").code) end

--- The functions: lists of { name =, c_name =, params = { { name =, dtype =, ... }, ... } }.
function Built:functions() return core.c_functions(state_for(self, "functions").code) end

--- The path of the compiled "so" or "o", the command that made it, the compiler's version, and
-- whether it was in the cache; with units, the seconds that were spent on objects that were not.
function Built:artifact(kind)
  local made = artifact(state_for(self, "artifact"), kind or "so")
  return { path = made.path, command = made.command, version = made.version,
    cached = made.cached, seconds = made.seconds }
end

local function read(path)
  local bytes, reason = require "perilune.read_file"(path)
  return bytes or core.raise(core.diag("io", reason))
end

local function write(path, bytes)
  local ok, reason = require "perilune.replace_file"(path, bytes)
  if not ok then core.raise(core.diag("io", reason)) end
end

-- The constants of a model, beside what is saved.
local function save_weights(state, path)
  if state.model and state.model.weight_bytes > 0 then
    write((path:gsub("%.%a+$", "") .. ".bin"), state.model.weights)
  end
end

--- Of a model: { inputs = types, outputs = types, weight_bytes =, arena_bytes =, calls = number };
-- nil of other modules.
function Built:model()
  local plan = state_for(self, "model").model
  if not plan then return nil end
  local inputs, outputs = {}, {}
  for i, input in ipairs(plan.inputs) do inputs[i] = input.type end
  for i, output in ipairs(plan.outputs) do outputs[i] = output.type end
  return { inputs = inputs, outputs = outputs, weight_bytes = plan.weight_bytes,
    arena_bytes = plan.arena_bytes, calls = #plan.calls }
end

--- Writes NAME.c, NAME.h, NAME.so or NAME.o, by the ending; with it the constants of a model.
function Built:save(path)
  local state = state_for(self, "save")
  argument.string(path, "save", "path")
  local kind = path:match "%.(%a+)$"
  if kind == "c" then
    write(path, self:source())
  elseif kind == "h" then
    write(path, self:header())
  elseif kind == "so" or kind == "o" then
    write(path, read(artifact(state, kind).path))
  else
    argument.fail(("save: '%s' ends in none of .c, .h, .so, .o"):format(path))
  end
  if kind ~= "h" then save_weights(state, path) end
  return path
end

local meta = { __name = "perilune.Built" }

function meta.__index(self, key)
  if Built[key] then return Built[key] end
  local state = state_of[self]
  index_of(state, key)
  return function(...) return call_named(state, key, { ... }) end
end

function meta.__tostring(self)
  local names = {}
  for i, fn in ipairs(state_of[self].functions) do names[i] = fn.name end
  return ("built module: %s"):format(table.concat(names, ", "))
end

local function plan_of(program, options)
  return ir.kind_of(program) == "Module" and model.is_model(program)
    and model.plan(program, options) or nil
end

-- Calls go by the names of functions: C has to have them.
local function check_names(names, functions)
  for i, fn in ipairs(functions) do
    if fn.c_name ~= names[i] then
      argument.fail(("build: function '%s' has a name that C does not have"):format(names[i]))
    end
  end
end

local function parts_of(program, plan)
  if plan then return plan.names, plan.functions end
  return functions_of(program)
end

-- The program as the config key tir.disable_assert has it.
local function with_config(program)
  if not core.current():get "tir.disable_assert" then return program end
  local skip = core.make "tir.SkipAssert"
  if ir.kind_of(program) == "Module" then return skip(program) end
  if ir.kind_of(program) ~= "Node" or program.kind ~= "PrimFunc" then return program end
  return skip(core.module { main = program }).functions.main
end

-- The functions with vectors across the sums of loops: C compilers keep the order of a sum of
-- floats, so that they find none along them. Those without such loops stay what they are.
local function with_vectors(names, list, options)
  if options.asserts or core.current():get "tir.disable_vectorize" then return list end
  local parts = {}
  for i, name in ipairs(names) do parts[name] = list[i] end
  local plain = core.module(parts)
  local mark = core.make("tir.VectorizeOuterLoop", { vector_bytes = options.vector_bytes })
  local marked, before = mark(plain).functions, plain.functions
  local changed, any = {}, false
  for _, name in ipairs(names) do
    if marked[name] ~= before[name] then changed[name], any = marked[name], true end
  end
  if not any then return list end
  local vectors = core.make "tir.Simplify" (core.make "tir.VectorizeLoop" (core.module(changed)))
  local result = {}
  for i, name in ipairs(names) do result[i] = vectors.functions[name] or list[i] end
  return result
end

--- Builds a PrimFunc, a module of PrimFuncs or a model. Compiling happens at the first call, or
-- when an object is saved; source() never needs a compiler. With tir.disable_assert in the current
-- context's config, assertions of the PrimFuncs are left out, and with tir.disable_vectorize no
-- loops become vectors (tir.VectorizeOuterLoop) but those that are vectors already.
return function(program, options)
  options = read_options(options)
  program = with_config(program)
  options.vector_bytes = options.vector_bytes or core.c_native_vector_bytes()
  local plan = plan_of(program, options)
  local names, list = parts_of(program, plan)
  list = with_vectors(names, list, options)
  options.text = plan and plan.text
  local code = core.c_write(names, list, options)
  local units = (options.units or c_compiler.is_decided(list))
    and require "perilune.codegen.units".of(names, list, options)
  local built = setmetatable({}, meta)
  local functions = core.c_functions(code)
  if plan then check_names(names, functions) end
  state_of[built] = { code = code, options = options, artifacts = {}, functions = functions,
    model = plan, units = units or nil }
  return built
end
