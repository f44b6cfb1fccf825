-- What TVM 0.14's passes make of some ninety modules: the archive beside the
-- project ($PERILUNE_SHARED). Results are structurally equal once their types
-- are inferred. What is not is listed with its reason and the functions that
-- differ, no others. Passes that are not compared yet are listed too.

local pl = require "perilune"

local build = os.getenv "PERILUNE_BUILD" or "build"
local shared = os.getenv "PERILUNE_SHARED" or "../shared"
local folder = build .. "/pass-oracle"

local global = "calls of a global stay that; TVM makes them calls of a variable bound to it before"
local formed = "functions in the form stay as they are; TVM binds the value of each let once more"
local effects = "effects whose values nobody uses stay; TVM drops them"
local unread = "TVM puts the maker of a closure for the closure, which is ill-typed"
local arms = "TVM shares a value between arms of a Match that only one of them computes"
local projected = "a projection of a tuple that is made here goes; TVM leaves it to FoldConstant"
local computed_twice = "TVM makes two nodes of one that is used inside and outside of a branch"
local fewer = "fewer calls than TVM leaves"
local ANY = "any function may differ"

local shared_arms = { adt_lstm_foldl_list = { arms, ANY }, adt_prelude = { arms, ANY },
  adt_std_nat_rly = { arms, ANY } }

-- Functions by name; formed: those that came in the form.
local exceptions = {
  ToANormalForm = { inline_all = { global, "main" }, adt_lstm_foldl_list = { formed },
    adt_prelude = { formed }, adt_std_nat_rly = { formed } },
  ToGraphNormalForm = { dce_effects = { effects, "main" } },
  ToBasicBlockNormalForm = { inline_all = { global, "main" } },
  LambdaLift = { adt_lstm_foldl_list = { unread, "rev" }, adt_prelude = { unread, "rev" },
    adt_std_nat_rly = { unread, "nat_iterate", "rev" }, adt_std_prelude_rly = { unread, "rev" } },
  EliminateCommonSubexpr = shared_arms,
  ["EliminateCommonSubexpr.fskip_add"] = shared_arms,
  ["EliminateCommonSubexpr.fskip_cast"] = shared_arms,
  SimplifyExpr = { anf_if = { computed_twice, "main" }, anf_nested = { projected, "main" },
    fold_not_random = { fewer, "main" }, simp_clip_cast = { fewer, "main" },
    simp_squeeze_expand = { fewer, "main" } },
  FuseOps_then_ToANF = { inline_all = { global, "main" } },
  ToANF_then_ToGNF = { dce_effects = { effects, "main" } },
  ToANF_then_DCE = { inline_all = { global, "main" } },
}

-- Text repeats a constant that a module shares; here it is shared again.
local sharing = {
  cse_simple = function(text)
    return (text:gsub("%%0 = ", "%%8 = 1f;\n  %%0 = ", 1):gsub("1f /%* ty=float32 %*/", "%%8", 2))
  end,
}

-- A pass that leaves calls of an operator alone.
local function skipping(name)
  return function()
    return pl.passes.EliminateCommonSubexpr { fskip = function(node)
      return node.kind == "Call" and node.op ~= nil and node.op.name == name
    end }
  end
end

