--- perilune build: programs of TIR and models as C, or compiled.

local core = require "perilune.core"
local stop = require "perilune.cli.stop"
core.internal() -- diagnostics point at the scripts of others

local build = {
  description = "Writes the PrimFuncs of a program as C (OUT.c, OUT.h) or compiles them (OUT.so, "
    .. "OUT.o). FILE is TVMScript (NAME.tir, NAME.tvmscript, NAME.py), a Lua script that "
    .. "returns a module or PrimFunc, or a model (NAME.onnx, NAME.relay), which is optimised, "
    .. "fused and lowered first; its constants are written to OUT.bin. Dims of a model that are "
    .. "no numbers stay open, unless --dim or --shape says their sizes: the function then reads "
    .. "them from the shapes of its inputs.",
}

function build.arguments(parser)
  parser:argument("file", "The program to build."):argname "FILE"
  parser:option("-o --output", "What to write, by its ending: .c, .h, .so or .o; may be repeated. "
    .. "Without it the C source is printed."):argname "OUT":count "*"
  parser:option("--backend", "A script that returns a backend of 'perilune tune --placement': its "
    .. "C computes the functions of the model with the attribute Compiler that it names; may be "
    .. "repeated."):argname "FILE.lua":count "*"
  require "perilune.cli.shapes".options(parser)
  parser:flag("--no-optimise", "Takes a model as it is: the default pipeline is not run.")
  parser:option("--cc", "The C compiler; otherwise $CC, else cc."):argname "CC"
  parser:option("--flags", "Its flags, in one word; otherwise -O3, -march=native and others.")
    :argname "FLAGS"
  parser:option("--threads", "Threads that parallel loops may use; otherwise they are serial.")
    :argname "N":convert(tonumber)
  parser:option("--vector-bytes", "Bytes of a vector: 16, 32 or 64; otherwise those of this "
    .. "machine for .so and .o, and 32 for source."):argname "N":convert(tonumber)
  parser:option("--compile-seconds", "A time limit of the compiler; otherwise 60 of a processor "
    .. "and 600 of wall time."):argname "N":convert(tonumber)
  parser:flag("--no-winograd", "Computes convolutions of models by their definition: sums are "
    .. "rounded otherwise where they are transformed.")
  parser:flag("--asserts", "Checks the assertions of the program, and divisors.")
  parser:option("--cache", "The folder of compiled objects; '' keeps none."):argname "DIR"
  parser:flag("-v --verbose", "Shows the compiler's command.")
end

-- The option external of pl.build.
local function external_of(paths)
  local external = {}
  for _, path in ipairs(paths) do
    local backend = require "perilune.cli.tune.backend" (path, "--backend")
    if not backend.compiler or not backend.builder or not backend.builder.source then
      stop.failure("--backend %s: it has no compiler, or no builder of a C function", path)
    end
    external[backend.compiler] = backend.builder
  end
  return next(external) and external or nil
end

--- `--flags '-O2 -g'` as `--flags='-O2 -g'`: the parser takes a value with a hyphen for an option.
function build.rewrite(arguments)
  local out, at = {}, 1
  while at <= #arguments do
    if arguments[at] == "--flags" and arguments[at + 1] then
      out[#out + 1] = "--flags=" .. arguments[at + 1]
      at = at + 2
    else
      out[#out + 1] = arguments[at]
      at = at + 1
    end
  end
  return out
end

local function from_script(path)
  local chunk, reason = loadfile(path)
  if not chunk then stop.failure("%s", reason) end
  local program = chunk(path)
  if program == nil then stop.failure("%s: it returns no module or PrimFunc", path) end
  return program
end

-- Sizes may be symbols, ranks not.
local function check_ranks(model, path)
  for _, param in ipairs(model.main.params) do
    local type = param.type
    if type and type.kind == "tensor" and not type.rank then
      stop.failure("%s: the shape of the input '%s' is %s; a model is built for inputs of a known "
        .. "rank: give --shape %s=SIZES", path, param.name, tostring(type), param.name)
    end
  end
end

-- A model with the sizes that are given, optimised.
local function from_model(options)
  local shapes = require "perilune.cli.shapes"
  local fixed = shapes.parse(options)
  local model, diag = require "perilune.cli.load".model(options.file)
  if not model then error(diag, 0) end
  model = require "perilune.codegen.model".with_named_dims(shapes.fix(model, fixed))
  check_ranks(model, options.file)
  if options.no_optimise then return model end
  return require "perilune".pipelines.default(model)
end

local function load(options)
  local path = options.file
  if path:find "%.onnx$" or path:find "%.relay$" then return from_model(options) end
  if path:find "%.lua$" then return from_script(path) end
  local text, reason = require "perilune.read_file"(path)
  if not text then stop.failure("%s", reason) end
  local program, diag = require "perilune".tir.parse(text, path)
  if not program then error(diag, 0) end
  return program
end

local function needs_compiler(outputs)
  for _, path in ipairs(outputs) do
    if path:find "%.s?o$" then return true end
  end
  return false
end

local function check_outputs(outputs)
  for _, path in ipairs(outputs) do
    if not path:find "%.[cho]$" and not path:find "%.so$" then
      stop.usage("-o %s: the name ends in none of .c, .h, .so, .o", path)
    end
  end
end

local function check_numbers(options)
  local threads, bytes = options.threads, options.vector_bytes
  if threads and not (math.type(threads) == "integer" and threads >= 1 and threads <= 64) then
    stop.usage("--threads %s: an integer from 1 to 64 expected", tostring(threads))
  end
  if bytes and bytes ~= 16 and bytes ~= 32 and bytes ~= 64 then
    stop.usage("--vector-bytes %s: 16, 32 or 64 expected", tostring(bytes))
  end
  if options.compile_seconds and options.compile_seconds <= 0 then
    stop.usage "--compile-seconds must be a number above 0"
  end
end

local message_class = { __tostring = function(err) return err.text end }

-- What a program cannot be built for is no mistake in a script, so no lines of scripts are shown.
local function describe(err)
  if type(err) ~= "string" then return err end
  local reason = err:match "^build: ([^\n]*)"
  return reason and setmetatable({ message = reason, status = 1 }, stop.class)
    or setmetatable({ text = require "perilune.cli.traceback"(err) }, message_class)
end

local function built_of(program, options)
  local ok, built = xpcall(require "perilune".build, describe, program, options)
  if not ok then error(built, 0) end
  return built
end

local function write(options)
  local compiles = needs_compiler(options.output)
  local built = built_of(load(options), {
    cc = options.cc, flags = options.flags, threads = options.threads,
    compile_seconds = options.compile_seconds, asserts = options.asserts,
    cache = options.cache, external = external_of(options.backend),
    winograd = not options.no_winograd,
    vector_bytes = options.vector_bytes or (not compiles and 32 or nil),
  })
  if #options.output == 0 then io.stdout:write(built:source()) end
  for _, path in ipairs(options.output) do
    built:save(path)
    local kind = path:match "%.(s?o)$"
    if options.verbose and kind then
      local made = built:artifact(kind)
      io.stderr:write(("%s%s\n"):format(made.command, made.cached and " (in the cache)" or ""))
    end
  end
end

function build.run(options)
  check_outputs(options.output)
  check_numbers(options)
  require "perilune.cli.work".interruptible(function() end, write, options)
end

return build
