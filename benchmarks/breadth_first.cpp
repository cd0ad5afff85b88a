// A breadth-first search of a random sparse graph in the manner of Graph500: millions of traversed edges per second, of all PEs together.
//
//   breadth_first [--way single|aggregated] [--scale N] [--edges-per-vertex N] [--chares N] [--runs N]
//
// The graph has 2^SCALE vertices and edges of the R-MAT generator: few vertices have very many edges. Vertex v is with chare v modulo the
// number of chares. Building the graph is a call for each end of an edge, and searching it is one for each end of an edge that a level of
// the search looks at. The calls travel one by one or aggregated in bundles. The clock of PE 0 runs for a search, from the call of the
// first vertex; the fastest search counts. Each search begins at another vertex that has edges. All levels are compared with those of a
// sequential search on PE 0.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "benchmarks/measuring.h"
#include "benchmarks/random_places.h"

namespace weft::benchmarks {
namespace {

constexpr const char* kUsage =
    "breadth_first [--way single|aggregated] [--scale N] [--edges-per-vertex N] [--chares N] [--runs N]";

using Vertex = std::uint32_t;
using Level = std::int32_t;
constexpr Level kNotReached = -1;

struct Options {
  bool is_aggregated = true;
  std::uint64_t scale = 16;
  std::uint64_t edges_per_vertex = 16;
  std::uint64_t chares = 4;  // of each PE
  std::uint64_t runs = 5;

  std::uint64_t num_vertices() const { return std::uint64_t{1} << scale; }
  std::uint64_t num_edges() const { return num_vertices() * edges_per_vertex; }
  void pup(auto& p) { p | is_aggregated | scale | edges_per_vertex | chares | runs; }
};

// An edge of the R-MAT graph: each bit of the two vertices chooses a quarter of the matrix, with the probabilities of Graph500.
std::pair<Vertex, Vertex> edge_at(const Options& options, std::uint64_t number) {
  Vertex from = 0;
  Vertex to = 0;
  for (std::uint64_t bit = 0; bit < options.scale; ++bit) {
    const std::uint64_t percent = random_number(number * options.scale + bit) % 100;
    from = from << 1 | (percent >= 76 ? 1 : 0);                                 // 0.57 + 0.19
    to = to << 1 | ((percent >= 57 && percent < 76) || percent >= 95 ? 1 : 0);  // 0.19, and 0.05 for both
  }
  return {from, to};
}

// The vertices v with v modulo the number of chares == the chare's index.
class Part : public weft::Chare<Part> {
 public:
  explicit Part(Options options)
      : options_(options),
        num_parts_(static_cast<Vertex>(options.chares) * static_cast<Vertex>(num_pes())),
        neighbours_((options.num_vertices() + num_parts_ - 1) / num_parts_),
        levels_(neighbours_.size(), kNotReached) {}

  // Makes this chare's part of the edges, and sends each to the chares of its ends.
  weft::Task<> make_edges() {
    const auto first = static_cast<std::uint64_t>(linear_index());
    for (std::uint64_t number = first; number < options_.num_edges(); number += num_parts_) {
      const auto [from, to] = edge_at(options_, number);
      if (from == to) continue;
      call<&Part::add_edge>(from, to);
      call<&Part::add_edge>(to, from);
      if (number / num_parts_ % 64 == 63) co_await weft::room(runtime());
    }
  }
  void add_edge(Vertex from, Vertex to) { neighbours_[from / num_parts_].push_back(to); }

  // A vertex that is reached for the first time belongs to the next level.
  void visit(Vertex vertex, Level level) {
    Level& known = levels_[vertex / num_parts_];
    if (known != kNotReached) return;
    known = level;
    next_.push_back(vertex);
  }
  // The level that was the next one is the one to search. How many of its vertices are here?
  std::uint64_t begin_level() {
    current_.clear();
    current_.swap(next_);
    return current_.size();
  }
  weft::Task<> search_level(Level level) {
    for (const Vertex vertex : current_) {
      for (const Vertex neighbour : neighbours_[vertex / num_parts_])
        call<&Part::visit>(neighbour, level + 1);
      co_await weft::room(runtime());
    }
  }

  // Ends of edges at vertices that the search has reached.
  std::uint64_t num_ends_reached() {
    std::uint64_t ends = 0;
    for (std::size_t i = 0; i < levels_.size(); ++i)
      ends += levels_[i] != kNotReached ? neighbours_[i].size() : 0;
    return ends;
  }
  std::vector<Level> levels() { return levels_; }
  void forget() { std::fill(levels_.begin(), levels_.end(), kNotReached); }

