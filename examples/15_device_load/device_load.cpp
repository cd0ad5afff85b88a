// Blocks whose work is their device's: load balancing by device time.
//
//   weft run -n 2 --lb-verbose build/release/examples/device_load
//
// The devices are emulated, so it runs on any machine. On a GPU the kernels are launched on stream.handle().
#include <cstdio>
#include <ctime>
#include <set>
#include <utility>
#include <vector>

#include "weft/weft.h"

constexpr int kNumBlocks = 4;
constexpr int kNumHeavy = 2;  // the first ones, which are on one PE

// A kernel that takes that much processor time.
void relax(double time_s) {
  const std::clock_t begin = std::clock();
  while (static_cast<double>(std::clock() - begin) < time_s * CLOCKS_PER_SEC) {
  }
}

struct Block : weft::Chare<Block> {
  void pup(weft::Pup& p) { p | over_; }

  void iterate(weft::Future<int> over) {
    over_ = std::move(over);
    const double time_s = linear_index() < kNumHeavy ? 0.01 : 0.001;
    weft::Stream stream(runtime(), weft::device_of(runtime(), weft::Kind::kEmulated));
    {
      weft::DeviceWork work(*this, stream);  // what is launched until its end is this block's
      stream.launch([time_s](const weft::DeviceView&) { relax(time_s); });
    }
    at_sync();  // no method waits for the kernel
  }

  void resume_from_sync() override { contribute(1, weft::Reducer::kSum, weft::target_of(over_)); }
  int where_now() { return pe(); }

 private:
  weft::Future<int> over_;
};

weft::Task<> start(weft::Runtime& runtime) {
  auto blocks = weft::Array<Block>::create(runtime, kNumBlocks);
  weft::Future<int> over(runtime);
  blocks.send<&Block::iterate>(over);
  std::printf("%d blocks have been balanced\n", co_await over);
  const std::vector<int> pes = co_await blocks.call<&Block::where_now>();
  const std::set<int> pes_of_heavy(pes.begin(), pes.begin() + kNumHeavy);
  const bool is_apart = runtime.num_pes() == 1 || pes_of_heavy.size() == kNumHeavy;
  std::printf("the heavy ones are apart: %s\n", is_apart ? "yes" : "no");
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
