// Communicators: queries, and the calls that make and free them.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "communication/communication.h"
#include "entry/entry.h"
#include "entry/objects.h"
#include "models/mpi/collective/team_collectives.h"
#include "models/mpi/communicators/communicator_creation.h"
#include "models/mpi/model.h"
#include "models/mpi/process.h"
#include "objects/attributes.h"
#include "objects/hints.h"
#include "streams/stream_communicators.h"

namespace weft::mpi {

namespace {

// with_communicator() for calls that make a communicator: `newcomm` is MPI_COMM_NULL behind an error. `name`: of the argument.
template <class Body>
int with_parent(const char* function, MPI_Comm comm, MPI_Comm* newcomm, const char* name, const Body& body) {
  return guarded(function, comm, [&]() -> Error {
    Communicator* parent = nullptr;
    if (Error error = require({{newcomm, name}}); !error.ok()) return error;
    *newcomm = MPI_COMM_NULL;
    if (Error error = find_communicator(comm, &parent); !error.ok()) return error;
    return body(*parent);
  });
}

// The result of a collective creation. A process that is in no new communicator gets MPI_COMM_NULL.
void give_communicator(Ref<Communicator> made, MPI_Comm* newcomm) {
  *newcomm = made ? make_handle<MPI_Comm>(std::move(made)) : MPI_COMM_NULL;
}

// A duplicate has the hints that the program gives, and none of its parent (MPI 4.0).
Error duplicate_now(Communicator& parent, MPI_Comm comm, const Info* info, MPI_Comm* newcomm) {
  Ref<Communicator> copy = begin_duplicate(parent);
  this_process().run(duplicate(Ref<Communicator>(parent), copy));
  if (info != nullptr) {
    if (Error error = use_hints(*copy, info->pairs()); !error.ok()) return error;
  }
  if (Error error = copy_attributes(comm, parent, *copy); !error.ok()) return error;
  give_communicator(std::move(copy), newcomm);
  return {};
}

// The handle is valid at once; the communicator can be used when the request is complete.
Error duplicate_later(Communicator& parent, MPI_Comm comm, const Info* info, MPI_Comm* newcomm,
                      MPI_Request* request) {
  Ref<Communicator> copy = begin_duplicate(parent);
  if (info != nullptr) {
    if (Error error = use_hints(*copy, info->pairs()); !error.ok()) return error;
  }
  if (Error error = copy_attributes(comm, parent, *copy); !error.ok()) return error;
  const auto agree = [parent = Ref<Communicator>(parent), copy](Outcome*) {
    return duplicate(parent, copy, Communicator::CallKind::kGivesRequest);
  };
  Ref<Request> agreeing = as_request(Request::make<CollectiveRequest>(parent.engine().messenger(), agree));
  give_communicator(std::move(copy), newcomm);
  return give_request(std::move(agreeing), &parent, request, false);
}

// A number that is equal for all processes of a host.
std::int64_t host_color() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return static_cast<std::int64_t>(std::hash<std::string_view>()(name.data()) >> 1);
}

// Part of the group of an intracommunicator's parent.
Error find_place(const Communicator& parent, const Group& group, int* place) {
  for (const int process : *group.members()) {
    const Members& all = *parent.group();
    if (std::find(all.begin(), all.end(), process) == all.end())
      return {MPI_ERR_GROUP, "the group has a process that the communicator does not have"};
  }
  *place = group.rank_of(parent.engine().rank());
  return {};
}

// Frees the handle. The object lives on while operations use it.
Error free_communicator(Communicator& communicator, MPI_Comm* comm) {
  if (is_predefined(*comm)) return {MPI_ERR_COMM, "predefined communicators cannot be freed"};
  if (communicator.stream_transfers != nullptr) {
    // After a failure the handle is that of a communicator without a stream.
    if (Error error = close_streams(communicator); !error.ok()) return error;
  }
  if (Error error = remove_attributes(*comm, communicator); !error.ok()) return error;
  if (this_process().parent == &communicator) this_process().parent = nullptr;
  this_process().runtime().model<Mpi>().survival().leave(communicator);
  communicator.release();
  *comm = MPI_COMM_NULL;
  return {};
}

Error check_place(int place) {
  if (place >= 0) return {};
  return {MPI_ERR_GROUP, "this process is not in the group; only its members call this function"};
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

// --- Queries

int MPI_Comm_size(MPI_Comm comm, int* size) {
  return with_communicator(__func__, comm, {{size, "size"}}, [&](Communicator& communicator) -> Error {
    *size = communicator.size();
    return {};
  });
}
int MPI_Comm_rank(MPI_Comm comm, int* rank) {
  return with_communicator(__func__, comm, {{rank, "rank"}}, [&](Communicator& communicator) -> Error {
    *rank = communicator.rank();
    return {};
  });
}
int MPI_Comm_test_inter(MPI_Comm comm, int* flag) {
  return with_communicator(__func__, comm, {{flag, "flag"}}, [&](Communicator& communicator) -> Error {
    *flag = communicator.is_inter() ? 1 : 0;
    return {};
  });
}
int MPI_Comm_remote_size(MPI_Comm comm, int* size) {
  return with_communicator(__func__, comm, {{size, "size"}}, [&](Communicator& communicator) -> Error {
    if (!communicator.is_inter()) return {MPI_ERR_COMM, "the communicator has no remote group"};
    *size = communicator.remote_size();
    return {};
  });
}
int MPI_Comm_group(MPI_Comm comm, MPI_Group* group) {
  return with_communicator(__func__, comm, {{group, "group"}}, [&](Communicator& communicator) -> Error {
    *group = give_group(communicator.group(), communicator.session_space);
    return {};
  });
}
int MPI_Comm_remote_group(MPI_Comm comm, MPI_Group* group) {
  return with_communicator(__func__, comm, {{group, "group"}}, [&](Communicator& communicator) -> Error {
    if (!communicator.is_inter()) return {MPI_ERR_COMM, "the communicator has no remote group"};
    *group = give_group(communicator.remote_group(), communicator.session_space);
    return {};
  });
}
int MPI_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int* result) {
  return with_communicator(__func__, comm1, {{result, "result"}}, [&](Communicator& one) -> Error {
    Communicator* other = nullptr;
    if (Error error = find_communicator(comm2, &other); !error.ok()) return error;
    *result = compare(one, *other);
    return {};
  });
}

int MPI_Comm_get_name(MPI_Comm comm, char* comm_name, int* resultlen) {
  return guarded(__func__, comm, [&]() -> Error {
    if (Error error = require({{comm_name, "comm_name"}, {resultlen, "resultlen"}}); !error.ok())
      return error;
    std::string name = "MPI_COMM_NULL";
    if (comm != MPI_COMM_NULL) {
      Communicator* communicator = nullptr;
      if (Error error = find_communicator(comm, &communicator); !error.ok()) return error;
      name = communicator->name();
    }
    copy_string(name, MPI_MAX_OBJECT_NAME, comm_name);
    *resultlen = static_cast<int>(std::strlen(comm_name));
    return {};
  });
}
int MPI_Comm_set_name(MPI_Comm comm, const char* comm_name) {
  return with_communicator(
      __func__, comm, {{comm_name, "comm_name"}}, [&](Communicator& communicator) -> Error {
        communicator.set_name(std::string(comm_name, strnlen(comm_name, MPI_MAX_OBJECT_NAME - 1)));
        return {};
      });
}

int MPI_Comm_set_info(MPI_Comm comm, MPI_Info info) {
  return with_communicator(__func__, comm, {}, [&](Communicator& communicator) -> Error {
    Info* found = nullptr;
    if (Error error = find_object(info, &found); !error.ok()) return error;
    return use_hints(communicator, found->pairs());
  });
}
int MPI_Comm_get_info(MPI_Comm comm, MPI_Info* info_used) {
  return with_communicator(__func__, comm, {{info_used, "info_used"}},
                           [&](Communicator& communicator) -> Error {
                             *info_used = handle_of<MPI_Info>(new Info(with_memory_kinds(communicator.info)));
                             return {};
                           });
}

// --- From a communicator

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* newcomm) {
  return with_parent(__func__, comm, newcomm, "newcomm",
                     [&](Communicator& parent) { return duplicate_now(parent, comm, nullptr, newcomm); });
}
int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm) {
  return with_parent(__func__, comm, newcomm, "newcomm", [&](Communicator& parent) -> Error {
    Info* found = nullptr;
    if (Error error = find_optional(info, &found); !error.ok()) return error;
    return duplicate_now(parent, comm, found, newcomm);
  });
}
int MPI_Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
  return with_parent(__func__, comm, newcomm, "newcomm", [&](Communicator& parent) -> Error {
    if (Error error = require({{request, "request"}}); !error.ok()) return error;
    return duplicate_later(parent, comm, nullptr, newcomm, request);
  });
}
int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request) {
  return with_parent(__func__, comm, newcomm, "newcomm", [&](Communicator& parent) -> Error {
    Info* found = nullptr;
    if (Error error = require({{request, "request"}}); !error.ok()) return error;
    if (Error error = find_optional(info, &found); !error.ok()) return error;
    return duplicate_later(parent, comm, found, newcomm, request);
  });
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* newcomm) {
  return with_parent(__func__, comm, newcomm, "newcomm", [&](Communicator& parent) -> Error {
    if (color < 0 && color != MPI_UNDEFINED)
      return {MPI_ERR_ARG, weft::base::format("the color is {}; give 0 or more, or MPI_UNDEFINED", color)};
    const Choice choice{color == MPI_UNDEFINED ? kNoColor : color, key};
    give_communicator(this_process().run(split(Ref<Communicator>(parent), choice)), newcomm);
    return {};
  });
}
int MPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm) {
  return with_parent(__func__, comm, newcomm, "newcomm", [&](Communicator& parent) -> Error {
    Info* found = nullptr;
    if (Error error = find_optional(info, &found); !error.ok()) return error;
    std::int64_t color = kNoColor;
    switch (split_type) {
      case MPI_COMM_TYPE_SHARED:
        color = host_color();
        break;
      case MPI_UNDEFINED:
      case MPI_COMM_TYPE_HW_UNGUIDED:  // no hardware below a host is known
        break;
      case MPI_COMM_TYPE_HW_GUIDED:
      case MPI_COMM_TYPE_RESOURCE_GUIDED: {
        const std::string* const type = found == nullptr ? nullptr : found->find("mpi_hw_resource_type");
        if (type != nullptr && *type == "mpi_shared_memory") color = host_color();
        break;
      }
      default:
        return {MPI_ERR_ARG, weft::base::format("there is no split type {}", split_type)};
    }
    Ref<Communicator> made = this_process().run(split(Ref<Communicator>(parent), {color, key}));
    if (made && found != nullptr) {
      if (Error error = use_hints(*made, found->pairs()); !error.ok()) return error;
    }
    give_communicator(std::move(made), newcomm);
    return {};
  });
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm) {
  return with_parent(__func__, comm, newcomm, "newcomm", [&](Communicator& parent) -> Error {
    Group* found = nullptr;
    if (Error error = find_object(group, &found); !error.ok()) return error;
    int place = 0;
    if (Error error = find_place(parent, *found, &place); !error.ok()) return error;
    // Processes that name different groups get different communicators. The first member stands for the group, by its rank in the parent:
    // processes of several jobs have other numbers for one another.
    Choice choice{kNoColor, place};
    if (place >= 0 && !parent.is_inter()) {
      const Members& all = *parent.group();
      choice.color = std::find(all.begin(), all.end(), found->members()->front()) - all.begin();
    } else if (place >= 0) {
      choice.color = 0;
    }
    give_communicator(this_process().run(split(Ref<Communicator>(parent), choice)), newcomm);
    return {};
  });
}
int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm) {
  return with_parent(__func__, comm, newcomm, "newcomm", [&](Communicator& parent) -> Error {
    Group* found = nullptr;
    if (Error error = find_object(group, &found); !error.ok()) return error;
    if (parent.is_inter()) return {MPI_ERR_COMM, "the communicator is an intercommunicator"};
    if (tag < 0) return {MPI_ERR_TAG, weft::base::format("the tag is {}; give 0 or more", tag)};
    int place = 0;
    if (Error error = find_place(parent, *found, &place); !error.ok()) return error;
    if (place < 0) return {};
    give_communicator(
        this_process().run(create_group(Ref<Communicator>(parent), found->members(), place, tag)), newcomm);
    return {};
  });
}

