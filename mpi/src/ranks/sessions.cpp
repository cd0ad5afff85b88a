// Sessions, and the process sets that they know: mpi://WORLD and mpi://SELF.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "communication/session.h"
#include "entry/entry.h"
#include "entry/handles.h"
#include "entry/objects.h"
#include "models/mpi/process.h"
#include "objects/hints.h"
#include "ranks/environment.h"

namespace weft::mpi {

Error find_session(MPI_Session handle, Session** found) {
  *found = object_of<Session>(handle, ObjectKind::kSession);
  if (*found != nullptr) return {};
  if (handle == MPI_SESSION_NULL) return {MPI_ERR_SESSION, "the session is MPI_SESSION_NULL; give a session"};
  return {MPI_ERR_SESSION, "the handle is no session; has it been finalized?"};
}

namespace {

constexpr std::array<std::string_view, 2> kProcessSets = {"mpi://WORLD", "mpi://SELF"};

// The set's members. Names are compared without regard to case, as those of URIs are.
Error find_set(const char* name, MembersPointer* members) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const Process& process = this_process();
  if (lower == "mpi://world") {
    *members = process.world()->group();
  } else if (lower == "mpi://self") {
    *members = process.self()->group();
  } else {
    return {MPI_ERR_ARG,
            weft::base::format("there is no process set {}; there are mpi://WORLD and mpi://SELF", name)};
  }
  return {};
}

struct ThreadLevel {
  int level;
  std::string_view name;
};
constexpr std::array<ThreadLevel, 4> kThreadLevels = {{{MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE"},
                                                       {MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED"},
                                                       {MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"},
                                                       {MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"}}};

std::string_view name_of_level(int level) {
  return std::ranges::find(kThreadLevels, level, &ThreadLevel::level)->name;
}

// The keys of MPI_Session_init that the standard reserves. `hints` may be null. Without a hint, `wanted_level` stays.
Error read_hints(const Info* hints, int* wanted_level) {
  const std::string* const level = hints == nullptr ? nullptr : hints->find("thread_level");
  if (level == nullptr) return {};
  const auto* const found = std::ranges::find(kThreadLevels, *level, &ThreadLevel::name);
  if (found != kThreadLevels.end()) {
    *wanted_level = found->level;
    return {};
  }
  return {MPI_ERR_INFO_VALUE,
          weft::base::format("thread_level is '{}'; give MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, "
                             "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE",
                             *level)};
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  return guarded(__func__, GivenHandler<MPI_Session>{errhandler, MPI_SESSION_NULL}, [&]() -> Error {
    if (Error error = require({{session, "session"}}); !error.ok()) return error;
    *session = MPI_SESSION_NULL;
    Info* hints = nullptr;
    ErrorHandler* handler = nullptr;
    if (Error error = find_optional(info, &hints); !error.ok()) return error;
    // Libraries open sessions of their own, whose threads call MPI at the same time as those of others.
    int level = MPI_THREAD_MULTIPLE;
    if (Error error = read_hints(hints, &level); !error.ok()) return error;
    if (Error error = find_handler_for(ObjectKind::kSession, "session", errhandler, &handler); !error.ok())
      return error;
    if (Error error = start_mpi(Starter::kSession, level); !error.ok()) return error;
    Info::Pairs pairs = hints == nullptr ? Info::Pairs() : hints->pairs();
    // The thread level that the program gets. It may have asked for a higher one.
    set_hint(pairs, "thread_level", name_of_level(thread_level()));
    *session =
        handle_of<MPI_Session>(new Session(Ref<ErrorHandler>(*handler), with_memory_kinds(std::move(pairs))));
    return {};
  });
}
int MPI_Session_finalize(MPI_Session* session) {
  if (const Error error = require({{session, "session"}}); !error.ok())
    return raise(__func__, kNoObject, error);
  if (is_forked_child()) {
    *session = MPI_SESSION_NULL;
    return MPI_SUCCESS;
  }
  return with_session(__func__, *session, {}, [&](Session& found) -> Error {
    // The program may free the memory of its buffered sends afterwards.
    this_process().wait_until([&] { return !found.buffer_space->is_in_use(); });
    found.buffer_space->detach();
    if (Error error = end_mpi(Starter::kSession); !error.ok()) return error;
    found.release();
    *session = MPI_SESSION_NULL;
    return {};
  });
}

int MPI_Session_get_num_psets(MPI_Session session, MPI_Info /*info*/, int* npset_names) {
  return with_session(__func__, session, {{npset_names, "npset_names"}}, [&](Session&) -> Error {
    *npset_names = static_cast<int>(kProcessSets.size());
    return {};
  });
}
int MPI_Session_get_nth_pset(MPI_Session session, MPI_Info /*info*/, int n, int* pset_len, char* pset_name) {
  return with_session(__func__, session, {{pset_len, "pset_len"}}, [&](Session&) -> Error {
    if (n < 0 || n >= static_cast<int>(kProcessSets.size()))
      return {MPI_ERR_ARG,
              weft::base::format("there is no process set number {}; there are {}", n, kProcessSets.size())};
    const std::string_view name = kProcessSets[static_cast<std::size_t>(n)];
    if (*pset_len > 0)
      if (Error error = require({{pset_name, "pset_name"}}); !error.ok()) return error;
    if (*pset_len > 0) copy_string(name, static_cast<std::size_t>(*pset_len), pset_name);
    *pset_len = static_cast<int>(name.size()) + 1;
    return {};
  });
}
int MPI_Session_get_pset_info(MPI_Session session, const char* pset_name, MPI_Info* info) {
  return with_session(__func__, session, {{pset_name, "pset_name"}, {info, "info"}}, [&](Session&) -> Error {
    MembersPointer members;
    if (Error error = find_set(pset_name, &members); !error.ok()) return error;
    *info = handle_of<MPI_Info>(new Info({{"mpi_size", std::to_string(members->size())}}));
    return {};
  });
}
int MPI_Session_get_info(MPI_Session session, MPI_Info* info_used) {
  return with_session(__func__, session, {{info_used, "info_used"}}, [&](Session& found) -> Error {
    *info_used = handle_of<MPI_Info>(new Info(found.info));
    return {};
  });
}
int MPI_Group_from_session_pset(MPI_Session session, const char* pset_name, MPI_Group* newgroup) {
  return with_session(__func__, session, {{pset_name, "pset_name"}, {newgroup, "newgroup"}},
                      [&](Session& found) -> Error {
                        MembersPointer members;
                        if (Error error = find_set(pset_name, &members); !error.ok()) return error;
                        *newgroup = give_group(std::move(members), found.buffer_space);
                        return {};
                      });
}

}  // extern "C"
