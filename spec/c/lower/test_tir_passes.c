/* test_tir_passes.c: passes over PrimFuncs, while memory is short. What they
 * make is checked by the specs of spec/tir. */

#include "base/base.h"
#include "oom.h"
#include "pass/pass.h"

typedef struct pass_case {
  const char *pass;
  const char *text; /* of the module */
} pass_case;

#define HEAD                            \
  "from tvm.script import tir as T\n\n" \
  "@T.prim_func\n"                      \
  "def main(A: T.Buffer((64,), 'float32'), B: T.Buffer((64,), 'float32')):\n"
#define CUDA                                                      \
  "    T.func_attr({'target': T.target({'kind': 'cuda', 'keys': " \
  "['cuda', 'gpu'], 'thread_warp_size': 4, 'max_num_threads': 16})})\n"

#define ALLREDUCE                                                        \
  "    ty = T.launch_thread('threadIdx.y', 2)\n"                         \
  "    C = T.allocate([1], 'float32', 'local')\n"                        \
  "    tx = T.launch_thread('threadIdx.x', 8)\n"                         \
  "    C_1 = T.Buffer((1,), data=C, scope='local')\n"                    \
  "    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), " \
  "'reduce_scope', T.reinterpret('handle', T.uint64(0))):\n"             \
  "        T.tvm_thread_allreduce(T.uint32(1), A[ty * 8 + tx], tx < 7, " \
  "C_1[0], tx)\n"                                                        \
  "    if tx == 0:\n"                                                    \
  "        B[ty] = C_1[0]\n"

#define CROSS_THREAD                                                   \
  "    C = T.alloc_buffer((1,), scope='local')\n"                      \
  "    for i in T.thread_binding(4, thread='blockIdx.x'):\n"           \
  "        for k0 in range(2):\n"                                      \
  "            for k in T.thread_binding(12, thread='threadIdx.x'):\n" \
  "                with T.block('C'):\n"                               \
  "                    vi = T.axis.spatial(4, i)\n"                    \
  "                    vk = T.axis.reduce(16, k0 * 12 + k)\n"          \
  "                    T.where(k0 * 12 + k < 16)\n"                    \
  "                    T.reads(A[vi * 16 + vk])\n"                     \
  "                    T.writes(C[0])\n"                               \
  "                    with T.init():\n"                               \
  "                        C[0] = T.float32(0)\n"                      \
  "                    C[0] = C[0] + A[vi * 16 + vk]\n"                \
  "        with T.block('B'):\n"                                       \
  "            vi = T.axis.spatial(4, i)\n"                            \
  "            T.reads(C[0])\n"                                        \
  "            T.writes(B[vi])\n"                                      \
  "            B[vi] = C[0]\n"

#define PIPELINE                                                              \
  "    for i in T.serial(8, annotations={'software_pipeline_stage': [0, 1], " \
  "'software_pipeline_order': [0, 1], 'software_pipeline_async_stages': "     \
  "[0]}):\n"                                                                  \
  "        with T.block('compute'):\n"                                        \
  "            T.reads(A[i])\n"                                               \
  "            T.writes(B[i])\n"                                              \
  "            C = T.alloc_buffer((1,))\n"                                    \
  "            if i < 7:\n"                                                   \
  "                C[0] = A[i]\n"                                             \
  "            B[i] = C[0]\n"

#define TAGGED                                            \
  "    C = T.allocate([8], 'float32', 'local.L0A')\n"     \
  "    E = T.allocate([8], 'float32', 'local.L0A')\n"     \
  "    C_1 = T.Buffer((8,), data=C, scope='local.L0A')\n" \
  "    E_1 = T.Buffer((8,), data=E, scope='local.L0A')\n" \
  "    C_1[0:4] = A[0:4]\n"                               \
  "    E_1[4:8] = A[4:8]\n"                               \
  "    B[0:4] = C_1[0:4] + E_1[4:8]\n"                    \
  "    A[4] = B[7]\n"

#define THREADS                                                   \
  "    for i in T.thread_binding(8, thread='blockIdx.x'):\n"      \
  "        for j in T.thread_binding(4, thread='threadIdx.x'):\n" \
  "            A[i * 4 + j] = T.float32(0)\n"                     \
  "        for k in T.thread_binding(4, thread='threadIdx.x'):\n" \
  "            B[i * 4 + k] = A[i * 4 + k]\n"

#define DYNAMIC                                              \
  "    tx = T.launch_thread('threadIdx.x', 64)\n"            \
  "    C = T.allocate([64], 'float32', 'shared.dyn')\n"      \
  "    E = T.allocate([64], 'float32', 'shared.dyn')\n"      \
  "    F = T.allocate([128], 'float32', 'shared.dyn')\n"     \
  "    C_1 = T.Buffer((64,), data=C, scope='shared.dyn')\n"  \
  "    E_1 = T.Buffer((64,), data=E, scope='shared.dyn')\n"  \
  "    F_1 = T.Buffer((128,), data=F, scope='shared.dyn')\n" \
  "    C_1[tx] = A[tx]\n"                                    \
  "    E_1[tx] = A[tx]\n"                                    \
  "    B[tx] = C_1[tx] + E_1[tx]\n"                          \
  "    F_1[tx] = B[tx]\n"                                    \
  "    A[tx] = F_1[tx]\n"

#define LOCAL_STAGE                                                          \
  "    with T.block('outer'):\n"                                             \
  "        T.reads(A[0:64])\n"                                               \
  "        T.writes(B[0:64])\n"                                              \
  "        S = T.alloc_buffer((64,), scope='shared')\n"                      \
  "        for i in range(64):\n"                                            \
  "            with T.block('copy'):\n"                                      \
  "                T.reads(A[i])\n"                                          \
  "                T.writes(S[i])\n"                                         \
  "                T.block_attr({'tir.manifest_shared_memory_local_stage': " \
  "1})\n"                                                                    \
  "                S[i] = A[i]\n"                                            \
  "        for i in range(64):\n"                                            \
  "            B[i] = S[i]\n"

