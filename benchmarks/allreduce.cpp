// An allreduce of one double, or of a vector of doubles with SIZE bytes if that is more than 8, over a group with a chare on each
// PE, one after the other.
#include <vector>

#include "weft/weft.h"

#include "benchmarks/job_program.h"
#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

class Member : public weft::Chare<Member> {
 public:
  Member() { pin(pe()); }

  weft::Task<> play(std::vector<Step> steps) {
    for (const Step& step : steps) {
      co_await reduce(step.size_bytes, step.warmup);
      Stopwatch stopwatch;
      co_await reduce(step.size_bytes, step.iterations);
      if (pe() == 0) report(Bench::kAllreduce, step, stopwatch.elapsed_s());
    }
  }

 private:
  weft::Task<> reduce(std::size_t size_bytes, std::int64_t count) {
    if (size_bytes > sizeof(double)) {
      const std::vector<double> values(size_bytes / sizeof(double), 1.0);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::vector<double> sums = co_await allreduce(values, weft::Reducer::kSum);
        if (sums.back() != runtime().num_pes()) die("the reduction missed PEs");
      }
      co_return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const double sum = co_await allreduce(1.0, weft::Reducer::kSum);
      if (sum != runtime().num_pes()) die("the reduction missed PEs");
    }
  }
};

weft::Task<> measure(weft::Runtime& runtime, const Arguments& arguments) {
  auto members = weft::Group<Member>::create(runtime);
  co_await members.call<&Member::play>(arguments.steps);
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) { return weft::benchmarks::run(argc, argv, weft::benchmarks::measure); }
