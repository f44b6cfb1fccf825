-- Replays TVM's recorded runs of TIR passes (../shared/conformance/tir-oracle.tar.xz,
-- transform/) and prints, per pass, how many results are equal.
--
--     PERILUNE_BUILD=build lua5.4 spec/tir/pass_replay.lua FOLDER [-v] [PASS...]
--
-- FOLDER is the archive's folder transform. -v prints what differs, and why. A case counts as
-- equal if the result is structurally equal to TVM's; one whose texts cannot be read here is
-- counted apart. The exit status is 1 if a case is not equal for no reason that is known.

local replay = {}

-- Cases whose results differ, and why; engine/lower/README.md tells more of most reasons.
local reasons = {
  { "the text of a loop declares a new variable, so that the attribute names another one",
    "test_target_codegen_c_host.nested/0107 test_target_codegen_c_host.nested/0108" },
  { "nothing is bound inside of the body of a Let expression",
    [[test_te_autodiff/0566 test_tir_transform_lower_intrin.nested/0226
      test_tir_transform_lower_intrin.nested/0252]] },
  { "in the text memory without a scope is global memory",
    "test_te_build_lower/0005 test_te_build_lower/0010" },
  { "equally large computations stand in the order of a hash table there",
    "test_te_schedule_lstm/0043 test_te_schedule_tensorize/0117" },
  { "a part of a computation that cannot be bound is bound too",
    "test_te_schedule_ops/0044" },
  { "what is not proved is asserted", "test_te_schedule_tensorize/0129" },
  { "summands of vectors stand in the order of the analyzer", "test_te_tensor_overload/0142" },
  { "in the text of a LetStmt a size variable is any variable", "test_te_tensor_overload/0184" },
  { "a quotient of floats stays one where a product is not exact",
    "test_te_tensor_overload/0295 test_tir_ir_builder/0150" },
  { "equivalent terms have the form of the analyzer",
    [[test_tir_transform_common_subexpr_elim.nested/0006
      test_tir_transform_common_subexpr_elim/0006]] },
  { "regions are intervals", "test_tir_transform_compact_buffer_region/0001" },
  { "the recorded target has lost its host",
    "test_tir_transform_helpers/0004 test_tir_transform_helpers/0005" },
  { "a size variable stays one in the new function",
    "test_tir_transform_instrument_bound_checkers.nested/0166" },
  { "parts of a loop are kept inside of it", [[test_tir_transform_loop_partition.nested/0008
    test_tir_transform_loop_partition.nested/0010 test_tir_transform_loop_partition/0008
    test_tir_transform_loop_partition/0010 test_tir_transform_loop_partition.nested/0001]] },
  { "thread axes are not split", "test_tir_transform_loop_partition.nested/0045" },
  { "ends of parts are simplified further", "test_tir_transform_loop_partition.nested/0093" },
  { "the text of a DeclBuffer has the statements behind it in its body",
    "test_tir_transform_lower_tvm_builtin/0006" },
  { "copies of fragments of tensor cores are refused",
    [[test_tir_transform_memhammer_lower_auto_copy/0004
      test_tir_transform_memhammer_lower_auto_copy/0006]] },
  { "several regions of a buffer are known to be overwritten",
    "test_tir_transform_remove_no_op/0022" },
  { "a bound variable is its value where that is known",
    "test_tir_transform_simplify.nested/0038 test_tir_transform_simplify/0038" },
  { "values that loops carry are not known", "test_tir_transform_simplify.nested/0116" },
  { "a divisor of which only a remainder 0 is asked is positive",
    "test_tir_transform_simplify/0005" },
  { "a Prefetch stays for tir.InjectPrefetch", "test_tir_transform_storage_flatten/0003" },
  { "the alignment of tagged memory is that of its elements",
    [[test_tir_transform_storage_rewrite.nested/0032
      test_tir_transform_storage_rewrite.nested/0035]] },
  { "the text has an integer of one bit", "test_tir_intrin.nested/0292" },
  { "the text binds a variable twice", [[test_tir_transform_convert_ssa/0002
    test_tir_transform_simplify.nested/0121 test_tir_transform_simplify.nested/0122]] },
  { "the text declares a pointer as an integer", "test_tir_transform_storage_rewrite/0012" },
}

