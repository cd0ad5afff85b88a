// The end of a job that outlives losses, when the PE that ends it is lost on the way.
#include <gtest/gtest.h>

#include <initializer_list>

#include "runtime/message/handlers.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

// PE 0 has told one of the others that the job ends with code 3, and is lost.
class EndWithoutRoot : public ::testing::TestWithParam<int> {
 protected:
  EndWithoutRoot() {
    send_exit(0, told());
    job_.kill(0);
  }
  static int told() { return GetParam(); }
  static int other() { return told() == 1 ? 2 : 1; }
  void send_exit(int from, int to) {
    MessagePtr message = Message::pack(job_.runtime(from), kExitHandler, 3);
    message->envelope().flags |= kControlFlag;
    job_.runtime(from).send(to, std::move(message));
  }
  void step(int pe) { job_.runtime(pe).step(); }
  void expect_end() {
    EXPECT_EQ(job_.run_until([&] { return job_.runtime(1).stopped() && job_.runtime(2).stopped(); }), "");
    for (const int pe : {1, 2}) EXPECT_EQ(job_.runtime(pe).run(), 3) << "PE " << pe;
  }

  testing::InProcessJob job_ = testing::InProcessJob::outliving_losses(3);
};

TEST_P(EndWithoutRoot, IsPassedOnByThePeThatKnowsOfItBeforeTheLoss) {
  step(told());
  job_.tell(told(), 0);
  step(told());
  job_.tell(other(), 0);
  expect_end();
}

TEST_P(EndWithoutRoot, IsPassedOnToAPeThatKnowsOfTheLoss) {
  job_.tell(other(), 0);
  step(other());
  step(told());
  job_.tell(told(), 0);
  expect_end();
}

TEST_P(EndWithoutRoot, IsPassedOnByThePeThatHearsOfItAfterTheLoss) {
  job_.runtime(told()).losses().tell(0, "it was killed");
  job_.runtime(told()).losses().handle_told();
  job_.tell(other(), 0);
  expect_end();
}

INSTANTIATE_TEST_SUITE_P(Told, EndWithoutRoot, ::testing::Values(1, 2));

// PE 1 has passed the end of PE 0 on to PE 2 alone.
void expect_passed_on(std::initializer_list<HandlerId> messages) {
  testing::InProcessJob job = testing::InProcessJob::outliving_losses(4);
  for (const HandlerId handler : messages) {
    MessagePtr message = Message::pack(job.runtime(1), handler, 3);
    message->envelope().flags |= kControlFlag;
    job.runtime(1).send(2, std::move(message));
  }
  job.kill(0);
  job.kill(1);
  EXPECT_EQ(job.run_until([&] { return job.runtime(2).stopped() && job.runtime(3).stopped(); }), "");
  EXPECT_EQ(job.runtime(3).run(), 3);
}

TEST(End, IsPassedOnAgainWhenThePeThatHasPassedItOnIsLostToo) {
  expect_passed_on({kExitHandler, kCloseHandler});
}

TEST(End, IsPassedOnAgainIfItsMessagesComeInTheOtherOrder) {
  expect_passed_on({kCloseHandler, kExitHandler});
}

}  // namespace
}  // namespace weft::runtime
