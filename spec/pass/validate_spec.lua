-- pl.validate and pl.pass_properties: what a pipeline requires and undoes is told before it runs,
-- and what passes are said to provide is what they do provide.

local pl = require "perilune"

local function program()
  local x = pl.var("x", "Tensor[(4, 8), float32]")
  local y = pl.op.nn.relu(pl.op.tanh(x))
  return pl.module { main = pl.func({ x }, pl.op.add(y, y)) }
end

-- A value that only branches use: it has no place of its own outside of normal forms.
local function branching()
  local x, c = pl.var("x", "Tensor[(4, 8), float32]"), pl.var("c", "Tensor[(), bool]")
  local y = pl.op.tanh(x)
  return program():with { branch = pl.func({ c, x }, pl.if_(c, pl.op.nn.relu(y), y)) }
end

local function findings(text, mod)
  local ok, list = pl.validate(text, mod)
  if ok then return "" end
  assert.is_nil(ok)
  return table.concat(list, "\n")
end

describe("pl.validate", function()
  it("finds nothing where there is nothing", function()
    assert.is_true(pl.validate(pl.pipelines.default))
    assert.is_true(pl.validate "MergeComposite,AnnotateTarget,MergeCompilerRegions,PartitionGraph")
    assert.is_true(pl.validate "SimplifyInference,ForwardFoldScaleAxis,FuseOps")
    assert.is_true(pl.validate(pl.passes.FuseOps()))
  end)

  it("tells what is required and not provided", function()
    assert.equal("PartitionGraph (element 1): nothing before it provides 'annotated', which it "
      .. "requires\nAnnotateTarget (element 2): it must not come after PartitionGraph (element 1)",
      findings "PartitionGraph,AnnotateTarget")
    assert.equal("MergeCompilerRegions (element 3): it requires 'annotated', which PartitionGraph "
      .. "(element 2) destroys", findings "AnnotateTarget,PartitionGraph,MergeCompilerRegions")
  end)

  it("tells what undoes an earlier element, by its place", function()
    assert.equal("DefuseOps (element 2.1): it undoes FuseOps (element 1)",
      findings "FuseOps,fixpoint(2){DefuseOps}")
    assert(findings "ToANormalForm,ToGraphNormalForm":find "undoes ToANormalForm")
    assert.equal("CombineParallelDense (element 2): it must not come after FuseOps (element 1)",
      findings "FuseOps,CombineParallelDense")
  end)

  it("tells a layout that takes another one back", function()
    local function layouts(op, layout)
      return ('ConvertLayout{desired_layouts={"%s"=["%s","default"]}}'):format(op, layout)
    end
    local function validate(a, b) return pl.validate(a .. ",SimplifyExpr," .. b) end
    local ok, found = validate(layouts("nn.conv2d", "NHWC"), layouts("nn.conv2d", "NCHW"))
    assert.is_nil(ok)
    assert.same({ "ConvertLayout (element 3): it undoes ConvertLayout (element 1)" }, found)
    assert.is_true(validate(layouts("nn.conv2d", "NHWC"), layouts("nn.conv2d", "NHWC")))
    assert.is_true(validate(layouts("nn.conv2d", "NHWC"), layouts("nn.max_pool2d", "NCHW")))
    assert.is_true(pl.validate "ConvertLayout,ConvertLayout")
  end)

  it("knows what the program has", function()
    assert(findings "ForwardFoldScaleAxis" :find "'inference'")
    assert.equal("", findings("ForwardFoldScaleAxis", program()))
  end)

  it("takes what scripts say of their passes", function()
    pl.passes.ValidateSpecPass = { kind = "function", run = function(fn) return fn end }
    pl.pass_properties.ValidateSpecPass = { requires = { "blocked" } }
    assert(findings "ValidateSpecPass":find "'blocked'")
    pl.pass_properties.ValidateSpecPass = nil
    assert.equal("", findings "ValidateSpecPass")
    assert.has_error(function() pl.pass_properties.X = { needs = {} } end)
    assert.has_error(function() pl.pass_properties.X = { requires = "fused" } end)
    assert.has_error(function() pl.pass_properties.X = { requires = { 1 } } end)
    assert.has_error(function() pl.validate(1) end)
    assert.has_error(function() pl.validate("FuseOps", 1) end)
    assert.has_error(function() pl.validate "NoSuchPass" end)
  end)

  it("sees the properties of a program that passes provide and destroy", function()
    local mod, seen = branching(), 0
    local _ <close> = pl.context { opt_level = 4 }:enter()
    for name, row in pairs(pl.pass_properties) do
      if name == "FuseOps" or name:find "^To" or name == "SimplifyInference" then
        local after = pl.validate(pl.passes[name]()(mod))
        for _, property in ipairs(row.provides or {}) do
          if after[property] ~= nil then
            seen = seen + 1
            assert.is_true(after[property], name .. " provides " .. property)
          end
        end
        for _, property in ipairs(row.destroys or {}) do
          if after[property] ~= nil then
            seen = seen + 1
            assert.is_false(after[property], name .. " destroys " .. property)
          end
        end
      end
    end
    assert.is_true(seen >= 5, tostring(seen))
    local fused = pl.passes.FuseOps()(mod)
    assert.is_false(pl.validate(pl.passes.DefuseOps()(fused)).fused)
  end)

  it("names passes that there are", function()
    for name, row in pairs(pl.pass_properties) do
      assert(pl.passes[name], name)
      for _, field in ipairs { "undoes", "before" } do
        for _, other in ipairs(row[field] or {}) do assert(pl.passes[other], other) end
      end
    end
  end)
end)
