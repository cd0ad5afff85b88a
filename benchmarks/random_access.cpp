// Random access to a distributed table, by the rules of the HPC Challenge (RandomAccess): billions of updates per second.
//
//   random_access [--way single|aggregated] [--log2-words N] [--updates-per-word N] [--look-ahead N] [--chares N]
//
// The table of 2^N words of 64 bits is cut among the chares of an array. All PEs together make 4 updates per word: each PE takes its part
// of one sequence of random numbers, and xors each number into the word that its low bits name. The chare of that word does it: at once if
// it is on this PE, else by a call of 8 bytes, which travels alone or aggregated. At most LOOK-AHEAD updates wait in the bundles of a PE
// (the rules say 1024). The clock of PE 0 runs from the first update until no message is under way. Then each PE makes all updates of its
// own chares once more, without calls, which must restore each word: the rules allow 1 % of wrong words, here none may be wrong.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "benchmarks/hpcc_sequence.h"
#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

constexpr const char* kUsage =
    "random_access [--way single|aggregated] [--log2-words N] [--updates-per-word N] [--look-ahead N] "
    "[--chares N]";

struct Options {
  bool is_aggregated = true;
  std::uint64_t log2_words = 24;  // 128 MiB
  std::uint64_t updates_per_word = 4;
  std::uint64_t look_ahead = 1024;
  std::uint64_t chares = 4;  // of each PE

  std::uint64_t num_words() const { return std::uint64_t{1} << log2_words; }
  std::uint64_t num_updates() const { return num_words() * updates_per_word; }
  void pup(auto& p) { p | is_aggregated | log2_words | updates_per_word | look_ahead | chares; }
};

// A part of the table: the words whose high bits are the chare's index.
class Part : public weft::Chare<Part> {
 public:
  explicit Part(std::uint64_t num_words) : words_(num_words) {
    for (std::uint64_t i = 0; i < num_words; ++i) words_[i] = linear_index() * num_words + i;
  }
  // The word of this update is fetched, and that of an earlier one, which has arrived from memory, is changed.
  void update(std::uint64_t random) {
    __builtin_prefetch(&word_of(random), 1);
    std::swap(random, fetched_[num_updates_++ % fetched_.size()]);
    change(random);
  }
  void change(std::uint64_t random) { word_of(random) ^= random; }
  // Makes the updates whose words are only fetched.
  void finish() {
    for (std::uint64_t& random : fetched_) change(std::exchange(random, 0));
  }
  std::uint64_t num_wrong() {
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < words_.size(); ++i)
      wrong += words_[i] != linear_index() * words_.size() + i ? 1 : 0;
    return wrong;
  }

 private:
  std::uint64_t& word_of(std::uint64_t random) { return words_[random & (words_.size() - 1)]; }

  std::vector<std::uint64_t> words_;
  std::array<std::uint64_t, 16> fetched_{};  // updates; 0 is none
  std::size_t num_updates_ = 0;
};

class Updater : public weft::Chare<Updater> {
 public:
  Updater() { pin(pe()); }

  weft::Task<> update(weft::CollectionProxy<Part> parts, Options options) {
    if (options.is_aggregated) {
      co_await update_each(parts, parts.aggregated(), options);
    } else {
      co_await update_each(parts, parts, options);
    }
    parts.aggregated().flush();
  }
  // Makes the updates of all PEs to the chares of this one.
  void update_own(weft::CollectionProxy<Part> parts, Options options) {
    const Cut cut(parts, options);
    std::uint64_t random = hpcc_random_at(0);
    for (std::uint64_t i = 0; i < options.num_updates(); ++i) {
      random = next_hpcc_random(random);
      if (Part* const here = parts.local(cut.part_of(random))) here->change(random);
    }
  }

 private:
  // Which chare has the word of an update.
  struct Cut {
    Cut(const weft::CollectionProxy<Part>& parts, const Options& options)
        : mask(options.num_words() - 1),
          shift(options.log2_words - static_cast<std::uint64_t>(std::countr_zero(parts.shape().size()))) {}
    int part_of(std::uint64_t random) const { return static_cast<int>((random & mask) >> shift); }

    std::uint64_t mask;
    std::uint64_t shift;
  };

  template <class Calls>
  weft::Task<> update_each(weft::CollectionProxy<Part> parts, Calls calls, Options options) {
    const Cut cut(parts, options);
    const auto pes = static_cast<std::uint64_t>(num_pes());
    const std::uint64_t begin = options.num_updates() / pes * static_cast<std::uint64_t>(pe());
    const std::uint64_t end =
        pe() + 1 == num_pes() ? options.num_updates() : begin + options.num_updates() / pes;
    std::uint64_t random = hpcc_random_at(begin);
    std::uint64_t waiting = 0;
    for (std::uint64_t i = begin; i < end; ++i) {
      random = next_hpcc_random(random);
      const int part = cut.part_of(random);
      if (Part* const here = parts.local(part)) {
        here->update(random);
        continue;
      }
      calls(part).template send<&Part::update>(random);
      if (++waiting < options.look_ahead) continue;
      waiting = 0;
      parts.aggregated().flush();
      co_await weft::yield_now(runtime());
    }
  }
};

weft::Task<> measure(weft::Runtime& runtime, Options options) {
  // A power of two, for the bits of the words' numbers.
  const std::uint64_t num_parts =
      std::bit_ceil(options.chares * static_cast<std::uint64_t>(runtime.num_pes()));
  if (num_parts > options.num_words()) die("there are more chares than words: raise --log2-words");
  const auto parts = weft::Array<Part>::create(runtime, {static_cast<int>(num_parts)},
                                               std::uint64_t{options.num_words() / num_parts});
  const auto updaters = weft::Group<Updater>::create(runtime);
  co_await parts.created();
  co_await runtime.quiescence();
  Stopwatch stopwatch;
  updaters.send<&Updater::update>(parts, options);
  co_await runtime.quiescence();
  parts.send<&Part::finish>();
  co_await runtime.quiescence();
  const double elapsed_s = stopwatch.elapsed_s();
  co_await updaters.call<&Updater::update_own>(parts, options);
  std::uint64_t wrong = 0;
  for (const std::uint64_t one : co_await parts.call<&Part::num_wrong>()) wrong += one;
  if (wrong != 0) die("words of the table are wrong");
  report("rate_GUPS", sizeof(std::uint64_t), static_cast<double>(options.num_updates()) / elapsed_s / 1e9);
}

Options parse_options(int argc, char** argv) {
  Options options;
  parse_numbers(argc, argv, kUsage,
                {{"--log2-words", options.log2_words, 10, 39},
                 {"--updates-per-word", options.updates_per_word},
                 {"--look-ahead", options.look_ahead},
                 {"--chares", options.chares, 1, 64}},
                &options.is_aggregated);
  return options;
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  const Options options = parse_options(argc, argv);
  return weft::run(argc, argv, [options](weft::Runtime& runtime) { return measure(runtime, options); });
}
