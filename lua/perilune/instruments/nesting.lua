--- What instruments that look at a pass before and after it share: passes nest,
-- and one that fails is never heard of again.

require "perilune.core".internal()

--- Gives `self` the hooks. self.open(mod, info) makes what is kept while the
-- pass runs, self.close(kept, mod, info) gets it back; self.depth is how many
-- passes are open.
return function(self)
  local open = {}
  self.depth = 0

  function self.enter()
    open, self.depth = {}, 0
    if self.reset then self.reset() end
  end

  function self.before(mod, info)
    local kept = self.open(mod, info)
    self.depth = self.depth + 1
    open[self.depth] = { name = info.name, kept = kept }
  end

  -- Those above it have failed.
  function self.after(mod, info)
    local at = self.depth
    while at > 0 and open[at].name ~= info.name do at = at - 1 end
    if at == 0 then return end
    local kept = open[at].kept
    self.depth = at - 1
    self.close(kept, mod, info)
  end

  return self
end
