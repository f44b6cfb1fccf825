-- Laws of the passes that give a program another form, on programs made at random:
-- each form and each chain of them computes what the program computed, effects in
-- their order; is valid, well-formed, and read back from its text the same; a
-- form is final; and what each form promises holds.
--
-- PERILUNE_PROGRAMS says how many programs, PERILUNE_SEED which come first. A seed
-- that fails is named.

local pl = require "perilune"
local amount = require "spec.random.amount"
local random_program = require "spec.random.program"

local first = tonumber(os.getenv "PERILUNE_SEED") or 1
local programs = amount("PERILUNE_PROGRAMS", 400)

local both = "EtaExpand{expand_constructor=true,expand_global_var=true}"
local forms = { "ToANormalForm", "ToGraphNormalForm", "ToBasicBlockNormalForm", "LambdaLift",
  "Inline", both, "FuseOps", "DefuseOps" }

local function int(i) return pl.tensor(i, "int32") end
local arguments = {
  { int(5), int(-3), pl.tensor(true, "bool") },
  { int(-2147483648), int(7), pl.tensor(false, "bool") },
}

-- The results on each list of arguments, as text.
local function results(mod)
  local list = {}
  for _, args in ipairs(arguments) do
    local values = table.pack(pl.eval(mod, table.unpack(args)))
    for i = 1, values.n do list[#list + 1] = tostring(values[i]:to_table()) end
  end
  return table.concat(list, " ")
end

-- -------------------------------------------------------- what forms promise

local function each_node(mod, visit)
  for name, fn in pairs(mod) do
    for node in fn:nodes() do visit(node, fn, name) end
  end
end

-- Every operand of a computation is an atom.
local atoms = { Var = true, GlobalVar = true, Op = true, Constructor = true }

local function operands(node)
  if node.kind == "Call" then return node.args end
  if node.kind == "Tuple" then return node.fields end
  if node.kind == "If" then return { node.cond } end
  if node.kind == "Match" then return { node.data } end
  if node.kind == "TupleGetItem" then return { node.tuple } end
  if node.kind == "RefWrite" then return { node.ref, node.value } end
  return {}
end

local function has_atoms(mod)
  local grouped = {}
  each_node(mod, function(node)
    if node.kind ~= "Function" or not node.attrs.Primitive then return end
    for inside in node:nodes() do grouped[inside] = true end
  end)
  each_node(mod, function(node, _, name)
    if grouped[node] then return end
    for _, operand in ipairs(operands(node)) do
      if not atoms[operand.kind] then
        error(("@%s: %s has %s as operand"):format(name, node.kind, operand.kind), 0)
      end
    end
  end)
end

local function has_recursive_lets_only(mod)
  each_node(mod, function(node, _, name)
    if node.kind ~= "Let" then return end
    local recursive = false
    for _, var in ipairs(pl.free_vars(node.value)) do
      recursive = recursive or var == node.var
    end
    if not recursive then error(("@%s: let %%%s stays"):format(name, node.var.name), 0) end
  end)
end

local function has_lets(mod)
  local found = false
  each_node(mod, function(node) found = found or node.kind == "Let" end)
  return found
end

-- Functions in functions are groups of operators, or what closures' makers give.
local function has_no_closures(mod)
  each_node(mod, function(node, fn, name)
    local made = node == fn or fn.attrs.Closure and node == fn.body
    if node.kind == "Function" and not made and not node.attrs.Primitive then
      error(("@%s: a function is left in it"):format(name), 0)
    end
  end)
end

-- Names of the functions that refer to themselves, through others or not.
local function recursive_names(mod)
  local refers, recursive = {}, {}
  each_node(mod, function(node, _, name)
    if node.kind == "GlobalVar" then
      refers[name] = refers[name] or {}
      refers[name][node.name] = true
    end
  end)
  for name in pairs(refers) do
    local todo, seen = { name }, {}
    while #todo > 0 do
      for other in pairs(refers[table.remove(todo)] or {}) do
        if not seen[other] then
          seen[other] = true
          todo[#todo + 1] = other
        end
      end
    end
    recursive[name] = seen[name]
  end
  return recursive
end

local function has_no_inlined_call(mod, before)
  local recursive = recursive_names(before)
  each_node(mod, function(node, _, name)
    local callee = node.kind == "Call" and not node.op and node.callee
    if not callee or callee.kind ~= "GlobalVar" or recursive[callee.name] then return end
    if before.functions[callee.name].attrs.Inline then
      error(("@%s: a call of @%s is left"):format(name, callee.name), 0)
    end
  end)
end

local function has_no_groups(mod)
  each_node(mod, function(node, _, name)
    if node.kind == "Function" and node.attrs.Primitive then
      error(("@%s: a group is left"):format(name), 0)
    end
  end)
end

local promises = {
  ToANormalForm = function(mod)
    has_atoms(mod)
    assert(pl.is_basic_block_normal_form(mod))
  end,
  ToGraphNormalForm = has_recursive_lets_only,
  ToBasicBlockNormalForm = function(mod) assert(pl.is_basic_block_normal_form(mod)) end,
  LambdaLift = has_no_closures,
  Inline = has_no_inlined_call,
  DefuseOps = has_no_groups,
}

-- -------------------------------------------------------------------- spec

-- What is read knows the effects of the functions that it calls.
local function as_read(mod) return assert(pl.parse(mod:text())) end

local function read_back(mod, expected)
  local back = as_read(mod)
  pl.assert_equal(back, as_read(back))
  assert.equal(tostring(back), tostring(as_read(back)))
  assert.equal(expected, results(back))
end

local function check(mod, form, expected)
  local pass = pl.pipeline(form)
  local out = pass(mod)
  assert(pl.verify(out))
  assert(pl.well_formed(out))
  local got = results(out)
  if got ~= expected then error(("computes %s instead of %s"):format(got, expected), 0) end
  if pass(out) ~= out then error("a second time changes it again", 0) end
  if promises[form] then promises[form](out, mod) end
  return out
end

local function try(seed, what, ...)
  local result = table.pack(pcall(...))
  if result[1] then return result[2] end
  error(("seed %d, %s: %s"):format(seed, what, tostring(result[2])), 0)
end

-- Three forms, one after the other.
local function chain(seed, mod, expected)
  local text = {}
  for i = 0, 2 do
    local form = forms[(seed * 7 + i * 5 + seed // 3) % #forms + 1]
    text[#text + 1] = form
    mod = try(seed, table.concat(text, ","), check, mod, form, expected)
  end
  try(seed, table.concat(text, ",") .. ", printed", read_back, mod, expected)
end

local function undoes(mod, pipeline)
  pl.assert_equal(as_read(mod), as_read(pl.pipeline(pipeline)(mod)))
end

describe("the forms of programs made at random", function()
  print(("# PERILUNE_SEED=%d PERILUNE_PROGRAMS=%d"):format(first, programs))

  local function for_all(run)
    local scope <close> = pl.context { opt_level = 3 }:enter() -- luacheck: ignore scope
    for seed = first, first + programs - 1 do
      local made = try(seed, "making it", random_program, seed)
      local expected = try(seed, "running it", results, made)
      run(seed, try(seed, "reading it", as_read, made), expected)
    end
  end

  it("compute what the program computed, and keep their promises", function()
    for_all(function(seed, mod, expected)
      for _, form in ipairs(forms) do try(seed, form, check, mod, form, expected) end
    end)
  end)

  it("follow each other", function()
    for_all(chain)
  end)

  it("are read back from text", function()
    for_all(function(seed, mod, expected) try(seed, "text", read_back, mod, expected) end)
  end)

  it("are undone: lets", function()
    for_all(function(seed, mod)
      local graph = pl.passes.ToGraphNormalForm()(mod)
      if has_lets(graph) then return end -- of functions that call themselves
      try(seed, "lets", undoes, graph, "ToANormalForm,ToGraphNormalForm")
    end)
  end)

  it("are undone: groups", function()
    for_all(function(seed, mod)
      local taken_apart = pl.passes.DefuseOps()(mod) -- all functions that are called in place
      try(seed, "groups", undoes, taken_apart, "FuseOps,DefuseOps")
    end)
  end)
end)
