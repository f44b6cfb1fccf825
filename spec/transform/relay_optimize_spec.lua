-- The pipeline relay.optimize: what TVM makes of a module before it lowers operators.

local pl = require "perilune"
local command = require "spec.cli.command"

local TEXT = [[
#[version = "0.0.5"]
def @unused(%x: float32) { exp(%x) }
def @twice(%x: Tensor[(1, 4), float32], Inline=1) { add(%x, %x) }
def @main(%x: Tensor[(1, 4), float32], %y: Tensor[(1, 4), float32]) {
  let %a = nn.dropout(nn.relu(add(%x, %y))).0;
  (tanh(@twice(%a)), nn.softmax(%a))
}
]]

local function module() return assert(pl.parse(TEXT)) end

local function run_at(level, mod, target)
  local context = pl.context { opt_level = level, target = target }
  return pl.with(context, pl.pipelines["relay.optimize"], mod)
end

describe("relay.optimize", function()
  it("is a pipeline by name, in Lua and in text", function()
    assert.equal("relay.optimize", pl.pipelines["relay.optimize"].info.name)
    assert.equal("relay.optimize", pl.pipeline "relay.optimize".passes[1].info.name)
    local names = {}
    for i, one in ipairs(pl.pipelines["relay.optimize"].passes) do names[i] = one.info.name end
    assert.same({ "relay.default", "SplitArgs", "PlanDevices", "FuseOps", "InferType", "Inline",
      "InferType", "LabelOps" }, names)
  end)

  it("plans devices, fuses and labels, and computes the same at each level", function()
    local mod = module()
    for level = 0, 3 do
      local out = run_at(level, mod, "llvm")
      assert(pl.verify(out))
      assert(pl.check(mod, out))
      assert.truthy(out.main.attrs.virtual_device:find('"repr_str": "llvm"', 1, true))
      assert.equal(2, #out.main.attrs.param_virtual_devices)
      local primitive = 0
      for node in out.main:nodes() do
        if node.kind == "Function" and node.attrs.Primitive then
          primitive = primitive + 1
          assert.is_nil(node.attrs.virtual_device)
          assert.equal(level > 0, node.attrs.hash ~= nil)
        end
      end
      assert.is_true(primitive > 1)
      assert.equal(level > 0, out.main.attrs.hash ~= nil)
      pl.assert_equal(out, assert(pl.parse(out:text())))
    end
  end)

  it("keeps to the target's number of arguments", function()
    local xs, sum = {}, nil
    for i = 1, 9 do
      xs[i] = pl.var("x" .. i, "Tensor[(4), float32]")
      sum = sum and pl.op.add(sum, pl.op.exp(xs[i])) or xs[i]
    end
    local out = run_at(2, pl.module { main = pl.func(xs, sum) }, "cuda -max_function_args=5")
    for node in out.main:nodes() do
      if node.kind == "Function" then assert.is_true(#node.params < 5) end
    end
    assert.truthy(out.main.attrs.virtual_device:find('"device_type_int": "2"', 1, true))
  end)

  it("runs from the command line, at a level", function()
    local folder = command.folder()
    local input, output = folder .. "/in.relay", folder .. "/out.relay"
    assert(pl.save(module(), input))
    local status, _, err = command.run(folder,
      ("opt %s -o %s -q -p relay.optimize --opt-level 3 --check"):format(input, output))
    assert.equal(0, status, err)
    local text = command.read(output)
    assert.truthy(text:find("virtual_device=meta[VirtualDevice][0]", 1, true))
    assert.truthy(text:find("Primitive=1, hash=\"", 1, true))
    assert.is_nil(text:find("@unused", 1, true))
    os.execute("rm -rf " .. folder)
  end)
end)