 private:
  template <auto Method, class... Arguments>
  void call(Vertex vertex, Arguments... arguments) {
    const auto part = static_cast<int>(vertex % num_parts_);
    if (options_.is_aggregated) {
      proxy().aggregated()(part).template send<Method>(vertex, arguments...);
    } else {
      proxy()(part).template send<Method>(vertex, arguments...);
    }
  }

  Options options_;
  Vertex num_parts_;
  std::vector<std::vector<Vertex>> neighbours_;
  std::vector<Level> levels_;
  std::vector<Vertex> current_;
  std::vector<Vertex> next_;
};

// The whole graph on one PE.
class Sequential {
 public:
  explicit Sequential(const Options& options) : neighbours_(options.num_vertices()) {
    for (std::uint64_t number = 0; number < options.num_edges(); ++number) {
      const auto [from, to] = edge_at(options, number);
      if (from == to) continue;
      neighbours_[from].push_back(to);
      neighbours_[to].push_back(from);
      has_edges_ = true;
    }
  }
  bool has_edges() const { return has_edges_; }
  // Draws a vertex that has edges. REQUIRES: has_edges().
  Vertex root(std::uint64_t run) const {
    Vertex vertex = static_cast<Vertex>(random_number(run) % neighbours_.size());
    while (neighbours_[vertex].empty()) vertex = (vertex + 1) % static_cast<Vertex>(neighbours_.size());
    return vertex;
  }
  std::vector<Level> levels_from(Vertex root) const {
    std::vector<Level> levels(neighbours_.size(), kNotReached);
    levels[root] = 0;
    std::vector<Vertex> reached{root};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const Vertex neighbour : neighbours_[reached[i]]) {
        if (levels[neighbour] != kNotReached) continue;
        levels[neighbour] = levels[reached[i]] + 1;
        reached.push_back(neighbour);
      }
    }
    return levels;
  }

 private:
  std::vector<std::vector<Vertex>> neighbours_;
  bool has_edges_ = false;
};

std::uint64_t sum_of(const std::vector<std::uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

weft::Task<> search(weft::Runtime& runtime, weft::CollectionProxy<Part> parts, Vertex root) {
  const auto num_parts = static_cast<Vertex>(parts.shape().size());
  parts(static_cast<int>(root % num_parts)).send<&Part::visit>(root, 0);
  co_await runtime.quiescence();
  for (Level level = 0;; ++level) {
    const std::vector<std::uint64_t> sizes = co_await parts.call<&Part::begin_level>();
    if (sum_of(sizes) == 0) co_return;
    parts.send<&Part::search_level>(level);
    co_await runtime.quiescence();
  }
}

weft::Task<> measure(weft::Runtime& runtime, Options options) {
  pin(runtime.pe());
  const auto num_parts = static_cast<int>(options.chares) * runtime.num_pes();
  const auto parts = weft::Array<Part>::create(runtime, {num_parts}, options);
  parts.send<&Part::make_edges>();
  co_await runtime.quiescence();
  const Sequential sequential(options);
  if (!sequential.has_edges()) {
    die("all edges of the graph join a vertex to itself: raise --scale or --edges-per-vertex");
  }
  double best_Mps = 0;
  for (std::uint64_t run = 0; run < options.runs; ++run) {
    parts.send<&Part::forget>();
    co_await runtime.quiescence();
    const Vertex root = sequential.root(run);
    Stopwatch stopwatch;
    co_await search(runtime, parts, root);
    const double elapsed_s = stopwatch.elapsed_s();
    const auto ends = static_cast<double>(sum_of(co_await parts.call<&Part::num_ends_reached>()));
    best_Mps = std::max(best_Mps, ends / 2 / elapsed_s / 1e6);
    const std::vector<std::vector<Level>> levels = co_await parts.call<&Part::levels>();
    const std::vector<Level> expected = sequential.levels_from(root);
    for (std::size_t vertex = 0; vertex < expected.size(); ++vertex) {
      const std::size_t part = vertex % levels.size();
      if (levels[part][vertex / levels.size()] != expected[vertex]) die("levels of the search are wrong");
    }
  }
  report("rate_MTEPS", sizeof(Vertex) + sizeof(Level), best_Mps);
}

Options parse_options(int argc, char** argv) {
  Options options;
  parse_numbers(argc, argv, kUsage,
                {{"--scale", options.scale, 1, 30},
                 {"--edges-per-vertex", options.edges_per_vertex, 1, 1000},
                 {"--chares", options.chares, 1, 1000},
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
