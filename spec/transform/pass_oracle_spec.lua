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
local matched_twice = "TVM matches a value that is used inside and outside of a branch twice"
local projected_twice = "TVM makes two nodes of a tuple whose fields are used"
local by_zero = "TVM divides what is added by a scale that may be zero"
local splat = "a constant of equal elements becomes a scalar"
local rounding = "the last bits of what is computed"
local one_element = "TVM reads one element of a constant that has more"
local ones = "TVM makes ones of zeros_like"
local order = "functions that call each other are inlined in another order"
local nested = "TVM does not visit the operands of a concatenate that it splits"
local number = "TVM's constructor '1' reads as a number"
local digits = "text has six digits of a scalar"
local meta_type = { eta_constructor = { "TVM prints a type that it cannot read", "main" } }
local ANY, VALUES = "any function may differ", "elements of constants"

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
    simp_clip_cast = { fewer, "main" }, simp_squeeze_expand = { fewer, "main" } },
  FoldConstant = { pe_const_arith = { fewer, "main" } },
  ["FoldConstant.fold_qnn"] = { pe_const_arith = { fewer, "main" } },
  FuseOps_then_ToANF = { inline_all = { global, "main" } },
  ToANF_then_ToGNF = { dce_effects = { effects, "main" } },
  ToANF_then_DCE = { inline_all = { global, "main" } },
  Defunctionalization = { adt_list_sum = { number, "main" } },
  DivToMul = { fold_binary_all = { one_element, VALUES },
    transformer_block = { digits, "main" } },
  ["ToMixedPrecision.bfloat16"] = meta_type, ["ToMixedPrecision.float16"] = meta_type,
  ["ToMixedPrecision.keep_orig"] = meta_type,
  FoldScaleAxis_after_SimplifyInference = { resnet18_cifar = { by_zero, "main" } },
  LazyGradientInit = { simp_full_elementwise = { ones, "main" } },
  MergeComposite = { anf_if = { matched_twice, "main" } },
  ["MergeComposite.reversed"] = { anf_if = { matched_twice, "main" } },
  MergeComposite_then_Partition = { anf_if = { matched_twice, "main",
    "tvmgen_default_t_main_0", "tvmgen_default_t_main_1" } },
  PartialEvaluate = { fold_unary_all = { rounding, "main" } },
  PartialEvaluate_then_DCE = { unused_functions = { order, "a", "b" } },
  ["SplitArgs.5"] = { inception_v3 = { nested, "main" } },
  ["pipeline.O0"] = { anf_if = { computed_twice, "main" }, anf_nested = { projected, "main" },
    simp_clip_cast = { fewer, "main" }, simp_squeeze_expand = { fewer, "main" } },
  ["pipeline.O1"] = { anf_nested = { projected, "main" }, inline_all = { global, "main" },
    simp_clip_cast = { fewer, "main" }, simp_squeeze_expand = { fewer, "main" } },
  ["pipeline.O2"] = { inline_all = { global, "main" }, simp_clip_cast = { fewer, "main" },
    simp_full_elementwise = { splat, "main" }, simp_squeeze_expand = { fewer, "main" } },
  ["pipeline.O3"] = { cse_simple = { fewer, "main" }, cse_tuple_get = { projected_twice, "main" },
    inline_all = { global, "main" }, simp_clip_cast = { fewer, "main" },
    simp_full_elementwise = { splat, "main" }, simp_squeeze_expand = { fewer, "main" },
    resnet18_cifar = { by_zero, "main" } },
  ["relay.optimize.O3"] = { cse_simple = { fewer, "main" }, cse_tuple_get = { fewer, "main" },
    fakeq = { fewer, "main" }, simp_clip_cast = { fewer, "main" },
    simp_full_elementwise = { splat, "main" }, simp_squeeze_expand = { fewer, "main" },
    resnet18_cifar = { by_zero, "main" } },
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

-- Operators that a compiler takes, for the passes that annotate.
local byoc = { "nn.conv2d", "nn.bias_add", "nn.relu", "add", "nn.dense" }
local annotate = 'AnnotateTarget{targets=["testbyoc"]}'
local merge_and_annotate = annotate .. ",MergeCompilerRegions,"

