// The description of a rank's MPI state while it moves: plain values without a pointer, packed as bytes (moving_objects.h).
//
// An object and a function of the program have the same address in each process, so their addresses name them. Keys of attributes and
// lists of members are shared and lie elsewhere: they are numbered, and named by their numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/pup.h"

#include "models/mpi/objects/info.h"
#include "models/mpi/objects/members.h"
#include "models/mpi/topology/topology.h"

namespace weft::mpi {

using Address = std::uint64_t;

struct KeyDescription {
  std::uint8_t kind = 0;  // an ObjectKind
  Address copy = 0;
  Address remove = 0;
  Address extra_state = 0;
};

struct AttributeDescription {
  std::uint32_t key = 0;
  std::int32_t number = 0;
  Address value = 0;
};
using AttributeDescriptions = std::vector<AttributeDescription>;

// An error handler: a predefined one by its action, or an object.
struct HandlerName {
  std::uint8_t action = 0;  // an ErrorHandler::Action
  Address object = 0;       // of kCall
};

struct ScopeDescription {
  HandlerName handler;
  std::string name;
  AttributeDescriptions attributes;

  void pup(base::Pup& p) { p | handler | name | attributes; }
};

// The state of a communicator that changes after it is made. A predefined communicator is described by this alone.
struct CommunicatorState {
  ScopeDescription scope;
  Info::Pairs info;
  std::array<std::uint32_t, 2> call_numbers{};

  void pup(base::Pup& p) { p | scope | info | call_numbers; }
};

// --- Objects that have handles

struct ObjectDescription {
  Address address = 0;
  std::uint32_t references = 0;
};

struct HandlerDescription {
  ObjectDescription object;
  std::uint8_t caller = 0;  // an ObjectKind
  Address function = 0;
};

struct InfoDescription {
  ObjectDescription object;
  Info::Pairs pairs;

  void pup(base::Pup& p) { p | object | pairs; }
};

struct GroupDescription {
  ObjectDescription object;
  std::uint32_t members = 0;
};

struct OperationDescription {
  ObjectDescription object;
  Address function = 0;
  Address large_function = 0;
  bool is_commutative = false;
};

struct DatatypeDescription {
  ObjectDescription object;
  // The recipe. `parts`: handles of the datatypes that it names.
  std::int32_t combiner = 0;
  bool is_large = false;
  std::vector<int> integers;
  std::vector<std::int64_t> addresses;
  std::vector<std::int64_t> counts;
  std::vector<Address> parts;
  bool is_committed = false;
  std::string name;
  AttributeDescriptions attributes;

  void pup(base::Pup& p) {
    p | object | combiner | is_large | integers | addresses | counts | parts | is_committed | name |
        attributes;
  }
};

struct CommunicatorDescription {
  ObjectDescription object;
  std::uint64_t context = 0;
  std::uint64_t local_context = 0;
  std::uint32_t members = 0;
  std::int32_t rank = 0;
  bool is_inter = false;
  std::uint32_t remote_members = 0;  // if it is
  bool has_topology = false;
  Topology topology;  // if it has one
  CommunicatorState state;

  void pup(base::Pup& p) {
    p | object | context | local_context | members | rank | is_inter | remote_members | has_topology |
        topology | state;
  }
};

// --- The whole

// A predefined datatype that the program has changed.
struct ChangedTypeDescription {
  Address handle = 0;
  std::string name;
  AttributeDescriptions attributes;

  void pup(base::Pup& p) { p | handle | name | attributes; }
};

struct RankDescription {
  std::vector<KeyDescription> keys;
  std::vector<Members> members;

  std::map<int, std::uint32_t> key_numbers;  // those that the program has not freed, or still uses
  std::vector<int> freed_keys;               // of these, those that it has freed
  int next_key_number = 0;
  std::map<int, std::pair<int, std::string>> error_codes;
  std::vector<std::uint64_t> handle_numbers;
  std::uint32_t last_context = 0;
  Address fortran_info = 0;
  std::vector<std::byte> fortran_true;
  std::vector<std::byte> fortran_false;

  std::vector<HandlerDescription> handlers;
  std::vector<InfoDescription> infos;
  std::vector<GroupDescription> groups;
  std::vector<OperationDescription> operations;
  std::vector<DatatypeDescription> datatypes;  // in the order in which they were made
  std::vector<CommunicatorDescription> communicators;
  std::vector<ChangedTypeDescription> changed_types;
  CommunicatorState world;
  CommunicatorState self;
  ScopeDescription no_file;

  void pup(base::Pup& p) {
    p | keys | members | key_numbers | freed_keys | next_key_number | error_codes | handle_numbers |
        last_context;
    p | fortran_info | fortran_true | fortran_false;
    p | handlers | infos | groups | operations | datatypes | communicators | changed_types | world | self |
        no_file;
  }
};

}  // namespace weft::mpi
