// A rank's objects of MPI are packed, ended, and made again at the same addresses. tests/python/mpi/test_moves.py moves ranks.
#include "models/mpi/moving/moving_objects.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/mpi/datatype/describing/constructors.h"
#include "models/mpi/process.h"
#include "models/mpi/virtual_ranks/running_code.h"
#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

// A rank that is never switched to, and that makes the objects of the test.
class StandingRank final : public VirtualRank {
 public:
  explicit StandingRank(testing::MpiJob& job) : job_(job) {
    state_ = std::make_unique<Rank>(attributes_);
    set_state(state_.get());
    set_objects(&objects_);
    set_current(this);
    RunningCode::set_program(this);
    begin();
  }
  ~StandingRank() override {
    RunningCode::set_program(nullptr);
    set_current(nullptr);
  }

  Process& process() { return *process_; }
  // As HostedRank does in another process.
  void move() {
    const PackedObjects packed = pack_objects(*this);
    process_ = nullptr;
    EXPECT_EQ(num_objects(ObjectKind::kDatatype), 0);
    EXPECT_EQ(num_objects(ObjectKind::kCommunicator), 0);
    set_current(nullptr);
    set_state(nullptr);
    state_ = std::make_unique<Rank>(attributes_);
    set_state(state_.get());
    set_current(this);
    begin();
    unpack_objects(*this, packed);
  }

 private:
  void begin() {
    process_ = std::make_unique<Process>(job_.runtime(0), job_.ranks(0), nullptr);
    state_->process = process_.get();
    state_->world = process_->world().get();
    state_->self = process_->self().get();
  }
  void resume() override {}
  void suspend() override {}

  testing::MpiJob& job_;
  PredefinedAttributes attributes_;
  RankObjects objects_;
  std::unique_ptr<Rank> state_;
  std::unique_ptr<Process> process_;
};

void on_error() {}

class MovingObjects : public ::testing::Test {
 protected:
  Datatype& basic(MPI_Datatype handle) { return *this_rank().types.find(handle); }
  Ref<Datatype> vector_of(Datatype& old, MPI_Count stride) {
    Ref<Datatype> made;
    EXPECT_TRUE(
        make_vector({.count = 3, .blocklength = 2, .stride = stride}, old, CallForm::kSmall, &made).ok());
    return made;
  }

  testing::MpiJob job_{1};
  StandingRank rank_{job_};
};

TEST_F(MovingObjects, DatatypesKeepTheirAddressesAndShapes) {
  const Ref<Datatype> inner = vector_of(basic(MPI_INT), 5);
  Datatype* const outer = vector_of(*inner, 4).leave();
  outer->commit();
  outer->set_name("of a vector");
  const MPI_Count extent = outer->extent();
  rank_.move();
  EXPECT_EQ(outer->kind(), ObjectKind::kDatatype);
  EXPECT_EQ(outer->extent(), extent);
  EXPECT_EQ(outer->size_bytes(), 36 * 4);
  EXPECT_TRUE(outer->is_committed());
  EXPECT_FALSE(inner->is_committed());
  EXPECT_EQ(outer->name(), "of a vector");
  EXPECT_EQ(outer->recipe().datatypes.at(0).get(), inner.get());
  EXPECT_EQ(inner->num_references(), 2U);
  EXPECT_EQ(&basic(MPI_INT), inner->recipe().datatypes.at(0).get());
  outer->release();
  EXPECT_EQ(inner->num_references(), 1U);
}

// The program has freed the handle; another datatype is made of it.
TEST_F(MovingObjects, WhatIsFreedAndInUseLivesOn) {
  Datatype* const inner = vector_of(basic(MPI_INT), 5).leave();
  const Ref<Datatype> outer = vector_of(*inner, 4);
  inner->release();
  rank_.move();
  EXPECT_EQ(inner->num_references(), 1U);
  EXPECT_EQ(rank_.num_objects(ObjectKind::kDatatype), 2);
}

TEST_F(MovingObjects, DatatypesOnRequestAreTheSameAgain) {
  Datatype* real = nullptr;
  Datatype* integer = nullptr;
  ASSERT_TRUE(this_rank().types.f90_real(12, MPI_UNDEFINED, &real).ok());
  ASSERT_TRUE(this_rank().types.f90_integer(7, &integer).ok());
  rank_.move();
  Datatype* again = nullptr;
  ASSERT_TRUE(this_rank().types.f90_real(12, MPI_UNDEFINED, &again).ok());
  EXPECT_EQ(again, real);
  ASSERT_TRUE(this_rank().types.f90_integer(7, &again).ok());
  EXPECT_EQ(again, integer);
  EXPECT_EQ(real->num_references(), 1U);
  EXPECT_TRUE(real->is_committed());
}

