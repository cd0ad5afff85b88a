// Windows of tagged messages through UCX alone, between two processes of this host. ucx_perftest has one buffer
// for all messages; this program has as many as it is told.
// Use: raw_ucx bandwidth SIZE:ITERATIONS:WARMUP[:BUFFERS]... [--way tag|tag-with-error-handling]
#include <ucp/api/ucp.h>

#include <vector>

#include "benchmarks/measuring.h"
#include "benchmarks/raw_ucx_pair.h"

namespace weft::benchmarks {
namespace {

constexpr ucp_tag_t kDataTag = 1;
constexpr ucp_tag_t kAcknowledgeTag = 2;

void windows(Worker& worker, int process, std::vector<std::vector<char>>& buffers, std::int64_t count) {
  std::vector<ucs_status_ptr_t> requests;
  std::vector<char> nothing;
  std::size_t next = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    for (int slot = 0; slot < kWindow; ++slot) {
      std::vector<char>& buffer = buffers[next++ % buffers.size()];
      requests.push_back(process == 0 ? worker.send(buffer, kDataTag) : worker.receive(buffer, kDataTag));
    }
    for (ucs_status_ptr_t request : requests) worker.wait(request);
    requests.clear();
    worker.wait(process == 0 ? worker.receive(nothing, kAcknowledgeTag)
                             : worker.send(nothing, kAcknowledgeTag));
  }
}

void measure(const Partner& partner, const Arguments& arguments) {
  pin(partner.process());
  Worker worker(partner, arguments.way == "tag-with-error-handling");
  for (const Step& step : arguments.steps) {
    std::vector buffers(static_cast<std::size_t>(step.buffers), std::vector<char>(step.size_bytes, 1));
    partner.barrier();
    windows(worker, partner.process(), buffers, step.warmup);
    Stopwatch stopwatch;
    windows(worker, partner.process(), buffers, step.iterations);
    if (partner.process() == 0) report(arguments.bench, step, stopwatch.elapsed_s());
  }
  partner.barrier();
}

int run(int argc, char** argv) {
  Arguments arguments = parse_arguments(argc, argv);
  if (arguments.bench == Bench::kLatency) die("latency is ucx_perftest's: bandwidth or rate");
  run_pair([&arguments](const Partner& partner) { measure(partner, arguments); });
  return 0;
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) { return weft::benchmarks::run(argc, argv); }
