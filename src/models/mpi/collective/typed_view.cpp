#include "models/mpi/collective/typed_view.h"

#include <algorithm>
#include <new>
#include <utility>

#include "models/mpi/datatype/checked.h"

namespace weft::mpi {
namespace {

class ElementsOfType final : public ElementLayout {
 public:
  explicit ElementsOfType(Datatype& type) : type_(type) {}
  void pack(const std::byte* buffer, std::int64_t count, std::byte* packed) const override {
    type_->pack(buffer, count, packed);
  }
  void unpack(const std::byte* packed, std::size_t size_bytes, std::byte* buffer,
              std::int64_t count) const override {
    type_->unpack(buffer, count, 0, static_cast<MPI_Count>(size_bytes), packed);
  }
  void visit_runs(const std::byte* buffer, std::int64_t count, std::size_t size_bytes,
                  const RunVisitor& visit) const override {
    type_->visit_runs(buffer, count, static_cast<MPI_Count>(size_bytes), visit);
  }

 private:
  Ref<Datatype> type_;
};

}  // namespace

std::shared_ptr<const ElementLayout> element_layout(Datatype& type) {
  return std::make_shared<ElementsOfType>(type);
}

DataView typed_view(Datatype& type, void* buffer, MPI_Count count) {
  DataView view;
  view.size_bytes = static_cast<std::size_t>(count * type.size_bytes());
  if (view.size_bytes == 0) return view;
  if (const std::optional<MPI_Count> offset = type.dense_offset(count)) {
    view.data = static_cast<std::byte*>(buffer) + *offset;
  } else {
    view.data = static_cast<std::byte*>(buffer);
    view.count = count;
    view.layout = element_layout(type);
  }
  return view;
}

ScratchElements::ScratchElements(Ref<Datatype> type, MPI_Count count)
    : type_(std::move(type)), count_(count) {
  if (count == 0 || type_->size_bytes() == 0) return;
  // The extent can be negative: then the last element is the lowest.
  const Wide between = Wide{count - 1} * type_->extent();
  const Wide lowest = type_->true_lower_bound() + std::min<Wide>(between, 0);
  const Wide size = type_->true_extent() + (between < 0 ? -between : between);
  if (!fits_count(size)) throw std::bad_alloc();
  memory_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(size));
  buffer_ = memory_.get() - static_cast<MPI_Count>(lowest);
}

}  // namespace weft::mpi