-- The name of the results, the pipeline (or a function that makes it), and the config.
local cases = {
  { "DeadCodeElimination" },
  { "DeadCodeElimination.inline_once", "DeadCodeElimination{inline_once=true}" },
  { "DeadCodeElimination.ignore_impurity", "DeadCodeElimination{ignore_impurity=true}" },
  { "DeadCodeElimination.both",
    "DeadCodeElimination{inline_once=true, ignore_impurity=true}" },
  { "EliminateCommonSubexpr" },
  { "EliminateCommonSubexpr.fskip_add", skipping "add" },
  { "EliminateCommonSubexpr.fskip_cast", skipping "cast" },
  { "FoldConstant", 'FoldConstant{fold="all"}' },
  { "FoldConstant.fold_qnn", 'FoldConstant{fold="all", fold_qnn=true}' },
  { "SimplifyExpr" }, { "InferType" },
  { "BackwardFoldScaleAxis" }, { "ForwardFoldScaleAxis" }, { "FoldScaleAxis" },
  { "CanonicalizeCast" }, { "CanonicalizeOps" }, { "DynamicToStatic" }, { "FastMath" },
  { "FlattenAtrousConv" }, { "FoldExplicitPadding" }, { "RemoveUnusedFunctions" },
  { "RemoveUnusedFunctions.entry_f", 'RemoveUnusedFunctions{entry_functions=["f", "main"]}',
    least = 1 },
  { "SimplifyInference" }, { "to_cps", "ToCPS", least = 50 },
  { "to_cps_un_cps", "ToCPS,UnCPS", least = 50 },
  { "ToANF_then_DCE", "ToANormalForm,DeadCodeElimination" },
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

-- Results of the archive that nothing above is compared with. A pass that lands
-- moves from here to the cases.
local missing = [[
AlterOpLayout AlterOpLayout.cascadelake AnnotateTarget AnnotateTarget.calls_only BatchingOps
CapturePostDfsIndexInSpans CombineParallelBatchMatmul.2 CombineParallelBatchMatmul.3
CombineParallelConv2D.2 CombineParallelConv2D.3 CombineParallelDense.2_batch
CombineParallelDense.2_flat CombineParallelDense.3_batch ConvertLayout.NCHW
ConvertLayout.NCHW_OIHW ConvertLayout.NHWC ConvertLayout.NHWC_pool Defunctionalization
DivToMul FakeQuantizationToInteger FirstOrderGradient FoldScaleAxis_after_SimplifyInference
LazyGradientInit Legalize Legalize.cascadelake Legalize.qnn_canonicalize Legalize.qnn_legalize
ManifestLifetimes MergeCompilerRegions MergeComposite MergeComposite.checked
MergeComposite.reversed MergeComposite_then_Partition PartialEvaluate PartialEvaluate_then_DCE
PartitionGraph PartitionGraph.mod_name PartitionGraph.no_merge PartitionGraph.plain
SplitArgs.5 SplitArgs.8 ToMixedPrecision.bfloat16 ToMixedPrecision.float16
ToMixedPrecision.keep_orig gradient.higher_order gradient_then_pe pipeline.O0 pipeline.O1
pipeline.O2 pipeline.O3 relay.optimize.O3
]]

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

-- Bodies of functions by name. Names of lifted functions are by the order in
-- which they are referred to, from the others on.
local function split(text)
  local bodies, names, todo, n = {}, {}, {}, 0
  for name, body in text:gmatch "def @([%w_]+)(.-)\n}" do
    bodies[name] = body
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
  local out = {}
  for name, body in pairs(bodies) do
    out[names[name] or name] = body:gsub("lifted_name%d+", names)
  end
  return out
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

-- Of programs that are equal but for the elements of constants.
local function compute_the_same(got, expected)
  local ok, same, diag = pcall(pl.check, got, expected, { rounds = 1 })
  if ok then assert(same, tostring(diag)) end
end

-- Names of the functions that are not the same, in order.
local function differences(got, text)
  local expected = pl.parse(text)
  got, expected = infer(got), expected and infer(expected)
  if expected and pl.equal(got, expected, { contents = true }) then return {} end
  local list, ours = {}, split(tostring(got))
  local theirs = split(expected and tostring(expected) or text)
  for name, body in pairs(ours) do
    if not theirs[name] or number_variables(body) ~= number_variables(theirs[name]) then
      list[#list + 1] = name
    end
  end
  for name in pairs(theirs) do if not ours[name] then list[#list + 1] = name end end
  table.sort(list)
  if #list == 0 and expected then compute_the_same(got, expected) end
  return list
end

-- Of the functions that differ, what came in the form and left as it came.
local function not_formed(list, mod, got)
  local rest = {}
  for _, name in ipairs(list) do
    if mod.functions[name] ~= got.functions[name] then rest[#rest + 1] = name end
  end
  return rest
end

local function try(case, dir)
  local name = dir:match "[^/]+$"
  local text = read(("%s/%s.typed.relay"):format(dir, case[1]))
    or read(("%s/%s.relay"):format(dir, case[1]))
  if not text then return end
  local input = assert(read(dir .. "/input.relay"))
  local mod = assert(pl.parse(sharing[name] and sharing[name](input) or input))
  local context = pl.context { opt_level = 3, config = case[3] }
  local scope <close> = context:enter() -- luacheck: ignore scope
  local pipeline = case[2] or pl.passes[case[1]]
  local got = (type(pipeline) == "string" and pl.pipeline(pipeline) or pipeline())(mod)
  assert(pl.verify(got))
  local listed = exceptions[case[1]] and exceptions[case[1]][name]
  local differ = differences(got, text)
  if listed and #differ == 0 then
    error(("%s of %s is equal: it is no exception"):format(case[1], name))
  end
  if listed and listed[1] == formed then differ = not_formed(differ, mod, got) end
  if listed and listed[2] == ANY then return true, listed end
  assert.same({ table.unpack(listed or {}, 2) }, differ, ("%s of %s"):format(case[1], name))
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
      assert.is_true(n >= (case.least or 60))
    end)
  end

  it("are all compared, or listed as missing", function()
    local left, known = {}, {}
    for _, case in ipairs(cases) do known[case[1]] = "a case" end
    for name in missing:gmatch "%S+" do
      assert.is_nil(known[name], name .. " is listed twice")
      known[name] = "missing"
    end
    for path in assert(io.popen(("find %s -name '*.json'"):format(folder))):lines() do
      local name = path:match "([^/]+)%.json$"
      if not known[name] then left[name] = true end
    end
    assert.same({}, left)
  end)
end)
