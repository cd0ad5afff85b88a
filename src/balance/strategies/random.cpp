// Every object goes to a PE that is drawn at random, without regard to loads. It tests migration, and shows what a strategy
// must beat.
//
// The numbers depend on the seed alone: the standard library's distributions differ between implementations, so this file
// draws the PE itself. A second step of the same strategy continues the sequence and so draws other PEs.
#include <cstdint>
#include <memory>
#include <random>

#include "balance/strategy.h"

namespace weft::balance {
namespace {

class Random final : public Strategy {
 public:
  explicit Random(std::uint64_t seed) : random_(seed) {}

  std::string_view name() const override { return "random"; }

  Placement place(const Snapshot& snapshot) override {
    Placement placement = present_placement(snapshot);
    for (std::size_t i = 0; i < placement.size(); ++i) {
      if (snapshot.objects[i].can_move) placement[i] = draw(snapshot.num_pes);
    }
    return placement;
  }

 private:
  // 0 to limit - 1. The upper 32 bits of a number, scaled: the deviation from equal chances is below limit / 2^32.
  int draw(int limit) {
    return static_cast<int>(((random_() >> 32) * static_cast<std::uint64_t>(limit)) >> 32);
  }

  std::mt19937_64 random_;
};

}  // namespace

std::unique_ptr<Strategy> make_random(const StrategyOptions& options) {
  return std::make_unique<Random>(options.seed);
}

}  // namespace weft::balance
