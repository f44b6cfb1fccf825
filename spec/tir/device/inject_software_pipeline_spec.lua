local pl = require "perilune"

local inject = pl.passes["tir.InjectSoftwarePipeline"]

local function module_of(body)
  return assert(pl.tir.parse(([[
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((16, 8), "float32"), D: T.Buffer((16, 8), "float32")):
%s
]]):format((body:gsub("[^\n]+", "    %0")))))
end

local function marked(first, last, stage, order, more)
  return ([[for i in T.serial(%s, %s, annotations={"software_pipeline_stage": [%s], ]]
    .. [["software_pipeline_order": [%s]%s}):]]):format(first, last, stage, order, more or "")
end

local function refuses(message, body)
  assert.error_matches(function() inject()(module_of(body)) end, message, 1, true)
end

local two = [[%s
    with T.block("compute"):
        T.reads(A[i, 0])
        T.writes(D[i, 0])
        B = T.alloc_buffer((1,))
        with T.block("load"):
            T.reads(A[i, 0])
            T.writes(B[0])
            B[0] = A[i, 0]
        with T.block("store"):
            T.reads(B[0])
            T.writes(D[i, 0])
            D[i, 0] = B[0] + T.float32(1)]]

-- The second and third statements read what those before them wrote.
local three = [[%s
    with T.block("compute"):
        T.reads(A[i, 0:8])
        T.writes(D[i, 0:8])
        B = T.alloc_buffer((8,))
        C = T.alloc_buffer((1, 8))
        for j in range(8):
            B[j] = A[i, j] * T.float32(2)
        for j in range(8):
            C[0, j] = B[7 - j] + T.float32(2)
        for j in range(8):
            D[i, j] = C[0, j] * B[j] ]]

local orders = { "0, 1, 2", "2, 1, 0", "1, 0, 2", "0, 2, 1", "1, 2, 0", "2, 0, 1" }

