--- The functions of a program as C sources of their own (pl.build { units = true }): an object for
-- each, in the compiler's cache by its text, and one library that they are linked to.
--
-- Candidates of tuning differ in a few functions; only these are compiled again. What is a pool of
-- threads, or the text of a user, belongs to one source: such a program has no units.

local c_compiler = require "perilune.codegen.c_compiler"
local core = require "perilune.core"
core.internal()

local units = {}

-- The most seconds of one compilation.
local MOST_SECONDS = 60
-- Compiling that is expected to take so many times what is left is not gone on with, after so many
-- seconds of it, and that share of all that there were.
local TOLERANCE, LEAST_SECONDS, LEAST_SHARE = 1.3, 1, 0.15

-- What check_time raised.
local raised = setmetatable({}, { __mode = "k" })

local function with(options, more)
  return setmetatable(more, { __index = options })
end

-- The sources in the order of the functions. The last function may call the others.
local function sources_of(names, list, options)
  local sources, n = {}, #names
  for i = 1, n - 1 do sources[i] = core.c_write({ names[i] }, { list[i] }, options) end
  sources[n] = core.c_write(names, list, with(options, { n_declared = n - 1 }))
  return sources
end

-- The options of a compilation: what is left of compile_seconds. `first`: what the same compiler
-- made before.
local function limited(options, deadline, first)
  local left = deadline and math.max(deadline - core.clock(), 0.001)
  return with(options, { compile_seconds = left and math.min(left, MOST_SECONDS),
    version = first and first.version })
end

-- Raises when the rest would take longer than what is left.
local function check_time(state, deadline)
  if not deadline or state.seconds < state.least then return end
  local expected = state.seconds / state.compiled * state.bytes
  local left = deadline - core.clock()
  if expected > TOLERANCE * left then
    local diag = core.diag("limit", ("compiling takes some %.0f s more, and %.0f s are left")
      :format(expected, math.max(left, 0)))
    raised[diag] = true
    core.raise(diag)
  end
end

-- Counts what was compiled: bytes and seconds. `state.bytes` are those that are left.
local function note(state, object, size, seconds)
  state.bytes = state.bytes - size
  if object.cached then return end
  state.compiled, state.seconds = state.compiled + size, state.seconds + seconds
end

-- The options of a function's compilation. firsts: what each compiler made first.
local function options_of(fn, options, deadline, firsts)
  local name, own = c_compiler.of(fn, options)
  return limited(own and with(options, own) or options, deadline, firsts[name]), name
end

local function compile(sources, list, options)
  local limit = options.compile_seconds
  local deadline = limit and core.clock() + limit
  local state, sizes = { bytes = 0, compiled = 0, seconds = 0,
    least = math.max(LEAST_SECONDS, LEAST_SHARE * (limit or 0)) }, {}
  for i, code in ipairs(sources) do
    sizes[i] = #core.c_source(code)
    state.bytes = state.bytes + sizes[i]
  end
  local firsts, paths = {}, {}
  for i, code in ipairs(sources) do
    local begun = core.clock()
    local own, name = options_of(list[i], options, deadline, firsts)
    local object = core.c_compile(code, "o", own)
    firsts[name], paths[i] = firsts[name] or object, object.path
    note(state, object, sizes[i], core.clock() - begun)
    check_time(state, deadline)
  end
  local linked = core.c_link(paths, limited(options, deadline, firsts.default))
  linked.seconds = state.seconds
  return linked
end

--- Whether an error says that compiling was given up, since it takes longer than compile_seconds.
function units.is_too_long(err) return raised[err] == true end

--- The function that compiles a program of these functions, in place of core.c_compile; nil where
-- they are one source.
function units.of(names, list, options)
  if options.text or (options.threads or 1) > 1 then return nil end
  return function() return compile(sources_of(names, list, options), list, options) end
end

return units
