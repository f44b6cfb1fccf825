-- What text says beyond Relay's (engine/ir/relay/README.md): types that are
-- declared, nodes that are kept. Each form is read, printed the same, and read
-- as the same module again; wrong ones are refused where they stand.

local pl = require "perilune"

local HEAD = '#[version = "0.0.5"]\n'

--- The module's text without the types behind nodes; it is a fixed point.
local function shown(text)
  local module = assert(pl.parse(HEAD .. text, "m.relay"))
  local printed = tostring(module)
  local again = assert(pl.parse(printed, "again.relay"))
  pl.assert_equal(module, again)
  assert.equal(printed, tostring(again))
  return (printed:sub(#HEAD + 1):gsub(" /%*.-%*/", ""))
end

--- A function of %x with that body; the dims that %x has.
local function main(body, dims)
  return ("def @main(%%x: Tensor[(%s), float32])%s"):format(dims or "4", body)
end

local function refused(body, dims)
  local module, diag = pl.parse(HEAD .. main(body, dims), "m.relay")
  assert.is_nil(module)
  return tostring(diag)
end

local function node_of(text, kind)
  for node in assert(pl.parse(HEAD .. text)).main:nodes() do
    if node.kind == kind then return node end
  end
end

describe("a declared type", function()
  it("stands behind the number of a graph variable", function()
    local text = main(" { %0: Tensor[(2, 3), float32] = nn.relu(%x); tanh(%0) }", "?, 3")
    assert.equal([[
def @main(%x: Tensor[(?, 3), float32]) -> Tensor[(2, 3), float32] {
  %0: Tensor[(2, 3), float32] = nn.relu(%x);
  tanh(%0)
}
]], shown(text))
    assert.equal("Tensor[(2, 3), float32]", tostring(node_of(text, "Call").type))
  end)

  it("is met with what is inferred", function()
    local text = main(" { %0: Tensor[(2, ?), float32] = nn.relu(%x); tanh(%0) }", "?, 3")
    assert.equal("Tensor[(2, 3), float32]", tostring(node_of(text, "Call").type))
    assert.matches("%%0: Tensor%[%(2, 3%), float32%] =", shown(text))
  end)

  it("is not printed when it is inferred as well", function()
    assert.no.matches("%%0:", shown(main(" { %0: Tensor[(4), float32] = tanh(%x); (%0, %0) }")))
  end)

  it("is not what a function or a let says of its value", function()
    local text = main(" -> Tensor[(2, 3), float32] { nn.relu(%x) }", "?, 3")
    assert.equal("Tensor[(?, 3), float32]", tostring(node_of(text, "Call").type))
    assert.no.matches("%%0", shown(text))
    text = main(" { let %y: Tensor[(2, 3), float32] = nn.relu(%x); %y }", "?, 3")
    assert.equal("Tensor[(?, 3), float32]", tostring(node_of(text, "Call").type))
    assert.no.matches("%%0", shown(text))
  end)

  it("has a line of its own", function()
    local text = main([[ {
      if (True) { %0: Tensor[(2), float32] = nn.relu(%x); %0 } else { %x }
    }]], "?")
    assert.matches("%%0: Tensor%[%(2%), float32%] = nn.relu%(%%x%);\n    %%0\n", shown(text))
  end)

  it("outlives passes", function()
    local module = assert(pl.parse(HEAD
      .. main(" { %0: Tensor[(2), float32] = nn.relu(%x); tanh(%0) }", "?")))
    local normal = pl.passes.ToANormalForm()(module)
    pl.assert_equal(normal, assert(pl.parse(normal:text())))
    assert.matches("Tensor%[%(2%), float32%]", tostring(normal))
    local simple = pl.passes.SimplifyExpr()(module)
    assert.matches("%%0: Tensor%[%(2%), float32%]", tostring(simple))
  end)

  it("does not contradict", function()
    assert.equal([[
m.relay:2:39: error: declared as Tensor[(2), float32], but inferred as Tensor[(4), float32]
    def @main(%x: Tensor[(4), float32]) { %0: Tensor[(2), float32] = tanh(%x); %0 }
                                          ^~]],
      refused(" { %0: Tensor[(2), float32] = tanh(%x); %0 }"))
    assert.matches("declared as float32, but inferred as Tensor%[%(4%), float32%]",
      refused(" { %0: float32 = %x; %0 }"))
  end)

  it("is a type", function()
    assert.matches("m.relay:2:43: error: expected", refused(" { %0: = tanh(%x); %0 }"))
    assert.matches("expected", refused(" { %0: Tensor[(2), float32]; %0 }"))
  end)
end)

describe("a kept node", function()
  it("stays though nothing uses it", function()
    local text = main(" { keep %0 = tanh(%x); keep 1f; exp(%x) }")
    assert.equal([[
def @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] {
  keep %0 = tanh(%x);
  keep 1f;
  exp(%x)
}
]], shown(text))
    local module = assert(pl.parse(HEAD .. text))
    assert.no.matches("keep", tostring(pl.passes.DeadCodeElimination()(module)))
  end)

  it("is any expression that computes", function()
    assert.equal([[
def @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] {
  keep %0 = if (True) {
    %x
  } else {
    tanh(%x)
  };
  keep %2 = fn (%y: Tensor[(4), float32]) -> Tensor[(4), float32] {
    keep %1 = exp(%y);
    %y
  };
  keep %3 = ref(%x);
  %2(%x)
}
]], shown(main [[ {
      keep if (True) { %x } else { tanh(%x) };
      keep %0 = fn (%y: Tensor[(4), float32]) { keep exp(%y); %y };
      keep ref(%x);
      %0(%x)
    }]]))
  end)

  it("is a block of lets whose last use is gone", function()
    local text = main [[ {
      keep %0 = (let %a = tanh(%x); random_uniform(shape=[4]));
      keep %1 = random_normal(shape=[4]);
      (%1, %0)
    }]]
    local shown_text = shown(text)
    assert.matches("keep %%%d+ = %(\n    let %%a", shown_text)
    assert.is_true(pl.equal(assert(pl.parse(HEAD .. text)), assert(pl.parse(HEAD .. shown_text))))
    shown_text = shown(main(" { keep %0 = (let %a = tanh(%x); random_uniform(shape=[4])); %0 }"))
    assert.matches("keep %%0 = %(.-%);\n  %%0\n", shown_text)
  end)

  it("may have a declared type", function()
    assert.matches("keep %%0: Tensor%[%(2%), float32%] = tanh%(%%x%);",
      shown(main(" { keep %0: Tensor[(2), float32] = tanh(%x); %x }", "?")))
  end)

  it("stands among lets, in its scope", function()
    assert.equal([[
def @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] {
  let %y: Tensor[(4), float32] = exp(%x);
  keep %0 = tanh(%y);
  let %z: Tensor[(4), float32] = exp(%y);
  %z
}
]], shown(main [[ { let %y = exp(%x); keep tanh(%y); let %z = exp(%y); %z }]]))
  end)

  it("leaves the word to constructors", function()
    assert.matches("= keep;", shown("type T { keep, }\n" .. main " { keep; %x }"))
  end)

  it("is a block of lets", function()
    assert.equal([[
def @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] {
  keep %0 = (
    let %r: ref(Tensor[(4), float32]) = ref(%x);
    ref_write(%r, %x)
  );
  %x
}
]], shown(main " { keep %0 = (let %r = ref(%x); ref_write(%r, %x)); %x }"))
  end)

  it("is no variable", function()
    assert.matches("m.relay:2:44: error: a Var cannot be kept", refused(" { keep %x; %x }"))
    assert.matches("a GlobalVar cannot be kept", refused(" { keep @main; %x }"))
  end)

  it("is kept once, and used in its block only", function()
    assert.matches("2:68: error: a Call is kept twice",
      refused(" { %0 = tanh(%x); keep %0; keep %0; %0 }"))
    assert.matches("a kept node of a block is used outside of the block",
      refused(" { %0 = tanh(%x); %1 = { keep %0; exp(%x) }; (%0, %1) }"))
    assert.matches("invalid IR",
      refused(" { %0 = tanh(%x); %1 = if (True) { keep %0; exp(%x) } else { %x }; (%1, %0) }"))
  end)

  it("ends with a semicolon", function()
    assert.matches("expected ';'", refused(" { keep %0 = tanh(%x) }"))
    assert.matches("expected ';'", refused(" { keep tanh(%x) }"))
  end)
