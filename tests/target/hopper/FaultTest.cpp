// Planted faults in small kernels: each is reported at its line, with who else is involved.
#include "tests/target/emu/KernelHarness.h"

using tk::DType;
using tk::test::KernelHarness;

namespace {

/// What the emulator says of a kernel whose body begins at line 7. It gets x, 64 integers, as
/// address and as a map with boxes of 16, and y, 64 integers to be written; `ready` is a phase
/// barrier for one arrival, `shared` 64 integers of shared memory.
std::string report(const std::string &body, const char *timing = "late", unsigned threads = 128,
                   unsigned cluster = 1) {
  KernelHarness k(R"(#include "hopper.cuh"
extern "C" __global__ void __launch_bounds__(128)
k(const int *x, const __grid_constant__ tk::TensorMap map, int *y) {
  auto *const ready = reinterpret_cast<tk::PhaseBarrier *>(tk::shared_memory());
  int *const shared = reinterpret_cast<int *>(tk::shared_memory() + 128); const int i = tk::thread_index();
  if (i == 0) { tk::phase_init(ready, 1); tk::phase_init_fence(); } tk::barrier();
)" + body + R"(
  if (tk::cluster_rank() == 0 && i < 64) tk::put(&y[i], 0);
})");
  std::vector<int> x(64, 5), y(64);
  k.threads = threads;
  k.grid = k.cluster = cluster;
  k.sharedBytes = 1024;
  k.options.timing = tk::emu::Timing::parse(timing);
  k.in(x, DType::i32);
  k.mappedAgain({16}, 0);
  k.out(y, DType::i32);
  return k.run();
}

void expect(const std::string &body, const std::vector<std::string> &parts,
            const std::vector<const char *> &timings = {"late", "early", "random:1"}) {
  for (const char *timing : timings) {
    const std::string text = report(body, timing);
    INFO(timing << ": " << text);
    for (const std::string &part : parts)
      CHECK(text.find(part) != std::string::npos);
  }
}

const std::string load = "  if (i == 0) { tk::phase_expect(ready, 64); "
                         "tk::bulk_load<1>(shared, &map, {0}, ready); }\n";

} // namespace

TEST_CASE("the kernel of these tests is right without a fault", "[emu]") {
  for (const char *timing : {"late", "early", "random:1", "random:2"})
    CHECK(report(load + "  tk::phase_wait(ready, 0);\n  if (i < 16) tk::get(&shared[i]);",
                 timing) == "");
}

TEST_CASE("a read of what a bulk load brings without a wait", "[emu]") {
  expect(load + "  if (i == 7) tk::get(&shared[i]);",
         {"k.tk:8: ", "thread 7 (warp 0, lane 7) reads byte 156 of shared memory"});
  expect(load + "  if (i == 7) tk::get(&shared[i]);",
         {"while an asynchronous copy into it is in flight, begun by thread 0 (warp 0, lane 0) at "
          "k.tk:7"},
         {"late"});
  expect(load + "  if (i == 7) tk::get(&shared[i]);",
         {"which a bulk copy wrote at k.tk:7 with no barrier in between"}, {"early"});
}

TEST_CASE("a write into what a bulk load brings", "[emu]") {
  expect(load + "  if (i == 7) tk::put(&shared[i], 1);",
         {"k.tk:8: ", "thread 7 (warp 0, lane 7) writes byte 156 of shared memory"});
}

TEST_CASE("a wait for a phase that ended long ago", "[emu]") {
  // The second load should be waited for with parity 1.
  expect(load +
             "  tk::phase_wait(ready, 0);\n  if (i < 16) tk::get(&shared[i]);\n"
             "  tk::barrier();\n" +
             load + "  tk::phase_wait(ready, 0);\n  if (i == 7) tk::get(&shared[i]);",
         {"k.tk:13: ", "thread 7 (warp 0, lane 7) reads byte 156 of shared memory"}, {"late"});
}

TEST_CASE("a wait for a phase that never ends", "[emu]") {
  expect("  tk::phase_wait(ready, 0);",
         {"k.tk:7: ",
          "deadlock: threads 0-127 at a phase barrier at k.tk:7 for the end of a phase "
          "of parity 0 (at byte 0, in phase 0: 1 of 1 arrivals and 0 bytes are missing)"});
}

TEST_CASE("more bytes than were announced, or fewer", "[emu]") {
  expect("  if (i == 0) { tk::phase_expect(ready, 32); "
         "tk::bulk_load<1>(shared, &map, {0}, ready); }\n  tk::phase_wait(ready, 0);",
         {"deadlock", "0 of 1 arrivals and -32 bytes are missing"});
  expect("  if (i == 0) { tk::phase_expect(ready, 128); "
         "tk::bulk_load<1>(shared, &map, {0}, ready); }\n  tk::phase_wait(ready, 0);",
         {"deadlock", "0 of 1 arrivals and 64 bytes are missing"});
  expect("  if (i == 0) tk::phase_expect(ready, 1 << 20);",
         {"k.tk:7: ", "announces 1048576 bytes; a phase barrier counts to 2^20 - 1"});
}

