#include "verification.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace pic {
namespace {

constexpr std::int64_t kSteps = 11;

Problem small_problem() {
  Problem problem;
  problem.size = 10;
  problem.particles = 40;
  problem.k = 2;
  problem.m = -3;
  problem.ratio = 0.8;
  return problem;
}

// The particles where they must be after kSteps.
Fields right_result() {
  const Start start(small_problem());
  Fields fields = start.particles_of({0, 10, 0, 10});
  for (std::size_t i = 0; i < fields[kX].size(); ++i) {
    fields[kX][i] = start.x_after(static_cast<std::int64_t>(fields[kId][i]), kSteps);
    fields[kY][i] = start.y_after(static_cast<std::int64_t>(fields[kId][i]), kSteps);
  }
  return fields;
}

// The text of the verdict; empty if it is good.
std::string fault(const Fields& fields) {
  const Verdict verdict = judge(small_problem(), examine(small_problem(), fields, kSteps));
  return verdict.correct ? "" : verdict.text;
}

TEST(VerificationTest, ARightResultPasses) { EXPECT_EQ(fault(right_result()), ""); }

TEST(VerificationTest, ALostParticleIsFound) {
  Fields fields = right_result();
  for (std::vector<double>& field : fields) field.pop_back();
  EXPECT_NE(fault(fields).find("39 particles instead of 40"), std::string::npos) << fault(fields);
}

TEST(VerificationTest, ADoubledParticleIsFound) {
  Fields fields = right_result();
  for (std::vector<double>& field : fields) field.push_back(double{field[3]});
  EXPECT_NE(fault(fields).find("41 particles instead of 40"), std::string::npos) << fault(fields);
}

TEST(VerificationTest, AParticleInThePlaceOfAnotherIsFound) {
  Fields fields = right_result();
  for (std::vector<double>& field : fields) field[5] = field[3];
  EXPECT_NE(fault(fields).find("the sum of the ids is 818 instead of 820"), std::string::npos)
      << fault(fields);
}

TEST(VerificationTest, ADisplacedParticleIsFound) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (double distance : {1.0, -2e-6, 2e-6, nan}) {
    for (Field field : {kX, kY}) {
      Fields fields = right_result();
      fields[field][7] += distance;
      EXPECT_EQ(fault(fields), "1 particles are not where they must be; the one with the least id is 8");
    }
  }
  Fields fields = right_result();
  fields[kX][7] += 1e-9;
  EXPECT_EQ(fault(fields), "") << "rounding";
}

TEST(VerificationTest, AnIdThatDoesNotExistIsFound) {
  for (double id : {0.0, 41.0, 8.5, -1.0, std::numeric_limits<double>::infinity()}) {
    Fields fields = right_result();
    fields[kId][7] = id;
    EXPECT_NE(fault(fields), "") << id;
  }
}

TEST(VerificationTest, TheChecksumIsThatOfEveryBit) {
  const Found right = examine(small_problem(), right_result(), kSteps);
  for (Field field : {kX, kY, kVx, kVy, kId}) {
    Fields fields = right_result();
    fields[field][4] = fields[field][4] * (1 + 1e-15) + 1e-300;
    EXPECT_NE(examine(small_problem(), fields, kSteps).checksum, right.checksum);
  }
  Fields other_order = right_result();
  for (std::vector<double>& field : other_order) std::swap(field[0], field[9]);
  EXPECT_EQ(examine(small_problem(), other_order, kSteps).checksum, right.checksum);
}

}  // namespace
}  // namespace pic
