#include "runtime/comm/transports.hpp"

#include <fmt/format.h>

#include "model/base/error.hpp"

namespace stratplan {

/// Calls call(communicator) for each communicator.
template <class Call>
void TransportsCommunicator::each(const Call& call) {
  call(inner_);
  for (const auto& [name, communicator] : transports_)
    if (communicator != &inner_) call(*communicator);
}

Communicator& TransportsCommunicator::transport(const std::string& name) {
  if (name.empty()) return inner_;
  const auto known = transports_.find(name);
  if (known == transports_.end())
    throw EnvironmentError(fmt::format(
        "the plan uses the transport {}, which this run does not have; --communicator sets one "
        "transport for all transfers",
        name));
  return *known->second;
}

void TransportsCommunicator::synchronize(Stream stream) {
  each([&](Communicator& transport) { transport.synchronize(stream); });
}

void TransportsCommunicator::overlap(bool wanted) {
  each([&](Communicator& transport) { transport.overlap(wanted); });
}

bool TransportsCommunicator::poll(Stream stream) {
  bool done = true;
  each([&](Communicator& transport) { done = transport.poll(stream) && done; });
  return done;
}

void TransportsCommunicator::replayed() {
  each([](Communicator& transport) { transport.replayed(); });
}

}  // namespace stratplan