int MPI_Comm_free(MPI_Comm* comm) {
  if (const Error error = require({{comm, "comm"}}); !error.ok()) return raise(__func__, kNoObject, error);
  return with_communicator(__func__, *comm, {},
                           [&](Communicator& communicator) { return free_communicator(communicator, comm); });
}
int MPI_Comm_disconnect(MPI_Comm* comm) {
  if (const Error error = require({{comm, "comm"}}); !error.ok()) return raise(__func__, kNoObject, error);
  return with_communicator(__func__, *comm, {}, [&](Communicator& communicator) -> Error {
    if (is_predefined(*comm)) return {MPI_ERR_COMM, "predefined communicators cannot be disconnected"};
    this_process().run(barrier_in_teams(communicator.next_collective_contexts().local));
    return free_communicator(communicator, comm);
  });
}

// --- Intercommunicators

int MPI_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader,
                         int tag, MPI_Comm* newintercomm) {
  return with_parent(__func__, local_comm, newintercomm, "newintercomm", [&](Communicator& local) -> Error {
    if (local.is_inter()) return {MPI_ERR_COMM, "the local communicator is an intercommunicator"};
    if (local_leader < 0 || local_leader >= local.size())
      return {MPI_ERR_RANK, weft::base::format("the local leader {} does not exist", local_leader)};
    LeaderBridge bridge{{}, remote_leader, tag};
    if (local.rank() == local_leader) {
      Communicator* peer = nullptr;
      if (Error error = find_communicator(peer_comm, &peer); !error.ok()) return error;
      if (!peer->has_peer(remote_leader))
        return {MPI_ERR_RANK, weft::base::format("the remote leader {} does not exist", remote_leader)};
      if (tag < 0) return {MPI_ERR_TAG, weft::base::format("the tag is {}; give 0 or more", tag)};
      bridge.communicator = Ref<Communicator>(*peer);
    }
    give_communicator(
        this_process().run(create_inter(Ref<Communicator>(local), local_leader, std::move(bridge))),
        newintercomm);
    return {};
  });
}
int MPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm* newintracomm) {
  return with_parent(__func__, intercomm, newintracomm, "newintracomm", [&](Communicator& inter) -> Error {
    if (!inter.is_inter()) return {MPI_ERR_COMM, "the communicator is no intercommunicator"};
    give_communicator(this_process().run(merge(Ref<Communicator>(inter), high != 0)), newintracomm);
    return {};
  });
}