describe("tir.InjectSoftwarePipeline", function()
  it("fills memory one round ahead of its use, in another version", function()
    local out = inject()(module_of(two:format(marked(0, 16, "0, 1", "0, 1"))))
    local wanted = module_of [[
with T.block("root"):
    T.reads()
    T.writes()
    with T.block(""):
        T.reads(A[0:16, 0])
        T.writes(D[0:16, 0])
        B = T.alloc_buffer((2, 1))
        with T.block("load"):
            T.reads(A[0, 0])
            T.writes(B[T.FloorMod(0, 2), 0])
            B[T.FloorMod(0, 2), 0] = A[0, 0]
        with T.block(""):
            T.reads(A[1:16, 0], B[0:2, 0])
            T.writes(B[0:2, 0], D[0:15, 0])
            for i in range(15):
                with T.block("load"):
                    T.where(i + 1 < 16)
                    T.reads(A[i + 1, 0])
                    T.writes(B[(i + 1) % 2, 0])
                    B[(i + 1) % 2, 0] = A[i + 1, 0]
                with T.block("store"):
                    T.where(i + 1 - 1 < 16)
                    T.reads(B[(i - 1 + 1) % 2, 0])
                    T.writes(D[i - 1 + 1, 0])
                    D[i - 1 + 1, 0] = B[(i - 1 + 1) % 2, 0] + T.float32(1)
        with T.block("store"):
            T.reads(B[T.FloorMod(15, 2), 0])
            T.writes(D[15, 0])
            D[15, 0] = B[T.FloorMod(15, 2), 0]  + T.float32(1)]]
    assert.is_true(pl.equal(out, wanted, { map_free_vars = true }), pl.tir.script(out))
    assert.is_true(rawequal(out, inject()(out)))
  end)

  it("computes the same in each order of stages, from any first round", function()
    local compared = 0
    local function compare(stage, order, first, last, more)
      local mod = module_of(three:format(marked(first, last, stage, order, more)))
      local ok, out = pcall(inject(), mod)
      if not ok then
        assert.is_truthy(tostring(out):find("two statements of one stage are reordered", 1, true))
        return
      end
      assert(pl.tir.check(mod, out))
      compared = compared + 1
    end
    for last = 0, 4 do
      for middle = 0, last do
        for _, order in ipairs(orders) do
          local stage = ("%d, %d, %d"):format(math.min(middle, 1), middle, last)
          compare(stage, order, 0, 5)
          compare(stage, order, 3, 9, ', "software_pipeline_async_stages": [0]')
        end
      end
    end
    assert.is_true(compared > 80, compared)
  end)

  it("rewrites inner pipelines first, whose parts are statements of the outer one", function()
    local mod = module_of(marked(0, 16, "0, 1, 1, 1", "0, 1, 2, 3") .. [[

    with T.block("outer"):
        T.reads(A[i, 0:8])
        T.writes(D[i, 0:8])
        E = T.alloc_buffer((8,))
        for j in range(8):
            with T.block("load"):
                T.reads(A[i, j])
                T.writes(E[j])
                E[j] = A[i, j]
]] .. marked(0, 8, "0, 1", "0, 1"):gsub("for i", "        for j") .. [[

            with T.block("inner"):
                T.reads(E[j])
                T.writes(D[i, j])
                F = T.alloc_buffer((1,))
                with T.block("double"):
                    T.reads(E[j])
                    T.writes(F[0])
                    F[0] = E[j] * T.float32(2)
                with T.block("store"):
                    T.reads(F[0])
                    T.writes(D[i, j])
                    D[i, j] = F[0] ]])
    local out = inject()(mod)
    assert(pl.tir.check(mod, out))
    local text = pl.tir.script(out)
    assert.is_truthy(text:find("E = T.alloc_buffer((2, 8))", 1, true), text)
    assert.is_nil(text:find "software_pipeline")
  end)

  it("commits asynchronous stages, and waits before what reads them", function()
    local text = pl.tir.script(inject()(module_of(two:format(marked(0, 16, "0, 1", "0, 1",
      ', "software_pipeline_async_stages": [0]')))))
    assert.is_truthy(text:gsub("\n    ", "\n"):find([[
                    with T.block(""):
                        T.where(i + 1 < 16)
                        T.reads(A[i + 1, 0])
                        T.writes(B[(i + 1) % 2, 0])
                        T.attr(0, "async_commit_queue_scope", 0)
                        T.attr(0, "async_scope", 1)
                        B[(i + 1) % 2, 0] = A[i + 1, 0]
                    with T.block("store"):
                        T.where(i + 1 - 1 < 16)
                        T.reads(B[(i - 1 + 1) % 2, 0])
                        T.writes(D[i - 1 + 1, 0])
                        T.attr(0, "async_wait_queue_scope", 0)
                        T.attr(0, "async_wait_inflight_count", 1)]], 1, true), text)
  end)

  it("gives memory two versions where a block demands it, and other loops none", function()
    local text = pl.tir.script(inject()(module_of((two:format(marked(0, 16, "0, 0", "0, 1"))
      :gsub("B%[0%] = A", 'T.block_attr({"double_buffer_scope": 0})\n            %0')))))
    assert.is_truthy(text:find("B = T.alloc_buffer((2, 1))", 1, true), text)
    local mod = module_of(two:format "for i in range(16):")
    assert.is_true(rawequal(mod, inject()(mod)))
  end)

  it("refuses what is no pipeline", function()
    refuses("a statement reads what one of a later stage writes",
      two:format(marked(0, 16, "1, 0", "0, 1")))
    refuses("two statements of one stage are reordered",
      two:format(marked(0, 16, "0, 0", "1, 0")))
    refuses("the orders of a pipeline's statements are not different numbers",
      two:format(marked(0, 16, "0, 1", "1, 1")))
    refuses("has 2 statements, but 'software_pipeline_stage' is not a list of so many numbers",
      two:format(marked(0, 16, "0, 1, 2", "0, 1")))
    refuses("but not both", two:format(
      'for i in T.serial(16, annotations={"software_pipeline_stage": [0, 1]}):'))
    refuses("is not known to have as many rounds as it has stages",
      two:format(marked(0, 2, "0, 3", "0, 1")))
    refuses("the body of a pipeline has less than two statements",
      marked(0, 16, "0", "0") .. "\n    D[i, 0] = A[i, 0]")
    refuses("memory that gets versions is an argument of T.call_extern",
      (two:format(marked(0, 16, "0, 1", "0, 1"))
        :gsub("B%[0%] = A%[i, 0%]", 'T.call_extern("int32", "fill", B.data)')))
  end)
end)
