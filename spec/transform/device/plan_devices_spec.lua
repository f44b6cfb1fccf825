-- PlanDevices: each value has a device, and is copied where its user wants another.

local pl = require "perilune"

local HEAD = '#[version = "0.0.5"]\n'

-- A device without target, as a text refers to it: @CPU@, @GPU@, ...
local function device(type, scope)
  return ('[{"type_key": "VirtualDevice", "attrs": {"device_type_int": "%d", "memory_scope": 1, '
    .. '"target": 0, "virtual_device_id": "0"}}, {"type_key": "runtime.String"%s}]')
    :format(type, scope and (', "repr_str": "%s"'):format(scope) or "")
end

local meta = { VirtualDevice = { device(1), device(2), device(1, "scopeA"), device(1, "scopeB") } }
local places = { CPU = 0, GPU = 1, A = 2, B = 3 }

local function parse(text)
  text = text:gsub("@(%u+)@", function(name)
    return ("meta[VirtualDevice][%d]"):format(places[name])
  end)
  return assert(pl.parse(HEAD .. text, { init_meta = meta }))
end

-- Text in which %a{CPU} is a parameter there and {CPU} a function's result.
local function short(text)
  return (text:gsub("(%%%w+){(%u+)}", "%1 {virtual_device=@%2@}")
    :gsub("{(%u+)}%)", "virtual_device=@%1@)")
    :gsub("on%((%u+), ", "on_device(virtual_device=@%1@, constrain_result=True, ")
    :gsub("%f[%w]T%f[%W]", "Tensor[(5, 7), float32]"))
end

local GPU_DEFAULT = { config = { primitive_targets = { "llvm", "cuda" }, default_device_type = 2,
  host_device_type = 1 } }

local function plan(mod, options) return pl.passes.PlanDevices(options or GPU_DEFAULT)(mod) end

-- The names of devices instead of references, and each name's first appearance.
local function devices_of(mod)
  local fn = mod.main
  local function name(text)
    local type = text:match '"device_type_int": "(%-?%d+)"'
    local scope = text:match '"repr_str": "(scope%u)"'
    return (type == "1" and "CPU" or "GPU") .. (scope and scope:sub(6) or "")
  end
  local list = {}
  for i, one in ipairs(fn.attrs.param_virtual_devices or {}) do list[i] = name(one) end
  return table.concat(list, " ") .. " -> " .. name(fn.attrs.virtual_device)
end

