// A chare that goes to the data: a collector visits every PE, reads what is stored there, and takes it along.
//
//   weft run -n 2 build/release/examples/migration
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

#include "weft/weft.h"

// One for each PE, with numbers that are too many to send.
struct Store : weft::Chare<Store> {
  Store() : numbers(100'000) { std::iota(numbers.begin(), numbers.end(), pe()); }

  std::pair<int, int> extremes() const {
    const auto [least, greatest] = std::ranges::minmax(numbers);
    return {least, greatest};
  }

  std::vector<int> numbers;
};

struct Collector : weft::Chare<Collector> {
  using Found = std::vector<std::pair<int, int>>;

  Collector(weft::Group<Store> stores_in, weft::Future<Found> done_in) : stores(stores_in), done(done_in) {
    proxy()[0].send<&Collector::read>();
  }
  explicit Collector(weft::Moved) {}                     // makes the chare on its new PE
  void pup(weft::Pup& p) { p | stores | done | found; }  // the state that travels

  weft::Task<> read() {
    found.push_back(co_await stores[pe()].call<&Store::extremes>());  // a call on this PE sends nothing
    proxy()[0].send<&Collector::go_on>();
  }

  void go_on() {  // no coroutine: a method that waits cannot move its chare
    if (pe() + 1 < num_pes()) {
      migrate(pe() + 1);  // when this method has returned
    } else {
      done.set(found);
    }
  }

  void migrated() override { proxy()[0].send<&Collector::read>(); }

  weft::Group<Store> stores;
  weft::Future<Found> done;
  Found found;
};

weft::Task<> start(weft::Runtime& runtime) {
  auto stores = weft::Group<Store>::create(runtime);
  weft::Future<Collector::Found> done(runtime);
  weft::Singleton<Collector>::create(runtime, 0, stores, done);
  const Collector::Found found = co_await done;
  for (std::size_t pe = 0; pe < found.size(); ++pe) {
    std::printf("PE %zu stores %d to %d\n", pe, found[pe].first, found[pe].second);
  }
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