-- Patterns of the compiler `t`, in order, for MergeComposite.
local patterns = {
  { "t.conv2d_bias_relu", "nn.relu(nn.bias_add(nn.conv2d(*, *), *))" },
  { "t.conv2d_bias", "nn.bias_add(nn.conv2d(*, *), *)" },
  { "t.add_sub_mul", "multiply(add(*, *), subtract(*, *))" },
  { "t.mul_relu", "nn.relu(multiply(*, *))" },
  { "t.dense_bias", "nn.bias_add(nn.dense(*, *), *)" },
  { "t.exp_add", "add(exp(*), *)" },
}
local reversed = {}
for i, row in ipairs(patterns) do reversed[#patterns + 1 - i] = row end
local checked = { { "t.conv2d_bias_relu", "nn.relu(nn.bias_add(nn.conv2d(*, *), *))",
  "check: groups == 1 and data_layout == NHWC" } }

local function merge_composite(table)
  return function() return pl.passes.MergeComposite { pattern_table = table } end
end

local function merge_and_partition()
  return pl.sequential { pl.passes.MergeComposite { pattern_table = patterns },
    pl.pipeline('AnnotateTarget{targets=["t"]},MergeCompilerRegions,PartitionGraph') }
end

local prefix = "RemoveUnusedFunctions,ToBasicBlockNormalForm,SimplifyInference,"
  .. "EliminateCommonSubexpr,CombineParallelConv2D,CombineParallelDense,"
  .. 'CombineParallelBatchMatmul,FoldConstant{fold="all",fold_calls=false},FoldScaleAxis,'
  .. 'SimplifyExpr,CanonicalizeCast,CanonicalizeOps,FlattenAtrousConv,'
  .. 'FoldConstant{fold="all",fold_calls=false},FuseOps'

-- The name of the results, the pipeline (or a function that makes it), and the config.
-- spans: the texts are equal, with the spans in comments. without: a pattern of attributes that
-- are not compared. unbound: TVM prints some results with variables that it does not bind, which
-- have no meaning.
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
  { "AlterOpLayout", target = "llvm" },
  { "AlterOpLayout.cascadelake", "AlterOpLayout", target = "llvm -mcpu=cascadelake" },
  { "AnnotateTarget", annotate },
  { "AnnotateTarget.calls_only",
    'AnnotateTarget{targets=["testbyoc"], include_non_call_ops=false}' },
  { "MergeCompilerRegions", annotate .. ",MergeCompilerRegions" },
  { "PartitionGraph.plain", "PartitionGraph" },
  { "PartitionGraph", merge_and_annotate .. "PartitionGraph" },
  { "PartitionGraph.mod_name",
    merge_and_annotate .. 'PartitionGraph{mod_name="unit", bind_constants=false}' },
  { "PartitionGraph.no_merge", annotate .. ",PartitionGraph" },
  { "MergeComposite", merge_composite(patterns) },
  { "MergeComposite.reversed", merge_composite(reversed) },
  { "MergeComposite.checked", merge_composite(checked) },
  { "MergeComposite_then_Partition", merge_and_partition },
  { "BatchingOps" },
  { "CombineParallelBatchMatmul.2", "CombineParallelBatchMatmul{min_num_branches=2}" },
  { "CombineParallelBatchMatmul.3", "CombineParallelBatchMatmul" },
  { "CombineParallelConv2D.2", "CombineParallelConv2D{min_num_branches=2}" },
  { "CombineParallelConv2D.3", "CombineParallelConv2D" },
  { "CombineParallelDense.2_batch", "CombineParallelDense{min_num_branches=2}" },
  { "CombineParallelDense.2_flat",
    "CombineParallelDense{min_num_branches=2, to_batch=false}" },
  { "CombineParallelDense.3_batch", "CombineParallelDense" },
  { "ConvertLayout.NCHW", 'ConvertLayout{desired_layouts={nn.conv2d=["NCHW","default"]}}' },
  { "ConvertLayout.NCHW_OIHW", 'ConvertLayout{desired_layouts={nn.conv2d=["NCHW","OIHW"], '
    .. 'nn.conv2d_transpose=["NCHW","default"]}}' },
  { "ConvertLayout.NHWC", 'ConvertLayout{desired_layouts={nn.conv2d=["NHWC","default"]}}' },
  { "ConvertLayout.NHWC_pool", 'ConvertLayout{desired_layouts={nn.conv2d=["NHWC","HWIO"], '
    .. 'nn.max_pool2d=["NHWC"]}}' },
  { "Defunctionalization" },
  { "DivToMul" }, { "FakeQuantizationToInteger" },
  { "FoldScaleAxis_after_SimplifyInference",
    'SimplifyInference,FoldConstant{fold="all",fold_calls=false},FoldScaleAxis,'
    .. 'FoldConstant{fold="all",fold_calls=false}' },
  { "LazyGradientInit", least = 45 }, { "FirstOrderGradient", least = 30 },
  { "Legalize", target = "llvm" },
  { "Legalize.cascadelake", "Legalize", target = "llvm -mcpu=cascadelake" },
  { "Legalize.qnn_canonicalize", "qnn.CanonicalizeOps", target = "llvm" },
  { "Legalize.qnn_legalize", "qnn.Legalize", target = "llvm" },
  { "ManifestLifetimes" }, { "PartialEvaluate", least = 55 },
  { "PartialEvaluate_then_DCE",
    "PartialEvaluate,DeadCodeElimination{inline_once=true, ignore_impurity=true}", least = 55 },
  { "SplitArgs.5", "SplitArgs{max_function_args=5}" },
  { "SplitArgs.8", "SplitArgs{max_function_args=8}" },
  { "ToMixedPrecision.bfloat16", 'ToMixedPrecision{mixed_precision_type="bfloat16"}' },
  { "ToMixedPrecision.float16", 'ToMixedPrecision{mixed_precision_type="float16"}' },
  { "ToMixedPrecision.keep_orig", 'ToMixedPrecision{mixed_precision_type="float16"}',
    { ["relay.ToMixedPrecision.keep_orig_output_dtype"] = true } },
  { "gradient.higher_order", 'Gradient{mode="higher_order"}', least = 10, unbound = true },
  { "gradient_then_pe", "Gradient,PartialEvaluate,"
    .. "DeadCodeElimination{inline_once=true, ignore_impurity=true}", least = 25 },
  { "pipeline.O0", prefix, level = 0 }, { "pipeline.O1", prefix, level = 1 },
  { "pipeline.O2", prefix, level = 2 }, { "pipeline.O3", prefix },
  { "CapturePostDfsIndexInSpans", spans = true },
  -- The digits of TVM's hashes are its own.
  { "relay.optimize.O3", "relay.optimize", without = '%f[%w]hash="%x+"', target = "llvm" },
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

-- Of programs that are equal but for the elements of constants; those that cannot be run
-- are taken to be.
local function compute_the_same(got, expected)
  local ok, same, diag = pcall(pl.check, got, expected, { rounds = 1 })
  return not ok or same or tostring(diag):find "no argument can be made" ~= nil
end

-- Of a result that is one function: "main" if it is not the same.
local function function_difference(mod, got, text)
  local expected = pl.parse_expr((text:gsub("^%s*#%b[]", "")), { init_module = mod })
  return expected and pl.equal(got.main, expected, { contents = true }) and {} or { "main" }
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
  if #list == 0 and expected and not compute_the_same(got, expected) then return { VALUES } end
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

-- The functions with the spans in their comments, without constants.
local function without_metadata(text)
  return (text:gsub("%s*#%[metadata%].*", ""):gsub("%s*$", ""))
end

-- The module without such attributes of functions.
local function drop(mod, pattern)
  local text = mod:text():gsub(", " .. pattern, ""):gsub(pattern .. ",? ?", "")
  return assert(pl.parse(text))
end

local function has_unbound_variables(text)
  local _, diag = pl.parse(text)
  return diag ~= nil and diag.message:find("no variable is called", 1, true) ~= nil
end

-- A pass alone is called, whatever its level is.
local function made(pipeline)
  if type(pipeline) ~= "string" then return pipeline() end
  local sequence = pl.pipeline(pipeline)
  return #sequence.passes == 1 and sequence.passes[1] or sequence
end

local function try(case, dir)
  local name = dir:match "[^/]+$"
  local facts = read(("%s/%s.json"):format(dir, case[1]))
  local listed = exceptions[case[1]] and exceptions[case[1]][name]
  if facts and facts:find '"output_ill_typed": "' and not listed then return end
  local text = read(("%s/%s.typed.relay"):format(dir, case[1]))
    or read(("%s/%s.relay"):format(dir, case[1]))
  if not text or case.unbound and has_unbound_variables(text) then return end
  local input = assert(read(dir .. "/input.relay"))
  local mod = assert(pl.parse(sharing[name] and sharing[name](input) or input))
  local context = pl.context { opt_level = case.level or 3, config = case[3],
    target = case.target }
  local scope <close> = context:enter() -- luacheck: ignore scope
  local got = made(case[2] or pl.passes[case[1]])(mod)
  assert(pl.verify(got))
  if case.without then
    got, text = drop(got, case.without), drop(assert(pl.parse(text)), case.without):text()
  end
  local one = text:match "^%s*#%b[]%s*fn " and mod.functions.main
  local differ = one and function_difference(mod, got, text) or differences(got, text)
  if case.spans then assert.equal(without_metadata(text), without_metadata(tostring(got))) end
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
  for _, name in ipairs(byoc) do pl.op_attr(name, "target.testbyoc", true) end
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

  it("are all compared", function()
    local left, known = {}, {}
    for _, case in ipairs(cases) do known[case[1]] = true end
    for path in assert(io.popen(("find %s -name '*.json'"):format(folder))):lines() do
      local name = path:match "([^/]+)%.json$"
      if not known[name] then left[name] = true end
    end
    assert.same({}, left)
  end)
end)
