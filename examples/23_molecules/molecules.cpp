// Molecular dynamics as in Charm++'s LeanMD: cells have the particles, and a pair of neighbouring cells is a chare that computes forces.
//
//   weft run -n 2 build/release/examples/molecules
//
// A cell sends its positions to the section of its pairs. The pairs add up forces by a reduction over that section, whose target is the
// cell. LeanMD has cells in three dimensions and moves particles from cell to cell; here the cells form a ring, and particles stay.
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "weft/weft.h"

constexpr int kNumCells = 6;  // each of length 1, also the range of forces
constexpr int kParticlesOfCell = 4;
constexpr int kNumSteps = 20;
constexpr double kStepLength = 0.01;

using Values = std::vector<double>;

struct Cell;

// Of the cells index()[0] and index()[1], which may be one.
struct Pair : weft::Chare<Pair> {
  explicit Pair(weft::Array<Cell> cells) : cells_(cells) {}
  void take(int cell, Values positions);

  weft::Array<Cell> cells_;
  std::vector<std::pair<int, Values>> arrived_;
};

// The pairs of a cell. Equal sections are the same wherever they are made.
weft::Section<Pair> pairs_of(const weft::CollectionProxy<Pair>& pairs, int cell) {
  const int before = (cell + kNumCells - 1) % kNumCells;
  return pairs.section({{before, cell}, {cell, cell}, {cell, (cell + 1) % kNumCells}});
}

struct Cell : weft::Chare<Cell> {
  explicit Cell(weft::CollectionProxy<Pair> pairs)
      : pairs_(pairs_of(pairs, index())), speeds_(kParticlesOfCell) {
    for (int i = 0; i < kParticlesOfCell; ++i) {
      positions_.push_back(index() + (i + 0.5) / kParticlesOfCell + 0.05 * std::sin(7 * index() + 3 * i));
    }
  }

  void run(weft::Future<Values> done) {
    done_ = std::move(done);
    pairs_.send<&Pair::take>(index(), positions_);
  }

  void move(const Values& forces) {
    Values sums{0, 0};  // momentum, kinetic energy
    for (std::size_t i = 0; i < positions_.size(); ++i) {
      speeds_[i] += forces[i] * kStepLength;
      positions_[i] += speeds_[i] * kStepLength;
      sums[0] += speeds_[i];
      sums[1] += speeds_[i] * speeds_[i] / 2;
    }
    if (++num_steps_ < kNumSteps) {
      pairs_.send<&Pair::take>(index(), positions_);
    } else {
      contribute(sums, weft::Reducer::kSum, weft::target_of(done_));
    }
  }

  weft::Section<Pair> pairs_;
  Values positions_;
  Values speeds_;
  int num_steps_ = 0;
  weft::Future<Values> done_;
};

// The force on a particle at `a` from one at `b`: the nearer, the stronger they repel each other.
double force_between(double a, double b) {
  const double distance = std::remainder(a - b, kNumCells);
  if (distance == 0 || std::abs(distance) >= 1) return 0;
  return std::copysign(1 - std::abs(distance), distance);
}

void Pair::take(int cell, Values positions) {
  arrived_.emplace_back(cell, std::move(positions));
  if (arrived_.size() < (index()[0] == index()[1] ? 1 : 2)) return;
  const auto arrived = std::exchange(arrived_, {});
  for (const auto& [here, mine] : arrived) {
    const Values& others = here == arrived[0].first ? arrived.back().second : arrived[0].second;
    Values forces;
    for (const double a : mine) {
      double sum = 0;
      for (const double b : others) sum += force_between(a, b);
      forces.push_back(sum);
    }
    contribute(forces, weft::Reducer::kSum, cells_[here].target<&Cell::move>(), pairs_of(proxy(), here));
  }
}

weft::Task<> start(weft::Runtime& runtime) {
  auto pairs = weft::Array<Pair>::create_sparse(runtime, {kNumCells, kNumCells});
  auto cells = weft::Array<Cell>::create(runtime, {kNumCells}, pairs);
  for (int cell = 0; cell < kNumCells; ++cell) {
    for (const int other : {cell, (cell + 1) % kNumCells}) {
      const weft::Index both{cell, other};
      co_await pairs.insert(both, cells);
    }
  }
  co_await pairs.done_inserting();
  weft::Future<Values> done(runtime);
  cells.send<&Cell::run>(done);
  const Values sums = co_await done;
  std::printf("after %d steps: momentum %.4f, kinetic energy %.4f\n", kNumSteps, std::abs(sums[0]), sums[1]);
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
