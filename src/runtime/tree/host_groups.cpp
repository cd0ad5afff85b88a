#include "runtime/tree/host_groups.h"

#include <algorithm>
#include <map>
#include <utility>

namespace weft::runtime {

std::shared_ptr<const HostGroups> HostGroups::make(std::span<const int> host_of) {
  auto groups = std::make_shared<HostGroups>();
  std::map<int, int> numbers;
  std::vector<int> sizes;
  for (const int host : host_of) {
    const auto [found, is_new] = numbers.emplace(host, static_cast<int>(numbers.size()));
    if (is_new) sizes.push_back(0);
    groups->hosts_.push_back(found->second);
    groups->indices_.push_back(sizes[static_cast<std::size_t>(found->second)]++);
  }
  if (sizes.size() < 2 || sizes.size() == host_of.size()) return nullptr;
  groups->most_ = *std::ranges::max_element(sizes);
  groups->firsts_.push_back(0);
  for (const int size : sizes) groups->firsts_.push_back(groups->firsts_.back() + size);
  groups->members_.resize(host_of.size());
  for (std::size_t member = 0; member < host_of.size(); ++member) {
    const int place = groups->first(groups->hosts_[member]) + groups->indices_[member];
    groups->members_[static_cast<std::size_t>(place)] = static_cast<int>(member);
  }
  groups->are_consecutive_ = std::ranges::is_sorted(groups->members_);
  return groups;
}

}  // namespace weft::runtime