// --- From groups alone

int MPI_Comm_create_from_group(MPI_Group group, const char* stringtag, MPI_Info info,
                               MPI_Errhandler errhandler, MPI_Comm* newcomm) {
  return guarded(__func__, GivenHandler<MPI_Comm>{errhandler, MPI_COMM_NULL}, [&]() -> Error {
    if (Error error = require({{stringtag, "stringtag"}, {newcomm, "newcomm"}}); !error.ok()) return error;
    *newcomm = MPI_COMM_NULL;
    if (Error error = check_running(); !error.ok()) return error;
    Group* found = nullptr;
    ErrorHandler* handler = nullptr;
    Info* hints = nullptr;
    if (Error error = find_object(group, &found); !error.ok()) return error;
    if (Error error = find_handler_for(ObjectKind::kCommunicator, "communicator", errhandler, &handler);
        !error.ok())
      return error;
    if (Error error = find_optional(info, &hints); !error.ok()) return error;
    Process& process = this_process();
    if (found->size() == 0) return {};
    const int place = found->rank_of(process.engine().rank());
    if (Error error = check_place(place); !error.ok()) return error;
    Ref<Communicator> made = process.run(
        create_from_group(process.engine(), found->members(), place, stringtag, Ref<ErrorHandler>(*handler)));
    if (hints != nullptr) {
      if (Error error = use_hints(*made, hints->pairs()); !error.ok()) return error;
    }
    made->session_space = found->session_space();
    give_communicator(std::move(made), newcomm);
    return {};
  });
}
int MPI_Intercomm_create_from_groups(MPI_Group local_group, int local_leader, MPI_Group remote_group,
                                     int remote_leader, const char* stringtag, MPI_Info info,
                                     MPI_Errhandler errhandler, MPI_Comm* newintercomm) {
  return guarded(__func__, GivenHandler<MPI_Comm>{errhandler, MPI_COMM_NULL}, [&]() -> Error {
    if (Error error = require({{stringtag, "stringtag"}, {newintercomm, "newintercomm"}}); !error.ok())
      return error;
    *newintercomm = MPI_COMM_NULL;
    if (Error error = check_running(); !error.ok()) return error;
    Group* local = nullptr;
    Group* remote = nullptr;
    ErrorHandler* handler = nullptr;
    Info* hints = nullptr;
    if (Error error = find_object(local_group, &local); !error.ok()) return error;
    if (Error error = find_object(remote_group, &remote); !error.ok()) return error;
    if (Error error = find_handler_for(ObjectKind::kCommunicator, "communicator", errhandler, &handler);
        !error.ok())
      return error;
    if (Error error = find_optional(info, &hints); !error.ok()) return error;
    if (local_leader < 0 || local_leader >= local->size() || remote_leader < 0 ||
        remote_leader >= remote->size())
      return {MPI_ERR_RANK,
              weft::base::format("the leaders {} and {} must be ranks of their groups of {} and {} processes",
                                 local_leader, remote_leader, local->size(), remote->size())};
    Process& process = this_process();
    TwoGroups groups{local->members(), local->rank_of(process.engine().rank()), local_leader,
                     remote->members(), remote_leader};
    if (Error error = check_place(groups.place); !error.ok()) return error;
    Ref<Communicator> made = process.run(create_inter_from_groups(process.engine(), std::move(groups),
                                                                  stringtag, Ref<ErrorHandler>(*handler)));
    if (hints != nullptr) {
      if (Error error = use_hints(*made, hints->pairs()); !error.ok()) return error;
    }
    made->session_space = local->session_space();
    give_communicator(std::move(made), newintercomm);
    return {};
  });
}

}  // extern "C"