TEST_CASE("more arrivals than a phase takes", "[emu]") {
  expect("  if (i == 0) { tk::phase_expect(ready, 64); tk::phase_arrive(ready); }",
         {"k.tk:7: ", "thread 0 (warp 0, lane 0) arrives at a phase barrier that has all arrivals "
                      "of its phase (at byte 0, in phase 0: 0 of 1 arrivals and 64 bytes are"});
}

TEST_CASE("what is no phase barrier, and what is one", "[emu]") {
  expect("  tk::phase_wait(ready + 1, 0);",
         {"k.tk:7: ", "uses byte 8 of shared memory as a phase barrier, which is not initialised"});
  expect("  if (i == 5) tk::put(reinterpret_cast<int *>(ready), 0);",
         {"k.tk:7: ", "thread 5 (warp 0, lane 5) writes byte 0 of shared memory, which holds a "
                      "phase barrier"});
  expect("  if (i == 0) tk::phase_init(ready + 1, 0);", {"for 0 arrivals"});
  expect("  tk::phase_wait(ready, 2);", {"waits for a phase of parity 2"});
}

TEST_CASE("bulk copies that the machine refuses", "[emu]") {
  expect("  if (i == 0) tk::bulk_load<1>(shared + 4, &map, {0}, ready);",
         {"k.tk:7: ", "copies to 64 bytes at byte 144 of shared memory, which is not aligned to "
                      "128 bytes"});
  expect("  if (i == 0) tk::bulk_load<2>(shared, &map, {0, 0}, ready);",
         {"gives 2 coordinates to a tensor map of 1 axes"});
  expect("  tk::TensorMap other{}; if (i == 0) tk::bulk_load<1>(shared, &other, {0}, ready);",
         {"uses a tensor map that is not one of its parameters"});
  expect("  if (i == 0) tk::bulk_load<1>(shared, &map, {1}, ready);",
         {"begins a box at element 1 of its innermost axis, not at a multiple of 16 bytes"});
  expect("  if (i == 0) tk::bulk_load_windows<3>(shared, &map, {0, 0, 0}, {0}, ready);",
         {"gives 3 coordinates to a tensor map of 1 axes"});
  expect("  if (i == 0) tk::bulk_copy(shared, x, 24, ready);",
         {"copies 24 bytes, not a multiple of 16"});
  expect("  if (i == 0) tk::bulk_copy(shared, x + 60, 32, ready);",
         {"reads x[60] and 16 bytes beyond the end of the buffer"});
  expect("  if (i == 0) tk::bulk_copy_out(const_cast<int *>(x), shared, 64);",
         {"shared memory, which is not written yet"});
  expect("  if (i < 16) tk::put(&shared[i], 1);\n  tk::fence_async_proxy();\n  tk::barrier();\n"
         "  if (i == 0) { tk::bulk_store<1>(&map, {0}, shared); tk::bulk_commit(); "
         "tk::bulk_wait<0>(); }",
         {"k.tk:10: ", "writes x[0], a parameter that is only read"});
  expect("  if (i < 16) tk::put(&shared[i], 1);\n  tk::fence_async_proxy();\n  tk::barrier();\n"
         "  if (i == 0) { tk::bulk_store<1>(&map, {-4}, shared); tk::bulk_commit(); }",
         {"k.tk:10: ", "stores to a box that begins at coordinate -4 of its tensor, which is an "
                       "illegal instruction"});
}

