#include "runtime/comm/transports.hpp"

#include <fmt/format.h>

#include "model/base/error.hpp"

namespace stratplan {

/// Each communicator once.
template <class Call>
void WaysCommunicator::each(const Call& call) {
  call(inner_);
  for (const auto& [name, communicator] : ways_)
    if (communicator != &inner_) call(*communicator);
}

Communicator& WaysCommunicator::way(const std::string& name) {
  if (name.empty()) return inner_;
  const auto known = ways_.find(name);
  if (known == ways_.end())
    throw EnvironmentError(fmt::format(
        "the plan sends by {}, which is not to be had here; --communicator decides for all", name));
  return *known->second;
}

void WaysCommunicator::synchronize(Track track) {
  each([&](Communicator& way) { way.synchronize(track); });
}

void WaysCommunicator::overlap(bool wanted) {
  each([&](Communicator& way) { way.overlap(wanted); });
}

bool WaysCommunicator::poll(Track track) {
  bool done = true;
  each([&](Communicator& way) { done = way.poll(track) && done; });
  return done;
}

void WaysCommunicator::replayed() {
  each([](Communicator& way) { way.replayed(); });
}

}  // namespace stratplan
