#include "models/mpi/datatype/visit.h"

#include <algorithm>

namespace weft::mpi {
namespace {

// Goes through a layout until `left` bytes have been visited.
class LayoutVisit {
 public:
  LayoutVisit(const RunVisitor& visit, MPI_Count left) : visit_(visit), left_(left) {}

  void loop(const Layout& child, MPI_Count count, MPI_Count stride, std::uintptr_t address);

 private:
  static std::uintptr_t at(std::uintptr_t address, MPI_Count displacement) {
    return address + static_cast<std::uintptr_t>(displacement);
  }
  void whole(const Layout& layout, std::uintptr_t address);
  void runs(std::uintptr_t address, MPI_Count size, MPI_Count count, MPI_Count stride);

  const RunVisitor& visit_;
  MPI_Count left_;
};

// As many as are left, and then a part of the next one.
void LayoutVisit::runs(std::uintptr_t address, MPI_Count size, MPI_Count count, MPI_Count stride) {
  if (size <= 0) return;
  const MPI_Count complete = std::min(count, left_ / size);
  if (complete > 0)
    visit_({address, static_cast<std::size_t>(size), static_cast<std::size_t>(complete), stride});
  left_ -= complete * size;
  if (complete == count || left_ == 0) return;
  const std::uintptr_t next =
      address + static_cast<std::uintptr_t>(complete) * static_cast<std::uintptr_t>(stride);
  visit_({next, static_cast<std::size_t>(left_), 1, 0});
  left_ = 0;
}

void LayoutVisit::loop(const Layout& child, MPI_Count count, MPI_Count stride, std::uintptr_t address) {
  if (child.kind == Layout::Kind::kRun) return runs(at(address, child.start), child.size, count, stride);
  for (MPI_Count i = 0; i < count && left_ > 0; ++i, address = at(address, stride)) whole(child, address);
}

void LayoutVisit::whole(const Layout& layout, std::uintptr_t address) {
  switch (layout.kind) {
    case Layout::Kind::kRun:
      return runs(at(address, layout.start), layout.size, 1, 0);
    case Layout::Kind::kLoop:
      return loop(*layout.child, layout.count, layout.stride, at(address, layout.start));
    case Layout::Kind::kRuns:
      for (std::size_t i = 0; i < layout.displacements.size() && left_ > 0; ++i)
        runs(at(address, layout.displacements[i]), layout.offsets[i + 1] - layout.offsets[i], 1, 0);
      return;
    case Layout::Kind::kList:
      for (std::size_t i = 0; i < layout.displacements.size() && left_ > 0; ++i)
        whole(*layout.children[i], at(address, layout.displacements[i]));
      return;
  }
}

}  // namespace

void visit_elements(const Elements& elements, MPI_Count size_bytes, const RunVisitor& visit) {
  if (size_bytes <= 0) return;
  LayoutVisit(visit, size_bytes).loop(*elements.layout, elements.count, elements.extent, elements.address);
}

}  // namespace weft::mpi
