// Checkpoints in the memory of the job: each PE keeps the block of its own elements, and its buddy keeps a copy. When PEs were lost
// and the job has begun again, those without their blocks get them from the PEs that have them.
//
// A state counts when it is committed. A PE commits when all PEs have their blocks, so a committed state of any PE has all its blocks
// on all PEs that are left, and a PE that commits may drop the state before.
#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "weft/base/error.h"
#include "weft/chare/chare.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "base/value_or_throw.h"
#include "checkpoint/element_file.h"
#include "checkpoint/protected_state.h"
#include "models/chare/checkpoint/block_plan.h"
#include "models/chare/checkpoint/checkpoints.h"

namespace weft::chare {

using checkpoint_files::BlockPtr;
using checkpoint_files::BlockSink;
using checkpoint_files::BlockSource;
using checkpoint_files::ElementEntry;
using checkpoint_files::ElementFileReader;
using checkpoint_files::ElementFileWriter;
using checkpoint_files::Manifest;
using checkpoint_files::ProtectedState;
using runtime::Future;
using runtime::Message;
using runtime::MessagePtr;
using runtime::Task;

namespace {

using Kind = CheckpointStep::Kind;

// Bits of the number of a state: the incarnation, a count, and the PE that has led.
constexpr int kCountShift = 20;
constexpr int kIncarnationShift = ProtectedState::kIncarnationShift;
constexpr std::uint64_t kMostCounts = std::uint64_t{1} << (kIncarnationShift - kCountShift);

std::uint64_t next_state(std::uint64_t before, std::uint32_t incarnation, int leader) {
  std::uint64_t count = 1;
  if (before >> kIncarnationShift == incarnation) count += (before >> kCountShift) % kMostCounts;
  return (std::uint64_t{incarnation} << kIncarnationShift) + (count << kCountShift) +
         static_cast<std::uint64_t>(leader);
}

std::uint64_t leader_of(std::uint64_t state) { return state % (std::uint64_t{1} << kCountShift); }

const char kName[] = "the protected state";

base::Result<ElementFileReader> open_block(BlockPtr block, const Manifest& manifest, std::uint32_t pe,
                                           const checkpoint_files::FileSummary& summary) {
  return ElementFileReader::read(
      std::make_unique<BlockSource>(std::move(block), base::format("{} of PE {}", kName, pe)),
      manifest.checkpoint, pe, summary, manifest.num_indices());
}

}  // namespace

// --- Of the leader

Future<> Checkpoints::protect(const checkpoint_detail::VisitValues& pack) {
  runtime::Runtime& runtime = chares_.runtime();
  Future<> done(runtime);
  if (protected_state_ == nullptr) {
    done.set();
    return done;
  }
  if (is_protecting_) {
    throw base::Error(base::StatusCode::kClosed,
                      "protect was called while another one is under way; await each call");
  }
  Named named = pack_values(pack);
  is_protecting_ = true;
  runtime.note_uncounted(done);
  runtime.spawn(save_all({}, std::move(named), done), "protecting chares");
  return done;
}

Task<> Checkpoints::write_in_memory(Named named) {
  const std::uint64_t state = next_state(std::max(protected_state_->committed(), newest_tried_),
                                         protected_state_->incarnation, chares_.runtime().pe());
  newest_tried_ = state;
  // kCheck and kWrite compare the counters of quiescence, as two of its waves do: they are enough in a job that is at rest already. In
  // another one the first attempt fails.
  for (const bool awaits_rest : {false, true}) {
    std::optional<Task<>> commit;  // memory that is not there ends nothing yet
    std::exception_ptr failure;
    bool tries_again = !awaits_rest;
    try {
      Written written = co_await write_blocks(state, named, awaits_rest);
      commit.emplace(commit_everywhere(state, std::move(written)));
    } catch (const base::Error& error) {
      failure = std::current_exception();
      if (error.code() == base::StatusCode::kClosed) tries_again = false;  // another PE protects
    } catch (...) {
      failure = std::current_exception();
    }
    if (commit) {
      co_await std::move(*commit);
      co_return;
    }
    CheckpointStep drop;
    drop.kind = Kind::kDrop;
    drop.checkpoint = state;
    static_cast<void>(co_await on_all_pes(std::move(drop)));
    if (!tries_again) std::rethrow_exception(failure);
  }
}

Task<Checkpoints::Written> Checkpoints::write_blocks(std::uint64_t state, const Named& named,
                                                     bool awaits_rest) {
  if (awaits_rest) co_await chares_.runtime().quiescence();
  Results checked = co_await check(named.collections);
  Manifest manifest = describe(named.collections, named.values);
  Written written;
  written.plan = suitable_plan(manifest);
  CheckpointStep step;
  step.collections = named.collections;
  step.path = kName;
  step.checkpoint = state;
  step.is_in_memory = true;
  step.transfers =
      plan_copies(static_cast<std::uint32_t>(chares_.runtime().num_pes()), written.plan.leaving, hosts_);
  CheckpointStep commit;
  commit.kind = Kind::kCommit;
  commit.checkpoint = state;
  commit.manifest = co_await write_states(std::move(step), std::move(checked), std::move(manifest));
  base::check(checkpoint_files::check_manifest(kName, commit.manifest));
  written.commit = packed(std::move(commit));
  co_return written;
}

Task<> Checkpoints::commit_everywhere(std::uint64_t state, Written written) {
  try {
    static_cast<void>(co_await on_all_pes(std::move(written.commit)));
  } catch (const std::exception& error) {
    // PEs that have committed keep no other state. So no state counts that all PEs have.
    chares_.runtime().fail(base::format(
        "not all PEs can keep the state that is protected, and others have dropped the one before: {}",
        error.what()));
    throw;
  }
  // The launcher may have withdrawn the plan meanwhile.
  const std::uint32_t plan =
      protected_state_->resize_plan && protected_state_->resize_plan().number != 0 ? written.plan.number : 0;
  if (plan != 0) withdrawn_ = Future<>(chares_.runtime());
  if (protected_state_->on_protected) protected_state_->on_protected(state, plan);
  if (plan != 0) co_await withdrawn_;  // as a rule the job begins again before
}

checkpoint_detail::Loading Checkpoints::recover() {
  runtime::Runtime& runtime = chares_.runtime();
  const checkpoint_detail::Loading loading{Future<>(runtime), next_loading_++};
  if (num_recoveries() == 0) {
    loading.done.set();
    return loading;
  }
  runtime.note_uncounted(loading.done);
  runtime.spawn(recover_all(loading.number, loading.done), "recovering chares");
  return loading;
}

Task<> Checkpoints::recover_all(std::uint64_t loading, Future<> done) {
  try {
    co_await read_memory(loading);
    done.set();
  } catch (...) {
    done.set_error(std::current_exception());
  }
}

Future<> Checkpoints::share_anew() {
  Future<> done(chares_.runtime());
  if (num_recoveries() == 0) {
    done.set();
    return done;
  }
  chares_.runtime().note_uncounted(done);
  chares_.runtime().spawn(share_all_anew(done), "copying protected chares anew");
  return done;
}

Task<> Checkpoints::share_all_anew(Future<> done) {
  try {
    static_cast<void>(co_await renew_blocks(false));
  } catch (const base::Error&) {
    done.set();  // recover() finds the same, and says it to the program
    co_return;
  }
  done.set();
}

Task<Checkpoints::Renewed> Checkpoints::renew_blocks(bool sends_strays) {
  CheckpointStep look;
  look.kind = Kind::kHoldings;
  const auto num_pes = static_cast<std::uint32_t>(chares_.runtime().num_pes());
  look.describes = num_pes;
  const Results holdings = co_await on_all_pes(look);
  const auto newest = std::max_element(holdings.begin(), holdings.end(), [](const auto& a, const auto& b) {
    return a.committed < b.committed;
  });
  const std::uint64_t state = newest->committed;
  if (state == 0 && protected_state_->known_to_launcher == 0) co_return Renewed();
  if (state < protected_state_->known_to_launcher) {
    throw base::Error(
        base::StatusCode::kNotFound,
        "no chares can be recovered: all PEs that kept the protected state were lost. Restore a "
        "checkpoint from a disk, if the program has one, or start the job again");
  }
  BlockPlan plan = plan_blocks(state, newest->num_blocks, holdings, hosts_);
  CheckpointStep share;
  share.kind = Kind::kShare;
  share.checkpoint = state;
  share.transfers = std::move(plan.transfers);
  look.describes = static_cast<std::uint32_t>(newest - holdings.begin());
  look.num_blocks = newest->num_blocks;
  Results described = co_await on_all_pes(std::move(look));
  Renewed renewed{
      state, std::move(described[static_cast<std::size_t>(newest - holdings.begin())].manifest), {}, {}};
  base::check(checkpoint_files::check_manifest(kName, renewed.manifest));
  if (newest->num_blocks != num_pes) renewed.owners = std::move(plan.owners);
  static_cast<void>(co_await on_all_pes(std::move(share)));
  CheckpointStep commit;
  commit.kind = Kind::kCommit;
  commit.checkpoint = state;
  commit.sends_strays = sends_strays;
  commit.manifest = renewed.manifest;
  commit.owners = renewed.owners;
  renewed.committed = co_await on_all_pes(std::move(commit));
  co_return renewed;
}

Task<> Checkpoints::read_memory(std::uint64_t loading) {
  Renewed renewed = co_await renew_blocks(true);
  if (renewed.state == 0) co_return;
  CheckpointStep make_step;
  make_step.path = kName;
  make_step.checkpoint = renewed.state;
  make_step.is_in_memory = true;
  make_step.owners = renewed.owners;
  make_step.strays.resize(renewed.committed.size());
  make_step.strays_of = renewed.committed.front().number;
  for (const CheckpointStepResult& result : renewed.committed) {
    for (const std::uint32_t home : result.homes_of_strays) {
      if (home < make_step.strays.size()) ++make_step.strays[home];
    }
  }
  co_await make(std::move(make_step), std::move(renewed.manifest), loading);
}

// --- Of each PE

void Checkpoints::share_blocks(const CheckpointStep& step) {
  for (const CheckpointStep::Transfer& transfer : step.transfers) {
    if (transfer.from != static_cast<std::uint32_t>(chares_.runtime().pe())) continue;
    const ProtectedState::BlockId id{step.checkpoint, transfer.block};
    BlockPtr block = protected_state_ == nullptr ? nullptr : protected_state_->find(id);
    // It could not be written, but its keepers wait for it. The state will be dropped.
    if (block == nullptr && step.kind == Kind::kWrite) block = std::make_shared<checkpoint_files::Block>();
    if (block == nullptr || transfer.to >= static_cast<std::uint32_t>(chares_.runtime().num_pes()))
      base::refuse_claim("a PE is asked for a block of a state that it has not",
                         "do all PEs run the same program?");
    send_block(static_cast<int>(transfer.to), {id, 0, {}}, block);
  }
}

void Checkpoints::send_block(int to, const BlockHeader& header, const BlockPtr& block) {
  MessagePtr message = Message::pack(chares_.runtime(), block_handler_, header);
  message->envelope().flags |= runtime::kControlFlag;
  // Sent in place: the block is constant.
  memory::Buffer buffer{const_cast<std::byte*>(block->data()), block->size(), {}, nullptr};
  message->attach(runtime::Attachment(
      buffer, [](void* owner, const memory::Buffer&) { delete static_cast<BlockPtr*>(owner); },
      new BlockPtr(block)));
  chares_.runtime().send(to, std::move(message));
}

void Checkpoints::set_block_poster() {
  chares_.runtime().set_poster(block_handler_,
                               [](void* context, MessagePtr&, std::span<runtime::ReceiveBuffer> buffers) {
                                 if (buffers.size() == 1)
                                   static_cast<Checkpoints*>(context)->land_block(buffers.front());
                                 return runtime::Posting::kHandle;
                               });
}

void Checkpoints::land_block(runtime::ReceiveBuffer& buffer) {
  const auto block = std::make_shared<checkpoint_files::Block>(buffer.size_bytes);
  landing_.push_back(block);
  // Memory in flight outlives this object.
  buffer.into = runtime::Attachment(
      memory::Buffer{block->data(), buffer.size_bytes, {}, nullptr},
      [](void* owner, const memory::Buffer&) {
        delete static_cast<std::shared_ptr<checkpoint_files::Block>*>(owner);
      },
      new std::shared_ptr<checkpoint_files::Block>(block));
}

void Checkpoints::on_block(MessagePtr message) {
  BlockHeader header;
  Pup p = message->unpacker();
  p | header;
  const auto num_pes = static_cast<std::uint32_t>(chares_.runtime().num_pes());
  const bool are_strays = header.strays_of != 0;
  // Strays name the PE that sends them. Other blocks are of a state that is being protected, or recovered.
  const std::uint32_t most = are_strays ? num_pes : std::max(num_pes, num_blocks_);
  if (message->attachments().size() != 1 || header.id.pe >= most || protected_state_ == nullptr ||
      !message->attachments().front().buffer().place.is_host()) {
    base::refuse_claim("a block of protected chares is malformed", "do all PEs run the same program?");
  }
  const memory::Buffer& buffer = message->attachments().front().buffer();
  const auto landed =
      std::ranges::find_if(landing_, [&buffer](const auto& one) { return one->data() == buffer.data; });
  if (landed == landing_.end() || (*landed)->size() != buffer.size_bytes)
    base::refuse_claim("a block of protected chares has not landed", "do all PEs run the same program?");
  BlockPtr block = std::move(*landed);
  landing_.erase(landed);
  if (are_strays) {
    strays_.push_back({header.id.pe, header.strays_of, header.summary, std::move(block)});
  } else {
    protected_state_->put(header.id, std::move(block));
  }
  std::vector<WaitingStep> ready;
  std::erase_if(waiting_steps_, [&](WaitingStep& waiting) {
    if (!has_blocks(waiting.step)) return false;
    ready.push_back(std::move(waiting));
    return true;
  });
  for (WaitingStep& waiting : ready) finish_step(std::move(waiting));
}

bool Checkpoints::has_blocks(const CheckpointStep& step) const {
  const auto pe = static_cast<std::uint32_t>(chares_.runtime().pe());
  if (step.kind == Kind::kMake && step.is_in_memory) {
    const auto num_pes = static_cast<std::size_t>(chares_.runtime().num_pes());
    if (step.strays.size() != num_pes || step.strays[pe] >= num_pes)
      base::refuse_claim("a step announces more blocks of chares than there are PEs",
                         "do all PEs run the same program?");
    const auto come =
        std::ranges::count_if(strays_, [&](const Strays& one) { return one.step == step.strays_of; });
    return static_cast<std::uint32_t>(come) == step.strays[pe];
  }
  if (!shares_blocks(step)) return true;
  return std::all_of(step.transfers.begin(), step.transfers.end(), [&](const CheckpointStep::Transfer& each) {
    return each.to != pe || protected_state_->find({step.checkpoint, each.block}) != nullptr;
  });
}

base::Status Checkpoints::open_state(std::uint64_t state) {
  if (open_state_ != 0 && leader_of(open_state_) != leader_of(state)) {
    return {base::StatusCode::kClosed,
            base::format(
                "protect was called on PE {} while PE {} protects; call it on one PE, and await each call",
                leader_of(state), leader_of(open_state_))};
  }
  if (state <= protected_state_->committed()) {
    return {base::StatusCode::kClosed,
            "protect was called on another PE too, which has protected a state meanwhile; call it on one PE, "
            "and await each call"};
  }
  if (open_state_ != state) protected_state_->drop(open_state_);  // its leader could not say so
  open_state_ = state;
  return {};
}

base::Status Checkpoints::check_state(const CheckpointStep& step) const {
  if (base::Status status = checkpoint_files::check_manifest(kName, step.manifest); !status.ok())
    return status;
  const auto num_blocks =
      step.owners.empty() ? static_cast<std::size_t>(chares_.runtime().num_pes()) : step.owners.size();
  const bool has_all = std::ranges::all_of(own_blocks(step), [&](std::uint32_t block) {
    return protected_state_->find({step.checkpoint, block}) != nullptr;
  });
  if (step.manifest.files.size() != num_blocks || step.manifest.checkpoint != step.checkpoint || !has_all) {
    return {
        base::StatusCode::kCorrupt,
        base::format("the manifest of {} does not suit the blocks of PE {}; do all PEs run the same program?",
                     kName, chares_.runtime().pe())};
  }
  return {};
}

std::vector<std::uint32_t> Checkpoints::own_blocks(const CheckpointStep& step) const {
  const auto pe = static_cast<std::uint32_t>(chares_.runtime().pe());
  if (step.owners.empty()) return {pe};
  std::vector<std::uint32_t> blocks;
  for (std::uint32_t block = 0; block < step.owners.size(); ++block) {
    if (step.owners[block] == pe) blocks.push_back(block);
  }
  return blocks;
}

// Takes no memory beyond the message.
base::Status Checkpoints::commit(CheckpointStep& step, CheckpointStepResult& result) {
  if (base::Status status = check_state(step); !status.ok()) return status;
  protected_state_->commit(step.checkpoint, std::move(step.manifest));
  open_state_ = 0;
  return step.sends_strays ? send_strays(step, result) : base::Status();
}

namespace {

// Elements on the way to one PE.
struct Bundle {
  std::shared_ptr<checkpoint_files::Block> block = std::make_shared<checkpoint_files::Block>();
  std::optional<ElementFileWriter> writer;

