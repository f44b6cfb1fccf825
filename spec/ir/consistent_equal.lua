-- Equality looked at both ways: same(a, b) and differs(a, b) assert that
-- pl.equal, pl.hash and pl.mismatch tell the same, whichever comes first.

local assert = require "luassert"
local pl = require "perilune"

local consistent = {}

--- Whether a and b are equal, as all three tell it.
function consistent.equal(a, b, options)
  local there = pl.equal(a, b, options)
  assert.equal(there, pl.equal(b, a, options))
  assert.equal(there, pl.hash(a, options) == pl.hash(b, options))
  assert.equal(there, pl.mismatch(a, b, options) == nil)
  assert.equal(there, pl.mismatch(b, a, options) == nil)
  return there
end

function consistent.same(...) assert.is_true(consistent.equal(...)) end
function consistent.differs(...) assert.is_false(consistent.equal(...)) end

--- Types that are not equal, whose hashes may be the same: those of type
-- variables count neither names nor numbers.
function consistent.types_differ(a, b)
  assert.is_false(pl.equal(a, b))
  assert.is_false(pl.equal(b, a))
end

return consistent
