-- What no arm of a match covers: the cases as TVM's unmatched_cases pins them
-- (tests/python/relay/test_pass_unmatched_cases.py), what InferType says of them,
-- and how long it may take.

local pl = require "perilune"
local ir = pl.ir

local HEAD = '#[version = "0.0.5"]\n'
local types = HEAD .. [[
type Box[A] { Put(A) }
type List[A] { Cons(A, List[A]), Nil }
type Color { Red, Green, Blue }
]]

-- A module with those types, and its function's match.
local function with_match(params, arms, more)
  local mod = assert(pl.parse(types .. (more or "")
    .. ("def @main(%s) -> int32 { match? (%%a) { %s } }"):format(params, arms)))
  return mod, mod.main.body
end

local function cases(params, arms, more)
  local mod, match = with_match(params, arms, more)
  local texts = {}
  for i, case in ipairs(assert(pl.unmatched_cases(match, mod))) do texts[i] = tostring(case) end
  return texts
end

local function message(text)
  local mod, diag = pl.parse(text)
  assert.is_nil(mod)
  return diag.message, diag
end

describe("unmatched_cases", function()
  it("test_empty_match_block: without arms it is everything", function()
    local v = pl.var "v"
    local left = assert(pl.unmatched_cases(pl.match(v, {}, { complete = false })))
    assert.equal(1, #left)
    assert.equal("PatternWildcard", left[1].kind)
  end)

  it("test_trivial_matches: nothing is left by _ or by a variable", function()
    local v, w = pl.var "v", pl.var "w"
    assert.same({}, pl.unmatched_cases(pl.match(v, { { "_", v } })))
    assert.same({}, pl.unmatched_cases(pl.match(v, { { w, w } })))
  end)

  it("test_single_constructor_adt: one constructor covers all, nested too", function()
    assert.same({}, cases("%a: Box[int32]", "Put(_) => 1"))
    assert.same({}, cases("%a: Box[Box[Box[int32]]]", "Put(Put(Put(_))) => 1"))
  end)

  it("test_too_specific_match: each list that is too short", function()
    assert.same({ "Cons(_, Nil)", "Nil" }, cases("%a: List[int32]", "Cons(_, Cons(_, _)) => 1"))
    assert.same({}, cases("%a: List[int32]", "Cons(_, Cons(_, _)) => 1, _ => 2"))
  end)

  it("test_multiple_constructor_clauses: arms cover together what none does", function()
    assert.same({}, cases("%a: List[int32]", [[Cons(_, Nil) => 1, Cons(_, Cons(_, Nil)) => 2,
      Nil => 0, Cons(_, Cons(_, _)) => 3]]))
  end)

  it("test_missing_in_the_middle: the one length that is missing", function()
    assert.same({ "Cons(_, Cons(_, Nil))" }, cases("%a: List[int32]",
      "Cons(_, Nil) => 1, Nil => 0, Cons(_, Cons(_, Cons(_, _))) => 3"))
  end)

  it("test_mixed_adt_constructors: types inside of types", function()
    assert.same({ "Put(Nil)" }, cases("%a: Box[List[int32]]", "Put(Cons(_, _)) => 1"))
    assert.same({}, cases("%a: Box[List[int32]]", "Put(Nil) => 0, Put(Cons(_, _)) => 1"))
    assert.same({ "Nil" }, cases("%a: List[Box[int32]]", "Cons(Put(_), _) => 1"))
    assert.same({}, cases("%a: List[Box[int32]]", [[Cons(Put(_), Nil) => 1,
      Cons(Put(_), Cons(Put(_), Nil)) => 2, Cons(Put(_), Cons(Put(_), Cons(Put(_), Nil))) => 3,
      Cons(_, _) => 4, Nil => 0]]))
  end)

  it("test_tuple_match: a tuple of variables", function()
    assert.same({}, cases("%a: (int32, int32)", "(%x, %y) => %x"))
  end)

  it("test_inf_loop_case: arms that overlap are told at once", function()
    assert(pl.parse(HEAD .. [[
type Arith[A] { Zero, Const(A), Plus(Arith[A], Arith[A]) }
def @shallow[A](%a: Arith[A]) -> Arith[A] {
  match (%a) { Plus(Zero, %r) => %r, Plus(%l, Zero) => %l, _ => %a }
}]]))
  end)

  it("test_expanding_ctor_with_no_args: constructors without fields in tuples", function()
    assert.same({}, cases("%a: List[(List[()],)]", "Cons((Nil), Nil) => 1, _ => 2"))
    assert.same({ "Cons((Nil), Cons(_, _))", "Cons((Cons(_, _)), _)", "Nil" },
      cases("%a: List[(List[()],)]", "Cons((Nil), Nil) => 1"))
  end)

  it("test_expanding_empty_tuple: tuples without fields", function()
    assert.same({}, cases("%a: (List[()], ())", "(Cons((), Nil), ()) => 1, _ => 2"))
    assert.same({ "(Cons((), Cons(_, _)), _)", "(Nil, _)" },
      cases("%a: (List[()], ())", "(Cons((), Nil), ()) => 1"))
  end)

  it("tells each constructor that no arm names, in the order of the definition", function()
    assert.same({ "Red", "Blue" }, cases("%a: Color", "Green => 1"))
    assert.same({ "(Red, Green)", "(Red, Blue)", "(Green, _)", "(Blue, _)" },
      cases("%a: (Color, Color)", "(Red, Red) => 1"))
    assert.same({ "(Red, Red)", "(Red, Green)", "(Blue, Red)", "(Blue, Green)" },
      cases("%a: (Color, Color)", "(Green, _) => 1, (_, Blue) => 2"))
  end)

  it("does not look where no arm asks", function()
    assert.same({ "(_, Nil)" }, cases("%a: (List[int32], List[int32])", "(_, Cons(_, _)) => 1"))
  end)

  it("gives patterns that may be arms", function()
    local mod, match = with_match("%a: List[Color]", "Cons(Red, _) => 1")
    local arms = { match.clauses[1] }
    for _, case in ipairs(pl.unmatched_cases(match, mod)) do
      arms[#arms + 1] = { case, pl.const(0, "int32") }
    end
    assert.equal(4, #arms)
    local whole = pl.match(match.data, arms)
    assert.same({}, pl.unmatched_cases(whole, mod))
    local main = mod.main
    assert(pl.infer_type(mod:with { main = main:with { body = whole } }))
  end)

  it("refuses what is not known, or has other fields, or is no match", function()
    local v = pl.var "v"
    local cons = ir.PatternConstructor("Cons", { ir.PatternWildcard() })
    local match = pl.match(v, { { cons, v } })
    local mod = with_match("%a: Color", "_ => 1")
    local function refused(...)
      local left, diag = pl.unmatched_cases(...)
      assert.is_nil(left)
      return diag.message
    end
    assert.equal("the module defines no constructor 'Cons'", refused(match))
    assert.equal("the constructor 'Cons' has 2 fields, the pattern 1", refused(match, mod))
    assert.equal("uncovered cases are those of a Match, got a Var", refused(v))
  end)
end)

describe("a complete match that is not", function()
  it("is refused where it is read, with the cases", function()
    assert.equal("the match does not cover Cons(_, Nil), Nil; only 'match?' may leave out cases: "
      .. "in Match(%a: List[int32]) of @main",
      message(types .. [[def @main(%a: List[int32]) -> int32 {
        match (%a) { Cons(_, Cons(_, _)) => 1 } }]]))
    assert.matches("does not cover _;",
      message(HEAD .. "def @main(%a: (int32, int32)) -> int32 { match (%a) { } }"))
    assert(pl.parse(types .. "def @main(%a: Color) -> int32 { match? (%a) { Red => 1 } }"))
  end)

  it("is refused by InferType, and told of each", function()
    local mod = with_match("%a: Color", "Red => 1, Blue => 2")
    local main = mod.main
    local wrong = main:with { body = main.body:with { complete = true } }
    local typed, diag = pl.infer_type(mod:with { main = wrong, other = wrong })
    assert.is_nil(typed)
    assert.matches("does not cover Green;.*of @main", diag.message)
    assert.equal(1, #diag.notes)
    assert.matches("does not cover Green;.*of @other", diag.notes[1].message)
    assert.error_matches(function() pl.passes.InferType()(mod:with { main = wrong }) end,
      "does not cover Green")
    typed, diag = pl.infer_type(wrong, mod)
    assert.is_nil(typed)
    assert.matches("does not cover Green", diag.message)
    assert.equal(wrong, (pl.infer_type(wrong)))
  end)

  it("is told of in closures, arms and branches, whose types are found", function()
    assert.matches("does not cover Nil", message(types .. [[def @main(%a: List[int32]) -> int32 {
      let %f = fn (%l) { match (%l) { Cons(%h, %t) => { match (%t) { Cons(_, _) => %h } } } };
      %f(%a) }]]))
  end)

  it("shows the first cases of many", function()
    local makers = {}
    for i = 1, 20 do makers[i] = "C" .. i end
    assert.equal("the match does not cover C2, C3, C4, C5, C6, C7, C8, C9, ...; only 'match?' may "
      .. "leave out cases: in Match(%a: T[]) of @main",
      message(HEAD .. "type T { " .. table.concat(makers, ", ")
        .. " }\ndef @main(%a: T) -> int32 { match (%a) { C1 => 1 } }"))
  end)
end)

describe("the search for cases", function()
  -- type T { C1, ... Cn }, and its arms but for the last `left`
  local function wide(n, left)
    local makers, arms = {}, {}
    for i = 1, n do
      makers[i] = "C" .. i
      arms[i] = i <= n - left and ("C%d => %d"):format(i, i) or nil
    end
    return HEAD .. "type T { " .. table.concat(makers, ", ") .. " }\n"
      .. "def @main(%a: T) -> int32 { match (%a) { " .. table.concat(arms, ", ") .. " } }"
  end

  it("takes linear time over many arms", function()
    assert(pl.parse(wide(20000, 0)))
    assert.matches("does not cover C20000;", message(wide(20000, 1)))
  end)

  it("takes linear time over a deep pattern", function()
    local n = 20000
    local deep = ("Cons(_, "):rep(n) .. "Nil" .. (")"):rep(n)
    assert(pl.parse(types .. "def @main(%a: List[int32]) -> int32 { match (%a) { "
      .. deep .. " => 1, _ => 2 } }"))
    assert.matches("does not cover Cons%(_, Cons%(", message(types
      .. "def @main(%a: List[int32]) -> int32 { match (%a) { " .. deep .. " => 1 } }"))
  end)

  it("takes linear time over a wide constructor", function()
    local fields, colors = {}, {}
    for i = 1, 5000 do fields[i], colors[i] = "Color", "Red" end
    assert(pl.parse(types .. "type Wide { W(" .. table.concat(fields, ", ") .. ") }\n"
      .. "def @main(%a: Wide) -> int32 { match (%a) { W(" .. table.concat(colors, ", ")
      .. ") => 1, _ => 2 } }"))
  end)

  it("gives up when the cases are too many to look at", function()
    -- Rows of three columns each, of which no two tell apart the same: 2 ^ n cases.
    local fields, arms = {}, {}
    for i = 1, 40 do fields[i] = "Color" end
    for i = 1, 40 do
      for _, color in ipairs { "Red", "Green" } do
        local arm = {}
        for k = 1, 40 do arm[k] = "_" end
        arm[i], arm[i % 40 + 1] = color, color == "Red" and "Green" or "Red"
        arms[#arms + 1] = "W(" .. table.concat(arm, ", ") .. ") => 1"
      end
    end
    local text = types .. "type Wide { W(" .. table.concat(fields, ", ") .. ") }\n"
      .. "def @main(%a: Wide) -> int32 { match? (%a) { " .. table.concat(arms, ", ") .. " } }"
    local mod = assert(pl.parse(text))
    local left, diag = pl.unmatched_cases(mod.main.body, mod)
    assert.is_nil(left)
    assert.equal("limit", diag.code)
    assert.equal("finding the cases that the arms do not cover takes more than 16777216 steps",
      diag.message)
  end)
end)

describe("the cases of random matches", function()
  -- Values and patterns are { constructor or "", part, ... }; "_" fits all.
  local makers = {
    Color = { { "Red" }, { "Green" }, { "Blue" } },
    List = { { "Cons", "Color", "List" }, { "Nil" } },
    Pair = { { "", "Color", "List" } },
  }

  local function values(of, depth)
    local all = {}
    for _, maker in ipairs(makers[of]) do
      local rows = { { maker[1] } }
      for k = 2, depth > 0 and #maker or 1 do
        local longer = {}
        for _, row in ipairs(rows) do
          for _, part in ipairs(values(maker[k], depth - 1)) do
            local copy = table.move(row, 1, #row, 1, {})
            copy[k] = part
            longer[#longer + 1] = copy
          end
        end
        rows = longer
      end
      if depth > 0 or #maker == 1 then table.move(rows, 1, #rows, #all + 1, all) end
    end
    return all
  end

  local seed = 12345
  local function random(n)
    seed = (seed * 1103515245 + 12345) % 2147483648
    return (seed >> 16) % n + 1
  end

  local function pattern(of, depth)
    if depth == 0 or random(3) == 1 then return "_" end
    local maker = makers[of][random(#makers[of])]
    local made = { maker[1] }
    for k = 2, #maker do made[k] = pattern(maker[k], depth - 1) end
    return made
  end

  local function node_of(p)
    if p == "_" then return ir.PatternWildcard() end
    local parts = {}
    for k = 2, #p do parts[k - 1] = node_of(p[k]) end
    return p[1] == "" and ir.PatternTuple(parts) or ir.PatternConstructor(p[1], parts)
  end

  local function read(node)
    if node.kind == "PatternWildcard" then return "_" end
    local p = { node.constructor or "" }
    for k, part in ipairs(node.patterns) do p[k + 1] = read(part) end
    return p
  end

  local function fits(p, value)
    if p == "_" then return true end
    if p[1] ~= value[1] then return false end
    for k = 2, #p do
      if not fits(p[k], value[k]) then return false end
    end
    return true
  end

  local function count(patterns, value)
    local n = 0
    for _, p in ipairs(patterns) do n = n + (fits(p, value) and 1 or 0) end
    return n
  end

  it("have each value that no arm fits once, and no other", function()
    local mod = with_match("%a: Color", "_ => 1")
    for _ = 1, 200 do
      local of = ({ "Color", "List", "Pair" })[random(3)]
      local arms, clauses, v = {}, {}, pl.var("v", "int32")
      for i = 1, random(6) do
        arms[i] = pattern(of, 4)
        clauses[i] = { node_of(arms[i]), v }
      end
      local left = {}
      for i, case in ipairs(assert(pl.unmatched_cases(pl.match(v, clauses), mod))) do
        left[i] = read(case)
      end
      for _, value in ipairs(values(of, 4)) do
        assert.equal(count(arms, value) > 0 and 0 or 1, count(left, value))
      end
    end
  end)
end)
