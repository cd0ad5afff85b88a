// Heat in a rod of several blocks per PE: while a block waits for its neighbours, another one computes.
//
//   weft run -n 2 build/release/examples/heat
#include <array>
#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

#include "weft/weft.h"

constexpr int kNumBlocks = 8;
constexpr int kPoints = 16;  // of a block
constexpr int kNumSteps = 4000;

// A neighbour: its channel, the point that it gets, and the ghost point that it sets.
struct Side {
  weft::Channel channel;
  std::span<double> point, ghost;
};

// A part of the rod, with a ghost point at either end. The rod's ends are held at 100 and at 0.
struct Block : weft::Chare<Block> {
  Block() {
    const std::span<double> heat(heat_);
    if (index() > 0) {
      sides_.push_back({weft::Channel(*this, proxy()[index() - 1]), heat.subspan(1, 1), heat.first(1)});
    } else {
      heat_[0] = 100.0;
    }
    if (index() < kNumBlocks - 1) {
      sides_.push_back({weft::Channel(*this, proxy()[index() + 1]), heat.subspan(kPoints, 1), heat.last(1)});
    }
  }

  // The mean after all steps.
  weft::Task<double> run() {
    for (int step = 0; step < kNumSteps; ++step) {
      for (Side& side : sides_) side.channel.send(side.point).detach();
      for (Side& side : sides_) co_await side.channel.recv(side.ghost);
      update();
    }
    co_return std::accumulate(heat_.begin() + 1, heat_.end() - 1, 0.0) / kPoints;
  }

  void update() {
    const std::array<double, kPoints + 2> old = heat_;
    for (int i = 1; i <= kPoints; ++i) heat_[i] += 0.25 * (old[i - 1] - 2.0 * old[i] + old[i + 1]);
  }

  std::array<double, kPoints + 2> heat_{};
  std::vector<Side> sides_;
};

weft::Task<> start(weft::Runtime& runtime) {
  auto rod = weft::Array<Block>::create(runtime, kNumBlocks);
  std::vector<double> means = co_await rod.call<&Block::run>();
  std::printf("the heat along the rod:");
  for (const double mean : means) std::printf(" %.2f", mean);
  std::printf("\n");
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
