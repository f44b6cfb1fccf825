-- Kernels of Relay's form of operators that ONNX has in another form, on numbers worked out by
-- hand after TVM's TOPI.

local computes, refuses = require "spec.op.computed" (it)
local op = require "perilune".op

local function floats(values) return { "float32", values } end
local function ints(values) return { "int32", values } end

it("the operators are there", function()
  for _, name in ipairs { "dft", "stft", "unique" } do assert.truthy(op[name]) end
end)

describe("spectra", function()
  computes("dft takes and gives real and imaginary parts", "dft(%a, %b)",
    { floats { { 1, 2, 3, 4 } }, floats { { 0, 0, 0, 0 } } },
    { { 10, -2, -2, -2 } }, { { 0, 2, 0, -2 } })
  computes("dft is taken back by its inverse", "dft(%a, %b, inverse=True)",
    { floats { 10, -2, -2, -2 }, floats { 0, 2, 0, -2 } }, { 1, 2, 3, 4 }, { 0, 0, 0, 0 })
  refuses("dft has as many imaginary parts", "dft(%a, %b)",
    { floats { { 1, 2 } }, floats { { 0 } } }, "do not match each other")
  computes("stft gives bins before frames", "stft(%a, %b, n_fft=2, hop_length=1, win_length=2)",
    { floats { { 1, 2, 3, 4, 5 } }, floats { 1, 1 } },
    { { { { 3, 0 }, { 5, 0 }, { 7, 0 }, { 9, 0 } },
      { { -1, 0 }, { -1, 0 }, { -1, 0 }, { -1, 0 } } } })
  computes("stft of a shorter window repeats its bins",
    "stft(%a, %b, n_fft=2, hop_length=1, win_length=1)",
    { floats { 1, 2, 3 }, floats { 1 } },
    { { { 1, 0 }, { 2, 0 } }, { { 1, 0 }, { 2, 0 } } })
  computes("stft is divided by the root of its length, and has all bins when asked",
    "stft(%a, %b, n_fft=4, hop_length=4, win_length=4, normalized=True, onesided=False)",
    { floats { { 1, 1, 1, 1 } }, floats { 1, 1, 1, 1 } },
    { { { { 2, 0 } }, { { 0, 0 } }, { { 0, 0 } }, { { 0, 0 } } } })
  refuses("stft has a signal of one frame at least",
    "stft(%a, %b, n_fft=4, hop_length=4, win_length=4)",
    { floats { { 1, 1, 1 } }, floats { 1, 1, 1, 1 } }, "stft")
end)

describe("unique", function()
  local list = ints { 3, 1, 3, 2, 1, 3 }
  computes("pads its results to the length of the operand", "unique(%a, return_counts=True)",
    { list }, { 1, 2, 3, 0, 0, 0 }, { 1, 3, 0, 6, 6, 6 }, { 2, 0, 2, 1, 0, 2 }, { 3 },
    { 2, 1, 3, 0, 0, 0 })
  computes("keeps the order of the first ones when not sorted", "unique(%a, sorted=False)",
    { list }, { 3, 1, 2, 0, 0, 0 }, { 0, 1, 3, 6, 6, 6 }, { 0, 1, 0, 2, 1, 0 }, { 3 })
  computes("of different elements is whole", "unique(%a)", { ints { 2, 1 } },
    { 1, 2 }, { 1, 0 }, { 1, 0 }, { 2 })
end)

describe("grids", function()
  computes("affine_grid gives coordinates before space",
    "image.affine_grid(%a, target_shape=[2, 3])", { floats { { { 1, 0, 0 }, { 0, 1, 0 } } } },
    { { { { -1, 0, 1 }, { -1, 0, 1 } }, { { -1, -1, -1 }, { 1, 1, 1 } } } })
  local image = floats { { { { 1, 2 }, { 3, 4 } } } }
  computes("grid_sample interpolates", "image.grid_sample(%a, %b)",
    { image, floats { { { { -1, 0 } }, { { -1, 0 } } } } }, { { { { 1, 2.5 } } } })
  computes("grid_sample takes the nearest", 'image.grid_sample(%a, %b, method="nearest")',
    { image, floats { { { { 0.9 } }, { { -0.8 } } } } }, { { { { 2 } } } })
  refuses("grid_sample has layouts with channels first",
    'image.grid_sample(%a, %b, layout="NHWC")',
    { image, floats { { { { 0 } }, { { 0 } } } } }, "layout NHWC")
end)

describe("vision.non_max_suppression", function()
  local call = "vision.non_max_suppression(%%a, %%b, %%c, %d, %sf%s)"
  local a, b, c = { 0, 0.8, 1, 20, 25, 45 }, { 1, 0.7, 30, 60, 50, 80 }, { 0, 0.4, 4, 21, 19, 40 }
  local d, e = { 2, 0.9, 35, 61, 52, 79 }, { 1, 0.5, 100, 60, 70, 110 }
  local none = { -1, -1, -1, -1, -1, -1 }
  local operands = { floats { { a, b, c, d, e } }, ints { 4 }, ints { { 0, 1, 2, 3, 4 } } }
  computes("gives indices of boxes by score, and their number", call:format(-1, "0.7", ""),
    operands, { { 3, 0, 1, 2, -1 } }, { { 4 } })
  computes("drops boxes of any class when asked", call:format(-1, "0.5", ", force_suppress=True"),
    operands, { { 3, 0, 2, -1, -1 } }, { { 3 } })
  computes("looks at the best ones only when asked",
    call:format(-1, "0.7", ", force_suppress=True, top_k=2"),
    operands, { { 3, 0, -1, -1, -1 } }, { { 2 } })
  computes("keeps at most as many as it is told to", call:format(1, "0.7", ""),
    operands, { { 3, -1, -1, -1, -1 } }, { { 1 } })
  computes("gives boxes", call:format(-1, "0.5", ", force_suppress=True, return_indices=False"),
    operands, { { d, a, none, c, none } })
  computes("moves invalid boxes behind the others",
    call:format(-1, "0.5", ", force_suppress=True, return_indices=False, invalid_to_bottom=True"),
    operands, { { d, a, c, none, none } })
  computes("keeps all valid ones without an overlap",
    call:format(-1, "0", ", return_indices=False"), operands, { { a, b, c, d, none } })
  refuses("has no more valid boxes than boxes", call:format(-1, "0.7", ""),
    { operands[1], ints { 6 }, operands[3] }, "6 valid boxes of 5")
  refuses("has boxes of four corners", call:format(-1, "0.7", ", coord_start=3"), operands,
    "a box has 6 numbers")
end)
