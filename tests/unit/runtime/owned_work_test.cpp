#include "runtime/owned_work.h"

#include <gtest/gtest.h>

#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

class OwnerOfTurns {
 public:
  Work* work() { return &work_; }
  int turns() const { return turns_; }

 private:
  void turn() { ++turns_; }

  int turns_ = 0;
  OwnedWork<&OwnerOfTurns::turn> work_{*this};
};

TEST(OwnedWork, ATurnIsTheMethodOfTheOwner) {
  testing::InProcessJob job(1);
  OwnerOfTurns counter;
  for (int posted = 1; posted <= 2; ++posted) {
    counter.work()->function(counter.work(), job.runtime(0), WorkAction::kRun);
    EXPECT_EQ(counter.turns(), posted);
  }
}

TEST(OwnedWork, IsNotCalledWhenItIsDropped) {
  testing::InProcessJob job(1);
  OwnerOfTurns counter;
  counter.work()->function(counter.work(), job.runtime(0), WorkAction::kDrop);
  EXPECT_EQ(counter.turns(), 0);
}

}  // namespace
}  // namespace weft::runtime
