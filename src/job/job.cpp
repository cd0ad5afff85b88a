#include "weft/job/job.h"

#include <malloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "weft/chare/chares.h"
#include "weft/pgas/pgas.h"

#include "base/format.h"
#include "base/value_or_throw.h"
#include "checkpoint/protected_state.h"
#include "collective/engine.h"
#include "job/activity.h"
#include "job/drain_signal.h"
#include "job/identity.h"
#include "job/launch.h"
#include "job/processors.h"
#include "job/report_signal.h"
#include "job/resizing.h"
#include "job/settings.h"
#include "job/status/other_hosts.h"
#include "job/status/status_publisher.h"
#include "job/trace/job_trace.h"
#include "machine/bootstrap/bootstrap.h"
#include "machine/bootstrap/hosts/host_watch.h"
#include "machine/bootstrap/launcher/exit_deadline.h"
#include "machine/bootstrap/launcher/launcher_watch.h"
#include "machine/bootstrap/launcher/start_notice.h"
#include "machine/factory/factory.h"
#include "machine/machine.h"
#include "machine/transfer_report.h"
#include "memory/memory.h"
#include "memory/report.h"
#include "models/channel/channels.h"
#include "models/chare/checkpoint/checkpoints.h"
#include "runtime/losses/losses.h"
#include "runtime/waits/program_threads.h"

