// Random access to a distributed table, by the rules of the HPC Challenge (RandomAccess): billions of updates per second.
//
//   random_access [--way single|aggregated] [--log2-words N] [--updates-per-word N] [--look-ahead N] [--chares N]
//
// The table of 2^N words of 64 bits is cut among the chares of an array. All PEs together make 4 updates per word: each PE takes its part
// of one sequence of random numbers, and xors each number into the word that its low bits name. The chare of that word does it, by an
// aggregated call of 8 bytes, or one that travels alone. At most LOOK-AHEAD updates wait in the bundles of a PE (the rules say 1024). The clock of PE 0 runs from
// the first update until no message is under way. All updates are then made again, which must restore each word: the rules allow 1 % of
// wrong words, here none may be wrong.
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "weft/weft.h"

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
  void pup(auto& p) { p | is_aggregated | log2_words | updates_per_word | look_ahead | chares; }
};

// The sequence of the benchmark: the powers of x modulo x^63 + x^2 + x + 1 over GF(2).
constexpr std::uint64_t next_random(std::uint64_t random) {
  constexpr std::uint64_t kPolynomial = 7;
  return random << 1 ^ ((random >> 63) != 0 ? kPolynomial : 0);
}

// The number of the sequence at `place`, in the steps of a power by squaring.
std::uint64_t random_at(std::uint64_t place) {
  std::array<std::uint64_t, 64> squares{};  // x^2, x^4, ... of each bit of a number
  std::uint64_t power = 1;
  for (std::uint64_t& square : squares) {
    square = power;
    power = next_random(next_random(power));
  }
  std::uint64_t random = 1;
  for (int bit = 63 - std::countl_zero(place | 1); bit >= 0; --bit) {
    std::uint64_t squared = 0;
    for (std::size_t i = 0; i < squares.size(); ++i) {
      if ((random >> i & 1) != 0) squared ^= squares[i];
    }
    random = (place >> bit & 1) != 0 ? next_random(squared) : squared;
  }
  return random;
}

// A part of the table: the words whose high bits are the chare's index.
class Part : public weft::Chare<Part> {
 public:
  explicit Part(std::uint64_t num_words) : words_(num_words) {
    for (std::uint64_t i = 0; i < num_words; ++i) words_[i] = linear_index() * num_words + i;
  }
  void update(std::uint64_t random) { words_[random & (words_.size() - 1)] ^= random; }
  std::uint64_t num_wrong() {
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < words_.size(); ++i)
      wrong += words_[i] != linear_index() * words_.size() + i ? 1 : 0;
    return wrong;
  }

 private:
  std::vector<std::uint64_t> words_;
};

class Updater : public weft::Chare<Updater> {
 public:
  Updater() { pin(pe()); }

  weft::Task<> update(weft::CollectionProxy<Part> parts, Options options) {
    const auto num_parts = static_cast<std::uint64_t>(parts.shape().size());
    const auto table = parts.aggregated();
    if (options.is_aggregated) {
      co_await update_each(table, table, num_parts, options);
    } else {
      co_await update_each(parts, table, num_parts, options);
    }
    table.flush();
  }

 private:
  // The calls of `parts` may wait in bundles, which `bundles` sends.
  template <class Parts>
  weft::Task<> update_each(Parts parts, weft::Aggregated<Part> bundles, std::uint64_t num_parts,
                           Options options) {
    const std::uint64_t part_shift =
        options.log2_words - static_cast<std::uint64_t>(std::countr_zero(num_parts));
    const std::uint64_t all = options.num_words() * options.updates_per_word;
    const auto pes = static_cast<std::uint64_t>(num_pes());
    const std::uint64_t begin = all / pes * static_cast<std::uint64_t>(pe());
    const std::uint64_t end = pe() + 1 == num_pes() ? all : begin + all / pes;
    std::uint64_t random = random_at(begin);
    for (std::uint64_t i = begin; i < end; ++i) {
      random = next_random(random);
      const std::uint64_t word = random & (options.num_words() - 1);
      parts(static_cast<int>(word >> part_shift)).template send<&Part::update>(random);
      if ((i - begin) % options.look_ahead != options.look_ahead - 1) continue;
      bundles.flush();
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
  const double elapsed_s = stopwatch.elapsed_s();
  updaters.send<&Updater::update>(parts, options);
  co_await runtime.quiescence();
  std::uint64_t wrong = 0;
  for (const std::uint64_t one : co_await parts.call<&Part::num_wrong>()) wrong += one;
  if (wrong != 0) die("words of the table are wrong");
  report("rate_GUPS", sizeof(std::uint64_t),
         static_cast<double>(options.num_words() * options.updates_per_word) / elapsed_s / 1e9);
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
