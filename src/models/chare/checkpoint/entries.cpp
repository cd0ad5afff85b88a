// The API of checkpoints, and how a collection is described in a manifest.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/chare/chares.h"
#include "weft/chare/checkpoint.h"
#include "weft/runtime/registry.h"

#include "base/format.h"
#include "base/value_or_throw.h"
#include "checkpoint/folder.h"
#include "models/chare/checkpoint/checkpoints.h"

namespace weft::chare {

using checkpoint_files::CollectionEntry;
using runtime::Registry;

namespace {

[[noreturn]] void cannot_restore(const std::string& why) {
  throw base::Error(base::StatusCode::kInvalidArgument, why);
}

// Null if there is none. Throws if there are two: classes in unnamed namespaces of two files may have one name.
template <class Info>
Info* find_named(std::string_view name) {
  Info* found = nullptr;
  for (Info* info : Registry<Info>::all()) {
    if (info->name != name) continue;
    if (found != nullptr) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          base::format("the program has two classes or maps of the name {}, and a checkpoint finds them "
                       "by name; rename one",
                       name));
    }
    found = info;
  }
  return found;
}

}  // namespace

bool has_checkpoint(const std::string& folder) {
  // restore() says why others are refused.
  return std::ranges::any_of(
      base::value_or_throw(checkpoint_files::checkpoints_in(folder)), [&folder](std::uint64_t number) {
        return checkpoint_files::open_checkpoint(checkpoint_files::checkpoint_path(folder, number)).ok();
      });
}

namespace checkpoint_detail {

runtime::Future<> save(runtime::Runtime& runtime, const std::string& folder, const VisitValues& pack) {
  return runtime.model<Chares>().checkpoints().save(folder, pack);
}

Loading load(runtime::Runtime& runtime, const std::string& folder) {
  return runtime.model<Chares>().checkpoints().load(folder);
}

void unpack_values(runtime::Runtime& runtime, std::uint64_t loading, const VisitValues& unpack) {
  runtime.model<Chares>().checkpoints().unpack_values(loading, unpack);
}

runtime::Future<> protect(runtime::Runtime& runtime, const VisitValues& pack) {
  return runtime.model<Chares>().checkpoints().protect(pack);
}

runtime::Future<> share_anew(runtime::Runtime& runtime) {
  return runtime.model<Chares>().checkpoints().share_anew();
}

Loading recover(runtime::Runtime& runtime) { return runtime.model<Chares>().checkpoints().recover(); }

bool has_loaded(runtime::Runtime& runtime, std::uint64_t loading) {
  return runtime.model<Chares>().checkpoints().has_loaded(loading);
}

}  // namespace checkpoint_detail

int recoveries(runtime::Runtime& runtime) {
  return static_cast<int>(runtime.model<Chares>().checkpoints().num_recoveries());
}

runtime::Future<> resize(runtime::Runtime& runtime, int num_pes) {
  return runtime.model<Chares>().checkpoints().resize(num_pes);
}

CollectionEntry entry_of(const Collection& collection) {
  const Shape& shape = collection.shape();
  CollectionEntry entry;
  entry.id = collection.id();
  entry.kind = static_cast<std::uint8_t>(collection.kind());
  entry.type_name = collection.type()->name;
  entry.class_key = collection.class_key();
  if (!entry.class_key.empty()) entry.class_name = collection.name();
  for (int d = 0; d < shape.num_dimensions(); ++d) entry.extents.push_back(shape.extent(d));
  entry.map = static_cast<std::uint8_t>(shape.map());
  if (shape.map() == Map::kOnePe) entry.map_pe = shape.map_argument();
  if (shape.map() == Map::kUser) entry.map_name = Registry<MapInfo>::find(shape.map_argument())->name;
  if (shape.map() == Map::kTable) entry.table = *shape.table();
  entry.num_elements = collection.num_elements();
  entry.balancing = static_cast<std::uint8_t>(collection.balancing());
  entry.has_created = collection.has_created() ? 1 : 0;
  return entry;
}

Shape shape_of(const CollectionEntry& entry, std::size_t num_pes_then, int num_pes_now) {
  const auto as_many = num_pes_then == static_cast<std::size_t>(num_pes_now);
  if (entry.kind > static_cast<std::uint8_t>(CollectionKind::kSparse))
    cannot_restore("a collection has no kind");
  if (!is_valid(static_cast<Balancing>(entry.balancing)))
    cannot_restore("a collection takes part in load balancing in no known way");
  if (entry.kind == static_cast<std::uint8_t>(CollectionKind::kGroup) && !as_many) {
    cannot_restore(base::format(
        "the checkpoint has a group, {}, with one element on each of {} PEs; this job has {} PEs. "
        "Run it with {} PEs, or keep groups out of checkpoints and make them anew",
        entry.class_name.empty() ? entry.type_name : entry.class_name, num_pes_then, num_pes_now,
        num_pes_then));
  }
  const Shape shape(entry.extents.data(), static_cast<int>(std::min<std::size_t>(entry.extents.size(), 99)));
  const bool is_sparse = entry.kind == static_cast<std::uint8_t>(CollectionKind::kSparse);
  if (!is_sparse && entry.num_elements != shape.size())
    cannot_restore("a collection has another number of elements than its shape");
  if (is_sparse && entry.map == static_cast<std::uint8_t>(Map::kTable))
    cannot_restore("a sparse array has a table of PEs");
  switch (static_cast<Map>(entry.map)) {
    case Map::kBlock:
    case Map::kRoundRobin:
      return shape.with_map(static_cast<Map>(entry.map));
    case Map::kOnePe:
      return shape.on_pe(static_cast<int>(entry.map_pe % static_cast<std::uint32_t>(num_pes_now)));
    case Map::kTable: {
      if (!as_many) return shape.with_map(Map::kBlock);
      Shape placed = shape.with_table(entry.table);
      placed.check_homes(num_pes_now);
      return placed;
    }
    case Map::kUser: {
      const MapInfo* const map = find_named<MapInfo>(entry.map_name);
      if (map == nullptr) {
        cannot_restore(
            base::format("the checkpoint has a collection with the map {}, which this program does "
                         "not have",
                         entry.map_name));
      }
      Shape placed = shape.with_user_map(map->id);
      if (!is_sparse) placed.check_homes(num_pes_now);  // bounds may have more indices than can be asked
      return placed;
    }
  }
  cannot_restore("a collection has no map");
}

const ChareType& type_of(const CollectionEntry& entry) {
  const ChareType* const type = find_named<ChareType>(entry.type_name);
  if (type != nullptr && type->pup != nullptr) return *type;
  cannot_restore(
      base::format("the checkpoint has elements of the class {}, which this program {}", entry.type_name,
                   type == nullptr ? "does not have" : "cannot restore: it has no pup function any more"));
}

}  // namespace weft::chare
