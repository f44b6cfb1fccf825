-- perilune build of a model: C that a program of one's own compiles, calls and links; what it
-- computes is what the evaluator computes.

local pl = require "perilune"
local command = require "spec.cli.command"
local zoo = require "perilune.zoo"

local values = { layers = 1, hidden = 32, heads = 2, intermediate = 64, vocabulary = 50,
  positions = 32 }

-- Reads the constants, calls the model on a row of tokens and prints the first output.
local program = [[
#include "bert.h"
#include <stdio.h>
#include <stdlib.h>

static _Alignas(64) unsigned char weights[1 << 20];
static float states[8 * 32], pooled[32];

int main(void) {
  int64_t ids[8] = {1, 2, 3, 4, 5, 6, 7, 8}, mask[8], types[8] = {0};
  const int64_t row[] = {1, 8};
  FILE *file = fopen("bert.bin", "rb");
  size_t n = file ? fread(weights, 1, sizeof weights, file) : 0;
  if (n == 0)
    return 1;
  for (int i = 0; i < 8; i++)
    mask[i] = 1;
  const int64_t bytes[] = {(int64_t)n}, out[] = {1, 8, 32}, last[] = {1, 32};
  perilune_argument args[] = {{ids, row}, {mask, row}, {types, row},
                              {weights, bytes}, {states, out}, {pooled, last}};
  void *workspace =
      aligned_alloc(64, tvmgen_default___tvm_main___call_workspace(args) + 64);
  if (tvmgen_default___tvm_main___call(args, workspace) != 0)
    return 2;
  for (int i = 0; i < 8 * 32; i++)
    printf("%.9g\n", states[i]);
  free(workspace);
  return 0;
}
]]

-- Calls the model with two sizes, and with shapes that contradict each other.
local sizes_program = [[
#include "bert.h"
#include <stdio.h>
#include <stdlib.h>

static _Alignas(64) unsigned char weights[1 << 20];
static int64_t ids[64], mask[64], types[64], bytes[1];
static float states[64 * 32], pooled[8 * 32];

static int run(int64_t n, int64_t s, int64_t masked) {
  const int64_t row[] = {n, s}, other[] = {n, masked};
  const int64_t out[] = {n, s, 32}, last[] = {n, 32};
  perilune_argument args[] = {{ids, row}, {mask, other}, {types, row},
                              {weights, bytes}, {states, out}, {pooled, last}};
  void *workspace =
      aligned_alloc(64, tvmgen_default___tvm_main___call_workspace(args) + 64);
  int status = tvmgen_default___tvm_main___call(args, workspace);
  free(workspace);
  return status;
}

int main(void) {
  FILE *file = fopen("bert.bin", "rb");
  bytes[0] = file ? (int64_t)fread(weights, 1, sizeof weights, file) : 0;
  for (int i = 0; i < 64; i++)
    ids[i] = i % 7, mask[i] = 1;
  if (run(1, 8, 8) != 0)
    return 1;
  float before = states[5 * 32];
  if (run(2, 8, 8) != 0 || states[5 * 32] != before)
    return 2;
  return run(2, 8, 7) == 0x1000 + 16 + 1 ? 0 : 3;
}
]]

local function model(folder)
  local path = folder .. "/bert.onnx"
  assert(assert(zoo.build("bert", values)):save(path))
  return path
end

describe("perilune build of a model", function()
  local folder

  setup(function() folder = command.folder() end)
  teardown(function() os.execute("rm -rf " .. folder) end)

  it("writes C that a program calls", function()
    local path = model(folder)
    local status, _, err = command.run(folder, ("build %s --dim N=1 --dim S=8 -o %s/bert.c "
      .. "-o %s/bert.h"):format(path, folder, folder))
    assert.equal(0, status, err)
    command.write(folder .. "/main.c", program)
    assert(os.execute(("cd %s && ${CC:-cc} -O1 -o main main.c bert.c -lm && ./main > out.txt")
      :format(folder)))
    local got = {}
    for line in io.lines(folder .. "/out.txt") do got[#got + 1] = tonumber(line) end
    local tokens = { { 1, 2, 3, 4, 5, 6, 7, 8 } }
    local mod = assert(pl.load(path))
    local states = pl.eval(mod, tokens, { { 1, 1, 1, 1, 1, 1, 1, 1 } },
      { { 0, 0, 0, 0, 0, 0, 0, 0 } })
    local expected = states:to_table()[1]
    assert.equal(8 * 32, #got)
    for i = 1, #got do
      local want = expected[(i - 1) // 32 + 1][(i - 1) % 32 + 1]
      assert.is_true(math.abs(got[i] - want) <= 1e-4 * math.max(1, math.abs(want)), i)
    end
  end)

  it("leaves sizes to the caller", function()
    local status, _, err = command.run(folder, ("build %s -o %s/bert.c -o %s/bert.h"):format(
      model(folder), folder, folder))
    assert.equal(0, status, err)
    command.write(folder .. "/sizes.c", sizes_program)
    assert(os.execute(("cd %s && ${CC:-cc} -O1 -Wall -Wextra -Werror -o sizes sizes.c bert.c -lm"
      .. " && ./sizes"):format(folder)))
  end)

  it("says which shapes it does not know", function()
    command.write(folder .. "/any.relay", '#[version = "0.0.5"]\n'
      .. "def @main(%x: Tensor[*, float32]) { exp(%x) }\n")
    local status, _, err = command.run(folder, ("build %s/any.relay -o %s/x.c"):format(folder,
      folder))
    assert.equal(1, status)
    assert.matches("the shape of the input 'x' is Tensor[*, float32]", err, 1, true)
    assert.matches("give --shape x=SIZES", err, 1, true)
  end)

  it("says what cannot be built, without lines of scripts", function()
    command.write(folder .. "/loop.relay", [[
#[version = "0.0.5"]
def @main(%n: int64, %a: Tensor[(3), float32]) -> (Tensor[(3), float32], Tensor[(K, 3), float32]) {
  %9 = fn (%i: int64, %go: bool, %p: Tensor[(3), float32]) { (%go, add(%p, %a), %p) };
  %1: (Tensor[(3), float32], Tensor[(K, 3), float32]) = loop(%n, absent, %a, %9, body=3,
    n_results=2);
  (%1.0, %1.1)
}
]])
    local status, _, err = command.run(folder, ("build %s/loop.relay -o %s/x.c"):format(folder,
      folder))
    assert.equal(1, status)
    assert.equal("perilune: the size 'K' is no dimension of an input: give it by --dim or "
      .. "--shape\n", err)
  end)
end)

describe("perilune build with tcc", function()
  local folder = command.folder()
  teardown(function() os.execute("rm -rf " .. folder) end)

  local has_tcc = os.execute "command -v tcc >/dev/null 2>&1"

  it("makes objects and libraries, and takes flags as a word of their own", function()
    if not has_tcc then return pending "tcc is not installed" end
    local path = command.write(folder .. "/net.relay", [[
#[version = "0.0.5"]
def @main(%x: Tensor[(n, 8), float32]) { nn.softmax(nn.relu(%x)) }
]])
    for _, kind in ipairs { "o", "so" } do
      local status, _, err = command.run(folder, ("build %s -v --cc tcc --cache '' "
        .. "--flags '-DX=1 -g' -o %s/net.%s"):format(path, folder, kind))
      assert.equal(0, status, err)
      assert.matches("tcc -DX=1 -g", err, 1, true)
    end
  end)
end)