TEST_CASE("a box outside a tensor touches the base address of its map", "[emu]") {
  // x has 8 rows of 16, of which axis 1 is a window and axis 2 counts; both have the same stride.
  auto load = [](const char *box, bool isBefore) {
    KernelHarness k(R"(#include "hopper.cuh"
extern "C" __global__ void __launch_bounds__(128)
k(const __grid_constant__ tk::TensorMap map, int *y) {
  auto *const ready = reinterpret_cast<tk::PhaseBarrier *>(tk::shared_memory());
  int *const shared = reinterpret_cast<int *>(tk::shared_memory() + 128); const int i = tk::thread_index();
  if (i == 0) { tk::phase_init(ready, 1); tk::phase_init_fence(); } tk::barrier();
  if (i == 0) { tk::phase_expect(ready, 512); tk::bulk_load<3>(shared, &map, {)" +
                    std::string(box) + R"(}, ready); }
  tk::phase_wait(ready, 0);
  tk::put(&y[i], tk::get(&shared[i]));
})");
    std::vector<int> x(8 * 16, 5), y(128);
    k.threads = 128;
    k.sharedBytes = 1024;
    tk::TensorView view(x.data(), DType::i32, tk::Extents{8, 8, 16});
    view.strides = {16, 16, 1};
    k.inView(view);
    k.mapped({16, 8, 1}, 0);
    if (isBefore)
      k.beginBefore(8);
    k.out(y, DType::i32);
    std::string text = k.run();
    int rows = 0;
    for (int row = 0; row < 8; ++row)
      rows += y[row * 16] == 5;
    return text.empty() ? std::to_string(rows) : text;
  };
  CHECK(load("0, 4, 4", true) == "4"); // rows 0 to 3 and beyond the window
  CHECK(load("0, 8, 0", false) == "0");
  CHECK(load("0, 0, -1", false) == "0");
  for (const char *outside : {"0, 8, 0", "0, 4, 8", "0, -8, 4", "16, 4, 4"})
    CHECK(load(outside, true).find("which is outside") != std::string::npos);
}

TEST_CASE("a bulk load over what threads wrote needs a proxy fence", "[emu]") {
  const std::string write = "  if (i < 16) tk::put(&shared[i], 1);\n";
  const std::string wait = "  tk::phase_wait(ready, 0);";
  expect(write + "  tk::barrier();\n" + load + wait,
         {"k.tk:9: ", "thread 0 (warp 0, lane 0) begins to copy to byte 128 of shared memory, "
                      "which thread 0 (warp 0, lane 0) wrote at k.tk:7 with no fence_async_proxy"});
  for (const char *timing : {"late", "early", "random:1"}) {
    CHECK(report(write + "  tk::fence_async_proxy();\n  tk::barrier();\n" + load + wait, timing) ==
          "");
    // By whoever begins the copy, once it has met the others.
    CHECK(report(write + "  tk::barrier();\n  tk::fence_async_proxy();\n" + load + wait, timing) ==
          "");
  }
  expect(write + "  tk::fence_async_proxy();\n" + load + wait,
         {"k.tk:9: ", "wrote at k.tk:7 with no barrier in between"}, {"random:3"});
}

TEST_CASE("named barriers order those that take part", "[emu]") {
  const std::string pair = "  if (i < 32) {\n    tk::put(&shared[i], 1);\n"
                           "    tk::named_barrier_arrive(1, 64);\n  } else if (i < 64) {\n"
                           "    tk::named_barrier_sync(1, 64);\n    tk::get(&shared[i - 32]);\n  }";
  for (const char *timing : {"late", "early", "random:1", "random:2"})
    CHECK(report(pair, timing) == "");
  // Warps 2 and 3 take no part.
  expect(pair + "\n  if (i == 70) tk::get(&shared[3]);", {"reads byte 140 of shared memory"},
         {"late"});
  expect("  if (i < 32) tk::named_barrier_sync(1, 64);",
         {"deadlock: threads 0-31 at a named barrier at k.tk:7 (number 1: 32 of 64 threads are "
          "there)"});
  expect("  tk::named_barrier_sync(1, i < 64 ? 64 : 128);",
         {"threads, which thread", "took for one of"}, {"random:1"});
  expect("  tk::named_barrier_sync(16, 128);", {"named barrier 16; there are 1 to 15"});
  expect("  tk::named_barrier_sync(1, 100);", {"expected whole warps"});
}

TEST_CASE("what a block's threads note", "[emu]") {
  const std::string notes =
      "  tk::PhaseBarrier *const notes = tk::phases_apart<1>((tk::u8 *)(shared + 64));\n";
  const std::string cleared = notes + "  if (i == 0) tk::clear_notes(notes);\n  tk::barrier();\n";
  // Any number of threads may, at once; without it there is none.
  for (const char *timing : {"late", "early", "random:1"})
    CHECK(report(cleared + "  if (i % 3 == 1) tk::note(notes);\n  tk::barrier();\n"
                           "  if (!tk::has_notes(notes)) tk::put(&shared[0], 1);",
                 timing) == "");
  CHECK(report(cleared + "  if (tk::has_notes(notes)) tk::put(&shared[0], 1);", "late") == "");
  expect(notes + "  tk::note(notes);", {"of shared memory for notes, which were not cleared"});
  expect(cleared + "  tk::get(&shared[64]);", {"shared memory"});
}

TEST_CASE("registers that nobody gives up", "[emu]") {
  expect("  if (i < 64) tk::set_registers_less<24>(); else tk::set_registers_less<32>();\n"
         "  tk::set_registers_more<256>();",
         {"k.tk:8: ", "deadlock", "at set_registers_more at k.tk:8"});
  expect("  tk::set_registers_less<24>();\n  tk::set_registers_less<32>();",
         {"k.tk:8: ", "asks for fewer registers, 32, and has 24"});
}

TEST_CASE("clusters", "[emu]") {
  const std::string text =
      report("  if (i == 0) tk::put(tk::map_shared_rank(shared, 1), tk::cluster_rank());\n"
             "  tk::cluster_sync();",
             "late", 128, 2);
  INFO(text);
  CHECK(
      text.find("k.tk:7: kernel 'k', block (1, 0, 0): thread 0 (warp 0, lane 0) writes byte 128 of "
                "shared memory, which thread 0 (warp 0, lane 0) wrote at k.tk:7") == 0);
  const std::string exchange =
      "  if (i == 0) tk::put(tk::map_shared_rank(shared + tk::cluster_rank(), 1), 7);\n"
      "  tk::cluster_arrive(); tk::cluster_wait();\n"
      "  if (tk::cluster_rank() == 1 && i < 2) tk::get(&shared[i]);";
  CHECK(report(exchange, "late", 128, 2) == "");
  std::string relaxed = exchange;
  relaxed.insert(relaxed.find("arrive") + 6, "_relaxed");
  CHECK(report(relaxed, "late", 128, 2).find("with no barrier in between") != std::string::npos);
  CHECK(report("  tk::map_shared_rank(shared, 2);\n  tk::cluster_sync();", "late", 128, 2)
            .find("maps to block 2 of a cluster that has 2") != std::string::npos);
  CHECK(report("  tk::cluster_wait();", "late", 128, 2)
            .find("waits at the barrier of the cluster without having arrived") !=
        std::string::npos);
  CHECK(report("  if (tk::cluster_rank() == 0) tk::cluster_sync();", "late", 128, 2)
            .find("deadlock: threads 0-127 of block 0 of the cluster at a barrier of the cluster "
                  "at k.tk:7; threads 0-127 of "
                  "block 1 of the cluster ended") != std::string::npos);
  CHECK(report("  tk::cluster_sync();\n  if (tk::cluster_rank() == 0 && i == 0)\n"
               "    tk::phase_arrive_at(ready, 1);\n  if (tk::cluster_rank() == 1)\n"
               "    tk::phase_wait(ready, 0);",
               "late", 128, 2) == "");
  CHECK(report("  if (tk::cluster_rank() == 1) tk::cluster_arrive();\n"
               "  if (tk::cluster_rank() == 0) { tk::cluster_arrive(); tk::cluster_wait(); "
               "tk::phase_arrive_at(ready, 1); }",
               "late", 128, 2)
            .find("accesses shared memory of block 1 of the cluster, which has ended") !=
        std::string::npos);
}

TEST_CASE("values sent to another block", "[emu]") {
  // The sender may come before the receiver announces the bytes.
  const std::string send = "  tk::cluster_sync();\n  if (tk::cluster_rank() == 0 && i == 0)\n"
                           "    tk::send_to(shared, 7, ready, 1);\n";
  const std::string expected =
      "  if (tk::cluster_rank() == 1 && i == 0) tk::phase_expect(ready, 4);\n";
  const std::string read = "  if (tk::cluster_rank() == 1) tk::get(shared);";
  const std::string waited = "  if (tk::cluster_rank() == 1) tk::phase_wait(ready, 0);\n";
  for (const char *timing : {"late", "early", "random:1", "random:2"})
    CHECK(report(send + expected + waited + read, timing, 128, 2) == "");
  std::string text = report(send + expected + read, "late", 128, 2);
  INFO(text);
  CHECK(text.find("k.tk:11: kernel 'k', block (1, 0, 0)") == 0);
  CHECK(text.find("reads byte 128 of shared memory, which is not written yet") !=
        std::string::npos);
  text = report(send + waited, "late", 128, 2);
  INFO(text);
  CHECK(text.find("threads 0-127 of block 1 of the cluster at a phase barrier at k.tk:10") !=
        std::string::npos);
  CHECK(text.find("1 of 1 arrivals and -4 bytes are missing") != std::string::npos);
  text = report("  if (i == 0) tk::phase_init(ready + 1, 1);\n  tk::cluster_sync();\n  if (i == 0) "
                "tk::send_to(shared, 7, ready + 1, 1);",
                "late", 128, 2);
  INFO(text);
  CHECK(text.find("sends to another block with a phase barrier with no phase_init_fence") !=
        std::string::npos);
}

TEST_CASE("warps that diverge at collectives of warpgroups", "[emu]") {
  expect("  if (i < 32) tk::elect_one();\n  else if (i != 40) tk::elect_one();",
         {"deadlock", "at elect_one at k.tk:8"});
  const std::string text = report("  tk::elect_one();", "late", 120);
  INFO(text);
  CHECK(text.find("is in a warp of 24 threads at elect_one") != std::string::npos);
}
