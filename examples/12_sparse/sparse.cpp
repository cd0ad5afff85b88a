// A tree that grows where there is most to do: the leaves are the elements of a sparse array.
//
//   weft run -n 2 build/release/examples/sparse
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "weft/weft.h"

constexpr int kDeepest = 5;

// The index of a leaf.
struct Interval {
  int level = 0;
  int position = 0;

  Interval(int level_in, int position_in) : level(level_in), position(position_in) {}
  explicit Interval(const weft::Index& index) : Interval(index[0], index[1]) {}
  operator weft::Index() const { return {level, position}; }

  double low() const { return std::ldexp(position, -level); }
  double high() const { return std::ldexp(position + 1, -level); }
  Interval half(int which) const { return {level + 1, 2 * position + which}; }
};

struct Leaf : weft::Chare<Leaf> {
  void split_if_steep() {
    const Interval here(index());
    if (here.level == kDeepest || std::pow(here.high(), 8) - std::pow(here.low(), 8) <= 0.1) return;
    // done_inserting() waits for them.
    static_cast<void>(proxy().insert(here.half(0)));
    static_cast<void>(proxy().insert(here.half(1)));
    remove_self();  // when this method has returned
  }

  std::pair<int, int> describe() const { return {index()[0], index()[1]}; }

  void add_up(weft::Future<double> done) {
    contribute(std::ldexp(1, -index()[0]), weft::Reducer::kSum, weft::target_of(done));
  }
};

weft::Task<> start(weft::Runtime& runtime) {
  const weft::Shape bounds{kDeepest + 1, 1 << kDeepest};
  auto leaves = weft::Array<Leaf>::create_sparse(runtime, bounds.with_map(weft::Map::kRoundRobin));
  co_await leaves.insert(Interval(0, 0));
  co_await leaves.done_inserting();
  std::uint64_t num_leaves = 0;
  while (leaves.num_elements() != num_leaves) {
    num_leaves = leaves.num_elements();
    std::printf("leaves: %llu\n", static_cast<unsigned long long>(num_leaves));
    co_await leaves.call<&Leaf::split_if_steep>();
    co_await leaves.done_inserting();  // waits for the insertions and removals of all PEs
  }
  for (const auto& [level, position] : co_await leaves.call<&Leaf::describe>()) {
    std::printf("level %d, position %d\n", level, position);
  }
  weft::Future<double> length(runtime);
  leaves.send<&Leaf::add_up>(length);
  std::printf("together they have the length %g\n", co_await length);
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