TEST_F(MovingObjects, CommunicatorsKeepWhatTheyHave) {
  const auto handler = Ref<ErrorHandler>::adopt(new ErrorHandler(ObjectKind::kCommunicator, &on_error));
  auto members = std::make_shared<Members>(Members{0});
  auto made = Ref<Communicator>::adopt(
      new Communicator(rank_.process().engine(), 77, {members, 0, nullptr}, 0, handler));
  made->set_name("a grid");
  made->info = {{"key", "value"}};
  Cartesian grid;
  const std::array<int, 2> extents{1, 1};
  const std::array<int, 2> periodic{1, 0};
  ASSERT_TRUE(Cartesian::make(extents, periodic, 1, &grid).ok());
  made->topology = std::make_shared<const Topology>(grid);
  static_cast<void>(made->next_tag());
  static_cast<void>(made->next_tag());
  rank_.process().world()->set_error_handler(handler);
  rank_.process().world()->set_name("all");
  const std::uint64_t last_context = rank_.process().engine().new_context_base();
  rank_.move();
  EXPECT_EQ(made->context(), 77U);
  EXPECT_EQ(*made->group(), Members{0});
  EXPECT_EQ(made->name(), "a grid");
  EXPECT_EQ(made->info, (Info::Pairs{{"key", "value"}}));
  ASSERT_NE(made->topology, nullptr);
  ASSERT_NE(made->topology->cartesian(), nullptr);
  EXPECT_EQ(made->topology->cartesian()->periodic(), (std::vector<int>{1, 0}));
  EXPECT_EQ(made->next_tag(), 4);
  EXPECT_EQ(made->error_handler().get(), handler.get());
  EXPECT_EQ(rank_.process().world()->error_handler().get(), handler.get());
  EXPECT_EQ(rank_.process().world()->name(), "all");
  EXPECT_EQ(handler->num_references(), 3U);
  EXPECT_EQ(rank_.process().engine().new_context_base(), last_context + 1);
}

TEST_F(MovingObjects, AttributesKeepTheirKeys) {
  const Ref<Datatype> type = vector_of(basic(MPI_INT), 5);
  const auto key = Ref<AttributeKey>::adopt(
      new AttributeKey(ObjectKind::kDatatype,
                       reinterpret_cast<AttributeKey::Function>(AttributeKey::kDuplicate), nullptr, nullptr));
  AttributeKeys& keys = this_rank().attribute_keys;
  const int kept = keys.add(key);
  const int freed = keys.add(key);
  int value = 0;
  type->attributes().add(key, kept, &value);
  type->attributes().add(key, freed, nullptr);
  basic(MPI_DOUBLE).attributes().add(key, kept, &value);
  basic(MPI_DOUBLE).set_name("a real");
  ASSERT_TRUE(keys.free(freed, ObjectKind::kDatatype).ok());
  rank_.move();
  void* found = nullptr;
  EXPECT_TRUE(type->attributes().find(kept, &found));
  EXPECT_EQ(found, &value);
  EXPECT_TRUE(type->attributes().find(freed, &found));
  EXPECT_TRUE(basic(MPI_DOUBLE).attributes().find(kept, &found));
  EXPECT_EQ(basic(MPI_DOUBLE).name(), "a real");
  Ref<AttributeKey> again;
  EXPECT_TRUE(this_rank().attribute_keys.find(kept, ObjectKind::kDatatype, &again).ok());
  EXPECT_TRUE(this_rank().attribute_keys.find(freed, ObjectKind::kDatatype, &again).ok());  // in use
  EXPECT_EQ(this_rank().attribute_keys.add(again), freed + 1);
}

TEST_F(MovingObjects, NumbersAndCodesStay) {
  const Info::Pairs pairs{{"a", "b"}};
  const auto info = Ref<Info>::adopt(new Info(pairs));
  const int number = this_rank().handle_numbers.number_of(reinterpret_cast<std::uintptr_t>(info.get()));
  int code = 0;
  ASSERT_TRUE(this_rank().error_codes.add_class(&code).ok());
  ASSERT_TRUE(this_rank().error_codes.set_string(code, "a text").ok());
  rank_.move();
  EXPECT_EQ(info->pairs(), pairs);
  EXPECT_EQ(this_rank().handle_numbers.handle_of(number), reinterpret_cast<std::uintptr_t>(info.get()));
  std::string text;
  ASSERT_TRUE(this_rank().error_codes.string_of(code, &text).ok());
  EXPECT_EQ(text, "a text");
}

TEST_F(MovingObjects, AStreamOfADeviceStays) {
  EXPECT_TRUE(obstacle_of_objects(rank_).ok());
  rank_.process().world()->stream = reinterpret_cast<memory::StreamHandle>(std::uintptr_t{1});
  EXPECT_NE(obstacle_of_objects(rank_).message().find("MPI_COMM_WORLD names a stream of a device"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::mpi
