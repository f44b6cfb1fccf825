-- pl.tir.InjectCopyIntrin: the tests of TVM's test_tir_transform_inject_copy_intrin.py by name.

local pl = require "perilune"
local te, tir = pl.te, pl.tir
local F = "float32"

local function texts(list)
  local out = {}
  for i, expr in ipairs(list) do out[i] = tostring(expr) end
  return table.concat(out, ", ")
end

-- What the function is given for the copies of a module, as texts.
local function seen_in(mod)
  local seen
  local result = tir.InjectCopyIntrin("memcpy", function(src, dst, before, after, value)
    seen = { shape = texts(dst.shape), strides = texts(dst.strides), src_shape = texts(src.shape),
      src_strides = texts(src.strides), offset = tostring(src.elem_offset),
      before = texts(before), after = texts(after), value = value and tostring(value) }
    return tir.Evaluate(tir.call_extern("int32", "copy", 7))
  end)(mod)
  assert.truthy(tostring(result):find('T.call_extern("int32", "copy", 7)', 1, true))
  assert.falsy(tostring(result):find("pragma_memcpy", 1, true))
  return seen
end

-- That of the copy which a tensor is.
local function copied(args, out)
  local s = te.create_schedule(out.op)
  s[out]:pragma(out.op.axis[1], "memcpy")
  return seen_in(pl.passes["tir.StorageFlatten"] { cache_line_size = 64 } (
    s:to_module(args, "main")))
end

describe("tir.InjectCopyIntrin", function()
  it("test_copy2d", function()
    local m, l = te.var "m", te.var "l"
    local A = te.placeholder({ m, l }, F, "A")
    local B = te.compute({ m, l }, function(i, j) return A(i, j) end, "B")
    local seen = copied({ A, B }, B)
    assert.equal("m, l", seen.shape)
    assert.equal("m, l", seen.src_shape)
    assert.equal("", seen.before)
    assert.is_nil(seen.value)
  end)

  it("test_copy_pad", function()
    local m, l = 12, 8
    local A = te.placeholder({ m, l }, F, "A")
    local B = te.compute({ m + 2, l }, function(i, j)
      return te.if_then_else(te.all(tir.GE(i, 1), tir.LT(i, m + 1)), A(i - 1, j), 1.0)
    end, "B")
    assert.same({ shape = "14, 8", strides = "8, 1", src_shape = "12, 8", src_strides = "8, 1",
      offset = "0", before = "1, 0", after = "1, 0", value = "T.float32(1)" },
      copied({ A, B }, B))
  end)

  it("test_single_point_test", function()
    local A = te.placeholder({ 1 }, F, "A")
    local B = te.compute({ 1 }, function(i) return A(i) end, "B")
    local seen = copied({ A, B }, B)
    assert.equal("1", seen.src_shape)
    assert.equal("1", seen.src_strides)
    assert.equal("1", seen.strides)
  end)

  it("test_copy_pad_split", function()
    local m, factor = 4 * 3, 4
    local A = te.placeholder({ m }, F, "A")
    local Apad = te.compute({ m + 2 }, function(i)
      return te.if_then_else(te.all(tir.GE(i, 1), tir.LT(i, m + 1)), A(i - 1), 0.0)
    end, "Apad")
    local B = te.compute({ m }, function(i) return Apad(i) + Apad(i + 1) + Apad(i + 2) end, "B")
    local s = te.create_schedule(B.op)
    local outer = s[B]:split(B.op.axis[1], factor)
    s[Apad]:compute_at(s[B], outer)
    s[Apad]:pragma(Apad.op.axis[1], "memcpy")
    local mod = pl.passes["tir.StorageFlatten"] { cache_line_size = 64 } (
      s:to_module({ A, B }, "main"))
    local seen = seen_in(pl.passes["tir.Simplify"]()(mod))
    -- TVM's: the elements before the first one and behind the last one of each tile.
    assert.equal("6", seen.shape)
    assert.equal("T.max(1 - i_outer * 4, 0)", seen.before)
    assert.equal("T.max(i_outer * 4 - 7, 0)", seen.after)
  end)

  local function parsed(body)
    return assert(tir.parse(([[
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    i = T.int32()
    with T.attr(T.iter_var(i, None, "DataPar", ""), "pragma_memcpy", 1):
%s]]):format((body:gsub("[^\n]+", "        %0")))))
  end

  it("refuses what is no copy", function()
    for problem, body in pairs {
      ["a loop does not begin at 0"] = "for j in range(1, 5):\n    B[j] = A[j]",
      ["does something else than one store"] = "for j in range(4):\n    T.evaluate(0)",
      ["what is stored is not loaded"] = "for j in range(4):\n    B[j] = A[j] + T.float32(1)",
      ["an index is not linear"] = "for j in range(4):\n    B[j] = A[j * j]",
      ["its condition is not linear"] =
        "for j in range(4):\n    B[j] = T.if_then_else(j * j < 3, A[j], T.float32(0))",
    } do
      assert.error_matches(function()
        tir.InjectCopyIntrin("memcpy", function() return tir.Evaluate(0) end)(parsed(body))
      end, "this is no copy: .*" .. problem)
    end
    assert.error_matches(function()
      tir.InjectCopyIntrin("memcpy", function() end)(
        parsed "for j in range(4):\n    B[j] = A[j]")
    end, "the function gave a nil, no statement")
    assert.error_matches(function() tir.InjectCopyIntrin("memcpy", 1) end, "a function expected")
  end)

  it("leaves other loops and pragmas alone", function()
    local mod = parsed "for j in range(4):\n    B[j] = A[j]"
    local pass = tir.InjectCopyIntrin("dma", function() error "not called" end)
    assert.is_true(pl.equal(mod, pass(mod)))
  end)
end)