local reason_of = {}
for _, row in ipairs(reasons) do
  for case in row[2]:gmatch "%S+" do reason_of[case] = row[1] end
end

--- Why the result of a case differs, by its path, or nil.
function replay.reason(path) return reason_of[path:match "([^/]+/%d+)_[^/]*$"] end

local json = dofile "spec/arith/json_decode.lua"

local function text_of(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

-- The recorded numbers are texts: "3", "<IntImm> 3", "<IntImm> T.bool(True)".
local function plain(value)
  if type(value) ~= "string" then return value end
  value = value:gsub("^<IntImm> ", ""):gsub("^T%.bool%((%a+)%)$", { True = "1", False = "0" })
  return tonumber(value) or value
end

local function as_kind(kind, value)
  value = plain(value)
  if kind == "boolean" then return value == true or value == 1 end
  return value
end

-- The config of a context as perilune has it: a table per pass.
local function config_of(recorded, kinds)
  local config = {}
  for key, value in pairs(recorded or {}) do
    local fields = type(value) == "table" and value.attrs
    if key == "tir.add_lower_pass" then value = nil end -- functions of Python
    for field, v in pairs(fields or {}) do
      local name = key .. "." .. field
      if kinds[name] then config[name] = as_kind(kinds[name], v) end
    end
    if not fields and kinds[key] then config[key] = as_kind(kinds[key], value) end
  end
  return config
end

-- The recorded positional and keyword arguments of a pass as options, in the order of
-- TVM's factory functions.
local order = {
  ["tir.VectorizeLoop"] = { "enable_vectorize" }, ["tir.NarrowDataType"] = { "target_bits" },
  ["tir.StorageFlatten"] = { "cache_line_size", "create_bound_attribute" },
  ["tir.HoistIfThenElse"] = { "variant" }, ["tir.CompactBufferAllocation"] = { "is_strict" },
  ["tir.CommonSubexprElimTIR"] = { "enable_cse_tir", "identify_equiv_terms" },
  ["tir.ThreadSync"] = { "storage_scope" }, ["tir.LiftAttrScope"] = { "attr_key" },
  ["tir.BindTarget"] = { "target" }, ["tir.FP8ComputeLegalize"] = { "promote_dtype" },
}

-- "<Target> cuda -arch=sm_50" as the text of a target.
local function plain_argument(value)
  return type(value) == "string" and value:match "^<Target> (.*)$" or value
end

-- tvm.build binds functions to the target and its host, then the host's to the host alone;
-- its arguments are not recorded. Programs of test_target_codegen_c_host are built for c, all
-- others for llvm.
local function driver_options(call, before, path, config)
  -- tvm.lower asks for bounds if they are checked.
  if call.pass:find "^tir%.StorageFlatten" and config["tir.instrument_bound_checkers"] then
    return { create_bound_attribute = true }
  end
  if call.pass ~= "tir.BindTarget" then return {} end
  local target = (path:find "codegen_c_host" and "c" or "llvm") .. " -keys=cpu"
  if before:find "T%.target%(" then return { target = target } end
  return { target = ("%s -host='%s'"):format(target, target) }
end

-- What TVM calls passes that have another name here: parts of passes, and one whose name in its
-- code is not the one of its constructor.
local other_names = {
  ["tir.StorageFlatten_impl"] = "tir.StorageFlatten",
  ["tir.calculate_allocated_bytes"] = "tir.VerifyVTCMLimit",
}

local function options_of(call, before, path, config)
  local options = {}
  if type(call.args) ~= "table" then return driver_options(call, before, path, config) end
  local args = call.args
  for i, value in ipairs(args.args or {}) do
    local name = order[call.pass] and order[call.pass][i]
    if not name then return nil end
    options[name] = plain_argument(value)
  end
  for name, value in pairs(args.kwargs or {}) do options[name] = value end
  return options
end

-- The recorded pass, or the passes of a recorded tvm.transform.Sequential; nil if there is an
-- argument that is not known.
local function pass_of(pl, call, before, path, config)
  if not call.sequential then
    local options = options_of(call, before, path, config)
    return options and pl.passes[other_names[call.pass] or call.pass](options)
  end
  local list = {}
  for i, each in ipairs(call.sequential) do
    list[i] = pass_of(pl, each, before, path, config)
    if not list[i] then return nil end
  end
  return pl.sequential(list)
end

local function passes_of(pl)
  local set = { Sequential = true }
  for name in pairs(pl.passes) do set[name] = true end
  for theirs, ours in pairs(other_names) do set[theirs] = set[ours] end
  return set
end

local function config_kinds(pl)
  local kinds = {}
  for name, row in pairs(pl.config) do
    kinds[name] = row.type
    for field, inner in pairs(row.fields or {}) do
      kinds[name .. "." .. (inner.name or field)] = inner.type
    end
  end
  return kinds
end

-- A script does not tell what a parameter is called that is written as a buffer, nor whether its
-- memory's scope is "global" or "". So messages of assertions, which name parameters, and
-- "global" are left out.
local function without_messages(pl, mod)
  local lines = {}
  for line in pl.tir.script(mod):gmatch "[^\n]*" do
    lines[#lines + 1] = line:gsub('\\"', "'"):gsub('^(%s*assert .*), "[^"]*"$', '%1, ""')
      :gsub('(T%.handle%("[%w]+"), "global"%)', "%1)")
  end
  return pl.tir.parse(table.concat(lines, "\n"))
end

local function is_equal(pl, pass, result, after)
  if pl.equal(result, after, { map_free_vars = true }) then return true end
  if pass ~= "tir.MakePackedAPI" and pass ~= "tir.BufferShapeLegalize" then return false end
  local a, b = without_messages(pl, result), without_messages(pl, after)
  return a and b and pl.equal(a, b, { map_free_vars = true })
end

-- Some texts use a size variable or a thread that they do not declare; TVM's own parser refuses
-- them.
local function declaration_of(message, text)
  local name = message:match "no variable or function is called '([%w_]+)'"
  if name then
    -- Used in front of its declaration: that of TVM's printer stands where a body uses it.
    local later = text:match("\n *(" .. name .. " = T%.[%w_]+%([%w_=]*%))%f[\n]")
    return later or ("%s = T.int32()"):format(name)
  end
  name = message:find "a thread is expected" and message:match "launch_thread%(([%w_]+),"
  if not name then return nil end
  return ('%s = T.env_thread("%s")'):format(name, (name:gsub("_%d+$", ""):gsub("_", ".")))
end

-- The declaration as the first line of the first function, and no later one.
local function with_declaration(text, declaration)
  text = text:gsub("\n *" .. declaration:gsub("%p", "%%%0") .. "%f[\n]", "")
  return (text:gsub("(\n *def [^\n]*:\n)( +)", function(head, indent)
    return head .. indent .. declaration .. "\n" .. indent
  end, 1))
end

-- The module of a text, or nil and why not.
local function read(pl, text, name)
  for _ = 1, 16 do
    local mod, why = pl.tir.parse(text, name)
    if mod then return mod end
    local declaration = declaration_of(tostring(why), text)
    if not declaration then return nil, why end
    -- A thread that is used in front of its launch is declared as another variable.
    local thread = declaration:match "^([%w_]+) = T%.env_thread"
    if thread then text = text:gsub("\n *" .. thread .. " = T%.int32%(%)%f[\n]", "") end
    text = with_declaration(text, declaration)
  end
  return nil, "many variables are not declared"
end

-- TVM's printer declares a free variable in each body that uses it, and a thread at each launch,
-- so that a text does not tell whether two bodies share them. The text with one declaration for
-- all bodies of a function, of names that have several, and with threads declared at the launch.
local function with_shared_variables(text)
  local threads = {}
  text = text:gsub('\n *([%w_]+) = T%.env_thread(%b())', function(name, tag)
    threads[name] = tag:sub(2, -2)
    return ""
  end)
  text = text:gsub("\n( *)T%.launch_thread%(([%w_]+), ", function(indent, name)
    return threads[name] and ("\n%s%s = T.launch_thread(%s, "):format(indent, name, threads[name])
  end)
  local count = {}
  for line in text:gmatch "\n *([%w_]+ = T%.[%w_]+%([%w_=]*%))%f[\n]" do
    count[line] = (count[line] or 0) + 1
  end
  for line in pairs(count) do text = with_declaration(text, line) end
  return text
end

local function is_equal_shared(pl, result, after)
  local function shared(mod)
    local text = pl.tir.script(mod) .. "\n"
    return select(2, text:gsub("def ", "")) == 1 and read(pl, with_shared_variables(text), "text")
  end
  local a, b = shared(result), shared(after)
  return a and b and pl.equal(a, b, { map_free_vars = true })
end

-- Runs the recorded case: "equal", "different", or why it was not compared, and a message.
function replay.case(pl, path, record, kinds)
  local text_diff = require "perilune.text_diff"
  local before, why = read(pl, text_of(path .. record.input), record.input)
  if not before then return "unread", tostring(why) end
  local after
  after, why = read(pl, text_of(path .. record.output), record.output)
  if not after then return "unread", tostring(why) end
  local pass = pass_of(pl, record.call, text_of(path .. record.input), path,
    record.context.config or {})
  if not pass then return "unread", "arguments" end
  local ok, result = pcall(function()
    local context = pl.context { config = config_of(record.context.config, kinds),
      opt_level = record.context.opt_level }
    return pl.with(context, pass, before)
  end)
  if not ok then return "failed", tostring(result) end
  if is_equal(pl, record.call.pass, result, after) or is_equal_shared(pl, result, after) then
    return "equal"
  end
  return "different", text_diff(after, result)
end

local function files_of(folder)
  local list = {}
  local pipe = assert(io.popen(("find '%s' -name '*.json' | sort"):format(folder)))
  for path in pipe:lines() do
    if path:match "%d+_[%w_.]+%.json$" then list[#list + 1] = path end
  end
  pipe:close()
  return list
end

-- Cases that TVM's own replay does not confirm are left out.
local function is_confirmed(record)
  local verdict = record.replay or ""
  return record.output ~= nil and record.input ~= nil and not verdict:find "DIFFERS"
    and not verdict:find "raises"
end

-- Names of files are cut to 40 characters.
local function full_name(known, name)
  if known[name] or #name < 39 then return name end
  for each in pairs(known) do
    if each:sub(1, #name) == name then return each end
  end
  return name
end

--- Calls visit(pass, verdict, message, path) for each recorded case of the passes in `only`
-- (nil: of all that are registered).
function replay.run(folder, only, visit)
  local pl = require "perilune"
  local known, kinds = passes_of(pl), config_kinds(pl)
  for _, path in ipairs(files_of(folder)) do
    local name = full_name(known, path:match "%d+_([%w_.]+)%.json$")
    if known[name] and (not only or only[name]) then
      local record = json.decode(text_of(path))
      if is_confirmed(record) then
        visit(name, record, path, replay.case(pl, path:match "^(.*/)", record, kinds))
      end
    end
  end
end

local function print_table(rows)
  local names = {}
  for name in pairs(rows) do names[#names + 1] = name end
  table.sort(names)
  print(("%-40s %6s %8s %6s %9s %6s %6s"):format("pass", "cases", "changed", "equal",
    "different", "failed", "unread"))
  for _, name in ipairs(names) do
    local r = rows[name]
    print(("%-40s %6d %8d %6d %9d %6d %6d"):format(name, r.cases, r.changed, r.equal, r.different,
      r.failed, r.unread))
  end
end

function replay.main(arguments)
  local folder, verbose, only = arguments[1], false, nil
  for i = 2, #arguments do
    if arguments[i] == "-v" then
      verbose = true
    else
      only = only or {}
      only[arguments[i]] = true
    end
  end
  local rows, unknown = {}, {}
  replay.run(folder, only, function(name, record, path, verdict, message)
    rows[name] = rows[name]
      or { cases = 0, changed = 0, equal = 0, different = 0, failed = 0, unread = 0 }
    local row = rows[name]
    row.cases, row[verdict] = row.cases + 1, row[verdict] + 1
    if record.text_changed then row.changed = row.changed + 1 end
    if verdict == "equal" then return end
    local reason = replay.reason(path)
    if not reason then unknown[#unknown + 1] = path end
    if verbose then
      print(("=== %s: %s: %s\n%s"):format(path, verdict, reason or "no known reason", message))
    end
  end)
  print_table(rows)
  for _, path in ipairs(unknown) do print("no known reason: " .. path) end
  return #unknown == 0
end

if arg and arg[0] and arg[0]:find "pass_replay" then
  local build = os.getenv "PERILUNE_BUILD" or "build"
  package.cpath = build .. "/lua/?.so;" .. package.cpath
  package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
  os.exit(replay.main(arg), true)
end

return replay
