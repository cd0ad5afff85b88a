#include "rma/segment/shared_parts.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace weft::rma {

using base::Result;
using base::SharedMapping;

namespace {

// The first page of a file holds its random number.
constexpr std::size_t kHeadBytes = 4096;
static_assert(kHeadBytes >= SharedMapping::kNonceBytes && kHeadBytes % SharedParts::kAlignment == 0);

Result<std::shared_ptr<SharedMapping>> make_file(std::size_t size_bytes) {
  Result<SharedMapping> made = SharedMapping::create("weft-segment", kHeadBytes + size_bytes);
  if (!made.ok()) return made.status();
  return std::make_shared<SharedMapping>(std::move(*made));
}

std::size_t round_up(std::size_t size_bytes) {
  return (size_bytes + SharedParts::kAlignment - 1) / SharedParts::kAlignment * SharedParts::kAlignment;
}

}  // namespace

bool SharedParts::take(File& file, std::size_t size_bytes, std::size_t& offset_bytes) {
  const auto found =
      std::ranges::find_if(file.free, [&](const auto& range) { return range.second >= size_bytes; });
  if (found == file.free.end()) return false;
  offset_bytes = found->first;
  const std::size_t left = found->second - size_bytes;
  file.free.erase(found);
  if (left > 0) file.free.emplace(offset_bytes + size_bytes, left);
  return true;
}

Result<SharedPart> SharedParts::allocate(std::size_t size_bytes) {
  if (size_bytes > kLargestSharedBytes) {
    auto file = make_file(size_bytes);
    if (!file.ok()) return file.status();
    return SharedPart{std::move(*file), kHeadBytes};
  }
  const std::size_t rounded = round_up(size_bytes);
  SharedPart part;
  for (File& file : files_) {
    if (!take(file, rounded, part.offset_bytes)) continue;
    part.file = file.file;
    std::memset(part.data(), 0, rounded);
    return part;
  }
  auto file = make_file(kFileBytes);
  if (!file.ok()) return file.status();
  File& added = files_.emplace_back();
  added.file = std::move(*file);
  added.free.emplace(kHeadBytes, kFileBytes);
  take(added, rounded, part.offset_bytes);
  part.file = added.file;
  return part;
}

void SharedParts::free(const SharedPart& part, std::size_t size_bytes) {
  const auto file = std::ranges::find(files_, part.file, &File::file);
  if (file == files_.end()) return;  // its own file ends with it
  std::size_t begin = part.offset_bytes;
  std::size_t size = round_up(size_bytes);
  auto next = file->free.upper_bound(begin);
  if (next != file->free.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      file->free.erase(before);
    }
  }
  if (next != file->free.end() && next->first == begin + size) {
    size += next->second;
    file->free.erase(next);
  }
  file->free.emplace(begin, size);
  // One empty file is kept for the next part.
  const auto is_empty = [](const File& one) {
    return one.free.size() == 1 && one.free.begin()->second == kFileBytes;
  };
  if (is_empty(*file) && std::ranges::count_if(files_, is_empty) > 1) files_.erase(file);
}

SharedPart MappedFiles::open(const base::SharedMappingName& name, std::uint64_t offset_bytes,
                             std::uint64_t size_bytes) {
  const std::uint64_t file_bytes = name.file.size_bytes;
  if (offset_bytes < SharedMapping::kNonceBytes || offset_bytes > file_bytes ||
      size_bytes > file_bytes - offset_bytes) {
    return {};
  }
  std::weak_ptr<SharedMapping>& known = files_[name.nonce];
  SharedPart part{known.lock(), offset_bytes};
  // A nonce belongs to one file: a known one with another size is a false claim.
  if (part.file != nullptr && part.file->name().file.size_bytes != file_bytes) return {};
  if (part.file == nullptr) {
    Result<SharedMapping> opened = SharedMapping::open(name, file_bytes);
    if (opened.ok()) part.file = std::make_shared<SharedMapping>(std::move(*opened));
    known = part.file;
  }
  if (part.file == nullptr) files_.erase(name.nonce);
  std::erase_if(files_, [](const auto& entry) { return entry.second.expired(); });
  return part;
}

}  // namespace weft::rma
