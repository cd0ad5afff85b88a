#include "queued_strip.h"

#include <algorithm>
#include <utility>

#include "checksum.h"

namespace heat_conduction {
namespace {

constexpr int kNumSlots = miniapps::QueuedIterations::kNumSlots;
// Of a step on a stream: two launches, two copies of large rows, a kernel.
constexpr int kMostPieces = 5;

std::unique_ptr<Kernels> make_kernels(weft::Stream& stream) {
  if (stream.place().kind == weft::Kind::kEmulated) return make_emulated_kernels(stream);
  return make_cuda_kernels(stream.handle(), stream.place().device);
}

}  // namespace

QueuedStrip::QueuedStrip(Problem problem, weft::Kind memory, bool uses_graphs)
    : problem_(problem),
      uses_graphs_(uses_graphs),
      width_(problem.width()),
      num_rows_(problem.num_rows(index())),
      stream_(runtime(), weft::device_of(runtime(), memory)),
      kernels_(make_kernels(stream_)),
      hottest_(runtime(), 1, stream_.place()),
      hottest_on_host_(Points::staging(runtime(), 1, stream_.place())),
      steps_(stream_, kMostPieces, [this](int slot) { queue_step(slot); }) {
  for (int slot = 0; slot < kNumSlots; ++slot)
    points_.emplace_back(runtime(), (num_rows_ + 2) * width_, stream_.place());
  if (index() > 0) add_side(index() - 1, 1, 0);
  if (index() + 1 < problem.num_strips) add_side(index() + 1, num_rows_, num_rows_ + 1);
}

weft::Buffer QueuedStrip::row(int slot, std::size_t number) {
  weft::Buffer row = points_[static_cast<std::size_t>(slot)].buffer();
  row.data = static_cast<double*>(row.data) + number * width_;
  row.size_bytes = width_ * sizeof(double);
  return row;
}

void QueuedStrip::add_side(int peer, std::size_t mine, std::size_t ghost) {
  std::vector<weft::Buffer> landings;
  for (int slot = 0; slot < kNumSlots; ++slot) landings.push_back(row(slot, ghost));
  sides_.push_back(
      {mine, ghost, weft::QueuedChannel(*this, proxy()[peer], stream_.place(), std::move(landings))});
}

weft::Task<int> QueuedStrip::prepare() {
  const std::vector<double> begin = temperatures(problem_, index(), 0);
  Points staged = Points::staging(runtime(), begin.size(), stream_.place());
  std::copy(begin.begin(), begin.end(), staged.data());
  for (Points& points : points_) stream_.copy(points.buffer(), staged.buffer());
  for (Side& side : sides_) co_await side.channel.connect();
  kernels_->update(points_[0].data(), points_[1].data(), num_rows_, width_);  // the first step does it again
  kernels_->find_hottest(points_[0].data(), hottest_.data(), num_rows_, width_);
  co_await stream_.done();
  if (uses_graphs_) steps_.capture([this](const auto& queue) { return kernels_->capture(queue); });
  co_return 0;
}

weft::Task<int> QueuedStrip::run() {
  for (int steps = 0;;) {
    const Points& now = points_[static_cast<std::size_t>(steps_.slot())];
    kernels_->find_hottest(now.data(), hottest_.data(), num_rows_, width_);
    stream_.copy(hottest_on_host_.buffer(), hottest_.buffer());
    weft::Operation found = stream_.done();
    co_await steps_.run(problem_.check_every);
    steps += problem_.check_every;
    co_await std::move(found);
    const double hottest = co_await allreduce(hottest_on_host_.data()[0], weft::Reducer::kMax);
    if (hottest >= problem_.until) continue;
    co_await stream_.done();
    co_return steps;
  }
}

void QueuedStrip::queue_step(int slot) {
  std::vector<weft::QueuedChannel::Side> exchanged;
  for (Side& side : sides_) exchanged.push_back({&side.channel, row(slot, side.mine)});
  weft::QueuedChannel::exchange_all(exchanged, stream_.handle());
  kernels_->update(points_[static_cast<std::size_t>(slot)].data(),
                   points_[static_cast<std::size_t>(1 - slot)].data(), num_rows_, width_);
}

weft::Task<std::vector<double>> QueuedStrip::values() {
  const Points& now = points_[static_cast<std::size_t>(steps_.slot())];
  Points staged = Points::staging(runtime(), (num_rows_ + 2) * width_, stream_.place());
  stream_.copy(staged.buffer(), now.buffer());
  co_await stream_.done();
  co_return std::vector<double>(staged.data(), staged.data() + (num_rows_ + 2) * width_);
}

weft::Task<double> QueuedStrip::error(int num_steps) {
  const std::vector<double> now = co_await values();
  co_return largest_error(problem_, index(), num_steps, now.data());
}

weft::Task<std::uint64_t> QueuedStrip::checksum() {
  const std::vector<double> now = co_await values();
  co_return checksum_of(problem_, index(), now.data());
}

}  // namespace heat_conduction
