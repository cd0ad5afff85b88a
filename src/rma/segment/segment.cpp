#include "weft/rma/segment.h"

#include "weft/base/error.h"

#include "base/format.h"
#include "runtime/save_refusal.h"

namespace weft::rma {

Segment::~Segment() {
  if (owner_ != nullptr && *owner_ != nullptr) static_cast<void>((*owner_)->release(address_));
}

void Segment::publish() const {
  if (owner_ != nullptr && *owner_ != nullptr) (*owner_)->publish(address_);
}

runtime::Future<> Segment::release() && {
  if (owner_ == nullptr || *owner_ == nullptr) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      "release() of a segment that is empty, or whose job has ended");
  }
  Segment released(std::move(*this));
  SegmentOwner& owner = **std::exchange(released.owner_, nullptr);
  return owner.release(released.address_);
}

std::string describe(const GlobalAddress& address) {
  if (address.is_null()) return "the null pointer";
  const auto kind = static_cast<std::size_t>(address.kind());
  return base::format("byte {} of segment {} of PE {} ({})",
                      static_cast<std::int64_t>(address.offset_bytes()), address.segment(), address.pe(),
                      kind < static_cast<std::size_t>(memory::kNumKinds) ? memory::kind_name(address.kind())
                                                                         : "no memory kind");
}

bool GlobalAddress::is_checked() { return runtime::SaveRefusal::is_active(); }

void GlobalAddress::refuse_saving() const {
  runtime::SaveRefusal::check([this] {
    return base::format(
        "global memory ({}), which cannot be saved: a later job has other segments. Keep no global pointer "
        "and no "
        "global array in what is saved, and make the memory anew after it is restored",
        describe(*this));
  });
}

}  // namespace weft::rma
