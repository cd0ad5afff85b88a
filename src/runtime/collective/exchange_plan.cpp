#include "runtime/collective/exchange_plan.h"

namespace weft::runtime {

namespace {

bool is_power_of_two(int number) { return std::has_single_bit(static_cast<unsigned>(number)); }

// The rounds of a binomial tree over the members of the largest host.
int num_rounds_down(const HostGroups& hosts) {
  return std::bit_width(static_cast<unsigned>(hosts.most_on_a_host() - 1));
}

}  // namespace

bool ExchangePlan::reaches_all(int num_pes, const HostGroups* hosts) {
  if (hosts == nullptr) return is_power_of_two(num_pes);
  for (int host = 0; host < hosts->num_hosts(); ++host) {
    if (!is_power_of_two(hosts->num_on(host))) return false;
  }
  return is_power_of_two(hosts->num_hosts());
}

int ExchangePlan::num_steps_with_hosts() const {
  return PairPlan(0, hosts_->most_on_a_host()).num_steps() + PairPlan(0, hosts_->num_hosts()).num_steps() +
         num_rounds_down(*hosts_);
}

ExchangePlan::Step ExchangePlan::of_pairs(const PairPlan& plan, int step) {
  const int peer = step < plan.num_steps() ? plan.peer(step) : -1;
  if (peer < 0) return {};
  return {peer, plan.sends(step), plan.receives(step), plan.is_last(step)};
}

// Steps have the same numbers on all hosts, so a small host has no part in some of them.
ExchangePlan::Step ExchangePlan::with_hosts(int step) const {
  const int host = hosts_->host_of(pe_);
  const int index = hosts_->index_of(pe_);
  const int num_on_host = PairPlan(0, hosts_->most_on_a_host()).num_steps();
  if (step < num_on_host) {
    Step found = of_pairs(PairPlan(index, hosts_->num_on(host)), step);
    if (found.peer >= 0) found.peer = hosts_->member(host, found.peer);
    return found;
  }
  const PairPlan between(host, hosts_->num_hosts());
  const int later = step - num_on_host;
  if (later < between.num_steps()) {
    Step found = index == 0 ? of_pairs(between, later) : Step();
    if (found.peer >= 0) found.peer = hosts_->member(found.peer, 0);
    return found;
  }
  return on_way_down(1 << (num_rounds_down(*hosts_) - 1 - (later - between.num_steps())));
}

// The members whose index has no lower bit than `bit`.
ExchangePlan::Step ExchangePlan::on_way_down(int bit) const {
  const int host = hosts_->host_of(pe_);
  const int index = hosts_->index_of(pe_);
  if ((index & (bit - 1)) != 0) return {};
  if ((index & bit) != 0) return {hosts_->member(host, index - bit), false, true, true};
  if (index + bit >= hosts_->num_on(host)) return {};
  return {hosts_->member(host, index + bit), true, false, false};
}

}  // namespace weft::runtime
