-- What TVM 0.14 makes of some ninety modules with the passes that give a
-- program another form: the archive beside the project ($PERILUNE_SHARED).
-- Results are structurally equal once their types are inferred; what is not is
-- listed with its reason.

local pl = require "perilune"

local build = os.getenv "PERILUNE_BUILD" or "build"
local shared = os.getenv "PERILUNE_SHARED" or "../shared"
local folder = build .. "/pass-oracle"

local global = "TVM puts the variable that a global is bound to in the global's place"
local order = "TVM evaluates operands before the function that is called"
local sharing = "a constant that TVM's input shares is written twice in its text"
local formed = "functions in the form stay; TVM binds the value of each let once more"
local effects = "TVM drops the effects of values that nobody uses"
local unread = "TVM's result is ill-typed: it has a closure's maker in its place"

local exceptions = {
  ToANormalForm = { cse_simple = sharing, inline_all = global, pe_const_arith = order,
    adt_lstm_foldl_list = formed, adt_prelude = formed, adt_std_nat_rly = formed },
  ToGraphNormalForm = { dce_effects = effects },
  ToBasicBlockNormalForm = { inline_all = global },
  LambdaLift = { adt_lstm_foldl_list = unread, adt_prelude = unread, adt_std_nat_rly = unread,
    adt_std_prelude_rly = unread },
  ["FuseOps.max_depth_4"] = { cse_simple = sharing },
  FuseOps_then_ToANF = { inline_all = global, pe_const_arith = order },
  ToANF_then_ToGNF = { dce_effects = effects },
}

-- The name of the results, the pipeline, and the config.
local cases = {
  { "ToANormalForm" }, { "ToGraphNormalForm" }, { "ToBasicBlockNormalForm" }, { "LambdaLift" },
  { "Inline" }, { "DefuseOps" },
  { "EtaExpand.both", "EtaExpand{expand_constructor=true, expand_global_var=true}" },
  { "EtaExpand.constructor", "EtaExpand{expand_constructor=true}" },
  { "EtaExpand.global_var", "EtaExpand{expand_global_var=true}" },
  { "FuseOps.0", "FuseOps{fuse_opt_level=0}" }, { "FuseOps.1", "FuseOps{fuse_opt_level=1}" },
  { "FuseOps.2", "FuseOps{fuse_opt_level=2}" }, { "FuseOps.3", "FuseOps{fuse_opt_level=3}" },
  { "FuseOps.4", "FuseOps{fuse_opt_level=4}" },
  { "FuseOps.max_depth_4", "FuseOps", { ["relay.FuseOps.max_depth"] = 4 } },
  { "FuseOps.link_params", "FuseOps", { ["relay.FuseOps.link_params"] = true } },
  { "FuseOps_then_DefuseOps", "FuseOps,DefuseOps" },
  { "FuseOps_then_ToANF", "FuseOps,ToANormalForm" },
  { "ToANF_then_ToGNF", "ToANormalForm,ToGraphNormalForm" },
}

local function read(path)
  local file = io.open(path, "rb")
  if not file then return end
  local text = file:read "a"
  file:close()
  return text
end

-- The folders of the modules; nil when the archive is not there.
local function unpack_archive()
  local archive = shared .. "/conformance/pass-oracle.tar.xz"
  local file = io.open(archive)
  if not file then return end
  file:close()
  local command = "test -f %s/unpacked || (mkdir -p %s && tar -xJf %s -C %s && touch %s/unpacked)"
  assert(os.execute(command:format(folder, folder, archive, folder, folder)),
    "tar could not unpack " .. archive)
  local list, pipe = {}, assert(io.popen(("find %s -name input.relay | sort"):format(folder)))
  for path in pipe:lines() do list[#list + 1] = path:match "(.*)/" end
  pipe:close()
  return list
end

-- Names of lifted functions by the order in which they are referred to, from
-- the others on.
local function number_lifted(text)
  local bodies, names, todo, n = {}, {}, {}, 0
  for name, body in text:gmatch "def @([%w_]+)(.-)\n}" do bodies[name] = body end
  for name in pairs(bodies) do
    if not name:match "^lifted_name" then todo[#todo + 1] = name end
  end
  table.sort(todo)
  local i = 1
  while todo[i] do
    for name in bodies[todo[i]]:gmatch "@(lifted_name%d+)" do
      if not names[name] then
        n = n + 1
        names[name], todo[#todo + 1] = "lifted" .. n, name
      end
    end
    i = i + 1
  end
  return (text:gsub("lifted_name%d+", names))
end

-- Variables by the order of appearance, without types: constants over 1 KiB
-- are equal by place only, their text is compared.
local function number_variables(text)
  local names, n = {}, 0
  return (text:gsub(" /%*.-%*/", ""):gsub("%%[%w_]+", function(name)
    if not names[name] then
      n = n + 1
      names[name] = "%v" .. n
    end
    return names[name]
  end):gsub("(let %%v%d+): [^=]+ =", "%1 ="))
end

local function infer(mod)
  local ok, typed = pcall(pl.passes.InferType(), mod)
  return ok and typed or mod
end

local function is_same(case, got, text)
  if case == "LambdaLift" then
    got, text = assert(pl.parse(number_lifted(tostring(got)))), number_lifted(text)
  end
  local expected = pl.parse(text)
  if not expected then return false end
  got, expected = infer(got), infer(expected)
  return pl.equal(got, expected) or
    number_variables(tostring(got)) == number_variables(tostring(expected))
end

local function try(case, dir)
  local name = dir:match "[^/]+$"
  local text = read(("%s/%s.typed.relay"):format(dir, case[1]))
    or read(("%s/%s.relay"):format(dir, case[1]))
  if not text then return end
  local mod = assert(pl.parse(assert(read(dir .. "/input.relay"))))
  local context = pl.context { opt_level = 3, config = case[3] }
  local scope <close> = context:enter() -- luacheck: ignore scope
  local got = pl.pipeline(case[2] or case[1])(mod)
  assert(pl.verify(got))
  local listed = exceptions[case[1]] and exceptions[case[1]][name]
  local same = is_same(case[1], got, text)
  if same and listed then error(("%s of %s is equal: it is no exception"):format(case[1], name)) end
  if not same and not listed then error(("%s of %s differs"):format(case[1], name)) end
  return true, listed
end

describe("TVM's results", function()
  local dirs = unpack_archive()
  if not dirs then
    pending "the archive of TVM's results is not there"
    return
  end
  for _, case in ipairs(cases) do
    it("of " .. case[1], function()
      local n, listed = 0, 0
      for _, dir in ipairs(dirs) do
        local held, exception = try(case, dir)
        n, listed = n + (held and 1 or 0), listed + (exception and 1 or 0)
      end
      print(("%s: %d of %d modules are equal"):format(case[1], n - listed, n))
      assert.is_true(n > 70)
    end)
  end
end)
