// An index gather: each PE reads words of a table that lies on all PEs, by random indices. Millions of words per second, of all PEs
// together.
//
//   index_gather [--way single|aggregated] [--reads N] [--chares N] [--words N] [--runs N]
//
// A read is a call of the chare that has the word, and its answer is a call of the reader. Both travel one by one or aggregated in bundles.
// The clock of PE 0 runs from the first read until no message is under way. The best run counts. Each word that was read is compared with
// what it must be.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "weft/weft.h"

#include "benchmarks/measuring.h"
#include "benchmarks/random_places.h"

namespace weft::benchmarks {
namespace {

constexpr const char* kUsage =
    "index_gather [--way single|aggregated] [--reads N] [--chares N] [--words N] [--runs N]";

struct Options {
  bool is_aggregated = true;
  std::uint64_t reads = 1'000'000;  // of each PE and run
  std::uint64_t chares = 4;         // of each PE
  std::uint64_t words = 65536;      // of each chare
  std::uint64_t runs = 5;
  std::uint64_t pes = 1;

  void pup(auto& p) { p | is_aggregated | reads | chares | words | runs | pes; }
};

// What the table holds there.
constexpr std::uint64_t word_at(const Place& place) {
  return random_number(std::uint64_t{place.chare} << 32 | place.word);
}

class Reader;

class Table : public weft::Chare<Table> {
 public:
  explicit Table(Options options) : is_aggregated_(options.is_aggregated) {
    for (std::uint32_t word = 0; word < options.words; ++word)
      words_.push_back(word_at({static_cast<std::uint32_t>(linear_index()), word}));
  }
  void know_readers(weft::CollectionProxy<Reader> readers) { readers_ = readers; }
  void read(std::uint32_t word, std::int32_t reader, std::uint32_t slot);

 private:
  bool is_aggregated_;
  std::vector<std::uint64_t> words_;
  weft::CollectionProxy<Reader> readers_;
};

class Reader : public weft::Chare<Reader> {
 public:
  explicit Reader(Options options)
      : options_(options),
        places_(pe(), options.chares * options.pes, options.words),
        asked_(options.reads),
        values_(options.reads) {
    pin(pe());
  }

  // Draws the places of the next run.
  void draw() {
    for (Place& place : asked_) place = places_.next();
    std::fill(values_.begin(), values_.end(), 0);
  }
  weft::Task<> gather(weft::CollectionProxy<Table> tables) {
    if (options_.is_aggregated) {
      co_await gather_each(tables.aggregated());
    } else {
      co_await gather_each(tables);
    }
  }
  void take(std::uint32_t slot, std::uint64_t value) { values_[slot] += value; }
  std::uint64_t num_wrong() {
    std::uint64_t wrong = 0;
    for (std::size_t slot = 0; slot < values_.size(); ++slot)
      wrong += values_[slot] != word_at(asked_[slot]) ? 1 : 0;
    return wrong;
  }

 private:
  template <class Elements>
  weft::Task<> gather_each(Elements tables) {
    for (std::uint32_t slot = 0; slot < asked_.size(); ++slot) {
      const Place& place = asked_[slot];
      tables(static_cast<int>(place.chare)).template send<&Table::read>(place.word, pe(), slot);
      if (slot % 64 == 63) co_await weft::room(runtime());
    }
  }

  Options options_;
  RandomPlaces places_;
  std::vector<Place> asked_;
  std::vector<std::uint64_t>
      values_;  // by slot, as the places: sums, so that an answer that comes twice is wrong
};

void Table::read(std::uint32_t word, std::int32_t reader, std::uint32_t slot) {
  if (is_aggregated_) {
    readers_.aggregated()(reader).send<&Reader::take>(slot, words_[word]);
  } else {
    readers_(reader).send<&Reader::take>(slot, words_[word]);
  }
}

weft::Task<> measure(weft::Runtime& runtime, Options options) {
  options.pes = static_cast<std::uint64_t>(runtime.num_pes());
  const auto num_chares = static_cast<int>(options.chares * options.pes);
  const auto tables = weft::Array<Table>::create(runtime, {num_chares}, options);
  const auto readers = weft::Group<Reader>::create(runtime, options);
  tables.send<&Table::know_readers>(readers);
  double best_s = 1e9;
  for (std::uint64_t run = 0; run < options.runs; ++run) {
    readers.send<&Reader::draw>();
    co_await runtime.quiescence();
    Stopwatch stopwatch;
    readers.send<&Reader::gather>(tables);
    co_await runtime.quiescence();
    best_s = std::min(best_s, stopwatch.elapsed_s());
    const std::vector<std::uint64_t> wrong = co_await readers.call<&Reader::num_wrong>();
    if (std::accumulate(wrong.begin(), wrong.end(), std::uint64_t{0}) != 0) die("words were read wrong");
  }
  report("rate_Mps", sizeof(std::uint64_t), static_cast<double>(options.reads * options.pes) / best_s / 1e6);
}

Options parse_options(int argc, char** argv) {
  Options options;
  parse_numbers(argc, argv, kUsage,
                {{"--reads", options.reads, 1, 1'000'000'000},
                 {"--chares", options.chares, 1, 1000},
                 {"--words", options.words, 1, 1'000'000'000},
                 {"--runs", options.runs}},
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
