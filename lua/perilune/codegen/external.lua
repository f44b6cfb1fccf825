--- Functions of a model that a user's C computes: those with the attribute Compiler, as
-- pl.tune.placement makes them.
--
--     int SYMBOL(const void *const *inputs, const int64_t *const *shapes, void *output);
--
-- (perilune.tune.run.c_function has the contract). The source stands behind the generated C, once,
-- and with it a function for each of the model's that passes its shapes; its results other than 0
-- are assertions of the program that do not hold. Shapes are numbers.

local argument = require "perilune.argument"
local core = require "perilune.core"
local ir = require "perilune.ir"
local model_plan = require "perilune.codegen.model_plan"
local operand = require "perilune.tir.operand"
local pass = require "perilune.pass"
local tir = require "perilune.tir"
core.internal()

local external = {}

local refuse = model_plan.refuse

-- ---------------------------------------------------------------------- options

--- Checks { [compiler] = { source = a file of C, symbol = } or a builder of a C function }; with
-- the texts of the sources.
function external.check(sources, where)
  local out = {}
  for compiler, row in pairs(argument.table(sources, where, "external")) do
    local place = ("%s: external: %s"):format(where, tostring(compiler))
    argument.string(compiler, where, "the name of a compiler")
    argument.table(row, where, "external." .. compiler)
    local path = argument.string(row.source, place, "source")
    if not argument.string(row.symbol, place, "symbol"):find "^[%a_][%w_]*$" then
      argument.fail(place .. ": symbol: the name of a C function expected")
    end
    local text, reason = require "perilune.read_file"(path)
    if not text then core.raise(core.diag("io", reason)) end
    out[compiler] = { source = path, symbol = row.symbol, text = text }
  end
  return out
end

-- ---------------------------------------------------------------------- modules

local function compiler_of(fn)
  local attrs = fn.kind == "Function" and fn.attrs
  return attrs and attrs.Compiler or nil
end

-- Compilers of pl.tune.placement that compute what generated C computes: itself, and OpenBLAS,
-- which a program of C is not linked with.
local own = { c = true, openblas = true }

--- The module with functions of those compilers in their callers, but for those with a source.
function external.inline_own(mod, sources)
  local changed = {}
  for name, fn in pairs(mod) do
    local compiler = compiler_of(fn)
    if own[compiler or ""] and not sources[compiler] then
      changed[name] = ir.Function(fn.params, fn.body, { attrs = { Inline = 1 } })
    end
  end
  if next(changed) == nil then return mod end
  return pass.sequential { "Inline", "InferType" } (mod:with(changed))
end

-- ---------------------------------------------------------------------- calls

local function check_shapes(name, types)
  for _, type_ in ipairs(types) do
    model_plan.check_type(type_)
    for _, dim in ipairs(type_.shape) do
      if math.type(dim) ~= "integer" then
        refuse("function '%s' of C has a value of type %s: give the sizes of its dimensions", name,
          tostring(type_))
      end
    end
  end
end

local function new_row(plan, name, fn, source)
  local n = #plan.externals + 1
  local row = { source = source, types = {}, thunk = ("tvmgen_default_pass_shapes_%d"):format(n) }
  for i, param in ipairs(fn.params) do row.types[i] = param.type end
  row.types[#row.types + 1] = fn.body.type
  check_shapes(name, row.types)
  plan.externals[n], plan.external_of[name] = row, row
  return row
end

--- What a call of a function of the module calls; nil: it has no compiler.
function external.called(plan, name, fn)
  local compiler = compiler_of(fn)
  if not compiler then return nil end
  local source = plan.sources[compiler]
  if not source then
    refuse("function '%s' is computed by the compiler '%s': external.%s says which C (--backend)",
      name, compiler, compiler)
  end
  return plan.external_of[name] or new_row(plan, name, fn, source)
end

--- The statement that calls it with pointers to operands and result.
function external.call(row, pointers)
  local status = tir.call_extern("int32", row.thunk, table.unpack(pointers))
  return tir.AssertStmt(tir.eq(status, operand.const(0, "int32")),
    ("%s of %s gave another result than 0"):format(row.source.symbol, row.source.source),
    tir.Evaluate(0))
end

-- ---------------------------------------------------------------------- the text

local function quoted(path) return (path:gsub('[\\"]', "\\%0"):gsub("%c", "?")) end

local function thunk_text(row)
  local params, values, shapes, lines = {}, {}, {}, {}
  for i, type_ in ipairs(row.types) do
    params[i], values[i], shapes[i] = "void *p" .. i, "p" .. i, "s" .. i
    lines[i] = ("  static const int64_t s%d[] = {%s};"):format(i, #type_.shape > 0
      and table.concat(type_.shape, ", ") or "0")
  end
  local output = table.remove(values)
  if #values == 0 then values[1] = "0" end
  return ([[
int32_t %s(%s);
int32_t %s(%s) {
%s
  const void *const inputs[] = {%s};
  const int64_t *const shapes[] = {%s};
  return (int32_t)%s(inputs, shapes, %s);
}
]]):format(row.thunk, table.concat(params, ", "), row.thunk, table.concat(params, ", "),
    table.concat(lines, "\n"), table.concat(values, ", "), table.concat(shapes, ", "),
    row.source.symbol, output)
end

-- Words that may stand last in front of what is static, and are no names.
local keywords = { struct = true, union = true, enum = true, inline = true, const = true }

-- Names of what is static in a source, but `symbols`, in order; those that begin with _ are not the
-- user's.
local function static_names(text, symbols)
  local list, seen = {}, {}
  text = text:gsub("/%*.-%*/", " "):gsub("//[^\n]*", "")
  for declaration in text:gmatch "%f[%w_]static%f[^%w_]([^;={}()%[]+)" do
    for declarator in declaration:gmatch "[^,]+" do
      local name = declarator:match "([%a][%w_]*)%s*$"
      if name and not (keywords[name] or symbols[name] or seen[name]) then
        list[#list + 1], seen[name] = name, true
      end
    end
  end
  return list
end

-- A source, whose static names and macros are its own: those of others may be the same.
local function source_text(source, symbols, n)
  local before, behind = {}, {}
  for i, name in ipairs(static_names(source.text, symbols)) do
    before[i] = ("#define %s external%d_%s\n"):format(name, n, name)
    behind[i] = ("#undef %s\n"):format(name)
  end
  for name in ("\n" .. source.text):gmatch "\n[ \t]*#[ \t]*define[ \t]+(%a[%w_]*)" do
    behind[#behind + 1] = ("#undef %s\n"):format(name)
  end
  return ('\n%s#line 1 "%s"\n%s\n%s'):format(table.concat(before), quoted(source.source),
    source.text, table.concat(behind))
end

-- The symbols that are called of each source, by its path.
local function called_symbols(plan)
  local out = {}
  for _, row in ipairs(plan.externals) do
    local path = row.source.source
    out[path] = out[path] or {}
    out[path][row.source.symbol] = true
  end
  return out
end

--- What stands behind the generated C: sources, each once, and the functions that call theirs.
function external.text(plan)
  local parts, seen, symbols = {}, {}, called_symbols(plan)
  for _, row in ipairs(plan.externals) do
    local source = row.source
    if not seen[source.source] then
      parts[#parts + 1] = source_text(source, symbols[source.source], #parts + 1)
      seen[source.source] = true
    end
  end
  if #parts > 0 then parts[#parts + 1] = '#line 1 "external functions"\n' end
  for _, row in ipairs(plan.externals) do parts[#parts + 1] = thunk_text(row) end
  return #parts > 0 and table.concat(parts) or nil
end

return external
