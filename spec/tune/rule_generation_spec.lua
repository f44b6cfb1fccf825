-- Rules of graph substitution that are found by fingerprints and proved by axioms and by the
-- evaluator: the generator, and the file that it wrote. PERILUNE_CASES says how many comparisons
-- are made for each rule.

local axioms = require "perilune.rule.generate.axioms"
local check = require "perilune.rule.check"
local command = require "spec.cli.command"
local domains = require "perilune.rule.generate.operators"
local library = require "perilune.rule.library"
local pl = require "perilune"
local proof = require "perilune.rule.generate.proof"
local shipped = require "perilune.rule.check.shipped"
local term = require "perilune.rule.generate.term"
local terms = require "perilune.rule.generate.terms"

local sanitized = (os.getenv "PERILUNE_SANITIZE" or "") ~= ""
local cases = tonumber(os.getenv "PERILUNE_CASES") or (sanitized and 1 or 4)
local rows = library.set "substitution"

local function sides(text, domain)
  local left, past = term.parse(text, domain)
  return { left, (term.parse(text, domain, text:match("^%s*=()", past))) }
end

local function random(shape, seed)
  return pl.tensor.random(shape, "float32", { seed = seed, low = -1, high = 1 })
end

-- What the axioms of a domain prove, and what they do not.
local consequences = {
  matrices = {
    ["left(matmul(x, y)) = matmul(x, left(y))"] = true,
    ["add(matmul(x, y), matmul(z, y)) = matmul(add(x, z), y)"] = true,
    ["matmul(x, y) = matmul(y, x)"] = false,
    ["top(x) = bottom(x)"] = false,
    ["tanh(scale(x, c)) = scale(tanh(x), c)"] = false,
  },
  images = {
    ["concat_channels(conv(x, w), conv(x, v)) = conv(x, concat_outputs(w, v))"] = true,
    ["add(conv(x, w), conv(y, w)) = conv(add(x, y), w)"] = true,
    ["relu(max_pool(first(x))) = first(max_pool(relu(x)))"] = true,
    ["conv(relu(x), w) = relu(conv(x, w))"] = false,
    ["max_pool(add(x, y)) = add(max_pool(x), max_pool(y))"] = false,
    ["max_pool(scale(x, c)) = scale(max_pool(x), c)"] = false,
    ["relu(avg_pool(x)) = avg_pool(relu(x))"] = false,
  },
  dense = {
    ["concat_columns(dense(x, w), dense(x, v)) = dense(x, concat_outputs(w, v))"] = true,
    ["add(dense(top(x), w), dense(top(y), w)) = top(dense(add(x, y), w))"] = true,
    ["dense(x, w) = dense(relu(x), w)"] = false,
    ["top(x) = bottom(x)"] = false,
  },
}

consequences.convolutions = consequences.images

describe("the axioms", function()
  for _, domain in ipairs(domains) do
    it("hold for " .. domain.name, function()
      local agree = terms.other_inputs(domain, 7)
      for _, text in ipairs(axioms[domain.algebra or domain.name]) do
        local pair = sides(text, domain)
        assert.is_true(agree(pair), text)
        local inputs = {}
        for i, variable in ipairs(domain.variables) do inputs[i] = random(variable.shape, i) end
        local difference = pl.eval(proof.module(domain, pair), table.unpack(inputs))
        local zero = pl.tensor.full(0, difference.shape, "float32")
        assert.is_true((difference:compare(zero, { atol = 1e-4 })), text)
      end
    end)

    it("prove what follows, and nothing else, for " .. domain.name, function()
      local proved = proof.prover(domain, proof.axioms(domain))
      for text, expected in pairs(consequences[domain.name]) do
        assert.equal(expected, proved(sides(text, domain)), text)
      end
    end)
  end
end)

