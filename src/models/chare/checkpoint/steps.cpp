// The steps of a checkpoint, and the PE that leads them.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <random>

#include "weft/chare/chare.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "base/value_or_throw.h"
#include "checkpoint/folder.h"
#include "models/chare/checkpoint/checkpoints.h"
#include "models/chare/elements/parts.h"
#include "models/chare/sync/sync_points.h"
#include "runtime/save_refusal.h"

namespace weft::chare {

using runtime::Future;
using runtime::Message;
using runtime::MessagePtr;
using runtime::Task;

namespace {

[[noreturn]] void invalid(const std::string& message) {
  throw base::Error(base::StatusCode::kInvalidArgument, message);
}

// Differs from that of any other checkpoint, so that their files cannot be mixed up.
std::uint64_t draw_number() {
  std::random_device source;
  return std::uint64_t{source()} << 32 | source();
}

}  // namespace

// --- Saving

Checkpoints::Named Checkpoints::pack_values(const checkpoint_detail::VisitValues& pack) {
  Named named;
  const runtime::SaveRefusal refusal("a value of the checkpoint");
  packed_proxy_ = [&collections = named.collections](const Collection& collection) {
    collection.expect_alive();
    if (std::find(collections.begin(), collections.end(), collection.id()) == collections.end()) {
      collections.push_back(collection.id());
    }
  };
  const std::shared_ptr<void> end(nullptr, [this](void*) { packed_proxy_ = nullptr; });
  Pup sizer = Pup::sizer(&chares_.runtime());
  pack(sizer);
  named.values.resize(sizer.offset_bytes());
  Pup p = Pup::packer(named.values.data(), named.values.size(), &chares_.runtime());
  pack(p);
  if (p.remaining_bytes() != 0) {
    invalid(
        base::format("the values of the checkpoint are {} bytes when they are counted and {} when they are "
                     "packed; their pup functions must visit the same members each time",
                     named.values.size(), p.offset_bytes()));
  }
  return named;
}

Future<> Checkpoints::save(const std::string& folder, const checkpoint_detail::VisitValues& pack) {
  Named named = pack_values(pack);
  Future<> done(chares_.runtime());
  chares_.runtime().note_uncounted(done);
  chares_.runtime().spawn(save_all(folder, std::move(named), done), "a checkpoint");
  return done;
}

Task<> Checkpoints::save_all(std::string folder, Named named, Future<> done) {
  std::exception_ptr error;
  const bool in_memory = folder.empty();
  try {
    co_await hold_periodic_moves(true);
    if (in_memory) {
      co_await write_in_memory(std::move(named));
    } else {
      co_await write(std::move(folder), std::move(named));
    }
  } catch (...) {
    error = std::current_exception();
  }
  co_await hold_periodic_moves(false);
  if (in_memory) is_protecting_ = false;
  if (error == nullptr) {
    done.set();
  } else {
    done.set_error(error);
  }
}

Task<> Checkpoints::hold_periodic_moves(bool holds) {
  if (chares_.parts_->sync->options().period_s == 0) co_return;
  CheckpointStep step;
  step.kind = holds ? CheckpointStep::Kind::kHold : CheckpointStep::Kind::kRelease;
  static_cast<void>(co_await on_all_pes(std::move(step)));
}

Task<Checkpoints::Results> Checkpoints::check(std::vector<std::uint64_t> collections) {
  CheckpointStep step;
  step.kind = CheckpointStep::Kind::kCheck;
  step.collections = collections;
  Results checked = co_await on_all_pes(std::move(step));
  expect_complete(collections, checked);
  co_return checked;
}

Task<> Checkpoints::write(std::string folder, Named named) {
  co_await chares_.runtime().quiescence();
  Results checked = co_await check(named.collections);
  const auto files = base::value_or_throw(checkpoint_files::NewCheckpoint::begin(folder));
  checkpoint_files::Manifest described = describe(named.collections, std::move(named.values));
  CheckpointStep step;
  step.collections = std::move(named.collections);
  step.path = files->partial_path();
  step.checkpoint = draw_number();
  const checkpoint_files::Manifest manifest =
      co_await write_states(std::move(step), std::move(checked), std::move(described));
  base::check(files->publish(manifest));
}

Task<checkpoint_files::Manifest> Checkpoints::write_states(CheckpointStep step, Results checked,
                                                           checkpoint_files::Manifest manifest) {
  step.kind = CheckpointStep::Kind::kWrite;
  manifest.checkpoint = step.checkpoint;
  const Results written = co_await on_all_pes(std::move(step));
  std::uint64_t sent = 0;
  std::uint64_t processed = 0;
  for (std::size_t pe = 0; pe < written.size(); ++pe) {
    sent += written[pe].sent - checked[pe].sent;
    processed += written[pe].processed - checked[pe].processed;
    manifest.files.push_back(written[pe].file);
  }
  if (sent != 0 || processed != 0) {
    invalid(base::format(
        "{} messages were sent and {} handled while the checkpoint was being written; "
        "call nothing and let no timer run between the call of checkpoint, or protect, and its end",
        sent, processed));
  }
  co_return manifest;
}

void Checkpoints::expect_complete(const std::vector<std::uint64_t>& collections,
                                  const Results& checked) const {
  std::uint64_t sent = 0;
  std::uint64_t processed = 0;
  for (const CheckpointStepResult& result : checked) {
    sent += result.sent;
    processed += result.processed;
  }
  if (sent != processed) {
    invalid(
        "messages were sent while a checkpoint was being prepared; call nothing between the call of "
        "checkpoint and its end");
  }
  for (std::size_t i = 0; i < collections.size(); ++i) {
    const Collection& collection = chares_.collection(collections[i]);
    ElementCount all;
    for (const CheckpointStepResult& result : checked) {
      all.num_elements += result.counts[i].num_elements;
      all.first_reduction = std::min(all.first_reduction, result.counts[i].first_reduction);
      all.last_reduction = std::max(all.last_reduction, result.counts[i].last_reduction);
    }
    if (all.num_elements != collection.num_elements()) {
      invalid(base::format("the collection {} has {} elements instead of {} at the time of the checkpoint",
                           collection.name(), all.num_elements, collection.num_elements()));
    }
    if (all.num_elements != 0 && all.first_reduction != all.last_reduction) {
      invalid(
          base::format("the collection {} cannot be saved: some of its elements have contributed to {} "
                       "reductions and others to {}; save it when all have contributed to the same",
                       collection.name(), all.last_reduction, all.first_reduction));
    }
  }
}

checkpoint_files::Manifest Checkpoints::describe(const std::vector<std::uint64_t>& collections,
                                                 std::vector<std::byte> values) const {
  checkpoint_files::Manifest manifest;
  manifest.values = std::move(values);
  for (const std::uint64_t id : collections) {
    const Collection& collection = chares_.collection(id);
    collection.expect_alive();
    manifest.collections.push_back(entry_of(collection));
    // Both can be found again.
    static_cast<void>(type_of(manifest.collections.back()));
    const int num_pes = chares_.runtime().num_pes();
    static_cast<void>(shape_of(manifest.collections.back(), static_cast<std::size_t>(num_pes), num_pes));
  }
  return manifest;
}

// --- Restoring

checkpoint_detail::Loading Checkpoints::load(const std::string& folder) {
  const checkpoint_detail::Loading loading{Future<>(chares_.runtime()), next_loading_++};
  chares_.runtime().note_uncounted(loading.done);
  chares_.runtime().spawn(load_all(folder, loading.number, loading.done), "restoring a checkpoint");
  return loading;
}

Task<> Checkpoints::load_all(std::string folder, std::uint64_t loading, Future<> done) {
  try {
    co_await read(std::move(folder), loading);
    done.set();
  } catch (...) {
    done.set_error(std::current_exception());
  }
}

Task<> Checkpoints::read(std::string folder, std::uint64_t loading) {
  std::string refused;
  std::vector<std::string> damaged;
  base::StatusCode code = base::StatusCode::kNotFound;
  for (const std::uint64_t number : base::value_or_throw(checkpoint_files::checkpoints_in(folder))) {
    CheckpointStep step;
    step.kind = CheckpointStep::Kind::kVerify;
    step.path = checkpoint_files::checkpoint_path(folder, number);
    const std::string path = step.path;
    checkpoint_files::Manifest manifest;
    std::string why;
    try {
      manifest = base::value_or_throw(checkpoint_files::open_checkpoint(path));
      step.manifest = manifest;
      step.manifest.values.clear();
      static_cast<void>(co_await on_all_pes(std::move(step)));
    } catch (const base::Error& error) {
      // Anything else, as a file that cannot be opened, is to be seen to: an older checkpoint would lose work.
      if (error.code() != base::StatusCode::kCorrupt && error.code() != base::StatusCode::kNotFound) throw;
      if (error.code() == base::StatusCode::kCorrupt) damaged.push_back(path);
      code = error.code();
      why = error.what();
    }
    if (why.empty()) {
      if (!refused.empty()) {
        std::fputs(base::format("weft: {}; restoring {}\n", refused, path).c_str(), stderr);
        for (const std::string& one : damaged) checkpoint_files::set_damaged_aside(one);
      }
      CheckpointStep made;
      made.path = path;
      co_await make(std::move(made), std::move(manifest), loading);
      co_return;
    }
    refused += (refused.empty() ? "" : "; ") + why;
  }
  if (refused.empty()) {
    throw base::Error(base::StatusCode::kNotFound,
                      base::format("the folder {} has no checkpoint; ask has_checkpoint before", folder));
  }
  throw base::Error(code, base::format("the folder {} has no whole checkpoint: {}", folder, refused));
}

Task<> Checkpoints::make(CheckpointStep step, checkpoint_files::Manifest manifest, std::uint64_t loading) {
  runtime::Runtime& runtime = chares_.runtime();
  step.kind = CheckpointStep::Kind::kMake;
  const std::string path = step.path;
  step.exchanges = exchanges_suit(runtime);
  Loaded loaded;
  loaded.values = std::exchange(manifest.values, {});
  for (const checkpoint_files::CollectionEntry& entry : manifest.collections) {
    static_cast<void>(type_of(entry));
    static_cast<void>(shape_of(entry, manifest.files.size(), runtime.num_pes()));
    const std::uint64_t id =
        std::uint64_t{static_cast<std::uint32_t>(runtime.pe())} << 32 | chares_.next_collection_++;
    step.collections.push_back(id);
    loaded.translation.emplace(entry.id, &chares_.collection(id));
  }
  const std::vector<std::uint64_t> collections = step.collections;
  const std::vector<checkpoint_files::CollectionEntry> entries = manifest.collections;
  step.manifest = std::move(manifest);
  std::exception_ptr failure;
  try {
    const Results made = co_await on_all_pes(std::move(step));
    for (std::size_t i = 0; i < collections.size(); ++i) {
      std::uint64_t count = 0;
      for (const CheckpointStepResult& result : made) count += result.counts[i].num_elements;
      if (count == entries[i].num_elements) continue;
      invalid(base::format("the checkpoint {} has {} of the {} elements of a collection", path, count,
                           entries[i].num_elements));
    }
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) {
    loaded_.emplace(loading, std::move(loaded));
    co_return;
  }
  for (const std::uint64_t id : collections) {
    co_await chares_.parts_->end_everywhere(chares_.collection(id), "restoring it from a checkpoint failed");
  }
  std::rethrow_exception(failure);
}

void Checkpoints::unpack_values(std::uint64_t loading, const checkpoint_detail::VisitValues& unpack) {
  const auto node = loaded_.extract(loading);
  if (node.empty()) invalid("the values of a checkpoint were read already");
  const Loaded& loaded = node.mapped();
  Pup p = Pup::unpacker(loaded.values.data(), loaded.values.size(), &chares_.runtime());
  const Translation* const outer = std::exchange(translation_, &loaded.translation);
  const std::shared_ptr<void> end(nullptr, [this, outer](void*) { translation_ = outer; });
  try {
    unpack(p);
    if (p.remaining_bytes() != 0) {
      invalid(
          base::format("restore has read the values of the checkpoint and {} bytes are left; pass values of "
                       "the same types and in the same order as to checkpoint",
                       p.remaining_bytes()));
    }
  } catch (...) {  // the caller has no proxies with which it could destroy them
    for (const auto& [old_id, collection] : loaded.translation) {
      if (collection->is_destroyed()) continue;
      static_cast<void>(chares_.parts_->end_everywhere(*collection, "restoring it from a checkpoint failed"));
    }
    throw;
  }
}

Collection& Checkpoints::translated(std::uint64_t old_id) const {
  const auto found = translation_->find(old_id);
  if (found != translation_->end()) return *found->second;
  base::refuse_claim("a proxy names a collection that the checkpoint does not have",
                     "is the checkpoint damaged?");
}

// --- Steps

Checkpoints::PackedStep Checkpoints::packed(CheckpointStep step) {
  step.number = next_step_++;
  step.leader = static_cast<std::uint32_t>(chares_.runtime().pe());
  PackedStep all{step.number, step.collections.size(), Message::pack(chares_.runtime(), step_handler_, step)};
  all.message->envelope().flags |= runtime::kControlFlag;
  return all;
}

Task<Checkpoints::Results> Checkpoints::on_all_pes(PackedStep step) {
  runtime::Runtime& runtime = chares_.runtime();
  Step& waiting = steps_[step.number];
  waiting.results.resize(static_cast<std::size_t>(runtime.num_pes()));
  waiting.num_missing = runtime.num_pes();
  waiting.done = Future<>(runtime);
  const Future<> done = waiting.done;
  runtime.broadcast(std::move(step.message));
  co_await done;
  Results results = std::move(steps_.at(step.number).results);
  steps_.erase(step.number);
  for (CheckpointStepResult& result : results) {
    if (!result.failure.empty()) throw base::Error(result.code, result.failure);
    result.counts.resize(step.num_collections);
  }
  co_return results;
}

void Checkpoints::on_step(MessagePtr message) {
  runtime::Runtime& runtime = chares_.runtime();
  CheckpointStep step;
  Pup p = message->unpacker();
  p | step;
  if (step.leader >= static_cast<std::uint32_t>(runtime.num_pes()) ||
      step.kind > CheckpointStep::Kind::kDrop) {
    runtime.fail(
        base::format("PE {} sends a step of a checkpoint that PE {} does not know; do all PEs run the same "
                     "program?",
                     message->envelope().source_pe, runtime.pe()));
    return;
  }
  const bool needs_memory = step.is_in_memory || step.kind == CheckpointStep::Kind::kShare ||
                            step.kind == CheckpointStep::Kind::kCommit ||
                            step.kind == CheckpointStep::Kind::kDrop;
  if (needs_memory && protected_state_ == nullptr)
    base::refuse_claim("a PE that cannot begin again is asked for protected chares",
                       "do all PEs run the same program?");
  WaitingStep waiting{std::move(step), {}};
  if (waiting.step.kind == CheckpointStep::Kind::kWrite) waiting.result = do_step(waiting.step);
  if (shares_blocks(waiting.step)) share_blocks(waiting.step);
  if (has_blocks(waiting.step)) {
    finish_step(std::move(waiting));
  } else {
    waiting_steps_.push_back(std::move(waiting));
  }
}

void Checkpoints::finish_step(WaitingStep waiting) {
  CheckpointStepResult result = waiting.result ? std::move(*waiting.result) : do_step(waiting.step);
  result.number = waiting.step.number;
  MessagePtr answer = Message::pack(chares_.runtime(), done_handler_, result);
  answer->envelope().flags |= runtime::kControlFlag;
  chares_.runtime().send(static_cast<int>(waiting.step.leader), std::move(answer));
}

void Checkpoints::on_step_done(MessagePtr message) {
  CheckpointStepResult result;
  Pup p = message->unpacker();
  p | result;
  const auto found = steps_.find(result.number);
  const std::uint32_t pe = message->envelope().source_pe;
  if (found == steps_.end() || pe >= found->second.results.size() || found->second.results[pe].number != 0) {
    chares_.runtime().fail(
        base::format("PE {} answers a step of a checkpoint that PE {} has not sent; do all PEs "
                     "run the same program?",
                     pe, chares_.runtime().pe()));
    return;
  }
  Step& step = found->second;
  step.results[pe] = std::move(result);
  if (--step.num_missing == 0) step.done.set();
}

}  // namespace weft::chare
