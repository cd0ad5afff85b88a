// Seconds from the call that creates an array of 100,000 elements, over a broadcast to all of them, to the
// result of a reduction over all of them, on the PE that asked.
#include <cstdint>

#include "weft/weft.h"

#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

constexpr int kElements = 100'000;

class Element : public weft::Chare<Element> {
 public:
  void add(std::int64_t value) {
    contribute(value, weft::Reducer::kSum, proxy()[0].target<&Element::set_total>());
  }
  void set_total(std::int64_t total) { total_.set(total); }
  weft::Task<std::int64_t> total() {
    total_ = weft::Future<std::int64_t>(runtime());
    co_return co_await total_;
  }

 private:
  weft::Future<std::int64_t> total_;
};

weft::Task<> measure(weft::Runtime& runtime) {
  Stopwatch stopwatch;
  auto array = weft::Array<Element>::create(runtime, {kElements});
  auto total = array[0].call<&Element::total>();
  array.send<&Element::add>(std::int64_t{1});
  if (co_await total != kElements) die("the reduction missed elements");
  report("time_s", 0, stopwatch.elapsed_s());
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) { return weft::run(argc, argv, weft::benchmarks::measure); }
