#pragma once
// Several transports between the same ranks, for plans that choose among them
// (partition/execution.hpp).
#include <map>
#include <string>

#include "runtime/comm/decorator.hpp"

namespace stratplan {

/// Exchanges and collectives without a named transport use the first communicator. synchronize()
/// waits for the calls of all transports on the stream.
class TransportsCommunicator final : public CommunicatorDecorator {
 public:
  /// `first` must outlive this object. add() adds further communicators.
  explicit TransportsCommunicator(Communicator& first) : CommunicatorDecorator(first) {}
  /// Adds a transport. `communicator` must outlive this object, and may be the first communicator.
  void add(const std::string& name, Communicator& communicator) {
    transports_[name] = &communicator;
  }

  /// Returns the named transport; the first communicator if `name` is empty. Throws
  /// EnvironmentError if there is no transport of that name.
  Communicator& transport(const std::string& name) override;
  void synchronize(Stream stream) override;
  void overlap(bool wanted) override;
  bool poll(Stream stream) override;
  void replayed() override;

 private:
  template <class Call>
  void each(const Call& call);
  std::map<std::string, Communicator*> transports_;
};

}  // namespace stratplan
