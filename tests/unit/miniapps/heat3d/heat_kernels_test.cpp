#include "heat_kernels.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"

#include "decomposition.h"
#include "face_buffers.h"
#include "field.h"
#include "solution.h"
#include "tests/support/in_process_job.h"
#include "verification.h"

namespace heat3d {
namespace {

using jacobi3d::Comparison;
using jacobi3d::FaceBuffers;
using jacobi3d::Field;
using jacobi3d::Problem;

constexpr int kSteps = 7;

Body small_body(const Triple& points) {
  Body body;
  body.points = points;
  body.initial_temperature = 0.25;
  body.power_steps = 4;
  return body;
}

struct Device {
  Device(const Body& body, weft::Kind kind)
      : faces(kind == weft::Kind::kHost ? jacobi3d::make_host_device() : jacobi3d::make_emulated_device()),
        heat(kind == weft::Kind::kHost ? make_host_heat(body, *faces) : make_emulated_heat(body, *faces)) {}
  std::unique_ptr<jacobi3d::KernelDevice> faces;
  std::unique_ptr<HeatDevice> heat;
};

// A body of two blocks, cut across dimension `d`, after some steps.
weft::Task<Comparison> step_two_blocks(weft::Runtime& runtime, std::size_t d, weft::Kind kind) {
  Problem problem{{5, 4, 3}, {1, 1, 1}};
  problem.blocks[d] = 2;
  Triple upper_index{};
  upper_index[d] = 1;
  const Body body = small_body(problem.points);
  const weft::Place place = weft::device_of(runtime, kind);
  const Device device(body, kind);
  Field lower(runtime, jacobi3d::range_of(problem, {0, 0, 0}), place, *device.heat);
  Field upper(runtime, jacobi3d::range_of(problem, upper_index), place, *device.heat);
  const int face = 2 * static_cast<int>(d);
  const std::vector<int> lower_faces{face + 1}, upper_faces{face};
  // Faces go from the buffer of one block, which the other one receives in.
  weft::DeviceArray<double> to_lower(runtime, FaceBuffers::num_incoming(lower, lower_faces), place);
  weft::DeviceArray<double> to_upper(runtime, FaceBuffers::num_incoming(upper, upper_faces), place);
  FaceBuffers lower_buffers(runtime, lower, lower_faces, to_lower.buffer());
  FaceBuffers upper_buffers(runtime, upper, upper_faces, to_upper.buffer());
  for (int step = 0; step < kSteps; ++step) {
    const int slot = step % jacobi3d::kNumSlots;
    jacobi3d::Halos up, down;
    up.add(face + 1, static_cast<double*>(upper_buffers.incoming(face, slot).data));
    down.add(face, static_cast<double*>(lower_buffers.incoming(face + 1, slot).data));
    lower.pack(up);
    upper.pack(down);
    co_await lower.done();
    co_await upper.done();
    lower_buffers.unpack(slot);
    upper_buffers.unpack(slot);
    lower.update();
    upper.update();
    co_await lower.done();
    co_await upper.done();
  }
  std::vector<double> temperatures(jacobi3d::num_points(problem.points));
  const std::vector<double> lower_values = co_await lower.values();
  const std::vector<double> upper_values = co_await upper.values();
  jacobi3d::place_block(problem.points, jacobi3d::range_of(problem, {0, 0, 0}), lower_values, temperatures);
  jacobi3d::place_block(problem.points, jacobi3d::range_of(problem, upper_index), upper_values, temperatures);
  const Solution solution = solve_serially(body, kSteps);
  co_return jacobi3d::compare(problem.points, temperatures, solution.temperatures);
}

void expect_two_blocks_are_right(weft::Kind kind) {
  for (std::size_t d = 0; d < 3; ++d) {
    Comparison comparison;
    weft::testing::InProcessJob job(1);
    EXPECT_EQ(job.run([&](weft::Runtime& runtime) -> weft::Task<> {
      const Comparison found = co_await step_two_blocks(runtime, d, kind);
      comparison = found;
    }),
              "");
    EXPECT_EQ(comparison.num_points, 60U);
    EXPECT_TRUE(comparison.equal()) << "dimension " << d << ": " << comparison.describe();
  }
}

TEST(HeatKernelsTest, TwoBlocksAreTheSerialSolutionToTheLastBit) {
  expect_two_blocks_are_right(weft::Kind::kHost);
}

TEST(HeatKernelsTest, SoAreTwoBlocksInEmulatedMemory) { expect_two_blocks_are_right(weft::Kind::kEmulated); }

TEST(HeatKernelsTest, HostKernelsTellWhenTheyRan) {
  weft::testing::InProcessJob job(1);
  EXPECT_EQ(job.run([&](weft::Runtime& runtime) -> weft::Task<> {
    const Device device(small_body({2, 2, 2}), weft::Kind::kHost);
    Field field(runtime, {{0, 0, 0}, {2, 2, 2}}, weft::Place{}, *device.heat);
    field.update();
    field.update();
    const std::vector<jacobi3d::Interval> intervals = field.take_intervals();
    EXPECT_EQ(intervals.size(), 2U);
    EXPECT_TRUE(field.take_intervals().empty());
    co_return;
  }),
            "");
}

}  // namespace
}  // namespace heat3d
