#include "job/status/status_publisher.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string_view>
#include <thread>

#include "tests/support/in_process_job.h"

namespace weft::job {
namespace {

struct StatusNode : Chare<StatusNode> {
  void take(std::vector<double> values) { static_cast<void>(values); }
  void work() { std::this_thread::sleep_for(std::chrono::microseconds(500)); }  // computes, for the clock
};

// The page as another process sees it.
class View {
 public:
  explicit View(const StatusPublisher& publisher)
      : memory_(mmap(nullptr, sizeof(StatusPage), PROT_READ, MAP_SHARED, publisher.file().descriptor(), 0)) {}
  ~View() { munmap(memory_, sizeof(StatusPage)); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  const StatusPage* operator->() const { return static_cast<const StatusPage*>(memory_); }

 private:
  void* memory_;
};

TEST(StatusPublisher, SaysWhoThePeIs) {
  testing::InProcessJob job(2, "loopback");
  const auto publisher = StatusPublisher::make(job.runtime(1), std::string(1000, 'x'));
  ASSERT_NE(publisher, nullptr);
  const View page(*publisher);
  EXPECT_EQ(page->magic, kStatusMagic);
  EXPECT_EQ(page->version, kStatusVersion);
  EXPECT_EQ(page->size_bytes, sizeof(StatusPage));
  EXPECT_EQ(page->pid, getpid());
  EXPECT_EQ(page->pe, 1);
  EXPECT_EQ(page->num_pes, 2);
  EXPECT_EQ(std::string_view(page->job.data()), std::string(page->job.size() - 1, 'x'));
  EXPECT_EQ(page->sequence % 2, 0U);
  EXPECT_EQ(page->num_rows, 0U);
}

TEST(StatusPublisher, CountsWhatThePeDoes) {
  testing::InProcessJob job(2, "loopback");
  const auto publisher = StatusPublisher::make(job.runtime(0), "job");
  ASSERT_NE(publisher, nullptr);
  const View page(*publisher);
  const std::uint64_t sequence = page->sequence;
  EXPECT_EQ(job.run([](runtime::Runtime& runtime) -> runtime::Task<> {
    auto nodes = Array<StatusNode>::create(runtime, 2);
    const std::vector<double> values(100);
    for (int i = 0; i < 10; ++i) co_await nodes[1].call<&StatusNode::take>(values);
    for (int i = 0; i < 200; ++i) co_await nodes[0].call<&StatusNode::work>();
  }),
            "");
  EXPECT_GT(page->sequence, sequence);
  EXPECT_EQ(page->sequence % 2, 0U);
  EXPECT_GT(page->published_ns, page->began_ns);
  EXPECT_GE(page->handled, 10U);
  ASSERT_GE(page->num_rows, 1U);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < page->num_rows; ++i) {
    EXPECT_NE(page->rows[i].path.front(), '\0');
    EXPECT_EQ(std::string_view(page->rows[i].kind.data()), "host");
    bytes += page->rows[i].bytes;
  }
  EXPECT_GE(bytes, 10 * 100 * sizeof(double));
}

TEST(StatusPublisher, LongIdlenessShowsAtOnce) {
  testing::InProcessJob job(1, "loopback");
  const auto publisher = StatusPublisher::make(job.runtime(0), "job");
  ASSERT_NE(publisher, nullptr);
  const View page(*publisher);
  runtime::TurnMeter& meter = job.runtime(0).turn_meter();
  const auto now = runtime::TurnMeter::Clock::now();
  meter.begin_long_idle(now);
  EXPECT_EQ(page->idle_since_ns, now.time_since_epoch().count());
  meter.end_idle(now + std::chrono::seconds(3));
  EXPECT_EQ(page->idle_since_ns, 0);
  EXPECT_EQ(page->idle_ns, 3'000'000'000);
}

}  // namespace
}  // namespace weft::job