end)

describe("attributes of scopes", function()
  it("stand among the function's own", function()
    local text = [[
def @main(%x: int32, Inline=1, scope.name="g", scope.output_names=["y"]) -> int32 {
  %x
}
]]
    assert.equal(text, shown(text))
  end)

  it("name inputs when these are not called as parameters", function()
    local function head(names) return 'def @main(%x: int32, scope.name="g"' .. names .. ")" end
    assert.matches('scope.name="g"%)', shown(head "" .. " { %x }"))
    assert.matches('scope.name="g"%)', shown(head ", scope.input_names=[\"x\"]" .. " { %x }"))
    assert.matches('scope.input_names=%["q"%], scope.name="g"%)',
      shown(head ", scope.input_names=[\"q\"]" .. " { %x }"))
    assert.matches('scope.input_names=None, scope.name="g"%)',
      shown(head ", scope.input_names=None" .. " { %x }"))
    assert.matches('scope.input_names=%[%], scope.name="g"%)',
      shown(head ", scope.input_names=[]" .. " { %x }"))
  end)

  it("of an If's branches stand behind the condition", function()
    local text = [[
def @main(%c: bool) -> (int32, int32) {
  if (%c, k=1, n_results=2, then.name="a", else.input_names=None, "else.b c"=2f) {
    (1, 2)
  } else {
    (3, 4)
  }
}
]]
    assert.equal(text, shown(text))
    local _, diag = pl.parse(HEAD
      .. "def @main(%c: bool) { if (%c, n_results=2) { 1 } else { 2 } }")
    assert.matches("text:2:23: error: the branches are not tuples of 2 fields", tostring(diag))
  end)

  it("count in equality", function()
    local function named(name)
      return assert(pl.parse(HEAD .. "def @main(%x: int32, scope.name=\"" .. name .. "\") { %x }"))
    end
    assert.is_true(pl.equal(named "a", named "a"))
    assert.is_false(pl.equal(named "a", named "b"))
  end)
end)

