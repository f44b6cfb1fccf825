--- The space of combining parallel operators: for each kind of operator not at all, or from so many
-- branches on. The text of a point is a pipeline.

local analysis = require "perilune.ir.analysis"
local argument = require "perilune.argument"
local choice_space = require "perilune.tune.search.choice_space"
require "perilune.core".internal() -- errors name the scripts of others

local space = {}

local methods = {}

local branches = { 2, 3, 4, 6, 8 }

-- Passes with the operators that they combine and the options that they are tried with.
local rows = {
  { pass = "CombineParallelConv2D", operators = { "nn.conv2d" }, options = { "" } },
  { pass = "CombineParallelDense", operators = { "nn.dense" },
    options = { ",to_batch=true", ",to_batch=false" } },
  { pass = "CombineParallelBatchMatmul", operators = { "nn.batch_matmul" }, options = { "" } },
  { pass = "CombineParallelOps", operators = { "nn.conv", "nn.gemm", "nn.matmul" },
    options = {} },
}

-- Texts of a pass, "" for none.
local function choices_of(row)
  local list = { "" }
  for _, options in ipairs(row.options) do
    for _, n in ipairs(branches) do
      list[#list + 1] = ("%s{min_num_branches=%d%s}"):format(row.pass, n, options)
    end
  end
  if #list == 1 then list[2] = row.pass end
  return list
end

--- A point of decisions.
function methods.make(self, decisions)
  local parts = {}
  for i, choice in ipairs(decisions) do
    local text = self.texts[i][choice]
    if text ~= "" then parts[#parts + 1] = text end
  end
  -- Weights that are put together are constants again.
  if #parts > 0 then parts[#parts + 1] = 'FoldConstant{fold="all"}' end
  return { decisions = decisions, text = table.concat(parts, ",") }
end

--- The pipeline of a point.
function methods.text(_, point) return point.text end

local class = choice_space.class("combine space", methods)

--- The space for the operators that the program has at least twice.
function space.new(mod, where)
  local counts, texts, n_choices = analysis.list_op_freqs(mod), {}, {}
  for _, row in ipairs(rows) do
    local n = 0
    for _, name in ipairs(row.operators) do n = n + (counts[name] or 0) end
    if n > 1 then
      texts[#texts + 1] = choices_of(row)
      n_choices[#texts] = #texts[#texts]
    end
  end
  if #texts == 0 then
    argument.fail(where .. ": space: combine: the program has no two convolutions, dense layers or "
      .. "products of matrices that could be computed together")
  end
  return setmetatable({ kind = "combine", texts = texts, n_choices = n_choices }, class)
end

return space
