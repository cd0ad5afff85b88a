#include "part.h"

#include <utility>

namespace jacobi3d {
namespace {

Triple triple_of(const weft::Index& index) { return {index[0], index[1], index[2]}; }

}  // namespace

Part::Part(weft::Runtime& runtime, const weft::Index& index, Setup setup)
    : setup_(std::move(setup)),
      index_(triple_of(index)),
      device_(*setup_.devices.on_this_pe()),
      faces_(faces_inside(setup_.problem, index_)),
      field_(runtime, range_of(setup_.problem, index_), device_.place(), device_.kernels()),
      buffers_(runtime, field_, faces_, device_.host_staging()) {
  if (index_ != Triple{}) setup_.report_every = 0;
}

void Part::update() {
  field_.update();
  count_iterations(1);
}

void Part::count_iterations(int count) {
  const int before = iteration_;
  iteration_ += count;
  if (setup_.report_every != 0 && iteration_ / setup_.report_every != before / setup_.report_every) {
    setup_.progress.send<&ProgressBar::advance>(iteration_);
  }
}

weft::Task<> Part::finish() {
  co_await field_.done();
  device_.add(field_.take_intervals());
}

}  // namespace jacobi3d
