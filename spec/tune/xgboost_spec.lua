-- Cost models by XGBoost's library, which is opened at run time: PERILUNE_XGBOOST names its file
-- where the system has none in its usual places.

local pl = require "perilune"
local xgboost = require "perilune.tune.cost.xgboost"

local library = os.getenv "PERILUNE_XGBOOST"

local function is_missing()
  local ok, err = pcall(xgboost.check, library)
  return not ok and tostring(err)
end

local function chain(n)
  local x = pl.var("x", ("Tensor[(%d), float32]"):format(n))
  local body = x
  for _ = 1, n // 8 do body = pl.op.nn.relu(body + 1) end
  return pl.module { main = pl.func({ x }, body) }
end

local function samples()
  local list = {}
  for n = 8, 320, 8 do list[#list + 1] = { mod = chain(n), cost = n * n } end
  return list
end

describe("a library that cannot be opened", function()
  it("is told by its name, and what to take instead", function()
    local model = pl.tune.cost_model { kind = "xgboost", library = "/nowhere/libxgboost.so",
      samples = samples() }
    local ok, err = pcall(model.predict, model, chain(16))
    assert.is_false(ok)
    assert.matches("the cost model 'xgboost' needs /nowhere/libxgboost.so, which cannot be opened; "
      .. "install it %(Debian: libxgboost0%), or take 'trees'", tostring(err))
  end)

  it("is an error of the search that asks for it", function()
    if not pcall(xgboost.check) then
      local ok, err = pcall(pl.tune.search, { mod = chain(8), cost_model = "xgboost" })
      assert.is_false(ok)
      assert.matches("'xgboost' needs libxgboost.so.0", tostring(err))
    end
  end)

  it("is what lacks its functions", function()
    local ok, err = pcall(xgboost.check, "libc.so.6")
    assert.is_false(ok)
    assert.matches("libc.so.6 lacks functions that cost models need", tostring(err))
  end)
end)

describe("a model of XGBoost", function()
  it("orders programs that it did not learn from", function()
    local why = is_missing()
    if why then return pending(why) end
    local all, known, rest = samples(), {}, {}
    for i, one in ipairs(all) do table.insert(i % 3 == 0 and rest or known, one) end
    local model = pl.tune.cost_model { kind = "xgboost", library = library, samples = known }
    assert(model:evaluate(rest).rank_correlation > 0.95)
    local again = pl.tune.cost_model { kind = "xgboost", library = library, samples = known }
    assert.equal(model:predict(chain(24)), again:predict(chain(24)))
  end)

  it("refuses rows that do not fit", function()
    local why = is_missing()
    if why then return pending(why) end
    local function fails(pattern, ...)
      local ok, err = pcall(xgboost.fit, ...)
      assert.is_false(ok)
      assert.matches(pattern, tostring(err))
    end
    fails("differ in length", { { 1 }, { 1, 2 } }, { 1, 2 }, library)
    fails("differ in length", { { 1 } }, { 1, 2 }, library)
    fails("number expected", { { "x" } }, { 1 }, library)
    fails("a list expected", { 1 }, { 1 }, library)
    local model = xgboost.fit({ { 1 }, { 2 } }, { 1, 2 }, library)
    assert.is_false((pcall(model.predict, model, { 1, 2 })))
  end)
end)
