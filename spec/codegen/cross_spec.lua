-- Generated C on other machines: compiled by cross compilers and run under qemu-user, where
-- Debian's packages gcc-aarch64-linux-gnu, gcc-riscv64-linux-gnu and qemu-user are installed.

local pl = require "perilune"

local machines = {
  { "aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64 -L /usr/aarch64-linux-gnu" },
  { "riscv64", "riscv64-linux-gnu-gcc", "qemu-riscv64 -L /usr/riscv64-linux-gnu" },
}

local program = [[
@T.prim_func
def f(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "int32")):
    for i in range(32):
        A[i] = T.Cast("float32", i * 7 % 13) - T.float32(4)
        B[i] = (i - 16) * 100000007
    A[0:31] = T.max(A[1:32], A[0:31]) * T.Broadcast(T.float32(0.5), 31)
    B[0:32] = T.Select(A[0:32] > T.Broadcast(T.float32(1), 32),
                       B[0:32] // T.Broadcast(8, 32),
                       B[T.Ramp(31, -1, 32)] % T.Broadcast(7, 32))
    B[0:16] = T.Cast("int32x16", A[T.Ramp(0, 2, 16)] * T.Broadcast(T.float32(3e9), 16))
    for i in range(32):
        A[i] = T.sqrt(T.fabs(A[i])) + T.if_then_else(i > 3, A[i - 3], T.float32(1))]]

-- Prints each element, floats as the bits that they have.
local main = [[
#include "f.h"
#include <stdio.h>
#include <string.h>
int main(void) {
  float a[32] = {0};
  int32_t b[32] = {0};
  if (f(a, b))
    return 1;
  for (int i = 0; i < 32; i++)
    printf("%.9g\n", (double)a[i]);
  for (int i = 0; i < 32; i++)
    printf("%d\n", (int)b[i]);
  return 0;
}
]]

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function zeros(n)
  local list = {}
  for i = 1, n do list[i] = 0 end
  return list
end

local function run(dir, compiler, emulator, flags)
  -- What is loaded into the programs of this machine cannot be loaded there.
  local command = ("unset LD_PRELOAD; cd %s && %s -Wall -Wextra -Werror -std=c11 "
    .. "-ffp-contract=off %s main.c f.c -lm -o f && %s ./f"):format(dir, compiler, flags, emulator)
  local pipe = assert(io.popen(command .. " 2>&1"))
  local lines = {}
  for line in pipe:lines() do lines[#lines + 1] = line end
  assert(pipe:close(), table.concat(lines, "\n"))
  return lines
end

describe("C on other machines", function()
  for _, machine in ipairs(machines) do
    local name, compiler, emulator = table.unpack(machine)
    it("computes the same: " .. name, function()
      for _, command in ipairs { compiler, emulator:match "%S+" } do
        if not os.execute(("command -v %s >/dev/null 2>&1"):format(command)) then
          return pending("without " .. command)
        end
      end
      local mod = assert(pl.tir.parse(program))
      local expected = pl.tir.run(mod, { pl.tensor(zeros(32), "float32"),
        pl.tensor(zeros(32), "int32") })
      local dir = os.tmpname() .. ".d"
      os.execute("mkdir " .. dir)
      write(dir .. "/main.c", main)
      for _, bytes in ipairs { 16, 32 } do
        local m = pl.build(mod, { vector_bytes = bytes })
        m:save(dir .. "/f.c")
        m:save(dir .. "/f.h")
        for _, flags in ipairs { "-O2", "-O0" } do
          local lines = run(dir, compiler, emulator, flags)
          for i, x in ipairs(expected[1]:to_table()) do
            assert.equal(("%.9g"):format(x), lines[i])
          end
          for i, x in ipairs(expected[2]:to_table()) do
            assert.equal(tostring(x), lines[32 + i])
          end
        end
      end
      os.execute("rm -r " .. dir)
    end)
  end
end)