--- The same text with the string among its metadata.
local function with_attributes(text)
  return HEAD .. main " { %x }" .. [[

#[metadata]
{"root": 1, "nodes": [{"type_key": ""},
  {"type_key": "Map", "keys": ["IRModule"], "data": [2]},
  {"type_key": "Array", "data": [3]},
  {"type_key": "runtime.String", "repr_str": "]] .. text .. [["}],
 "b64ndarrays": []}
]]
end

describe("attributes of the module", function()
  it("stand in the metadata, where TVM reads them over", function()
    local text = [[n=8, d={ai.onnx=17, \"\"=1}, s=\"\\xff\u00e9\"]]
    local module = assert(pl.parse(with_attributes(text)))
    assert.equal(8, module.attrs.n)
    assert.equal(17, module.attrs.d["ai.onnx"])
    assert.equal("\xff\u{e9}", module.attrs.s)
    local printed = tostring(module)
    assert.matches('"keys": %[%s+"IRModule"%s+%]', printed)
    assert.matches([["type_key": "runtime.String", %s+"repr_str": "d={\"\"=1, ai.onnx=17}, ]],
      printed)
    local again = assert(pl.parse(printed))
    pl.assert_equal(module, again)
    assert.equal(printed, tostring(again))
  end)

  it("are refused as attributes are", function()
    local _, diag = pl.parse(with_attributes "n=8, m", "m.relay")
    assert.equal([[
attributes of the module:1:6: error: expected name=value, got 'm'
    n=8, m
         ^]], tostring(diag))
    _, diag = pl.parse(with_attributes "n=8, n=9", "m.relay")
    assert.matches("attributes of the module:1:6: error: ", tostring(diag))
  end)

  it("are none when the entry is no string", function()
    local text = with_attributes("n=8"):gsub("runtime.String", "IntImm")
    assert.is_nil(assert(pl.parse(text)).attrs.n)
  end)
end)

describe("the order of effects", function()
  it("is told when operands are evaluated in another", function()
    local text = main [[ {
      keep %0 = random_normal(shape=[4]);
      keep %1 = random_uniform(shape=[4]);
      (%1, %0)
    }]]
    assert.matches("keep %%0 = random_normal%(.-keep %%1 = random_uniform", shown(text))
  end)

  it("is told when a let comes between", function()
    local text = main [[ {
      keep %0 = random_normal(shape=[4]);
      let %a = tanh(%x);
      %1 = (let %b = %a; add(%0, %b));
      let %c = add(%1, %1);
      (%0, %c)
    }]]
    local mod = assert(pl.parse(HEAD .. text))
    assert.is_true(pl.equal(mod, assert(pl.parse(mod:text()))))
  end)
end)

describe("an operator's function", function()
  it("is told by its operand when no schema says so", function()
    local text = main [[ {
      %0 = fn (%y: int32) { %y };
      my.domain::Op(%x, %0, f=function(1), l=[function(1)])
    }]]
    assert.matches("f=function%(1%), l=%[function%(1%)%]%)", shown(text))
    assert.matches("expected", refused " { my.domain::Op(%x, f=function(x)) }")
  end)
end)
