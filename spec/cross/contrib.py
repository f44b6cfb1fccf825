"""Runs the operators of com.microsoft on random inputs and compares with onnxruntime.

    contrib.py [SEED [ROUNDS [NAME]]]

Where results are quantised, onnxruntime's kernels multiply in another order than the definition has it; those cases may
differ by one."""
import sys

from single_node import Call, flag, floats, maybe, np, rounded, run, small_shape

CASES = []


def case(make):
    CASES.append(make)
    return make


def quantised(rng, dtype, *shape):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def weights_of(rng, dtype, *shape):
    """Weights for products with uint8. Without VNNI onnxruntime adds two products with int8 in 16 bits, saturated: those
    of seven bits fit."""
    return rng.integers(-64, 64, shape).astype(np.int8) if dtype == np.int8 else quantised(rng, dtype, *shape)


# ---------------------------------------------------------------------------------------------------- activations


@case
def gelu(rng):
    return Call("Gelu", [floats(rng, *small_shape(rng), scale=3)])


@case
def quick_gelu(rng):
    return Call("QuickGelu", [floats(rng, *small_shape(rng), scale=3)], {"alpha": 0.9} if flag(rng) else {})


@case
def fast_gelu(rng):
    x = floats(rng, *small_shape(rng), scale=3)
    return Call("FastGelu", [x, floats(rng, x.shape[-1])][:1 + flag(rng)])


@case
def bias_gelu(rng):
    x = floats(rng, *small_shape(rng), scale=3)
    return Call("BiasGelu", [x, floats(rng, x.shape[-1])])


# ------------------------------------------------------------------------------------------------------- products


@case
def fused_matmul(rng):
    m, k, n = (int(i) for i in rng.integers(1, 6, 3))
    batch = [int(i) for i in rng.integers(1, 4, rng.integers(0, 3))]
    attributes = {"transA": flag(rng), "transB": flag(rng), "alpha": float(rng.choice([1.0, 0.5, -2.0]))}

    def operand(rows, columns, transposed, across):
        dims = [columns, rows] if transposed else [rows, columns]
        return floats(rng, *([dims[0]] + batch + [dims[1]] if across else batch + dims))

    across = [flag(rng), flag(rng)] if batch else [0, 0]
    attributes.update(transBatchA=across[0], transBatchB=across[1])
    return Call("FusedMatMul", [operand(m, k, attributes["transA"], across[0]),
                                operand(k, n, attributes["transB"], across[1])], attributes)


@case
def fused_gemm(rng):
    m, k, n = (int(i) for i in rng.integers(1, 6, 3))
    ta, tb = flag(rng), flag(rng)
    a, b = floats(rng, *((k, m) if ta else (m, k))), floats(rng, *((n, k) if tb else (k, n)))
    name, extra = [("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("LeakyRelu", {"activation_alpha": 0.2}),
                   ("Softplus", {}), ("Softsign", {})][rng.integers(0, 6)]
    return Call("FusedGemm", [a, b, maybe(rng, floats(rng, n))],
                {"transA": ta, "transB": tb, "alpha": 0.7, "beta": 1.3, "activation": name, **extra})


@case
def fused_conv(rng):
    x, w = floats(rng, 2, 4, 7, 6), floats(rng, 6, 4, 3, 2)
    name, parameters = [("Relu", []), ("Sigmoid", []), ("Tanh", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.7]),
                        ("HardSigmoid", [0.3, 0.4])][rng.integers(0, 6)]
    attributes = {"pads": [1, 0, 1, 1], "strides": [2, 1], "activation": name}
    if parameters:
        attributes["activation_params"] = parameters
    return Call("FusedConv", [x, w, maybe(rng, floats(rng, 6)), maybe(rng, floats(rng, 2, 6, 4, 6))], attributes)


