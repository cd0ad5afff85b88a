// Checkpoints: the elements of collections, and values of the program, in files, from which a later job goes on.
//
//   weft::Array<Cell> cells;
//   int step = 0;
//   if (weft::has_checkpoint("results")) {
//     co_await weft::restore(runtime, "results", cells, step);
//   } else {
//     cells = weft::Array<Cell>::create(runtime, {64});
//   }
//   for (; step < 1000; ++step) {
//     if (step % 100 == 0) co_await weft::checkpoint(runtime, "results", cells, step);
//     co_await cells.call<&Cell::advance>();
//   }
//
// Saved are the collections of the proxies among the values, and only those. Their classes need what moving needs:
// `void pup(weft::Pup&)` and a constructor without arguments or one that takes weft::Moved. docs/checkpoints.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "weft/base/pup.h"
#include "weft/runtime/future.h"
#include "weft/runtime/runtime.h"
#include "weft/runtime/task.h"

namespace weft::chare {

namespace checkpoint_detail {

// Visits the values that the program has named.
using VisitValues = std::function<void(base::Pup&)>;

// `pack` is called before it returns. The future is ready when the checkpoint is on the disk.
runtime::Future<> save(runtime::Runtime& runtime, const std::string& folder, const VisitValues& pack);
// `done` is ready when the collections exist on all PEs; unpack_values() then reads the values, once.
struct Loading {
  runtime::Future<> done;
  std::uint64_t number = 0;
};
Loading load(runtime::Runtime& runtime, const std::string& folder);
void unpack_values(runtime::Runtime& runtime, std::uint64_t loading, const VisitValues& unpack);

// As save() and load(), in memory.
runtime::Future<> protect(runtime::Runtime& runtime, const VisitValues& pack);
Loading recover(runtime::Runtime& runtime);
// For PE 0, before main: ready when the copies of the protected state are there again, at once in a job that has lost nothing. Never
// fails: recover() says what is lost.
runtime::Future<> share_anew(runtime::Runtime& runtime);
// Whether a recovery that is over has found anything.
bool has_loaded(runtime::Runtime& runtime, std::uint64_t loading);

}  // namespace checkpoint_detail

// Whether the folder has a checkpoint that restore() would try first: one whose manifest is whole and whose files have
// the right sizes. Reads the values of the checkpoint and no elements, and needs no job.
bool has_checkpoint(const std::string& folder);

// Saves the values and the elements of all collections of which they have a proxy, as FOLDER/checkpoint-N, on a file
// system that all PEs see. The values are packed in the call. Then quiescence is awaited, and each PE writes its elements
// while it runs nothing else. The future is ready when all is on the disk. The last two checkpoints of the folder stay.
//
// The future fails with weft::Error, the job goes on, and earlier checkpoints stay as they are, if
//   - the class of a collection has no pup function, or an element waits, also at a sync point, has operations on channels that are not over, or holds a
//     future (kInvalidArgument);
//   - a state has a proxy of a collection of which the values have none (kInvalidArgument);
//   - elements have contributed to a reduction that is not complete (kInvalidArgument);
//   - elements of a sparse array were inserted or removed since its last done_inserting() (kInvalidArgument);
//   - something has called the elements after quiescence was reached (kInvalidArgument);
//   - a file cannot be written, or another checkpoint into the folder is under way (kUnsupported, kClosed).
template <class... Values>
runtime::Future<> checkpoint(runtime::Runtime& runtime, const std::string& folder, const Values&... values) {
  return checkpoint_detail::save(runtime, folder, [&](base::Pup& p) { ((p | values), ...); });
}

// Makes the collections of the newest whole checkpoint of the folder, with their elements, and reads the values, which
// must have the types and the order of the call of checkpoint(). The number of PEs may differ: each element is made on
// the PE where the collection's map puts it. A map of kind kTable holds for as many PEs as before, and becomes kBlock on
// others; a group needs as many PEs as before. A damaged checkpoint is refused with its file named on standard error,
// and the one before is read.
//
// Elements begin their reductions anew; num_moves() is 0, and migrated() runs on each. Throws weft::Error: no checkpoint
// is whole (kNotFound, kCorrupt), or the program cannot read it (kInvalidArgument). Then nothing is made.
template <class... Values>
runtime::Task<> restore(runtime::Runtime& runtime, std::string folder, Values&... values) {
  const checkpoint_detail::Loading loading = checkpoint_detail::load(runtime, folder);
  co_await loading.done;
  checkpoint_detail::unpack_values(runtime, loading.number, [&](base::Pup& p) { ((p | values), ...); });
}

// How often main has begun again, because PEs were lost or the job got another number of PEs: 0 unless `weft run --on-loss restart` or
// `--on-loss shrink` has started it.
int recoveries(runtime::Runtime& runtime);

// Asks for `num_pes` PEs. The future is ready when the launcher has accepted it. At the next protect() that is complete the job gets them:
// protect() does not return, main begins again on the new number of PEs, and recover() gives it the values. PEs with the highest numbers
// leave: their processes end with code 0. docs/recovery.md.
//
// Throws Error: not a job of `weft run --on-loss restart` or `--on-loss shrink` (kUnsupported), num_pes < 1 (kInvalidArgument). The future
// fails with Error(kUnsupported) if the launcher refuses it, as when another resize is under way.
runtime::Future<> resize(runtime::Runtime& runtime, int num_pes);

// As checkpoint(), into the memory of the job: each PE keeps the state of its elements, and another PE, its buddy, keeps a copy. The
// state protected before stays until the new one is complete on all PEs. If `weft run --on-loss restart` then loses PEs, main begins
// again on all PEs, and recover() gives it the values. Does nothing in a job that cannot begin again. docs/recovery.md.
//
// Call it on one PE, as a rule in main. The future fails as that of checkpoint(). Throws Error(kClosed) if another call is under way.
template <class... Values>
runtime::Future<> protect(runtime::Runtime& runtime, const Values&... values) {
  return checkpoint_detail::protect(runtime, [&](base::Pup& p) { ((p | values), ...); });
}

// For the beginning of main: makes the protected collections anew and reads the values, as restore() does. Returns the number of the
// recovery, from 1; 0 if there is nothing to recover, and then the values are as they were.
//
// Throws Error(kNotFound) if a PE and its buddy were lost with a state that no other PE has.
template <class... Values>
runtime::Task<int> recover(runtime::Runtime& runtime, Values&... values) {
  const checkpoint_detail::Loading loading = checkpoint_detail::recover(runtime);
  co_await loading.done;
  if (!checkpoint_detail::has_loaded(runtime, loading.number)) co_return 0;
  checkpoint_detail::unpack_values(runtime, loading.number, [&](base::Pup& p) { ((p | values), ...); });
  co_return recoveries(runtime);
}

}  // namespace weft::chare
