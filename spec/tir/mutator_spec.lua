-- pl.mutator and pl.rewrite where statements that have bodies are rewritten.

local pl = require "perilune"
local tir = pl.tir

describe("pl.rewrite in TIR", function()
  local A = tir.decl_buffer({ 16 }, "float32", "A")
  local B = tir.decl_buffer({ 16 }, "float32", "B")
  local i, vi = tir.Var "i", tir.Var "vi"

  local function program(extent, value)
    return tir.PrimFunc({ A, B }, tir.For(i, 0, extent, "serial", B:store(value, i)))
  end

  local function extent(n)
    return function(_, post) return post:with { extent = n } end
  end

  it("changes a loop, and what is inside keeps its buffers", function()
    local out = pl.rewrite(program(16, A:load(i)), { For = extent(8) })
    assert.is_true(pl.equal(program(8, A:load(i)), out))
    assert.equal(tostring(program(8, A:load(i))), tostring(out))
    assert(pl.verify(out))
  end)

  it("keeps what was rewritten inside of a loop", function()
    local out = pl.rewrite(program(16, A:load(i)), {
      For = extent(8),
      BufferLoad = function(_, post) return post * 2 end,
    })
    assert.equal(tostring(program(8, A:load(i) * 2)), tostring(out))
    assert.is_true(pl.equal(program(8, A:load(i) * 2), out))
  end)

  it("changes a block, its loop and what is inside, two statements in a body", function()
    local function build(name, n, value)
      local block = tir.Block({ tir.IterVar({ 0, 16 }, vi, "DataPar") }, {}, {}, name,
        { B:store(value, vi), A:store(0, vi) })
      return tir.PrimFunc({ A, B },
        tir.For(i, 0, n, "serial", tir.BlockRealize({ i }, true, block)))
    end
    local out = pl.rewrite(build("b", 16, A:load(vi)), {
      For = extent(4),
      Block = function(_, post) return post:with { attrs = { name_hint = "c" } } end,
      BufferLoad = function(pre, post)
        assert.equal(pre, post)
        return post + 1
      end,
    })
    assert.equal(tostring(build("c", 4, A:load(vi) + 1)), tostring(out))
    assert.is_true(tir.verify_well_formed(out))
  end)

  it("changes a branch with two bodies, and the function", function()
    local function build(name, a, b)
      local branch = tir.IfThenElse(tir.lt(i, 4), B:store(a, i), B:store(b, i))
      return tir.PrimFunc({ A, B }, tir.For(i, 0, 16, "serial", branch), nil, nil,
        { global_symbol = name })
    end
    local out = pl.rewrite(build("f", 1, 2), {
      PrimFunc = function(_, post) return post:with { attrs = { global_symbol = "g" } } end,
      IfThenElse = function(_, post)
        return post:with { then_case = post.else_case, else_case = post.then_case }
      end,
      FloatImm = function(pre)
        if pre.value == 1 then return tir.const(3.0, "float32") end
      end,
    })
    assert.equal(tostring(build("g", 2, 3)), tostring(out))
  end)

  it("puts several statements, or another, in the place of one", function()
    local out = pl.rewrite(program(16, 1), {
      For = extent(8),
      BufferStore = function(_, post) return tir.SeqStmt { post, post:with { buffer = A } } end,
    })
    local both = tir.For(i, 0, 8, "serial", { B:store(1, i), A:store(1, i) })
    assert.equal(tostring(tir.PrimFunc({ A, B }, both)), tostring(out))
    out = pl.rewrite(out, { For = function(_, post) return post.body end })
    assert.equal("BufferStore", out.stmts[#out.stmts].kind)
  end)

  it("gives the very same program when nothing changes", function()
    local fn = program(16, A:load(i))
    local function same(_, post) return post:with { extent = post.extent } end
    assert.is_true(rawequal(fn, pl.rewrite(fn, { For = same })))
    assert.is_true(rawequal(fn, pl.rewrite(fn, function(_, post) return post end)))
    local mod = pl.module { main = fn }
    assert.equal(mod, pl.rewrite(mod, { For = same }))
    assert.equal(tostring(program(2, A:load(i))),
      tostring(pl.rewrite(mod, { For = extent(2) }).main))
  end)

  it("takes no stack: two thousand loops, one in the other", function()
    local body = B:store(1, 0)
    for _ = 1, 2000 do body = tir.For(tir.Var "k", 0, 4, "serial", body) end
    local n = 0
    local out = pl.rewrite(tir.PrimFunc({ B }, body), {
      For = function() n = n + 1 end,
      FloatImm = function() return tir.const(2.0, "float32") end,
    })
    assert.equal(2000, n)
    assert(pl.verify(out))
  end)
end)

describe("pl.mutator in TIR", function()
  local A = tir.decl_buffer({ 16 }, "float32", "A")
  local i = tir.Var "i"
  local fn = tir.PrimFunc({ A }, tir.For(i, 0, 16, "serial", A:store(A:load(i), i)))

  it("gives nodes with their rewritten parts, as rebuild does", function()
    local out = pl.mutator {
      For = function(loop, rebuild)
        assert.is_true(rawequal(loop, rebuild()))
        return tir.For(loop.loop_var, 0, 4, "unrolled", loop.body)
      end,
      BufferLoad = function(load) return load + 1 end,
    }(fn)
    assert.equal(tostring(tir.PrimFunc({ A },
      tir.For(i, 0, 4, "unrolled", A:store(A:load(i) + 1, i)))), tostring(out))
  end)

  it("is a rule that a report counts, and that a limit stops", function()
    local halve = pl.prim_func_pass { name = "Halve", run = pl.mutator {
      name = "halve",
      For = function(loop) return loop:with { extent = 8 } end,
    } }
    local mod = pl.module { main = fn }
    local function rule()
      for _, row in ipairs(pl.rule_report()) do
        if row.rule == "halve" then return row end
      end
    end
    assert.matches("range(8)", tostring(halve(mod)), 1, true)
    assert.equal(1, rule().applied)
    local context = pl.context { config = { ["bisect.applications"] = 0 } }
    assert.equal(mod, pl.with(context, halve, mod))
    assert.equal(1, rule().refused)
  end)

  it("says what an answer lacks", function()
    assert.error_matches(function()
      pl.mutator { For = function(loop) return loop:with { extend = 8 } end }(fn)
    end, "a For has no field 'extend'; it has: ")
    assert.has_error(function() pl.mutator { For = function() return {} end }(fn) end)
  end)
end)
