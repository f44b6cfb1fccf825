--- pl.tune.builder: makes of a module what a runner can run.
--
--     pl.tune.builder "evaluator"            -- the evaluator, or the interpreter of loops
--     pl.tune.builder { kind = "c", cc = "clang" }
--     pl.tune.builder { kind = "command", command = "my_runtime {}", timing = "output" }
--     pl.tune.builder { kind = "function", source = "mine.c", symbol = "my_product" }
--
-- "c" compiles PrimFuncs or a whole model (pl.build). A command gets the model in a file
-- whose path stands for {}; what counts is the wall time of the command, or with timing =
-- "output" the seconds of one run that the last line of its output has. A text goes through
-- the shell; a list of words does not. A function is one of C that computes all of the module
-- (c_function.lua has its signature); its results are compared with the evaluator's first.

local argument = require "perilune.argument"
local core = require "perilune.core"
local failure = require "perilune.tune.run.failure"
local inputs = require "perilune.tune.run.inputs"
local lowered = require "perilune.tune.lowered"
local time_limit = require "perilune.tune.run.time_limit"
local units = require "perilune.codegen.units"
core.internal()

local builder = {}

local methods = {}
local class = { __name = "builder", __index = methods }

-- Repeats `once` until the seconds passed on the clock; the seconds of one run.
local function mean_of_block(once, clock, least)
  local begun, n = clock(), 0
  local now
  repeat
    once()
    n = n + 1
    now = clock()
  until now - begun >= least
  return (now - begun) / n
end

-- The time of this process counts where one thread works: others that run on the same
-- processor do not disturb it then.
local function clock_of(threads) return threads == 1 and os.clock or core.clock end

-- ------------------------------------------------------------------- evaluator

-- Programs that alternate in one process get the same tensors: where those lie in memory
-- makes no difference between them then.
local function evaluator_once(mod, seed, shared)
  local fn = inputs.entry(mod, "pl.tune.builder")
  local args = inputs.shared(fn, seed, shared)
  if fn.kind == "PrimFunc" then
    local run = require "perilune.tir.run".run
    return function() run(fn, args) end
  end
  return function() core.eval_in(mod, fn, table.unpack(args, 1, args.n)) end
end

local function build_evaluator(self, mod)
  local threads = self.threads
  return { where = "process", mod = mod, open = function(shared)
    core.context { config = { threads = threads } }:enter()
    local once, clock = evaluator_once(mod, self.seed, shared or {}), clock_of(threads)
    return function(least) return mean_of_block(once, clock, least) end
  end }
end

-- --------------------------------------------------------------------------- C

-- The time limit of the compiler; nil: its own.
local function compile_seconds(self)
  if self.deadline == math.huge then return self.compile_seconds end
  return math.min(self.compile_seconds or math.huge, math.max(self.deadline - core.clock(), 0.001))
end

-- Compiled here; opened and called in the child.
local function build_c(self, mod)
  local fn, name = inputs.entry(mod, "pl.tune.builder")
  local built = require "perilune.codegen"(lowered(mod), { run = "process", cc = self.cc,
    flags = self.flags, external = self.external, units = true,
    threads = self.threads > 1 and self.threads or nil,
    compile_seconds = compile_seconds(self) })
  local compile_time = built:artifact "so".seconds
  local args = inputs.make(fn, self.seed)
  return { where = "process", mod = mod, built = built, name = name,
    compile_time = compile_time, open = function()
    return function(least)
      return (built:time(name, args, { least = least, evict = self.evict }))
    end
  end }
end

-- --------------------------------------------------------------------- command

local function quoted(path) return "'" .. path:gsub("'", "'\\''") .. "'" end

local function words_of(command, path)
  if type(command) == "string" then
    return { "/bin/sh", "-c", (command:gsub("{}", function() return quoted(path) end)) }
  end
  local words = {}
  for i, word in ipairs(command) do words[i] = word:gsub("{}", function() return path end) end
  return words
end

-- The last line that is not empty, as a number of seconds.
local function seconds_in(output)
  local last = output:match "([^\n]*)%s*$"
  local x = tonumber(last)
  if x and x > 0 and x < math.huge then return x end
  return nil, failure.new("output", "its last line is no number of seconds: %s",
    last == "" and "there is none" or ("%q"):format(last:sub(1, 80)))
end

local function temporary_path(suffix)
  local path = os.tmpname()
  os.remove(path)
  return path .. suffix
end

-- Closing it removes the file.
local opened = { __close = function(self) os.remove(self.path) end,
  __gc = function(self) os.remove(self.path) end }

local function build_command(self, mod)
  local pl = require "perilune"
  local path = temporary_path(self.suffix)
  local ok, diag = pl.save(mod, path)
  if not ok then
    os.remove(path)
    return nil, failure.new("build", "the model cannot be written: %s", diag.message)
  end
  return setmetatable({ where = "command", mod = mod, path = path,
    words = words_of(self.command, path),
    seconds_of = function(result)
      if self.timing == "wall" then return result.seconds end
      return seconds_in(result.output)
    end }, opened)
