--- pl.predicate: a question that is asked of one module after another: is it well?
--
--     pl.predicate "verify"             -- is it well-formed?
--     pl.predicate "oracle"             -- does it compute what a reference computes?
--     pl.predicate(function(mod) return mod.functions.main, "no @main" end)
--     pl.predicate "mine.lua"           -- a file that returns such a function
--     pl.predicate { shell = "checker {}" }    -- {}: a file with the module
--
-- predicate:holds(mod) gives true, or false and a message. It raises when the
-- question cannot be answered: a function that fails, a command that cannot be
-- run, a module that the evaluator has no kernels for.

local core = require "perilune.core"
local argument = require "perilune.argument"
local failure = require "perilune.debug.failure"
local ir = require "perilune.ir"
local oracle = require "perilune.debug.oracle"
core.internal()

local class = { __name = "predicate" }
class.__index = class
class.__tostring = function(self) return self.name end

local predicate = {}

local function new(name, test)
  return setmetatable({ name = name, test = test }, class)
end

local function unanswered(name, code, reason)
  core.raise(core.diag(code, ("predicate '%s' failed: %s"):format(name, reason)))
end

--- True, or false and a message.
function class.holds(self, module)
  if ir.kind_of(module) ~= "Module" then
    argument.fail(("predicate:holds: a module expected, got %s"):format(ir.kind_of(module)))
  end
  local good, message = self.test(module, self.reference, self.name)
  if good then return true end
  return false, message or "it does not hold"
end

--- The same question for modules that were made of `reference`, which the oracle
-- compares them with.
function class.against(self, reference)
  local copy = new(self.name, self.test)
  copy.reference = reference
  return copy
end

-- ------------------------------------------------------------------ questions

local function is_well_formed(module)
  local ok, diag = core.well_formed_module(module)
  if ok then return true end
  return false, diag.message
end

local function computes_the_same(options)
  return function(module, reference, name)
    if not reference then unanswered(name, "argument", "there is no module to compare with") end
    local same, reason = oracle(reference, module, options)
    if same == nil then unanswered(name, "unsupported", reason) end
    return same, reason
  end
end

local function text_of(message)
  if message == nil or type(message) == "string" then return message end
  return type(message) ~= "number" and message.message or tostring(message)
end

local function answer_of(f)
  return function(module, _, name)
    local answer = table.pack(failure.catch(f, module))
    if not answer[1] then
      unanswered(name, "callback", text_of(answer[2]) or "it raised nil")
    end
    if answer.n == 1 then unanswered(name, "callback", "the function gave no value") end
    return answer[2], text_of(answer[3])
  end
end

local function function_in(path)
  local chunk, reason = loadfile(path)
  if not chunk then core.raise(core.diag("io", reason)) end
  local f = chunk()
  if type(f) ~= "function" then
    core.raise(core.diag("type", ("%s: the script of a predicate returns a function, this one "
      .. "returned a %s"):format(path, type(f))))
  end
  return f
end

-- --------------------------------------------------------------------- shell

-- A model that came as ONNX has an IR version.
local function suffix_of(module, format)
  return "." .. (format or module.attrs.ir_version and "onnx" or "relay")
end

-- A new name for a file of that kind, and what takes its files away again.
local function new_file(suffix)
  local base = os.tmpname()
  local path = base .. suffix
  return path, function()
    for _, name in ipairs { base, path, path .. ".data" } do os.remove(name) end
  end
end

local function quoted(path) return "'" .. path:gsub("'", "'\\''") .. "'" end

-- What a status says: true, or false and a message. Those of the shell itself and
-- 125, as `git bisect` has it, say nothing of the module.
local function check_result(name, how, code)
  if how == "exit" and code == 0 then return true end
  if how == "signal" and code == 2 or how == "exit" and code == 130 then
    core.raise(core.diag("interrupted", "interrupted"))
  end
  if how == "exit" and code >= 125 and code <= 127 then
    unanswered(name, "callback", code == 125 and "the command says so (status 125)"
      or ("the command cannot be run (status %d)"):format(code))
  end
  return false, ("the command ends with %s %d"):format(how == "exit" and "status" or "signal", code)
end

-- What it prints goes to standard error: standard output has the answer.
local function command_runs(options)
  return function(module, _, name)
    local path, remove = new_file(suffix_of(module, options.format))
    local saved, diag = require "perilune".save(module, path)
    if not saved then
      remove()
      unanswered(name, diag.code, diag.message)
    end
    local command = options.shell:gsub("{}", (quoted(path):gsub("%%", "%%%%")))
    local _, how, code = os.execute(("(%s) 1>&2"):format(command))
    remove()
    return check_result(name, how, code)
  end
end

local function of_shell(options)
  if type(options.shell) ~= "string" or not options.shell:find("{}", 1, true) then
    argument.fail("pl.predicate: the command must contain {} for the model's file")
  end
  local format = options.format
  if format ~= nil and format ~= "onnx" and format ~= "relay" then
    argument.fail("pl.predicate: format is 'onnx' or 'relay'")
  end
  return new("shell", command_runs(options))
end

-- -------------------------------------------------------------------- making

--- A predicate of "verify", "oracle", "FILE.lua", a function, { shell =, format = }
-- or a predicate. `options` of the oracle are those of pl.check, and `prepare`, a
-- function that both modules go through first.
function predicate.make(what, options)
  if getmetatable(what) == class then return what end
  if what == "verify" then return new("verify", is_well_formed) end
  if what == "oracle" then return new("oracle", computes_the_same(options or {})) end
  if type(what) == "function" then return new("function", answer_of(what)) end
  if type(what) == "string" and what:find "%.lua$" then
    return new(what, answer_of(function_in(what)))
  end
  if type(what) == "table" and what.shell then return of_shell(what) end
  local got = type(what) == "string" and "'" .. what .. "'" or ir.kind_of(what)
  argument.fail(("pl.predicate: 'verify', 'oracle', 'FILE.lua', a function or { shell = ... } "
    .. "expected, got %s"):format(got))
end

return predicate
