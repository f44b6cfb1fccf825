-- FuseOps: which operators share a function, and that they compute the same.

local pl = require "perilune"

local op = pl.op

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end
local function module(vars, body) return pl.module { main = pl.func(vars, body) } end
local function axes(...) return pl.const(pl.tensor({ ... }, "int64")) end
local function floats(...) return pl.const(pl.tensor({ ... }, "float32")) end

-- The result of FuseOps under a context; it is valid, final, and computes the
-- same.
local function fuse(mod, context)
  local scope <close> = pl.context(context or {}):enter() -- luacheck: ignore scope
  local out = pl.passes.FuseOps()(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out))
  assert.equal(out, pl.passes.FuseOps()(out))
  return out
end

-- The operators of each function made, in order: "exp tanh; add".
local function groups(mod)
  local of, order = {}, {}
  for node in mod.main:nodes() do
    if node.kind == "Call" and node.op then of[#of + 1] = node.op.name end
    if node.kind == "Function" and node.attrs.Primitive == 1 then
      order[#order + 1], of = table.concat(of, " "), {}
    end
  end
  assert.equal(0, #of, "each operator is in a function")
  return table.concat(order, "; ")
end

local function fused(vars, body, context) return groups(fuse(module(vars, body), context)) end

describe("FuseOps", function()
  local x, y = pl.var("x", f32(4, 8)), pl.var("y", f32(4, 8))
  local w = pl.var("w", f32(8, 8))
  local image, kernel = pl.var("image", f32(1, 4, 8, 8)), pl.var("kernel", f32(4, 4, 3, 3))

  it("makes a function of a chain, called where its last node stood", function()
    local s = pl.var("s", f32())
    assert.equal([[
#[version = "0.0.5"]
def @main(%s: float32 /* ty=float32 */) -> float32 {
  %1 = fn (%p0: float32 /* ty=float32 */, Primitive=1) -> float32 {
    %0 = exp(%p0) /* ty=float32 */;
    add(%p0, %0) /* ty=float32 */
  } /* ty=fn (float32) -> float32 */;
  %1(%s) /* ty=float32 */
}
]], tostring(fuse(module({ s }, op.add(s, op.exp(s))))))
  end)

  it("leaves each operator alone at level 0", function()
    local mod = module({ x }, op.exp(op.tanh(x)))
    local out = pl.passes.FuseOps { fuse_opt_level = 0 }(mod)
    assert(pl.check(mod, out))
    assert.equal("tanh; exp", groups(out))
  end)

  it("takes a diamond as one", function()
    local e = op.exp(x)
    assert.equal("exp tanh sigmoid add", fused({ x }, op.add(op.tanh(e), op.sigmoid(e))))
  end)

  it("lets a convolution take what follows element by element", function()
    local c = op.nn.conv(image, kernel, { pads = { 1, 1, 1, 1 } })
    assert.equal("nn.conv nn.relu multiply", fused({ image, kernel }, op.nn.relu(c) * 2))
  end)

  it("keeps a convolution from what needs it in another shape", function()
    local c = op.nn.conv(image, kernel, { pads = { 1, 1, 1, 1 } })
    assert.equal("nn.conv; sum; exp",
      fused({ image, kernel }, op.exp(op.sum(c, axes(1), { keepdims = 1 }))))
  end)

  it("keeps two products apart, and what joins them with the later", function()
    local a, b = op.nn.matmul(x, w), op.nn.matmul(y, w)
    assert.equal("nn.matmul; nn.matmul add", fused({ x, y, w }, op.add(a, b)))
  end)

  it("lets a reduction take what comes before it, not what follows", function()
    local s = op.sum(op.exp(x) * 2, axes(1), { keepdims = 1 })
    assert.equal("exp multiply sum; tanh", fused({ x }, op.tanh(s)))
  end)

  it("keeps a node apart whose value is used elsewhere", function()
    local e = op.exp(x)
    assert.equal("exp; tanh", fused({ x }, pl.tuple { e, op.tanh(e) }))
  end)

  it("fuses injective operators into a tuple that is taken apart", function()
    local joined = op.concatenate(op.transpose(x), op.transpose(y), { axis = 0 })
    assert.equal("transpose transpose concatenate exp", fused({ x, y }, op.exp(joined)))
  end)

  it("gives a function a tuple whose field is all it needs", function()
    local a, b = op.split(x, { axis = 1, num_outputs = 2, n_results = 2 }):unpack()
    assert.equal("split; exp; tanh",
      fused({ x }, pl.tuple { op.exp(a), op.tanh(b) }))
  end)

  it("puts scalars into the functions, and larger constants only when asked to", function()
    local mod = module({ x }, op.add(x * 2, floats(1, 2, 3, 4, 5, 6, 7, 8)))
    local function parameters(config)
      local out = fuse(mod, { config = config })
      for node in out.main:nodes() do
        if node.kind == "Function" then return #node.params end
      end
    end
    assert.equal(2, parameters())
    assert.equal(1, parameters { ["relay.FuseOps.link_params"] = true })
  end)

  it("puts no more nodes into a function than it may", function()
    local chain = x
    for _ = 1, 10 do chain = op.exp(op.tanh(chain)) end
    local sizes = {}
    local all = fused({ x }, chain, { config = { ["relay.FuseOps.max_depth"] = 4 } })
    for group in all:gmatch "[^;]+" do
      sizes[#sizes + 1] = select(2, group:gsub("%a+", ""))
    end
    for _, size in ipairs(sizes) do assert.is_true(size <= 4, "at most 4 nodes") end
    assert.equal(5, #sizes)
  end)

  it("fuses neither through lets nor across branches", function()
    local v, p = pl.var("v"), pl.var("p", pl.type { shape = {}, dtype = "bool" })
    assert.equal("exp; tanh", fused({ x }, pl.ir.Let(v, op.exp(x), op.tanh(v))))
    local e = op.exp(x)
    assert.equal("exp; tanh sigmoid; abs",
      fused({ p, x }, pl.ir.If(p, op.sigmoid(op.tanh(e)), op.abs(e))))
  end)

  it("keeps functions within the number of arguments of relay.FuseOps.max_function_args", function()
    local vars, sum = { x }, x
    for i = 1, 12 do
      vars[i + 1] = pl.var("v" .. i, f32(4, 8))
      sum = op.add(op.tanh(sum), op.exp(vars[i + 1]))
    end
    local mod = module(vars, sum)
    local function most_params(out)
      local most, functions = 0, 0
      for node in out.main:nodes() do
        if node.kind == "Function" and node.attrs.Primitive then
          most, functions = math.max(most, #node.params), functions + 1
        end
      end
      return most, functions
    end
    assert.equal(13, (most_params(fuse(mod))))
    for _, limit in ipairs { 3, 5, 8 } do
      local most, functions = most_params(fuse(mod,
        { config = { ["relay.FuseOps.max_function_args"] = limit } }))
      assert.truthy(most < limit, ("%d parameters, limit %d"):format(most, limit))
      assert.truthy(functions > 1)
      local target = ("cuda -max_function_args=%d"):format(limit)
      assert(pl.equal(fuse(mod, { config = { ["relay.FuseOps.max_function_args"] = limit } }),
        fuse(mod, { target = target })))
      assert.equal(13, (most_params(fuse(mod,
        { target = target, config = { ["relay.FuseOps.max_function_args"] = 0 } }))))
    end
    for _, target in ipairs { "llvm", "cuda -max_function_args=0", "cuda -max_function_args=x",
      'cuda -max_function_args=99999999999', "cuda -host='llvm -max_function_args=3'" } do
      assert.equal(13, (most_params(fuse(mod, { target = target }))), target)
    end
  end)

  local function function_attrs(text)
    local out = pl.passes.FuseOps()(assert(pl.parse('#[version = "0.0.5"]\n' .. text)))
    local list = {}
    for node in out.main:nodes() do
      if node.kind == "Function" and node.attrs.Primitive then list[#list + 1] = node.attrs end
    end
    return list
  end

  it("does not say so of reshape_like, nor of fields of a tuple", function()
    local attrs = function_attrs [[
def @main(%x: Tensor[(1, 2), float32], %t: (Tensor[(1, 2), float32], float32)) {
  (reshape_like(%x, %x), reshape(%t.0, newshape=[2, 1]))
}]]
    assert.equal(2, #attrs)
    for _, one in ipairs(attrs) do
      assert.equal(1, one.Primitive)
      assert.is_nil(one["relay.reshape_only"])
    end
  end)

  it("marks a function without calls by Primitive=0", function()
    local attrs = function_attrs [[
def @main(%x: Tensor[(1, 2), float32], %y: Tensor[(1, 2), float32]) { let %a = (%x, %y).0; %a }]]
    assert.equal(1, #attrs)
    assert.equal(0, attrs[1].Primitive)
    assert.is_nil(attrs[1]["relay.reshape_only"])
  end)

  it("says when all that a function does is reshape", function()
    local out = fuse(module({ x }, op.reshape(op.expand_dims(x, axes(0)), axes(8, 4))),
      { config = { ["relay.FuseOps.link_params"] = true } })
    for node in out.main:nodes() do
      if node.kind == "Function" and node.attrs.Primitive then
        assert.equal(1, node.attrs["relay.reshape_only"])
      end
    end
  end)

  it("leaves functions alone that are primitive, and calls that are given a function", function()
    local a = pl.var("a", f32(4, 8))
    local inner = pl.ir.Function({ a }, op.exp(op.tanh(a)), nil, { Primitive = 1 })
    local mod = module({ x }, inner(x))
    assert.equal(mod, pl.passes.FuseOps()(mod))
  end)

  it("is linear: 100,000 operators of one chain, and of nested branches", function()
    local chain = x
    for _ = 1, 50000 do chain = op.exp(op.tanh(chain)) end
    local deep, stack = x, {}
    for i = 1, 20000 do
      deep = op.tanh(deep)
      stack[i] = deep
    end
    for i = 20000, 1, -1 do deep = op.add(deep, stack[i]) end
    local mod = module({ x }, op.add(chain, deep))
    local start = os.clock()
    local out = pl.passes.FuseOps()(mod)
    assert.is_true(os.clock() - start < 5)
    assert(pl.verify(out))
  end)
end)

describe("Dominators", function()
  local x = pl.var("x", f32(4))

  it("are the nodes that all ways of a value lead through", function()
    local e = op.exp(x)
    local a, b = op.tanh(e), op.sigmoid(e)
    local main = module({ x }, op.abs(op.add(a, b))).main
    local tree, names = pl.dominators(main), {}
    for node in main:nodes() do
      local above = tree[node]
      names[#names + 1] = ("%s < %s"):format(node.op and node.op.name or node.kind,
        above and above.op.name or "-")
    end
    assert.equal("Var < exp; exp < add; tanh < add; sigmoid < add; add < abs; abs < -",
      table.concat(names, "; "))
  end)

  it("of what a branch gives is the If", function()
    local p = pl.var("p", pl.type { shape = {}, dtype = "bool" })
    local main = module({ p, x }, op.abs(pl.ir.If(p, op.tanh(x), op.exp(x)))).main
    local tree = pl.dominators(main)
    local branch = main.body.args[1]
    assert.equal(branch, tree[branch.true_branch])
    assert.equal(main.body, tree[branch])
    assert.equal(branch, tree[main.params[2]])
  end)
end)

describe("FuseOps does not depend on what passes before it built", function()
  local golden = require "spec.transform.golden"

  it("writes a scalar that several groups use into each, also after equal nodes were merged",
    function()
      local mod = golden.module [[
def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(3), float32]) {
  (add(exp(%x), 2f), add(exp(%x), 2f), multiply(%y, 2f))
}]]
      local merged = pl.passes.EliminateCommonSubexpr()(mod)
      assert.equal(merged, pl.passes.EliminateCommonSubexpr()(merged))
      local out = pl.passes.FuseOps { fuse_opt_level = 1 } (merged)
      assert(pl.verify(out))
      assert(pl.check(mod, out))
      assert(pl.equal(out, pl.passes.InferType()(golden.module [[
def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(3), float32]) {
  %0 = fn (%p0: Tensor[(2, 3), float32], Primitive=1) -> Tensor[(2, 3), float32] {
    add(exp(%p0), 2f)
  };
  %1 = fn (%p0: Tensor[(3), float32], Primitive=1) -> Tensor[(3), float32] { multiply(%p0, 2f) };
  %2 = %0(%x);
  (%2, %2, %1(%y))
}]])), tostring(out))
    end)

  it("numbers parameters in the order in which the result needs them", function()
    local x, y = pl.var("x", "Tensor[(2, 3), float32]"), pl.var("y", "Tensor[(2, 3), float32]")
    local b = pl.op.exp(y) -- built first, used last
    local out = pl.passes.FuseOps { fuse_opt_level = 1 } (pl.module {
      main = pl.func({ x, y }, pl.op.add(pl.op.tanh(x), b)) })
    local call = out.main.body
    assert.equal("x", call.args[1].name)
    assert.equal("y", call.args[2].name)
  end)
end)
