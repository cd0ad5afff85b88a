// Sends payloads of every size between the chares of a group, to and fro, to themselves and to all at once,
// and checks each element on arrival. Ends with a sentence and code 1 when one is wrong.
//
//     payload_probe host|emulated
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/weft.h"

namespace {

// Eager, rendezvous and what lies between, and nothing at all.
constexpr std::size_t kSizes[] = {0, 1, 13, 1000, 8200, 70'000, 524'289};

class Probe : public weft::Chare<Probe> {
 public:
  explicit Probe(weft::Kind kind)
      : place_(weft::device_of(runtime(), kind)),
        stream_(runtime(), place_),
        room_(runtime(), kSizes[6], place_),
        outgoing_(runtime(), kSizes[6], place_) {}

  // Sends every size to every PE, one after the other and then to all, from the same memory.
  weft::Task<> send_all() {
    for (std::size_t size : kSizes) {
      for (int to = 0; to < num_pes(); ++to) {
        auto first = static_cast<std::uint32_t>(size + static_cast<std::size_t>(pe()));
        fill(outgoing_.span().first(size), first);
        auto proxy = this->proxy()[to];
        co_await proxy.call<&Probe::anywhere>(first, weft::nocopy(outgoing_.span().first(size), handle()));
        co_await proxy.send<&Probe::posted>(first, std::uint64_t{size},
                                            weft::nocopy(outgoing_.span().first(size), handle()));
      }
      auto first = static_cast<std::uint32_t>(size * 3 + static_cast<std::size_t>(pe()));
      fill(outgoing_.span().first(size), first);
      auto all = this->proxy();
      co_await all.send<&Probe::anywhere>(first, weft::nocopy(outgoing_.span().first(size), handle()));
      co_await all.call<&Probe::posted>(first, std::uint64_t{size},
                                        weft::nocopy(outgoing_.span().first(size), handle()));
    }
  }
  int num_posted() { return num_posted_; }

  weft::Task<> anywhere(std::uint32_t first, weft::Payload<std::uint32_t> values) {
    co_await check(values.span(), values.place(), first, values.size());
  }

  void post(std::uint32_t, std::uint64_t size, weft::ReceiveBuffer<std::uint32_t>& values) {
    if (values.size() != size) throw std::runtime_error("another size is announced than was sent");
    values.into(room_.span(), handle());
  }
  // The next one may land as soon as this waits: in device memory after what is queued on the stream by now.
  weft::Task<> posted(std::uint32_t first, std::uint64_t size, weft::Payload<std::uint32_t> values) {
    if (values.data() != room_.data() || values.size() != size)
      throw std::runtime_error("it landed elsewhere");
    ++num_posted_;
    co_await check(values.span(), place_, first, size);
  }

  using PostEntryMethods = weft::PostEntryMethods<weft::Post<&Probe::posted, &Probe::post>>;

 private:
  weft::memory::StreamHandle handle() const { return place_.is_host() ? nullptr : stream_.handle(); }

  void fill(std::span<std::uint32_t> values, std::uint32_t first) {
    auto write = [first](std::span<std::uint32_t> reachable) {
      for (std::size_t i = 0; i < reachable.size(); ++i) reachable[i] = first + static_cast<std::uint32_t>(i);
    };
    if (place_.is_host() || values.empty()) return write(values);
    stream_.launch([values, write](const weft::DeviceView& view) { write(view(values)); });
  }

  weft::Task<> check(std::span<std::uint32_t> values, weft::Place place, std::uint32_t first,
                     std::size_t size) {
    std::size_t wrong = values.size() == size ? 0 : 1;
    auto compare = [first, &wrong](std::span<std::uint32_t> reachable) {
      for (std::size_t i = 0; i < reachable.size(); ++i) wrong += reachable[i] != first + i;
    };
    if (place.is_host() || values.empty()) {
      compare(values);
    } else {
      stream_.launch([values, compare](const weft::DeviceView& view) { compare(view(values)); });
      co_await stream_.done();
    }
    if (wrong > 0) {
      throw std::runtime_error(std::to_string(wrong) + " of " + std::to_string(size) + " elements are wrong");
    }
  }

  weft::Place place_;
  weft::Stream stream_;
  weft::DeviceArray<std::uint32_t> room_;
  weft::DeviceArray<std::uint32_t> outgoing_;
  int num_posted_ = 0;
};

weft::Task<> probe(weft::Runtime& runtime, weft::Kind kind) {
  auto probes = weft::Group<Probe>::create(runtime, kind);
  // One sender at a time: each has one room.
  for (int from = 0; from < runtime.num_pes(); ++from) {
    co_await probes[from].call<&Probe::send_all>();
    co_await runtime.quiescence();
  }
  int posted = 0;
  std::vector<int> counts = co_await probes.call<&Probe::num_posted>();
  for (int count : counts) posted += count;
  int expected = 2 * static_cast<int>(std::size(kSizes)) * runtime.num_pes() * runtime.num_pes();
  if (posted != expected) {
    throw std::runtime_error(std::to_string(posted) + " of " + std::to_string(expected) + " payloads came");
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool on_device = argc == 2 && std::string(argv[1]) == "emulated";
  weft::Kind kind = on_device ? weft::Kind::kEmulated : weft::Kind::kHost;
  return weft::run(argc, argv, [kind](weft::Runtime& runtime) { return probe(runtime, kind); });
}
