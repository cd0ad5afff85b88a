// Rumours spread at random until none is left. No chare can tell when that is, so main waits for quiescence.
// Then the chares' counts are reduced, once to main and once to every chare.
//
//   weft run -n 2 build/release/examples/collectives
#include <cstdio>
#include <random>

#include "weft/weft.h"

constexpr int kNumPeople = 40;
constexpr int kGenerations = 7;

struct Person : weft::Chare<Person> {
  // Tells two other chares, which do the same, for `generations_left` generations.
  void hear(int generations_left) {
    ++num_heard_;
    if (generations_left == 0) return;
    for (int i = 0; i < 2; ++i) {
      proxy()[static_cast<int>(random_() % kNumPeople)].send<&Person::hear>(generations_left - 1);
    }
  }

  // A reduction whose result goes to a future.
  void report(weft::Future<int> total) {
    contribute(num_heard_, weft::Reducer::kSum, weft::target_of(total));
  }

  // A reduction whose result every chare gets. Returns whether no chare heard more than this one.
  weft::Task<bool> heard_most() {
    int most = co_await allreduce(num_heard_, weft::Reducer::kMax);
    co_return num_heard_ == most;
  }

 private:
  int num_heard_ = 0;
  std::minstd_rand random_{static_cast<unsigned>(linear_index()) + 1};
};

weft::Task<> start(weft::Runtime& runtime) {
  auto people = weft::Array<Person>::create(runtime, kNumPeople);
  people[0].send<&Person::hear>(kGenerations);
  co_await runtime.quiescence();

  weft::Future<int> total(runtime);
  people.send<&Person::report>(total);
  std::printf("a rumour was heard %d times, as it should be %d times\n", co_await total,
              (2 << kGenerations) - 1);

  std::vector<bool> most = co_await people.call<&Person::heard_most>();
  long num_most = std::count(most.begin(), most.end(), true);
  std::printf("%ld of %d heard it most often\n", num_most, kNumPeople);
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
