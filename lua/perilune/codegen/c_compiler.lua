--- How a function of generated C is compiled where it is decided for that one alone: at another
-- level than the default, or by clang. What is faster depends on the loops and on the processor:
-- compilers unroll and schedule in other ways.
--
-- LowerTE asks for the decision "compiler" (perilune.topi.decision) and leaves it as the attribute
-- c_compiler of the PrimFunc; codegen.units compiles by it. The choices are the names below and
-- never a command of a model's: a file does not say what runs here. One that this machine does not
-- have is the default, and what the user asks for (cc, flags) comes before all.

local core = require "perilune.core"
core.internal()

local find_program = require "perilune.find_program"

local c_compiler = {}

--- The name of the decision.
c_compiler.DECISION = "compiler"

-- Options of core.c_compile by the choice.
local choices = {
  default = {},
  O2 = { level = "-O2" },
  clang = { cc = "clang" },
}

local candidates

--- The choices that this machine has, the default first.
function c_compiler.candidates()
  if not candidates then
    candidates = { "default", "O2" }
    if find_program(choices.clang.cc) then candidates[3] = "clang" end
  end
  return candidates
end

-- The default flags with another level of optimisation.
local function flags_of(level)
  local flags = core.c_default_flags()
  for i, flag in ipairs(flags) do
    if flag:find "^%-O" then flags[i] = level end
  end
  return flags
end

-- What a function has; "default" where it has none.
local function choice_of(fn)
  local attrs = fn.attrs
  return attrs and attrs.c_compiler or "default"
end

--- Whether it is decided for one of the functions.
function c_compiler.is_decided(functions)
  for _, fn in ipairs(functions) do
    if choice_of(fn) ~= "default" then return true end
  end
  return false
end

--- The name of the choice for a function, and cc and flags in place of those of the options; nil:
-- these.
function c_compiler.of(fn, options)
  local name = choice_of(fn)
  if options.cc or options.flags then return "default" end
  for _, known in ipairs(c_compiler.candidates()) do
    if known == name and name ~= "default" then
      local choice = choices[name]
      return name, { cc = choice.cc, flags = choice.level and flags_of(choice.level) or nil }
    end
  end
  return "default"
end

return c_compiler
