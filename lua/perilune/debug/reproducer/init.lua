--- pl.reproducer: a failure in a file: the module, the pipeline and what it ran
-- in, the scripts of its passes. The file is Relay text whose leading comments
-- hold the rest; people can read it and change it.
--
--     pl.with(pl.context { config = { reproducer = "bug.relay" } }, pipeline, mod)
--     local ok, result = pl.reproducer.replay "bug.relay"

local argument = require "perilune.argument"
local core = require "perilune.core"
local header = require "perilune.debug.reproducer.header"
local scripts = require "perilune.debug.reproducer.scripts"
local sorted_keys = require "perilune.sorted_keys"
core.internal()

local reproducer = {}

-- ONNX bytes stand in a reproducer up to this size, unless weights are to.
local MOST_BYTES = 1 << 20

-- ------------------------------------------------------------------- writing

local function wrapped(text)
  return (text:gsub(("."):rep(96), "%0\n"):gsub("\n$", ""))
end

-- Bytes of a model that say all of the module, or nil.
local function onnx_bytes(module, embed)
  local bytes = core.onnx_tostring(module)
  if not bytes or (#bytes > MOST_BYTES and not embed) then return nil end
  local back = core.onnx_parse(bytes)
  return back and not core.module_mismatch(module, back, false, true) and bytes or nil
end

-- What the text does not say, or nil.
local function lost_in(text, module)
  local back, diag = core.text_parse(text)
  if not back then return "the text is not read back: " .. diag.message end
  return (core.module_mismatch(module, back, false, true))
end

-- Relay text, with the model's bytes in the header where text does not say all.
local function add_module(entries, module, embed)
  local text = module:text { constants = embed and "embedded" or "complete" }
  local lost = lost_in(text, module)
  local bytes = lost and onnx_bytes(module, embed)
  if bytes then
    entries[#entries + 1] = { "onnx", "", wrapped(core.base64_encode(bytes)) }
  elseif lost then
    entries[#entries + 1] = { "lost", lost }
  end
  return text
end

local function add_list(entries, key, list)
  for _, value in ipairs(list or {}) do entries[#entries + 1] = { key, tostring(value) } end
end

local function add_settings(entries, key, settings)
  for _, name in ipairs(sorted_keys(settings or {})) do
    entries[#entries + 1] = { key, ("%s = %s"):format(name, header.quote(settings[name])) }
  end
end

-- Where a reproducer is written is no part of it.
local function config_of(context)
  local config = {}
  for key, value in pairs(context.config or {}) do
    if not (key .. "."):find "^reproducer%." then config[key] = value end
  end
  return config
end

local function add_context(entries, context)
  entries[#entries + 1] = { "opt_level", tostring(context.opt_level or 2) }
  for _, key in ipairs { "required", "disabled", "only" } do
    add_list(entries, key, context[key])
  end
  add_settings(entries, "config", config_of(context))
  for _, instrument in ipairs(context.instruments or {}) do
    local name = type(instrument) == "table" and instrument.name or instrument
    add_list(entries, "instrument", { name })
  end
end

local function add_scripts(entries, list)
  for _, script in ipairs(list) do
    entries[#entries + 1] = { "script", script.name, script.source }
    add_settings(entries, "argument", script.arguments)
  end
end

local function failure_of(failure)
  if type(failure) ~= "table" then return nil, tostring(failure) end
  local lines = { failure.text or failure.message or tostring(failure) }
  for _, note in ipairs(failure.notes or {}) do lines[#lines + 1] = note.text end
  return failure.code, table.concat(lines, "\n")
end

local function add_failure(entries, failure)
  if failure == nil then return end
  local code, text = failure_of(failure)
  entries[#entries + 1] = { "failure", code or "error", text }
end

local function versions()
  return ("perilune %s, %s"):format(core._VERSION, _VERSION)
end

local REMARKS = {
  "`perilune replay FILE` runs the pipeline on the module below these comments;",
  "both may be edited. Where an entry `onnx` has the module's bytes, those are run",
  "and the text is for reading: delete the entry to run the text.",
}

local function text_of(spec)
  local entries = { { "version", versions() } }
  add_failure(entries, spec.failure)
  entries[#entries + 1] = { "pipeline", tostring(spec.pipeline) }
  if spec.whole then entries[#entries + 1] = { "whole", tostring(spec.whole) } end
  if spec.ran then entries[#entries + 1] = { "ran", spec.ran } end
  entries[#entries + 1] = { "seed", tostring(spec.seed or core.seed()) }
  add_context(entries, spec.context or core.current())
  add_scripts(entries, spec.scripts
    or type(spec.pipeline) == "userdata" and scripts.of(spec.pipeline) or {})
  local body = add_module(entries, spec.module, spec.embed)
  return header.encode(entries, REMARKS) .. body .. "\n"
end

local fields = { module = true, pipeline = true, context = true, scripts = true, seed = true,
  failure = true, whole = true, ran = true, embed = true }

--- Writes a reproducer: { module =, pipeline = (a pass or its text), context = (a
-- context or its table), scripts = { { name =, source =, arguments = }, ... },
-- seed =, failure = (a diagnostic or text) }. What is not given is what holds
-- now: the current context, the seed, the scripts of the pipeline's passes.
-- `whole`, `ran`: the pipeline that `pipeline` is a part of, and what of it ran, as
-- texts. `embed`: large weights too. True, or nil and a diagnostic.
function reproducer.write(path, spec)
  for field in pairs(spec) do
    if not fields[field] then
      argument.fail(("a reproducer has no field '%s'%s"):format(tostring(field),
        argument.near(field, fields)))
    end
  end
  if not spec.module or not spec.pipeline then
    argument.fail("a reproducer has a module and a pipeline")
  end
  local ok, reason = require "perilune.replace_file"(path, text_of(spec))
  if ok then return true end
  return nil, core.diag("io", reason)
end

-- ------------------------------------------------------------------- reading

local readers = {}

local function text_value(entry) return entry.block or entry.value end

local function list_reader(list)
  return function(out, entry) table.insert(out.context[list], text_value(entry)) end
end

local function setting(entry)
  local name, text = entry.value:match "^(%S+) = (.*)$"
  local value = text and header.value(text)
  if value == nil then return nil end
  return name, value
end

for key, list in pairs { required = "required", disabled = "disabled", only = "only",
  instrument = "instruments" } do
  readers[key] = list_reader(list)
end

function readers.version(out, entry) out.version = entry.value end
function readers.failure(out, entry) out.failure = { code = entry.value, text = entry.block } end
function readers.pipeline(out, entry) out.pipeline = text_value(entry) end
function readers.whole(out, entry) out.whole = text_value(entry) end
function readers.ran(out, entry) out.ran = entry.value end
function readers.lost(out, entry) out.lost = text_value(entry) end

local function integer(entry)
  local n = tonumber(entry.value)
  return math.type(n) == "integer" and n or nil
end

function readers.seed(out, entry)
  out.seed = integer(entry)
  return not out.seed and "the seed is an integer" or nil
end

function readers.opt_level(out, entry)
  out.context.opt_level = integer(entry)
  return not out.context.opt_level and "the level is an integer" or nil
end

function readers.config(out, entry)
  local name, value = setting(entry)
  if not name then return "expected NAME = VALUE, a number, true, false or \"text\"" end
  out.context.config[name] = value
end

function readers.script(out, entry)
  table.insert(out.scripts, { name = entry.value, source = entry.block or "", arguments = {} })
end

function readers.argument(out, entry)
  local script, name, value = out.scripts[#out.scripts], setting(entry)
  if not script then return "an argument follows its script" end
  if not name then return "expected NAME = VALUE, a number, true, false or \"text\"" end
  script.arguments[name] = value
end

function readers.onnx(out, entry)
  local bytes = core.base64_decode(entry.block or "")
  if not bytes then return "the model's bytes are no base64" end
  local module, diag = core.onnx_parse(bytes)
  if not module then return "the model's bytes: " .. diag.message end
  out.module = module
end

local function read_entries(entries, out)
  for _, entry in ipairs(entries) do
    local reader = readers[entry.key]
    if not reader then
      return entry.row, ("a reproducer has no key '%s'%s"):format(entry.key,
        core.suggest(entry.key, sorted_keys(readers)))
    end
    local wrong = reader(out, entry)
    if wrong then return entry.row, wrong end
  end
  if not out.pipeline then return 1, "there is no pipeline: '// pipeline: TEXT'" end
end

local function wrong_at(path, row, message)
  return nil, core.diag("format", message, path, row)
end

--- What a text says, as reproducer.read gives it. Messages call it `name`.
function reproducer.parse(text, name)
  name = name or "reproducer"
  local out = { scripts = {}, context = { required = {}, disabled = {}, only = {},
    instruments = {}, config = {} } }
  local entries, row, message = header.decode(text)
  if not entries then return wrong_at(name, row, message) end
  row, message = read_entries(entries, out)
  if row then return wrong_at(name, row, message) end
  if not out.module then
    local module, diag = core.text_parse(text, name)
    if not module then return nil, diag end
    out.module = module
  end
  return out
end

--- Whether a text begins like a reproducer.
reproducer.is = header.is

--- Reads a reproducer, and runs nothing: { module =, pipeline = (text), context =
-- (for pl.context; `instruments` are names), scripts =, seed =, failure = { code =,
-- text = }, version =, whole =, ran =, lost = }; nil and a diagnostic.
function reproducer.read(path)
  argument.string(path, "pl.reproducer.read", "path")
  local text, reason = require "perilune.read_file"(path)
  if not text then return nil, core.diag("io", reason) end
  return reproducer.parse(text, path)
end

-- ----------------------------------------------------------------- replaying

-- Instruments that only look on are left out.
local judging = { oracle = true, verify = true }

local function instruments_of(names, shipped, remarks)
  local instruments, list = require "perilune.instruments", {}
  for _, name in ipairs(names) do
    local make = instruments[name]
    if make and (judging[name] or not shipped[name]) then
      list[#list + 1] = make()
    elseif not shipped[name] then
      remarks[#remarks + 1] = ("the instrument '%s' is not there"):format(name)
    end
  end
  return list
end

local function shipped_instruments()
  local names = { progress = true }
  for name in pairs(require "perilune.instruments") do names[name] = true end
  return names
end

local function remarks_of(what, problems)
  local remarks = {}
  if what.version and what.version ~= versions() then
    remarks[1] = ("written by %s; this is %s"):format(what.version, versions())
  end
  if what.lost and not what.lost:find "^the text" then
    remarks[#remarks + 1] = "the text does not say all of the module: " .. what.lost
  end
  for _, problem in ipairs(problems or {}) do remarks[#remarks + 1] = problem end
  return remarks
end

local function context_of(what, config, instruments)
  local given = what.context
  local all = {}
  for key, value in pairs(given.config) do all[key] = value end
  for key, value in pairs(config) do all[key] = value end
  return require "perilune.pass".context { opt_level = given.opt_level, config = all,
    required = given.required, disabled = given.disabled,
    only = #given.only > 0 and given.only or nil, instruments = instruments }
end

local function read_table(what)
  if type(what) ~= "string" then
    return argument.table(what, "pl.reproducer.open", "what")
  end
  return reproducer.read(what)
end

--- What a file, or a table from reproducer.read, says, ready to be run: { module,
-- pipeline, context }, for pl.bisect or pl.reduce; its scripts are run for the passes
-- that they make, the seed is set. nil and the failure when that is not possible; then
-- a list of remarks: other versions, what is missing. `options`: config and arguments
-- (of scripts), which come before the file's.
function reproducer.open(what, options)
  options = argument.options(options, "pl.reproducer.open", { "config", "arguments" })
  local read, diag = read_table(what)
  if not read then return nil, diag, {} end
  argument.table(read.context, "pl.reproducer.open", "its context")
  local shipped = shipped_instruments()
  local pass, failure, problems = scripts.pipeline(read.scripts, read.pipeline,
    options.arguments or {})
  local remarks = remarks_of(read, problems)
  if not pass then return nil, failure, remarks end
  local instruments = instruments_of(read.context.instruments, shipped, remarks)
  local ok, context = pcall(context_of, read, options.config or {}, instruments)
  if not ok then return nil, context, remarks end
  if read.seed then core.seed(read.seed) end
  return { module = read.module, pipeline = pass, context = context }, nil, remarks
end

--- Runs it: true and the module, or false and the error; then the remarks.
function reproducer.replay(what, options)
  local bug, failure, remarks = reproducer.open(what, options)
  if not bug then return false, failure, remarks end
  local ok, result = pcall(require "perilune.pass".with, bug.context, bug.pipeline, bug.module)
  return ok, result, remarks
end

return reproducer
