// created() of elements that were just constructed, and in Python, before it, a constructor that is a coroutine.
//
// Until that has ended, the element is not in the directory but in Elements::being_created, so that calls do not find it: those to
// the element are held as for one that is on its way to this PE, and those to all elements wait as before the constructors.
// While created() runs, other messages than calls are handled: reductions are open, and channels of the element connect,
// because created() may wait for both.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/outcome.h"
#include "weft/runtime/remote_error.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"

namespace weft::chare {

using runtime::MessagePtr;

namespace {

const EntryInfo created_info{"created"};
const EntryInfo constructor_info{"constructor"};

const EntryInfo& info_of(CreationPart part) {
  return part == CreationPart::kCreated ? created_info : constructor_info;
}

std::string where_in(CreationPart part, const ChareBase& chare) {
  return (part == CreationPart::kCreated ? "created() of " : "the constructor of ") + chare.where();
}

// `code`: that of another language.
bool is_closed(const std::exception_ptr& error, std::optional<base::StatusCode> code) {
  if (code) return *code == base::StatusCode::kClosed;
  try {
    std::rethrow_exception(error);
  } catch (const base::Error& known) {
    return known.code() == base::StatusCode::kClosed;
  } catch (...) {
    return false;
  }
}

}  // namespace

void Chares::Parts::begin_created(Collection& made) {
  std::vector<std::uint64_t>
      indices;  // chares_.created() that ends at once takes its element out of the list
  for (const auto& [index, one] : made.elements_->being_created) indices.push_back(index);
  for (const std::uint64_t index : indices) {
    if (runtime_.stopped() || made.failure_ != nullptr) return;
    made.type_->begin_created(*made.elements_->being_created.at(index));
  }
}

void Chares::created_ended(ChareBase& chare, const std::exception_ptr& error,
                           std::optional<base::StatusCode> code, CreationPart part) noexcept {
  try {
    parts_->end_created(chare, error, code, part);
  } catch (...) {
    runtime_.fail_unawaited(std::current_exception(), chare.where(info_of(part)));
  }
}

void Chares::Parts::end_created(ChareBase& chare, const std::exception_ptr& error,
                                std::optional<base::StatusCode> code, CreationPart part) {
  Collection& in = chare.collection();
  if (in.destroyed_) {
    // The creation has failed, and its caller has been told of the first error. Else it ends as any entry method.
    if (in.failure_ != nullptr) return;
    if (error && code) send_error(chare, {}, info_of(part), error, *code);
    if (error && !code) send_error(chare, {}, info_of(part), error);
    return;
  }
  const std::uint64_t index = chare.linear_index();
  const std::string where = error ? where_in(part, chare) : std::string();
  const std::exception_ptr with_place = error ? runtime::as_remote_error(error, "in " + where) : nullptr;
  if (error && !in.is_sparse()) {  // it stays in the list until the collection ends
    if (is_closed(error, code)) return chares_.end_closed_method(chare, with_place, where);
    return report_not_created(in, where, with_place);
  }
  in.elements_->being_created.erase(index);
  if (error) return sets->not_made(chare, with_place);
  in.elements_->directory.insert(index, &chare);
  if (in.is_sparse()) sets->is_made(chare);
  // The constructor may have asked for a move, and chares_.created() for a removal.
  if (chare.move_to_ >= 0 || in.is_sparse()) wanted_moves.add({in.id(), index});
  release_held(in, index);
  if (!in.is_sparse() && in.elements_->being_created.empty()) release_waiting(in);
}

void Chares::Parts::release_waiting(Collection& made) {
  std::vector<MessagePtr> waiting;
  waiting.swap(made.elements_->waiting);
  for (MessagePtr& early : waiting) runtime_.send(runtime_.pe(), std::move(early));
}

}  // namespace weft::chare
