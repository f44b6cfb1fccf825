--- pl.validate: what can be said of a pipeline, or of a program, before anything runs.
--
--     local ok, findings = pl.validate(pl.pipeline "PartitionGraph,AnnotateTarget")
--     for _, finding in ipairs(findings or {}) do print(finding) end
--         PartitionGraph (element 1): nothing before it provides 'annotated', which it requires
--     pl.validate(mod)     -- { ["graph normal form"] = true, fused = false, ... }
--
--     pl.validate("FirstOrderGradient", mod)
--         FirstOrderGradient (element 1): it does not handle the feature 'let', which the program
--         uses
--
-- What passes require, provide, destroy, undo and handle is in pl.pass_properties; what passes of
-- scripts handle, in the passes themselves.

local argument = require "perilune.argument"
local core = require "perilune.core"
local properties = require "perilune.pass.properties"
local features = require "perilune.ir.analysis".features
local visitor = require "perilune.ir.visitor"
core.internal()

-- -------------------------------------------------------------------- programs

local training = { ["nn.dropout"] = true, ["nn.batch_norm"] = true }

-- What a function's nodes say.
local function scan(fn, found)
  visitor.post_order(fn, function(node)
    if node.kind == "Let" then found.let = true end
    if node.op then
      found.training = found.training or training[node.op.name]
      found.annotated = found.annotated or node.op.name:find "^annotation%.compiler_" ~= nil
    end
    if node.kind == "Function" and node.attrs and node.attrs.Primitive then found.fused = true end
  end)
  if fn.attrs and fn.attrs.Compiler then found.partitioned = true end
end

-- Which properties a module has, of those that can be seen in it.
local function of_module(mod)
  local found, blocks = {}, true
  for _, fn in pairs(mod) do
    if fn.kind == "Function" then
      scan(fn, found)
      blocks = blocks and core.basic_blocks(fn)
    end
  end
  return {
    ["graph normal form"] = not found.let,
    ["basic block normal form"] = blocks and true or false,
    fused = found.fused or false,
    annotated = found.annotated or false,
    partitioned = found.partitioned or false,
    inference = not found.training,
  }
end

-- ------------------------------------------------------------------- pipelines

-- Primitive passes in the order in which they run, each with its place ("2.1").
local function elements_of(pass, place, list)
  if pass.form == "primitive" then
    list[#list + 1] = { name = pass.name, place = place, source = pass.source,
      handles = pass.handles, skips = pass.skips_unhandled, options = pass.options }
    return list
  end
  for i, element in ipairs(pass.passes) do
    elements_of(element, place == "" and tostring(i) or ("%s.%d"):format(place, i), list)
  end
  return list
end

local function add(state, element, format, ...)
  local text = ("%s (element %s): "):format(element.name, element.place) .. format:format(...)
  state.findings[#state.findings + 1] = text
end

local function check_required(state, element, row)
  for _, property in ipairs(row.requires or {}) do
    local by = state.destroyed[property]
    if by then
      add(state, element, "it requires '%s', which %s (element %s) destroys", property, by.name,
        by.place)
    elseif not state.present[property] then
      add(state, element, "nothing before it provides '%s', which it requires", property)
    end
  end
end

local function check_order(state, element, row)
  for _, other in ipairs(row.before or {}) do
    local earlier = state.ran[other]
    if earlier then
      add(state, element, "it must not come after %s (element %s)", other, earlier.place)
    end
  end
end

-- Whether an element asks for another layout of an operator than an earlier one did.
local function changes_layouts(element, earlier)
  local before = earlier.options.desired_layouts or {}
  for name, layouts in pairs(element.options.desired_layouts or {}) do
    if before[name] and before[name][1] ~= layouts[1] then return true end
  end
  return false
end

local function check_undone(state, element, row)
  for _, other in ipairs(row.undoes or {}) do
    local earlier = state.ran[other]
    local undoes = other ~= element.name or earlier and changes_layouts(element, earlier)
    if earlier and undoes and not state.undone[other] then
      add(state, element, "it undoes %s (element %s)", other, earlier.place)
      state.undone[other] = true
    end
  end
end

-- Features are properties that a program has, or that an earlier element provides.
local function check_features(state, element, row)
  local handled, list = {}, element.handles or row.handles
  if not list then return end
  for _, feature in ipairs(list) do handled[feature] = true end
  for _, feature in ipairs(core.feature_names()) do
    local by = state.provided[feature]
    if state.present[feature] and not handled[feature] then
      add(state, element, "it %s '%s', which %s", element.skips
        and "skips programs with the feature" or "does not handle the feature", feature,
        by and ("%s (element %s) provides"):format(by.name, by.place) or "the program uses")
    end
  end
end

-- What the program may have no more. A script's pass of which nothing is said may do anything.
local function removed_features(element, row)
  if element.source and not properties[element.name] then return core.feature_names() end
  return row.removes or {}
end

local function run_element(state, element)
  local row = properties[element.name] or {}
  check_features(state, element, row)
  check_required(state, element, row)
  check_order(state, element, row)
  check_undone(state, element, row)
  for _, property in ipairs(row.destroys or {}) do
    if state.present[property] then state.destroyed[property] = element end
    state.present[property] = nil
  end
  for _, feature in ipairs(removed_features(element, row)) do state.present[feature] = nil end
  for _, property in ipairs(row.provides or {}) do
    state.present[property], state.destroyed[property] = true, nil
    state.provided[property] = state.provided[property] or element
  end
  state.ran[element.name], state.undone[element.name] = element, nil
end

local function of_pass(pass, mod)
  local state = { findings = {}, present = {}, provided = {}, destroyed = {}, ran = {},
    undone = {} }
  for property, has in pairs(mod and of_module(mod) or {}) do
    state.present[property] = has or nil
  end
  for feature in pairs(mod and features(mod) or {}) do state.present[feature] = true end
  for _, element in ipairs(elements_of(pass, "", {})) do run_element(state, element) end
  if #state.findings == 0 then return true end
  return nil, state.findings
end

--- Of a module: which properties it has, a table by name. Of a pass or the text of a pipeline:
-- true; nil and a list of texts: what elements require and nothing provides, what comes too late,
-- what undoes an earlier element, which features elements do not handle. `mod`: the program that
-- it is for, whose properties and features count.
return function(x, mod)
  local kind = argument.kind_of(x)
  if mod ~= nil and argument.kind_of(mod) ~= "Module" then
    argument.fail("pl.validate: mod: a module expected, got " .. argument.kind_of(mod))
  end
  if kind == "Module" then return of_module(x) end
  if kind == "string" then x, kind = core.pipeline(x), "Pass" end
  if kind ~= "Pass" then
    argument.fail("pl.validate: a module, a pass or the text of a pipeline expected, got " .. kind)
  end
  return of_pass(x, mod)
end
