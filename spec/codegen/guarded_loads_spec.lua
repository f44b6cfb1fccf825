-- Selections by lanes: what their conditions leave out is not read. Tensors end at a page that is
-- not mapped, so that a load behind them is a fault.

local pl = require "perilune"

local te = pl.te

local main = [[
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "%s.h"
/* n floats that end where no memory is mapped. */
static float *at_end(size_t n) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t size = (n * sizeof(float) + page - 1) / page * page;
  char *p = mmap(0, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED || mprotect(p + size, page, PROT_NONE))
    return 0;
  return (float *)(void *)(p + size - n * sizeof(float));
}
static char workspace[1 << 16] __attribute__((aligned(64)));
int main(void) {
  float *a = at_end(%d), *b = at_end(%d);
  for (int i = 0; i < %d; i++)
    a[i] = (float)i + 1;
  (void)workspace;
  if (%s)
    return 2;
  for (int i = 0; i < %d; i++)
    printf("%%g\n", b[i]);
  return 0;
}
]]

local function write(path, text)
  local file <close> = assert(io.open(path, "w"))
  file:write(text)
end

-- What function f(a, b) writes to b, an element a line; nil if it ends by a signal.
local function run(mod, n, m, options)
  local base = os.tmpname()
  local built = pl.build(mod, options)
  built:save(base .. ".c")
  built:save(base .. ".h")
  local call = built:header():find "workspace%)" and built:header():find "f%([^)]*void %*workspace"
    and "f(a, b, workspace)" or "f(a, b)"
  write(base .. "_main.c", main:format(base:match "[^/]+$", n, m, n, call, m))
  local cc = "cc -std=c11 -O2 -march=native -Wall -Wextra -Werror"
  assert(os.execute(("%s -o %s.exe %s.c %s_main.c -lm"):format(cc, base, base, base)))
  local pipe = assert(io.popen(base .. ".exe 2> /dev/null"))
  local list = {}
  for line in pipe:lines() do list[#list + 1] = tonumber(line) end
  local ok = pipe:close()
  os.execute(("rm -f %s*"):format(base))
  return ok and list
end

-- expected(k): element k of b, from 0, where a has 1 .. n.
local function check(mod, n, m, expected)
  local list = {}
  for k = 0, m - 1 do list[k + 1] = expected(k) end
  for _, bytes in ipairs { 16, 64 } do
    local got = run(mod, n, m, { vector_bytes = bytes })
    assert.is_truthy(got, "it read memory that no tensor has")
    assert.same(list, got)
  end
end

local function program(body)
  return assert(pl.tir.parse(([[
@T.prim_func
def f(A: T.Buffer((20,), "float32"), B: T.Buffer((32,), "float32")):
    for i in range(2):
        B[i * 16:i * 16 + 16] = %s]]):format(body)))
end

local inside = "T.Ramp(i * 16, 1, 16) < T.Broadcast(20, 16)"
local zero = "T.Broadcast(T.float32(0), 16)"

local bodies = {
  ["a selection"] = ("T.Select(%s, A[i * 16:i * 16 + 16], %s)"):format(inside, zero),
  ["the other operand"] = ("T.Select(%s, %s, A[i * 16:i * 16 + 16] + %s)"):format(
    "T.Ramp(i * 16, 1, 16) >= T.Broadcast(20, 16)", zero, zero),
  ["if_then_else"] = ("T.if_then_else(%s, A[i * 16:i * 16 + 16], %s)"):format(inside, zero),
  ["nested selections"] = ("T.Select(%s, T.Select(%s, A[i * 16:i * 16 + 16], %s), %s)"):format(
    "T.Ramp(i * 16, 1, 16) < T.Broadcast(25, 16)", inside, zero, zero),
  ["a stride"] = ("T.Select(%s, A[T.Ramp(i * 48, 3, 16)], %s)"):format(
    "T.Ramp(i * 48, 3, 16) < T.Broadcast(20, 16)", zero),
  ["an index of each lane"] = ("T.Select(%s, A[T.Ramp(i * 16, 1, 16) * T.Broadcast(1, 16) + "
    .. "T.Broadcast(i, 16) %% T.Broadcast(1, 16)], %s)"):format(inside, zero),
  ["one element"] = ("T.Select(T.Ramp(i * 16, 1, 16) < T.Broadcast(16, 16), %s, %s)"):format(
    "T.Broadcast(A[i * 5000], 16)", zero),
}

local results = {
  ["a stride"] = function(k) return 3 * k < 20 and 3 * k + 1 or 0 end,
  ["one element"] = function(k) return k < 16 and 1 or 0 end,
}

local function in_order(k) return k < 20 and k + 1 or 0 end

describe("loads of a selection by lanes", function()
  for name, body in pairs(bodies) do
    it("are not behind the end of a tensor: " .. name, function()
      check(program(body), 20, 32, results[name] or in_order)
    end)
  end

  it("are whole vectors where the tensor has all lanes", function()
    local mod = program(("T.Select(%s, A[i * 4:i * 4 + 16], %s)"):format(inside, zero))
    local source = pl.build(mod, { vector_bytes = 64 }):source()
    assert.truthy(source:find("(*(const pl_f32x16_u *)(A + ", 1, true))
    check(mod, 20, 32, function(k) return k < 16 and k + 1 or k < 20 and k - 16 + 5 or 0 end)
  end)

  it("are guarded in a copy of a tile that is not whole", function()
    local a = te.placeholder({ 20 }, "float32", "A")
    local double = te.compute({ 20 }, function(i) return a[{ i }] * 2.0 end, "double")
    local out = te.compute({ 20 }, function(i) return double[{ i }] + 1.0 end, "out")
    local s = te.create_schedule { out.op }
    local outer = s[out]:split(s[out].op.axis[1], 16)
    s[double]:compute_at(s[out], outer)
    s[double]:vectorize(s[double].op.axis[1])
    check(pl.lower(s, { args = { a, out }, name = "f" }), 20, 20, function(k)
      return 2 * (k + 1) + 1
    end)
  end)
end)
