// getopt() and its kin with a state per rank.
//
// The C library keeps one state, most of which is hidden. If another rank has used it since, the rank's calls are repeated
// on a copy of its arguments, without output, before the next one: this brings the hidden state back.
#include <getopt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "slots/rank_state.h"

namespace weft::mpi_host {

namespace {

using ShortForm = int(int, char* const*, const char*);
using LongForm = int(int, char* const*, const char*, const option*, int*);

// A call, without its argument list.
struct OptionCall {
  ShortForm* short_form = nullptr;
  LongForm* long_form = nullptr;
  int argc = 0;
  const char* letters = nullptr;
  const option* names = nullptr;
  int* name_index = nullptr;

  int operator()(char* const* argv) const {
    return short_form != nullptr ? short_form(argc, argv, letters)
                                 : long_form(argc, argv, letters, names, name_index);
  }
};

// The rank whose state the C library has.
RankState* owner = nullptr;

// The C library begins anew, with the next argument `begin`.
void restart(const OptionCall& call, int begin) {
  char program[] = "program";
  const std::array<char*, 2> nothing = {program, nullptr};
  OptionCall empty = call;
  empty.argc = 1;
  optind = 0;
  empty(nothing.data());
  optind = begin;
}

void begin_scan(OptionScan& scan, const OptionCall& call, char* const* argv, int begin) {
  scan.argv = argv;
  scan.original.assign(argv, argv + std::max(call.argc, 0));
  scan.original.push_back(nullptr);
  scan.begin = std::max(begin, 1);
  scan.num_calls = 0;
}

void repeat(const OptionScan& scan, const OptionCall& call) {
  restart(call, scan.begin);
  opterr = 0;
  std::vector<char*> arguments = scan.original;
  for (int i = 0; i < scan.num_calls; ++i) call(arguments.data());
}

int scan_for(RankState& state, const OptionCall& call, char* const* argv) {
  OptionScan& scan = state.options;
  LibcVariables& libc = state.libc;
  const bool begins = scan.num_calls == 0 || scan.argv != argv || scan.index != *libc.index;
  if (begins) begin_scan(scan, call, argv, *libc.index);
  if (begins || owner != &state) repeat(scan, call);
  owner = &state;
  opterr = *libc.prints_errors;
  const int result = call(argv);
  ++scan.num_calls;
  scan.index = optind;
  *libc.index = optind;
  *libc.argument = optarg;
  *libc.unknown_option = optopt;
  return result;
}

int scan_options(const OptionCall& call, char* const* argv) {
  RankState* const state = current_state();
  if (state != nullptr) return scan_for(*state, call, argv);
  owner = nullptr;
  return call(argv);
}

}  // namespace

void forget_options_of(const RankState& state) {
  if (owner == &state) owner = nullptr;
}

}  // namespace weft::mpi_host

using namespace weft::mpi_host;  // NOLINT(google-build-using-namespace): the replacements are C functions

extern "C" {

int getopt(int argc, char* const* argv, const char* letters) noexcept {
  static ShortForm* const form = replaced<ShortForm>("getopt");
  return scan_options({.short_form = form, .argc = argc, .letters = letters}, argv);
}

// NOLINTNEXTLINE(bugprone-reserved-identifier): the C library's name of it
int __posix_getopt(int argc, char* const* argv, const char* letters) {
  static ShortForm* const form = replaced<ShortForm>("__posix_getopt");
  return scan_options({.short_form = form, .argc = argc, .letters = letters}, argv);
}

int getopt_long(int argc, char* const* argv, const char* letters, const option* names, int* index) noexcept {
  static LongForm* const form = replaced<LongForm>("getopt_long");
  return scan_options(
      {.long_form = form, .argc = argc, .letters = letters, .names = names, .name_index = index}, argv);
}

int getopt_long_only(int argc, char* const* argv, const char* letters, const option* names,
                     int* index) noexcept {
  static LongForm* const form = replaced<LongForm>("getopt_long_only");
  return scan_options(
      {.long_form = form, .argc = argc, .letters = letters, .names = names, .name_index = index}, argv);
}

}  // extern "C"