namespace weft::job {

namespace {

// Collective; throws Error that names what differs and on which PEs. Returns the notes by PE.
std::vector<std::string> expect_equal(machine::Bootstrap& bootstrap, const Identity& mine,
                                      std::string_view note = {}) {
  const auto all = base::value_or_throw(bootstrap.exchange(mine.pack(note)));
  const auto left = std::as_bytes(std::span(kHasLeft));
  std::vector<std::string> notes;
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    if (std::ranges::equal(all[pe], left)) {
      throw base::Error(
          base::StatusCode::kPeerFailed,
          base::format("PE {} starts a job, and PE {} has ended without it", bootstrap.pe(), pe));
    }
    base::check(mine.expect_equal(bootstrap.pe(), all[pe], static_cast<int>(pe)));
    notes.emplace_back(Identity::note_of(all[pe]));
  }
  return notes;
}

// `processors`: of each PE, as it has sent them. `hosts`: of each PE; empty if there is one.
runtime::ProcessorShare own_share(int pe, const std::vector<std::string>& processors,
                                  const std::vector<int>& hosts) {
  std::vector<std::string_view> lists;
  std::size_t own = 0;
  for (std::size_t other = 0; other < processors.size(); ++other) {
    if (!hosts.empty() && hosts[other] != hosts[static_cast<std::size_t>(pe)]) continue;
    if (other == static_cast<std::size_t>(pe)) own = lists.size();
    lists.push_back(processors[other]);
  }
  return share_of(own, lists);
}

// The models with what was allotted to them, and the program that they see.
Identity identity_of_models(const runtime::Runtime& runtime) {
  Identity identity;
  const auto [name, value] = runtime::registry_fact<runtime::Combiner>("reducers");
  identity.add(name, value);
  for (const auto& [type, needs, range, model] : runtime.models()) {
    identity.add(base::format("the model {}", needs.name),
                 base::format("{} handlers from {}, tag type {}", range.num_handlers, range.first_handler,
                              range.tag_type));
    for (const auto& [fact, text] : model->fingerprint()) identity.add(fact, text);
  }
  return identity;
}

std::unique_ptr<memory::Memory> make_memory(const machine::Bootstrap& bootstrap) {
  auto memory = std::make_unique<memory::Memory>(
      base::value_or_throw(memory::MemoryOptions::from_environment(bootstrap.local_rank())));
  base::check(memory->check_options());
  if (bootstrap.local_rank() != 0) return memory;
  const std::string warning = memory::peer_access_warning(*memory, bootstrap.local_size());
  if (!warning.empty()) std::fputs(base::format("weft: {}\n", warning).c_str(), stderr);
  return memory;
}

// The job goes on without a current device: the program may not need it.
void warn_of_current_device(int pe, const base::Status& status) {
  if (!status.failed()) return;
  std::fputs(
      base::format("weft: PE {}: its own device could not be made the current one, so other libraries may "
                   "allocate on another device: {}\n",
                   pe, status.message())
          .c_str(),
      stderr);
}

void print_long_runs(int pe, const Activity& activity) {
  std::string text;
  for (const std::string& line : activity.long_runs()) text += base::format("weft: PE {}: {}\n", pe, line);
  std::fputs(text.c_str(), stderr);
}

void print_statistics(runtime::Runtime& runtime, Activity& activity) {
  machine::Machine& machine = runtime.machine();
  std::string text =
      machine::transfer_report(machine.pe(), machine.transport_use(), machine.peer_transports());
  for (const std::string& why : machine.obstacles()) {
    text += base::format("weft: PE {}: {}\n", machine.pe(), why);
  }
  std::vector<std::string> lines = activity.end();
  for (std::string& line : runtime.memory().uses_of_other_devices()) lines.push_back(std::move(line));
  for (std::string& line : runtime.flow_report()) lines.push_back(std::move(line));
  for (const auto& installed : runtime.models()) {
    for (std::string& line : installed.model->report()) lines.push_back(std::move(line));
  }
  for (const std::string& line : lines) text += base::format("weft: PE {}: {}\n", machine.pe(), line);
  std::fputs(text.c_str(), stderr);
}

// Fresh pages cost more than moving the bytes in them: a 1 MiB argument took 892 us with glibc's defaults,
// which give large blocks back to the system each time, and 109 us with these. The environment (MALLOC_*_)
// still decides.
void keep_large_blocks() {
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") == nullptr) mallopt(M_MMAP_THRESHOLD, 32 << 20);
  if (std::getenv("MALLOC_TRIM_THRESHOLD_") == nullptr) mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

// Collective. Of the PEs of a host that lack links, the first one prints what it lacks.
void warn_of_missing_links(machine::Bootstrap& bootstrap, const machine::HostTable& table,
                           const std::vector<std::string>& obstacles) {
  if (table.num_hosts() < 2) return;
  const auto all =
      base::value_or_throw(bootstrap.exchange({obstacles.empty() ? std::byte{0} : std::byte{1}}));
  std::vector<int> lacking = table.pes_of(table.host_of(bootstrap.pe()));
  std::erase_if(lacking,
                [&](int pe) { return all[static_cast<std::size_t>(pe)] != std::vector{std::byte{1}}; });
  if (lacking.empty() || lacking.front() != bootstrap.pe()) return;
  for (const std::string& obstacle : obstacles) {
    std::fputs(base::format("weft: PE {}: {}\n", bootstrap.pe(), obstacle).c_str(), stderr);
  }
  if (lacking.size() == 1) return;
  std::fputs(base::format("weft: PE {}: {} more PEs of this host lack such connections\n", bootstrap.pe(),
                          lacking.size() - 1)
                 .c_str(),
             stderr);
}

// A text that the PEs of the job on this host have in common, and no other job has. Most launchers name their jobs.
std::string name_of_job(const machine::Bootstrap& bootstrap) {
  std::string name = bootstrap.unique_name();
  if (!name.empty()) return name;
  for (const char* const variable : {"PMIX_NAMESPACE", "SLURM_STEP_ID", "PMI_JOBID"}) {
    const char* const value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    const char* const allocation = std::getenv("SLURM_JOB_ID");
    return base::format("{} {} {}", variable, allocation == nullptr ? "" : allocation, value);
  }
  return base::format("parent {}", getppid());
}

std::vector<int> hosts_of_pes(const machine::HostTable& table) {
  std::vector<int> hosts;
  for (int pe = 0; pe < table.num_pes(); ++pe) hosts.push_back(table.host_of(pe));
  return hosts;
}

}  // namespace

// So long the launcher may wait for the death that made a PE abort (MOST_HOLD_S of python/weft/launch/losses/recovery.py), and some more.
constexpr int kAwaitedDeathMs = 25000;

struct Job::Parts {
  std::unique_ptr<machine::bootstrap::StartingBootstrap> bootstrap;
  Incarnations* incarnations = nullptr;  // of a job that may begin again
  std::unique_ptr<memory::Memory> memory;
  std::unique_ptr<machine::Machine> machine;
  std::unique_ptr<runtime::Runtime> runtime;
  std::unique_ptr<JobTrace> trace;  // empty unless one is wanted
  std::unique_ptr<machine::LauncherWatch> watch;
  std::atomic<bool> has_started = false;
  std::unique_ptr<machine::HostWatch> host_watch;  // empty if the job has one host
  std::optional<ReportSignal> report_signal;       // goes before the runtime
  std::unique_ptr<DrainSignal> drain_signal;       // goes before the runtime; empty unless one is wanted
  std::unique_ptr<StatusPublisher> status;         // goes before the runtime; empty if there is no page
  std::vector<int> hosts;                          // of each PE; empty if the job has one host
  const pid_t process = getpid();

