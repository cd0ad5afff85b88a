// Random access to a distributed table, by the rules of the HPC Challenge (RandomAccess): billions of updates per second.
//
//   random_access [--way single|aggregated] [--log2-words N] [--updates-per-word N] [--look-ahead N] [--rounds N] [--chares N]
//
// The table of 2^N words of 64 bits is cut among the chares of an array. All PEs together make 4 updates per word: each PE takes its part
// of one sequence of random numbers, and xors each number into the word that its low bits name. The chare of that word does it: at once if
// it is on this PE, else by a call of 8 bytes, which travels alone or aggregated. The clock of PE 0 runs from the first update until no
// message is under way. Then each PE makes all updates of its own chares once more, without calls, which must restore each word: the rules
// allow 1 % of wrong words, here none may be wrong.
//
// Look-ahead: a PE has drawn at most LOOK-AHEAD numbers whose updates are not made (the rules say 1024). It draws them in --rounds rounds,
// all of which are under way. After a round each chare that got updates in it acknowledges that it has made them: the aggregated calls of
// a PE to a chare run in order. Calls one by one have no order, so nothing can acknowledge earlier ones: with --way single, flow control
// alone bounds the updates that are under way, and the figure is no entry by the rules.
#include <algorithm>
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
    "[--rounds N] [--chares N]";

struct Options {
  bool is_aggregated = true;
  std::uint64_t log2_words = 24;  // 128 MiB
  std::uint64_t updates_per_word = 4;
  std::uint64_t look_ahead = 1024;
  // Under way at once. More of them wait less, and take more messages: benchmarks/results/2026-11-30-aggregated/README.md.
  std::uint64_t rounds = 4;
  std::uint64_t chares = 4;  // of each PE

  std::uint64_t num_words() const { return std::uint64_t{1} << log2_words; }
  std::uint64_t num_updates() const { return num_words() * updates_per_word; }
  void pup(auto& p) { p | is_aggregated | log2_words | updates_per_word | look_ahead | rounds | chares; }
};

class Updater;

// A part of the table: the words whose high bits are the chare's index.
class Part : public weft::Chare<Part> {
 public:
  Part(std::uint64_t num_words, weft::CollectionProxy<Updater> updaters)
      : words_(num_words), updaters_(updaters) {
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
  // Tells the PE that its earlier updates here are made.
  void acknowledge(std::int32_t updater, std::uint32_t round);
  std::uint64_t num_wrong() {
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < words_.size(); ++i)
      wrong += words_[i] != linear_index() * words_.size() + i ? 1 : 0;
    return wrong;
  }

 private:
  std::uint64_t& word_of(std::uint64_t random) { return words_[random & (words_.size() - 1)]; }

  std::vector<std::uint64_t> words_;
  weft::CollectionProxy<Updater> updaters_;
  std::array<std::uint64_t, 16> fetched_{};  // updates; 0 is none
  std::size_t num_updates_ = 0;
};

// One PE's part of the updates.
class Updater : public weft::Chare<Updater> {
 public:
  explicit Updater(Options options) : options_(options) { pin(pe()); }

  weft::Task<> update(weft::CollectionProxy<Part> parts) {
    parts_ = parts;
    got_updates_.assign(parts.shape().size(), 0);
    log2_part_words_ = static_cast<int>(options_.log2_words) - std::countr_zero(got_updates_.size());
    const std::uint64_t share = options_.num_updates() / static_cast<std::uint64_t>(num_pes());
    num_drawn_ = share * static_cast<std::uint64_t>(pe());
    end_ = pe() + 1 == num_pes() ? options_.num_updates() : num_drawn_ + share;
    random_ = hpcc_random_at(num_drawn_);
    if (options_.is_aggregated) {
      num_pending_.assign(options_.rounds, 0);
      for (std::uint32_t round = 0; round < options_.rounds; ++round) begin(round);
      co_return;
    }
    while (num_drawn_ != end_) {
      draw(parts_);
      co_await weft::room(runtime());
    }
  }
  // A chare has made its updates of the round.
  void acknowledged(std::uint32_t round) {
    if (--num_pending_[round] == 0) begin(round);
  }
  // Makes the updates of all PEs to the chares of this one.
  void update_own() {
    std::uint64_t random = hpcc_random_at(0);
    for (std::uint64_t i = 0; i < options_.num_updates(); ++i) {
      random = next_hpcc_random(random);
      if (Part* const here = parts_.local(part_of(random))) here->change(random);
    }
  }