describe("the generated rules", function()
  it("are 133 and more", function() assert.is_true(#rows >= 133, #rows) end)

  it("follow from the axioms", function()
    local left = {}
    for _, row in ipairs(rows) do left[row.name] = row end
    for _, domain in ipairs(domains) do
      local proved = proof.prover(domain, proof.axioms(domain))
      for name, row in pairs(left) do
        local is_known, pair = pcall(sides, row.reason, domain)
        if is_known and proved(pair) then left[name] = nil end
      end
    end
    assert.is_nil(next(left))
  end)

  it("hold by the evaluator", function()
    local results = check.all(shipped.prepare(rows), { cases = cases })
    for _, result in ipairs(results) do
      assert.not_equal("failed", result.status, check.text(result))
    end
  end)

  -- Half of a product is needed.
  local function half_of_product()
    local x = pl.var("x", "Tensor[(16, 32), float32]")
    local y = pl.var("y", "Tensor[(32, 64), float32]")
    local sizes = pl.const(pl.tensor({ 32, 32 }, "int64"))
    local parts = pl.op.split(pl.op.nn.matmul(x, y), sizes, { axis = 1, n_results = 2 })
    return pl.module { main = pl.func({ x, y }, (parts:unpack())) }
  end

  it("are applied by the search for substitutions", function()
    local mod = half_of_product()
    local result = pl.tune.backtracking_search { mod = mod, cost = "flops", budget = 200 }
    assert.equal(2 * 16 * 32 * 32, result.cost)
    assert.is_true(pl.equal(result.mod, pl.pipeline(result.text)(mod)))
    assert(pl.check(mod, result.mod, { rtol = 1e-4, atol = 1e-4 }))
    result = pl.tune.backtracking_search { mod = mod, cost = "flops", budget = 200,
      generated_rules = false }
    assert.equal(result.base_cost, result.cost)
  end)

  it("merge convolutions of one image", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8, 6, 6), float32], %w: Tensor[(4, 8, 3, 3), float32],
    %v: Tensor[(4, 8, 3, 3), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], kernel_size=[3, 3]);
  %1 = nn.conv2d(%x, %v, padding=[1, 1, 1, 1], kernel_size=[3, 3]);
  (add(%0, %1),)
}]])
    local pass = pl.passes.EqualitySaturation { cost = "flops", generated_rules = true }
    local out = pass(mod)
    assert.equal(1, pl.list_op_freqs(out)["nn.conv2d"])
    assert(pl.check(mod, out, { rtol = 1e-4, atol = 1e-4 }))
    -- A stride is another operation.
    local strided = assert(pl.parse((mod:text():gsub("padding=", "strides=[2, 2], padding=")
      :gsub("%(1, 4, 6, 6%)", "(1, 4, 3, 3)"))))
    assert.equal(2, pl.list_op_freqs(pass(strided))["nn.conv2d"])
  end)

  local function freqs_of(cost, text)
    local mod = assert(pl.parse('#[version = "0.0.5"]\n' .. text))
    local out = pl.passes.EqualitySaturation { cost = cost, generated_rules = true } (mod)
    -- Sums in another order give other infinities and NaN, which the third round has.
    assert(pl.check(mod, out, { rounds = 2, rtol = 1e-4, atol = 1e-4 }))
    return pl.list_op_freqs(out)
  end

  it("merge ONNX's convolutions, whose attributes are left out or given", function()
    local function convolutions(attributes)
      local text = [[
def @main(%x: Tensor[(1, 8, 6, 6), float32], %w: Tensor[(4, 8, 3, 3), float32],
    %v: Tensor[(4, 8, 3, 3), float32]) {
  %0 = nn.conv(%x, %w, ATTRIBUTES);
  %1 = nn.conv(%x, %v, ATTRIBUTES);
  (add(%0, %1),)
}]]
      return freqs_of("flops", (text:gsub("ATTRIBUTES", attributes)))["nn.conv"]
    end
    assert.equal(1, convolutions "pads=[1, 1, 1, 1]")
    assert.equal(1, convolutions "pads=[1, 1, 1, 1], kernel_shape=[3, 3], strides=[1, 1], group=1")
    assert.equal(2, convolutions "pads=[1, 1, 1, 1], strides=[2, 2]")
    assert.equal(2, convolutions 'auto_pad="SAME_UPPER"')
  end)

  it("know Relay's dense layers and halves", function()
    local freqs = freqs_of("flops", [[
def @main(%x: Tensor[(8, 4), float32], %y: Tensor[(8, 4), float32],
    %w: Tensor[(6, 4), float32]) {
  add(nn.dense(%x, %w, units=None), nn.dense(%y, %w, units=None))
}]])
    assert.equal(1, freqs["nn.dense"])
    freqs = freqs_of("nodes", [[
def @main(%x: Tensor[(8, 4), float32], %y: Tensor[(8, 4), float32]) {
  %0 = (%x, %y);
  %1 = split(concatenate(%0, axis=1), indices_or_sections=2, axis=1);
  nn.relu(%1.1)
}]])
    assert.is_nil(freqs.split)
  end)

  it("are rules of EqualitySaturation when they are asked for", function()
    local mod = half_of_product()
    local pass = pl.passes.EqualitySaturation { cost = "flops", generated_rules = true }
    assert.equal(2 * 16 * 32 * 32, pl.tune.measure.flops(pass(mod)))
    local plain = pl.passes.EqualitySaturation { cost = "flops" }
    assert.equal(mod, plain(mod))
  end)

  it("are left out where they round otherwise and the context wants exact ones", function()
    local x = pl.var("x", "Tensor[(8, 8), float32]")
    local op = pl.op
    local mod = pl.module { main = pl.func({ x },
      op.add(op.nn.matmul(x, op.tanh(x)), op.nn.matmul(x, op.exp(x)))) }
    local pass = pl.passes.EqualitySaturation { cost = "flops", generated_rules = true }
    local exact = pl.context { config = { ["rules.exact"] = true } }
    assert.equal(mod, pl.with(exact, pass, mod))
    assert.is_true(pl.tune.measure.flops(pass(mod)) < pl.tune.measure.flops(mod))
  end)

  -- What axioms say of halves and matrices does not hold of other splits and tensors.
  it("leave splits of three parts, and products of more dimensions, alone", function()
    local x = pl.var("x", "Tensor[(1, 1), float32]")
    local y = pl.var("y", "Tensor[(1, 1), float32]")
    local sizes = pl.const(pl.tensor({ 1, 1, 0 }, "int64"))
    local parts = pl.op.split(pl.op.concatenate({ x, y }, { axis = 1 }), sizes,
      { axis = 1, n_results = 3 })
    local b = pl.var("b", "Tensor[(2, 1, 4, 4), float32]")
    local c = pl.var("c", "Tensor[(4, 4, 4), float32]")
    local ones = pl.const(pl.tensor({ 1, 1 }, "int64"))
    local half = pl.op.split(pl.op.nn.matmul(b, c), ones, { axis = 0, n_results = 2 })
    for _, fn in ipairs { pl.func({ x, y }, (select(2, parts:unpack()))),
      pl.func({ b, c }, (select(2, half:unpack()))) } do
      local mod = pl.module { main = fn }
      for _, cost in ipairs { "nodes", "flops", "bytes" } do
        local pass = pl.passes.EqualitySaturation { cost = cost, generated_rules = true }
        assert(pl.check(mod, pass(mod)))
      end
      pl.passes.GraphSubstitution { shipped_rules = false } (mod)
      assert.is_nil(pl.report()[1].counts.applications)
    end
  end)

  it("are a decision of the space of substitutions", function()
    local mod = half_of_product()
    local function search(generated)
      return pl.tune.search { mod = mod, base = "SimplifyExpr", metrics = { "flops" }, trials = 12,
        space = pl.tune.space.substitution { generated_rules = generated } }
    end
    assert.equal("faster", search(nil).verdict)
    assert.not_equal("faster", search(false).verdict)
  end)