  // Whether abort() begins the next incarnation in a new program of this process.
  bool begins_in_new_program() const {
    return incarnations != nullptr && incarnations->way_ == Incarnations::Way::kInNewProgram;
  }
  // Whether this is a process that the PE has forked. The job, its memory and its connections are the PE's.
  bool is_in_forked_child() const { return getpid() != process; }

  // Collective. Empty if the job has one host. The watch begins before the next collective, in which the PEs wait for one
  // another. A job that outlives the loss of a host has none: its launcher watches the hosts.
  machine::HostTable watch_other_hosts() {
    if (bootstrap->local_size() == bootstrap->num_pes()) return {};
    if (bootstrap->can_begin_again() || bootstrap->can_outlive_losses()) {
      return base::value_or_throw(machine::HostTable::unpack(
          base::value_or_throw(bootstrap->exchange(machine::HostEntry::of_this_process().pack()))));
    }
    machine::HostLinks links = base::value_or_throw(machine::HostLinks::make(*bootstrap));
    machine::HostTable table = links.table();
    const std::vector<std::string> obstacles = links.obstacles();
    start_host_watch(std::move(links));
    warn_of_missing_links(*bootstrap, table, obstacles);
    return table;
  }
  // The loss of a host is a failure of this PE. During the start, in which a PE waits for others without a runtime, the
  // watch itself ends the PE a little later.
  void start_host_watch(machine::HostLinks links) {
    if (links.table().num_hosts() < 2) return;
    host_watch = base::value_or_throw(
        machine::HostWatch::start(bootstrap->pe(), std::move(links), [this](const std::string& why) {
          if (has_started) runtime->fail(why);
        }));
  }
  void abort(int code, const std::string& sentence) {
    const int limit_ms = bootstrap->can_begin_again() ? kAwaitedDeathMs : machine::LauncherWatch::kGraceMs;
    const machine::ExitDeadline deadline(limit_ms, bootstrap->pe(), code);
    host_watch.reset();
    bootstrap->abort(code, sentence);
  }
  // A launcher that has gone, or ends the job, is a failure of this PE.
  void start_watch() {
    const runtime::OwnThreadsBegin own_threads;
    watch = base::value_or_throw(machine::LauncherWatch::start(
        *bootstrap,
        [this](machine::LauncherWord word) {
          const auto read = [this] {
            const base::Status status = bootstrap->watch_status();
            if (status.failed()) {
              runtime->fail(std::string(status.message()));
            } else if (watch != nullptr) {
              watch->go_on();
            }
          };
          if (word == machine::LauncherWord::kResizing) {
            runtime->post_from_any_thread(read);
          } else {
            runtime->post_end_from_any_thread(read);
          }
        },
        [this](machine::LostPe lost) { runtime->tell_loss(lost.pe, std::move(lost.why)); }));
  }
  int run_watched() {
    if (watch == nullptr) start_watch();
    const int code = runtime->run();
    watch.reset();  // the bootstrap's collectives follow
    return code;
  }
  // Waits until the runtimes of all PEs have stopped. They stop one after the other, and a PE that drops the last of its queue may
  // still send: how much it has handled, for instance. So this one makes progress until the last one has stopped.
  base::Status wait_for_all_pes() {
    base::Status status;
    std::atomic<bool> all_have_stopped = false;
    std::thread waiter;
    try {
      waiter = std::thread([&] {
        status = bootstrap->barrier();
        all_have_stopped.store(true, std::memory_order_release);
        machine->wake();
      });
    } catch (const std::system_error&) {  // no thread to be had
      return bootstrap->barrier();
    }
    while (!all_have_stopped.load(std::memory_order_acquire)) {
      if (machine->progress()) continue;
      if (machine->needs_polling()) {
        sched_yield();
      } else {
        machine->wait(-1);
      }
    }
    waiter.join();
    return status;
  }
};

Job::Job(const InstallModels& more_models) : Job(more_models, Launch::join()) {}

Job::Job(const InstallModels& more_models, Launch&& launch)
    : Job(more_models, std::move(launch), static_cast<Incarnations*>(nullptr)) {}

Job::Job(const InstallModels& more_models, Incarnations& incarnations)
    : Job(more_models, Launch::join(true), &incarnations) {}

Job::Job(const InstallModels& more_models, Launch&& launch, Incarnations& incarnations)
    : Job(more_models, std::move(launch), &incarnations) {}

Job::Job(const InstallModels& more_models, Launch&& launch, Incarnations* incarnations)
    : parts_(std::make_unique<Parts>()) {
  parts_->bootstrap = std::move(launch.bootstrap_);
  parts_->incarnations = incarnations;
  if (!parts_->bootstrap->can_begin_again()) {
    start(more_models, launch);
    return;
  }
  try {
    start(more_models, launch);
  } catch (const base::Error& error) {
    if (error.code() == base::StatusCode::kCancelled) throw;
    // The loss of another PE may be the reason: the launcher judges it.
    parts_->abort(1, base::format("weft: {}", error.what()));
    throw base::Error(base::StatusCode::kCancelled, error.what());
  }
  if (incarnations == nullptr) return;
  checkpoint_files::ProtectedState* const state = incarnations->state_.get();
  machine::Bootstrap& bootstrap = *parts_->bootstrap;
  state->incarnation = bootstrap.incarnation().number;
  state->known_to_launcher = bootstrap.incarnation().newest_protected;
  state->on_protected = [&bootstrap](std::uint64_t number, std::uint32_t plan) {
    bootstrap.tell_protected(number, plan);
  };
  let_resize(*parts_->bootstrap, *parts_->runtime, *state);
  parts_->runtime->model<chare::Chares>().checkpoints().keep_in(state, parts_->hosts);
  parts_->drain_signal = DrainSignal::from_environment(*parts_->runtime, bootstrap);
}

void Job::start(const InstallModels& more_models, const Launch& launch) {
  const runtime::OwnThreadsBegin own_threads;
  keep_large_blocks();
  parts_->memory = make_memory(*parts_->bootstrap);
  warn_of_current_device(parts_->bootstrap->pe(), parts_->memory->make_expected_devices_current());
  // Before the machine, whose messages another version may not understand.
  const bool has_peers = parts_->bootstrap->num_pes() > 1;
  std::vector<std::string> processors = {own_processors()};
  if (has_peers) {
    const std::string own = std::move(processors.front());
    processors = expect_equal(*parts_->bootstrap, Identity::of_weft(),
                              own.size() > kMaxNoteBytes ? std::string_view() : own);
    processors[static_cast<std::size_t>(parts_->bootstrap->pe())] = own;
  }
  parts_->hosts = hosts_of_pes(parts_->watch_other_hosts());
  const std::vector<int>& hosts = parts_->hosts;
  parts_->machine =
      base::value_or_throw(machine::make_machine(*parts_->bootstrap, *parts_->memory, launch.threads_));
  runtime::RuntimeOptions options;
  options.local_pes = parts_->bootstrap->local_size();
  options.processor_share = own_share(parts_->bootstrap->pe(), processors, hosts);
  options.messaging_path = messaging_path();
  options.watermarks = read_watermarks(*parts_->bootstrap);
  const bool has_other_hosts = std::ranges::adjacent_find(hosts, std::not_equal_to()) != hosts.end();
  options.host_of_pe = hosts;
  parts_->runtime = std::make_unique<runtime::Runtime>(*parts_->machine, *parts_->memory, options);
  if (parts_->bootstrap->can_outlive_losses()) {
    parts_->runtime->losses().survive();
    parts_->runtime->set_observer(nullptr);
  }
  parts_->runtime->install<collective::Engine>();
  parts_->runtime->install<chare::Chares>();
  parts_->runtime->install<channel::Channels>();
  parts_->runtime->install<pgas::Pgas>().set_has_other_hosts(has_other_hosts);
  if (more_models) more_models(*parts_->runtime);
  if (has_other_hosts) parts_->runtime->install<OtherHosts>();
  set_options(*parts_->runtime);
  parts_->trace = JobTrace::from_environment(*parts_->runtime, has_other_hosts);
  // No PE sends before this exchange ends, and so before every PE has set its handlers.
  if (has_peers) expect_equal(*parts_->bootstrap, identity_of_models(*parts_->runtime));
  const std::optional<runtime::HangSettings> hangs = hang_settings();
  if (hangs && parts_->runtime->pe() == 0) parts_->runtime->watch_for_hangs(*hangs);
  parts_->report_signal.emplace(*parts_->runtime);
  parts_->status = StatusPublisher::make(*parts_->runtime, name_of_job(*parts_->bootstrap));
  if (has_other_hosts && parts_->status != nullptr)
    parts_->runtime->model<OtherHosts>().begin(*parts_->status, hosts);
  parts_->bootstrap->start_is_complete();
  parts_->has_started = true;
}

// A forked child would end the job of its parent, and wait for threads that it does not have.
Job::~Job() {
  if (parts_->is_in_forked_child()) static_cast<void>(parts_.release());
}

runtime::Runtime& Job::runtime() { return *parts_->runtime; }

bool Job::can_begin_again() const { return parts_->bootstrap->can_begin_again(); }

bool Job::has_launcher() const { return parts_->bootstrap->has_launcher(); }

int Job::expect_own_stacks() const { return ReportSignal::expect_own_stacks(); }

bool Job::has_report_signal() const { return parts_->report_signal->is_set(); }

std::string Job::unique_name() const { return parts_->bootstrap->unique_name(); }

void Job::start_job(const std::string& request) { base::check(parts_->bootstrap->start_job(request)); }

void Job::make_own_devices_current() {
  warn_of_current_device(parts_->bootstrap->pe(), parts_->memory->make_own_devices_current());
}

void Job::outlive_losses(bool may_lose_pe_0) { parts_->bootstrap->outlive_losses(may_lose_pe_0); }

void Job::watch_launcher() { parts_->start_watch(); }

void Job::abort(int code, const std::string& sentence) {
  std::fflush(nullptr);
  if (parts_->is_in_forked_child()) {
    std::fputs((sentence + "\n").c_str(), stderr);
  } else {
    parts_->watch.reset();
    parts_->abort(code, sentence);
    if (parts_->begins_in_new_program()) {
      leave_incarnation();
      parts_->incarnations->begin_in_new_program();
    }
  }
  std::_Exit(code);
}

int Job::run() {
  std::optional<Activity> activity;
  if (statistics_wanted() || checks_wanted()) activity.emplace(*parts_->runtime);
  int code = parts_->run_watched();
  if (parts_->trace != nullptr) parts_->trace->write();
  if (checks_wanted()) print_long_runs(parts_->bootstrap->pe(), *activity);
  const std::string& failure = parts_->runtime->failure();
  if (!failure.empty()) {
    std::fflush(stdout);  // abort may not return
    parts_->memory->abort_steps();
    parts_->abort(code, base::format("weft: {}", failure));
    leave_incarnation();
    return code;
  }
  if (statistics_wanted()) print_statistics(*parts_->runtime, *activity);
  const base::Status together =
      parts_->bootstrap->num_pes() == 1 ? base::Status() : parts_->wait_for_all_pes();
  if (together.failed()) {
    parts_->memory->abort_steps();
    print_unless_launcher_did(together.code(),
                              base::format("weft: PE {}: {}\n", parts_->bootstrap->pe(), together.message()));
    leave_incarnation();
    return code == 0 ? 1 : code;
  }
  if (parts_->host_watch != nullptr) parts_->host_watch->finish();
  parts_->host_watch.reset();
  parts_->runtime->close();
  if (const base::Status hang = parts_->memory->hang(); hang.failed()) {
    std::fputs(base::format("weft: PE {}: {}\n", parts_->bootstrap->pe(), hang.message()).c_str(), stderr);
  }
  parts_->bootstrap->finished(code);
  return code;
}

void Job::leave_incarnation() {
  // The connection of a process that leaves closes when its machine has. The Job may live on, because objects of the program hold it.
  if (machine::begins_again() && !machine::leaves_job()) parts_->bootstrap->give_up_connection();
}

}  // namespace weft::job
