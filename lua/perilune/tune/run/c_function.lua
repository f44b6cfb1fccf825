--- A user's C function as what computes a module (pl.tune.builder { kind = "function" }).
--
--     int NAME(const void *const *inputs, const int64_t *const *shapes, void *output);
--
-- inputs: the operands in the order of the parameters, 64-byte aligned; shapes: those of the
-- operands, then that of the output; what is not 0 is a failure. It is compiled with a program that
-- calls it, in processes of its own: the first one computes what the evaluator must confirm before
-- anything is measured.

local argument = require "perilune.argument"
local child = require "perilune.tune.run.child"
local core = require "perilune.core"
local failure = require "perilune.tune.run.failure"
local inputs = require "perilune.tune.run.inputs"
core.internal()

local c_function = {}

local PROGRAM = [[
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int @NAME@(const void *const *inputs, const int64_t *const *shapes,
           void *output);

enum { N = @N@ };
static const size_t sizes[N + 1] = {@SIZES@};
@SHAPES@
static const int64_t *const shapes[N + 1] = {@SHAPE_NAMES@};
static void *buffers[N + 1];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int call(void) {
  return @NAME@((const void *const *)buffers, shapes, buffers[N]);
}

static int read_inputs(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file)
    return 0;
  for (int i = 0; i <= N; i++) {
    buffers[i] = aligned_alloc(64, (sizes[i] / 64 + 1) * 64);
    if (!buffers[i])
      return 0;
    memset(buffers[i], 0, (sizes[i] / 64 + 1) * 64);
    if (i < N && fread(buffers[i], 1, sizes[i], file) != sizes[i])
      return 0;
  }
  return fclose(file) == 0;
}

/* PROGRAM INPUTS OUTPUT: what it computes; PROGRAM INPUTS: seconds of a run */
int main(int argc, char **argv) {
  if (argc < 2 || !read_inputs(argv[1]))
    return 100;
  if (call() != 0)
    return 101;
  if (argc > 2) {
    FILE *file = fopen(argv[2], "wb");
    if (!file || fwrite(buffers[N], 1, sizes[N], file) != sizes[N])
      return 102;
    return fclose(file) == 0 ? 0 : 102;
  }
  double best = 1e300;
  for (int block = 0; block < 5; block++) {
    double begun = now(), end;
    int n = 0;
    do {
      if (call() != 0)
        return 101;
      n++;
      end = now();
    } while (end - begun < 1e-3);
    if ((end - begun) / n < best)
      best = (end - begun) / n;
  }
  printf("%.9g\n", best);
  return 0;
}
]]

local SECONDS, TOLERANCE = 60, { rtol = 1e-3, atol = 1e-5, scaled = true }

local function list_of(shape)
  return #shape > 0 and table.concat(shape, ", ") or "0"
end

local function program_text(name, tensors)
  local sizes, shapes, names = {}, {}, {}
  for i, tensor in ipairs(tensors) do
    sizes[i], names[i] = tostring(tensor.bytes), "shape" .. i
    shapes[i] = ("static const int64_t shape%d[] = {%s};"):format(i, list_of(tensor.shape))
  end
  local fields = { NAME = name, N = tostring(#tensors - 1), SIZES = table.concat(sizes, ", "),
    SHAPES = table.concat(shapes, "\n"), SHAPE_NAMES = table.concat(names, ", ") }
  return (PROGRAM:gsub("@([A-Z_]+)@", fields))
end

local function write(path, ...)
  local file <close> = assert(io.open(path, "wb"))
  for _, text in ipairs { ... } do assert(file:write(text)) end
end

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

-- A folder that is removed when it is no longer used.
local function new_folder()
  local path = os.tmpname()
  os.remove(path)
  local made = child.run({ "mkdir", "-m", "700", path }, { seconds = 10 })
  if not made then error("no folder can be made for " .. path, 0) end
  local function remove(self)
    if self.path then child.run({ "rm", "-rf", self.path }, { seconds = 60 }) end
    self.path = nil
  end
  return setmetatable({ path = path }, { __close = remove, __gc = remove })
end

local function compile(self, path)
  local words = { self.cc or "cc" }
  for word in (self.flags or "-O3 -march=native"):gmatch "%S+" do words[#words + 1] = word end
  for _, word in ipairs { "-o", path .. "/run", path .. "/run.c", self.source, "-lm" } do
    words[#words + 1] = word
  end
  local log = path .. "/log"
  words = { "/bin/sh", "-c", '"$@" 2>"$0"', log, table.unpack(words) }
  local ok, why = child.run(words, { seconds = self.compile_seconds or 60 })
  if ok then return true end
  local said = read(log):match "[^\n]*error[^\n]*" or tostring(why)
  return nil, failure.new("build", "%s: %s", self.source, said)
end

-- A status says what went wrong in the program.
local reasons = { ["100"] = "its inputs cannot be read", ["101"] = "it gave another result than 0",
  ["102"] = "its result cannot be written" }

local function explained(self, why)
  local reason = reasons[tostring(why):match "its status is (%d+)" or ""]
  return failure.new(why.kind, "the function %s: %s", self.symbol, reason or why.message)
end

-- Whether the function computes what the evaluator does.
local function confirm(self, path, expected)
  local ok, why = child.run({ path .. "/run", path .. "/inputs", path .. "/output" },
    { seconds = SECONDS })
  if not ok then return nil, explained(self, why) end
  local got = core.tensor_bytes(read(path .. "/output"), expected.shape, expected.dtype)
  local how = require "perilune.check.tensor_difference"(got, expected, TOLERANCE)
  if not how then return true end
  return nil, failure.new("wrong result", "the function %s%s", self.symbol, how)
end

--- The runnable of a module, of a builder with source, symbol, cc and flags; nil and a failure.
function c_function.build(self, mod, seconds_in)
  local fn = inputs.entry(mod, "pl.tune.builder")
  local args = inputs.make(fn, self.seed)
  local expected = core.eval_in(mod, fn, table.unpack(args, 1, args.n))
  if argument.kind_of(expected) ~= "Tensor" then
    return nil, failure.new("build", "a C function computes one tensor")
  end
  local folder, tensors, bytes = new_folder(), {}, {}
  for i = 1, args.n do
    if argument.kind_of(args[i]) ~= "Tensor" then
      return nil, failure.new("build", "a C function takes tensors")
    end
    tensors[i], bytes[i] = args[i], args[i]:to_bytes()
  end
  tensors[#tensors + 1] = expected
  write(folder.path .. "/run.c", program_text(self.symbol, tensors))
  write(folder.path .. "/inputs", table.unpack(bytes))
  local ok, why = compile(self, folder.path)
  if ok then ok, why = confirm(self, folder.path, expected) end
  if not ok then return nil, why end
  return { where = "command", mod = mod, folder = folder,
    words = { folder.path .. "/run", folder.path .. "/inputs" },
    seconds_of = function(result) return seconds_in(result.output) end }
end

return c_function
