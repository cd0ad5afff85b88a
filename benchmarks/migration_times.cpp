// Moves of chares between two PEs:
//
//   migration_times COUNT:SIZE:HOPS:ROUNDS...
//
// In each round a broadcast tells COUNT chares, whose state is a vector of SIZE bytes, to go to the other PE and back HOPS
// times in all. The round is over when a reduction has told PE 0 that all have arrived. One more round comes first, untimed.
// Prints the median time of a round, or, if HOPS is not 1, the time of a hop: divided by HOPS.
// HOPS is odd, so that the chares are all on the other PE then.
#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

struct Question {
  int count = 0;
  std::size_t size_bytes = 0;
  int hops = 0;
  int rounds = 0;
};

class Pin : public weft::Chare<Pin> {
 public:
  void keep_core() { pin(pe()); }
};

class Traveller : public weft::Chare<Traveller> {
 public:
  explicit Traveller(std::uint64_t size_bytes) : state_(size_bytes, std::byte{1}) {}
  explicit Traveller(weft::Moved) {}
  void pup(weft::Pup& p) { p | state_ | hops_left_ | arrived_; }

  void go(int hops, weft::Future<std::int64_t> arrived) {
    hops_left_ = hops;
    arrived_ = std::move(arrived);
    hop();
  }
  void migrated() override {
    if (hops_left_ > 0) return hop();
    contribute(std::int64_t{1}, weft::Reducer::kSum, weft::target_of(arrived_));
  }

 private:
  void hop() {
    --hops_left_;
    migrate(1 - pe());
  }

  std::vector<std::byte> state_;
  int hops_left_ = 0;
  weft::Future<std::int64_t> arrived_;
};

int on_pe_0(const weft::Index&, const weft::Shape&, int) { return 0; }

weft::Task<> measure(weft::Runtime& runtime, const std::vector<Question>& questions) {
  if (runtime.num_pes() != 2) die("this needs 2 PEs: weft run -n 2 migration_times ...");
  co_await weft::Group<Pin>::create(runtime).call<&Pin::keep_core>();
  for (const Question& question : questions) {
    auto travellers = weft::Array<Traveller>::create(
        runtime, weft::Shape{question.count}.with_map<&on_pe_0>(), std::uint64_t{question.size_bytes});
    co_await travellers.created();
    std::vector<double> times_s;
    for (int round = 0; round <= question.rounds; ++round) {
      weft::Future<std::int64_t> arrived(runtime);
      Stopwatch stopwatch;
      travellers.send<&Traveller::go>(question.hops, arrived);
      if (co_await arrived != question.count) die("chares are missing");
      if (round > 0) times_s.push_back(stopwatch.elapsed_s());
    }
    std::ranges::nth_element(times_s, times_s.begin() + static_cast<std::ptrdiff_t>(times_s.size() / 2));
    const double median_s = times_s[times_s.size() / 2];
    if (question.hops > 1) {
      report("hop_us", question.size_bytes, median_s / question.hops * 1e6);
    } else {
      report(std::to_string(question.count) + "_moves_ms", question.size_bytes, median_s * 1e3);
    }
    co_await travellers.destroy();
  }
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  std::vector<Question> questions;
  for (int i = 1; i < argc; ++i) {
    Question question;
    char colons[3] = {};
    std::istringstream text(argv[i]);
    text >> question.count >> colons[0] >> question.size_bytes >> colons[1] >> question.hops >> colons[2] >>
        question.rounds;
    if (!text || std::string_view(colons, 3) != ":::" || question.count < 1 || question.hops < 1 ||
        question.hops % 2 == 0 || question.rounds < 1) {
      die("usage: migration_times COUNT:SIZE:HOPS:ROUNDS..., with an odd number of hops");
    }
    questions.push_back(question);
  }
  return weft::run(argc, argv, [&questions](weft::Runtime& runtime) { return measure(runtime, questions); });
}