end

-- ---------------------------------------------------------------- constructor

local function build_function(self, mod)
  local limited = setmetatable({ compile_seconds = compile_seconds(self) }, { __index = self })
  return require "perilune.tune.run.c_function".build(limited, mod, seconds_in)
end

local build = { evaluator = build_evaluator, c = build_c, command = build_command,
  ["function"] = build_function }

--- A runnable of the module; nil and a failure. The work is done under the limits of the
-- current context.
function methods.build(self, mod)
  if argument.kind_of(mod) ~= "Module" then
    argument.fail("builder:build: a module expected, got " .. argument.kind_of(mod))
  end
  local ok, runnable, why = time_limit(self.deadline, build[self.kind], self, mod)
  if ok then return runnable, why end
  if failure.is_interrupt(runnable) then error(runnable, 0) end
  if units.is_too_long(runnable) then
    return nil, failure.new("deadline", "%s", runnable.message)
  end
  return nil, failure.new("build", "%s", tostring(runnable))
end

--- A builder with other options.
function methods.with(self, options)
  local all = {}
  for name, value in pairs(self) do all[name] = value end
  for name, value in pairs(options) do all[name] = value end
  all.deadline = nil
  local other = builder.new(all)
  other.deadline = self.deadline
  return other
end

--- The same builder, whose passes and compiler end at that time of the clock.
function methods.before(self, deadline)
  local other = self:with {}
  other.deadline = deadline
  return other
end

--- A text of all that its measurements depend on, besides the machine.
function methods.target(self)
  local parts = { self.kind }
  local command = self.command
  if type(command) == "table" then command = table.concat(command, " ") end
  for _, part in ipairs { command or false, command and self.timing or false, self.cc or false,
    self.flags or false, self.source or false, self.symbol or false } do
    if part then parts[#parts + 1] = part end
  end
  if self.evict > 0 then parts[#parts + 1] = ("evict %d"):format(self.evict) end
  if self.threads > 1 then parts[#parts + 1] = ("%d threads"):format(self.threads) end
  return table.concat(parts, " ")
end

local names = { "kind", "threads", "seed", "cc", "flags", "compile_seconds", "command", "timing",
  "suffix", "evict", "source", "symbol", "external" }

local where = "pl.tune.builder"

local function check_choice(options, name, choices)
  local x = options[name]
  for _, known in ipairs(choices) do if x == known then return end end
  argument.fail(("%s: %s: one of %s expected, got %s"):format(where, name,
    table.concat(choices, ", "), tostring(x)))
end

local function check_integer(options, name, least, most)
  local x = options[name]
  if math.type(x) ~= "integer" or x < least or x > most then
    argument.fail(("%s: %s: an integer from %d to %d expected"):format(where, name, least, most))
  end
end

local function check_command(command)
  if type(command) ~= "table" then return argument.string(command, where, "command") end
  if #command == 0 then argument.fail(where .. ": command: it has no words") end
  for _, word in ipairs(command) do argument.string(word, where, "a word of command") end
end

local function check_function(self)
  argument.string(self.source, where, "source")
  if not argument.string(self.symbol, where, "symbol"):find "^[%a_][%w_]*$" then
    argument.fail(where .. ": symbol: the name of a C function expected")
  end
end

local function check(self)
  check_choice(self, "kind", { "evaluator", "c", "command", "function" })
  check_integer(self, "threads", 1, 64)
  check_integer(self, "seed", math.mininteger, math.maxinteger)
  check_integer(self, "evict", 0, 1 << 30)
  check_choice(self, "timing", { "wall", "output" })
  argument.string(self.suffix, where, "suffix")
  for _, name in ipairs { "cc", "flags" } do
    if self[name] ~= nil then argument.string(self[name], where, name) end
  end
  if self.kind == "command" then check_command(self.command) end
  if self.kind == "function" then check_function(self) end
  if self.external ~= nil then argument.table(self.external, where, "external") end
  if self.compile_seconds ~= nil and type(self.compile_seconds) ~= "number" then
    argument.fail(where .. ": compile_seconds: a number expected")
  end
end

--- A builder of that kind: { kind =, threads = 1, seed = 1, cc =, flags =, compile_seconds =,
-- command =, timing = "wall", suffix = ".onnx", evict = 0, source = (a file of C), symbol =,
-- external = (of pl.build) }, or the kind alone. evict: bytes that
-- are written before each call of C, so that its operands come from memory.
function builder.new(options)
  if type(options) == "string" then options = { kind = options } end
  local self = { kind = "evaluator", threads = 1, seed = 1, timing = "wall", suffix = ".onnx",
    evict = 0 }
  for name, value in pairs(argument.options(options, where, names)) do self[name] = value end
  check(self)
  self.deadline = math.huge
  return setmetatable(self, class)
end

--- Whether a value is a builder.
function builder.is(x) return getmetatable(x) == class end

return builder
