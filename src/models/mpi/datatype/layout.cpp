#include "models/mpi/datatype/layout.h"

#include <utility>

#include "models/mpi/datatype/checked.h"

namespace weft::mpi {
namespace {

// Lists with at most this many runs are taken apart and merged with their neighbours.
constexpr std::size_t kFewRuns = 16;

LayoutPointer run_at(MPI_Count start, MPI_Count bytes) {
  auto made = std::make_shared<Layout>();
  made->start = bytes == 0 ? 0 : start;
  made->size = bytes;
  return made;
}

LayoutPointer loop_at(MPI_Count start, MPI_Count count, MPI_Count stride, LayoutPointer child) {
  auto made = std::make_shared<Layout>();
  made->kind = Layout::Kind::kLoop;
  made->start = start;
  made->count = count;
  made->stride = stride;
  made->size = count * child->size;
  made->child = std::move(child);
  return made;
}

}  // namespace

LayoutPointer run_layout(MPI_Count bytes) { return run_at(0, bytes); }

LayoutPointer repeat_layout(const LayoutPointer& child, MPI_Count count, MPI_Count stride) {
  if (count == 0 || child->size == 0) return run_layout(0);
  if (count == 1) return child;
  if (child->kind == Layout::Kind::kRun) {
    if (stride == child->size) return run_at(child->start, count * child->size);
    return loop_at(child->start, count, stride, run_layout(child->size));
  }
  // A loop that continues at its own stride is a longer loop.
  if (child->kind == Layout::Kind::kLoop && Wide{stride} == Wide{child->count} * child->stride)
    return loop_at(child->start, count * child->count, child->stride, child->child);
  return loop_at(0, count, stride, child);
}

LayoutPointer shift_layout(const LayoutPointer& child, MPI_Count displacement) {
  if (displacement == 0 || child->size == 0) return child;
  if (child->kind == Layout::Kind::kRun) return run_at(child->start + displacement, child->size);
  if (child->kind == Layout::Kind::kLoop)
    return loop_at(child->start + displacement, child->count, child->stride, child->child);
  return loop_at(displacement, 1, 0, child);
}

void LayoutList::reserve(std::size_t parts) { parts_.reserve(parts); }

void LayoutList::add_run(MPI_Count displacement, MPI_Count bytes) {
  if (bytes == 0) return;
  if (!parts_.empty()) {
    Part& last = parts_.back();
    if (last.layout == nullptr && last.displacement + last.bytes == displacement) {
      last.bytes += bytes;
      return;
    }
  }
  parts_.push_back({displacement, bytes, nullptr});
}

void LayoutList::add(MPI_Count displacement, const LayoutPointer& part) {
  if (part->size == 0) return;
  if (part->kind == Layout::Kind::kRun) {
    add_run(displacement + part->start, part->size);
    return;
  }
  if (part->kind == Layout::Kind::kRuns && part->displacements.size() <= kFewRuns) {
    for (std::size_t i = 0; i < part->displacements.size(); ++i)
      add_run(displacement + part->displacements[i], part->offsets[i + 1] - part->offsets[i]);
    return;
  }
  only_runs_ = false;
  parts_.push_back({displacement, part->size, part});
}

// Blocks of one size at one distance are a loop. Null if they are not.
LayoutPointer LayoutList::evenly_spaced_runs() const {
  const MPI_Count bytes = parts_[0].bytes;
  const MPI_Count stride = parts_[1].displacement - parts_[0].displacement;
  for (std::size_t i = 1; i < parts_.size(); ++i)
    if (parts_[i].bytes != bytes || parts_[i].displacement - parts_[i - 1].displacement != stride)
      return nullptr;
  return loop_at(parts_[0].displacement, static_cast<MPI_Count>(parts_.size()), stride, run_layout(bytes));
}

LayoutPointer LayoutList::finish() {
  if (parts_.empty()) return run_layout(0);
  if (parts_.size() == 1) {
    const Part& only = parts_[0];
    return only.layout == nullptr ? run_at(only.displacement, only.bytes)
                                  : shift_layout(only.layout, only.displacement);
  }
  if (only_runs_)
    if (LayoutPointer loop = evenly_spaced_runs()) return loop;
  auto made = std::make_shared<Layout>();
  made->kind = only_runs_ ? Layout::Kind::kRuns : Layout::Kind::kList;
  made->displacements.reserve(parts_.size());
  made->offsets.reserve(parts_.size() + 1);
  if (!only_runs_) made->children.reserve(parts_.size());
  for (Part& part : parts_) {
    made->displacements.push_back(part.displacement);
    made->offsets.push_back(made->size);
    made->size += part.bytes;
    if (!only_runs_)
      made->children.push_back(part.layout == nullptr ? run_layout(part.bytes) : std::move(part.layout));
  }
  made->offsets.push_back(made->size);
  return made;
}

}  // namespace weft::mpi
