// Types of the program's own as arguments and results, a reduction by a function of its own, and an exception
// that reaches its caller.
//
//   weft run -n 2 build/release/examples/values
#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/weft.h"

constexpr int kNumCells = 4;

// One function says what travels; it packs and unpacks.
struct Particle {
  std::string name;
  std::vector<double> position;

  void pup(weft::Pup& p) { p | name | position; }
};

// A struct of plain values needs no function.
struct Range {
  double low = 0;
  double high = 0;
};

Range merge(Range a, Range b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

struct Cell : weft::Chare<Cell> {
  // The argument is this call's own value.
  void add(Particle particle) { particles_.push_back(std::move(particle)); }

  Particle find(std::string name) const {
    for (const Particle& each : particles_) {
      if (each.name == name) return each;
    }
    throw std::out_of_range("no particle is called " + name);
  }

  // The range of the first coordinates over all cells.
  weft::Task<Range> range() {
    double x = particles_.at(0).position.at(0);
    co_return co_await allreduce<&merge>(Range{x, x});
  }

 private:
  std::vector<Particle> particles_;
};

weft::Task<> start(weft::Runtime& runtime) {
  auto cells = weft::Array<Cell>::create(runtime, kNumCells);
  for (int i = 0; i < kNumCells; ++i) {
    Particle particle{"p" + std::to_string(i), {1.0 * i, 0.5 * i}};
    co_await cells[i].call<&Cell::add>(particle);
  }

  Particle found = co_await cells[3].call<&Cell::find>("p3");
  std::printf("%s is at %g, %g\n", found.name.c_str(), found.position[0], found.position[1]);

  std::vector<Range> ranges = co_await cells.call<&Cell::range>();
  std::printf("the particles lie between %g and %g\n", ranges[0].low, ranges[0].high);

  try {
    co_await cells[3].call<&Cell::find>("p0");
  } catch (const weft::RemoteError& error) {
    std::printf("the call failed: %s\n", error.remote_message().c_str());
  }
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
