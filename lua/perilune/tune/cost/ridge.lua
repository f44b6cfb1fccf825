--- Ridge regression: a linear function of standardised features, with a penalty on its weights
-- (Hoerl, Kennard 1970). Solved by the Cholesky decomposition of the normal equations.

require "perilune.core".internal() -- errors name the scripts of others

local ridge = {}

local methods = {}
local class = { __index = methods }

-- The penalty, as a part of the number of samples.
local PENALTY = 0.01

local function mean_of(rows, column)
  local sum = 0
  for _, row in ipairs(rows) do sum = sum + row[column] end
  return sum / #rows
end

local function spread_of(rows, column, mean)
  local sum = 0
  for _, row in ipairs(rows) do sum = sum + (row[column] - mean) ^ 2 end
  return math.sqrt(sum / #rows)
end

-- Columns that do not vary say nothing: their scale is 0.
local function scales_of(rows)
  local means, scales = {}, {}
  for column = 1, #rows[1] do
    means[column] = mean_of(rows, column)
    local spread = spread_of(rows, column, means[column])
    scales[column] = spread > 1e-12 and 1 / spread or 0
  end
  return means, scales
end

local function standardised(self, row)
  local out = {}
  for i, x in ipairs(row) do out[i] = (x - self.means[i]) * self.scales[i] end
  return out
end

-- Lower triangle of the decomposition of a positive definite matrix, in place.
local function decompose(m)
  for i = 1, #m do
    for j = 1, i do
      local sum = m[i][j]
      for k = 1, j - 1 do sum = sum - m[i][k] * m[j][k] end
      m[i][j] = i == j and math.sqrt(math.max(sum, 1e-12)) or sum / m[j][j]
    end
  end
end

local function solve(m, b)
  decompose(m)
  local n = #m
  for i = 1, n do
    for k = 1, i - 1 do b[i] = b[i] - m[i][k] * b[k] end
    b[i] = b[i] / m[i][i]
  end
  for i = n, 1, -1 do
    for k = i + 1, n do b[i] = b[i] - m[k][i] * b[k] end
    b[i] = b[i] / m[i][i]
  end
  return b
end

local function normal_equations(rows, targets, offset)
  local n, m, b = #rows[1], {}, {}
  for i = 1, n do
    m[i], b[i] = {}, 0
    for j = 1, i do m[i][j] = i == j and PENALTY * #rows or 0 end
  end
  for at, row in ipairs(rows) do
    for i = 1, n do
      b[i] = b[i] + row[i] * (targets[at] - offset)
      for j = 1, i do m[i][j] = m[i][j] + row[i] * row[j] end
    end
  end
  return m, b
end

--- What the function gives for a list of features.
function methods.predict(self, row)
  local sum = self.offset
  for i, x in ipairs(standardised(self, row)) do sum = sum + self.weights[i] * x end
  return sum
end

--- Fits rows of features to targets, lists of equal lengths.
function ridge.fit(rows, targets)
  local self = setmetatable({ offset = 0 }, class)
  self.means, self.scales = scales_of(rows)
  for _, x in ipairs(targets) do self.offset = self.offset + x / #targets end
  local scaled = {}
  for i, row in ipairs(rows) do scaled[i] = standardised(self, row) end
  self.weights = solve(normal_equations(scaled, targets, self.offset))
  return self
end

return ridge