 private:
  // The next updates, in the place of a round that is over.
  void begin(std::uint32_t round) {
    while (num_pending_[round] == 0 && num_drawn_ != end_) {
      draw(parts_.aggregated());
      for (int part = 0; part < static_cast<int>(got_updates_.size()); ++part) {
        if (std::exchange(got_updates_[static_cast<std::size_t>(part)], 0) == 0) continue;
        if (Part* const here = parts_.local(part)) {
          here->finish();
        } else {
          parts_.aggregated()(part).send<&Part::acknowledge>(pe(), round);
          ++num_pending_[round];
        }
      }
    }
    parts_.aggregated().flush();
  }
  // The updates of one round.
  template <class Calls>
  void draw(Calls calls) {
    const std::uint64_t end = std::min(end_, num_drawn_ + options_.look_ahead / options_.rounds);
    for (; num_drawn_ != end; ++num_drawn_) {
      random_ = next_hpcc_random(random_);
      const int part = part_of(random_);
      got_updates_[static_cast<std::size_t>(part)] = 1;
      if (Part* const here = parts_.local(part)) {
        here->update(random_);
      } else {
        calls(part).template send<&Part::update>(random_);
      }
    }
  }
  // The chare that has the word of an update.
  int part_of(std::uint64_t random) const {
    return static_cast<int>((random & (options_.num_words() - 1)) >> log2_part_words_);
  }

  Options options_;
  weft::CollectionProxy<Part> parts_;
  int log2_part_words_ = 0;
  std::uint64_t num_drawn_ = 0;  // the place in the sequence
  std::uint64_t end_ = 0;
  std::uint64_t random_ = 0;
  std::vector<std::uint8_t> got_updates_;   // by chare: in the round that is drawn
  std::vector<std::uint64_t> num_pending_;  // by round: chares that have not acknowledged it
};

void Part::acknowledge(std::int32_t updater, std::uint32_t round) {
  finish();
  updaters_.aggregated()(updater).send<&Updater::acknowledged>(round);
}

weft::Task<> measure(weft::Runtime& runtime, Options options) {
  // A power of two, for the bits of the words' numbers.
  const std::uint64_t num_parts =
      std::bit_ceil(options.chares * static_cast<std::uint64_t>(runtime.num_pes()));
  if (num_parts > options.num_words()) die("there are more chares than words: raise --log2-words");
  const auto updaters = weft::Group<Updater>::create(runtime, options);
  const auto parts = weft::Array<Part>::create(runtime, {static_cast<int>(num_parts)},
                                               std::uint64_t{options.num_words() / num_parts}, updaters);
  co_await parts.created();
  co_await runtime.quiescence();
  Stopwatch stopwatch;
  updaters.send<&Updater::update>(parts);
  co_await runtime.quiescence();
  if (!options.is_aggregated) {
    parts.send<&Part::finish>();
    co_await runtime.quiescence();
  }
  const double elapsed_s = stopwatch.elapsed_s();
  co_await updaters.call<&Updater::update_own>();
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
                 {"--rounds", options.rounds, 1, 64},
                 {"--chares", options.chares, 1, 64}},
                &options.is_aggregated);
  if (options.look_ahead < options.rounds) die("a round has no update: raise --look-ahead or lower --rounds");
  return options;
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  const Options options = parse_options(argc, argv);
  return weft::run(argc, argv, [options](weft::Runtime& runtime) { return measure(runtime, options); });
}