@case
def matmul_integer_to_float(rng):
    m, k, n = (int(i) for i in rng.integers(1, 8, 3))
    ta, tb = rng.choice([np.uint8, np.int8]), rng.choice([np.uint8, np.int8])
    columns = (n,) if flag(rng) else ()
    return Call("MatMulIntegerToFloat",
                [quantised(rng, ta, 2, m, k), weights_of(rng, tb, k, n), np.array(0.02, np.float32),
                 np.asarray(np.abs(floats(rng, *columns, scale=0.1))), maybe(rng, quantised(rng, ta).reshape(())),
                 maybe(rng, quantised(rng, tb, *columns).reshape(columns)), maybe(rng, floats(rng, n))])


@case
def dynamic_quantize_matmul(rng):
    m, k, n = (int(i) for i in rng.integers(1, 8, 3))
    dtype = rng.choice([np.uint8, np.int8])
    return Call("DynamicQuantizeMatMul",
                [floats(rng, 2, m, k), weights_of(rng, dtype, k, n), np.array(0.03, np.float32),
                 maybe(rng, quantised(rng, dtype).reshape(())), maybe(rng, floats(rng, n))])


@case
def qgemm(rng):
    m, k, n = (int(i) for i in rng.integers(1, 8, 3))
    ta, tb = flag(rng), flag(rng)
    a, b = quantised(rng, np.uint8, *((k, m) if ta else (m, k))), weights_of(rng, np.int8, *((n, k) if tb else (k, n)))
    inputs = [a, np.array(0.02, np.float32), np.array(120, np.uint8), b, np.array(0.03, np.float32), np.array(-3, np.int8),
              maybe(rng, rng.integers(-900, 900, (n,)).astype(np.int32))]
    attributes = {"transA": ta, "transB": tb, "alpha": float(rng.choice([1.0, 0.5]))}
    if flag(rng):
        return Call("QGemm", inputs, attributes)
    return rounded(Call("QGemm", inputs + [np.array(0.4, np.float32), np.array(100, np.uint8)], attributes))


