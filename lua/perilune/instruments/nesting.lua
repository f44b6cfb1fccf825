--- What instruments that look at a pass before and after it share: passes nest,
-- and one that fails is never heard of again.

require "perilune.core".internal()

--- Gives `self` the hooks. self.open(mod, info) makes what is kept while the
-- pass runs, self.close(kept, mod, info, told, pass) gets it back, and hears whether
-- a pass inside of it has changed something; self.depth is how many passes are open.
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
    open[self.depth] = { name = info.name, kept = kept, module = mod }
  end

  -- Those above it have failed.
  function self.after(mod, info, pass)
    local at = self.depth
    while at > 0 and open[at].name ~= info.name do at = at - 1 end
    if at == 0 then return end
    local this, outer = open[at], open[at - 1]
    if outer and this.module ~= mod then outer.told = true end
    self.depth = at - 1
    self.close(this.kept, mod, info, this.told, pass)
  end

  return self
end
