#include "job/status/other_hosts.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/in_process_job.h"

namespace weft::job {
namespace {

const std::vector<int> kTwoHosts = {0, 0, 1, 1};

runtime::RuntimeOptions on_two_hosts() {
  runtime::RuntimeOptions options;
  options.host_of_pe = kTwoHosts;
  return options;
}

// PEs 0 and 1 on one host, PEs 2 and 3 on another.
class OtherHostsTest : public ::testing::Test {
 protected:
  OtherHostsTest() : job_(4, "loopback", on_two_hosts()) {
    for (int pe = 0; pe < 4; ++pe) {
      publishers_.push_back(StatusPublisher::make(job_.runtime(pe), "job"));
      hosts_.push_back(&job_.runtime(pe).install<OtherHosts>());
    }
  }
  void begin() {
    for (std::size_t pe = 0; pe < hosts_.size(); ++pe) hosts_[pe]->begin(*publishers_[pe], kTwoHosts);
  }

  testing::InProcessJob job_;
  std::vector<std::unique_ptr<StatusPublisher>> publishers_;
  std::vector<OtherHosts*> hosts_;
};

// The file as another process sees it.
class OthersView {
 public:
  explicit OthersView(const OtherHosts& hosts)
      : size_(hosts.file().size_bytes()),
        memory_(mmap(nullptr, size_, PROT_READ, MAP_SHARED, hosts.file().descriptor(), 0)) {}
  ~OthersView() { munmap(memory_, size_); }
  OthersView(const OthersView&) = delete;
  OthersView& operator=(const OthersView&) = delete;
  const OthersHead& head() const { return *static_cast<const OthersHead*>(memory_); }
  const OthersSlot& slot(std::size_t pe) const {
    return *reinterpret_cast<const OthersSlot*>(static_cast<const std::byte*>(memory_) + sizeof(OthersHead) +
                                                pe * sizeof(OthersSlot));
  }

 private:
  std::size_t size_;
  void* memory_;
};

TEST_F(OtherHostsTest, TheFirstPeOfAHostFetchesThePagesOfTheOthers) {
  begin();
  EXPECT_FALSE(hosts_[1]->file());
  EXPECT_FALSE(hosts_[3]->file());
  ASSERT_TRUE(hosts_[2]->file());
  const OthersView view(*hosts_[2]);
  EXPECT_EQ(view.head().magic, kOthersMagic);
  EXPECT_EQ(view.head().num_pes, 4);
  ASSERT_EQ(write(view.head().ask_fd, "?", 1), 1);
  EXPECT_EQ(job_.run([&](runtime::Runtime& runtime) -> runtime::Task<> {
    while (view.slot(0).sequence < 2 || view.slot(1).sequence < 2) co_await runtime::yield_now(runtime);
  }),
            "");
  for (const std::size_t pe : {std::size_t{0}, std::size_t{1}}) {
    StatusPage page{};
    std::memcpy(static_cast<void*>(&page), view.slot(pe).page.data(), sizeof page);
    EXPECT_EQ(page.magic, kStatusMagic);
    EXPECT_EQ(page.pe, static_cast<int>(pe));
    EXPECT_EQ(page.pid, getpid());
    EXPECT_GT(view.slot(pe).resident_bytes, 0U);
    EXPECT_GE(view.slot(pe).answered_ns, view.slot(pe).read_ns);  // one clock here
    EXPECT_NE(view.slot(pe).host.front(), '\0');
  }
  EXPECT_EQ(view.slot(3).sequence, 0U);  // of its own host
}

TEST_F(OtherHostsTest, APageOfAnImpossibleSizeIsRefused) {
  begin();
  const std::string failure = job_.run([](runtime::Runtime& runtime) -> runtime::Task<> {
    const auto handler = static_cast<runtime::HandlerId>(runtime.model<OtherHosts>().first_handler() + 1);
    runtime::MessagePtr message = runtime::Message::create(runtime, handler, sizeof(OthersSlot) + 1);
    message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
    runtime.send(2, std::move(message));
    for (;;) co_await runtime::yield_now(runtime);
  });
  EXPECT_NE(failure.find("a status page from PE 0 has 4465 bytes"), std::string::npos) << failure;
}

}  // namespace
}  // namespace weft::job