  base::Status add(const ElementFileReader& from, const ElementEntry& element) {
    std::vector<std::byte> bytes(element.state_bytes);
    base::Status status = from.read_state(element, bytes.data());
    if (status.ok()) status = writer->add_element(element.collection, element.index, element.flags, bytes);
    for (std::size_t i = 0; status.ok() && i < element.buffers.size(); ++i) {
      bytes.resize(element.buffers[i].size_bytes);
      status = from.read_buffer(element, i, bytes.data());
      if (status.ok()) status = writer->add_buffer(element.buffers[i].kind, bytes);
    }
    return status;
  }
};

}  // namespace

base::Status Checkpoints::send_strays(const CheckpointStep& step, CheckpointStepResult& result) {
  const auto pe = static_cast<std::uint32_t>(chares_.runtime().pe());
  const int num_pes = chares_.runtime().num_pes();
  const Manifest& manifest = protected_state_->manifest();
  std::vector<Shape> shapes;
  for (const auto& entry : manifest.collections)
    shapes.push_back(shape_of(entry, manifest.files.size(), num_pes));
  std::map<std::uint32_t, Bundle> bundles;
  for (const std::uint32_t block : own_blocks(step)) {
    const base::Result<ElementFileReader> own =
        open_block(protected_state_->find({step.checkpoint, block}), manifest, block, manifest.files[block]);
    if (!own.ok()) return own.status();
    for (const ElementEntry& element : own.value().elements()) {
      const auto home = static_cast<std::uint32_t>(shapes[element.collection].home(element.index, num_pes));
      if (home == pe) continue;
      Bundle& bundle = bundles[home];
      if (!bundle.writer) {
        auto begun =
            ElementFileWriter::begin(std::make_unique<BlockSink>(*bundle.block), step.checkpoint, pe);
        if (!begun.ok()) return begun.status();
        bundle.writer.emplace(std::move(*begun));
      }
      if (base::Status status = bundle.add(own.value(), element); !status.ok()) return status;
    }
  }
  for (auto& [home, bundle] : bundles) {
    const base::Result<checkpoint_files::FileSummary> summary = bundle.writer->finish();
    if (!summary.ok()) return summary.status();
    send_block(static_cast<int>(home), {{step.checkpoint, pe}, step.number, summary.value()}, bundle.block);
    result.homes_of_strays.push_back(home);
  }
  return {};
}

base::Status Checkpoints::read_blocks(const CheckpointStep& step, const std::vector<Collection*>& made) {
  std::vector<Strays> all = std::exchange(strays_, {});
  std::erase_if(all,
                [&](const Strays& one) { return one.step != step.strays_of; });  // of attempts that failed
  if (base::Status status = check_state(step); !status.ok()) return status;
  for (const std::uint32_t block : own_blocks(step)) {
    all.push_back({block, step.strays_of, step.manifest.files[block],
                   protected_state_->find({step.checkpoint, block})});
  }
  for (const Strays& strays : all) {
    const base::Result<ElementFileReader> file =
        open_block(strays.block, step.manifest, strays.from, strays.summary);
    if (!file.ok()) return file.status();
    if (base::Status status = read_elements(step, file.value(), made); !status.ok()) return status;
  }
  return {};
}

}  // namespace weft::chare
