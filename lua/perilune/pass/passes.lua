--- pl.passes: the registry of passes, bound to the engine.
--
--     pl.passes.Mine = { kind = "function", run = function(fn) ... end }
--     pl.passes.FoldConstant { fold = "all" }       -- a pass object
--     for name, pass in pairs(pl.passes) do print(name, pass.doc) end
--     pl.passes.Mine = nil
--
-- What is assigned: a table that describes a pass, a function or mutator (over
-- functions), a list of passes, a pass, a class of passes. Assigning anew
-- replaces the script's pass; pipelines made before keep the one they have.
-- What indexing gives is a constructor: callable, with name, kind, opt_level,
-- required, doc and options (rows of name, type, default, doc).

local core = require "perilune.core"
local argument = require "perilune.argument"
local pass = require "perilune.pass"
local pattern_table = require "perilune.lazy" "perilune.dataflow_pattern.table"
core.internal()

-- Options that are no plain values, and what they are for the engine.
local prepare = { MergeComposite = function(...) return pattern_table.prepare(...) end }

local constructor_class = {
  __name = "pass constructor",
  __call = function(self, options)
    if prepare[self.name] then options = prepare[self.name](options) end
    return core.make(self.name, options)
  end,
  __tostring = function(self) return self.name end,
}

local function constructor(registered)
  return setmetatable({
    name = registered.name, kind = registered.kind, opt_level = registered.opt_level,
    required = registered.required, doc = registered.doc, options = registered.option_rows,
  }, constructor_class)
end

pass.constructor_class = constructor_class

local function lookup(_, name)
  local registered = type(name) == "string" and core.registered(name)
  return registered and constructor(registered) or nil
end

-- A mutator, say.
local function is_callable(value)
  local meta = getmetatable(value)
  return type(value) == "table" and type(meta) == "table" and meta.__call ~= nil
end

local function assign(_, name, value)
  if type(name) ~= "string" then argument.fail("passes are registered under names") end
  if value == nil then
    if core.registered(name) then core.unregister(name) end
    return
  end
  if type(value) == "userdata" then return core.register_object(name, value) end
  if getmetatable(value) == constructor_class or getmetatable(value) == pass.class_meta then
    return core.register_object(name, value())
  end
  if type(value) == "function" or is_callable(value) then value = { run = value } end
  if type(value) == "table" and not value.run and #value > 0 then
    local list = table.move(value, 1, #value, 1, { name = value.name or name,
      opt_level = value.opt_level, required = value.required })
    return core.register_object(name, pass.sequential(list))
  end
  core.register(pass.spec(value, nil, name))
end

local function iterate()
  local i = 0
  return function()
    i = i + 1
    local registered = core.registered(i)
    if registered then return registered.name, constructor(registered) end
  end
end

-- Written in Lua, and loaded at its first run.
core.register(pass.spec({
  name = "LowerTE", kind = "module", opt_level = 0,
  doc = "Make loops (PrimFuncs) of the functions of fused operators.",
  options = { { name = "unsupported", default = "error", choices = { "error", "keep" },
    doc = "keep: what has no compute is left to the evaluator." },
    { name = "layout", default = "plain", choices = { "plain", "NCHWc" },
      doc = "NCHWc: results of convolutions are blocks of channels in memory." },
    { name = "winograd", default = "on", choices = { "on", "off" },
      doc = "on: convolutions of blocks by 3 x 3 weights may be transformed." },
    { name = "symbolic", default = "off", choices = { "on", "off" },
      doc = "on: symbolic dims become variables of PrimFuncs, which pl.build calls; the evaluator "
        .. "does not." },
    { name = "vector_bytes", default = 64, doc = "Bytes of a vector of the processor, 16, 32 or "
      .. "64: tiles of sums fit its registers." } },
  run = function(mod, ctx)
    return require "perilune.topi.lower_te"(mod, { unsupported = ctx:option "unsupported",
      layout = ctx:option "layout", winograd = ctx:option "winograd",
      symbolic = ctx:option "symbolic", vector_bytes = ctx:option "vector_bytes" })
  end,
}))

core.register(pass.spec({
  name = "OnnxToRelay", kind = "function", opt_level = 0,
  doc = "Write convolutions and pools of images as Relay's operators, which have layouts.",
  run = function(fn) return require "perilune.pass.onnx_to_relay"(fn) end,
}))

core.register(pass.spec({
  name = "RelayToOnnx", kind = "function", opt_level = 0,
  doc = "Write Relay's convolutions, pools and layouts of images as ONNX's operators.",
  run = function(fn) return require "perilune.pass.relay_to_onnx"(fn) end,
}))

core.register(pass.spec({
  name = "AnnotateSchedules", kind = "module", opt_level = 0,
  doc = "Note what is decided for the kernels of a model; LowerTE takes it.",
  options = { { name = "decisions", default = "",
    doc = "'KEY: NAME=VALUE ...' of each kernel, with ';' in between." } },
  run = function(mod, ctx)
    local decision = require "perilune.topi.decision"
    local schedules = decision.parse(mod.attrs and mod.attrs.schedules or "")
    for key, own in pairs(decision.parse(ctx:option "decisions")) do schedules[key] = own end
    local text = decision.text(schedules)
    if text == (mod.attrs and mod.attrs.schedules or "") then return mod end
    return decision.annotate(mod, text)
  end,
}))

return setmetatable({}, {
  __name = "perilune.passes",
  __index = lookup,
  __newindex = assign,
  __pairs = iterate,
})