end)

describe("pl.tune.generate_rules", function()
  it("finds rules, which are the same each time", function()
    local rules, counts = pl.tune.generate_rules { operators = 1 }
    assert.is_true(counts.terms > 100)
    local again = pl.tune.generate_rules { operators = 1 }
    assert.same(rules, again)
    for _, row in ipairs(rules) do assert.is_truthy(row.text:find("=>", 1, true)) end
  end)

  it("says what is wrong with its options", function()
    for message, options in pairs {
      ["operators: an integer from 1 to 3"] = { operators = 4 },
      ["seed: an integer"] = { seed = "x" },
      ["there is no domain 'matrix'"] = { domain = "matrix" },
      ["'operator'"] = { operator = 3 },
    } do
      local ok, err = pcall(pl.tune.generate_rules, options)
      assert.is_false(ok)
      assert.matches(message, tostring(err), 1, true)
    end
  end)
end)

describe("perilune rules generate", function()
  it("writes a file that rules check reads", function()
    local folder <close> = setmetatable({ path = command.folder() }, { __close = function(self)
      os.execute("rm -r " .. self.path)
    end })
    local path = folder.path .. "/rules.lua"
    local status, out = command.run(folder.path, "rules generate --operators 1 -o " .. path)
    assert.equal(0, status, out)
    assert.matches("terms, %d+ equations, %d+ proved by axioms", out)
    assert.is_table(dofile(path))
    status, out = command.run(folder.path, "rules generate --operators 1 --domain dense --folder "
      .. folder.path)
    assert.equal(0, status, out)
    assert.is_table(dofile(folder.path .. "/dense.lua"))
  end)

  it("refuses what it cannot do", function()
    for message, case in pairs {
      ["a number from 1 to 3"] = { 2, "--operators 4" },
      ["one of matrices"] = { 2, "--domain matrix" },
      ["/nonexistent/x.lua"] = { 1, "--operators 1 -o /nonexistent/x.lua" },
    } do
      local status, out, err = command.run("/tmp", "rules generate " .. case[2])
      assert.equal(case[1], status)
      assert.matches(message, out .. err, 1, true)
    end
  end)
end)
