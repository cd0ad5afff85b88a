#include "particles.h"

#include <chrono>
#include <stdexcept>

#include "fmt/format.h"

namespace pic {
namespace {

// Adds the time until its end.
class Clock {
 public:
  explicit Clock(double& total_s) : total_s_(total_s) {}
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  ~Clock() { total_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  double& total_s_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Particles::Particles(const Problem& problem, std::int64_t block)
    : problem_(problem),
      block_(block),
      fields_(Start(problem).particles_of(problem.area_of(block))),
      grid_(grid_of(problem.area_of(block))) {
  prepare();
}

void Particles::pup(weft::Pup& p) {
  p | problem_ | block_ | fields_ | grid_ | compute_s_;
  if (p.is_unpacking()) prepare();
}

void Particles::prepare() {
  partners_ = pic::partners(problem_, block_);
  geometry_ = {problem_.size, problem_.area_of(block_), problem_.blocks_x, problem_.blocks_y, {}};
  geometry_.slot_of_block.assign(static_cast<std::size_t>(problem_.num_blocks()), -1);
  for (std::size_t slot = 0; slot < partners_.size(); ++slot) {
    geometry_.slot_of_block[static_cast<std::size_t>(partners_[slot])] = static_cast<std::int32_t>(slot);
  }
  counts_.resize(partners_.size());
  outgoing_.resize(partners_.size());
}

void Particles::move() {
  const Clock clock(compute_s_);
  pic::move(fields_, grid_, geometry_);
  try {
    find_leaving(fields_, geometry_, leaving_, counts_);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("block {}: {}", block_, error.what()));
  }
  const std::size_t size = kNumFields * leaving_.size();
  if (size > buffer_.size()) buffer_.resize(2 * size);
  if (!leaving_.empty()) take_out(fields_, leaving_, counts_, buffer_);
  std::size_t at = 0;
  for (std::size_t slot = 0; slot < counts_.size(); ++slot) {
    outgoing_[slot] = std::span<const double>(buffer_).subspan(at, kNumFields * counts_[slot]);
    at += outgoing_[slot].size();
  }
}

void Particles::put_in(std::span<const double> incoming) {
  const Clock clock(compute_s_);
  try {
    pic::put_in(fields_, incoming, geometry_.area);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("block {}: {}", block_, error.what()));
  }
}

}  // namespace pic