-- What the calls of main are, operands first: "add", "on_device(CPU)", "copy(CPU,GPU)".
local function calls_of(mod)
  local list = {}
  local function name(text)
    local scope = text:match '"repr_str": "(scope%u)"'
    return (text:match '"device_type_int": "(%d+)"' == "1" and "CPU" or "GPU")
      .. (scope and scope:sub(6) or "")
  end
  for node in mod.main:nodes() do
    if node.kind == "Call" and node.op then
      local attrs = node.attrs
      if node.op.name == "on_device" then
        list[#list + 1] = ("on(%s)"):format(name(attrs.virtual_device))
      elseif node.op.name == "device_copy" then
        list[#list + 1] = ("copy(%s,%s)"):format(name(attrs.src_virtual_device),
          name(attrs.dst_virtual_device))
      else
        list[#list + 1] = node.op.name
      end
    end
  end
  return table.concat(list, " ")
end

local function planned(text, devices, calls)
  local after = plan(parse(short(text)))
  assert(pl.verify(after))
  assert.equal(devices, devices_of(after))
  assert.equal(calls, calls_of(after))
  assert.equal(after, plan(after))
  assert.is_nil(pl.report()[1].counts["equal copy"])
  return after
end

describe("PlanDevices", function()
  it("puts everything on the default device", function()
    planned([[
def @main(%a: T, %b: T, %c: T, %d: T) { subtract(add(%a, %b), add(%c, %d)) }]],
      "GPU GPU GPU GPU -> GPU", "add add subtract")
  end)

  it("copies what an annotation puts elsewhere", function()
    planned([[
def @main(%a: T, %b: T, %c: T, %d: T) {
  %0 = add(%a, %b);
  %1 = on_device(%0, virtual_device=@CPU@);
  subtract(%1, add(%c, %d))
}]], "CPU CPU GPU GPU -> GPU", "add add on(CPU) copy(CPU,GPU) subtract")
  end)

  it("takes copies that there are, and drops those to the same device", function()
    planned([[
def @main(%a: T, %b: T, %c: T) {
  %0 = device_copy(add(%a, %b), src_virtual_device=@CPU@, dst_virtual_device=@GPU@);
  %1 = device_copy(%c, src_virtual_device=@GPU@, dst_virtual_device=@GPU@);
  subtract(%0, %1)
}]], "CPU CPU GPU -> GPU", "add on(CPU) copy(CPU,GPU) subtract")
  end)

  it("copies a shared value for each user", function()
    planned([[
def @main(%a: T, %b: T) {
  %0 = add(%a, %b);
  subtract(on_device(%0, virtual_device=@CPU@), on_device(%0, virtual_device=@CPU@))
}]], "CPU CPU -> GPU", "add on(CPU) copy(CPU,GPU) on(CPU) copy(CPU,GPU) subtract")
  end)

  it("annotates the values of lets, and lets them be elsewhere", function()
    planned([[
def @main(%a: T, %b: T, %c: T, %d: T) {
  let %l = add(%a, %b);
  let %r = add(%c, %d);
  subtract(on_device(%l, virtual_device=@CPU@), %r)
}]], "CPU CPU GPU GPU -> GPU", "add on(CPU) add on(GPU) copy(CPU,GPU) subtract")
  end)

  it("carries devices of parameters to calls of functions", function()
    local after = planned([[
def @main(%a: T, %b: T, %c: T, %d: T) {
  let %f = fn (%x: T, %y: T) { on_device(add(%x, %y), virtual_device=@CPU@) };
  subtract(%f(%a, %b), add(%c, %d))
}]], "CPU CPU CPU CPU -> CPU", "add add subtract")
    local f = after.main.body.value or after.main.body.statements[1].value
    assert.truthy(f.attrs.virtual_device:find('"device_type_int": "1"', 1, true))
    assert.equal(2, #f.attrs.param_virtual_devices)
  end)

  it("carries devices of calls to results of functions", function()
    planned([[
def @main(%a: T, %b: T, %c: T, %d: T) {
  let %f = fn (%x: T, %y: T) { add(%x, %y) };
  subtract(on_device(%f(%a, %b), virtual_device=@CPU@), add(%c, %d))
}]], "CPU CPU GPU GPU -> GPU", "add add on(CPU) copy(CPU,GPU) subtract")
  end)

  it("knows the devices of functions that are arguments", function()
    planned([[
def @main(%x: T, %y: T) {
  let %f = fn (%g: fn (T) -> T) {
    fn (%a: T) { add(%g(on_device(%a, virtual_device=@CPU@)), %x) }
  };
  let %h = fn (%b: T) { negative(%b) };
  %0 = %f(%h);
  subtract(%x, %0(%y))
}]], "GPU CPU -> GPU", "copy(CPU,GPU) add negative subtract")
  end)

  it("keeps functions in tuples where the tuple is", function()
    planned([[
def @main(%x: T, %y: T) {
  let %f = fn (%a: T, %b: T) { add(%a, on_device(%b, virtual_device=@CPU@)) };
  let %t = (%f, %x);
  %0 = %t.0;
  %0(%t.1, %y)
}]], "CPU CPU -> CPU", "add on(CPU)")
  end)

  it("keeps shapes on the host", function()
    planned([[
def @main(%x: Tensor[(?, ?), float32]) {
  vm.shape_of(on_device(%x, virtual_device=@GPU@, constrain_result=True), dtype="int64")
}]], "GPU -> CPU", "vm.shape_of")
    planned([[
def @main(%x: Tensor[(2, 8), float32], %s: Tensor[(3), int64]) {
  vm.reshape_tensor(%x, %s, newshape=[2, 4, 2])
}]], "GPU CPU -> GPU", "vm.reshape_tensor")
  end)

  it("copies a projection instead of the tuple", function()
    planned([[
def @main(%x: Tensor[(3, 3, 4), float32]) {
  let %t = split(%x, indices_or_sections=3);
  %0 = on_device(%t, virtual_device=@CPU@);
  %1 = on_device(%t, virtual_device=@CPU@);
  on_device(subtract(%0.0, %1.1), virtual_device=@GPU@)
}]], "CPU -> GPU", "split on(CPU) on(CPU) copy(CPU,GPU) on(CPU) copy(CPU,GPU) subtract")
  end)

  it("gives the results of functions their annotated device", function()
    planned([[
def @main(%x: T, %y: T, %z: T) {
  %0 = on_device(add(%x, %y), virtual_device=@GPU@);
  on_device(subtract(%0, %z), virtual_device=@CPU@)
}]], "GPU GPU CPU -> CPU", "add on(GPU) copy(GPU,CPU) subtract")
  end)

  it("plans branches, also of functions", function()
    planned([[
def @main(%x: bool, %y: T, %z: T) {
  let %f = fn (%a: T) { add(%a, on_device(%y, virtual_device=@CPU@, constrain_result=True)) };
  let %g = fn (%a1: T) { subtract(%a1, %y) };
  let %h = if (%x) { %f } else { %g };
  %h(%z)
}]], "CPU CPU CPU -> CPU", "add subtract on(CPU)")
    planned([[
def @main(%x: bool, %y: T, %z: T) {
  if (on_device(%x, virtual_device=@CPU@)) { on_device(exp(%y), virtual_device=@CPU@) }
  else { %z }
}]], "CPU CPU GPU -> GPU", "copy(CPU,GPU) exp on(CPU) copy(CPU,GPU)")
  end)

  it("plans several functions together", function()
    local after = planned([[
def @f(%a: T, %b: T) -> T { add(%a, on_device(%b, virtual_device=@CPU@)) }
def @main(%x: T, %y: T) -> T { @f(%y, %x) }]], "CPU GPU -> GPU", "")
    assert.truthy(tostring(after.f):find("device_copy", 1, true))
  end)

  it("plans references and data types", function()
    planned([[
def @main(%x: T, %y: T) {
  let %r = ref(%x);
  let %u = ref_write(%r, on_device(%y, virtual_device=@CPU@));
  add(%x, ref_read(%r))
}]], "GPU CPU -> GPU", "on(GPU) copy(CPU,GPU) on(GPU) add")
    planned([[
type List[A] { Cons(A, List[A]), Nil, }
def @main(%x: T, %y: T) {
  let %l = Cons(%x, Cons(on_device(%y, virtual_device=@CPU@, constrain_result=True), Nil));
  match? (%l) { Cons(%z, _) => %z }
}]], "CPU CPU -> CPU", "on(CPU)")
  end)

  it("copies between memories of a device, and takes annotations that only allow it", function()
    local text = short [[
def @on_scope_b(%x{B}: T, {B}) -> T { %x }
def @main(%a{CPU}: T, %b{A}: T, %c{B}: T, {A}) {
  %0 = @on_scope_b(on_device(%a, virtual_device=@CPU@, constrain_body=False));
  %1 = @on_scope_b(on_device(%b, virtual_device=@CPU@, constrain_body=False));
  %2 = @on_scope_b(on_device(%c, virtual_device=@CPU@, constrain_body=False));
  on_device(add(add(%0, %1), %2), virtual_device=@CPU@, constrain_body=False)
}]]
    local after = plan(parse(text))
    assert.equal("CPUB CPUA CPUB -> CPUA", devices_of(after))
    assert.equal("copy(CPUA,CPUB) add add on(CPUB) copy(CPUB,CPUA)", calls_of(after))
  end)

  it("copies a value that users want on several devices", function()
    planned([[
def @main(%a: T, %b: T, %c: T) {
  %0 = on_device(add(%a, %b), virtual_device=@CPU@);
  %1 = on_device(add(%b, %c), virtual_device=@GPU@);
  subtract(%0, %1)
}]], "CPU CPU GPU -> GPU", "add copy(CPU,GPU) add on(CPU) copy(CPU,GPU) subtract")
  end)

  it("leaves primitive functions alone", function()
    local after = plan(parse(short [[
def @main(%x: T) { %0 = fn (%p: T, Primitive=1) { exp(%p) }; %0(%x) }]]))
    assert.is_nil(after.main.body.callee.attrs.virtual_device)
    assert.equal("GPU -> GPU", devices_of(after))
  end)

  it("takes the targets of the context", function()
    local mod = parse(short "def @main(%x: T) { exp(%x) }")
    local after = pl.with(pl.context { target = "cuda -arch=sm_50" }, pl.passes.PlanDevices(), mod)
    assert.equal("GPU -> GPU", devices_of(after))
    local text = after.main.attrs.virtual_device
    assert.truthy(text:find('"repr_str": "sm_50"', 1, true))
    assert.truthy(text:find('"keys": ["arch"]', 1, true))
    assert.truthy(text:find('"repr_str": "llvm"', 1, true))
    assert.equal("CPU -> CPU", devices_of(pl.passes.PlanDevices()(mod)))
    pl.assert_equal(after, assert(pl.parse(after:text())))
  end)

  -- A product of matrices whose buffers are in memories; calls of it in Relay code.
  local function lowered(scopes, signature, annotated)
    local script = assert(pl.tir.parse(([[
@T.prim_func
def gem(a: T.handle, b: T.handle, c: T.handle, d: T.handle):
    A = T.match_buffer(a, (5, 7), scope="%s")
    B = T.match_buffer(b, (5, 7), scope="%s")
    C = T.match_buffer(c, (5, 7), scope="%s")
    D = T.match_buffer(d, (5, 7), scope="%s")
    for i, j in T.grid(5, 7):
        D[i, j] = A[i, j] * B[i, j] + C[i, j]
]]):format(table.unpack(scopes))))
    local global = pl.ir.GlobalVar("gem", pl.type(short "fn (T, T, T) -> T"))
    local holder = parse(short("def @main" .. signature .. " { (" .. annotated .. ") }"))
    local call = pl.ir.Call("call_lowered", { global, holder.main.body })
    local main = pl.func(holder.main.params, call, nil, holder.main.attrs)
    return pl.module { main = main, gem = script.gem }
  end
  local function scopes_of(mod)
    local list = {}
    for name in tostring(mod.gem):gmatch 'T.match_buffer%([^\n]-scope="(%w*)"' do
      list[#list + 1] = name
    end
    return table.concat(list, " ")
  end

  local function free(var)
    return ("on_device(%s, virtual_device=@CPU@, constrain_body=False)"):format(var)
  end

  it("takes the memories of PrimFuncs' buffers, and gives them those of calls", function()
    local mod = lowered({ "scopeA", "", "scopeB", "scopeA" }, "(%x: T, %y{B}: T, %z: T)",
      "%x, %y, %z")
    local after = plan(mod)
    assert(pl.verify(after))
    assert.equal("GPUA CPUB GPUB -> GPUA", devices_of(after))
    assert.equal("call_lowered", calls_of(after))
    assert.equal("scopeA scopeB scopeB scopeA", scopes_of(after))
    assert.equal(after, plan(after))
  end)

  it("copies an operand into the memory that a PrimFunc reads", function()
    local after = plan(lowered({ "scopeA", "scopeB", "", "" },
      "(%x{A}: T, %y{A}: T, %z{CPU}: T, {CPU})", "%x, " .. free "%y" .. ", %z"))
    assert(pl.verify(after))
    assert.equal("CPUA CPUA CPU -> CPU", devices_of(after))
    assert.equal("copy(CPUA,CPUB) on(CPUB) call_lowered", calls_of(after))
    assert.equal("scopeA scopeB", scopes_of(after))
    assert.equal(after, plan(after))
  end)

  it("refuses operands in another memory than a PrimFunc reads", function()
    local ok, diag = pcall(plan, lowered({ "scopeA", "", "", "" }, "(%x{B}: T, %y: T, %z: T)",
      "%x, %y, %z"))
    assert.is_false(ok)
    assert.truthy(diag.message:find("memory scopeA", 1, true))
    assert.truthy(diag.message:find("memory scopeB", 1, true))
  end)

  it("takes long chains", function()
    local x = pl.var("x", "Tensor[(2), float32]")
    local e = x
    for _ = 1, 20000 do e = pl.op.add(e, x) end
    local after = pl.passes.PlanDevices()(pl.module { main = pl.func({ x }, e) })
    assert.equal("CPU -> CPU", devices_of(after))
  end)
end)

describe("PlanDevices refuses", function()
  local function message(text, options)
    local ok, diag = pcall(plan, parse(short(text)), options)
    assert.is_false(ok)
    return diag.message
  end

  it("values that are on two devices, with both nodes and devices", function()
    local text = message [[
def @main(%a{CPU}: T, %b{GPU}: T) { add(%a, %b) }]]
    assert.truthy(text:find("is on device type", 1, true))
    assert.truthy(text:find("but its function needs it on device type 2", 1, true))
    assert.truthy(text:find("device type 1, id 0 (llvm)", 1, true))
    assert.truthy(text:find("device type 2, id 0 (cuda)", 1, true))
    assert.truthy(text:find("%b is on device type 1", 1, true))
    assert.truthy(message([[
def @main(%a{CPU}: T, %x: bool) { if (%x) { exp(%a) } else { device_copy(%a,
  src_virtual_device=@CPU@, dst_virtual_device=@GPU@) } }]]):find("but If", 1, true))
  end)

  it("calls of a function with parameters on another device", function()
    assert.truthy(message([[
def @f(%a{CPU}: T, {CPU}) -> T { exp(%a) }
def @main(%x{GPU}: T) { @f(%x) }]]):find("%x", 1, true))
  end)

  it("devices without a target", function()
    assert.truthy(message([[
def @main(%a{GPU}: T) { exp(%a) }]], { config = { primitive_targets = { "llvm" } } })
      :find("there is no target for device type 2", 1, true))
    assert.truthy(message("def @main(%a: T) { exp(%a) }",
      { config = { primitive_targets = { "llvm" }, default_device_type = 2 } })
      :find("there is no target for device type 2", 1, true))
  end)

  it("a host that is not of its type, and targets without a kind", function()
    assert.truthy(message("def @main(%a: T) { exp(%a) }", { config = { host_device_type = 2 } })
      :find("the host's device type is 2, but its target 'llvm' is for type 1", 1, true))
    assert.truthy(message("def @main(%a: T) { exp(%a) }", { config = { primitive_targets = " " } })
      :find("a target has no kind", 1, true))
  end)
end)
