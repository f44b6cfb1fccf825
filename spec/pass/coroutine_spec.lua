-- Coroutines in the bodies of passes: those of pl.guard_coroutines are stopped
-- as the body is, and else do what Lua's do.

local pl = require "perilune"
local command = require "spec.cli.command"

local co = pl.guard_coroutines(setmetatable({}, { __index = coroutine }))

local function endless() while true do end end -- luacheck: ignore

local function run(body, seconds)
  local context = pl.context { config = { ["limit.seconds"] = seconds or 0.05 } }
  local pass = pl.module_pass { name = "Looping", run = body }
  local ok, err = pcall(pl.with, context, pass, pl.module {})
  return not ok and err or nil
end

local function stopped(body)
  local started = os.clock()
  local err = run(body)
  assert.is_true(os.clock() - started < 2)
  assert.equal("pass 'Looping': it took longer than limit.seconds = 0.05", err.message)
  assert.equal("limit", err.code)
end

describe("limit.seconds stops a coroutine", function()
  it("that never ends", function()
    stopped(function() co.resume(co.create(endless)) end)
    stopped(function() co.wrap(endless)() end)
  end)

  it("in a coroutine, inside of pcall, and however often it is caught", function()
    local caught = 0
    stopped(function()
      while caught < 1e6 do
        pcall(co.wrap(function() co.wrap(function() pcall(endless) endless() end)() end))
        caught = caught + 1
      end
    end)
    assert.is_true(caught <= 1)
  end)

  it("and its resumer, when that goes on", function()
    stopped(function()
      co.resume(co.create(endless))
      endless()
    end)
  end)

  it("that was made before, or is resumed again", function()
    local before = co.create(function()
      co.yield(1)
      endless()
    end)
    co.resume(before)
    stopped(function() co.resume(before) end)
  end)

  it("while it is closed", function()
    local thread = co.create(function()
      local slow <close> = setmetatable({}, { __close = endless }) -- luacheck: ignore
      co.yield()
    end)
    co.resume(thread)
    stopped(function() co.close(thread) end)
  end)

  it("whose time is over, and no other one", function()
    stopped(function() co.wrap(endless)() end)
    local n = 0
    assert.is_nil(run(function()
      co.wrap(function() for i = 1, 1e5 do n = n + i end end)()
    end, 20))
    assert.equal(5000050000, n)
  end)
end)

describe("a coroutine in the command's scripts", function()
  it("is stopped, too", function()
    local folder = command.folder()
    local script = command.write(folder .. "/script.lua", [[
      local pl = require "perilune"
      local context = pl.context { config = { ["limit.seconds"] = 0.05 } }
      local pass = pl.module_pass { name = "Looping", run = function()
        coroutine.wrap(function() while true do end end)()
      end }
      pl.with(context, pass, pl.module {})
    ]])
    local status, _, text = command.run(folder, script)
    os.execute("rm -r " .. folder)
    assert.equal(1, status)
    assert.matches("pass 'Looping': it took longer than limit.seconds = 0.05", text, 1, true)
  end)
end)

-- What Lua's functions and ours give, as texts.
local function both(f)
  local function told(library)
    local results = table.pack(pcall(f, library))
    for i = 1, results.n do results[i] = tostring(results[i]) end
    return results
  end
  assert.same(told(coroutine), told(co))
end

describe("coroutines outside of passes are Lua's:", function()
  it("values in and out", function()
    both(function(c)
      local thread = c.create(function(a, b)
        local d = c.yield(a + b, nil)
        return d, c.isyieldable()
      end)
      local _, x, y = c.resume(thread, 1, 2)
      local ok, z, yes = c.resume(thread, "d")
      return x, y, ok, z, yes, c.status(thread), c.resume(thread)
    end)
  end)

  it("errors, and their places", function()
    both(function(c) return c.resume(c.create(function() error "no" end)) end)
    both(function(c) return c.wrap(function() error "no" end)() end)
    both(function(c) return c.wrap(function() error({}, 0) end) ~= nil end)
    both(function(c) return c.wrap(1) end)
    both(function(c)
      local f = c.wrap(function() end)
      f()
      f()
    end)
    assert.matches("expected, got number", select(2, pcall(co.resume, 1)))
    both(function(c) return c.resume((c.running())) end)
    both(function(c) return c.close((c.running())) end)
    both(function(c)
      local outer = c.running()
      return c.wrap(function() return c.close(outer) end)()
    end)
  end)

  it("what is to be closed", function()
    both(function(c)
      local log = {}
      local thread = c.create(function()
        local x <close> = setmetatable({}, { __close = function() error "while closing" end })
        log[#log + 1] = x and "in"
        c.yield()
      end)
      c.resume(thread)
      local ok, err = c.close(thread)
      return log[1], ok, err, c.status(thread), c.close(thread)
    end)
    both(function(c)
      return c.wrap(function()
        local x <close> = setmetatable({}, { __close = function() error "second" end })
        error("first" .. (x and "" or ""))
      end)()
    end)
  end)

  it("many values", function()
    both(function(c)
      local f = c.wrap(function(...) return select("#", ...), ... end)
      return f(table.unpack({}, 1, 200))
    end)
    both(function(c) return c.resume(c.create(function() return table.unpack({}, 1, 1e5) end)) end)
  end)
end)
