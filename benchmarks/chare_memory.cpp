// Bytes of heap that a chare costs beyond the members that its author gave it, from the growth of the
// process's heap when an array of 100,000 is created on one PE.
#include <malloc.h>

#include <cstdint>

#include "weft/weft.h"

#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

constexpr int kElements = 100'000;

class Element : public weft::Chare<Element> {
 public:
  std::int64_t add(std::int64_t value) { return member_ += value; }

 private:
  std::int64_t member_ = 0;
};

double heap_bytes() {
  struct mallinfo2 heap = mallinfo2();
  return static_cast<double>(heap.uordblks + heap.hblkhd);
}

weft::Task<> measure(weft::Runtime& runtime) {
  double before = heap_bytes();
  auto array = weft::Array<Element>::create(runtime, {kElements});
  // On one PE it is there once its last element answers.
  co_await array[kElements - 1].call<&Element::add>(std::int64_t{1});
  double each = (heap_bytes() - before) / kElements;
  report("memory_bytes", 0, each - static_cast<double>(sizeof(std::int64_t)));
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) { return weft::run(argc, argv, weft::benchmarks::measure); }
