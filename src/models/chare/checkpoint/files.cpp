// The work of each PE in the steps of a checkpoint: it checks, writes and makes its elements.
#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "weft/chare/chare.h"
#include "weft/chare/sections.h"

#include "base/format.h"
#include "checkpoint/element_file.h"
#include "memory/memory.h"
#include "models/chare/checkpoint/checkpoints.h"
#include "models/chare/elements/parts.h"
#include "models/chare/periodic/periodic_balancing.h"
#include "models/chare/sparse/sparse_arrays.h"
#include "runtime/message/receive_buffer_pool.h"
#include "runtime/save_refusal.h"

namespace weft::chare {

using checkpoint_files::ElementEntry;
using checkpoint_files::ElementFileReader;
using checkpoint_files::ElementFileWriter;
using runtime::Message;
using runtime::MessagePtr;

namespace {

constexpr std::uint32_t kPinnedFlag = 1;  // in ElementEntry::flags

// For traces.
std::string_view name_of(CheckpointStep::Kind kind) {
  switch (kind) {
    case CheckpointStep::Kind::kCheck:
      return "check";
    case CheckpointStep::Kind::kWrite:
      return "write";
    case CheckpointStep::Kind::kVerify:
      return "verify";
    case CheckpointStep::Kind::kMake:
      return "make elements";
    case CheckpointStep::Kind::kHold:
      return "hold moves";
    case CheckpointStep::Kind::kRelease:
      return "release moves";
    case CheckpointStep::Kind::kHoldings:
      return "look for blocks";
    case CheckpointStep::Kind::kShare:
      return "share blocks";
    case CheckpointStep::Kind::kCommit:
      return "commit";
    case CheckpointStep::Kind::kDrop:
      return "drop blocks";
  }
  return "step";
}

std::string path_of(const CheckpointStep& step, std::size_t pe) {
  return step.path + "/" + checkpoint_files::element_file_name(pe);
}

base::Result<ElementFileReader> open_file(const CheckpointStep& step, std::size_t pe) {
  return ElementFileReader::open(path_of(step, pe), step.manifest.checkpoint, static_cast<std::uint32_t>(pe),
                                 step.manifest.files[pe], step.manifest.num_indices());
}

base::Status refused_step(std::string why) { return {base::StatusCode::kInvalidArgument, std::move(why)}; }
base::Status corrupt_step(std::string why) { return {base::StatusCode::kCorrupt, std::move(why)}; }

// Calls `work`, which returns a Status and may run functions of the program. Its failure says in which element it happened.
template <class Work>
base::Status for_element(const char* action, const std::string& name, Work work) {
  const auto fail = [&](base::StatusCode code, std::string_view what) {
    return base::Status(code, base::format("{} cannot be {}: {}", name, action, what));
  };
  try {
    const base::Status status = work();
    return status.ok() ? base::Status() : fail(status.code(), status.message());
  } catch (const base::RemoteError& error) {
    return fail(error.code(), error.what());
  } catch (const base::Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::exception& error) {
    return fail(base::StatusCode::kInvalidArgument, error.what());
  }
}

// Packs the element as for a move; its buffers are out of band.
base::Result<MessagePtr> pack_element(ChareBase& chare, std::optional<double> set_load_s) {
  runtime::Runtime& runtime = chare.runtime();
  const ChareType& type = *chare.collection().type();
  const runtime::SaveRefusal refusal(chare.where());
  Pup sizer = Pup::sizer(&runtime);
  sizer | set_load_s;
  type.pup(chare, sizer);
  MessagePtr state = Message::for_arrival(runtime, sizer.offset_bytes());
  Pup p = Pup::packer(state->payload(), state->payload_bytes(), &runtime);
  p.set_carrier(state.get());
  p | set_load_s;
  type.pup(chare, p);
  if (p.remaining_bytes() != 0) {
    return refused_step(
        base::format("the pup function of {} visits {} bytes when it packs and {} when it counts; "
                     "it must visit the same members each time",
                     type.name, p.offset_bytes(), sizer.offset_bytes()));
  }
  return state;
}

// Copies between memory of any kind, and waits for it.
base::Status copy(runtime::Runtime& runtime, const memory::Buffer& to, const memory::ConstBuffer& from) {
  struct Copy : base::Completion {
    Copy() : base::Completion(&Copy::end) {}
    static void end(base::Completion* self, base::Status status, std::size_t) {
      auto* copy = static_cast<Copy*>(self);
      copy->result = std::move(status);
      copy->is_over = true;
    }
    base::Status result;
    bool is_over = false;
  } running;
  base::Status status = runtime.memory().copy(to, from, &running);
  if (status.is_pending()) {
    while (!running.is_over) static_cast<void>(runtime.memory().progress());
    status = running.result;
  }
  return status;
}

// Memory of the pool, which its destructor gives back.
runtime::Attachment host_memory(runtime::Runtime& runtime, std::size_t size_bytes) {
  runtime::Attachment memory(
      memory::Buffer{runtime.pool().allocate(size_bytes), size_bytes, {}, nullptr},
      [](void* owner, const memory::Buffer& released) {
        static_cast<runtime::Runtime*>(owner)->pool().deallocate(released.data, released.size_bytes);
      },
      &runtime);
  memory.give_away();
  return memory;
}

base::Status write_buffer(runtime::Runtime& runtime, ElementFileWriter& file,
                          const runtime::Attachment& attachment) {
  const memory::Buffer& buffer = attachment.buffer();
  const auto kind = static_cast<std::uint32_t>(buffer.place.kind);
  if (buffer.place.is_host()) {
    const void* const bytes = attachment.uncopied() != nullptr ? attachment.uncopied() : buffer.data;
    return file.add_buffer(kind, {static_cast<const std::byte*>(bytes), buffer.size_bytes});
  }
  const runtime::Attachment staged = host_memory(runtime, buffer.size_bytes);
  if (base::Status status = copy(runtime, staged.buffer(), buffer); !status.ok()) return status;
  return file.add_buffer(kind, {static_cast<const std::byte*>(staged.buffer().data), buffer.size_bytes});
}

// The state and its buffers, read into memory of the runtime. A buffer of device memory is on this PE's own device, or in
// host memory if the PE has none of its kind.
base::Result<MessagePtr> read_element(runtime::Runtime& runtime, const ElementFileReader& file,
                                      const ElementEntry& element) {
  runtime::ReceiveBufferPool& receive_buffer_pool = runtime.receive_buffer_pool();
  MessagePtr state = Message::for_arrival(runtime, element.state_bytes);
  if (base::Status status = file.read_state(element, state->payload()); !status.ok()) return status;
  for (std::size_t i = 0; i < element.buffers.size(); ++i) {
    const checkpoint_files::BufferEntry& buffer = element.buffers[i];
    if (buffer.kind >= static_cast<std::uint32_t>(memory::kNumKinds)) {
      return corrupt_step("its state has memory of a kind that does not exist");
    }
    runtime::Attachment host = host_memory(runtime, buffer.size_bytes);
    base::Status status = file.read_buffer(element, i, host.buffer().data);
    if (!status.ok()) return status;
    const memory::Place place = receive_buffer_pool.place_for(static_cast<memory::Kind>(buffer.kind));
    if (place.is_host()) {
      state->attach(std::move(host));
      continue;
    }
    base::Result<runtime::Attachment> landed = receive_buffer_pool.allocate(buffer.size_bytes, place);
    if (!landed.ok()) return landed.status();
    if (status = copy(runtime, landed->buffer(), host.buffer()); !status.ok()) return status;
    state->attach(std::move(*landed));
  }
  return state;
}

}  // namespace

CheckpointStepResult Checkpoints::do_step(CheckpointStep& step) {
  runtime::Runtime& runtime = chares_.runtime();
  // Between its begin and its end the PE does nothing else, so one number is enough.
  const runtime::SpanEvent span = {.group = "checkpoints", .name = name_of(step.kind), .number = 1};
  if (runtime.observer() != nullptr) runtime.observer()->span_began(span);
  CheckpointStepResult result;
  const auto fail = [&](base::StatusCode code, std::string_view what) {
    result.code = code;
    result.failure = what.empty() ? "a step of a checkpoint has failed" : what;
  };
  try {
    const base::Status status = do_step(step, result);
    if (!status.ok()) fail(status.code(), status.message());
  } catch (const base::Error& error) {
    fail(error.code(), error.what());
  } catch (const std::exception& error) {
    fail(base::StatusCode::kInternal, error.what());
  }
  if (runtime.observer() != nullptr) runtime.observer()->span_ended(span);
  result.sent = runtime.sent();
  result.processed = runtime.processed();
  return result;
}

base::Status Checkpoints::do_step(CheckpointStep& step, CheckpointStepResult& result) {
  switch (step.kind) {
    case CheckpointStep::Kind::kCheck:
      for (const std::uint64_t id : step.collections) {
        const base::Result<ElementCount> count = check_elements(chares_.collection(id));
        if (!count.ok()) return count.status();
        result.counts.push_back(count.value());
      }
      break;
    case CheckpointStep::Kind::kWrite: {
      if (step.is_in_memory) {
        if (base::Status status = open_state(step.checkpoint); !status.ok()) return status;
      }
      const base::Result<checkpoint_files::FileSummary> file = write_elements(step);
      if (!file.ok()) return file.status();
      result.file = file.value();
      break;
    }
    case CheckpointStep::Kind::kVerify:
      return verify_files(step);
    case CheckpointStep::Kind::kMake: {
      base::Result<std::vector<ElementCount>> counts = make_elements(step);
      if (!counts.ok()) return counts.status();
      result.counts = std::move(*counts);
      break;
    }
    case CheckpointStep::Kind::kHold:
      chares_.parts_->periodic->hold();
      break;
    case CheckpointStep::Kind::kRelease:
      chares_.parts_->periodic->release();
      break;
    case CheckpointStep::Kind::kHoldings:
      if (step.num_blocks != 0) num_blocks_ = step.num_blocks;
      if (protected_state_ == nullptr) break;
      result.committed = protected_state_->committed();
      result.num_blocks = static_cast<std::uint32_t>(protected_state_->manifest().files.size());
      result.blocks = protected_state_->block_ids();
      if (step.describes == static_cast<std::uint32_t>(chares_.runtime().pe()))
        result.manifest = protected_state_->manifest();
      break;
    case CheckpointStep::Kind::kShare:
      break;  // the blocks have arrived
    case CheckpointStep::Kind::kCommit:
      return commit(step, result);
    case CheckpointStep::Kind::kDrop:
      if (open_state_ == step.checkpoint) open_state_ = 0;
      // Also if another PE's state is open, because blocks have come from PEs that took this one.
      if (protected_state_->committed() != step.checkpoint) protected_state_->drop(step.checkpoint);
      break;
  }
  return {};
}

// --- Saving

base::Result<ElementCount> Checkpoints::check_elements(const Collection& collection) const {
  collection.expect_alive();
  ElementCount count;
  if (!collection.created_) return count;  // the leader misses its elements
  if (const auto& being_created = collection.elements_->being_created; !being_created.empty()) {
    return refused_step(base::format(
        "the collection {} cannot be saved: the creation of {} has not ended; await the creation before",
        collection.name(), being_created.begin()->second->where()));
  }
  if (collection.type()->pup == nullptr) {
    return refused_step(
        base::format("the collection {} cannot be saved: give the class a public function "
                     "`void pup(weft::Pup& p) {{ p | a | b; }}` that names its members, and a constructor "
                     "without arguments or one that takes weft::Moved",
                     collection.name()));
  }
  if (collection.is_sparse() && !chares_.sparse().is_counted(collection)) {
    return refused_step(
        base::format("the collection {} cannot be saved: elements were inserted or removed since they were "
                     "counted; await done_inserting() before",
                     collection.name()));
  }
  if (chares_.sections().has_incomplete(collection)) {
    return refused_step(
        base::format("the collection {} cannot be saved: some members of a section have contributed to a "
                     "reduction that is not "
                     "complete; save it when all have",
                     collection.name()));
  }
  base::Status status;
  collection.elements_->directory.for_each([&](std::uint64_t index, const ChareBase& chare) {
    if (status.ok()) status = check_element(collection, index, chare);
    ++count.num_elements;
    count.first_reduction = std::min(count.first_reduction, chare.next_reduction_);
    count.last_reduction = std::max(count.last_reduction, chare.next_reduction_);
  });
  if (!status.ok()) return status;
  return count;
}

base::Status Checkpoints::check_element(const Collection& collection, std::uint64_t index,
                                        const ChareBase& chare) const {
  const base::Status obstacle = chares_.runtime().obstacle_to_saving({collection.id(), index});
  if (!obstacle.ok())
    return refused_step(base::format("{} cannot be saved: {}", chare.where(), obstacle.message()));
  if (chare.load_ != nullptr && chare.load_->sync.phase != SyncPhase::kRuns) {
    return refused_step(
        base::format("{} cannot be saved: it waits at a sync point; save it in resume_from_sync() or later",
                     chare.where()));
  }
  if (chare.num_waiting_calls() != 0) {
    return refused_step(base::format(
        "{} cannot be saved: {} of its calls wait for their conditions; save it when none waits, as after "
        "awaiting all calls",
        chare.where(), chare.num_waiting_calls()));
  }
  return {};
}

base::Result<checkpoint_files::FileSummary> Checkpoints::write_elements(const CheckpointStep& step) {
  const std::set<std::uint64_t> saved(step.collections.begin(), step.collections.end());
  const auto pe = static_cast<std::uint32_t>(chares_.runtime().pe());
  const auto block = step.is_in_memory ? protected_state_->begin_block(pe) : nullptr;
  base::Result<ElementFileWriter> file =
      step.is_in_memory ? ElementFileWriter::begin(std::make_unique<checkpoint_files::BlockSink>(*block),
                                                   step.checkpoint, pe)
                        : ElementFileWriter::create(path_of(step, pe), step.checkpoint, pe);
  if (!file.ok()) return file.status();
  packed_proxy_ = [&saved](const Collection& collection) {  // in a pup function of the program
    if (saved.contains(collection.id())) return;
    base::check(
        refused_step(base::format("its state has a proxy of the collection {}, which is not part of the "
                                  "checkpoint; pass a proxy of that collection to checkpoint too",
                                  collection.name())));
  };
  const std::shared_ptr<void> end(nullptr, [this](void*) { packed_proxy_ = nullptr; });
  for (std::size_t i = 0; i < step.collections.size(); ++i) {
    Collection& collection = chares_.collection(step.collections[i]);
    base::Status status = check_elements(collection).status();
    collection.elements_->directory.for_each([&](std::uint64_t index, ChareBase& chare) {
      if (!status.ok()) return;
      status = for_element("saved", chare.where(), [&]() -> base::Status {
        const base::Result<MessagePtr> state =
            pack_element(chare, chare.load_ == nullptr ? std::nullopt : chare.load_->sync.set_load_s);
        if (!state.ok()) return state.status();
        base::Status added =
            file->add_element(static_cast<std::uint32_t>(i), index, chare.is_pinned() ? kPinnedFlag : 0,
                              state.value()->payload_span());
        for (const runtime::Attachment& attachment : state.value()->attachments()) {
          if (added.ok()) added = write_buffer(chares_.runtime(), *file, attachment);
        }
        return added;
      });
    });
    if (!status.ok()) return status;
  }
  base::Result<checkpoint_files::FileSummary> summary = file->finish();
  if (summary.ok() && step.is_in_memory) {
    protected_state_->put({step.checkpoint, pe}, block);
  }
  return summary;
}

// --- Restoring

base::Status Checkpoints::verify_files(const CheckpointStep& step) const {
  if (base::Status status = checkpoint_files::check_manifest(step.path, step.manifest); !status.ok())
    return status;
  const auto num_pes = static_cast<std::size_t>(chares_.runtime().num_pes());
  for (auto pe = static_cast<std::size_t>(chares_.runtime().pe()); pe < step.manifest.files.size();
       pe += num_pes) {
    const base::Result<ElementFileReader> file = open_file(step, pe);
    if (!file.ok()) return file.status();
    if (base::Status status = file.value().verify(); !status.ok()) return status;
  }
  return {};
}

base::Result<std::vector<ElementCount>> Checkpoints::make_elements(const CheckpointStep& step) {
  for (const std::uint64_t id : step.collections) {
    // Until all is made, kDestroy is to end them, as after a constructor that has thrown.
    chares_.collection(id).failure_ = std::make_unique<std::string>("restoring it from a checkpoint failed");
  }
  if (base::Status status = checkpoint_files::check_manifest(step.path, step.manifest); !status.ok())
    return status;
  if (step.collections.size() != step.manifest.collections.size()) {
    return corrupt_step("a manifest has another number of collections than its step");
  }
  const int num_pes = chares_.runtime().num_pes();
  std::vector<Collection*> made;
  Translation translation;
  for (std::size_t i = 0; i < step.collections.size(); ++i) {
    const checkpoint_files::CollectionEntry& entry = step.manifest.collections[i];
    Collection& collection = chares_.collection(step.collections[i]);
    made.push_back(&collection);
    if (!translation.emplace(entry.id, &collection).second) {
      return corrupt_step("a manifest names a collection twice");
    }
    collection.kind_ = static_cast<CollectionKind>(entry.kind);
    collection.shape_ = shape_of(entry, step.manifest.files.size(), num_pes);
    collection.type_ = &type_of(entry);
    if (!entry.class_key.empty()) collection.set_class_name(entry.class_name, entry.class_key);
    collection.set_balancing(static_cast<Balancing>(entry.balancing));
    // A C++ class may have got or lost its created(); a class of another language says it in its own way.
    const bool has_created = collection.type()->begin_created != nullptr;
    collection.set_has_created(has_created && (entry.class_key.empty() || entry.has_created != 0));
    chares_.parts_->choose_balancing(collection);
    if (collection.is_sparse()) continue;
    std::vector<bool> is_home(static_cast<std::size_t>(num_pes));
    for (std::uint64_t index = 0; index < entry.num_elements; ++index) {
      is_home[static_cast<std::size_t>(collection.home(index))] = true;
    }
    collection.elements_->on_every_pe = std::find(is_home.begin(), is_home.end(), false) == is_home.end();
  }
  const Translation* const outer = std::exchange(translation_, &translation);
  const std::shared_ptr<void> end(nullptr, [this, outer](void*) { translation_ = outer; });
  if (base::Status status = read_elements(step, made); !status.ok()) return status;
  translation_ = outer;
  std::vector<ElementCount> counts;
  for (std::size_t i = 0; i < made.size(); ++i) {
    Collection* const collection = made[i];
    collection->failure_.reset();
    if (collection->is_sparse())
      chares_.sparse().restored(*collection, step.manifest.collections[i].num_elements);
    chares_.parts_->open_elements(*collection, step.exchanges);
    counts.push_back({collection->num_local()});
  }
  for (Collection* const collection : made) {
    std::vector<ChareBase*> chares;  // migrated() may do anything but destroy them in this turn
    collection->elements_->directory.for_each(
        [&chares](std::uint64_t, ChareBase& chare) { chares.push_back(&chare); });
    for (ChareBase* const chare : chares) {
      base::Status status = for_element("restored", chare->where(), [&] {
        chare->migrated();
        return base::Status();
      });
      if (!status.ok()) return status;
    }
  }
  return counts;
}

base::Status Checkpoints::read_elements(const CheckpointStep& step, const std::vector<Collection*>& made) {
  if (step.is_in_memory) return read_blocks(step, made);
  for (std::size_t pe = 0; pe < step.manifest.files.size(); ++pe) {
    const base::Result<ElementFileReader> file = open_file(step, pe);
    if (!file.ok()) return file.status();
    if (base::Status status = read_elements(step, file.value(), made); !status.ok()) return status;
  }
  return {};
}

// Those whose home is this PE.
base::Status Checkpoints::read_elements(const CheckpointStep& step, const ElementFileReader& file,
                                        const std::vector<Collection*>& made) {
  runtime::Runtime& runtime = chares_.runtime();
  for (const ElementEntry& element : file.elements()) {
    Collection& collection = *made[element.collection];
    if (collection.home(element.index) != runtime.pe()) continue;
    const std::string name = collection.element_name(element.index);
    if (collection.find(element.index) != nullptr) {
      return corrupt_step(base::format("the checkpoint {} has {} twice", step.path, name));
    }
    base::Status status = for_element("restored", name, [&]() -> base::Status {
      const base::Result<MessagePtr> state = read_element(runtime, file, element);
      if (!state.ok()) return state.status();
      Pup p = state.value()->unpacker();
      std::optional<double> set_load_s;
      p | set_load_s;
      MoveHeader header;
      header.index = element.index;
      if (collection.is_sparse()) header.set = SparseArrays::kFirstSet;
      ChareBase& chare = chares_.parts_->unpack_element(collection, header, p);
      chare.is_pinned_ = (element.flags & kPinnedFlag) != 0;
      if (set_load_s) chare.set_load_s(set_load_s);
      return {};
    });
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace weft::chare