#define HOSTED                                                    \
  "    T.func_attr({'target': T.target({'kind': 'cuda', 'keys': " \
  "['cuda', 'gpu'], 'tag': '', 'host': {'kind': 'llvm', 'keys': " \
  "['cpu'], 'tag': ''}})})\n"
#define REGIONS                                                            \
  "    for k in range(2):\n"                                               \
  "        with T.attr(T.target({'kind': 'llvm', 'keys': ['cpu'], 'tag': " \
  "''}), 'target', 0):\n"                                                  \
  "            A[k] = B[k]\n"                                              \
  "        i = T.launch_thread('threadIdx.x', 16)\n"                       \
  "        A[i] = B[k]\n"

#define LAYOUT                                                             \
  "    with T.block('root'):\n"                                            \
  "        T.reads()\n"                                                    \
  "        T.writes()\n"                                                   \
  "        C = T.alloc_buffer((8, 8))\n"                                   \
  "        for i in range(64):\n"                                          \
  "            with T.block('copy'):\n"                                    \
  "                vi = T.axis.spatial(64, i)\n"                           \
  "                T.reads(A[vi])\n"                                       \
  "                T.writes(C[vi // 8, vi % 8])\n"                         \
  "                T.block_attr({'meta_schedule.layout_rewrite_preproc': " \
  "1})\n"                                                                  \
  "                C[vi // 8, vi % 8] = A[vi]\n"                           \
  "        B[0] = C[0, 0]\n"

#define CONTEXTS                                                         \
  "    for i in T.parallel(8):\n"                                        \
  "        T.call_extern('int32', 'f', T.tvm_thread_context("            \
  "T.call_extern('handle', 'g', 0)), T.tvm_thread_context(T.call_extern" \
  "('handle', 'g', 1)))\n"                                               \
  "    T.call_extern('int32', 'f', T.tvm_thread_context(T.call_extern("  \
  "'handle', 'g', 0)))\n"

#define AUTO_COPY                                                   \
  "    with T.block('root'):\n"                                     \
  "        T.reads()\n"                                             \
  "        T.writes()\n"                                            \
  "        T.block_attr({'warp_execution': T.bool(True)})\n"        \
  "        S = T.alloc_buffer((8, 8), scope='shared')\n"            \
  "        with T.block('load'):\n"                                 \
  "            T.reads(A[0:64])\n"                                  \
  "            T.writes(S[0:8, 0:8])\n"                             \
  "            T.block_attr({'auto_copy': 1, 'vector_bytes': 8})\n" \
  "            for i, j in T.grid(8, 8):\n"                         \
  "                S[j, i] = A[i * 8 + j]\n"                        \
  "        B[0] = S[0, 0]\n"

#define GUARDED_SUMS                 \
  "    for j in range(40):\n"        \
  "        B[j] = T.float32(0)\n"    \
  "        for k in range(3):\n"     \
  "            s: T.int32 = j + k\n" \
  "            B[j] = B[j] + T.if_then_else(1 <= s and s < 39, A[s], A[k])\n"

static const pass_case cases[] = {
    {"tir.VectorizeOuterLoop", HEAD GUARDED_SUMS},
    {"tir.InstallDebugSpans", HEAD GUARDED_SUMS},
    {"tir.LowerAutoCopy", HEAD AUTO_COPY},
    {"tir.CombineContextCall", HEAD CONTEXTS},
    {"tir.RemoveWeightLayoutRewriteBlock", HEAD LAYOUT},
    {"tir.AnnotateDeviceRegions", HEAD HOSTED REGIONS},
    {"tir.SplitHostDevice", HEAD HOSTED REGIONS},
    {"tir.ManifestSharedMemoryLocalStage", HEAD LOCAL_STAGE},
    {"tir.MergeDynamicSharedMemoryAllocations", HEAD DYNAMIC},
    {"tir.LiftThreadBinding", HEAD THREADS},
    {"tir.UnifyThreadBinding", HEAD THREADS},
    {"tir.StorageRewrite", HEAD TAGGED},
    {"tir.PointerValueTypeRewrite", HEAD TAGGED},
    {"tir.InjectSoftwarePipeline", HEAD PIPELINE},
    {"tir.LowerCrossThreadReduction", HEAD CROSS_THREAD},
    {"tir.LowerThreadAllreduce", HEAD CUDA ALLREDUCE},
    {"tir.LowerThreadAllreduce",
     HEAD "    T.func_attr({'target': T.target({'kind': 'vulkan', 'keys': "
          "['gpu']})})\n" ALLREDUCE},
};

static pln_status apply(pln_engine *engine, void *ud) {
  const pass_case *row = ud;
  pln_module *mod, *out;
  pln_pass *pass;
  PLN_TRY(pln_parse_script(engine, pln_text(row->text), NULL, &mod));
  pln_status status = pln_pass_make(engine, row->pass, 0, &pass);
  if (status == PLN_OK) {
    status = pln_pass_apply(pass, mod, &out);
    if (status == PLN_OK) {
      CHECK(out != mod);
      pln_module_release(out);
    }
    pln_pass_release(pass);
  }
  pln_module_release(mod);
  return status;
}

static void memory_out(void) {
  for (size_t i = 0; i < PLN_COUNT(cases); i++)
    oom_sweep(apply, (void *)(uintptr_t)&cases[i]);
}

static const check_test tests[] = {
    {"memory may be out at any point of a pass", memory_out},
};

CHECK_MAIN(tests)
