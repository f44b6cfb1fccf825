-- TVM's recorded analyzer calls, where they are unpacked (PERILUNE_TIR_ORACLE: the folder arith).

local folder = os.getenv "PERILUNE_TIR_ORACLE"

-- Unpacks ../shared's archive into a temporary folder.
local function unpacked()
  local shared = os.getenv "PERILUNE_SHARED" or "../shared"
  local archive = io.open(shared .. "/conformance/tir-oracle.tar.xz")
  if not archive then return nil end
  archive:close()
  local target = os.tmpname() .. ".d"
  local command = "mkdir -p %s && tar -C %s -xf %s/conformance/tir-oracle.tar.xz tir-oracle/arith"
  os.execute(command:format(target, target, shared))
  return target .. "/tir-oracle/arith", target
end

describe("recorded calls of TVM's analyzer", function()
  it("give equal or better results, but for a few", function()
    local replay = dofile "spec/arith/replay.lua"
    local path, temporary = folder, nil
    if not path then path, temporary = unpacked() end
    if not path then return pending "no recorded calls" end
    local rows = {}
    for _, name in ipairs { "rewrite_simplify", "canonical_simplify", "const_int_bound",
      "modular_set", "deduce_bound", "detect_linear_equation", "detect_clip_bound", "simplify",
      "narrow_predicate_expression", "domain_touched", "intset", "iter_affine_map",
      "solve_linear_equations", "solve_linear_inequality" } do
      replay.file(path .. "/test_arith_" .. name .. ".jsonl", function(_, verdict)
        replay.count(rows, "all", verdict)
      end)
    end
    if temporary then os.execute("rm -r " .. temporary) end
    assert.is_true(rows.all.different <= rows.all.cases * 0.03, replay.table(rows))
  end)
end)
