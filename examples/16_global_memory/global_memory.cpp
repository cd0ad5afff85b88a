// Global memory: a histogram whose bins lie on all PEs, counted by atomic operations; its copy into device memory.
//
//   weft run -n 2 build/release/examples/global_memory
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "weft/weft.h"

constexpr int kBinsPerPe = 4;
constexpr int kSamples = 1000;
using Count = std::uint64_t;
using Bins = std::vector<weft::GlobalPtr<Count>>;

// One on each PE, with a part of the bins.
struct Part : weft::Chare<Part> {
  weft::GlobalPtr<Count> bins() const { return segment.pointer<Count>(); }

  weft::Task<> count(Bins bins) {
    auto& pgas = runtime().model<weft::Pgas>();
    const auto num_bins = static_cast<std::uint32_t>(num_pes() * kBinsPerPe);
    for (int i = pe(); i < kSamples; i += num_pes()) {
      const std::uint32_t sample = 1664525U * (static_cast<std::uint32_t>(i) + 1013904223U);
      const std::uint32_t bin = (sample >> 16) % num_bins;
      // On one host this is an atomic instruction: the bin's PE takes no part in it.
      co_await pgas.fetch_add(bins[bin / kBinsPerPe] + bin % kBinsPerPe, 1);
    }
  }

  weft::pgas::Segment segment = runtime().model<weft::Pgas>().make_segment<Count>(kBinsPerPe);
};

weft::Task<> start(weft::Runtime& runtime) {
  auto& pgas = runtime.model<weft::Pgas>();
  const auto parts = weft::Group<Part>::create(runtime);
  const Bins bins = co_await parts.call<&Part::bins>();
  co_await parts.call<&Part::count>(bins);

  // The bins of all PEs, into one segment of device memory and from there to this PE.
  const std::size_t num_bins = bins.size() * kBinsPerPe;
  const weft::Place device = weft::device_of(runtime, weft::Kind::kEmulated);
  const weft::pgas::Segment gathered = pgas.make_segment<Count>(num_bins, device);
  for (std::size_t pe = 0; pe < bins.size(); ++pe) {
    const auto to = gathered.pointer<Count>(static_cast<std::ptrdiff_t>(pe * kBinsPerPe));
    co_await pgas.copy(bins[pe], to, kBinsPerPe);
  }
  std::vector<Count> counts(num_bins);
  co_await pgas.get(gathered.pointer<Count>(), std::span(counts));

  Count total = 0;
  for (const Count count : counts) total += count;
  std::printf("%llu samples in %zu bins\n", static_cast<unsigned long long>(total), num_bins);

  // A pointer past the end is an error, and nothing is written.
  try {
    co_await pgas.put(1, bins[0] + kBinsPerPe);
  } catch (const weft::Error& error) {
    std::printf("refused: %s\n", error.what());
  }
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
