// weft::pgas::run(): a PGAS program, whose main runs on every PE.
//
//   weft::Task<> start(weft::pgas::World& world) { co_await world.barrier(); }
//   int main(int argc, char** argv) { return weft::pgas::run(argc, argv, start); }
#pragma once

#include <functional>
#include <utility>

#include "weft/pgas/world.h"
#include "weft/runtime/task.h"

namespace weft::job {

// Starts `main` on every PE, runs the job, and returns its exit code. The job ends when main has returned on every PE and
// no message is under way; calls that were sent before main returned are therefore run. The exit code is as that of
// weft::run().
int run_on_all(int argc, char** argv, std::function<runtime::Task<>(pgas::World&)> main);

}  // namespace weft::job

namespace weft::pgas {

inline int run(int argc, char** argv, std::function<runtime::Task<>(World&)> main) {
  return job::run_on_all(argc, argv, std::move(main));
}

}  // namespace weft::pgas
