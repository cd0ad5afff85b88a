// Global memory between processes. Each PE makes segments, and all PEs work on those of the next one; the bytes are checked.
//
//     pgas_probe copies KIND   put, get, copies between others, atomic operations
//     pgas_probe idle          the owner of a segment computes and makes no progress: operations of others end all the same
//     pgas_probe freed KIND    the owner frees a segment that others use
//
// Prints "copies: right" if all was right.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "weft/weft.h"

namespace {

using weft::GlobalPtr;
using Number = std::uint64_t;

constexpr std::size_t kElements = 100'000;
constexpr Number kAdds = 2000;

struct Parts {
  GlobalPtr<Number> target;   // of the kind
  GlobalPtr<Number> source;   // of the kind
  GlobalPtr<Number> callers;  // host memory of the program
  GlobalPtr<Number> counter;  // host memory
};

void expect(bool is_right, const std::string& what) {
  if (!is_right) throw std::runtime_error("wrong: " + what);
}

class Worker : public weft::Chare<Worker> {
 public:
  explicit Worker(weft::Kind kind)
      : place_(weft::device_of(runtime(), kind)),
        target_(pgas().make_segment<Number>(kElements, place_)),
        source_(pgas().make_segment<Number>(kElements, place_)),
        memory_(kElements, 0),
        callers_(pgas().make_segment_at(memory_.data(), kElements * sizeof(Number))),
        counter_(pgas().make_segment<Number>(8)) {
    if (pe() % 2 == 0) counter_.publish();
  }

  Parts parts() const {
    return {target_.pointer<Number>(), source_.pointer<Number>(), callers_.pointer<Number>(),
            counter_.pointer<Number>()};
  }

  weft::Task<> fill() {
    std::vector<Number> values = numbers(pe());
    co_await pgas().put(std::span(values), source_.pointer<Number>());
  }

  weft::Task<> work(std::vector<Parts> all) {
    const auto next = static_cast<std::size_t>((pe() + 1) % num_pes());
    const auto after = static_cast<std::size_t>((pe() + 2) % num_pes());
    // From the second PE behind into the next one; then from there into memory of the program, and home.
    co_await pgas().copy(all[after].source, all[next].target, kElements);
    std::vector<Number> got(kElements);
    co_await pgas().get(all[next].target, std::span(got));
    expect(got == numbers(static_cast<int>(after)), "a copy between other PEs");
    co_await pgas().copy(all[next].target, all[next].callers, kElements);
    std::fill(got.begin(), got.end(), 0);
    co_await pgas().get(all[next].callers, std::span(got));
    expect(got == numbers(static_cast<int>(after)), "a copy into memory of a program");
    co_await pgas().put(Number{17}, all[next].target + 5);
    const Number one = co_await pgas().get(all[next].target + 5);
    expect(one == 17, "a single value");
    for (Number i = 0; i < kAdds; ++i) {
      co_await pgas().fetch_add(all[0].counter, 1);
      const Number before = co_await pgas().fetch_add(all[next].callers + 1, 1);
      expect(before == numbers(static_cast<int>(after))[1] + i, "an atomic operation");
    }
  }

  // Until another PE has stored a value into this PE's segment, without any progress.
  void compute() {
    const std::atomic_ref<Number> first(counter_.elements<Number>()[0]);
    while (first.load(std::memory_order_acquire) != 3) {
    }
  }
  weft::Task<> end_computing(GlobalPtr<Number> counter) {
    co_await pgas().learn(counter.address());
    expect(pgas().mapped(counter) != nullptr, "the segment is not mapped");
    expect(pgas().fetch_add(counter + 1, 2).is_done(), "an operation waits");
    pgas().put(Number{5}, counter + 2).detach();
    pgas().atomic_store(counter, 3).detach();
  }

  void free() { target_ = {}; }
  weft::Task<std::string> use(GlobalPtr<Number> pointer) {
    try {
      co_await pgas().put(Number{1}, pointer);
    } catch (const weft::Error& error) {
      co_return error.what();
    }
    co_return "";
  }

 private:
  weft::Pgas& pgas() { return runtime().model<weft::Pgas>(); }
  static std::vector<Number> numbers(int pe) {
    std::vector<Number> values(kElements);
    for (std::size_t i = 0; i < kElements; ++i) values[i] = static_cast<Number>(pe) * 1'000'000 + i;
    return values;
  }

  weft::Place place_;
  weft::rma::Segment target_;
  weft::rma::Segment source_;
  std::vector<Number> memory_;
  weft::rma::Segment callers_;
  weft::rma::Segment counter_;
};

using Workers = weft::Group<Worker>;

weft::Task<> copies(weft::Runtime& runtime, weft::Kind kind) {
  const auto workers = Workers::create(runtime, kind);
  const std::vector<Parts> all = co_await workers.call<&Worker::parts>();
  co_await workers.call<&Worker::fill>();
  co_await workers.call<&Worker::work>(all);
  auto& pgas = runtime.model<weft::Pgas>();
  const Number total = co_await pgas.atomic_load(all[0].counter);
  expect(total == kAdds * static_cast<Number>(runtime.num_pes()), "the sum of atomic operations");
}

weft::Task<> idle(weft::Runtime& runtime) {
  const auto workers = Workers::create(runtime, weft::Kind::kHost);
  const std::vector<Parts> all = co_await workers.call<&Worker::parts>();
  // PE 1 must know how to reach the segment before its owner stops.
  const std::string why = co_await workers[1].call<&Worker::use>(all[0].counter + 7);
  expect(why.empty(), why);
  const auto ends = workers[1].call<&Worker::end_computing>(all[0].counter);
  const auto computes = workers[0].call<&Worker::compute>();
  co_await computes;
  co_await ends;
  auto& pgas = runtime.model<weft::Pgas>();
  const Number value = co_await pgas.get(all[0].counter + 2);
  expect(value == 5, "a put to a PE that computes");
}

weft::Task<> freed(weft::Runtime& runtime, weft::Kind kind) {
  const auto workers = Workers::create(runtime, kind);
  const std::vector<Parts> all = co_await workers.call<&Worker::parts>();
  std::string why = co_await workers[1].call<&Worker::use>(all[0].target);
  expect(why.empty(), why);
  co_await workers[0].call<&Worker::free>();
  why = co_await workers[1].call<&Worker::use>(all[0].target);
  expect(why.find("byte 0 of segment 1 of PE 0") != std::string::npos, why);
  expect(why.find("has been freed") != std::string::npos, why);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const auto kind = weft::memory::kind_from_name(argc > 2 ? argv[2] : "host");
  if (!kind.has_value() || (what != "copies" && what != "idle" && what != "freed")) {
    std::fputs("usage: pgas_probe copies|idle|freed [KIND]\n", stderr);
    return 2;
  }
  return weft::run(argc, argv, [&](weft::Runtime& runtime) -> weft::Task<> {
    if (what == "copies") {
      weft::Task<> done = copies(runtime, *kind);
      co_await std::move(done);
    } else if (what == "idle") {
      weft::Task<> done = idle(runtime);
      co_await std::move(done);
    } else {
      weft::Task<> done = freed(runtime, *kind);
      co_await std::move(done);
    }
    std::printf("%.*s: right\n", static_cast<int>(what.size()), what.data());
  });
}