@case
def matmul_n_bits(rng):
    bits, block = int(rng.choice([2, 4, 4, 8])), int(rng.choice([16, 32, 64]))
    n, blocks = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    k = blocks * block
    x = floats(rng, 2, int(rng.integers(1, 4)), k)
    packed = quantised(rng, np.uint8, n, blocks, block * bits // 8)
    zeros = rng.choice([None, "packed", "floats"]) if bits != 2 else None
    if zeros == "packed":
        zeros = quantised(rng, np.uint8, n, (blocks * bits + 7) // 8)
    elif zeros == "floats":
        zeros = floats(rng, n, blocks) + np.float32(1 << (bits - 1)) if bits == 4 else None
    return Call("MatMulNBits", [x, packed, np.abs(floats(rng, n, blocks, scale=0.1)), zeros],
                {"N": n, "K": k, "bits": bits, "block_size": block})


@case
def matmul_bnb4(rng):
    n, block = int(rng.integers(1, 9)), 16
    k = block * int(rng.integers(1, 4))
    return Call("MatMulBnb4", [floats(rng, 3, k), quantised(rng, np.uint8, (n * k + 1) // 2),
                               np.abs(floats(rng, n * k // block))],
                {"N": n, "K": k, "block_size": block, "quant_type": flag(rng)})


@case
def gather_block_quantized(rng):
    rows, blocks = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    width = 16 * blocks
    data = quantised(rng, np.uint8, rows, width // 2)
    zeros = maybe(rng, quantised(rng, np.uint8, rows, (blocks + 1) // 2))
    indices = rng.integers(0, rows, small_shape(rng, 1, 2)).astype(np.int64)
    return Call("GatherBlockQuantized", [data, indices, np.abs(floats(rng, rows, blocks)), zeros],
                {"block_size": 16, "gather_axis": 0, "quantize_axis": 1})


# -------------------------------------------------------------------------------------------------- normalisation


@case
def skip_layer_normalization(rng):
    b, s, h = (int(i) for i in rng.integers(1, 6, 3))
    h += 2
    skip = [(b, s, h), (1, s, h), (s, h)][rng.integers(0, 3)]
    return Call("SkipLayerNormalization",
                [floats(rng, b, s, h), floats(rng, *skip), floats(rng, h), maybe(rng, floats(rng, h)),
                 maybe(rng, floats(rng, h))], {"epsilon": 1e-5}, names=["y", "", "", "sum"])


@case
def skip_simplified_layer_normalization(rng):
    b, s, h = (int(i) for i in rng.integers(1, 6, 3))
    return Call("SkipSimplifiedLayerNormalization",
                [floats(rng, b, s, h), floats(rng, b, s, h), floats(rng, h), maybe(rng, floats(rng, h))],
                {"epsilon": 1e-5}, names=["y", "", "", "sum"])


@case
def simplified_layer_normalization(rng):
    x = floats(rng, *small_shape(rng, 2, 4))
    return Call("SimplifiedLayerNormalization", [x, floats(rng, x.shape[-1])], {"axis": -1, "epsilon": 1e-6}, domain="")


@case
def embed_layer_normalization(rng):
    b, s, h = int(rng.integers(1, 4)), int(rng.integers(1, 6)), int(rng.integers(2, 8))
    ids = rng.integers(0, 11, (b, s)).astype(np.int32)
    segments = maybe(rng, rng.integers(0, 2, (b, s)).astype(np.int32))
    positions = maybe(rng, rng.integers(0, 9, (b, s)).astype(np.int32))
    return Call("EmbedLayerNormalization",
                [ids, segments, floats(rng, 11, h), floats(rng, 9, h), None if segments is None else floats(rng, 2, h),
                 floats(rng, h), floats(rng, h), maybe(rng, rng.integers(0, 2, (b, s)).astype(np.int32)), positions],
                {"epsilon": 1e-5}, outputs=3)


# ------------------------------------------------------------------------------------------------------ attention


def key_mask(rng, batch, steps, keys):
    kind = rng.integers(0, 5)
    if kind == 0:
        return None
    if kind == 1:
        return rng.integers(1, keys + 1, (batch,)).astype(np.int32)
    if kind == 2:
        ends = rng.integers(1, keys + 1, (batch,))
        return np.concatenate([ends, rng.integers(0, ends)]).astype(np.int32)
    return rng.integers(0, 2, (batch, keys) if kind == 3 else (batch, steps, keys)).astype(np.int32)


@case
def attention(rng):
    b, s, n, h = int(rng.integers(1, 4)), int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
    past = int(rng.integers(0, 4)) if flag(rng) else None
    width, all_keys = int(rng.integers(2, 7)), s + (past or 0)
    attributes = {"num_heads": n, "unidirectional": flag(rng)}
    value = h
    if past is None and flag(rng):
        value = int(rng.integers(1, 5))
        attributes["qkv_hidden_sizes"] = [n * h, n * h, n * value]
    columns = 2 * n * h + n * value
    bias = floats(rng, rng.choice([1, b]), rng.choice([1, n]), s, all_keys) if past is None and flag(rng) else None
    if flag(rng):
        attributes["scale"] = 0.3
    return Call("Attention",
                [floats(rng, b, s, width), floats(rng, width, columns), floats(rng, columns),
                 key_mask(rng, b, s, all_keys), None if past is None else floats(rng, 2, b, n, past, h), bias],
                attributes, outputs=1 + (past is not None))


@case
def qattention(rng):
    b, s, n, h = int(rng.integers(1, 4)), int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
    width, columns = int(rng.integers(2, 7)), 3 * n * h
    weights = rng.choice([np.uint8, np.int8])
    return Call("QAttention",
                [quantised(rng, np.uint8, b, s, width), weights_of(rng, weights, width, columns), floats(rng, columns),
                 np.array(0.02, np.float32), np.array(0.01, np.float32), key_mask(rng, b, s, s),
                 np.array(117, np.uint8), np.array(3, weights)], {"num_heads": n, "unidirectional": flag(rng)})


@case
def multi_head_attention(rng):
    b, s, n, h = int(rng.integers(1, 4)), int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
    form = rng.choice(["plain", "packed_kv", "packed_qkv", "past", "heads"])
    keys = s if form in ("packed_qkv", "past") else int(rng.integers(1, 7))
    width, past, bias = n * h, None, maybe(rng, floats(rng, 3 * n * h))
    q, k, v = floats(rng, b, s, width), floats(rng, b, keys, width), floats(rng, b, keys, width)
    inputs = [q, k, v, bias]
    outputs, total = 1, keys
    if form == "packed_kv":
        inputs = [q, floats(rng, b, keys, n, 2, h), None, None]
    elif form == "packed_qkv":
        inputs = [floats(rng, b, s, n, 3, h), None, None, None]
    elif form == "heads":
        inputs = [q, floats(rng, b, n, keys, h), floats(rng, b, n, keys, h), None]
    elif form == "past":
        past = int(rng.integers(1, 4))
        total += past
        outputs = 3
    mask = key_mask(rng, b, s, total)
    if mask is not None and mask.ndim == 1:
        mask = mask[:b]
    add = floats(rng, rng.choice([1, b]), rng.choice([1, n]), s, total) if flag(rng) else None
    inputs += [mask, add]
    if past:
        inputs += [floats(rng, b, n, past, h), floats(rng, b, n, past, h)]
    attributes = {"num_heads": n}
    if form in ("plain", "past") and keys == s:
        attributes["unidirectional"] = flag(rng)
    return Call("MultiHeadAttention", inputs, attributes, outputs=outputs)


@case
def group_query_attention(rng):
    b, kv, group, h = int(rng.integers(1, 4)), int(rng.integers(1, 3)), int(rng.integers(1, 4)), 16 * int(rng.integers(1, 3))
    n, prompt = kv * group, flag(rng)
    past = 0 if prompt else int(rng.integers(1, 6))
    s = int(rng.integers(2, 6)) if prompt else 1
    lengths = np.full((b,), s + past, np.int64) if prompt else rng.integers(1, past + 1, (b,)) + 1
    total = int(lengths.max()) if not prompt else s
    rotary = flag(rng)
    packed = flag(rng)
    projections = [floats(rng, b, s, (n + 2 * kv) * h), None, None] if packed else \
        [floats(rng, b, s, n * h), floats(rng, b, s, kv * h), floats(rng, b, s, kv * h)]
    tables = [floats(rng, 16, h // 2), floats(rng, 16, h // 2)] if rotary else [None, None]
    attributes = {"num_heads": n, "kv_num_heads": kv, "do_rotary": rotary}
    if rotary:
        attributes["rotary_interleaved"] = flag(rng)
    if flag(rng):
        attributes["local_window_size"] = int(rng.integers(1, 5))
    if flag(rng):
        attributes["softcap"] = 2.0
    if flag(rng):
        attributes["scale"] = 0.4
    extra = [None, floats(rng, rng.choice([1, b]), rng.choice([1, n]), s, total) if flag(rng) else None,
             floats(rng, n) if flag(rng) else None]
    if extra[2] is None and flag(rng):
        attributes["smooth_softmax"] = 1
    cache = [floats(rng, b, kv, past, h), floats(rng, b, kv, past, h)]
    return Call("GroupQueryAttention", projections + cache + [(lengths - 1).astype(np.int32), np.array(total, np.int32)]
                + tables + extra, attributes, outputs=3)


@case
def rotary_embedding(rng):
    b, s, n, half = int(rng.integers(1, 4)), int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
    attributes = {"interleaved": flag(rng)}
    x = floats(rng, b, s, n * 2 * half) if flag(rng) else floats(rng, b, n, s, 2 * half)
    positions = np.array([3], np.int64) if flag(rng) else rng.integers(0, 12, (b, s)).astype(np.int64)
    return Call("RotaryEmbedding", [x, positions, floats(rng, 12, half), floats(rng, 12, half)], attributes)


# ------------------------------------------------------------------------------------------------------ quantised


def scale(rng):
    return np.array(rng.choice([0.02, 0.05, 0.1]), np.float32)


def quantised_operand(rng, dtype, *shape):
    return [quantised(rng, dtype, *shape), scale(rng), quantised(rng, dtype).reshape(())]


def omit_zeros(rng, inputs, places):
    """The same without some of the zero points."""
    return [None if i in places and flag(rng) else x for i, x in enumerate(inputs)]


@case
def qlinear_binary(rng):
    dtype, shape = rng.choice([np.uint8, np.int8]), small_shape(rng)
    other = tuple(1 if flag(rng) else n for n in shape)
    return rounded(Call(rng.choice(["QLinearAdd", "QLinearMul"]),
                        quantised_operand(rng, dtype, *shape) + quantised_operand(rng, dtype, *other)
                        + [scale(rng), quantised(rng, dtype).reshape(())]))


@case
def qlinear_unary(rng):
    dtype = rng.choice([np.uint8, np.int8])
    return rounded(Call(rng.choice(["QLinearSigmoid", "QLinearLeakyRelu"]),
                        omit_zeros(rng, quantised_operand(rng, dtype, *small_shape(rng))
                                   + [np.array(0.01, np.float32), quantised(rng, dtype).reshape(())], (2, 4))))


@case
def qlinear_softmax(rng):
    dtype = rng.choice([np.uint8, np.int8])
    shape = small_shape(rng, 2, 4)
    zero = np.array(np.iinfo(dtype).min, dtype)
    return rounded(Call("QLinearSoftmax", quantised_operand(rng, dtype, *shape) + [np.array(1 / 256, np.float32), zero],
                        {"axis": int(rng.integers(0, len(shape))), "opset": int(rng.choice([12, 13]))}))


@case
def qlinear_concat(rng):
    dtype, n = rng.choice([np.uint8, np.int8]), int(rng.integers(1, 5))
    shapes = [(2, int(rng.integers(1, 5)), 3) for _ in range(n)]
    inputs = [scale(rng), quantised(rng, dtype).reshape(())]
    for shape in shapes:
        inputs += quantised_operand(rng, dtype, *shape)
    return rounded(Call("QLinearConcat", inputs, {"axis": int(rng.choice([1, -2]))}))


@case
def qlinear_average_pool(rng):
    dtype, last = rng.choice([np.uint8, np.int8]), flag(rng)
    shape = (2, 7, 6, 3) if last else (2, 3, 7, 6)
    return rounded(Call("QLinearAveragePool", quantised_operand(rng, dtype, *shape)
                        + [scale(rng), quantised(rng, dtype).reshape(())],
                        {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "channels_last": last,
                         "count_include_pad": flag(rng)}))


@case
def qlinear_global_average_pool(rng):
    dtype, last = rng.choice([np.uint8, np.int8]), flag(rng)
    shape = (2, 7, 6, 3) if last else (2, 3, 7, 6)
    return rounded(Call("QLinearGlobalAveragePool", quantised_operand(rng, dtype, *shape)
                        + [scale(rng), quantised(rng, dtype).reshape(())], {"channels_last": last}))


@case
def qlinear_where(rng):
    dtype, shape = rng.choice([np.uint8, np.int8]), small_shape(rng)
    return rounded(Call("QLinearWhere", [rng.integers(0, 2, shape).astype(bool)] + quantised_operand(rng, dtype, *shape)
                        + quantised_operand(rng, dtype, *shape) + [scale(rng), quantised(rng, dtype).reshape(())]))


@case
def qlinear_conv(rng):
    dtype, last = np.uint8, flag(rng)
    shape = (2, 7, 6, 4) if last else (2, 4, 7, 6)
    x, w = quantised_operand(rng, dtype, *shape), [weights_of(rng, np.int8, 6, 4, 3, 2), scale(rng), np.array(0, np.int8)]
    return rounded(Call("QLinearConv", x + w + [np.array(3.0, np.float32), np.array(120, dtype)],
                        {"channels_last": last, "pads": [1, 0, 1, 1], "strides": [2, 1]}))


@case
def nhwc_max_pool(rng):
    dtype = rng.choice([np.uint8, np.int8])
    return Call("NhwcMaxPool", [quantised(rng, dtype, 2, 7, 6, 3)],
                {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]})


@case
def quantize_linear(rng):
    dtype = rng.choice([np.uint8, np.int8, np.uint16, np.int16])
    x = floats(rng, 3, 4, scale=20)
    if flag(rng):
        return Call("QuantizeLinear", [x, scale(rng), quantised(rng, dtype).reshape(())])
    return Call("QuantizeLinear", [x, np.array([0.1, 0.2, 0.3], np.float32), quantised(rng, dtype, 3)], {"axis": 0})


@case
def dequantize_linear(rng):
    dtype = rng.choice([np.uint8, np.int8, np.uint16, np.int16])
    x = quantised(rng, dtype, 3, 4)
    if flag(rng):
        return Call("DequantizeLinear", [x, scale(rng), quantised(rng, dtype).reshape(())])
    return Call("DequantizeLinear", [x, np.array([0.1, 0.2, 0.3], np.float32), quantised(rng, dtype, 3)], {"axis": 0})


# --------------------------------------------------------------------------------------------------------- others


@case
def gather_nd(rng):
    return Call("GatherND", [floats(rng, 3, 4, 5), rng.integers(0, 3, (2, 6, 2)).astype(np.int64)])


@case
def expand_dims(rng):
    x = floats(rng, *small_shape(rng))
    return Call("ExpandDims", [x, np.array(rng.integers(-x.ndim - 1, x.ndim + 1), np.int32)])


@case
def trilu(rng):
    return Call("Trilu", [floats(rng, 2, 4, 5), maybe(rng, np.array(rng.integers(-4, 5), np.int64))],
                {"upper": flag(rng)})


@case
def inverse(rng):
    n = int(rng.integers(1, 6))
    x = floats(rng, *small_shape(rng, 1, 2), n, n)
    return Call("Inverse", [x + 4 * np.eye(n, dtype=np.float32)])


@case
def cdist(rng):
    k = int(rng.integers(1, 6))
    return Call("CDist", [floats(rng, int(rng.integers(1, 6)), k), floats(rng, int(rng.integers(1, 6)), k)],
                {"metric": rng.choice(["euclidean", "sqeuclidean"])})


# --------------------------------------------------------------------------------------- ONNX's in another form, others


def key_mask_of(rng, batch, keys):
    mask = (rng.random((batch, keys)) < 0.7).astype(np.int32)
    mask[:, 0] = 1
    return mask


@case
def decoder_masked_multi_head_attention(rng):
    b, n, h = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
    q, bias = floats(rng, b, 1, n * h), maybe(rng, floats(rng, 3 * n * h))
    if flag(rng):
        keys = int(rng.integers(1, 6))
        return Call("DecoderMaskedMultiHeadAttention", [q, floats(rng, b, n, keys, h), floats(rng, b, n, keys, h),
                                                        maybe(rng, key_mask_of(rng, b, keys))], {"num_heads": n})
    past = int(rng.integers(0, 4))
    room = past + int(rng.integers(1, 4))
    caches = [floats(rng, b, n, room, h), floats(rng, b, n, room, h)]
    for cache in caches:
        cache[:, :, past + 1:] = 0
    add = floats(rng, 1, n, 1, past + 1) if flag(rng) else None
    return Call("DecoderMaskedMultiHeadAttention",
                [q, floats(rng, b, 1, n * h), floats(rng, b, 1, n * h), maybe(rng, key_mask_of(rng, b, past + 1)), add,
                 *caches, np.array([past], np.int32), None, None, bias],
                {"num_heads": n, "past_present_share_buffer": 1}, outputs=3)


def expert_activation(rng):
    """How many rows the first product has for each one that the activation gives, and the attributes."""
    kind = str(rng.choice(["relu", "gelu", "silu", "identity", "swiglu"]))
    if kind != "swiglu":
        return 1, {"activation_type": kind}
    attributes = {"activation_type": kind, "swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0}
    return 2, {**attributes, "swiglu_limit": 1.5} if flag(rng) else attributes


def tokens_and_logits(rng, hidden, experts):
    x = floats(rng, 5, hidden) if flag(rng) else floats(rng, 2, 3, hidden)
    return x, floats(rng, x.size // hidden, experts)


@case
def moe(rng):
    experts, hidden, inner = 4, 6, 5
    width, attributes = expert_activation(rng)
    x, logits = tokens_and_logits(rng, hidden, experts)
    attributes.update(k=int(rng.integers(1, experts + 1)), normalize_routing_weights=flag(rng))
    return Call("MoE", [x, logits, floats(rng, experts, width * inner, hidden),
                        maybe(rng, floats(rng, experts, width * inner)), floats(rng, experts, hidden, inner),
                        maybe(rng, floats(rng, experts, hidden))], attributes)


@case
def qmoe(rng):
    experts, hidden, inner, bits = 3, 32, 64, int(rng.choice([4, 8]))
    width, attributes = expert_activation(rng)
    x, logits = tokens_and_logits(rng, hidden, experts)
    block, zeros = int(rng.choice([0, 16, 32])), flag(rng)
    attributes.update(k=int(rng.integers(1, experts + 1)), normalize_routing_weights=flag(rng),
                      expert_weight_bits=bits, **({"block_size": block} if block else {}))

    def layer(rows, columns):
        blocks = columns // block if block else 1
        scales = floats(rng, experts, rows, *([blocks] if block else []), scale=0.2 / 2**bits)
        per_row = (blocks * bits + 7) // 8
        zero = quantised(rng, np.uint8, *((experts, rows, per_row) if block else (experts, (rows * bits + 7) // 8)))
        return [quantised(rng, np.uint8, experts, rows, columns * bits // 8), scales,
                maybe(rng, floats(rng, experts, rows))], zero if zeros else None

    first, zero1 = layer(width * inner, hidden)
    second, zero2 = layer(hidden, inner)
    given = maybe(rng, floats(rng, len(logits), experts))
    return Call("QMoE", [x, logits, *first, *second, None, None, None, zero1, zero2, None, given], attributes)


@case
def grid_sample(rng):
    x, grid = floats(rng, 2, 3, 5, 4), rng.uniform(-1.3, 1.3, (2, 3, 6, 2)).astype(np.float32)
    return Call("GridSample", [x, grid], {
        "align_corners": flag(rng), "mode": str(rng.choice(["bilinear", "nearest", "bicubic"])),
        "padding_mode": str(rng.choice(["zeros", "border", "reflection"]))})


@case
def pad(rng):
    x = floats(rng, *(int(n) for n in rng.integers(3, 6, 2)))
    mode = str(rng.choice(["constant", "reflect", "edge"]))
    pads = rng.integers(0, 3, 4).astype(np.int64)
    return Call("Pad", [x, pads] + ([np.array([2.5], np.float32)] if flag(rng) else []), {"mode": mode})


@case
def range_(rng):
    dtype = rng.choice([np.float32, np.int64, np.int32])
    return Call("Range", [np.array(2, dtype), np.array(9, dtype)] + ([np.array(3, dtype)] if flag(rng) else []))


@case
def unique(rng):
    return Call("Unique", [rng.integers(0, 5, int(rng.integers(1, 12))).astype(np.float32)], outputs=3)


@case
def unfold_tensor(rng):
    x = floats(rng, 4, 5, 6)
    return Call("UnfoldTensor", [x], {"dim": int(rng.integers(-3, 3)), "size": int(rng.integers(1, 5)),
                                      "step": int(rng.integers(1, 4))})


@case
def crop_and_resize(rng):
    boxes = rng.uniform(-0.2, 1.2, (3, 4)).astype(np.float32)
    images = rng.integers(0, 2, 3).astype(np.int32)
    size = rng.integers(1, 5, 2).astype(np.int32)
    return Call("CropAndResize", [floats(rng, 2, 3, 6, 5), boxes, images, size],
                {"mode": str(rng.choice(["bilinear", "nearest"])), "extrapolation_value": 0.5})


@case
def conv_transpose_with_dynamic_pads(rng):
    x, w = floats(rng, 2, 4, 5, 4), floats(rng, 4, 3, 3, 2)
    pads = rng.integers(0, 2, 4).astype(np.int64)
    return Call("ConvTransposeWithDynamicPads", [x, w, pads, maybe(rng, floats(rng, 6))],
                {"group": 2, "strides": [2, 1]})


@case
def matmul_integer16(rng):
    m, k, n = (int(i) for i in rng.integers(1, 6, 3))
    return Call("MatMulInteger16", [quantised(rng, np.int16, m, k) // 8, quantised(rng, np.int16, k, n) // 8])


@case
def murmur_hash3(rng):
    dtype = rng.choice([np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64])
    return Call("MurmurHash3", [rng.integers(0, 1 << 30, small_shape(rng)).astype(dtype)],
                {"seed": int(rng.integers(0, 100))})


@case
def murmur_hash3_of_strings(rng):
    texts = np.array(["", "a", "ab", "abc", "abcd", "abcde", "a longer text \u00e4"], object)
    return Call("MurmurHash3", [texts], {"seed": int(rng.integers(0, 100)), "positive": flag(rng)})


@case
def ngram_repeat_block(rng):
    ids = rng.integers(0, 4, (2, int(rng.integers(1, 16)))).astype(np.int64)
    return Call("NGramRepeatBlock", [ids, floats(rng, 2, 4)], {"ngram_size": int(rng.integers(1, 4))})


@case
def qembed_layer_normalization(rng):
    hidden, steps, dtype = 16, 5, rng.choice([np.uint8, np.int8])
    ids = rng.integers(0, 7, (2, steps)).astype(np.int32)
    segments = maybe(rng, rng.integers(0, 2, (2, steps)).astype(np.int32))
    tables = [quantised(rng, dtype, 7, hidden), quantised(rng, dtype, 8, hidden),
              quantised(rng, dtype, 2, hidden) if segments is not None else None,
              quantised(rng, dtype, hidden), quantised(rng, dtype, hidden)]
    scales = [None if t is None else np.array(0.01 * (i + 1), np.float32) for i, t in enumerate(tables)]
    zeros = [None if t is None else quantised(rng, dtype).reshape(()) for t in tables]
    mask = maybe(rng, (rng.random((2, steps)) < 0.7).astype(np.int32))
    return Call("QEmbedLayerNormalization", [ids, segments] + tables + [mask] + scales + zeros, outputs=2)


@case
def dynamic_quantize_lstm(rng):
    inputs, hidden, steps, both = 6, 5, 4, flag(rng)
    batch = 1  # states of a batch are rounded by ranges of their own, as threads share them
    dtype, n = rng.choice([np.uint8, np.int8]), 1 + both
    channels = (4 * hidden,) if dtype == np.int8 and flag(rng) else ()
    w = weights_of(rng, dtype, n, inputs, 4 * hidden)
    r = weights_of(rng, dtype, n, hidden, 4 * hidden)
    scale = lambda: np.abs(floats(rng, n, *channels, scale=0.01)) + np.float32(0.002)
    zero = lambda: np.zeros((n, *channels), dtype) if channels else np.full((n,), 3 if dtype == np.int8 else 120, dtype)
    attributes = {"hidden_size": hidden, "direction": "bidirectional" if both else "forward"}
    if not both and flag(rng):
        attributes["direction"] = "reverse"
    return Call("DynamicQuantizeLSTM", [
        floats(rng, steps, batch, inputs), w, r, maybe(rng, floats(rng, n, 8 * hidden)), None,
        maybe(rng, floats(rng, n, batch, hidden)), maybe(rng, floats(rng, n, batch, hidden)),
        maybe(rng, floats(rng, n, 3 * hidden)), scale(), zero(), scale(), zero()], attributes, outputs=3)


if __name__ == "__main__":
    sys.exit(run(CASES, "contrib"))
