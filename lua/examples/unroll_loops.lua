--- A pass over loops that is told what to do by a config key with fields, as TVM's
-- tir.UnrollLoop; an option of its own; an instrument registered by name.
--
--     lua5.4 unroll_loops.lua

local pl = require "perilune"
local tir = pl.tir

local SERIAL, UNROLLED = 0, 3 -- loops say how they run by a number

-- Whether a loop is to be written out.
local function wanted(loop, told)
  local extent, kind = loop.extent.value, loop.attrs.kind or SERIAL
  if not extent then return false end
  return kind == UNROLLED or kind == SERIAL and extent <= told.auto_max_extent
end

pl.passes.UnrollLoop = pl.pass_class {
  name = "UnrollLoop", kind = "prim_func", opt_level = 1,
  doc = "Writes short loops out.",
  options = { most = { default = 16, least = 1, most = 1024, doc = "The most copies of a body." } },
  run = function(_, fn, _, ctx)
    local told, most = ctx:get "tir.UnrollLoop", ctx:option "most"
    return tir.transform(fn, nil, function(loop)
      if not wanted(loop, told) or loop.extent.value > most then return nil end
      local copies = {}
      for i = 0, loop.extent.value - 1 do
        copies[i + 1] = tir.substitute(loop.body, { [loop.loop_var] = loop.min + i })
      end
      ctx:note("unrolled")
      return tir.SeqStmt(copies)
    end, { "tir.For" })
  end,
}

pl.instruments.told = { doc = "Tells what passes were told.", options = { key = "fold" },
  make = function(options)
    local told = {}
    return { enter = function(ctx) told[1] = ctx:get(options.key) end,
      before = function(_, info) print(("%s: %s"):format(info.name, told[1])) end }
  end }

local A = tir.decl_buffer({ 6 }, "int32", "A")
local i, j = tir.Var("i"), tir.Var("j")
local function store(k) return tir.BufferStore(A, tir.BufferLoad(A, { k }) + 1, { k }) end
local mod = pl.module { main = tir.PrimFunc({ A.data }, tir.SeqStmt {
  tir.For(i, 0, 2, "serial", store(i)), tir.For(j, 2, 4, "serial", store(j)) }) }

local ctx = pl.context { config = { ["tir.UnrollLoop"] = { auto_max_extent = 2 } },
  instruments = { pl.instruments.told { key = "tir.UnrollLoop.auto_max_extent" } } }
local pipeline = pl.pipeline "UnrollLoop{most=8}"
print(pl.with(ctx, pipeline, mod))
print("unrolled", pl.report()[1].counts.unrolled)

-- What is wrong is told where it is given.
local function refused(f, ...) print(select(2, pcall(f, ...)).message) end
refused(pl.pipeline, "UnrollLoop{most=0}")
refused(pl.passes.UnrollLoop, { mots = 3 })
refused(pl.context, { config = { ["tir.UnrollLoop"] = { auto_max_extend = 2 } } })
refused(pl.context, { config = { ["tir.UnrolLoop.auto_max_extent"] = 2 } })
