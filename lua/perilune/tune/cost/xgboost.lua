--- Boosted trees by XGBoost, whose library is opened at run time (Debian: libxgboost0).

local core = require "perilune.core"
core.internal()

local xgboost = {}

local methods = {}
local class = { __index = methods }

--- What the trees give for a list of features.
function methods.predict(self, row) return core.xgboost_predict(self.model, row) end

--- Fits rows of features to targets, lists of equal lengths. `library`: its file; otherwise the one
-- that packages install. Raises where it cannot be opened.
function xgboost.fit(rows, targets, library)
  return setmetatable({ model = core.xgboost_fit(library, rows, targets) }, class)
end

--- Raises where the library cannot be opened.
function xgboost.check(library) xgboost.fit({ { 0 }, { 1 } }, { 0, 1 }, library) end

return xgboost
